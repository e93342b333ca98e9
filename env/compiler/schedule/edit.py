"""Finding and replacing loops, and the checks that directives share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from kernelwright.env.compiler.errors import ScheduleError, did_you_mean
from kernelwright.env.compiler.ir.names import is_free, is_identifier
from kernelwright.env.compiler.ir.nodes import (
    BLOCK_KINDS,
    Allocate,
    Block,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    loops,
    map_statements,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.queries import tensors_by_name
from kernelwright.env.compiler.ir.simplify import simplify, simplify_procedure
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.poly.dependence import Conflict, Dependences
from kernelwright.env.compiler.poly.ragged import with_rows
from kernelwright.env.compiler.schedule.calls import check_calls
from kernelwright.env.compiler.schedule.threads import check_threads
from kernelwright.env.compiler.schedule.whole import check_whiles

_UNORDERED = (LoopKind.PARALLEL, LoopKind.VECTORIZED, *BLOCK_KINDS)


def find_loop(op: str, procedure: Procedure, name: str) -> For:
    """The loop of a name.

    Raises:
        ScheduleError: if there is none; it lists the loops and the nearest name.
    """
    known = {loop.var: loop for loop in loops(procedure)}
    if name not in known:
        hint = did_you_mean(name, known)
        raise ScheduleError(
            op, f"expected one of the loops {', '.join(known)}, found {name!r}{hint}"
        )
    return known[name]


def new_names(op: str, procedure: Procedure, *names: str) -> None:
    """Check that names are free for new loops.

    Raises:
        ScheduleError: if one is taken, is no identifier, or is a word of the C that is to come.
    """
    taken = taken_names(procedure)
    for i, name in enumerate(names):
        if not is_identifier(name) or name in taken or name in names[:i]:
            raise ScheduleError(op, f"expected a free name for a loop, found {name!r}")
        if not is_free(name):
            reason = f"expected a name for a loop that C leaves free, found {name!r}"
            raise ScheduleError(op, reason)


def taken_names(procedure: Procedure) -> set[str]:
    """Every name that something in a procedure has."""
    taken = {procedure.name, *procedure.extents, *(loop.var for loop in loops(procedure))}
    return taken | set(tensors_by_name(procedure))


def whole_argument(op: str, what: str, value: object, least: int = 1) -> int:
    """A whole-number argument.

    Raises:
        ScheduleError: if it is none, or too small.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
        raise ScheduleError(op, f"expected {what} of at least {least}, found {value!r}")
    return value


def constant_extent(loop: For) -> int | None:
    """The extent of a loop where it is a number."""
    extent = simplify(loop.extent)
    return int(extent.value) if isinstance(extent, Const) else None


def no_loads(op: str, what: str, node: Expr) -> None:
    """Refuse to evaluate something at another time that depends on memory: it might have changed.

    Raises:
        ScheduleError: if the expression reads a tensor.
    """
    found = next((part for part in walk(node) if isinstance(part, Load)), None)
    if found is not None:
        reason = f"{what} reads {found.tensor}, and would be read at another time"
        raise ScheduleError(op, reason)


def replace_loop(procedure: Procedure, name: str, new: Callable[[For], Stmt]) -> Procedure:
    """The procedure with one loop rewritten."""

    def rewrite(node: Stmt) -> Stmt:
        return new(node) if isinstance(node, For) and node.var == name else node

    return replace(procedure, body=map_statements(procedure.body, lambda e: e, rewrite))


def replace_variables(body: Stmt, values: dict[str, Expr]) -> Stmt:
    """A statement with loop variables replaced."""
    return map_statements(body, lambda e: simplify(substitute(e, values)))


def parts(procedure: Procedure) -> tuple[Procedure, ...]:
    """The procedure's outermost statements, each as a procedure of its own.

    What a loop carries, and whether an order within it is legal, is a matter of the outermost
    statement around it alone: the others run before or after all of it, whatever happens inside.
    """
    found: list[Stmt] = []
    waiting = [procedure.body]
    while waiting:
        match waiting.pop(0):
            case Block(items):
                waiting = [*items, *waiting]
            case Allocate(_, body):
                waiting = [body, *waiting]
            case part:
                found.append(part)
    return tuple(replace(procedure, body=part) for part in found)


def finish(op: str, procedure: Procedure) -> Procedure:
    """What every directive ends with: a simplified, verified procedure with legal loop kinds,
    which no front end lowered as it is now.

    Raises:
        ScheduleError: as `check_kinds` does.
    """
    return check_kinds(op, verify(replace(simplify_procedure(procedure), origin=None)))


def check_kinds(op: str, procedure: Procedure) -> Procedure:
    """The procedure itself, if its parallel, vectorized and block-bound loops carry no dependence,
    the threads of its blocks keep those between them, and its instructions are what they stand
    for.

    Raises:
        ScheduleError: if a loop carries one, with two of its iterations; or as `check_threads` and
            `check_calls` do.
    """
    check_whiles(op, procedure)
    for part in parts(procedure):
        for loop in loops(part):
            if loop.kind in _UNORDERED and not (loop.apart and loop.kind is LoopKind.PARALLEL):
                conflict = carried(part, loop.var)
                if conflict is not None:
                    reason = f"loop {loop.var} carries a dependence and cannot be {loop.kind}"
                    raise ScheduleError(op, reason, str(conflict))
    return check_calls(op, check_threads(op, procedure))


def carried(part: Procedure, loop: str) -> Conflict | None:
    """Two iterations of a loop that must stay in order, None if there are none."""
    return _carried(_in_order(part), loop)


# A directive leaves most parts as they were, and a search comes by the same ones again.
@lru_cache(maxsize=1024)
def _carried(part: Procedure, loop: str) -> Conflict | None:
    return dependences_of(part).carried_by(loop)


def _in_order(part: Procedure) -> Procedure:
    """The procedure with serial loops: how loops are executed changes no dependence."""

    def serial(node: Stmt) -> Stmt:
        return replace(node, kind=LoopKind.SERIAL) if isinstance(node, For) else node

    return replace(part, body=map_statements(part.body, lambda e: e, serial))


@lru_cache(maxsize=64)
def dependences_of(part: Procedure) -> Dependences:
    """The dependences of a procedure."""
    return Dependences(with_rows(part))
