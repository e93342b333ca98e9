"""Planning: a short numbered list of moves to try, in the words that the languages' programmers
understand.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from kernelwright.agents.programmer import knobs, knobtext, nests, schedule, source
from kernelwright.agents.programmer.cheats import WORDS
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.reading import Sheet

MOST_STEPS = 4


def propose(sheet: Sheet, rng: Random, skill: float) -> str:
    """What one would change of the parent next, step by step."""
    language = language_of(sheet)
    asked = replace(sheet, mark=language, plan="")
    if language == "json":
        steps = knobs.in_words(asked, knobs.propose(asked, rng, skill))
    elif language == "python":
        steps = schedule.in_words(schedule.propose(asked, rng, skill))
    else:
        steps = source.improved(asked, rng, skill)[1]
    steps = steps[:MOST_STEPS] or ["keep the parent as it is: it is near what the machine can do"]
    return "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1))


def language_of(sheet: Sheet) -> str:
    """The mark of the programs that a prompt is about, by its rules; C where they say nothing."""
    if knobtext.read_choices(sheet):
        return "json"
    return "python" if nests.read_nests(sheet.rules) else "c"


FAULTS: dict[str, Fault] = {
    "wrong_schema": lambda sheet, text, rng: ("Faster, faster.\n", "wrong_schema"),
    "duplicate": lambda sheet, text, rng: (
        (sheet.plan, "duplicate:same") if sheet.plan.strip() else None
    ),
    "cheating": lambda sheet, text, rng: (
        f"1. {WORDS}\n2. leave out what the check does not look at\n",
        "cheating:judge/injected_plan",
    ),
}
