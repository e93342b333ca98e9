"""Answers that are no program: plans, reviews and actions, each a fenced block with a mark of its
own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.agents.chat import Malformed
from kernelwright.agents.context.safe import clean
from kernelwright.agents.dialects.json_text import read_json
from kernelwright.agents.talk import Mark

MOST_MOVES = 8
MOST_MOVE = 300
MOST_REASON = 600
_MOVE = re.compile(r"(?:\d+[.)]|[-*])\s+(.+)")
_REVIEW = re.compile(r"(ok|reject)\b\s*[:,;.–-]?\s*(.*)", re.IGNORECASE | re.DOTALL)
_REJECTED = re.compile(r"^\W*reject\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Plan:
    """Moves to try, in order."""

    moves: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(f"{number}. {move}" for number, move in enumerate(self.moves, start=1))


@dataclass(frozen=True, slots=True)
class Review:
    """What a reviewer says: ``reason`` is why it rejects, None if it does not."""

    reason: str | None


@dataclass(frozen=True, slots=True)
class Action:
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, Any]


def read_plan(text: str) -> Plan | Malformed:
    """The numbered moves; what stands between them is left away."""
    lines = (line.strip() for line in clean(text).splitlines())
    moves = [found[1] for line in lines if (found := _MOVE.fullmatch(line))]
    if not moves:
        return Malformed("wrong_schema", "expected a numbered list of moves, found none")
    return Plan(tuple(move[:MOST_MOVE] for move in moves[:MOST_MOVES]))


def read_review(text: str) -> Review | Malformed:
    """``ok``, or ``reject: REASON``; one that says both says nothing."""
    text = clean(text).strip()
    found = _REVIEW.fullmatch(text)
    is_ok = found is not None and found[1].lower() == "ok"
    if found is None or (is_ok and _REJECTED.search(found[2])):
        said = text.replace("\n", " ")
        return Malformed("wrong_schema", f"expected ok or reject: REASON, found {said!r:.80}")
    if is_ok:
        return Review(None)
    return Review(" ".join(found[2].split())[:MOST_REASON] or "no reason given")


def read_action(text: str) -> Action | Malformed:
    """A JSON object with a tool's name, and its arguments if it has any."""
    found = read_json(text)
    if isinstance(found, Malformed):
        return found
    if not isinstance(found, dict):
        return Malformed("wrong_schema", f"expected a JSON object, found {type(found).__name__}")
    tool, arguments = found.get("tool"), found.get("arguments", {})
    strange = sorted(set(found) - {"tool", "arguments"})
    if not isinstance(tool, str) or not isinstance(arguments, dict) or strange:
        wanted = 'expected {"tool": NAME, "arguments": {…}}'
        return Malformed("wrong_schema", f"{wanted}, found {json.dumps(found):.80}")
    return Action(tool, arguments)


PLAN = Mark("plan", read_plan)
REVIEW = Mark("review", read_review)
ACTION = Mark("action", read_action)
