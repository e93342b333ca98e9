"""A request as the arguments of a Chat Completions call, with less and less in it as a server says
what it does not know.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kernelwright.agents.chat import ChatRequest

# From the strictest to none; a server that refuses one is asked for the next.
FORMATS = ("json_schema", "json_object", "text")
# What may be left away when a server refuses it by name. The names in its message are its own.
_SCHEMA_WORDS = re.compile(r"response_format|json_schema|json schema|grammar", re.IGNORECASE)
_OPTIONAL = ("temperature", "seed")


class Wire:
    """How this server wants to be asked. It learns from refusals and never forgets."""

    def __init__(self) -> None:
        self._format = 0
        self._limit = "max_tokens"
        self._dropped: set[str] = set()

    def arguments(self, request: ChatRequest) -> dict[str, Any]:
        """The call's keyword arguments."""
        out: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
            self._limit: request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
        }
        if request.schema is not None and FORMATS[self._format] != "text":
            out["response_format"] = self._response_format(request.schema)
        return {name: value for name, value in out.items() if name not in self._dropped}

    def _response_format(self, schema: str) -> dict[str, Any]:
        if FORMATS[self._format] == "json_object":
            return {"type": "json_object"}
        content = {"name": "answer", "strict": True, "schema": json.loads(schema)}
        return {"type": "json_schema", "json_schema": content}

    def step_down(self, refusal: str, request: ChatRequest) -> bool:
        """Ask for less, if the refusal names something that can be spared; whether it did."""
        if _SCHEMA_WORDS.search(refusal):
            return self.drop_schema(request)
        if "max_tokens" in refusal and self._limit == "max_tokens":
            self._limit = "max_completion_tokens"
            return True
        for name in _OPTIONAL:
            if name in refusal and name not in self._dropped:
                self._dropped.add(name)
                return True
        return False

    def drop_schema(self, request: ChatRequest) -> bool:
        """Ask for a looser format of the reply; whether there was one."""
        if request.schema is None or self._format == len(FORMATS) - 1:
            return False
        self._format += 1
        return True
