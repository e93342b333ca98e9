"""Where sparse matrices have their nonzeros: kinds of matrices, drawn at random.

Every kind is a function of the number of rows and columns, of exactly how many places it gives and
of a generator, `KINDS` its name. It returns the rows and the columns of distinct places, sorted by
row and then by column. Equal seeds give equal places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Whole: TypeAlias = NDArray[np.int64]
Coordinates: TypeAlias = tuple[Whole, Whole]
Kind: TypeAlias = Callable[[int, int, int, np.random.Generator], Coordinates]

# Where more than one place in so many is drawn, all places are looked at.
SPARSE = 32


def uniform(rows: int, cols: int, nnz: int, rng: np.random.Generator) -> Coordinates:
    """Every set of ``nnz`` places is equally likely.

    Raises:
        ValueError: if a size is negative or ``nnz`` is more than the places.
    """
    row, col = uniform_tensor((rows, cols), nnz, rng)
    return row, col


def uniform_rows(rows: int, cols: int, nnz: int, rng: np.random.Generator) -> Coordinates:
    """Rows of the same length: nnz // rows places in each, and one more in nnz % rows of them, of
    which every set is equally likely; within a row, every set of columns is.

    Raises:
        ValueError: see `uniform`.
    """
    room = _room((rows, cols), nnz)
    if nnz == 0:
        return _places(_no_places(), cols)
    length = nnz // rows
    longer = np.zeros(rows, np.int64)
    longer[_subset(rows, nnz % rows, rng)] = 1
    if nnz * SPARSE >= room:
        order = np.argsort(rng.random((rows, cols)), axis=1)
        chosen = np.arange(cols) < (length + longer)[:, None]
        row = np.nonzero(chosen)[0]
        return _places(np.sort(row * cols + order[chosen]), cols)
    keys, lengths = _no_places(), length + longer
    while keys.size < nnz:
        # A column that a row has already is drawn again.
        missing = np.repeat(np.arange(rows), lengths - np.bincount(keys // cols, minlength=rows))
        keys = np.sort(np.concatenate((keys, missing * cols + rng.integers(0, cols, missing.size))))
        keys = keys[np.diff(keys, prepend=-1) > 0]
    return _places(keys, cols)


def power_law(
    rows: int, cols: int, nnz: int, rng: np.random.Generator, *, exponent: float = 1.0
) -> Coordinates:
    """Places drawn one after another without replacement, each with a probability that is
    proportional to the weight of its row times that of its column. The weights of rows are 1,
    2^-exponent, 3^-exponent, … in a random order, those of columns likewise (Zipf's law): row
    lengths follow them as long as rows are far from full.

    Raises:
        ValueError: see `uniform`; or if the exponent is not within 0 to 1 (beyond, a few places are
            drawn again almost without end).
    """
    room = _room((rows, cols), nnz)
    if not 0 <= exponent <= 1:
        raise ValueError(f"exponent: expected 0 to 1, found {exponent}")
    if nnz == 0:
        return _places(_no_places(), cols)
    row_weights = rng.permutation(np.arange(1.0, rows + 1) ** -exponent)
    col_weights = rng.permutation(np.arange(1.0, cols + 1) ** -exponent)
    if nnz * SPARSE >= room:
        # The first of exponential clocks with the weights as rates (Efraimidis and Spirakis 2006).
        clocks = rng.exponential(size=(rows, cols))
        clocks /= row_weights[:, None]
        clocks /= col_weights
        return _places(np.sort(np.argpartition(clocks.ravel(), nnz - 1)[:nnz]), cols)
    row_ends, col_ends = np.cumsum(row_weights), np.cumsum(col_weights)
    keys, size = _no_places(), nnz
    while keys.size < nnz:
        # The first distinct ones of a stream of draws with replacement.
        more = _weighted(row_ends, size, rng) * cols + _weighted(col_ends, size, rng)
        stream = np.concatenate((keys, more))
        _, first = np.unique(stream, return_index=True)
        found = first.size - keys.size
        keys = stream[np.sort(first)[:nnz]]
        # As many as are missing at the rate of this time, which falls.
        size = min(math.ceil(1.25 * (nnz - keys.size) * size / max(found, 1)), 4 * nnz)
    return _places(np.sort(keys), cols)


def banded(
    rows: int,
    cols: int,
    nnz: int,
    rng: np.random.Generator,
    *,
    half_bandwidth: int | None = None,
) -> Coordinates:
    """Every set of ``nnz`` places with |column - row| of at most the half-bandwidth is equally
    likely. Without one, it is the least with which the band is at most half full, or as wide as the
    matrix where there is none.

    Raises:
        ValueError: see `uniform`; or if the band has less than ``nnz`` places.
    """
    _room((rows, cols), nnz)
    if half_bandwidth is None:
        half_bandwidth = _narrowest(rows, cols, 2 * nnz)
    if half_bandwidth < 0:
        raise ValueError(f"half_bandwidth: expected at least 0, found {half_bandwidth}")
    starts, lengths = _band(rows, cols, half_bandwidth)
    ends = np.cumsum(lengths)
    room = int(lengths.sum())
    if nnz > room:
        raise ValueError(f"nnz: expected at most the {room} places of the band, found {nnz}")
    places = _subset(room, nnz, rng)
    row = np.searchsorted(ends, places, side="right").astype(np.int64)
    return row, places - (ends - lengths)[row] + starts[row]


def full_band(rows: int, cols: int, nnz: int, rng: np.random.Generator) -> Coordinates:
    """`banded` in the narrowest band that has ``nnz`` places: nearly all of them, as in matrices of
    finite differences.

    Raises:
        ValueError: see `uniform`.
    """
    _room((rows, cols), nnz)
    return banded(rows, cols, nnz, rng, half_bandwidth=_narrowest(rows, cols, nnz))


def block(
    rows: int, cols: int, nnz: int, rng: np.random.Generator, *, size: int = 8
) -> Coordinates:
    """Dense blocks of size × size on a grid with its origin at (0, 0), cut off at the last row and
    column. Every set of ⌈nnz / size²⌉ blocks is equally likely; where these have less than ``nnz``
    places, because some are cut off, as many more are drawn as whole blocks would make up for it,
    until they have. Those last in the grid's row-major order lose the last places in excess.

    Raises:
        ValueError: see `uniform`; or if the size is less than 1.
    """
    _room((rows, cols), nnz)
    if size < 1:
        raise ValueError(f"size: expected at least 1, found {size}")
    if nnz == 0:
        return _places(_no_places(), cols)
    across = max(-(-cols // size), 1)
    blocks, held = -(-rows // size) * across, 0
    chosen = _no_places()
    while held < nnz:
        count = min(blocks - chosen.size, -(-(nnz - held) // size**2))
        # Numbers among the blocks that are left, then among all.
        left = _subset(blocks - chosen.size, count, rng)
        more = left + np.searchsorted(chosen - np.arange(chosen.size), left, side="right")
        chosen = np.sort(np.concatenate((chosen, more)))
        heights = np.minimum(size, rows - chosen // across * size)
        widths = np.minimum(size, cols - chosen % across * size)
        held = int((heights * widths).sum())
    within = np.arange(size)
    row, col = np.broadcast_arrays(
        (chosen // across * size)[:, None, None] + within[:, None],
        (chosen % across * size)[:, None, None] + within,
    )
    inside = (row < rows) & (col < cols)
    return _places(np.sort((row[inside] * cols + col[inside])[:nnz]), cols)


def empty_rows(
    rows: int, cols: int, nnz: int, rng: np.random.Generator, *, holding: float = 1 / 16
) -> Coordinates:
    """``uniform`` within ⌈holding · rows⌉ rows, or as many as have ``nnz`` places if that is more,
    of which every set is equally likely; all other rows are empty.

    Raises:
        ValueError: see `uniform`; or if the fraction is not within 0 to 1.
    """
    _room((rows, cols), nnz)
    if not 0 <= holding <= 1:
        raise ValueError(f"holding: expected a fraction from 0 to 1, found {holding}")
    count = max(math.ceil(holding * rows), -(-nnz // max(cols, 1)))
    held = _subset(rows, count, rng)
    row, col = uniform(count, cols, nnz, rng)
    return held[row], col


def dense_rows(
    rows: int, cols: int, nnz: int, rng: np.random.Generator, *, full: int = 4
) -> Coordinates:
    """``full`` rows, of which every set is equally likely, have all their places, and the others
    are ``uniform``. Full rows are fewer where they would have more than half of ``nnz``: as many as
    have half, yet one if ``nnz`` is enough for it.

    Raises:
        ValueError: see `uniform`; or if the number is negative.
    """
    _room((rows, cols), nnz)
    if full < 0:
        raise ValueError(f"full: expected at least 0, found {full}")
    width = max(cols, 1)
    count = min(full, max(nnz // (2 * width), min(1, nnz // width)))
    is_full = np.zeros(rows, np.bool_)
    is_full[_subset(rows, count, rng)] = True
    row, col = uniform(rows - count, cols, nnz - count * cols, rng)
    whole_rows = np.flatnonzero(is_full)[:, None] * cols + np.arange(cols)
    others = np.flatnonzero(~is_full)[row] * cols + col
    return _places(np.sort(np.concatenate((whole_rows.ravel(), others))), cols)


KINDS: dict[str, Kind] = {
    "uniform": uniform,
    "uniform_rows": uniform_rows,
    "power_law": power_law,
    "banded": banded,
    "full_band": full_band,
    "block": block,
    "empty_rows": empty_rows,
    "dense_rows": dense_rows,
}


def uniform_tensor(shape: Sequence[int], nnz: int, rng: np.random.Generator) -> tuple[Whole, ...]:
    """The coordinates by mode of ``nnz`` places of a tensor of any order, sorted by the first mode,
    then by the next; every set of places is equally likely.

    Raises:
        ValueError: if a size is negative or ``nnz`` is more than the places.
    """
    places = _subset(_room(shape, nnz), nnz, rng)
    if places.size == 0:
        return tuple(_no_places() for _ in shape)
    return tuple(np.asarray(mode, np.int64) for mode in np.unravel_index(places, tuple(shape)))


def _narrowest(rows: int, cols: int, places: int) -> int:
    """The least half-bandwidth of a band with so many places, or that of the whole matrix."""
    low, high = 0, max(rows, cols, 1) - 1
    while low < high:
        middle = (low + high) // 2
        if int(_band(rows, cols, middle)[1].sum()) >= places:
            high = middle
        else:
            low = middle + 1
    return low


def _room(shape: Sequence[int], nnz: int) -> int:
    """The number of places."""
    if any(size < 0 for size in shape):
        raise ValueError(f"shape: expected sizes of at least 0, found {tuple(shape)}")
    room = math.prod(shape)
    if room > np.iinfo(np.int64).max:
        raise ValueError(f"shape: expected at most 2^63 - 1 places, found {room}")
    if not 0 <= nnz <= room:
        raise ValueError(f"nnz: expected 0 to {room} places, found {nnz}")
    return room


def _no_places() -> Whole:
    return np.zeros(0, np.int64)


def _places(keys: Whole, cols: int) -> Coordinates:
    """Rows and columns of row-major numbers."""
    row, col = np.divmod(keys, max(cols, 1))
    return row, col


def _subset(size: int, count: int, rng: np.random.Generator) -> Whole:
    """A set of so many of the numbers below ``size``, ascending; every set is equally likely."""
    chosen: Whole = np.sort(rng.choice(size, count, replace=False, shuffle=False).astype(np.int64))
    return chosen


def _weighted(ends: NDArray[np.float64], size: int, rng: np.random.Generator) -> Whole:
    """Numbers of intervals up to ``ends``, each as likely as it is long."""
    found: Whole = np.minimum(
        np.searchsorted(ends, rng.random(size) * ends[-1], side="right"), ends.size - 1
    )
    return found


def _band(rows: int, cols: int, half_bandwidth: int) -> Coordinates:
    """The first column and the number of columns of the band in every row."""
    row = np.arange(rows)
    start = np.minimum(np.maximum(row - half_bandwidth, 0), cols)
    return start, np.maximum(np.minimum(row + half_bandwidth + 1, cols) - start, 0)
