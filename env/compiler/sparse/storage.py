"""Tensors in their formats: arrays of every level and the values, packed, listed and checked.

A `SparseTensor` is made in two ways: `pack` stores elements given by their coordinates, and
`SparseTensor.checked` takes arrays from outside and refuses those that are no tensor of the format,
so that code that follows it never reads out of bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelwright.env.compiler.sparse.format import Format
from kernelwright.env.compiler.sparse.given import (
    Values,
    array_sizes,
    checked_elements,
    checked_shape,
    given_arrays,
    kinds_and_extents,
)
from kernelwright.env.compiler.sparse.levels.arrays import checked_positions
from kernelwright.env.compiler.sparse.levels.base import Arrays, StorageError, Whole
from kernelwright.env.compiler.sparse.named import as_format

DUPLICATES = ("refuse", "sum", "keep")


@dataclass(frozen=True, slots=True, eq=False)
class SparseTensor:
    """A tensor in its format: the arrays of each level by the level's number (from 1), and the
    values by position of the last level.
    """

    format: Format
    shape: tuple[int, ...]
    arrays: Mapping[int, Arrays]
    values: Values

    @classmethod
    def checked(
        cls,
        form: Format | str,
        shape: Sequence[int],
        arrays: Mapping[int, Mapping[str, ArrayLike]],
        values: ArrayLike,
    ) -> SparseTensor:
        """A tensor over arrays from outside, which are shared where they have the dtype of indices.
        What lies beyond the last position is cut off.

        Raises:
            StorageError: naming level, array and place, unless they are a tensor of the format.
        """
        form = as_format(form, len(shape))
        whole_shape = checked_shape(form, shape)
        vals = np.asarray(values)
        if vals.ndim != 1:
            raise StorageError(f"values: expected one dimension, found {vals.ndim}")
        above, kept = 1, {}
        for number, (kind, extent) in enumerate(kinds_and_extents(form, whole_shape), start=1):
            where = f"level {number} ({kind.text})"
            own = given_arrays(where, kind, form.index_dtype, arrays.get(number, {}))
            try:
                positions = kind.check(own, above, extent)
                checked_positions(positions, form.index_dtype)
            except StorageError as error:
                raise StorageError(f"{where}: {error}") from None
            sizes = array_sizes(kind, number, extent, above, positions, form.index_dtype)
            kept[number] = {name: own[name][:size] for name, size in sizes.items()}
            above = positions
        if stray := sorted(set(arrays) - set(kept)):
            raise StorageError(
                f"expected arrays of levels 1 to {len(kept)}, found those of level {stray[0]}"
            )
        if vals.size < above:
            raise StorageError(f"values: expected {above} elements, found {vals.size}")
        tensor = cls(form, whole_shape, kept, vals[:above])
        _check_paths(tensor)
        return tensor

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays and values."""
        return int(self.values.nbytes) + sum(
            int(array.nbytes) for own in self.arrays.values() for array in own.values()
        )

    @property
    def stored(self) -> int:
        """The number of places of values, padding included."""
        return int(self.values.size)

    def arguments(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays as a kernel names them: ``A2_pos``, ``A2_crd``, ``A_vals``."""
        out: dict[str, NDArray[Any]] = {
            f"{name}{number}_{array}": data
            for number, own in self.arrays.items()
            for array, data in own.items()
        }
        out[f"{name}_vals"] = self.values
        return out

    def coordinates_and_values(self) -> tuple[Whole, Values]:
        """All stored elements in the order of storage, padding left out: coordinates (order ×
        elements) and values.
        """
        coordinates, positions = _paths(self)
        return self.format.joined(coordinates), self.values[positions]

    def to_dense(self) -> Values:
        """The tensor as an array; elements of the same coordinates add up."""
        coordinates, values = self.coordinates_and_values()
        out = np.zeros(self.shape, self.values.dtype)
        if self.format.keeps_duplicates:
            np.add.at(out, tuple(coordinates), values)
        else:
            out[tuple(coordinates)] = values if self.shape else values[0]
        return out

    def convert(self, form: Format | str, duplicates: str | None = None) -> SparseTensor:
        """The same tensor in another format. Zeros that fill blocks and diagonals are left out;
        where the format has no such filling, stored zeros are kept.

        Raises:
            StorageError: see `pack`.
        """
        coordinates, values = self.coordinates_and_values()
        if self.format.fills:
            used = values != 0
            coordinates, values = coordinates[:, used], values[used]
        return pack(form, self.shape, coordinates, values, duplicates)


def pack(
    form: Format | str,
    shape: Sequence[int],
    coordinates: ArrayLike,
    values: ArrayLike,
    duplicates: str | None = None,
) -> SparseTensor:
    """Store elements of which coordinates (order × elements) and values are given, in any order.

    ``duplicates`` says what becomes of elements with the same coordinates: ``refuse``, ``sum`` or
    ``keep`` (formats whose last level is not unique). Without it they are kept by formats that can,
    and refused by all others. Zeros are stored like other values.

    Raises:
        StorageError: coordinates out of range or given twice, elements that a level cannot hold,
            or more positions than the dtype of indices counts.
    """
    if duplicates not in (None, *DUPLICATES):
        raise StorageError(f"duplicates: expected {', '.join(DUPLICATES)}, found {duplicates!r}")
    form = as_format(form, len(shape))
    whole_shape = checked_shape(form, shape)
    modes, vals = checked_elements(form, whole_shape, coordinates, values)
    split = form.split(whole_shape, modes)
    order, again = _in_order(form.extents(whole_shape), split, vals.size)
    if order is not None:
        modes, vals = modes[:, order], vals[order]
        split = [level[order] for level in split]
    if again.any():
        action = duplicates or ("keep" if form.keeps_duplicates else "refuse")
        if action == "sum":
            first = np.flatnonzero(~again)
            vals = np.add.reduceat(vals, first)
            split = [level[first] for level in split]
        elif action != "keep":
            at = int(np.flatnonzero(again)[0])
            raise StorageError(
                f"expected every coordinate once, found {_place(modes[:, at])} again; "
                'duplicates="sum" adds them up'
            )
    if duplicates == "keep" and not form.keeps_duplicates:
        raise StorageError(
            f'duplicates="keep": expected a format whose last level is not unique, found '
            f"{form.words}"
        )
    return _packed(form, whole_shape, split, vals)


def _in_order(
    extents: tuple[int, ...], split: list[Whole], size: int
) -> tuple[Whole | None, NDArray[np.bool_]]:
    """The order of elements by their levels' coordinates, None if they are in it, and which in that
    order have the coordinates of the one before.
    """
    again = np.zeros(size, bool)
    if not split or size < 2:
        again[1:] = not split
        return None, again
    if math.prod(extents) < 1 << 62:
        # One number an element: half the time of a sort by several.
        keys = split[0].copy()
        for level, extent in zip(split[1:], extents[1:], strict=True):
            keys *= extent
            keys += level
        steps = np.diff(keys)
        if (steps >= 0).all():
            again[1:] = steps == 0
            return None, again
        order = np.argsort(keys, kind="stable")
        again[1:] = np.diff(keys[order]) == 0
        return order, again
    order = np.lexsort(split[::-1])
    same = np.ones(size - 1, bool)
    for level in split:
        same &= np.diff(level[order]) == 0
    again[1:] = same
    return order, again


def _packed(
    form: Format, shape: tuple[int, ...], split: list[Whole], values: Values
) -> SparseTensor:
    parents, above = np.zeros(values.size, np.int64), 1
    arrays: dict[int, Arrays] = {}
    for number, (kind, extent) in enumerate(kinds_and_extents(form, shape), start=1):
        where = f"level {number} ({kind.text})"
        try:
            checked_positions(kind.room(above, extent), form.index_dtype)
            packed = kind.pack(parents, split[number - 1], above, extent, form.index_dtype)
            checked_positions(packed.positions, form.index_dtype)
        except StorageError as error:
            raise StorageError(f"{where}: {error}") from None
        arrays[number], parents, above = packed.arrays, packed.places, packed.positions
        # Below a table, or places in slots, parents come in another order than coordinates.
        order = np.argsort(parents, kind="stable")
        parents, values = parents[order], values[order]
        split = [level[order] for level in split]
    out = np.zeros(above, values.dtype)
    out[parents] = values
    return SparseTensor(form, shape, arrays, out)


def from_dense(form: Format | str, array: ArrayLike) -> SparseTensor:
    """The elements of an array that are not zero.

    Raises:
        StorageError: see `pack`.
    """
    data = np.asarray(array)
    flat = np.flatnonzero(data.reshape(-1)) if data.ndim else np.zeros(1, np.int64)
    places = np.unravel_index(flat, data.shape) if data.ndim else ()
    coordinates = np.array(places, np.int64).reshape(data.ndim, flat.size)
    return pack(form, data.shape, coordinates, data.reshape(-1)[flat])


def _paths(tensor: SparseTensor) -> tuple[list[Whole], Whole]:
    """The coordinates of each level of all stored elements, and their positions."""
    form = tensor.format
    positions, above = np.zeros(1, np.int64), 1
    coordinates: list[Whole] = []
    for number, (kind, extent) in enumerate(kinds_and_extents(form, tensor.shape), start=1):
        own = tensor.arrays[number]
        listed = kind.listed(own, positions, above, extent, _decided(tensor, number, coordinates))
        coordinates = [level[listed.parents] for level in coordinates]
        coordinates.append(listed.coordinates)
        positions = listed.positions
        above = kind.check(own, above, extent)
    inside = np.ones(positions.size, bool)
    for mode, line in enumerate(form.joined(coordinates)):
        inside &= line < tensor.shape[mode]
    return [level[inside] for level in coordinates], positions[inside]


def _decided(tensor: SparseTensor, number: int, coordinates: list[Whole]) -> Whole:
    """The coordinates that levels above decide, for a level that stores none."""
    form = tensor.format
    addends = form.addends(number)
    if addends is None:
        return coordinates[-1] if coordinates else np.zeros(1, np.int64)
    diagonal, row = addends
    rows = form.extents(tensor.shape)[row - 1]
    return coordinates[diagonal - 1] + coordinates[row - 1] - (rows - 1)


def _check_paths(tensor: SparseTensor) -> None:
    """What no level sees by itself: that elements ascend and are distinct below levels that are not
    unique, and that places without an element are zero.
    """
    kinds = [kind for kind, _ in tensor.format.levels]
    coordinates, positions = _paths(tensor)
    unused = tensor.values != 0
    unused[positions] = False
    if unused.any():
        at = int(np.flatnonzero(unused)[0])
        raise StorageError(
            f"values[{at}]: expected 0 where no element is stored, found {tensor.values[at]}"
        )
    if all(kind.unique for kind in kinds) or positions.size < 2:
        return
    where = f"level {len(kinds)} ({kinds[-1].text})"
    descent = _first_descent(coordinates)
    if descent is not None and all(kind.ordered for kind in kinds):
        found = _place(np.array([level[descent] for level in coordinates]))
        raise StorageError(f"{where}: expected elements in order, found {found} after a later one")
    rank = np.lexsort(coordinates[::-1])
    again = np.ones(positions.size - 1, bool)
    for level in coordinates:
        again &= level[rank][1:] == level[rank][:-1]
    if kinds[-1].unique and again.any():
        at = int(rank[int(np.flatnonzero(again)[0]) + 1])
        found = _place(np.array([level[at] for level in coordinates]))
        raise StorageError(f"{where}: expected every element once, found {found} again")


def _first_descent(coordinates: list[Whole]) -> int | None:
    """The first element that comes after a greater one."""
    size = coordinates[0].size
    undecided, descends = np.ones(size - 1, bool), np.zeros(size - 1, bool)
    for level in coordinates:
        step = np.diff(level)
        descends |= undecided & (step < 0)
        undecided &= step == 0
    return int(np.flatnonzero(descends)[0]) + 1 if descends.any() else None


def _place(coordinates: Whole) -> str:
    return f"({', '.join(str(int(c)) for c in coordinates)})"
