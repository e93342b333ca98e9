"""Where a configuration lies in the unit cube, for models that measure distances.

A knob is one coordinate: the logarithm of its value where the values are positive and spread over
at least a factor of four, else the value. Two things that matter on real machines are not monotonic
in the value and get coordinates of their own: the odd part (whether a size divides powers of two:
48 is 16·3, 64 is 64·1), and codes, that is values 0, 1, …, k-1 of a choice without an order or
text, whose levels are all equally far from each other.
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


def knob_coordinates(knob: Knob) -> Array:
    """Coordinates of a knob's values, shape (values, coordinates of this knob); none if it has one
    value.
    """
    count = len(knob.values)
    if count == 1:
        return np.empty((1, 0))
    if not all(isinstance(value, bool | int | float) for value in knob.values):
        return CODE * np.eye(count)
    values = np.array([float(value) for value in knob.values])
    if 2 < count <= MAX_CODES and np.array_equal(values, np.arange(count)):
        return CODE * np.eye(count)
    is_wide = values.min() > 0 and values.max() / values.min() >= WIDE
    columns = [_unit(np.log2(values) if is_wide else values)]
    if count > 2 and values.min() > 0 and all(isinstance(value, int) for value in knob.values):
        whole = np.array([int(value) for value in knob.values], dtype=np.int64)
        odd = np.log2(whole / (whole & -whole))
        if odd.max() > 0:
            columns.append(_unit(odd))
    return np.stack(columns, axis=1)


def coordinates(knobs: tuple[Knob, ...], levels: NDArray[np.integer]) -> NDArray[np.float32]:
    """Coordinates of configurations given by their levels, shape (configurations, knobs)."""
    parts = [knob_coordinates(knob)[levels[:, i]] for i, knob in enumerate(knobs)]
    return np.concatenate(parts, axis=1).astype(np.float32)


def _unit(values: Array) -> Array:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros_like(values)
