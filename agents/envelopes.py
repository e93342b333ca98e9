"""Requests and completions in the words of the two APIs that clients of OpenAI speak: Chat
Completions and Responses.
"""

from __future__ import annotations

import json
from typing import Any

from kernelwright.agents.chat import ROLES, ChatRequest, Completion, Message, canonical_schema
from kernelwright.agents.dialects.fences import blocks

DEFAULT_TOKENS = 4096
# Roles of newer clients, and what they are called in a request of ours.
_ROLES = {"developer": "system"}


class RequestError(ValueError):
    """A body that is no request: what was expected and what was found."""


def parse_chat(body: bytes) -> ChatRequest:
    """The request in the body of a Chat Completions call.

    Raises:
        RequestError: if there is none in it.
    """
    data = _object(body)
    limit = data.get("max_completion_tokens", data.get("max_tokens"))
    wanted = data.get("response_format")
    wanted = wanted.get("json_schema") if isinstance(wanted, dict) else None
    return _request(data, _messages("messages", data.get("messages")), limit, wanted)


def parse_responses(body: bytes) -> ChatRequest:
    """The request in the body of a Responses call.

    Raises:
        RequestError: if there is none in it.
    """
    data = _object(body)
    given = data.get("input")
    listed = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = _messages("input", listed)
    if isinstance(data.get("instructions"), str):
        messages = (("system", data["instructions"]), *messages)
    text = data.get("text")
    wanted = text.get("format") if isinstance(text, dict) else None
    return _request(data, messages, data.get("max_output_tokens"), wanted)


def _object(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"expected JSON: {error}") from None
    if not isinstance(data, dict):
        raise RequestError(f"expected an object, found {type(data).__name__}")
    if data.get("stream"):
        raise RequestError("stream: expected false; answers are sent whole")
    return data


def _request(
    data: dict[str, Any], messages: tuple[Message, ...], limit: Any, wanted: Any
) -> ChatRequest:
    schema = wanted.get("schema") if isinstance(wanted, dict) else None
    try:
        return ChatRequest(
            model=str(data.get("model", "")),
            messages=messages,
            max_tokens=int(DEFAULT_TOKENS if limit is None else limit),
            temperature=float(_or(data.get("temperature"), 1.0)),
            seed=int(_or(data.get("seed"), 0)),
            schema=canonical_schema(schema if isinstance(schema, dict) else None),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(str(error)) from None


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _messages(name: str, listed: Any) -> tuple[Message, ...]:
    if not isinstance(listed, list):
        raise RequestError(f"{name}: expected a list")
    return tuple(_message(name, entry) for entry in listed)


def _message(name: str, entry: Any) -> Message:
    role, content = (entry.get("role"), entry.get("content")) if isinstance(entry, dict) else (0, 0)
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    if isinstance(role, str):
        role = _ROLES.get(role, role)
    if role not in ROLES or not isinstance(content, str):
        raise RequestError(f"{name}: expected a role of {ROLES} and text, found {entry!r:.80}")
    return role, content


def forced_tool(body: bytes) -> str | None:
    """The function that a Chat Completions call says must be called; None if it says none."""
    data = json.loads(body)
    choice, tools = data.get("tool_choice"), data.get("tools")
    if choice == "required" and isinstance(tools, list) and len(tools) == 1:
        choice = tools[0]
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def chat_body(completion: Completion, tool: str | None = None) -> dict[str, Any]:
    """A completion in Chat Completions' words; with ``tool``, as a call of that function."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": completion.text,
        "refusal": completion.refusal,
    }
    reason = completion.finish_reason
    if tool is not None and completion.text is not None:
        found = blocks(completion.text)
        arguments = found[-1].text if found else completion.text
        call = {"name": tool, "arguments": arguments}
        message |= {
            "content": None,
            "tool_calls": [{"id": f"call-{completion.id}", "type": "function", "function": call}],
        }
        reason = "tool_calls" if reason == "stop" else reason
    return {
        "id": completion.id,
        "object": "chat.completion",
        "created": 0,
        "model": completion.model,
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "total_tokens": completion.tokens,
        },
    }


def responses_body(completion: Completion) -> dict[str, Any]:
    """A completion in Responses' words."""
    is_cut = completion.finish_reason == "length"
    status = "incomplete" if is_cut else "completed"
    content: list[dict[str, Any]] = []
    if completion.refusal:
        content = [{"type": "refusal", "refusal": completion.refusal}]
    elif completion.text is not None:
        content = [{"type": "output_text", "text": completion.text, "annotations": []}]
    message = {
        "id": f"msg-{completion.id}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }
    return {
        "id": completion.id,
        "object": "response",
        "created_at": 0,
        "model": completion.model,
        "status": status,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "error": None,
        "output": [message],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": completion.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": completion.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": completion.tokens,
        },
    }
