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
from kernelwright.env.compiler.ir.simplify import FALSE, simplify, whole
from kernelwright.env.compiler.sparse.bound import Bound, Place
from kernelwright.env.compiler.sparse.branch_free import branch_free
from kernelwright.env.compiler.sparse.iterate import (
    coordinate,
    count,
    position,
)
from kernelwright.env.compiler.sparse.lattice import FULL, Point
from kernelwright.env.compiler.sparse.levels.base import plus
from kernelwright.env.compiler.sparse.loops import (
    Inside,
    at,
)
from kernelwright.env.compiler.sparse.minted import initialised, scalar
from kernelwright.env.compiler.sparse.notation import (
    Access,
)
from kernelwright.env.compiler.sparse.program import SparseError

if TYPE_CHECKING:
    from kernelwright.env.compiler.sparse.lower import Lowering


class Walker:
    """An iterator of a merge: a scalar that goes from ``start`` to ``end``, and the flag that says
    whether it is at a coordinate. Where positions of one parent lie next to one another the scalar
    is the position itself, else it counts them.
    """

    def __init__(self, lowering: Lowering, inside: Inside, access: Access) -> None:
        self.access, self.number = access, inside.steps[access]
        self.outside = inside.bound
        self.counter = lowering.names.new(f"{inside.var}{access.tensor}")
        self.flag = lowering.names.new(f"{self.counter}_here")
        self.kind = lowering.program.level(access, self.number)
        # The only positions that do not ascend one by one are those that are stored in slots.
        self.counts = bool(getattr(self.kind, "slots", False)) and self.place.until is None
        trips = count(access, self.number, self.outside)
        first = position(access, self.number, self.outside, whole(0))
        self.start, self.end = (whole(0), trips) if self.counts else _ends(simplify(first), trips)

    @property
    def place(self) -> Place:
        """Its place outside of the merge."""
        return self.outside.place(self.access)

    @property
    def now(self) -> Expr:
        """The scalar."""
        return Load(self.counter, ())

    def position(self, scalar: Expr) -> Expr:
        """The position where the scalar has a value."""
        if self.counts:
            return position(self.access, self.number, self.outside, scalar)
        return scalar

    def coordinate(self, scalar: Expr) -> Expr:
        """The coordinate where the scalar has a value."""
        return coordinate(self.access, self.number, self.outside, self.position(scalar))

    def left(self, end: Expr) -> Expr:
        """Whether it still stands at a coordinate."""
        inside = Binary("lt", self.now, end)
        site = self.outside.site(self.access, self.number)
        there = self.kind.present(site, self.place.position, self.position(self.now))
        return inside if there is None else Select(inside, there, FALSE)


def _ends(first: Expr, trips: Expr) -> tuple[Expr, Expr]:
    """The first position and the one after the last."""
    match trips:
        case Binary("sub", end, start) if simplify(start) == first:
            return first, end
    return first, plus(first, trips)


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
    walkers = _walkers(lowering, inside, merged)
    tests: dict[Access, Expr] = {}
    flags, advances, runs = [], [], []
    bound = inside.bound
    for walker in walkers:
        value = walker.coordinate(walker.now)
        has = Select(walker.left(walker.end), Binary("eq", value, Var(name)), FALSE)
        flags.append((walker.flag, has))
        tests[walker.access] = Load(walker.flag, ())
        gain = Cast("int64", Load(walker.flag, ()))
        bound, step, run = _step(lowering, walker, bound, Var(name), gain, walker.end)
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
        loop = initialised(walker.counter, walker.start, loop)
    return loop


def _walkers(lowering: Lowering, inside: Inside, merged: tuple[Point, ...]) -> list[Walker]:
    """The iterators that are in some point."""
    iterated = [access for access in inside.steps if any(access in point for point in merged)]
    return [Walker(lowering, inside, access) for access in iterated]


def merging(lowering: Lowering, inside: Inside, merged: tuple[Point, ...]) -> Stmt:
    """A loop for each point, while all its iterators have coordinates left."""
    walkers = _walkers(lowering, inside, merged)
    ends = {w.access: lowering.names.new(f"{w.counter}_end") for w in walkers}
    parts = []
    for point in merged:
        mine = [(w, Load(ends[w.access], ())) for w in walkers if w.access in point]
        alive: Expr | None = None
        for walker, end in mine:
            left = walker.left(end)
            alive = left if alive is None else Binary("and", alive, left)
        assert alive is not None
        below = tuple(p for p in merged if p <= point)
        parts.append(While(alive, _meeting(lowering, inside, below, mine)))
    out: Stmt = Block(tuple(parts))
    for walker in reversed(walkers):
        out = initialised(ends[walker.access], walker.end, out)
        out = initialised(walker.counter, walker.start, out)
    return out


def _meeting(
    lowering: Lowering,
    inside: Inside,
    below: tuple[Point, ...],
    walkers: Sequence[tuple[Walker, Load]],
) -> Stmt:
    """One step of a merge: the least coordinate, the case that holds, and on."""
    heads, bound = [], inside.bound
    tests: dict[Access, Expr] = {}
    for walker, _ in walkers:
        value = walker.coordinate(walker.now)
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
        bound, step, run = _step(lowering, walker, bound, now, gain, end)
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
    lowering: Lowering, walker: Walker, bound: Bound, now: Expr, gain: Expr, end: Expr
) -> tuple[Bound, Stmt, _Run | None]:
    """An iterator's place at a coordinate, and how it goes on from there; where a level is not
    unique, by the run of positions that have the coordinate.

    Raises:
        SparseError: if elements of the same coordinates would have to be told apart.
    """
    access, number, here = walker.access, walker.number, walker.position(walker.now)
    if walker.kind.unique:
        moved = bound.with_place(access, Place(number + 1, here))
        return moved, Store(walker.counter, (), gain, "add"), None
    if number + 1 == len(lowering.program.format(access.tensor).levels):
        raise SparseError(
            f"{access.tensor}: expected elements of distinct coordinates where it is merged or "
            "stored, found a last level that is not unique"
        )
    if walker.counts:
        raise SparseError(
            f"{access.tensor}: expected positions of one coordinate next to one another where "
            f"it is merged or stored, found {walker.kind.text}"
        )
    name = lowering.names.new(f"{walker.counter}_run")
    stop = Load(name, ())
    ahead = Binary("eq", walker.coordinate(stop), now)
    more = Select(Binary("lt", stop, end), ahead, FALSE)
    moved = bound.with_place(access, Place(number + 1, here, stop))
    return moved, Store(walker.counter, (), stop), _Run(name, walker.now, more)


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
