"""Merge lattices: which operands a loop over one variable has to visit together, and what is left
of the expression where some of them have ended (Kjolstad et al., OOPSLA 2017, section 5).

A point is a set of iterators that all have coordinates left. A sum needs what either side has
(union), a product what both have (intersection). ``FULL`` stands for every coordinate: what a
dense operand or a number has. It is dropped from a product, because a dense operand is located at
the coordinates of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

from kernelwright.env.compiler.sparse.notation import (
    Access,
    Add,
    Expression,
    Literal,
    Mul,
    Neg,
    Sub,
)

FULL = Access("", ())
Point: TypeAlias = frozenset[Access]


def points(node: Expression, kind: Callable[[Access], str]) -> tuple[Point, ...]:
    """The points of the lattice, each before those that it contains.

    ``kind`` says of an access whether at this variable it has to be iterated (``iterate``), has
    every coordinate (``full``), or can be located where another operand of a product is, and
    iterated where none is (``either``).
    """
    found = set(_points(node, kind))
    # Every coordinate is never exhausted before the others are, and whoever can be located needs
    # no iterator beside it.
    if any(FULL in point for point in found):
        found = {_steered(point, kind) for point in found if FULL in point}
    return tuple(sorted(found, key=lambda p: (-len(p), sorted(map(repr, p)))))


def _points(node: Expression, kind: Callable[[Access], str]) -> list[Point]:
    match node:
        case Literal():
            return [frozenset((FULL,))]
        case Access():
            return [frozenset((FULL if kind(node) == "full" else node,))]
        case Neg(operand):
            return _points(operand, kind)
        case Mul(left, right):
            ours, theirs = _points(left, kind), _points(right, kind)
            return [_both(first, second, kind) for first in ours for second in theirs]
        case Add(left, right) | Sub(left, right):
            ours, theirs = _points(left, kind), _points(right, kind)
            return [first | second for first in ours for second in theirs] + ours + theirs
        case _:
            assert_never(node)


def _both(first: Point, second: Point, kind: Callable[[Access], str]) -> Point:
    """The point of a product: what has every coordinate, or can be located, follows the other."""
    if (FULL in first) != (FULL in second):
        return (first | second) - {FULL}
    if FULL in first:
        return first | second
    if not _steered(second, kind):
        return first
    return first | second if _steered(first, kind) else second


def _steered(point: Point, kind: Callable[[Access], str]) -> Point:
    """A point without what can be located."""
    return frozenset(a for a in point if a == FULL or kind(a) != "either")
