"""Edits of a schedule: directives put in, replaced or taken out, by the numbers that they have in
the parent.

    insert 3: split('i', 8)
    replace 4: vectorize('ji')
    delete 5

What is inserted comes before the directive of that number, or at the end where the number is one
more than there are. All numbers are those of the parent, so the order of edits means nothing but
among insertions at one place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernelwright.env.compiler.schedule.trace import Trace, TraceError, parse_trace, print_trace
from kernelwright.env.types import Directive

MOST_STEPS = 64
_STEP = re.compile(r"(insert|replace|delete)[ \t]+(\d{1,4})[ \t]*(?::[ \t]*(.*))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Step:
    """One edit; ``directive`` is None where one is taken out."""

    op: Literal["insert", "replace", "delete"]
    place: int
    directive: Directive | None


@dataclass(frozen=True, slots=True)
class Misstep:
    """Why edits are not applied: a class, and a sentence that they can be mended by."""

    kind: Literal["malformed", "no_place", "twice", "idle"]
    reason: str


def read_steps(text: str) -> tuple[Step, ...] | Misstep:
    """The edits of a text, one a line."""
    out: list[Step] = []
    for number, line in enumerate(text.split("\n"), start=1):
        said = line.strip()
        if not said or said.startswith("#"):
            continue
        found = _STEP.fullmatch(said)
        step = None if found is None else _step(found)
        if step is None:
            wanted = "expected insert N: DIRECTIVE, replace N: DIRECTIVE or delete N"
            return Misstep("malformed", f"line {number}: {wanted}, found {said:.80}")
        if isinstance(step, TraceError):
            return Misstep("malformed", f"line {number}: {str(step).removeprefix('line 1: ')}")
        out.append(step)
    if not 0 < len(out) <= MOST_STEPS:
        return Misstep("malformed", f"expected 1 to {MOST_STEPS} edits, found {len(out)}")
    return tuple(out)


def _step(found: re.Match[str]) -> Step | TraceError | None:
    """One line's edit; None where it does not say what it takes."""
    op, place = found[1].lower(), int(found[2])
    text = (found[3] or "").partition("#")[0].strip()
    if op == "delete":
        return Step("delete", place, None)
    if not text:
        return None
    try:
        trace = parse_trace(text)
    except TraceError as error:
        return error
    if len(trace) != 1:
        return None
    return Step("insert" if op == "insert" else "replace", place, trace[0])


def apply_steps(trace: Trace, steps: Sequence[Step]) -> Trace | Misstep:
    """A schedule after some edits, or why one of them is not applied; then none is.

    That the schedule may be applied is for its space to say.
    """
    before: dict[int, list[Directive]] = {}
    changed: dict[int, Directive | None] = {}
    for step in steps:
        last = len(trace) + (step.op == "insert")
        if not 1 <= step.place <= last:
            there = f"directives 1 to {last}" if last else "no directive, because there is none"
            return Misstep("no_place", f"{step.op} {step.place}: expected one of {there}")
        if step.op == "insert":
            assert step.directive is not None
            before.setdefault(step.place, []).append(step.directive)
        elif step.place in changed:
            return Misstep("twice", f"{step.op} {step.place}: expected one edit of each directive")
        else:
            changed[step.place] = step.directive
    out: list[Directive] = []
    for place, directive in enumerate((*trace, None), start=1):
        out += before.get(place, [])
        kept = changed.get(place, directive)
        out += [] if kept is None else [kept]
    if print_trace(out) == print_trace(trace):
        return Misstep("idle", "expected a change, found the parent's own directives")
    return tuple(out)
