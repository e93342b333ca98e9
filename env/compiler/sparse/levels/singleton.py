"""Singleton: one coordinate below every parent, at the parent's own position (the columns of a
coordinate list).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelwright.env.compiler.ir.nodes import Cast, Expr, For, Store
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.levels.arrays import checked_range, index_array
from kernelwright.env.compiler.sparse.levels.base import (
    Array,
    Arrays,
    Counted,
    Elements,
    Inserted,
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

    def planned(self, counted: Counted, above: int, extent: int) -> int:
        """As many as parents, each with one element."""
        _check_one_each(counted.elements, counted.occupied, above)
        return above

    def inserted(self, site: Site, elements: Elements) -> Inserted:
        """A coordinate a parent."""
        if elements.listed:
            return Inserted(elements.parent)
        value = Cast(site.index_dtype, elements.coordinate)
        store = Store(site.name("crd"), (elements.parent,), value)
        return Inserted(elements.parent, For("e", elements.count, store))

    def pack(
        self, parents: Whole, coordinates: Whole, above: int, extent: int, dtype: str
    ) -> Packed:
        """A coordinate a parent."""
        _check_one_each(parents.size, np.unique(parents).size, above)
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


def _check_one_each(elements: int, occupied: int, above: int) -> None:
    if elements != above or occupied != above:
        raise StorageError(
            f"a singleton level: expected one element below each of {above} positions, found "
            f"{elements} below {occupied}"
        )
