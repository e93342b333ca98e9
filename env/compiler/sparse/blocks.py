"""A loop in blocks of coordinates: how many of a block are stored differs, so positions run on
until the coordinate leaves the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Expr,
    For,
    If,
    Load,
    Select,
    Stmt,
    Store,
    Tensor,
    Var,
    While,
)
from kernelwright.env.compiler.ir.simplify import FALSE, whole
from kernelwright.env.compiler.sparse.bound import Place
from kernelwright.env.compiler.sparse.iterate import coordinate, count, position
from kernelwright.env.compiler.sparse.lattice import FULL, Point
from kernelwright.env.compiler.sparse.levels.base import one_after, plus, times
from kernelwright.env.compiler.sparse.loops import at
from kernelwright.env.compiler.sparse.program import SparseError

if TYPE_CHECKING:
    from kernelwright.env.compiler.sparse.loops import Inside
    from kernelwright.env.compiler.sparse.lower import Lowering


def blocked_loop(lowering: Lowering, inside: Inside, merged: tuple[Point, ...], size: int) -> Stmt:
    """The loop over blocks, and within it those of their coordinates.

    Raises:
        SparseError: if several operands are merged, or the level is not ordered and unique.
    """
    var, program = inside.var, lowering.program
    block = lowering.names.new(f"{var}b")
    extent = program.extent(var)
    blocks = Binary("floordiv", plus(extent, whole(size - 1)), whole(size))
    if len(merged) != 1 or len(merged[0]) != 1:
        names = ", ".join(sorted(a.tensor for a in set().union(*merged) - {FULL}))
        raise SparseError(f"split_coordinates: expected one operand at {var}, found {names}")
    (only,) = merged[0]
    first = times(Var(block), whole(size))
    if only == FULL:
        name = lowering.names.new(var)
        value = plus(first, Var(name))
        body = at(lowering, inside, inside.bound, value, merged[0])
        return For(block, blocks, For(name, whole(size), If(Binary("lt", value, extent), body)))
    number = inside.steps.get(only)
    if number is None or not (
        program.level(only, number).ordered and program.level(only, number).unique
    ):
        raise SparseError(
            f"split_coordinates: expected an ordered and unique level at {var}, found that of "
            f"{only.tensor}"
        )
    counter = lowering.names.new(f"{var}{only.tensor}")
    k = Load(counter, ())
    here = position(only, number, inside.bound, k)
    value = coordinate(only, number, inside.bound, here)
    now = inside.bound.with_place(only, Place(number + 1, here))
    left: Expr = Binary("lt", k, count(only, number, inside.bound))
    there = program.level(only, number).present(
        inside.bound.site(only, number), inside.bound.place(only).position, here
    )
    if there is not None:
        left = Select(left, there, FALSE)
    within = Binary("lt", value, times(one_after(Var(block)), whole(size)))
    body = at(lowering, inside, now, value, merged[0])
    step = Store(counter, (), whole(1), "add")
    loop = For(block, blocks, While(Select(left, within, FALSE), Block((body, step))))
    scalar = Tensor(counter, (), "int64", "temporary", "register")
    return Allocate(scalar, Block((Store(counter, (), whole(0)), loop)))
