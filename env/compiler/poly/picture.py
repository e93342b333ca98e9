"""What a picture of an iteration space shows: its points and the dependences between them as
arrows, in the program's coordinates and in those of a map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.poly.affine_map import AffineMap, identity
from kernelwright.env.compiler.poly.exact import Kind, exact_dependences
from kernelwright.env.compiler.poly.nest import Nest, NestError
from kernelwright.env.compiler.poly.points import Points, iteration_points

MAX_POINTS = 4096


@dataclass(frozen=True, slots=True)
class Arrows:
    """The dependences of one kind: numbers of points, (count, 2), the first one before the other;
    ``broken`` says which of them the map turns around.
    """

    kind: Kind
    ends: NDArray[np.int64]
    broken: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Picture:
    """An iteration space before and after a map: ``points`` and ``moved`` as (count, loops) and
    (count, rows), in program order, with arrows between them.
    """

    loops: tuple[str, ...]
    map_: AffineMap
    points: Points
    moved: Points
    arrows: tuple[Arrows, ...]


def picture(
    procedure: Procedure,
    loops: Sequence[str],
    map_: AffineMap | None = None,
    extents: Mapping[str, int] | None = None,
) -> Picture:
    """The points of a nest's iterations and the exact dependences between them, for a domain of at
    most `MAX_POINTS` points; extents are given where the procedure leaves them open.

    Raises:
        NestError: if the loops form no nest, are not outermost, hold more points, or the map is
            about another number of loops.
        NotAffineError: if a part of the procedure is not affine.
    """
    dependences = exact_dependences(procedure)
    nest = Nest(dependences.model, tuple(loops))
    map_ = map_ or identity(len(nest.loops))
    if map_.depth != len(nest.loops):
        raise NestError(f"expected a map of {len(nest.loops)} loops, found {map_.depth}")
    for instance in nest.instances:
        if instance.variables[: len(nest.loops)] != nest.loops:
            around = instance.variables[: instance.variables.index(nest.loops[0])]
            raise NestError(f"expected outermost loops, found {nest.loops[0]} inside {around}")
    depth = len(nest.loops)
    found = [iteration_points(i, extents)[:, :depth] for i in nest.instances]
    points = np.unique(np.concatenate(found), axis=0)
    if len(points) > MAX_POINTS:
        raise NestError(f"expected at most {MAX_POINTS} points, found {len(points)}")
    number = {tuple(point): k for k, point in enumerate(points.tolist())}
    moved = map_.times(points)
    arrows = []
    for kind, pairs in dependences.by_kind:
        ends = sorted((number[a], number[b]) for a, b in nest.pairs(pairs, extents or {}) if a != b)
        unique = np.array(sorted(set(ends)), np.int64).reshape(-1, 2)
        broken = np.array([tuple(moved[b]) <= tuple(moved[a]) for a, b in unique.tolist()], bool)
        arrows.append(Arrows(kind, unique, broken))
    return Picture(nest.loops, map_, points, moved, tuple(arrows))
