"""Loops over several iterators at once: merged while all have coordinates left, or carried along a
loop over all coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Expr,
    For,
    If,
    Load,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from kernelwright.env.compiler.ir.simplify import FALSE, whole
from kernelwright.env.compiler.sparse.bound import Bound, Place
from kernelwright.env.compiler.sparse.branch_free import branch_free
from kernelwright.env.compiler.sparse.iterate import (
    coordinate,
    count,
    position,
)
from kernelwright.env.compiler.sparse.lattice import FULL, Point
from kernelwright.env.compiler.sparse.levels.base import minus, plus
from kernelwright.env.compiler.sparse.loops import (
    Inside,
    at,
)
from kernelwright.env.compiler.sparse.minted import Minted, initialised, scalar
from kernelwright.env.compiler.sparse.notation import (
    Access,
)
from kernelwright.env.compiler.sparse.program import SparseError

if TYPE_CHECKING:
    from kernelwright.env.compiler.sparse.lower import Lowering


class Walker:
    """An iterator of a merge: its counter, and the flag that says whether it is at a coordinate."""

    def __init__(self, access: Access, number: int, names: Minted, var: str) -> None:
        self.access, self.number = access, number
        self.counter = names.new(f"{var}{access.tensor}")
        self.flag = names.new(f"{self.counter}_here")


@dataclass(frozen=True, slots=True)
class _Run:
    """A scalar that goes on from a position as long as the coordinate stays the same."""

    name: str
    start: Expr
    more: Expr

    def around(self, body: Stmt) -> Stmt:
        """The scalar found, then the body."""
        step = Store(self.name, (), whole(1), "add")
        return initialised(self.name, self.start, Block((While(self.more, step), body)))


def carried(lowering: Lowering, inside: Inside, merged: tuple[Point, ...]) -> Stmt:
    """A loop over all coordinates, with iterators that are carried along."""
    name = lowering.names.new(inside.var)
    walkers = [
        Walker(a, inside.steps[a], lowering.names, inside.var)
        for a in inside.steps
        if any(a in point for point in merged)
    ]
    tests: dict[Access, Expr] = {}
    flags, advances, runs = [], [], []
    bound = inside.bound
    for walker in walkers:
        k = Load(walker.counter, ())
        here = position(walker.access, walker.number, inside.bound, k)
        value = coordinate(walker.access, walker.number, inside.bound, here)
        end = count(walker.access, walker.number, inside.bound)
        left = _left(walker, inside.bound, end)
        has = Select(left, Binary("eq", value, Var(name)), FALSE)
        flags.append((walker.flag, has))
        tests[walker.access] = Load(walker.flag, ())
        gain = Cast("int64", Load(walker.flag, ()))
        bound, step, run = _step(lowering, walker, bound, inside.bound, Var(name), gain, end)
        advances.append(step)
        runs += [run] if run else []
    body = cases(lowering, inside, bound, Var(name), merged, tests)
    inner: Stmt = Block((*body, *advances))
    for run in reversed(runs):
        inner = run.around(inner)
    for flag, has in reversed(flags):
        inner = Allocate(scalar(flag, "bool"), Block((Store(flag, (), has), inner)))
    loop: Stmt = For(name, lowering.program.extent(inside.var), inner)
    for walker in reversed(walkers):
        loop = initialised(walker.counter, whole(0), loop)
    return loop


def merging(lowering: Lowering, inside: Inside, merged: tuple[Point, ...]) -> Stmt:
    """A loop for each point, while all its iterators have coordinates left."""
    walkers = {
        a: Walker(a, inside.steps[a], lowering.names, inside.var)
        for a in inside.steps
        if any(a in point for point in merged)
    }
    ends = {a: lowering.names.new(f"{w.counter}_end") for a, w in walkers.items()}
    parts = []
    for point in merged:
        alive: Expr | None = None
        for access in walkers:
            if access in point:
                left = _left(walkers[access], inside.bound, Load(ends[access], ()))
                alive = left if alive is None else Binary("and", alive, left)
        assert alive is not None
        below = tuple(p for p in merged if p <= point)
        mine = [(walkers[a], Load(ends[a], ())) for a in walkers if a in point]
        parts.append(While(alive, _meeting(lowering, inside, below, mine)))
    out: Stmt = Block(tuple(parts))
    for access in reversed(walkers):
        end = count(access, inside.steps[access], inside.bound)
        out = initialised(ends[access], end, out)
        out = initialised(walkers[access].counter, whole(0), out)
    return out


def _left(walker: Walker, outside: Bound, end: Expr) -> Expr:
    """Whether an iterator of a merge still stands at a coordinate."""
    k, access, number = Load(walker.counter, ()), walker.access, walker.number
    inside = Binary("lt", k, end)
    here = position(access, number, outside, k)
    kind, parent = outside.program.level(access, number), outside.place(access).position
    there = kind.present(outside.site(access, number), parent, here)
    return inside if there is None else Select(inside, there, FALSE)


def _meeting(
    lowering: Lowering,
    inside: Inside,
    below: tuple[Point, ...],
    walkers: Sequence[tuple[Walker, Expr]],
) -> Stmt:
    """One step of a merge: the least coordinate, the case that holds, and on."""
    heads, bound = [], inside.bound
    tests: dict[Access, Expr] = {}
    for walker, _ in walkers:
        k = Load(walker.counter, ())
        here = position(walker.access, walker.number, inside.bound, k)
        value = coordinate(walker.access, walker.number, inside.bound, here)
        heads.append((lowering.names.new(f"{walker.counter}_at"), value))
    least: Expr = Load(heads[0][0], ())
    for head, _ in heads[1:]:
        least = Binary("min", least, Load(head, ()))
    if len(heads) > 1:
        name = lowering.names.new(inside.var)
        now: Expr = Load(name, ())
    else:
        now = least
    advances: list[Stmt] = []
    runs = []
    for (walker, end), (head, _) in zip(walkers, heads, strict=True):
        gain: Expr = whole(1)
        if len(heads) > 1:
            tests[walker.access] = Binary("eq", Load(head, ()), now)
            gain = Cast("int64", tests[walker.access])
        bound, step, run = _step(lowering, walker, bound, inside.bound, now, gain, end)
        advances.append(step)
        runs += [run] if run else []
    statements = branch_free(lowering, inside, bound, now, below, tests)
    if statements is None:
        statements = cases(lowering, inside, bound, now, below, tests)
    body: Stmt = Block((*statements, *advances))
    for run in reversed(runs):
        body = run.around(body)
    if len(heads) > 1:
        body = initialised(name, least, body)
    for head, value in reversed(heads):
        body = initialised(head, value, body)
    return body


def _step(
    lowering: Lowering,
    walker: Walker,
    bound: Bound,
    outside: Bound,
    now: Expr,
    gain: Expr,
    end: Expr,
) -> tuple[Bound, Stmt, _Run | None]:
    """An iterator's place at a coordinate, and how it goes on from there; where a level is not
    unique, by the run of positions that have the coordinate.
    """
    access, number = walker.access, walker.number
    k = Load(walker.counter, ())
    here = position(access, number, outside, k)
    if lowering.program.level(access, number).unique:
        moved = bound.with_place(access, Place(number + 1, here))
        return moved, Store(walker.counter, (), gain, "add"), None
    if number + 1 == len(lowering.program.format(access.tensor).levels):
        raise SparseError(
            f"{access.tensor}: expected elements of distinct coordinates where it is merged or "
            "stored, found a last level that is not unique"
        )
    name = lowering.names.new(f"{walker.counter}_run")
    stop = Load(name, ())
    ahead = coordinate(access, number, outside, position(access, number, outside, stop))
    more = Select(Binary("lt", stop, end), Binary("eq", ahead, now), FALSE)
    if getattr(lowering.program.level(access, number), "slots", False):
        raise SparseError(
            f"{access.tensor}: expected positions of one coordinate next to one another where "
            f"it is merged or stored, found {lowering.program.level(access, number).text}"
        )
    until = plus(here, minus(stop, k))
    moved = bound.with_place(access, Place(number + 1, here, until))
    return moved, Store(walker.counter, (), stop), _Run(name, k, more)


def cases(
    lowering: Lowering,
    inside: Inside,
    bound: Bound,
    now: Expr,
    below: tuple[Point, ...],
    tests: dict[Access, Expr],
) -> list[Stmt]:
    """The statements for what may be there, of which exactly one runs."""
    out: list[Stmt] = []
    before: list[Expr] = []
    for point in below:
        condition: Expr | None = None
        for access in sorted(point - {FULL}, key=repr):
            if access in tests:
                test = tests[access]
                condition = test if condition is None else Binary("and", condition, test)
        body = at(lowering, inside, bound, now, point, merged=True)
        alone = condition
        for other in before:
            no = Unary("not", other)
            alone = no if alone is None else Binary("and", alone, no)
        out.append(body if alone is None else If(alone, body))
        if condition is None:
            break
        before.append(condition)
    return out
