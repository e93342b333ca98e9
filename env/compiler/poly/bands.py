"""What a nest allows, from its distances: which loops are parallel, which are permutable, and
whether it may be tiled.

A loop is *parallel* if no distance that is zero in the loops outside it is other than zero in it. A
*band* of loops is permutable if no distance that the loops outside the band leave open (zero in all
of them) is negative in one of the band's loops; then the band's loops may be exchanged and tiled
(Wolf and Lam, PLDI 1991, section 3; Bondhugula et al., PLDI 2008, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from kernelwright.env.compiler.poly.affine_map import AffineMap, identity
from kernelwright.env.compiler.poly.nest import NestError
from kernelwright.env.compiler.poly.sample import coordinates

MAX_VECTORS = 256
# Of the box around all vectors, which are looked at one by one.
MAX_BOX = 1 << 14


@dataclass(frozen=True, slots=True)
class NestFacts:
    """What an order of a nest's loops allows.

    ``legal`` says that every distance stays lexicographically positive, ``bands`` holds the numbers
    of loops in each outermost permutable band, ``parallel`` says it of each loop. ``reason`` is why
    the nest may not be tiled as a whole, empty if it may.
    """

    legal: bool
    bands: tuple[int, ...]
    parallel: tuple[bool, ...]
    reason: str

    @property
    def tilable(self) -> bool:
        """Whether the whole nest is one permutable band."""
        return self.legal and len(self.bands) == 1


def distance_vectors(distances: isl.Set) -> tuple[tuple[int, ...], ...] | None:
    """All distances, sorted, for any extents; None if there are more than `MAX_VECTORS`, they lie
    far apart, or there is no end of them.
    """
    plain = _without_extents(distances)
    if not plain.is_bounded():
        return None
    found: list[tuple[int, ...]] = []

    def keep(point: isl.Point) -> None:
        if len(found) <= MAX_VECTORS:
            found.append(coordinates(point))

    if plain.is_empty():
        return ()
    box = 1
    for place in range(plain.dim(isl.dim_type.set)):
        least, most = plain.dim_min_val(place), plain.dim_max_val(place)
        box *= most.to_python() - least.to_python() + 1
    if box > MAX_BOX:
        return None
    plain.foreach_point(keep)
    return tuple(sorted(found)) if len(found) <= MAX_VECTORS else None


def vectors_set(vectors: Sequence[Sequence[int]]) -> isl.Set:
    """Distance vectors as a set of distances.

    Raises:
        NestError: if there are none, or their lengths differ.
    """
    if len({len(vector) for vector in vectors}) != 1 or not vectors[0]:
        raise NestError(f"expected vectors of one length, found {vectors}")
    points = "; ".join(f"[{', '.join(map(str, vector))}]" for vector in vectors)
    return isl.Set(f"{{ {points} }}")


def direction_vectors(distances: isl.Set) -> tuple[tuple[str, ...], ...]:
    """The signs that distances have, a row each: ``<`` for positive (the first iteration comes
    before), ``=`` for zero, ``>`` for negative (Wolfe's direction vectors).
    """
    depth = distances.dim(isl.dim_type.set)
    signs = {"<": ">= 1", "=": "= 0", ">": "<= -1"}
    names = [f"d{k}" for k in range(depth)]
    rows: list[tuple[str, ...]] = [()]
    for _ in range(depth):
        wider = [(*row, sign) for row in rows for sign in signs]
        rows = []
        for row in wider:
            held = " and ".join(f"d{k} {signs[sign]}" for k, sign in enumerate(row))
            if not distances.intersect(isl.Set(f"{{ [{', '.join(names)}] : {held} }}")).is_empty():
                rows.append(row)
    return tuple(rows)


def nest_facts(distances: isl.Set, map_: AffineMap | None = None) -> NestFacts:
    """What the loops of a nest allow in the order of a map (the program's own without one).

    Raises:
        NestError: if the map is about another number of loops than the distances.
    """
    depth = distances.dim(isl.dim_type.set)
    map_ = map_ or identity(depth)
    if map_.depth != depth:
        raise NestError(f"expected a map of {depth} loops, found {map_.depth}")
    moved = distances.apply(_linear(map_))
    count = len(map_.rows)
    bands, start, open_ = [], 0, moved
    parallel, reason, seen = [], "", moved
    for place in range(count):
        parallel.append(seen.intersect(_where(count, place, "!= 0")).is_empty())
        seen = seen.intersect(_where(count, place, "= 0"))
        against = open_.intersect(_where(count, place, "< 0"))
        if not against.is_empty():
            if not reason:
                vector = _first(against)
                reason = f"distance {vector} is negative in loop {place + 1} of {count}"
            if place > start:
                bands.append(place - start)
                for outside in range(start, place):
                    open_ = open_.intersect(_where(count, outside, "= 0"))
                start = place
    bands.append(count - start)
    legal = moved.subtract(_positive(count)).is_empty()
    if not legal and not reason:
        reason = f"distance {_first(moved.subtract(_positive(count)))} is not positive"
    return NestFacts(legal, tuple(bands), tuple(parallel), reason)


def least_skew(distances: isl.Set, outer: int = 0, inner: int = 1) -> int | None:
    """The smallest factor that makes component ``inner`` plus factor times component ``outer``
    non-negative for every distance; 0 if it is so already, None if no factor does.
    """
    depth = distances.dim(isl.dim_type.set)
    plain = _without_extents(distances)
    against = plain.intersect(_where(depth, inner, "< 0"))
    if against.is_empty():
        return 0
    if not against.intersect(_where(depth, outer, "<= 0")).is_empty():
        return None
    steepest = against.dim_min_val(inner)
    if steepest.is_neginfty():
        return None
    factor = 1
    while not against.apply(_slope(depth, outer, inner, factor)).is_empty():
        factor += 1
        if factor > -int(steepest.to_python()):
            break
    return factor


def _slope(depth: int, outer: int, inner: int, factor: int) -> isl.Map:
    names = [f"d{k}" for k in range(depth)]
    row = ", ".join(names)
    return isl.Map(f"{{ [{row}] -> [] : {names[inner]} + {factor} * {names[outer]} < 0 }}")


def _linear(map_: AffineMap) -> isl.Map:
    names = [f"d{k}" for k in range(map_.depth)]
    rows = [
        " + ".join(f"{entry}*{name}" for entry, name in zip(row, names, strict=True))
        for row in map_.rows
    ]
    return isl.Map(f"{{ [{', '.join(names)}] -> [{', '.join(rows)}] }}")


def _where(depth: int, place: int, condition: str) -> isl.Set:
    names = [f"d{k}" for k in range(depth)]
    return isl.Set(f"{{ [{', '.join(names)}] : d{place} {condition} }}")


def _positive(depth: int) -> isl.Set:
    """The lexicographically positive vectors."""
    names = ", ".join(f"d{k}" for k in range(depth))
    cases = [
        " and ".join([*(f"d{k} = 0" for k in range(place)), f"d{place} > 0"])
        for place in range(depth)
    ]
    return isl.Set(f"{{ [{names}] : {' or '.join(f'({case})' for case in cases)} }}")


def _without_extents(distances: isl.Set) -> isl.Set:
    count = distances.dim(isl.dim_type.param)
    return distances.project_out(isl.dim_type.param, 0, count) if count else distances


def _first(distances: isl.Set) -> tuple[int, ...]:
    return coordinates(_without_extents(distances).sample_point())
