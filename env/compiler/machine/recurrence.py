"""Recurrences: values that a loop computes from what it stored some iterations ago, as a scan or a
Gauss-Seidel sweep does.

An iteration cannot take less time than the slowest circle of dependences, its operations over the
iterations that it spans (the recurrence bound of modulo scheduling: Rau, Iterative modulo
scheduling, MICRO 1994). Unrolled copies that do not wait for one another share an iteration: rows
or time steps that are jammed hide the latency of one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from kernelwright.env.compiler.ir.nodes import Expr, Load, Store, children, walk
from kernelwright.env.compiler.machine.affine import flat
from kernelwright.env.compiler.machine.nest import Nest

# Iterations that are followed, and after how many of them the pace is taken to be steady.
FOLLOWED, WARM = 16, 8


@dataclass(frozen=True, slots=True)
class Update:
    """A store of a loop's body, its unrolled copies, and how many neighbouring elements it writes
    at once.
    """

    store: Store
    copies: tuple[tuple[str, int], ...]
    width: int


@dataclass(frozen=True, slots=True)
class _Edge:
    """What a copy waits for: which other one, how many iterations ago, and how many operations
    later it is done.
    """

    source: int
    distance: int
    operations: int


def recurrence(updates: Sequence[Update], around: str, nest: Nest) -> float:
    """Operations that one iteration of the loop ``around`` waits for in the mean; 0 if no iteration
    waits for another.
    """
    by_tensor: dict[str, list[Update]] = {}
    for update in updates:
        by_tensor.setdefault(update.store.tensor, []).append(update)
    return max((_pace(found, around, nest) for found in by_tensor.values()), default=0.0)


def _pace(updates: Sequence[Update], around: str, nest: Nest) -> float:
    """The mean over iterations for the stores to one tensor."""
    if not any(_own_loads(update.store) for update in updates):
        return 0.0
    shape = nest.arrays[updates[0].store.tensor].shape
    written: list[tuple[int, int]] = []
    reads: list[list[tuple[int, int]]] = []
    step, terms = 0, None
    for update in updates:
        target = flat(update.store.indices, shape)
        if target is None or not target.factor(around) or terms not in (None, target.terms):
            return 0.0
        step, terms = target.factor(around), target.terms
        found = []
        for load in _own_loads(update.store):
            offset = flat(load.indices, shape)
            if offset is not None and offset.terms == terms:
                found.append((offset.constant, _depth(update.store.value, load)))
        for places in product(*(range(count) for _, count in update.copies)):
            shift = sum(
                place * target.factor(var)
                for place, (var, _) in zip(places, update.copies, strict=True)
            )
            written.append((target.constant + shift, update.width))
            reads.append([(constant + shift, depth) for constant, depth in found])
    return _steady(_edges(written, reads, step))


def _edges(
    written: Sequence[tuple[int, int]], reads: Sequence[Sequence[tuple[int, int]]], step: int
) -> list[list[_Edge]]:
    """What each store waits for, given the places and widths of all, and the places and depths of
    what each reads.
    """
    by_place = sorted((place, node) for node, (place, _) in enumerate(written))
    widest = max(width for _, width in written) - 1
    # What lies further away was written too long ago to be waited for.
    reach = FOLLOWED * abs(step) + widest
    low, high = (widest, reach) if step > 0 else (reach, widest)
    out = []
    for node, found in enumerate(reads):
        edges = []
        for constant, depth in found:
            first = bisect_left(by_place, (constant - low, 0))
            last = bisect_right(by_place, (constant + high, len(written)))
            for place, source in by_place[first:last]:
                distance = _distance(place - constant, written[source][1], step)
                if distance is not None and (distance > 0 or source < node):
                    edges.append(_Edge(source, distance, depth))
        out.append(edges)
    return out


def _distance(apart: int, width: int, step: int) -> int | None:
    """After how many iterations a place is read that lies ``apart`` behind the one written, one of
    ``width`` neighbours; None if never.
    """
    reach = width - 1
    low, high = (apart - reach, apart + reach) if step > 0 else (-apart - reach, -apart + reach)
    pace = abs(step)
    distance = max(0, -(-low // pace))
    return distance if distance * pace <= high else None


def _steady(edges: Sequence[Sequence[_Edge]]) -> float:
    """Operations an iteration once the pace is steady."""
    if not any(edge.distance > 0 for found in edges for edge in found):
        return 0.0
    done: list[list[int]] = []
    for now in range(FOLLOWED + 1):
        times: list[int] = []
        for found in edges:
            latest = 0
            for edge in found:
                if edge.distance > now:
                    continue
                before = times if edge.distance == 0 else done[now - edge.distance]
                latest = max(latest, before[edge.source] + edge.operations)
            times.append(latest)
        done.append(times)
    return (max(done[FOLLOWED]) - max(done[WARM])) / (FOLLOWED - WARM)


def _own_loads(store: Store) -> list[Load]:
    """What a store reads of the tensor that it writes."""
    return [p for p in walk(store.value) if isinstance(p, Load) and p.tensor == store.tensor]


def _depth(node: Expr, target: Expr) -> int:
    """How many operations lie between a load and the value it is part of; -1 if it is in none."""
    if node is target:
        return 0
    found = [_depth(child, target) for child in children(node)]
    best = max((depth for depth in found if depth >= 0), default=-1)
    return best + 1 if best >= 0 else -1
