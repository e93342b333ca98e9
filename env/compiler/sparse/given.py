"""What comes from outside, a shape, elements or arrays, checked before a tensor is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelwright.env.compiler.ir.nodes import Const
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.sparse.format import LETTERS, Format
from kernelwright.env.compiler.sparse.levels.base import Level, Site, StorageError, Whole

Values: TypeAlias = NDArray[Any]


def checked_shape(form: Format, shape: Sequence[int]) -> tuple[int, ...]:
    """The sizes of the modes.

    Raises:
        StorageError: unless there are as many as the format stores, none negative.
    """
    out = tuple(index(n) for n in shape)
    if len(out) != form.order:
        raise StorageError(f"shape: expected {form.order} modes ({form.words}), found {len(out)}")
    for mode, n in enumerate(out):
        if n < 0:
            raise StorageError(f"shape: expected {LETTERS[mode]} of at least 0, found {n}")
    return out


def kinds_and_extents(form: Format, shape: tuple[int, ...]) -> list[tuple[Level, int]]:
    """Each level's kind and number of coordinates."""
    return [
        (kind, extent) for (kind, _), extent in zip(form.levels, form.extents(shape), strict=True)
    ]


def checked_elements(
    form: Format, shape: tuple[int, ...], coordinates: ArrayLike, values: ArrayLike
) -> tuple[Whole, Values]:
    """Coordinates and values as arrays.

    Raises:
        StorageError: other shapes than (order, n) and (n,), or a coordinate out of range.
    """
    vals, given = np.asarray(values), np.asarray(coordinates)
    if vals.ndim != 1 or given.shape != (form.order, vals.size):
        raise StorageError(
            f"expected values of one dimension and coordinates of shape ({form.order}, values), "
            f"found {vals.shape} and {given.shape}"
        )
    if given.size and given.dtype.kind not in "iu":
        raise StorageError(f"coordinates: expected whole numbers, found {given.dtype}")
    for mode, n in enumerate(shape):
        outside = np.flatnonzero((given[mode] < 0) | (given[mode] >= n))
        if outside.size:
            at = int(outside[0])
            raise StorageError(
                f"coordinate {LETTERS[mode]} of element {at}: expected 0 to {n - 1}, found "
                f"{int(given[mode, at])}"
            )
    return given.astype(np.int64), vals


def given_arrays(
    where: str, kind: Level, dtype: str, arrays: Mapping[str, ArrayLike]
) -> dict[str, NDArray[np.generic]]:
    """The arrays of a level in its dtype.

    Raises:
        StorageError: one that is missing, or is no line of whole numbers that the dtype holds.
    """
    expected = {a.name: a.dtype for a in kind.arrays(_site(1, 0, 0, 0, dtype))}
    if stray := sorted(set(arrays) - set(expected)):
        raise StorageError(
            f"{where}: expected {', '.join(expected) or 'no arrays'}, found {stray[0]}"
        )
    out: dict[str, NDArray[np.generic]] = {}
    for name, wanted in expected.items():
        if name not in arrays:
            raise StorageError(f"{where}: {name}: expected an array, found none")
        data = np.asarray(arrays[name])
        if data.ndim != 1 or (data.size and data.dtype.kind not in "iu"):
            raise StorageError(
                f"{where}: {name}: expected one dimension of whole numbers, found {data.ndim} of "
                f"{data.dtype}"
            )
        limits = np.iinfo(np.dtype(wanted))
        outside = np.flatnonzero((data > limits.max) | (data < limits.min)) if data.size else data
        if outside.size:
            at = int(outside[0])
            raise StorageError(
                f"{where}: {name}[{at}]: expected a number that {wanted} holds, found {data[at]}"
            )
        out[name] = data.astype(wanted, copy=False)
    return out


def _site(number: int, extent: int, parents: int, positions: int, dtype: str) -> Site:
    return Site("", number, whole(extent), whole(parents), whole(positions), dtype)


def array_sizes(
    kind: Level, number: int, extent: int, above: int, positions: int, dtype: str
) -> dict[str, int]:
    """The number of elements of each array of a level."""
    out = {}
    for array in kind.arrays(_site(number, extent, above, positions, dtype)):
        size = simplify(array.size)
        if not isinstance(size, Const):
            raise AssertionError(f"{kind.text}: {array.name} has no size in constants")
        out[array.name] = int(size.value)
    return out
