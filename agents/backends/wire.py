"""A request as the arguments of a call, with less and less in it as a server says, or shows, what
it does not know.

An answer by schema is asked for in the strictest form that a server keeps to: by schema, as JSON
with the schema beside it, as JSON, as the arguments of a tool, or in the words of the prompt alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from kernelwright.agents.backends.conforming import conforms, is_object
from kernelwright.agents.chat import ChatRequest, Completion

# From the strictest to none; a server that refuses one, or does not keep to it, is asked for the
# next. llama-cpp-python's server reads the schema in the second.
FORMATS = ("json_schema", "json_object_schema", "json_object", "tool", "text")
TOOL = "answer"
# What may be left away when a server refuses it by name. The names in its message are its own.
_SCHEMA_WORDS = re.compile(
    r"response_format|json_schema|json_object|json schema|json mode|grammar|structured output",
    re.IGNORECASE,
)
_TOOL_WORDS = re.compile(r"\btools?\b|tool_choice|function", re.IGNORECASE)
_OPTIONAL = ("temperature", "seed")
_WHOLE = ("stop", "tool_calls", "function_call", "completed")


class Wire:
    """How a server wants to be asked. It learns from refusals and answers, and never forgets."""

    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        known = known or {}
        format_ = known.get("format")
        self._format = FORMATS.index(format_) if format_ in FORMATS else 0
        self._is_proven = format_ in FORMATS
        limit = known.get("limit")
        self._limit = limit if limit in ("max_tokens", "max_completion_tokens") else "max_tokens"
        dropped = known.get("dropped")
        listed = dropped if isinstance(dropped, list) else ()
        self._dropped = {name for name in listed if name in _OPTIONAL}

    @property
    def format(self) -> str:
        """The form in which answers by schema are asked for."""
        return FORMATS[self._format]

    @property
    def learned(self) -> dict[str, Any]:
        """What is known of the server, to be remembered; the form only if an answer had it."""
        found: dict[str, Any] = {"limit": self._limit, "dropped": sorted(self._dropped)}
        return {"format": self.format, **found} if self._is_proven else found

    def arguments(self, request: ChatRequest) -> dict[str, Any]:
        """The call's keyword arguments, of Chat Completions."""
        out: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
            self._limit: request.max_tokens,
            **self.optional(request),
        }
        if request.schema is not None:
            out |= self._form(json.loads(request.schema))
        return out

    def optional(self, request: ChatRequest) -> dict[str, Any]:
        """What can be left away, as far as it need not be."""
        given = {"temperature": request.temperature, "seed": request.seed}
        return {name: value for name, value in given.items() if name not in self._dropped}

    def _form(self, schema: dict[str, Any]) -> dict[str, Any]:
        if self.format == "text":
            return {}
        if self.format == "tool":
            function = {"name": TOOL, "description": "The answer.", "parameters": schema}
            chosen = {"type": "function", "function": {"name": TOOL}}
            return {"tools": [{"type": "function", "function": function}], "tool_choice": chosen}
        if self.format == "json_schema":
            content = {"name": TOOL, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": content}}
        beside = {"schema": schema} if self.format == "json_object_schema" else {}
        return {"response_format": {"type": "json_object", **beside}}

    def step_down(self, refusal: str, request: ChatRequest) -> bool:
        """Ask for less, if the refusal names something that can be spared; whether it did."""
        words = _TOOL_WORDS if self.format == "tool" else _SCHEMA_WORDS
        if words.search(refusal) and self.loosen(request):
            return True
        if "max_tokens" in refusal and self._limit == "max_tokens":
            self._limit = "max_completion_tokens"
            return True
        for name in _OPTIONAL:
            if name in refusal and name not in self._dropped:
                self._dropped.add(name)
                return True
        return False

    def loosen(self, request: ChatRequest) -> bool:
        """Ask for a looser form of the answer; whether there was one."""
        if request.schema is None or self.format == "text":
            return False
        self._format += 1
        self._is_proven = False
        return True

    def broke(self, request: ChatRequest) -> None:
        """The server broke down over a request. The schema may be why, unless an answer in this
        form came before: the next form is tried, then none; where that breaks down, too, it was
        not the schema.
        """
        if request.schema is None or self._is_proven:
            return
        after = {"json_schema": "json_object_schema", "text": "json_schema"}
        self._format = FORMATS.index(after.get(self.format, "text"))

    def heard(self, request: ChatRequest, completion: Completion) -> None:
        """See whether an answer has the form that was asked for: a server that accepts a form and
        does not keep to it is asked for the next.
        """
        text = completion.text
        is_whole = completion.finish_reason in _WHOLE and not completion.refusal
        if request.schema is None or text is None or not text.strip() or not is_whole:
            return
        if self._has_form(text, request.schema):
            self._is_proven = True
        else:
            self.loosen(request)

    def _has_form(self, text: str, schema: str) -> bool:
        if self.format == "text":
            return True
        return is_object(text) if self.format == "json_object" else conforms(text, schema)
