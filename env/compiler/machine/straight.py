"""The straight-line part of a loop's body: its stores, with what the directives made of the loops
between.

Unrolled loops are copies here, and a vectorized loop is one operation on all its lanes where the
code generator has a vector form, else its lanes one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import assert_never

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Stmt,
    Store,
    Unary,
    children,
    statements,
)
from kernelwright.env.compiler.machine.affine import flat
from kernelwright.env.compiler.machine.nest import Nest, depends_on, passing

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


@dataclass(slots=True)
class Straight:
    """A body without its inner loops: stores, guards, and the loops inside with how many copies of
    each there are.
    """

    places: list[Place] = field(default_factory=list)
    guards: float = 0.0
    inner: list[tuple[For, float, Lanes | None]] = field(default_factory=list)


def straighten(body: Stmt, around: str | None, nest: Nest, lanes: Lanes | None) -> Straight:
    """The straight-line part of a body; ``lanes`` is a vectorized loop around it."""
    out = Straight()
    start = frozenset(name for name in (around, lanes.var if lanes else None) if name)
    _collect(body, Place(_NOTHING, (), lanes, 1.0, False), start, nest, out)
    return out


_NOTHING = Store("", (), Const(0, "int64"))


def _collect(node: Stmt, at: Place, moving: frozenset[str], nest: Nest, out: Straight) -> None:
    match node:
        case Store():
            out.places.append(Place(node, at.copies, at.lanes, at.share, at.pinned))
        case For(var, _, body, LoopKind.UNROLLED):
            copies = (*at.copies, (var, round(nest.trips[var])))
            inside = Place(_NOTHING, copies, at.lanes, at.share, at.pinned)
            _collect(body, inside, moving | {var}, nest, out)
        case For(var, _, body, LoopKind.VECTORIZED) if at.lanes is None and not _vectors(body):
            lanes = Lanes(var, round(nest.trips[var]))
            inside = Place(_NOTHING, at.copies, lanes, at.share, at.pinned)
            _collect(body, inside, moving | {var}, nest, out)
        case For():
            count = at.share * float(prod(n for _, n in at.copies))
            out.inner.append((node, count, at.lanes))
        case If(condition, then):
            copies_here = float(prod(n for _, n in at.copies))
            out.guards += at.share * copies_here
            share = at.share * passing(condition, nest.trips)
            pinned = at.pinned or depends_on(condition, moving)
            _collect(then, Place(_NOTHING, at.copies, at.lanes, share, pinned), moving, nest, out)
        case Block(items):
            for item in items:
                _collect(item, at, moving, nest, out)
        case Allocate(_, body):
            _collect(body, at, moving, nest, out)
        case _:
            assert_never(node)


def _vectors(body: Stmt) -> bool:
    return any(isinstance(s, For) and s.kind is LoopKind.VECTORIZED for s in statements(body))


def vector_lanes(place: Place, nest: Nest, lanes: Lanes | None, *, auto: bool = False) -> int:
    """In how many lanes a store is executed at once: those of ``lanes`` if it has a vector form,
    else 1. With ``auto`` a compiler is asked that may also refuse gathers.
    """
    if lanes is None:
        return 1
    store = place.store
    array = nest.arrays[store.tensor]
    target = flat(store.indices, array.shape)
    if target is None or target.step(lanes.var) != 1 or store.reduce in ("min", "max"):
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
                moved = flat(indices, read.shape)
                if read.itemsize != array.itemsize:
                    return 1
                if auto and (moved is None or moved.step(lanes.var) not in (0, 1)):
                    return 1
            case _:
                return 1
    return lanes.count


def _moving_parts(node: Expr, var: str) -> Iterator[Expr]:
    """The parts of a value that change with a variable, without what is inside indices."""
    if not depends_on(node, frozenset({var})):
        return
    yield node
    if not isinstance(node, Load):
        for child in children(node):
            yield from _moving_parts(child, var)
