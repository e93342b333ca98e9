"""Where a configuration lies in the unit cube, for models that measure distances.

A knob is one coordinate: the logarithm of its value where the values are positive and spread over
at least a factor of four, else the value. Two things that matter on real machines are not monotonic
in the value and get coordinates of their own: the odd part (whether a size divides powers of two:
48 is 16·3, 64 is 64·1), and codes, that is values 0, 1, …, k-1 of a choice without an order or
text, whose levels are all equally far from each other.

Two knobs of the same values next to each other are two sides of one thing (a tile's rows and
columns): the mean of their coordinates, the logarithm of an area, is a coordinate too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.types import Knob

Array = NDArray[np.float64]

WIDE = 4.0  # a greatest value this many times the least is read on a logarithmic scale
MAX_CODES = 6  # a longer run of whole numbers from 0 is a size, not a choice
# Two levels of a choice differ in two of its coordinates; so they are 1 apart.
CODE = 2**-0.5


def is_ordered(knob: Knob) -> bool:
    """Whether a knob's values are sizes; else they are codes or text."""
    if not all(isinstance(value, bool | int | float) for value in knob.values):
        return False
    count = len(knob.values)
    return not (2 < count <= MAX_CODES and knob.values == tuple(range(count)))


def knob_coordinates(knob: Knob) -> Array:
    """Coordinates of a knob's values, shape (values, coordinates of this knob); none if it has one
    value.
    """
    count = len(knob.values)
    if count == 1:
        return np.empty((1, 0))
    if not is_ordered(knob):
        return CODE * np.eye(count)
    values = np.array([float(value) for value in knob.values])
    is_wide = values.min() > 0 and values.max() / values.min() >= WIDE
    columns = [_unit(np.log2(values) if is_wide else values)]
    if count > 2 and values.min() > 0 and all(isinstance(value, int) for value in knob.values):
        whole = np.array([int(value) for value in knob.values], dtype=np.int64)
        odd = np.log2(whole / (whole & -whole))
        if odd.max() > 0:
            columns.append(_unit(odd))
    return np.stack(columns, axis=1)


def twins(knobs: tuple[Knob, ...]) -> tuple[tuple[int, int], ...]:
    """Pairs of knobs with the same values, each knob in one pair at most, in knob order."""
    found: list[tuple[int, int]] = []
    taken: set[int] = set()
    for left, knob in enumerate(knobs):
        for right in range(left + 1, len(knobs)):
            same = len(knob.values) > 2 and knob.values == knobs[right].values
            if same and not {left, right} & taken:
                found.append((left, right))
                taken |= {left, right}
    return tuple(found)


def coordinates(knobs: tuple[Knob, ...], levels: NDArray[np.integer]) -> NDArray[np.float32]:
    """Coordinates of configurations given by their levels, shape (configurations, knobs)."""
    parts = [knob_coordinates(knob)[levels[:, i]] for i, knob in enumerate(knobs)]
    areas = [
        (parts[left][:, :1] + parts[right][:, :1]) / 2
        for left, right in twins(knobs)
        if is_ordered(knobs[left])
    ]
    return np.concatenate([*parts, *areas], axis=1).astype(np.float32)


def _unit(values: Array) -> Array:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros_like(values)
