"""Singleton: one coordinate below every parent, at the parent's own position (the columns of a
coordinate list).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelwright.env.compiler.ir.nodes import Expr
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.levels.arrays import checked_range, index_array
from kernelwright.env.compiler.sparse.levels.base import (
    Array,
    Arrays,
    Level,
    Listed,
    Packed,
    Site,
    StorageError,
    Whole,
)


@dataclass(frozen=True, slots=True)
class Singleton(Level):
    """One child a parent."""

    name: ClassVar[str] = "singleton"
    branchless: ClassVar[bool] = True
    appends: ClassVar[bool] = True
    relaxes: ClassVar[bool] = True

    def arrays(self, site: Site) -> tuple[Array, ...]:
        """``crd``."""
        return (Array("crd", site.parents, site.index_dtype),)

    def positions(self, site: Site) -> Expr:
        """As many as parents."""
        return site.parents

    def count(self, site: Site, parent: Expr) -> Expr:
        """One."""
        return whole(1)

    def position(self, site: Site, parent: Expr, k: Expr) -> Expr:
        """The parent's."""
        return parent

    def pack(
        self, parents: Whole, coordinates: Whole, above: int, extent: int, dtype: str
    ) -> Packed:
        """A coordinate a parent."""
        if parents.size != above or (np.diff(parents) <= 0).any():
            raise StorageError(
                f"a singleton level: expected one element below each of {above} positions, "
                f"found {parents.size} below {np.unique(parents).size}"
            )
        return Packed({"crd": index_array("crd", coordinates, dtype)}, parents, above)

    def listed(
        self, arrays: Arrays, parents: Whole, above: int, extent: int, coordinates: Whole
    ) -> Listed:
        """The coordinate of every parent."""
        return Listed(np.arange(parents.size), parents, arrays["crd"].astype(np.int64)[parents])

    def check(self, arrays: Arrays, above: int, extent: int) -> int:
        """A coordinate in range for each parent."""
        crd = arrays["crd"].astype(np.int64)
        if crd.size < above:
            raise StorageError(f"crd: expected {above} elements, found {crd.size}")
        checked_range("crd", crd[:above], np.ones(above, bool), 0, extent - 1)
        return above
