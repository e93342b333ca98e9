"""Directives that say how the iterations of a loop are executed: unroll, vectorize, parallel."""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import LoopKind, Procedure
from kernelwright.env.compiler.schedule.defaults import split_names
from kernelwright.env.compiler.schedule.edit import (
    constant_extent,
    find_loop,
    finish,
    replace_loop,
)
from kernelwright.env.compiler.schedule.split import split

LANES = (2, 4, 8, 16, 32, 64)
MAX_UNROLL = 64


def unroll(procedure: Procedure, loop: str, factor: int | None = None) -> Procedure:
    """Write the iterations of a loop out one after the other; with a factor, blocks of so many
    iterations. Always legal.

    With a factor the loop is split with the usual names, and iterations that are left over run
    after the blocks. Without one its extent is a number of at most 64.

    Before::

        for i in 2:
          S(i)

    After ``unroll("i")``, as the C has it::

        S(0)
        S(1)

    Raises:
        ScheduleError: if there is no such loop, it is not serial, its extent is unknown or too
            large, or one of the usual names is taken.
    """
    if factor is None:
        return _with_kind(procedure, "unroll", loop, LoopKind.UNROLLED, range(1, MAX_UNROLL + 1))
    extent = constant_extent(find_loop("unroll", procedure, loop))
    most = MAX_UNROLL if extent is None else min(MAX_UNROLL, extent)
    if isinstance(factor, int) and factor > most:
        raise ScheduleError("unroll", f"expected a factor of 1 to {most}, found {factor}")
    outer, inner = split_names(loop)
    procedure = split(procedure, loop, factor, outer, inner, "partition")
    return unroll(procedure, inner)


def vectorize(procedure: Procedure, loop: str, lanes: int | None = None) -> Procedure:
    """Run all iterations of a loop at once, one a lane of a vector; the extent is a power of two
    from 2 to 64. With ``lanes``, blocks of so many iterations: ``vectorize("i", 8)`` is
    ``split("i", 8)`` and ``vectorize("ii")``.

    Before::

        for i in 8:
          y[i] = x[i] * 2

    After ``vectorize("i")``, as the C has it::

        y[0:8] = x[0:8] * 2

    Legal if the loop carries no dependence.

    Raises:
        ScheduleError: if there is no such loop, it is not serial, its extent is no number of lanes,
            one of the usual names is taken, or it carries a dependence; then it has the two
            iterations.
    """
    if lanes is None:
        return _with_kind(procedure, "vectorize", loop, LoopKind.VECTORIZED, LANES)
    outer, inner = split_names(loop)
    return vectorize(split(procedure, loop, lanes, outer, inner), inner)


def parallel(procedure: Procedure, loop: str) -> Procedure:
    """Run the iterations of a loop on several threads.

    Before::

        for i in n:
          S(i)

    After ``parallel("i")``::

        for i in n:  # parallel
          S(i)

    Legal if the loop carries no dependence.

    Raises:
        ScheduleError: if there is no such loop, it is not serial, or it carries a dependence; then
            it has the two iterations.
    """
    return _with_kind(procedure, "parallel", loop, LoopKind.PARALLEL, None)


def _with_kind(
    procedure: Procedure,
    op: str,
    loop: str,
    kind: LoopKind,
    extents: range | tuple[int, ...] | None,
) -> Procedure:
    found = find_loop(op, procedure, loop)
    if found.kind is not LoopKind.SERIAL:
        raise ScheduleError(op, f"expected a serial loop, found {loop} {found.kind}")
    extent = constant_extent(found)
    if extents is not None and extent not in extents:
        known = (
            f"{extents[0]} to {extents[-1]}"
            if isinstance(extents, range)
            else ", ".join(map(str, extents))
        )
        raise ScheduleError(
            op, f"expected an extent of {known}, found {extent or 'no number'} in loop {loop}"
        )
    return finish(op, replace_loop(procedure, loop, lambda node: replace(node, kind=kind)))
