"""Dense: every coordinate has a position, ``parent · extent + coordinate``; nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelwright.env.compiler.ir.nodes import Expr
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
    plus,
    times,
)


@dataclass(frozen=True, slots=True)
class Dense(Level):
    """All coordinates of the dimension, in order."""

    name: ClassVar[str] = "dense"
    full: ClassVar[bool] = True
    iterates: ClassVar[str] = "value"
    locates: ClassVar[bool] = True
    inserts: ClassVar[bool] = True
    fills: ClassVar[bool] = True

    def arrays(self, site: Site) -> tuple[Array, ...]:
        """None."""
        return ()

    def positions(self, site: Site) -> Expr:
        """Parents · extent."""
        return times(site.parents, site.extent)

    def locate(self, site: Site, parent: Expr, coordinate: Expr) -> Located:
        """Parent · extent + coordinate."""
        return Located(plus(times(parent, site.extent), coordinate))

    def planned(self, counted: Counted, above: int, extent: int) -> int:
        """Above · extent."""
        return above * extent

    def inserted(self, site: Site, elements: Elements) -> Inserted:
        """Nothing to write."""
        return Inserted(self.locate(site, elements.parent, elements.coordinate).position)

    def room(self, above: int, extent: int) -> int:
        """Above · extent."""
        return above * extent

    def pack(
        self, parents: Whole, coordinates: Whole, above: int, extent: int, dtype: str
    ) -> Packed:
        """Nothing to store."""
        return Packed({}, parents * extent + coordinates, above * extent)

    def listed(
        self, arrays: Arrays, parents: Whole, above: int, extent: int, coordinates: Whole
    ) -> Listed:
        """Every coordinate below every parent."""
        index = np.repeat(np.arange(parents.size), extent)
        values = np.tile(np.arange(extent), parents.size)
        return Listed(index, parents[index] * extent + values, values)

    def check(self, arrays: Arrays, above: int, extent: int) -> int:
        """Above · extent."""
        return above * extent
