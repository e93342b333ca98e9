"""Formats: a level kind for each dimension that a tensor is stored by.

A dimension is a mode, a part of a blocked mode, or a diagonal (the coordinate remappings of Chou,
Kjolstad and Amarasinghe, PLDI 2020), so that blocks and diagonals need no level kind of their own:

    CSR         dense(i) compressed(j)
    BCSR(4, 4)  dense(i / 4) compressed(j / 4) dense(i % 4) dense(j % 4)
    DIA         compressed(j - i) dense(i) offset(j)

`kernelwright.env.compiler.sparse.named` reads and writes formats as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.sparse.levels.base import Level, Whole

LETTERS = "ijklmnop"
INDEX_DTYPES = ("int32", "int64")


class FormatError(CompilerError):
    """A format that stores no tensor, or text that is none: what was expected and found."""


@dataclass(frozen=True, slots=True)
class Mode:
    """The coordinate of a mode."""

    mode: int


@dataclass(frozen=True, slots=True)
class Outer:
    """Which block of a mode: coordinate // size."""

    mode: int
    size: int


@dataclass(frozen=True, slots=True)
class Inner:
    """Where in its block: coordinate % size."""

    mode: int
    size: int


@dataclass(frozen=True, slots=True)
class Diagonal:
    """Which diagonal: column - row, counted from the lowest left one (0)."""

    row: int
    column: int


Dimension: TypeAlias = Mode | Outer | Inner | Diagonal


def dimension_text(dimension: Dimension) -> str:
    """As it is written in a format: ``i``, ``i/4``, ``i%4``, ``j-i``."""
    match dimension:
        case Mode(mode):
            return LETTERS[mode]
        case Outer(mode, size):
            return f"{LETTERS[mode]}/{size}"
        case Inner(mode, size):
            return f"{LETTERS[mode]}%{size}"
        case Diagonal(row, column):
            return f"{LETTERS[column]}-{LETTERS[row]}"


