"""Directives that run some iterations of a loop apart from the others, so that guards and choices
leave the loop where most of the work is: peel and partition.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.linear import linear
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Const,
    Expr,
    For,
    If,
    LoopKind,
    Procedure,
    Stmt,
    Var,
)
from kernelwright.env.compiler.ir.simplify import EMPTY, simplify, simplify_statement, whole
from kernelwright.env.compiler.schedule.copies import copied, renamed
from kernelwright.env.compiler.schedule.edit import (
    find_loop,
    finish,
    no_loads,
    replace_loop,
    replace_variables,
    taken_names,
    whole_argument,
)
from kernelwright.env.compiler.schedule.facts import Facts, facts_at, simplified
from kernelwright.env.compiler.schedule.fixed import (
    fixed_numbers,
    no_changing_loads,
    replaced,
)
from kernelwright.env.compiler.schedule.free import Range, free_range
from kernelwright.env.compiler.schedule.legal import of_kind

_KINDS = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED)


def peel(procedure: Procedure, loop: str, first: int, last: int = 0) -> Procedure:
    """Run the first and the last iterations of a loop apart from the others (loop peeling). Always
    legal.

    The copies are called as what they copy, with ``_head`` or ``_tail`` behind; the middle keeps
    its names. Conditions that are decided in one of the three are gone there.

    Before::

        for i in n:
          S(i)

    After ``peel("i", 1, 1)``::

        for i_head in min(n, 1):
          S(i_head)
        for i in n - 2:
          S(i + 1)
        for i_tail in min(n - 1, 1):
          S(max(n - 2, 0) + i_tail + 1)

    Raises:
        ScheduleError: if there is no such loop, it is vectorized, nothing is to be peeled, or its
            extent reads memory.
    """
    found = find_loop("peel", procedure, loop)
    first = whole_argument("peel", "a number of first iterations", first, 0)
    last = whole_argument("peel", "a number of last iterations", last, 0)
    if first == last == 0:
        raise ScheduleError("peel", "expected iterations to peel, found none")
    of_kind("peel", found, *_KINDS)
    no_loads("peel", f"the extent of {loop}", found.extent)
    end = linear(found.extent).shifted(-last).expression()
    facts = facts_at(procedure, loop)
    return finish("peel", _in_three(procedure, found, Range(whole(first), end), facts))


def partition(procedure: Procedure, loop: str) -> Procedure:
    """Run the iterations in which every guard holds apart from the others, without the guards
    (Halide's loop partitioning; TVM ``loop_partition``). Legal if the loop does not write what its
    extent reads.

    What counts is every affine condition of an ``if`` or ``select`` in the loop, and which operand
    a ``min`` or ``max`` in an index is, on loops of constant extents inside. The copies are called
    as what they copy, with ``_head`` (the iterations before) or ``_tail`` (those after) behind.

    Before::

        for io in (n + 3) // 4:
          for ii in 4:
            if io * 4 + ii < n:
              S(io * 4 + ii)

    After ``partition("io")``::

        for io in n // 4:
          for ii in 4:
            S(io * 4 + ii)
        for ii_tail in n - n // 4 * 4:
          S(n // 4 * 4 + ii_tail)

    Raises:
        ScheduleError: if there is no such loop, it is vectorized, its extent reads what it writes,
            no condition in it depends on it in a way that this could remove, or no iteration is
            free of conditions.
    """
    found = find_loop("partition", procedure, loop)
    of_kind("partition", found, *_KINDS)
    no_changing_loads("partition", found)
    numbers = fixed_numbers((found.extent,), found, procedure)
    if numbers:
        # Such a number may be below 0, and mean no iterations.
        procedure = replace_loop(procedure, loop, lambda node: replaced(node, numbers))
        found = find_loop("partition", procedure, loop)
        fixed = tuple(variable.name for variable in numbers.values())
        runs = Binary("lt", whole(0), found.extent)
        facts = replace(facts_at(procedure, loop), fixed=fixed).given(runs)
        procedure = replace_loop(procedure, loop, lambda node: If(runs, node))
        procedure = _partitioned(procedure, found, facts)
        back: dict[Expr, Expr] = {variable: read for read, variable in numbers.items()}
        procedure = replace(procedure, body=replaced(procedure.body, back))
    else:
        procedure = _partitioned(procedure, found, facts_at(procedure, loop))
    return finish("partition", procedure)


def _partitioned(procedure: Procedure, found: For, facts: Facts) -> Procedure:
    loop = found.var
    free = free_range(found, facts)
    if free is None:
        reason = f"expected a condition in loop {loop} that holds from or up to some iteration"
        raise ScheduleError("partition", f"{reason}, found none")
    within = facts.given(Binary("lt", free.start, free.end))
    if within.never():
        raise ScheduleError("partition", f"no iteration of {loop} is free of its conditions")
    return _in_three(procedure, found, free, facts)


def _in_three(procedure: Procedure, loop: For, middle: Range, facts: Facts) -> Procedure:
    """The loop as up to three: what comes before the middle, the middle, and what comes after."""
    taken = taken_names(procedure)
    # Where the middle is empty the three must still be every iteration once.
    start = facts.least(middle.start, loop.extent)
    end = facts.greatest(middle.end, start)
    pieces = [
        _piece(loop, whole(0), start, "head", taken, facts),
        _piece(loop, middle.start, facts.least(middle.end, loop.extent), None, taken, facts),
        _piece(loop, end, loop.extent, "tail", taken, facts),
    ]
    nest = simplify_statement(Block(tuple(pieces)))
    return replace_loop(procedure, loop.var, lambda _: nest)


def _piece(
    loop: For, start: Expr, end: Expr, ending: str | None, taken: set[str], facts: Facts
) -> Stmt:
    """The iterations from ``start`` to ``end`` as a loop of their own, or without one where
    there is one at most.
    """
    index = (Var(loop.var), start) if isinstance(start, Const) else (start, Var(loop.var))
    count = linear(end).plus(linear(start), -1).expression()
    if facts.decide(Binary("le", count, whole(0))):
        return EMPTY
    piece: Stmt = replace(
        loop,
        extent=count,
        body=replace_variables(loop.body, {loop.var: simplify(Binary("add", *index))}),
    )
    if ending is not None:
        piece = copied(piece, ending, taken)
        assert isinstance(piece, For)
        if _runs_once_or_not(piece, facts):
            # One iteration at most, whose guards say whether it is there.
            return simplified(renamed(piece.body, {piece.var: whole(0)}, {}), facts)
    return simplified(piece, facts)


def _runs_once_or_not(loop: For, facts: Facts) -> bool:
    if facts.decide(Binary("eq", loop.extent, whole(1))):
        return True
    if not facts.decide(Binary("le", loop.extent, whole(1))):
        return False
    none = facts.given(Binary("le", loop.extent, whole(0)))
    body = renamed(loop.body, {loop.var: whole(0)}, {})
    return simplify_statement(simplified(body, none)) == EMPTY
