"""A schedule step by step: after each directive the loop nest, the regions of its tensors, and what
it trades, as data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernelwright.env.compiler.ir.accesses import Access, accesses
from kernelwright.env.compiler.ir.nodes import Allocate, For, Procedure, Stmt, loops
from kernelwright.env.compiler.ir.path import below
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.queries import tensors_by_name
from kernelwright.env.compiler.machine.nest import EstimateError
from kernelwright.env.compiler.machine.tradeoff import Tradeoff, measure
from kernelwright.env.compiler.poly.region import Region, region
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.trace import print_trace
from kernelwright.env.problems.program import definition_of
from kernelwright.env.types import Directive, Problem

Row = dict[str, Any]
# What one iteration of a loop touches of a tensor: its regions, and the accesses they were made of.
_Touched = tuple[tuple[Access, ...], Row]


def step_rows(problem: Problem, trace: Sequence[Directive]) -> list[Row]:
    """The loop nest before a schedule and after each of its directives, for the problem's first
    workload.

    Rows of

    - ``directive``: the directive as text, None at the start,
    - ``nest``: the loops as text,
    - ``regions``: what is read and written of each tensor, by the whole program, or where
      ``within`` names a loop by one iteration of that: the loop that a temporary lives in, or the
      outermost loop that is new in this step,
    - ``counts``: what `machine.tradeoff.measure` counts; None where it cannot, and then
      ``uncounted`` says why.

    Raises:
        CompilerError: if a directive is refused, or the problem has no definition.
    """
    workload = problem.workloads[0]
    start = definition_of(problem, workload)
    schedules = Schedules(start)
    known: dict[str, _Touched] = {}
    names = {loop.var for loop in loops(start)}
    rows = []
    for done in range(len(trace) + 1):
        after = schedules.after(trace[:done])
        known = dict(_regions(after, known))
        new = next((loop for loop in loops(after) if loop.var not in names), None)
        names = {loop.var for loop in loops(after)}
        counts, reason = _counts(after, start, workload.fixed)
        rows.append(
            {
                "directive": print_trace(trace[done - 1 : done]).strip() if done else None,
                "nest": print_procedure(after),
                "regions": [row for _, row in known.values()] + _inside(after, new),
                "counts": counts,
                "uncounted": reason,
            }
        )
    return rows


def _regions(
    procedure: Procedure, before: Mapping[str, _Touched]
) -> Iterator[tuple[str, _Touched]]:
    """The regions of all tensors; of one that is accessed as before, those that were found then."""
    homes = dict(_homes(procedure.body, None))
    around = {loop.var: loop.body for loop in loops(procedure)}
    for name in tensors_by_name(procedure):
        home = homes.get(name)
        body = procedure.body if home is None else around[home]
        found = tuple(each for each in accesses(body) if each.tensor == name)
        old = before.get(name)
        if old is not None and old[0] == found and old[1]["within"] == home:
            yield name, old
            continue
        yield name, (found, _touched(procedure, name, home))


def _inside(procedure: Procedure, loop: For | None) -> list[Row]:
    """What one iteration of a loop touches of the tensors that live outside it."""
    if loop is None:
        return []
    own = {name for name, _ in _homes(loop.body, None)}
    touched = dict.fromkeys(each.tensor for each in accesses(loop.body))
    return [_touched(procedure, name, loop.var) for name in touched if name not in own]


def _touched(procedure: Procedure, tensor: str, loop: str | None) -> Row:
    read = region(procedure, loop, tensor, writes=False)
    written = region(procedure, loop, tensor, reads=False)
    return {"tensor": tensor, "within": loop, "reads": _box(read), "writes": _box(written)}


def _homes(node: Stmt, around: str | None) -> Iterator[tuple[str, str | None]]:
    """Every temporary with the innermost loop that it lives in."""
    if isinstance(node, Allocate):
        yield node.tensor.name, around
    inside = node.var if isinstance(node, For) else around
    for child in below(node):
        yield from _homes(child, inside)


def _box(found: Region | None) -> str | None:
    return None if found is None else str(found).removeprefix(found.tensor)


def _counts(
    procedure: Procedure, start: Procedure, extents: Mapping[str, int]
) -> tuple[Row | None, str | None]:
    try:
        return _plain(measure(procedure, start, extents)), None
    except EstimateError as error:
        return None, str(error)


def _plain(found: Tradeoff) -> Row:
    stages = [
        {
            "tensor": stage.tensor,
            "computed": stage.computed,
            "distinct": stage.distinct,
            "recompute": stage.recompute,
        }
        for stage in found.stages
    ]
    return {
        "operations": dict(found.operations),
        "total_operations": found.total_operations,
        "points": found.points,
        "operations_per_point": found.operations_per_point,
        "stages": stages,
        "peak_bytes": found.peak_bytes,
        "peak_bytes_by_scope": dict(found.peak_scopes),
        "footprint_bytes": found.footprint_bytes,
        "parallelism": found.parallelism,
        "is_exact": found.is_exact,
    }
