"""Schedules as edits of the parent's directives by their numbers, the answer marked ``steps``."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from kernelwright.agents.programmer import schedule, schedulefaults
from kernelwright.agents.programmer.directives import applied, between, directives, listed
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.reading import Sheet


def propose(sheet: Sheet, rng: Random, skill: float) -> str:
    """The edits that lead from the parent to what is proposed, one a line."""
    text = schedule.propose(sheet, rng, skill)
    if directives(text) == directives(sheet.parent):
        text = schedule.random_step(sheet, rng)
    return between(sheet.parent, text)


def _rendered(fault: Fault) -> Fault:
    """The same fault of a schedule, as edits; None where the parent itself is what is wrong."""

    def made(sheet: Sheet, text: str, rng: Random) -> tuple[str, str] | None:
        own = listed(sheet.parent)
        others = tuple(result for result in sheet.results if result.text != own)
        whole = "".join(
            f"{line}\n" for line in applied(directives(sheet.parent), text.splitlines())
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
