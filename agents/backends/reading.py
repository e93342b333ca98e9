"""A server's answer as a `Completion`. The client checks nothing, so every field is looked at
before it is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.agents.chat import (
    BackendError,
    ChatRequest,
    Completion,
    estimate_tokens,
    price,
)

# No model reads or writes more at once. A server that tells more would end a budget by a word.
MOST_TOKENS = 10_000_000
# Characters of a name: of the model, of the answer, of why it ended.
MOST_NAME = 200


def read_completion(
    answer: Any, request: ChatRequest, prices: Mapping[str, float] | None
) -> Completion:
    """What the client returned, as a completion.

    No choices, or a choice without text, is a completion without text; something that is not the
    shape of a completion at all is an error.

    Raises:
        BackendError: of kind ``content``, if it is none.
    """
    if not hasattr(answer, "choices"):
        found = f"{type(answer).__name__} {answer!r:.120}"
        raise BackendError("content", f"expected a completion, found {found}")
    error = getattr(answer, "error", None)
    if error is not None:
        raise BackendError("content", f"expected a completion, found an error: {error!r:.300}")
    choices = answer.choices
    if choices is not None and not isinstance(choices, list):
        raise BackendError("content", f"expected a list of choices, found {choices!r:.120}")
    message = getattr(choices[0], "message", None) if choices else None
    text = _text(getattr(message, "content", None)) or _called(message)
    refusal = _text(getattr(message, "refusal", None))
    reason = getattr(choices[0], "finish_reason", None) if choices else "no_choices"
    usage = getattr(answer, "usage", None)
    prompt, completion, estimated = _usage(usage, request, text)
    cached = min(_cached(usage), prompt)
    return Completion(
        text=text,
        finish_reason=_name(reason),
        model=_name(getattr(answer, "model", None)) or request.model,
        id=_name(getattr(answer, "id", None)) or request.key,
        refusal=refusal or None,
        prompt_tokens=prompt,
        completion_tokens=completion,
        usage_estimated=estimated,
        usd=price(prompt, completion, prices, cached),
        cached_tokens=cached,
    )


def _called(message: Any) -> str | None:
    """The arguments of the first tool that an answer calls: where one is asked for, they are it."""
    calls = getattr(message, "tool_calls", None)
    function = getattr(calls[0], "function", None) if isinstance(calls, list) and calls else None
    return _text(getattr(function, "arguments", None))


def _text(value: Any) -> str | None:
    """Text, also where a server sends it in parts; lone surrogates, which nothing can store, are
    replaced.
    """
    if isinstance(value, list):
        parts = [part.get("text") if isinstance(part, dict) else None for part in value]
        value = "".join(part for part in parts if isinstance(part, str))
    if value is None:
        return None
    if not isinstance(value, str):
        raise BackendError("content", f"expected text, found {value!r:.120}")
    return value.encode("utf-8", "replace").decode()


def _name(value: Any) -> str | None:
    """A name that a server gives something, which is worth no answer: None where it is no text."""
    return _text(value[:MOST_NAME]) if isinstance(value, str) else None


def _usage(usage: Any, request: ChatRequest, text: str | None) -> tuple[int, int, bool]:
    """Prompt and completion tokens, and whether they are estimates."""
    prompt = _count(getattr(usage, "prompt_tokens", None))
    completion = _count(getattr(usage, "completion_tokens", None))
    asked = sum(estimate_tokens(content) for _, content in request.messages)
    said = estimate_tokens(text or "")
    # A question and an answer that took no tokens would cost nothing, however many there are.
    is_estimated = prompt is None or completion is None
    if prompt is None or (prompt == 0 and asked):
        prompt, is_estimated = asked, True
    if completion is None or (completion == 0 and said):
        completion, is_estimated = said, True
    return prompt, completion, is_estimated


def _cached(usage: Any) -> int:
    """How many tokens of the prompt the server says that it had read before."""
    return (
        _count(getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)) or 0
    )


def _count(value: Any) -> int | None:
    """A number of tokens, None where it makes no sense."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return int(value) if is_whole and 0 <= value < MOST_TOKENS else None
