"""Schedules as edits of the parent's directives by their numbers, the answer marked ``steps``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from random import Random

from kernelwright.agents.programmer import schedule, schedulefaults
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.reading import Sheet

_STEP = re.compile(r"(insert|replace|delete) (\d+)(?:: (.*))?")


def propose(sheet: Sheet, rng: Random, skill: float) -> str:
    """The edits that lead from the parent to what is proposed, one a line."""
    said = [line for line in sheet.said.splitlines() if _STEP.fullmatch(line)]
    if said:
        # What is to be mended is the schedule that the last answer led to.
        whole = "\n".join(applied(schedule.directives(sheet.parent), said))
        sheet = replace(sheet, said=f"```python\n{whole}\n```\n")
    text = schedule.propose(sheet, rng, skill)
    if schedule.directives(text) == schedule.directives(sheet.parent):
        text = schedule.random_step(sheet, rng)
    return between(sheet.parent, text)


def between(before: str, after: str) -> str:
    """The edits that lead from one schedule to another."""
    old, new = schedule.directives(before), schedule.directives(after)
    out = []
    for kind, low, high, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        if kind == "equal":
            continue
        both = min(high - low, last - first)
        out += [f"replace {low + i + 1}: {new[first + i]}" for i in range(both)]
        out += [f"delete {place + 1}" for place in range(low + both, high)]
        out += [f"insert {high + 1}: {line}" for line in new[first + both : last]]
    return "".join(f"{line}\n" for line in out)


def applied(directives: Sequence[str], steps: Sequence[str]) -> list[str]:
    """Directives after some edits by their numbers; what has no place is left away."""
    out = [[line] for line in (*directives, "")]
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
    lines = [line for pair in zip(before, out, strict=True) for part in pair for line in part]
    return [line for line in lines if line]


def _rendered(fault: Fault) -> Fault:
    """The same fault of a schedule, as edits; None where the parent itself is what is wrong."""

    def made(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
        own = schedule.line_of(sheet.parent)
        others = tuple(result for result in sheet.results if result.text != own)
        whole = "".join(
            f"{line}\n" for line in applied(schedule.directives(sheet.parent), text.splitlines())
        )
        found = fault(replace(sheet, results=others), whole, rng)
        if found is None:
            return None
        edits = between(sheet.parent, found[0])
        return (edits, found[1]) if edits else None

    return made


FAULTS: dict[str, Fault] = {
    "wrong_code": _rendered(schedulefaults.unknown_loop),
    "illegal": _rendered(schedulefaults.illegal),
    "duplicate": _rendered(schedulefaults.duplicate),
    "cheating": _rendered(schedulefaults.cheat),
    "unparsable": lambda sheet, text, rng: ("insert split('i', 8)\n", "unparsable"),
    "syntax": lambda sheet, text, rng: (f"{text}insert 1: unroll('i'\n", "syntax:bracket"),
    "wrong_schema": lambda sheet, text, rng: ("delete 99\n", "wrong_schema"),
}