@dataclass(frozen=True, slots=True)
class Format:
    """Levels from the root down, each with its dimension, and the dtype of indices.

    Raises:
        FormatError: unless every mode is stored exactly once and every level kind stands where it
            can.
    """

    levels: tuple[tuple[Level, Dimension], ...]
    index_dtype: str = "int32"

    def __post_init__(self) -> None:
        _validate(self)

    @property
    def order(self) -> int:
        """The number of modes."""
        return 1 + max((_last_mode(dimension) for _, dimension in self.levels), default=-1)

    @property
    def words(self) -> str:
        """The levels in words: ``dense(i) compressed(j)``; without the dtype of indices."""
        return " ".join(f"{kind.text}({dimension_text(d)})" for kind, d in self.levels)

    @property
    def fills(self) -> bool:
        """Whether a place of a value can be one that no element was put in, yet looks like one: the
        zeros of a block or of a diagonal.
        """
        return bool(self.levels) and self.levels[-1][0].fills

    @property
    def keeps_duplicates(self) -> bool:
        """Whether two elements may have the same coordinates."""
        return bool(self.levels) and not self.levels[-1][0].unique

    def extents(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The number of coordinates of each level in a tensor of a shape.

        Raises:
            FormatError: if the shape has another order.
        """
        if len(shape) != self.order:
            raise FormatError(
                f"{self.words}: expected a shape of {self.order} modes, found {len(shape)}"
            )
        out = []
        for _, dimension in self.levels:
            match dimension:
                case Mode(mode):
                    out.append(int(shape[mode]))
                case Outer(mode, size):
                    out.append(-(-int(shape[mode]) // size))
                case Inner(_, size):
                    out.append(size)
                case Diagonal(row, column):
                    rows, columns = int(shape[row]), int(shape[column])
                    out.append(rows + columns - 1 if rows and columns else 0)
        return tuple(out)

    def split(self, shape: Sequence[int], coordinates: Whole) -> list[Whole]:
        """The coordinates of each level, from those of the modes (order × elements)."""
        out: list[Whole] = []
        for _, dimension in self.levels:
            match dimension:
                case Mode(mode):
                    out.append(coordinates[mode])
                case Outer(mode, size):
                    out.append(coordinates[mode] // size)
                case Inner(mode, size):
                    out.append(coordinates[mode] % size)
                case Diagonal(row, column):
                    out.append(coordinates[column] - coordinates[row] + (int(shape[row]) - 1))
        return out

    def joined(self, levels: Sequence[Whole]) -> Whole:
        """The coordinates of the modes (order × elements), from those of each level."""
        size = levels[0].size if levels else 0
        out = np.zeros((self.order, size), np.int64)
        for (_, dimension), coordinates in zip(self.levels, levels, strict=True):
            match dimension:
                case Mode(mode):
                    out[mode] = coordinates
                case Outer(mode, block):
                    out[mode] += coordinates * block
                case Inner(mode, _):
                    out[mode] += coordinates
                case Diagonal():
                    pass  # decided by its row and column
        return out

    def addends(self, number: int) -> tuple[int, int] | None:
        """The numbers (from 1) of the levels of the diagonal and of the row that decide the
        coordinate of level ``number``, None where it is stored: the coordinate is diagonal + row -
        (rows - 1).
        """
        kind, dimension = self.levels[number - 1]
        if not kind.computed or not isinstance(dimension, Mode):
            return None
        diagonals = {
            d.row: k
            for k, (_, d) in enumerate(self.levels[: number - 1], start=1)
            if isinstance(d, Diagonal) and d.column == dimension.mode
        }
        for k, (_, d) in enumerate(self.levels[: number - 1], start=1):
            if isinstance(d, Mode) and d.mode in diagonals:
                return diagonals[d.mode], k
        return None


def _last_mode(dimension: Dimension) -> int:
    if isinstance(dimension, Diagonal):
        return max(dimension.row, dimension.column)
    return dimension.mode


def _validate(form: Format) -> None:
    if form.index_dtype not in INDEX_DTYPES:
        raise FormatError(
            f"index dtype: expected {' or '.join(INDEX_DTYPES)}, found {form.index_dtype!r}"
        )
    for number, (kind, dimension) in enumerate(form.levels, start=1):
        _validate_dimension(number, dimension)
        _validate_place(form, number, kind, dimension)
    for mode in range(form.order):
        _validate_mode(form, mode)


def _validate_dimension(number: int, dimension: Dimension) -> None:
    modes = (
        (dimension.row, dimension.column) if isinstance(dimension, Diagonal) else (dimension.mode,)
    )
    for mode in modes:
        if not 0 <= mode < len(LETTERS):
            raise FormatError(
                f"level {number}: expected a mode from 0 to {len(LETTERS) - 1}, found {mode}"
            )
    if isinstance(dimension, Outer | Inner) and dimension.size < 1:
        raise FormatError(f"level {number}: expected a block of at least 1, found {dimension.size}")
    if isinstance(dimension, Diagonal) and dimension.row == dimension.column:
        raise FormatError(
            f"level {number}: expected a diagonal over two modes, found {dimension_text(dimension)}"
        )


def _validate_place(form: Format, number: int, kind: Level, dimension: Dimension) -> None:
    where = f"level {number} ({kind.text}({dimension_text(dimension)}))"
    if kind.branchless and number == 1:
        raise FormatError(f"{where}: expected a level above it, found the root")
    if kind.computed and form.addends(number) is None:
        raise FormatError(
            f"{where}: expected the diagonal and the row of this mode above it, found "
            f"{' '.join(dimension_text(d) for _, d in form.levels[: number - 1]) or 'nothing'}"
        )
    if isinstance(dimension, Diagonal):
        below = range(number + 1, len(form.levels) + 1)
        if not any((form.addends(k) or (0, 0))[0] == number for k in below):
            raise FormatError(
                f"{where}: expected an offset level of {LETTERS[dimension.column]} below it, found "
                "none"
            )
    if not kind.unique and number < len(form.levels):
        following = form.levels[number][0]
        if not following.branchless:
            raise FormatError(
                f"{where}: expected a singleton level below one that is not unique, found "
                f"{following.text}"
            )


def _validate_mode(form: Format, mode: int) -> None:
    """Stored once: by itself, or as blocks and the places in them."""
    parts = [d for _, d in form.levels if isinstance(d, Mode | Outer | Inner) and d.mode == mode]
    letter = LETTERS[mode]
    match parts:
        case [Mode()]:
            return
        case [Outer(_, outer), Inner(_, inner)] if outer == inner:
            return
    found = ", ".join(dimension_text(d) for d in parts) or "nothing"
    raise FormatError(
        f"mode {letter}: expected {letter} once, or {letter}/n and then {letter}%n, found {found}"
    )
