"""Whether another order of execution keeps the dependences of a procedure: what directives that
move iterations share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Barrier,
    Expr,
    For,
    LoopKind,
    Procedure,
    Stmt,
    Var,
    loops,
    statements,
    walk,
)
from kernelwright.env.compiler.poly.dependence import Conflict
from kernelwright.env.compiler.poly.model import Instance, Position
from kernelwright.env.compiler.schedule.edit import dependences_of, parts

# The loops whose iterations a directive may write in another form; those bound to thread levels
# belong to a grid.
PLAIN = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED, LoopKind.VECTORIZED)


def part_with(procedure: Procedure, *names: str) -> Procedure:
    """The outermost statement that has all of some loops; the whole procedure where none has."""
    for part in parts(procedure):
        if {loop.var for loop in loops(part)}.issuperset(names):
            return part
    return procedure


def keep_order(
    op: str, part: Procedure, moved: Callable[[Instance], Position | None], reason: str
) -> None:
    """Check that no dependence is turned around where ``moved`` gives instances another time (None
    leaves it).

    Raises:
        ScheduleError: if one is, for the given reason, with the two iterations.
    """
    instances = dependences_of(part).model.instances
    times = [(i.name, time) for i in instances if (time := moved(i)) is not None]
    conflict = _turned_around(part, tuple(times))
    if conflict is not None:
        raise ScheduleError(op, reason, str(conflict))


@lru_cache(maxsize=1024)
def _turned_around(part: Procedure, times: tuple[tuple[str, Position], ...]) -> Conflict | None:
    return dependences_of(part).turned_around(dict(times))


def of_kind(op: str, loop: For, *kinds: LoopKind) -> None:
    """Check how the iterations of a loop are executed.

    Raises:
        ScheduleError: if it is none of these ways.
    """
    if loop.kind not in kinds:
        listed = " or ".join(kinds)
        raise ScheduleError(op, f"expected a {listed} loop, found {loop.var} {loop.kind}")


def no_barrier(op: str, loop: For) -> None:
    """Check that no threads wait for one another in a loop.

    Raises:
        ScheduleError: if they do.
    """
    if any(isinstance(node, Barrier) for node in statements(loop.body)):
        raise ScheduleError(op, f"threads wait for one another in loop {loop.var}")


def only_extents(op: str, procedure: Procedure, what: str, node: Expr) -> None:
    """Check that an expression is known where the procedure is called.

    Raises:
        ScheduleError: if it depends on a loop.
    """
    for part in walk(node):
        if isinstance(part, Var) and part.name not in procedure.extents:
            raise ScheduleError(op, f"{what} depends on loop {part.name}")


def contains(node: Stmt, loop: str) -> bool:
    """Whether a loop is in a statement."""
    return any(each.var == loop for each in loops_of(node))


def loops_of(node: Stmt) -> tuple[For, ...]:
    """Every loop in a statement, in program order."""
    return loops(Procedure("", (), (), node))
