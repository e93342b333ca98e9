"""Arrays of whole numbers that levels share: packed from sorted elements, and checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.sparse.levels.base import Level, StorageError, Whole


def starts(parents: Whole, coordinates: Whole) -> NDArray[np.bool_]:
    """Which elements of a sorted list are the first with their parent and coordinate."""
    out = np.ones(parents.size, bool)
    out[1:] = (parents[1:] != parents[:-1]) | (coordinates[1:] != coordinates[:-1])
    return out


def index_array(name: str, values: Sequence[int] | Whole, dtype: str) -> NDArray[np.generic]:
    """Whole numbers in the dtype of indices.

    Raises:
        StorageError: if one does not fit.
    """
    array = np.asarray(values, np.int64)
    limits = np.iinfo(np.dtype(dtype))
    if array.size and (array.max() > limits.max or array.min() < limits.min):
        found = int(array.max() if array.max() > limits.max else array.min())
        raise StorageError(f"{name}: expected whole numbers that {dtype} holds, found {found}")
    return array.astype(dtype)


def checked_positions(positions: int, dtype: str) -> int:
    """The number of positions of a level, if the dtype of indices counts them.

    Raises:
        StorageError: if it does not.
    """
    most = int(np.iinfo(np.dtype(dtype)).max)
    if positions > most:
        raise StorageError(
            f"expected at most {most} positions ({dtype} indices), found {positions}"
        )
    return positions


def checked_range(name: str, values: Whole, used: NDArray[np.bool_], low: int, high: int) -> None:
    """That the used elements of an array are from ``low`` to ``high``.

    Raises:
        StorageError: the first that is not.
    """
    wrong = np.flatnonzero(used & ((values < low) | (values > high)))
    if wrong.size:
        at = int(wrong[0])
        raise StorageError(f"{name}[{at}]: expected {low} to {high}, found {values[at]}")


def checked_order(level: Level, parents: Whole, crd: Whole, places: Whole) -> None:
    """That coordinates below each parent ascend and are distinct as the level promises; ``places``
    is where in ``crd`` each element is (they are listed parent after parent).

    Raises:
        StorageError: the first place where they do not.
    """
    if level.ordered:
        step = np.diff(crd)
        bad = (parents[1:] == parents[:-1]) & ((step <= 0) if level.unique else (step < 0))
        if (wrong := np.flatnonzero(bad)).size:
            at = int(wrong[0]) + 1
            least = crd[at - 1] + (1 if level.unique else 0)
            raise StorageError(f"crd[{places[at]}]: expected at least {least}, found {crd[at]}")
    elif level.unique:
        order = np.lexsort((crd, parents))
        again = ~starts(parents[order], crd[order])
        if again.any():
            at = int(order[np.flatnonzero(again)[0]])
            raise StorageError(
                f"crd[{places[at]}]: expected a new coordinate, found {crd[at]} again"
            )


def ranks(lengths: Whole) -> Whole:
    """0, 1, … in each of several groups, given how long they are."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
