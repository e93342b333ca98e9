"""OpenAI's Responses interface: a request as its arguments, and its answer as a `Completion`.

It knows no seed, and keeps conversations unless it is told not to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from kernelwright.agents.backends.reading import read_completion
from kernelwright.agents.backends.wire import TOOL, Wire
from kernelwright.agents.chat import BackendError, ChatRequest, Completion

_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


def response_arguments(wire: Wire, request: ChatRequest) -> dict[str, Any]:
    """The keyword arguments of a call."""
    optional = wire.optional(request)
    optional.pop("seed", None)
    out: dict[str, Any] = {
        "model": request.model,
        "input": [{"role": role, "content": text} for role, text in request.messages],
        "max_output_tokens": request.max_tokens,
        "store": False,
        **optional,
    }
    if request.schema is None or wire.format == "text":
        return out
    schema = json.loads(request.schema)
    if wire.format == "tool":
        tool = {"type": "function", "name": TOOL, "parameters": schema, "strict": True}
        return {**out, "tools": [tool], "tool_choice": {"type": "function", "name": TOOL}}
    form: dict[str, Any] = {"type": "json_object"}
    if wire.format == "json_schema":
        form = {"type": "json_schema", "name": TOOL, "strict": True, "schema": schema}
    return {**out, "text": {"format": form}}


def read_response(
    answer: Any, request: ChatRequest, prices: Mapping[str, float] | None
) -> Completion:
    """What the client returned, as a completion, read as carefully as one of Chat Completions.

    Raises:
        BackendError: of kind ``content``, if it is none.
    """
    error, output = getattr(answer, "error", None), getattr(answer, "output", None)
    if error is None and not isinstance(output, list):
        kind = getattr(answer, "object", type(answer).__name__)
        found = f"{output!r:.120} of {kind!r:.60}"
        raise BackendError("content", f"expected a response with outputs, found {found}")
    items = output if isinstance(output, list) else []
    parts = [part for item in items for part in getattr(item, "content", None) or ()]
    texts = [part.text for part in parts if isinstance(getattr(part, "text", None), str)]
    refusals = [r for part in parts if isinstance(r := getattr(part, "refusal", None), str)]
    calls = [a for item in items if isinstance(a := getattr(item, "arguments", None), str)]
    message = SimpleNamespace(
        content="".join(texts) or "".join(calls) or None, refusal="".join(refusals) or None
    )
    choice = SimpleNamespace(message=message, finish_reason=_reason(answer))
    usage = getattr(answer, "usage", None)
    shown = SimpleNamespace(
        id=getattr(answer, "id", None),
        model=getattr(answer, "model", None),
        error=error,
        choices=[choice] if items else [],
        usage=SimpleNamespace(
            prompt_tokens=getattr(usage, "input_tokens", None),
            completion_tokens=getattr(usage, "output_tokens", None),
            prompt_tokens_details=getattr(usage, "input_tokens_details", None),
        ),
    )
    return read_completion(shown, request, prices)


def _reason(answer: Any) -> str:
    status = getattr(answer, "status", None)
    if status == "incomplete":
        why = getattr(getattr(answer, "incomplete_details", None), "reason", None)
        return _REASONS.get(str(why), "length")
    return "stop" if status in (None, "completed") else str(status)
