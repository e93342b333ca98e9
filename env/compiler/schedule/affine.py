"""The automatic affine schedule as one directive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Block,
    For,
    If,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    loops,
    map_statements,
    statements,
)
from kernelwright.env.compiler.ir.path import loops_around
from kernelwright.env.compiler.poly.context import Context, known
from kernelwright.env.compiler.poly.exact import (
    ExactDependences,
    NotAffineError,
    exact_dependences,
)
from kernelwright.env.compiler.poly.limits import LimitError, limited
from kernelwright.env.compiler.poly.scheduler import (
    FUSE,
    NoScheduleError,
    affine_schedule,
    named_bands,
)
from kernelwright.env.compiler.schedule.defaults import spare_half, spare_name
from kernelwright.env.compiler.schedule.edit import (
    find_loop,
    finish,
    taken_names,
    whole_argument,
)
from kernelwright.env.compiler.schedule.nests import loop_code

# About half a second; a plain nest takes a tenth of it at most.
MAX_DEPENDENCE_OPERATIONS = 500_000


def affine(
    procedure: Procedure,
    loop: str,
    tile: int = 0,
    fuse: str = "smartfuse",
    separate: bool = False,
) -> Procedure:
    """Give a loop and all inside it the affine schedule that isl finds: every dependence kept,
    values used soon, parallel loops outside (Bondhugula et al., PLDI 2008).

    ``tile`` cuts every permutable band of two loops or more into tiles of that size, with
    ``separate`` in loops of their own for full tiles, which have constant extents. ``fuse`` is
    ``nofuse`` (statements that do not depend on each other in a circle get loops of their own),
    ``smartfuse`` (isl's choice), or ``maxfuse`` (as few nests as can be, of the statements beside
    the loop too).

    Before::

        for i in n:
          for t in m:
            A[t + 1, i + 1] = A[t, i] + B[i]

    After ``affine("i")``, where t carries the dependence and i may be skewed::

        for t in m:
          for t_i in n:
            A[t + 1, t_i + 1] = A[t, t_i] + B[t_i]

    Always legal where it is defined: the schedule is made from the exact dependences.

    Raises:
        ScheduleError: if something is not affine, a loop is not serial, a temporary or another
            statement than a store is inside, an argument is wrong, or isl finds no schedule or no
            end.
    """
    target = find_loop("affine", procedure, loop)
    if isinstance(tile, bool) or tile != 0:
        whole_argument("affine", "a size of tile (or 0 for none)", tile, 2)
    if fuse not in FUSE:
        raise ScheduleError("affine", f"expected one of {', '.join(FUSE)}, found {fuse!r}")
    if not isinstance(separate, bool):
        raise ScheduleError("affine", f"expected separate to be a bool, found {separate!r}")
    if separate and not tile:
        raise ScheduleError("affine", "expected a size of tile where full tiles are separate")
    region: Stmt = _block_of(procedure, loop) if fuse == "maxfuse" else target
    for node in statements(region):
        if not isinstance(node, Store | For | If | Block):
            reason = f"expected loops, guards and stores, found {type(node).__name__.lower()}"
            raise ScheduleError("affine", f"{reason} beside or inside {loop}")
        if isinstance(node, For) and node.kind is not LoopKind.SERIAL:
            raise ScheduleError("affine", f"expected a serial loop, found {node.var} {node.kind}")
    around = loops_around(procedure, loop)
    outside = (*procedure.extents, *(each.var for each in around))
    try:
        with limited("exact dependences", MAX_DEPENDENCE_OPERATIONS):
            found = _dependences(replace(procedure, extents=outside, body=region))
    except (NotAffineError, LimitError) as error:
        raise ScheduleError("affine", str(error)) from None
    context = known(Context(procedure.extents, around))
    inside = {each.var for each in statements(region) if isinstance(each, For)}
    taken = taken_names(procedure) - inside
    names: set[str] = set()

    def name(variables: Sequence[str]) -> str:
        made = spare_name("_".join(variables) or "step", taken | names)
        names.add(made)
        return made

    def halves(whole: str) -> tuple[str, str]:
        pair = spare_half(whole, "o", taken | names), spare_half(whole, "i", taken | names)
        names.update(pair)
        return pair

    try:
        schedule = affine_schedule(found, fuse, context)
    except (LimitError, NoScheduleError) as error:
        raise ScheduleError("affine", str(error)) from None
    schedule = named_bands(schedule, found.model, tile, name, halves, separate=separate)
    bodies: dict[str, tuple[tuple[str, ...], Stmt]] = {
        i.name: (i.variables, i.store) for i in found.model.instances
    }
    code = loop_code("affine", procedure, schedule, context, bodies)

    def put(node: Stmt) -> Stmt:
        return code if node == region else node

    return finish(
        "affine", replace(procedure, body=map_statements(procedure.body, lambda e: e, put))
    )


@lru_cache(maxsize=64)
def _dependences(part: Procedure) -> ExactDependences:
    return exact_dependences(part)


def _block_of(procedure: Procedure, loop: str) -> Stmt:
    """The innermost block that a loop is a statement of; the loop itself without one."""
    region: Stmt = next(each for each in loops(procedure) if each.var == loop)
    for node in statements(procedure.body):
        if isinstance(node, Block) and any(_begins(item, loop) for item in node.body):
            region = node
    return region


def _begins(node: Stmt, loop: str) -> bool:
    return isinstance(node, For) and node.var == loop
