"""Writes of a target or of a workspace, and where its elements become zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Const,
    Expr,
    For,
    If,
    Stmt,
    Store,
    Var,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.sparse.bound import Bound
from kernelwright.env.compiler.sparse.format import Outer
from kernelwright.env.compiler.sparse.notation import (
    Access,
)
from kernelwright.env.compiler.sparse.program import Program
from kernelwright.env.compiler.sparse.shared import (
    sharer,
)
from kernelwright.env.compiler.sparse.values import where_is

if TYPE_CHECKING:
    from kernelwright.env.compiler.sparse.lower import Lowering


def is_kept(program: Program, var: str, target: Access) -> bool:
    """Whether a loop is over an index of the target."""
    return any(var in program.loops(index) for index in target.indices)


def is_created(lowering: Lowering, target: Access, var: str, bound: Bound) -> bool:
    """Whether the target's elements only come to be in this loop or further in."""
    if lowering.program.shares(target):
        own = sharer(lowering.program)
        return bound.place(own).depth < len(lowering.program.format(own.tensor).levels)
    return lowering.assembly.appends(target, var) or lowering.assembly.appends_below(target, bound)


def overhangs(program: Program, target: Access, var: str) -> bool:
    """Whether blocks of a target can reach beyond its mode in a loop: no element is there."""
    if program.workspace(target.tensor):
        return False
    for _, dimension in program.format(target.tensor).levels:
        if isinstance(dimension, Outer):
            index = target.indices[dimension.mode]
            rest = Binary("mod", program.size(index), whole(dimension.size))
            if var in program.loops(index) and simplify(rest) != whole(0):
                return True
    return False


def store(
    lowering: Lowering, target: Access, bound: Bound, value: Expr, reduce: str | None
) -> Stmt:
    """A write of the target's element, or of a workspace's."""
    space = lowering.program.workspace(target.tensor)
    if space is not None and space.listed:
        return lowering.workspaces.insert(space, where_is(target, bound)[1], value)
    tensor, indices = where_is(target, bound)
    return written(lowering, target, bound, Store(tensor, indices, value, reduce))


def written(lowering: Lowering, target: Access, bound: Bound, store: Store) -> Stmt:
    """A store where there is a place for it."""
    if lowering.program.shares(target):
        found = bound.place(sharer(lowering.program)).found
        return store if found is None else If(found, store)
    return lowering.assembly.value(store) if target == lowering.program.assignment.target else store


def zero(lowering: Lowering, target: Access, bound: Bound) -> list[Stmt]:
    """Zeros at all elements of the target under what is bound."""
    if (space := lowering.program.workspace(target.tensor)) and space.listed:
        return []
    loops: list[tuple[str, Expr]] = []
    guards: list[Expr] = []
    now = bound
    for index in target.indices:
        inner = lowering.program.loops(index)
        whole_mode = not any(loop in now.coordinates for loop in inner)
        if whole_mode and lowering.program.is_plain(target.tensor):
            inner = (index,)
        for loop in inner:
            if now.index(index) is not None or loop in now.coordinates:
                continue
            name = lowering.names.new(f"{loop}z")
            extent = (
                lowering.program.size(index) if loop == index else lowering.program.extent(loop)
            )
            loops.append((name, extent))
            now = now.with_coordinate(loop, Var(name))
            if _is_guarded(lowering.program, target, index) and (guard := now.guard(loop)):
                guards.append(guard)
    now = now.located((target,))
    tensor, places = where_is(target, now)
    zero = Store(tensor, places, Const(0.0, lowering.program.dtype))
    out = written(lowering, target, now, zero)
    for guard in guards:
        out = If(guard, out)
    for name, extent in reversed(loops):
        out = For(name, extent, out)
    return [out]


def _is_guarded(program: Program, target: Access, index: str) -> bool:
    """Whether another tensor stores an index of the target in blocks, the target does not: it
    has no place for what is beyond the mode.
    """
    if program.block(index) is None:
        return False
    if program.workspace(target.tensor):
        return True
    levels = program.format(target.tensor).levels
    outer = [d.mode for _, d in levels if isinstance(d, Outer)]
    return target.indices.index(index) not in outer


def zero_values(lowering: Lowering, target: Access) -> list[Stmt]:
    """Zeros at all values of a target that shares a structure."""
    name = lowering.names.new("z")
    zero = Const(0.0, lowering.program.dtype)
    store = Store(f"{lowering.program.prefix(target.tensor)}_vals", (Var(name),), zero)
    return [For(name, lowering.program.stored(sharer(lowering.program)), store)]
