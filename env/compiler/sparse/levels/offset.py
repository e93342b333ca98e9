"""Offset: the coordinate follows from the diagonal and the row above; nothing is stored (Chou,
Kjolstad and Amarasinghe, OOPSLA 2018, section 3).

A diagonal that leaves the matrix has places without a coordinate: their value is zero, and
`Offset.present` tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelwright.env.compiler.ir.nodes import Binary, Expr
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.levels.base import (
    Array,
    Arrays,
    Counted,
    Elements,
    Inserted,
    Level,
    Listed,
    Located,
    Packed,
    Site,
    Whole,
)


@dataclass(frozen=True, slots=True)
class Offset(Level):
    """One place a parent, at the parent's own position."""

    name: ClassVar[str] = "offset"
    compact: ClassVar[bool] = False
    locates: ClassVar[bool] = True
    fills: ClassVar[bool] = True
    computed: ClassVar[bool] = True

    def arrays(self, site: Site) -> tuple[Array, ...]:
        """None."""
        return ()

    def positions(self, site: Site) -> Expr:
        """As many as parents."""
        return site.parents

    def count(self, site: Site, parent: Expr) -> Expr:
        """One."""
        return whole(1)

    def position(self, site: Site, parent: Expr, k: Expr) -> Expr:
        """The parent's."""
        return parent

    def coordinate(self, site: Site, parent: Expr, position: Expr) -> Expr:
        """What the levels above decide."""
        return _decided(site)

    def present(self, site: Site, parent: Expr, position: Expr) -> Expr:
        """Whether the diagonal is within the matrix in this row."""
        decided = _decided(site)
        return Binary("and", Binary("ge", decided, whole(0)), Binary("lt", decided, site.extent))

    def locate(self, site: Site, parent: Expr, coordinate: Expr) -> Located:
        """The parent's position, if the coordinate is the decided one."""
        return Located(parent, Binary("eq", _decided(site), coordinate))

    def planned(self, counted: Counted, above: int, extent: int) -> int:
        """As many as parents."""
        return above

    def inserted(self, site: Site, elements: Elements) -> Inserted:
        """Nothing to write."""
        return Inserted(elements.parent)

    def pack(
        self, parents: Whole, coordinates: Whole, above: int, extent: int, dtype: str
    ) -> Packed:
        """Nothing to store."""
        return Packed({}, parents, above)

    def listed(
        self, arrays: Arrays, parents: Whole, above: int, extent: int, coordinates: Whole
    ) -> Listed:
        """The decided coordinates that are in range."""
        index = np.flatnonzero((coordinates >= 0) & (coordinates < extent))
        return Listed(index, parents[index], coordinates[index])

    def check(self, arrays: Arrays, above: int, extent: int) -> int:
        """As many as parents."""
        return above


def _decided(site: Site) -> Expr:
    if site.computed is None:
        raise AssertionError(f"level {site.number} of {site.tensor}: computed from nothing")
    return site.computed
