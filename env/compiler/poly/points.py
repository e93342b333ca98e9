"""Iterations as arrays: the points of a domain, the order in which an affine map with tiles runs
them, and the elements that they touch in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.evaluate import ON_ARRAYS
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Const,
    Expr,
    Load,
    Procedure,
    Unary,
    Var,
    children,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.poly.affine_map import AffineMap
from kernelwright.env.compiler.poly.exact import NotAffineError
from kernelwright.env.compiler.poly.model import Instance, build_model
from kernelwright.env.compiler.poly.nest import Nest, NestError

Points = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Touched:
    """The elements that one access of a statement touches, point by point: indices as (count,
    rank).
    """

    tensor: str
    write: bool
    indices: Points


def iteration_points(instance: Instance, extents: Mapping[str, int] | None = None) -> Points:
    """The iterations of a statement in program order, as (count, loops).

    Raises:
        NotAffineError: if an extent or a condition reads memory.
    """
    points: Points = np.zeros((1, 0), np.int64)
    names: tuple[str, ...] = ()
    for loop in instance.loops:
        counts = np.maximum(_values(loop.extent, points, names, extents or {}), 0)
        inner = np.arange(int(counts.sum()), dtype=np.int64)
        inner -= np.repeat(np.cumsum(counts) - counts, counts)
        points = np.column_stack((np.repeat(points, counts, axis=0), inner))
        names = (*names, loop.var)
    for condition in instance.conditions:
        points = points[_values(condition, points, names, extents or {}).astype(bool)]
    return points


def in_order(points: Points, map_: AffineMap, tiles: Sequence[int] = ()) -> Points:
    """The points in the order of a map, tile by tile if there are sizes of tiles, one a row; points
    of one time keep their order. Whether the order is legal is no matter.

    Raises:
        NestError: if there are tiles of another number of rows.
    """
    return points[np.lexsort(times_of(points, map_, tiles).T[::-1])]


def times_of(points: Points, map_: AffineMap, tiles: Sequence[int]) -> Points:
    """When points run: numbers of tiles, then the map's rows.

    Raises:
        NestError: if there are tiles of another number of rows.
    """
    if len(tiles) not in (0, len(map_.rows)):
        raise NestError(f"expected {len(map_.rows)} sizes of tiles, found {len(tiles)}")
    times = map_.times(points)
    if not tiles:
        return times
    return np.column_stack((times // np.array(tiles, np.int64), times))


def nest_points(
    procedure: Procedure,
    loops: Sequence[str],
    map_: AffineMap,
    tiles: Sequence[int] = (),
    extents: Mapping[str, int] | None = None,
) -> tuple[Instance, Points]:
    """The one statement in a nest of outermost loops, and its points in the order of a map.

    Raises:
        NestError: if the loops form no nest around one statement, or are not all its loops.
        NotAffineError: if an extent or a condition reads memory.
    """
    nest = Nest(build_model(procedure), tuple(loops))
    if len(nest.instances) != 1 or nest.instances[0].variables != tuple(loops):
        found = "; ".join(" ".join(i.variables) for i in nest.instances)
        raise NestError(f"expected one statement in the loops {' '.join(loops)}, found {found}")
    (instance,) = nest.instances
    return instance, in_order(iteration_points(instance, extents), map_, tiles)


def touched(
    instance: Instance, points: Points, extents: Mapping[str, int] | None = None
) -> tuple[Touched, ...]:
    """What a statement touches at each point, access by access in the order in which it runs: its
    loads from left to right, the element it combines with, and the store.

    Raises:
        NotAffineError: if an index reads memory.
    """
    store = instance.store
    reads = [(node.tensor, node.indices) for node in _loads(store.value)]
    if store.reduce is not None:
        reads.append((store.tensor, store.indices))
    out = [*((*read, False) for read in reads), (store.tensor, store.indices, True)]
    names = instance.variables

    def elements(indices: Sequence[Expr]) -> Points:
        columns = [_values(index, points, names, extents or {}) for index in indices]
        return np.column_stack(columns) if columns else np.zeros((len(points), 0), np.int64)

    return tuple(Touched(tensor, write, elements(indices)) for tensor, indices, write in out)


def _loads(node: Expr) -> Iterator[Load]:
    for child in children(node):
        yield from _loads(child)
    if isinstance(node, Load):
        yield node


def _values(node: Expr, points: Points, names: Sequence[str], extents: Mapping[str, int]) -> Points:
    """The value of a whole-number expression or condition at every point."""
    match node:
        case Const(value, _):
            return np.full(len(points), int(value), np.int64)
        case Var(name):
            if name in names:
                column: Points = points[:, list(names).index(name)]
                return column
            return np.full(len(points), extents[name], np.int64)
        case Binary(op, left, right) if op in ON_ARRAYS:
            a = _values(left, points, names, extents)
            result: Points = ON_ARRAYS[op](a, _values(right, points, names, extents))
            return result
        case Unary("not", operand):
            opposite: Points = np.logical_not(_values(operand, points, names, extents))
            return opposite
    found = print_expr(node)
    raise NotAffineError(f"expected arithmetic on loop variables and extents, found {found}")
