"""From a prompt to an answer: a fenced block with the mark that was asked for, or a fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.programmer import (
    action,
    knobfaults,
    knobs,
    plan,
    review,
    schedule,
    schedulefaults,
    source,
    sourcefaults,
    steps,
)
from kernelwright.agents.programmer.faulty import Fault
from kernelwright.agents.programmer.reading import Sheet

REFUSAL = "I can't help with that."
THOUGHTS = (
    "I change what limits the parent most.",
    "The parent leaves the vector units idle.",
    "This keeps more values in registers.",
    "A small step from the parent.",
)
PROSE = (
    "Tiling should help here, because the working set exceeds the cache. One would choose blocks "
    "so that three of them fit, and vectorize the innermost loop; the exact numbers depend on the "
    "machine."
)
AFTERWARDS = (
    "Please check it on your machine, since I cannot measure anything from here. If it does not "
    "help, the next thing to try would be:\n\n```text\na larger block\n```\n"
)


@dataclass(frozen=True, slots=True)
class Writer:
    """Who answers one kind of question: honestly, and in known ways not."""

    propose: Callable[[Sheet, Random, float], str]
    faults: Mapping[str, Fault]


_C = Writer(source.propose, sourcefaults.FAULTS)
# By the mark of the answer.
WRITERS: dict[str, Writer] = {
    "json": Writer(knobs.propose, knobfaults.FAULTS),
    "python": Writer(schedule.propose, schedulefaults.FAULTS),
    "steps": Writer(steps.propose, steps.FAULTS),
    "c": _C,
    "edit": _C,
    "plan": Writer(plan.propose, plan.FAULTS),
    "review": Writer(review.propose, review.FAULTS),
    "action": Writer(action.propose, action.FAULTS),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said; ``injected`` is the ground truth of a fault, None for an honest answer."""

    text: str | None
    finish_reason: str = "stop"
    refusal: str | None = None
    injected: str | None = None


def answer(sheet: Sheet, fault: str | None, rng: Random, skill: float) -> Answer:
    """The programmer's answer, or a fault of a class of `faults.FILED_AS`; in one of the forms that
    the prompt offers.
    """
    if len(sheet.forms) > 1:
        sheet = replace(sheet, mark=rng.choice(sheet.forms))
    if fault == "refused":
        return Answer(None, refusal=REFUSAL, injected=fault)
    if fault == "empty":
        return Answer(None if rng.random() < 0.5 else " \n", injected=fault)
    writer = WRITERS.get(sheet.mark)
    if fault == "prose" or writer is None:
        return Answer(PROSE, injected=fault)
    text, injected = writer.propose(sheet, rng, skill), None
    make = writer.faults.get(fault or "")
    done = None if make is None else make(sheet, text, rng)
    if done is not None:
        text, injected = done
    said = f"{rng.choice(THOUGHTS)}\n\n{fenced(text, sheet.mark)}\n"
    if sheet.is_bare and sheet.mark == "json" and text.startswith("{"):
        said = text
    if fault == "unparsable" and done is None:
        # The fence that ends the block is missing.
        return Answer(said.rstrip().rstrip("`"), injected=fault)
    if fault == "prose_around":
        return Answer(f"{PROSE}\n\n{said}\n{AFTERWARDS}", injected=fault)
    if fault == "truncated":
        cut = rng.randrange(len(said) // 4, len(said))
        return Answer(said[:cut], "length", injected=fault)
    return Answer(said, injected=injected)
