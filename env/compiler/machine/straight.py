"""The straight-line part of a loop's body: its stores, with what the directives made of the loops
between.

Unrolled loops are copies here, and a vectorized loop is one operation on all its lanes where the
code generator has a vector form, else its lanes one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import assert_never

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    Unary,
    While,
    children,
    statements,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.machine.affine import flat_from_loads
from kernelwright.env.compiler.machine.nest import Guards, Nest

VECTOR_OPS = ("add", "sub", "mul", "div")
Copies = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """A vectorized loop: its variable and how many lanes it has."""

    var: str
    count: int


@dataclass(frozen=True, slots=True)
class Place:
    """A store with the unrolled and vectorized loops between it and the loop around; ``pinned`` if
    a guard that changes with these stands between.
    """

    store: Store
    copies: Copies
    lanes: Lanes | None
    share: float
    pinned: bool


@dataclass(frozen=True, slots=True)
class Inner:
    """A loop inside a body: how many of it run in one iteration, and the lanes and guards around
    it.
    """

    loop: For
    runs: float
    lanes: Lanes | None
    guards: Guards


@dataclass(slots=True)
class Straight:
    """A body's stores, how many guards it tests, and the loops inside."""

    places: list[Place] = field(default_factory=list)
    tests: float = 0.0
    inner: list[Inner] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Around:
    """What lies between a statement and the loop whose body it belongs to."""

    copies: Copies
    lanes: Lanes | None
    guards: Guards
    moving: frozenset[str]
    pinned: bool = False

    @property
    def count(self) -> float:
        """How many copies there are."""
        return float(prod(n for _, n in self.copies))


def straighten(
    body: Stmt, around: str | None, nest: Nest, lanes: Lanes | None, guards: Guards
) -> Straight:
    """The straight-line part of a body, with the vectorized loop and the guards around it."""
    moving = frozenset(name for name in (around, lanes.var if lanes else None) if name)
    walk = _Straightening(nest, guards.share)
    walk.visit(body, _Around((), lanes, guards, moving))
    return walk.out


class _Straightening:
    """Visits a body; shares are of the iterations that get to it."""

    def __init__(self, nest: Nest, entered: float) -> None:
        self._nest, self._entered = nest, entered
        self.out = Straight()

    def _share(self, at: _Around) -> float:
        return at.guards.share / self._entered if self._entered else 0.0

    def visit(self, node: Stmt, at: _Around) -> None:
        trips = self._nest.trips
        match node:
            case Store():
                place = Place(node, at.copies, at.lanes, self._share(at), at.pinned)
                self.out.places.append(place)
            case For(var, _, body, LoopKind.UNROLLED):
                copies = (*at.copies, (var, round(trips[var])))
                self.visit(body, replace(at, copies=copies, moving=at.moving | {var}))
            case For(var, _, body, LoopKind.VECTORIZED) if at.lanes is None and not _vectors(body):
                lanes = Lanes(var, round(trips[var]))
                self.visit(body, replace(at, lanes=lanes, moving=at.moving | {var}))
            case For():
                runs = self._share(at) * at.count
                self.out.inner.append(Inner(node, runs, at.lanes, at.guards))
            case If(condition, then):
                self.out.tests += self._share(at) * at.count
                pinned = at.pinned or mentions(condition, *at.moving)
                guards = at.guards.inside(condition, trips)
                self.visit(then, replace(at, guards=guards, pinned=pinned))
            case While():
                raise AssertionError("whiles are loops: written_as_loops")
            case Block(items):
                for item in items:
                    self.visit(item, at)
            case Allocate(_, body) | Call(_, body):
                self.visit(body, at)
            case Barrier() | Prefetch():
                pass
            case _:
                assert_never(node)


def _vectors(body: Stmt) -> bool:
    return any(isinstance(s, For) and s.kind is LoopKind.VECTORIZED for s in statements(body))


def vector_lanes(place: Place, nest: Nest, lanes: Lanes | None, *, auto: bool) -> int:
    """In how many lanes a store is executed at once: those of ``lanes`` if it has a vector form,
    else 1. With ``auto`` a compiler is asked that may also refuse gathers.
    """
    if lanes is None:
        return 1
    store = place.store
    array = nest.arrays[store.tensor]
    target = flat_from_loads(store.indices, array.shape)
    if target is None or target.hidden(lanes.var) or target.factor(lanes.var) != 1:
        return 1
    if store.reduce in ("min", "max"):
        return 1
    for part in _moving_parts(store.value, lanes.var):
        match part:
            case Binary(op, _, _) if op in VECTOR_OPS:
                continue
            case Unary("neg", _):
                continue
            case Unary("sqrt" | "abs", _) if auto:
                continue
            case Load(name, indices):
                read = nest.arrays[name]
                moved = flat_from_loads(indices, read.shape)
                if read.itemsize != array.itemsize:
                    return 1
                if auto and (moved is None or moved.hidden(lanes.var)):
                    return 1
                if auto and moved is not None and moved.factor(lanes.var) not in (0, 1):
                    return 1
            case _:
                return 1
    return lanes.count


def _moving_parts(node: Expr, var: str) -> Iterator[Expr]:
    """The parts of a value that change with a variable, without what is inside indices."""
    if not mentions(node, var):
        return
    yield node
    if not isinstance(node, Load):
        for child in children(node):
            yield from _moving_parts(child, var)
