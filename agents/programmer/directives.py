"""Schedules as lines of text, and the edits by numbers that lead from one to another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

_STEP = re.compile(r"(insert|replace|delete) (\d+)(?:: (.*))?")
# How a directive is numbered where edits need it.
_NUMBER = re.compile(r"\s+# \d+$")


def directives(text: str) -> list[str]:
    """The directives of a block, one a line, without their numbers."""
    lines = (_NUMBER.sub("", line) for line in text.splitlines())
    return [line for line in lines if line.strip() and not line.startswith("#")]


def listed(text: str) -> str:
    """A schedule as prompts list it."""
    return "; ".join(directives(text)) or "pass"


def has_steps(text: str) -> bool:
    """Whether a block's text is edits."""
    return any(_STEP.fullmatch(line) for line in text.splitlines())


def between(before: str, after: str) -> str:
    """The edits that lead from one schedule to another."""
    old, new = directives(before), directives(after)
    out = []
    for kind, low, high, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        if kind == "equal":
            continue
        both = min(high - low, last - first)
        out += [f"replace {low + i + 1}: {new[first + i]}" for i in range(both)]
        out += [f"delete {place + 1}" for place in range(low + both, high)]
        out += [f"insert {high + 1}: {line}" for line in new[first + both : last]]
    return "".join(f"{line}\n" for line in out)


def applied(lines: Sequence[str], steps: Sequence[str]) -> list[str]:
    """Directives after some edits by their numbers; what has no place is left away."""
    out = [[line] for line in (*lines, "")]
    before: list[list[str]] = [[] for _ in out]
    for step in steps:
        found = _STEP.fullmatch(step)
        place = int(found[2]) - 1 if found else -1
        if found is None or not 0 <= place < len(out):
            continue
        if found[1] == "insert":
            before[place].append(found[3] or "")
        else:
            out[place] = [found[3] or ""]
    edited = (line for pair in zip(before, out, strict=True) for part in pair for line in part)
    return [line for line in edited if line]
