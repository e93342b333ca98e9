"""Formats: a level kind for each dimension that a tensor is stored by.

A dimension is a mode, a part of a blocked mode, or a diagonal (the coordinate remappings of Chou,
Kjolstad and Amarasinghe, PLDI 2020), so that blocks and diagonals need no level kind of their own:

    CSR         dense(i) compressed(j)
    BCSR(4, 4)  dense(i / 4) compressed(j / 4) dense(i % 4) dense(j % 4)
    DIA         compressed(j - i) dense(i) offset(j)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kernelwright.env.compiler.sparse.levels.base import Level


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


@dataclass(frozen=True, slots=True)
class Format:
    """Levels from the root down, each with its dimension, and the dtype of indices."""

    levels: tuple[tuple[Level, Dimension], ...]
    index_dtype: str = "int32"
