"""Whether an order of execution keeps every dependence, and if not, which pair it breaks.

A dependence p → q asks that p runs before q. An order breaks it if the time of q is not later than
that of p in lexicographic order; the pairs that are broken are a set, which isl computes, and an
order is legal if that set is empty. What is left in it is the counterexample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.poly.affine_map import AffineMap
from kernelwright.env.compiler.poly.exact import ExactDependences, Kind, exact_dependences
from kernelwright.env.compiler.poly.model import Model, Position
from kernelwright.env.compiler.poly.nest import Nest
from kernelwright.env.compiler.poly.sample import coordinates, iteration_text

Point = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """A dependence that an order breaks: its kind, the element, the two iterations in program
    order, and when the order runs each.
    """

    kind: Kind
    element: str
    first: Point
    second: Point
    first_time: tuple[int, ...]
    second_time: tuple[int, ...]

    def __str__(self) -> str:
        first, second = iteration_text(self.first), iteration_text(self.second)
        return (
            f"{self.kind} dependence on {self.element}: iteration {first} must run before "
            f"{second}, but runs at {_time(self.first_time)} and the other at "
            f"{_time(self.second_time)}"
        )


def _time(time: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, time)) + ")"


def violation(dependences: ExactDependences, order: isl.UnionMap) -> Violation | None:
    """A dependence that an order (instance → time) breaks, the earliest of its kind, or None if the
    order is legal.
    """
    broken = order.lex_ge_union_map(order)
    for kind, pairs in dependences.by_kind:
        found = pairs.intersect(broken)
        if not found.is_empty():
            return _shown(dependences.model, kind, found, order)
    return None


def map_violation(
    procedure: Procedure | ExactDependences, loops: Sequence[str], map_: AffineMap
) -> Violation | None:
    """A dependence that a map of a nest's loops breaks, or None if the map is legal.

    Raises:
        NotAffineError: if a part of the procedure is not affine.
        NestError: if the loops form no nest, or the map is about another number of loops.
    """
    dependences = _dependences(procedure)
    found = violation(dependences, Nest(dependences.model, tuple(loops)).order(map_))
    if found is None:
        return None
    # Of the times, what the map says; statements outside the nest keep their places.
    return replace(
        found,
        first_time=_mapped(found.first, loops, map_),
        second_time=_mapped(found.second, loops, map_),
    )


def schedule_violation(
    procedure: Procedure | ExactDependences, positions: Mapping[str, Position]
) -> Violation | None:
    """A dependence that places of statements in time break, by statement (``S0``, ``S1``, … in
    program order): tuples of constants, loop variables and affine expressions as text; the
    program's own place where a name is missing. None if all are kept.

    Raises:
        NotAffineError: if a part of the procedure is not affine.
    """
    dependences = _dependences(procedure)
    return violation(dependences, dependences.model.order(positions))


def _mapped(point: Point, loops: Sequence[str], map_: AffineMap) -> tuple[int, ...]:
    values = np.array([[dict(point)[loop] for loop in loops]], np.int64)
    return tuple(map_.times(values)[0].tolist())


def _dependences(procedure: Procedure | ExactDependences) -> ExactDependences:
    if isinstance(procedure, ExactDependences):
        return procedure
    return exact_dependences(procedure)


def _shown(model: Model, kind: Kind, pairs: isl.UnionMap, order: isl.UnionMap) -> Violation:
    """The first broken pair in program order, for small numbers that a person can check."""
    pair = pairs.get_map_list().get_map(0)
    first = _least(pair.domain())
    second = _least(pair.intersect_domain(first).range())
    by_name = {i.name: i for i in model.instances}
    ends = [by_name[part.get_tuple_name()] for part in (first, second)]
    points = [
        tuple(zip(end.variables, _coordinates(part), strict=True))
        for end, part in zip(ends, (first, second), strict=True)
    ]
    times = [
        tuple(_coordinates(isl.Set.from_union_set(isl.UnionSet.from_set(part).apply(order))))
        for part in (first, second)
    ]
    element = _element(model, kind, first, second)
    return Violation(kind, element, points[0], points[1], times[0], times[1])


def _least(points: isl.Set) -> isl.Set:
    """The lexicographically first point, extents as small as they may be for it."""
    if points.dim(isl.dim_type.param):
        points = points.intersect_params(isl.Set.from_basic_set(points.params().sample()))
    return points.lexmin()


def _coordinates(point: isl.Set) -> tuple[int, ...]:
    return coordinates(point.sample_point())


def _element(model: Model, kind: Kind, first: isl.Set, second: isl.Set) -> str:
    """The element that two iterations meet at."""
    ends = [isl.UnionSet.from_set(part) for part in (first, second)]
    writes, reads = model.writes(), model.reads()
    before, after = {
        Kind.FLOW: (writes, reads),
        Kind.ANTI: (reads, writes),
        Kind.OUTPUT: (writes, writes),
    }[kind]
    met = ends[0].apply(before).intersect(ends[1].apply(after))
    element = met.get_set_list().get_set(0)
    name = element.get_tuple_name().removeprefix("t_")
    # In front of a temporary's own indices stand the loops around its allocation.
    outside = next((len(dict(i.private).get(name, ())) for i in model.instances), 0)
    return f"{name}[{', '.join(map(str, _coordinates(element)[outside:]))}]"
