"""How often the loops of a merge run, and what is counted there.

A merge (Kjolstad et al., OOPSLA 2017) goes through the stored coordinates of several segments at
once until one has ended; what is left of another follows in a loop of its own. Coordinates are
taken to be anywhere with the same chance, independently: segments of n_1, n_2, … out of N
coordinates have N (1 - Π (1 - n_k / N)) together, and when one of n has ended, 1 / (n + 1) of
another is left.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Call,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Stmt,
    Store,
    walk,
)
from kernelwright.env.compiler.ir.queries import has_loads, stores
from kernelwright.env.compiler.ir.whiles import UNKNOWN
from kernelwright.env.compiler.machine.affine import mean
from kernelwright.env.compiler.machine.nest import EstimateError

# Of each array of positions: the mean length of its segments, and out of how many coordinates.
Segments: TypeAlias = Mapping[str, tuple[float, float]]


@dataclass(slots=True)
class Merging:
    """What stands for numbers from memory (`affine.mean`), ``steps`` of merges that wait for what
    they load, ``tests`` inside of them that memory decides, and ``exits`` from their loops.
    """

    numbers: dict[str, float]
    steps: float = 0.0
    tests: float = 0.0
    exits: float = 0.0
    trips: dict[str, float] = field(default_factory=dict)


def read_merges(looped: Procedure, segments: Segments) -> Merging:
    """The merges of a procedure whose `While`s are written as loops.

    Raises:
        EstimateError: if an extent is read from an array without a length, or a `While` is no
            merge.
    """
    ends: dict[str, frozenset[str]] = {}
    for store in stores(looped.body):
        if not store.indices and store.reduce is None:
            ends[store.tensor] = frozenset(_read(store.value) & set(segments))
    reader = _Reader(segments, ends)
    reader.visit(looped.body, 1.0)
    return reader.found


def _read(node: Expr) -> set[str]:
    return {part.tensor for part in walk(node) if isinstance(part, Load)}


class _Reader:
    """Visits statements in the order in which they run."""

    def __init__(self, segments: Segments, ends: Mapping[str, frozenset[str]]) -> None:
        self._segments, self._ends = segments, ends
        self.found = Merging({name: length for name, (length, _) in segments.items()})
        self._merged: frozenset[str] = frozenset()

    def visit(self, node: Stmt, runs: float) -> None:
        """A statement that runs so many times."""
        found = self.found
        match node:
            case For(var, extent, If(condition, body)) if extent == UNKNOWN:
                trips = found.trips[var] = found.numbers[var] = self._trips(condition)
                found.exits += runs
                found.steps += runs * trips if _waits(body) else 0.0
                guards = [each for each in _guards(body) if has_loads(each.condition)]
                found.tests += runs * trips * len(guards)
                self.visit(body, runs * trips)
            case For(var, extent, body):
                try:
                    trips = max(0.0, mean(extent, found.trips, found.numbers))
                except KeyError as error:
                    where = f"{var} in {error.args[0]!r}"
                    raise EstimateError(f"expected loops of known extents, found {where}") from None
                found.trips[var] = trips
                self.visit(body, runs * trips)
            case Store(tensor, (), _, "add"):
                found.numbers[tensor] = found.numbers.get(tensor, 0.0) + runs
            case Block(items):
                choices = sum(isinstance(i, If) and has_loads(i.condition) for i in items)
                for item in items:
                    # Of choices that exclude one another each is taken as often as others.
                    is_choice = isinstance(item, If) and has_loads(item.condition)
                    self.visit(item, runs / choices if is_choice else runs)
            case If(_, body) | Allocate(_, body) | Call(_, body):
                self.visit(body, runs)
            case _:
                pass

    def _trips(self, condition: Expr) -> float:
        """Of a merge, or of what is left after one."""
        names = frozenset[str]().union(*(self._ends.get(n, frozenset()) for n in _read(condition)))
        if not names:
            raise EstimateError(f"expected a while over positions, found {condition}")
        together = _union([self._segments[name] for name in sorted(names)])
        if names < self._merged:
            others = [self._segments[name][0] for name in self._merged - names]
            return together / (min(others) + 1)
        self._merged = names
        return together


def _union(segments: list[tuple[float, float]]) -> float:
    coordinates = max(n for _, n in segments)
    absent = math.prod(max(0.0, 1 - length / n) for length, n in segments)
    return segments[0][0] if len(segments) == 1 else coordinates * (1 - absent)


def _waits(body: Stmt) -> bool:
    """Whether how far a cursor steps hangs on what was loaded at it."""
    return any(
        store.reduce == "add" and not store.indices and has_loads(store.value)
        for store in stores(body)
    )


def _guards(node: Stmt) -> Iterator[If]:
    """The guards of a body that are in no loop of it."""
    match node:
        case If(_, body):
            yield node
            yield from _guards(body)
        case Block(items):
            for item in items:
                yield from _guards(item)
        case Allocate(_, body) | Call(_, body):
            yield from _guards(body)
