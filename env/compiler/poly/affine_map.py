"""Affine maps of an iteration space: a whole matrix and constants, which say when an iteration
runs.

An iteration p runs at T p + c, and earlier times come first in lexicographic order. A square map of
determinant 1 or -1 is *unimodular*: it takes the whole points one to one onto the whole points, so
that every loop of the new nest has step 1 (Banerjee 1990; Wolf and Lam, IEEE TPDS 1991, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AffineMap:
    """Times of iterations: one row a dimension of time, one column a loop, and a constant a row.

    Raises:
        ValueError: if the rows have no common length, the constants another number, or an entry is
            no whole number.
    """

    rows: tuple[tuple[int, ...], ...]
    constants: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.rows or not self.rows[0]:
            raise ValueError("expected at least one row and one column, found none")
        if not self.constants:
            object.__setattr__(self, "constants", (0,) * len(self.rows))
        if len({len(row) for row in self.rows}) != 1:
            raise ValueError(f"expected rows of one length, found {self.rows}")
        if len(self.constants) != len(self.rows):
            found = len(self.constants)
            raise ValueError(
                f"expected a constant for each of {len(self.rows)} rows, found {found}"
            )
        for entry in (*(entry for row in self.rows for entry in row), *self.constants):
            if not isinstance(entry, int) or isinstance(entry, bool):
                raise ValueError(f"expected whole entries, found {entry!r}")

    @property
    def depth(self) -> int:
        """The number of loops it is about."""
        return len(self.rows[0])

    @property
    def determinant(self) -> int:
        """The determinant, exactly; 0 for a map that is not square."""
        if len(self.rows) != self.depth:
            return 0
        return _determinant(self.rows)

    @property
    def is_unimodular(self) -> bool:
        """Whether it is square with determinant 1 or -1."""
        return abs(self.determinant) == 1

    def times(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """When iterations run: points as (count, loops) to times as (count, rows)."""
        matrix = np.array(self.rows, np.int64)
        times: NDArray[np.int64] = points @ matrix.T + np.array(self.constants, np.int64)
        return times

    def after(self, first: AffineMap) -> AffineMap:
        """The map that applies ``first`` and then this one.

        Raises:
            ValueError: if this map is about another number of loops than ``first`` has rows.
        """
        if self.depth != len(first.rows):
            raise ValueError(f"expected a map of {self.depth} rows, found {len(first.rows)}")
        rows = tuple(
            tuple(
                sum(a * b[column] for a, b in zip(row, first.rows, strict=True))
                for column in range(first.depth)
            )
            for row in self.rows
        )
        constants = tuple(
            sum(a * b for a, b in zip(row, first.constants, strict=True)) + constant
            for row, constant in zip(self.rows, self.constants, strict=True)
        )
        return AffineMap(rows, constants)

    def inverse(self) -> AffineMap:
        """The map that undoes a unimodular one.

        Raises:
            ValueError: if it is not unimodular.
        """
        if not self.is_unimodular:
            raise ValueError(f"expected a unimodular map, found determinant {self.determinant}")
        rows = _inverse(self.rows)
        undone = tuple(-sum(a * c for a, c in zip(r, self.constants, strict=True)) for r in rows)
        return AffineMap(rows, undone)

    def __str__(self) -> str:
        return "[" + "; ".join(" ".join(map(str, row)) for row in self.rows) + "]"


def identity(depth: int) -> AffineMap:
    """The map that changes nothing."""
    return AffineMap(tuple(_unit(depth, place) for place in range(depth)))


def permutation(order: Sequence[int]) -> AffineMap:
    """Loops in another order: new loop k is old loop ``order[k]``.

    Raises:
        ValueError: if an order does not name every loop once.
    """
    if sorted(order) != list(range(len(order))):
        raise ValueError(f"expected every loop once, found {tuple(order)}")
    return AffineMap(tuple(_unit(len(order), place) for place in order))


def reversal(depth: int, place: int) -> AffineMap:
    """One loop backwards."""
    rows = list(identity(depth).rows)
    rows[place] = tuple(-entry for entry in rows[place])
    return AffineMap(tuple(rows))


def skew(depth: int, outer: int, inner: int, factor: int) -> AffineMap:
    """Loop ``inner`` plus ``factor`` times loop ``outer`` (Wolfe 1986)."""
    rows = [list(row) for row in identity(depth).rows]
    rows[inner][outer] += factor
    return AffineMap(tuple(map(tuple, rows)))


def wavefront(depth: int) -> AffineMap:
    """The sum of all loops first, then all loops but the last: points of one sum may then run
    together if every distance has non-negative components (Lamport's hyperplane method, CACM 1974).
    """
    return AffineMap(((1,) * depth, *identity(depth).rows[:-1]))


def _unit(depth: int, place: int) -> tuple[int, ...]:
    return tuple(int(column == place) for column in range(depth))


def _determinant(rows: tuple[tuple[int, ...], ...]) -> int:
    """By expansion along the first row; nests are shallow."""
    if len(rows) == 1:
        return rows[0][0]
    minors = [tuple(r[:c] + r[c + 1 :] for r in rows[1:]) for c in range(len(rows))]
    return sum(
        (-1) ** c * entry * _determinant(minor)
        for c, (entry, minor) in enumerate(zip(rows[0], minors, strict=True))
        if entry
    )


def _inverse(rows: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """By Gauss-Jordan elimination in fractions; the result of a unimodular matrix is whole."""
    depth = len(rows)
    work = [
        [Fraction(entry) for entry in (*row, *_unit(depth, place))]
        for place, row in enumerate(rows)
    ]
    for column in range(depth):
        pivot = next(r for r in range(column, depth) if work[r][column])
        work[column], work[pivot] = work[pivot], work[column]
        work[column] = [entry / work[column][column] for entry in work[column]]
        for r in range(depth):
            if r != column:
                factor = work[r][column]
                work[r] = [a - factor * b for a, b in zip(work[r], work[column], strict=True)]
    return tuple(tuple(int(entry) for entry in row[depth:]) for row in work)
