"""Why a trace may not be applied: which line, which directive, the reason with its counterexample,
and the nearest directive that would have been accepted there.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from kernelwright.env.compiler.errors import CompilerError, ScheduleError
from kernelwright.env.compiler.ir.nodes import Procedure, loops
from kernelwright.env.compiler.ir.queries import temporaries
from kernelwright.env.compiler.schedule import known_directives
from kernelwright.env.compiler.schedule.decision import nearest_entry
from kernelwright.env.compiler.schedule.edit import constant_extent
from kernelwright.env.compiler.schedule.kind import LANES
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.moves import FACTORS
from kernelwright.env.compiler.schedule.trace import Trace, print_trace
from kernelwright.env.types import Directive, Scalar

MOST_TRIED = 24
NUMBERS, NAMES = 6, 4  # other values tried for one argument
MORE = (8, 4, 2)  # numbers tried for an argument that is missing


@dataclass(frozen=True, slots=True)
class Refusal:
    """The first line of a trace that may not be applied; lines count from 1, decisions too.

    ``reason`` is the directive's own, with the two iterations where a dependence is in the way;
    ``nearest`` is what would be accepted in its place, None if nothing near was.
    """

    line: int
    directive: Directive
    reason: str
    nearest: Directive | None

    def __str__(self) -> str:
        shown = _shown(self.directive)
        near = "" if self.nearest is None else f"; accepted here: {_shown(self.nearest)}"
        return f"line {self.line}, {shown}: {self.reason}{near}"


def explain(schedules: Schedules, trace: Trace) -> Refusal | None:
    """Why a trace may not be applied, None if it may.

    What is near is tried, at most `MOST_TRIED` directives: another number or name for one argument,
    two loops of an order exchanged, an argument less or more, a directive of almost the same name.
    Of those that are accepted the one whose text differs least is told.
    """
    for line, directive in enumerate(trace, start=1):
        try:
            schedules.after(trace[:line])
        except CompilerError as error:
            near = _nearest(schedules, trace[: line - 1], directive)
            return Refusal(line, directive, _reason(error), near)
    return None


def _reason(error: CompilerError) -> str:
    """What is wrong, without the name of the directive, which stands before it."""
    if isinstance(error, ScheduleError):
        return error.reason + (f" ({error.conflict})" if error.conflict else "")
    return str(error)


def _nearest(schedules: Schedules, before: Trace, refused: Directive) -> Directive | None:
    if refused.is_decision:
        return nearest_entry(refused)
    others = dict.fromkeys(_alternatives(schedules.after(before), refused))
    # Of equally different ones the first stays first.
    ordered = sorted(others, key=lambda other: _likeness(refused, other), reverse=True)
    for other in islice((o for o in ordered if o != refused), MOST_TRIED):
        try:
            schedules.after((*before, other))
        except CompilerError:
            continue
        return other
    return None


def _alternatives(procedure: Procedure, refused: Directive) -> Iterator[Directive]:
    """Directives that differ in one thing from a refused one."""
    op, given = refused.op, (refused.target, *refused.args)
    known = known_directives()
    if op not in known:
        for near in difflib.get_close_matches(op, known, NAMES):
            yield Directive(near, refused.target, refused.args)
        return
    extents = {loop.var: constant_extent(loop) for loop in loops(procedure)}
    tensors = [tensor.name for tensor in temporaries(procedure.body)]
    tensors += [tensor.name for tensor in procedure.tensors]
    sizes = [e for e in extents.values() if e is not None]
    for place, value in enumerate(given):
        values: Sequence[Scalar] = ()
        if isinstance(value, bool):
            values = (not value,)
        elif isinstance(value, int):
            values = _near_numbers(value, sizes)
        elif isinstance(value, str):
            names = tensors if value in tensors else list(extents)
            values = difflib.get_close_matches(value, names, NAMES, cutoff=0.0)
        for other in values:
            yield _with(op, (*given[:place], other, *given[place + 1 :]))
    for place in range(len(given) - 1):
        left, right = given[place : place + 2]
        if isinstance(left, str) and isinstance(right, str):
            yield _with(op, (*given[:place], right, left, *given[place + 2 :]))
    for place in range(1, len(given)):
        yield _with(op, (*given[:place], *given[place + 1 :]))
    more: list[Scalar] = [*MORE, *list(extents)[-NAMES:]]
    for last in more:
        yield _with(op, (*given, last))


def _with(op: str, given: Sequence[Scalar]) -> Directive:
    return Directive(op, str(given[0]), tuple(given[1:]))


def _near_numbers(value: int, sizes: Sequence[int]) -> list[Scalar]:
    """Numbers that factors often are, nearest first in ratio; of equally near ones the smaller."""
    divide = [d for size in sizes for d in range(1, min(size, 65)) if size % d == 0]
    known = {*FACTORS, *LANES, *sizes, *divide, 0, 1} - {value}

    def far(number: int) -> tuple[float, int]:
        return abs(math.log((1 + number) / (1 + max(value, 0)))), number

    return list(sorted(known, key=far)[:NUMBERS])


def _likeness(refused: Directive, other: Directive) -> float:
    """How alike two directives are as text, from 0 to 1."""
    return SequenceMatcher(None, _shown(refused), _shown(other), autojunk=False).ratio()


def _shown(directive: Directive) -> str:
    return print_trace((directive,)).strip()
