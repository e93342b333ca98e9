"""Advice from recordings of other shapes and devices: each of them as it is, and one that carries
over what they have in common to this shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.record import Landscape, LandscapeError, NoLandscapeError
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Problem
from kernelwright.search.advice import Advice, Array
from kernelwright.search.models.coordinates import coordinates
from kernelwright.search.models.gaussian import Table
from kernelwright.search.models.shapes import carried, predicted, shape_coordinates

# A recording without extents is as far as a shape with one extent twice as large.
UNKNOWN = 1.0
# Of a recording that has less than this share of the configurations the others are predicted, if
# enough of them ran.
NEARLY_WHOLE, FEWEST = 0.9, 8


@dataclass(frozen=True, slots=True, eq=False)
class _Recording:
    """A landscape on the rows of ``space.valid``: log2 of ns, infinite where it failed or is not
    known, and what is known.
    """

    name: str
    landscape: Landscape
    cost: Array
    known: NDArray[np.bool_]


def transferred(space: KnobSpace, problem: Problem | None, names: Sequence[str]) -> list[Advice]:
    """The advice of some landscapes, and, where they are of several shapes of a tiled matrix
    product, what a model of them says of the problem's own.

    Raises:
        OptionError: if one cannot be had, or shares no configuration with the space.
    """
    recordings = [_read(space, name) for name in names]
    advice = [_recorded(space, problem, each) for each in recordings]
    common = _carried(space, problem, recordings)
    return [*advice, common] if common is not None else advice


def _read(space: KnobSpace, name: str) -> _Recording:
    try:
        landscape = open_landscape(locate(name))
    except NoLandscapeError as error:
        raise OptionError("transfer", error.expected, error.found, error.nearest) from None
    except LandscapeError as error:
        raise OptionError("transfer", "a readable recording", str(error)) from None
    cost, known = np.full(len(space.valid), math.inf), np.zeros(len(space.valid), dtype=bool)
    row = {index: place for place, index in enumerate(space.valid.tolist())}
    for entry in landscape.entries:
        place = _place(space, row, dict(entry.knobs))
        if place is not None and entry.samples_ns:
            cost[place] = math.log2(entry.true_ns)
        if place is not None:
            known[place] = True
    if not np.isfinite(cost).any():
        found = f"{name!r}, which has none of its configurations"
        raise OptionError("transfer", f"a recording of the knobs {' '.join(space.names)}", found)
    return _Recording(name, landscape, cost, known)


def _recorded(space: KnobSpace, problem: Problem | None, recording: _Recording) -> Advice:
    """A recording as it is. One of a part of the space gets predictions for the rest, for who has
    only looked at the best tells them apart from nothing, unless it says next to nothing.
    """
    cost, known = recording.cost, recording.known
    ran = np.isfinite(cost)
    if known.mean() < NEARLY_WHOLE and ran.sum() >= FEWEST:
        rows = coordinates(space.knobs, space.levels_of(space.valid))
        cost = cost.copy()
        least = cost[ran].min()
        cost[~known] = least + predicted([(rows[ran], cost[ran] - least)], rows[~known])
    name, distance = f"transfer {recording.name}", _distance(recording.landscape, problem)
    return Advice(name, cost, distance, guessed=~known)


def _carried(
    space: KnobSpace, problem: Problem | None, recordings: Sequence[_Recording]
) -> Advice | None:
    """What recordings of two shapes or more say of this one; None where they are fewer or of
    something else. What failed in most of them is expected to fail.
    """
    extents = dict(problem.workloads[0].fixed) if problem is not None else {}
    levels = space.levels_of(space.valid)
    table = shape_coordinates(space.knobs, levels, extents)
    rows: list[tuple[Table, Array]] = []
    shapes, failed = set(), np.zeros(len(levels))
    for recording in recordings:
        there = dict(recording.landscape.extents)
        own = shape_coordinates(space.knobs, levels, there)
        if own is not None and np.isfinite(recording.cost).sum() >= FEWEST:
            rows.append((own, recording.cost))
            shapes.add(tuple(sorted(there.items())))
            failed += recording.known & ~np.isfinite(recording.cost)
    if table is None or len(shapes) < 2:
        return None
    cost = carried(rows, table)
    cost[2 * failed > len(rows)] = math.inf
    return Advice("transfer by shape", cost, 0.0)


def _place(space: KnobSpace, row: Mapping[int, int], knobs: dict[str, object]) -> int | None:
    """The row of a recorded configuration; None if the space has it not."""
    try:
        return row.get(space.index_of(knobs))  # type: ignore[arg-type]
    except ValueError:
        return None


def _distance(landscape: Landscape, problem: Problem | None) -> float:
    """Octaves between the extents of a recording and those of a problem; `UNKNOWN` if they share
    none.
    """
    here = problem.workloads[0].fixed if problem is not None else {}
    there = dict(landscape.extents)
    shared = sorted(set(here) & set(there))
    if not shared:
        return UNKNOWN
    return sum(abs(math.log2(here[name] / there[name])) for name in shared)
