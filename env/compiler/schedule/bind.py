"""Directives about blocks and threads: bind, barrier."""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.levels import THREAD_LEVELS
from kernelwright.env.compiler.ir.nodes import (
    BLOCK_KINDS,
    Barrier,
    Block,
    For,
    LoopKind,
    Procedure,
    Stmt,
)
from kernelwright.env.compiler.schedule.edit import find_loop, finish, replace_loop

LEVELS = (*BLOCK_KINDS, *THREAD_LEVELS)
SIDES = ("before", "after")


def bind(procedure: Procedure, loop: str, level: str, *others: str) -> Procedure:
    """Give every iteration of a loop to a block or thread of its own (TVM ``bind``; Halide
    ``gpu_blocks`` and ``gpu_threads``). The levels are ``block.x``, ``block.y``, ``block.z``,
    ``thread.x``, ``thread.y``, ``thread.z`` and ``vthread`` (Chen et al., TVM, OSDI 2018, section
    4.4: virtual threads, whose steps are interleaved).

    Before::

        for io in n // 64:
          for ii in 64:
            S(io * 64 + ii)

    After ``bind("io", "block.x")`` and ``bind("ii", "thread.x")``::

        for io in n // 64:  # block.x
          for ii in 64:  # thread.x
            S(io * 64 + ii)

    ``others`` are bound to the level in the same step: loops of one block that are legal together
    and not one by one, because what one of them leaves behind another needs.

    A block is an iteration of the block loops around it. What is outside the loops of a thread
    level is done by that level's thread 0. Legal if no dependence is between two blocks, and every
    dependence between two threads of a block has a barrier between its ends; then threads do what
    the loops did in order.

    Raises:
        ScheduleError: if there is no such loop or level, the loop is not serial, its number of
            threads is unknown, levels are nested wrongly (a level in itself, a block inside a
            thread), not all threads would reach a barrier, or a dependence is not kept; then it has
            the two iterations.
    """
    if level not in LEVELS:
        raise ScheduleError("bind", f"expected one of {', '.join(LEVELS)}, found {level!r}")
    kind = LoopKind(level)
    for name in (loop, *others):
        found = find_loop("bind", procedure, name)
        if found.kind is not LoopKind.SERIAL:
            raise ScheduleError("bind", f"expected a serial loop, found {name} {found.kind}")
        procedure = replace_loop(procedure, name, lambda node: replace(node, kind=kind))
    return finish("bind", procedure)


def barrier(procedure: Procedure, loop: str, side: str = "before") -> Procedure:
    """Let all threads of a block wait for one another before a loop, or after it (CUDA
    ``__syncthreads``). In order, a barrier is nothing; it comes before the `bind` that needs it.

    Before::

        for t in 64:
          S[t] = x[t]
        for u in 64:
          y[u] = S[63 - u]

    After ``barrier("u")``::

        for t in 64:
          S[t] = x[t]
        barrier
        for u in 64:
          y[u] = S[63 - u]

    Raises:
        ScheduleError: if there is no such loop or side, or not all threads would reach the barrier.
    """
    find_loop("barrier", procedure, loop)
    if side not in SIDES:
        raise ScheduleError("barrier", f"expected {' or '.join(SIDES)}, found {side!r}")

    def rewrite(node: For) -> Stmt:
        return Block((Barrier(), node) if side == "before" else (node, Barrier()))

    return finish("barrier", replace_loop(procedure, loop, rewrite))
