"""A row of the compiler's table: what refusals of all directives say, looked at by running the
program.

A refusal may name two iterations (which must then depend on each other, in this order), one that
reads what no earlier one wrote, or one that accesses a place beyond a bound. It may also name a
value that breaks a promise, or give a reason alone: such are counted and not looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from brute import Element, Instance, instances, pairs, small_arrays
from compiler_orders import OPS, WANTED, points_of, random_program, some, tiny_problem
from compiler_random import BEGINNINGS
from table import Row

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Const, Procedure, Tensor
from kernelwright.env.compiler.ir.queries import temporaries
from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.env.compiler.schedule.proposals import proposals
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace, print_trace

# Refusals of each directive that are looked at, so that no common one crowds out the others.
MOST = 150
_READ = re.compile(r"(\w+)\[(.*)\] is read in iteration")
_BEYOND = re.compile(r"(\w+)\[.*\] has index (-?\d+) in iteration")
_OUTSIDE = re.compile(r"(\w+)\[(.*)\] would be outside \1 in iteration")
_AXIS = re.compile(r"of axis (\d+)")
_FOLD = re.compile(r"(fewer than the )?(\d+) places of (\w+) on axis (\d+)")
_NAMES = {
    "__builtins__": {},
    "min": min,
    "max": max,
    "select": lambda condition, then, other: then if condition else other,
}


@dataclass(slots=True)
class Seen:
    """Refusals by directive: looked at, confirmed, and those without iterations."""

    looked_at: Counter[str] = field(default_factory=Counter)
    without: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def evidence() -> Iterator[Row]:
    """Random refusals of the directives whose order the other rows do not define."""
    seen, rng = Seen(), np.random.default_rng(1)
    others = [op for op in DIRECTIVES if op not in OPS]
    while seen.looked_at.total() < WANTED:
        procedure = random_program(rng) if rng.random() < 0.4 else begun(tiny_problem(rng), rng)
        found = instances(procedure, small_arrays(procedure, rng))
        for op in others:
            offered = list(proposals(procedure, op))
            if not offered or seen.looked_at[op] >= MOST:
                continue
            step = offered[rng.integers(len(offered))]
            try:
                apply(procedure, step)
            except ScheduleError as error:
                told = is_told(error, found, procedure)
                if told is None:
                    seen.without[op] += 1
                    continue
                seen.looked_at[op] += 1
                if not told:
                    shown = print_trace((step,)).strip()
                    seen.wrong.append(f"{shown} on {procedure.name}: {error}")
    count = seen.looked_at.total()
    shown = ", ".join(f"{op} {number}" for op, number in sorted(seen.looked_at.items()) if number)
    yield (
        f"refusals of other directives (>= {WANTED}) that name iterations: what they say is true",
        "100%",
        f"{count - len(seen.wrong)} of {count} ({shown}; {seen.without.total()} give no iteration)"
        + some(seen.wrong),
        not seen.wrong,
    )


def begun(procedure: Procedure, rng: np.random.Generator) -> Procedure:
    """A problem, at times after what later directives need."""
    known = BEGINNINGS.get(procedure.name, ())
    if not known or rng.random() < 0.4:
        return procedure
    try:
        return apply_trace(procedure, parse_trace(known[rng.integers(len(known))]))
    except ScheduleError:
        return procedure  # not at this size


def is_told(error: ScheduleError, found: list[Instance], procedure: Procedure) -> bool | None:
    """Whether what a refusal says of iterations is so; None if it says nothing of any."""
    points, text = points_of(error), str(error.conflict)
    if error.conflict is None or not points or "may be read" in text:
        return None
    if error.op == "fold_storage":
        return _collide(error, points, found)
    if len(points) == 2 and points[0] == points[1]:
        # One iteration that runs a second time finds what it left itself: a store of it writes what
        # the same one or an earlier one reads.
        same = [each for each in found if each.loops == points[0]]
        return any(a.reads & b.writes for n, a in enumerate(same) for b in same[n:])
    if len(points) == 2:
        return any([first.loops, second.loops] == points for first, second in pairs(found))
    (point,) = points
    if (outside := _OUTSIDE.search(text)) is not None:
        place = eval(f"({outside[2]},)", _NAMES, dict(point))  # a printed index
        shape = next(t.shape for t in _tensors(procedure) if t.name == outside[1])
        sizes = [int(size.value) for size in shape if isinstance(size, Const)]
        return any(not 0 <= at < size for at, size in zip(place, sizes, strict=True))
    if (read := _READ.search(text)) is not None:
        place = eval(f"({read[2]},)", _NAMES, dict(point))  # a printed index
        return not _is_written_before((read[1], place), point, found, procedure)
    if (beyond := _BEYOND.search(text)) is not None:
        axis = int(_AXIS.findall(str(error))[0])
        return any(
            element[0].partition("#")[0] == beyond[1] and element[1][axis] == int(beyond[2])
            for each in found
            if each.loops == point
            for element in each.reads | each.writes
        )
    return False


def _tensors(procedure: Procedure) -> list[Tensor]:
    return [*procedure.tensors, *temporaries(procedure.body)]


def _collide(
    error: ScheduleError, points: list[tuple[tuple[str, int], ...]], found: list[Instance]
) -> bool:
    """Whether the first iteration reads an element whose place in the circular buffer the second
    one has given to another by then.
    """
    told = _FOLD.search(error.reason)
    if told is None or len(points) != 2:
        return False
    factor, axis = int(told[2]) - bool(told[1]), int(told[4])
    for reader in (n for n, each in enumerate(found) if each.loops == points[0]):
        for writer in (n for n, each in enumerate(found) if each.loops == points[1]):
            for name, a in found[reader].reads:
                for other, b in found[writer].writes:
                    apart = a[axis] - b[axis]
                    rest = a[:axis] + a[axis + 1 :] == b[:axis] + b[axis + 1 :]
                    meant = name == other and name.partition("#")[0] == told[3]
                    if meant and rest and apart and apart % factor == 0 and writer < reader:
                        return True
    return False


def _is_written_before(
    element: Element,
    point: tuple[tuple[str, int], ...],
    found: list[Instance],
    procedure: Procedure,
) -> bool:
    """Whether an element has a value when an iteration of the loops begins that the program had
    before (a refusal also names loops that a copy would have).
    """
    if any(t.name == element[0] and t.role == "input" for t in procedure.tensors):
        return True
    here = {name for each in found for name, _ in each.loops}
    wanted = {(name, value) for name, value in point if name in here}
    inside = [n for n, each in enumerate(found) if wanted <= set(each.loops)]
    # A copy in front of all loops comes before everything.
    end = inside[0] if wanted and inside else 0
    return any(
        (written[0].partition("#")[0], written[1]) == element
        for each in found[:end]
        for written in each.writes
    )


GROUPS = {"evidence": evidence}
