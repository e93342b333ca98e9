"""Compressed: the coordinates below parent p are ``crd[pos[p]:pos[p + 1]]``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelwright.env.compiler.ir.nodes import Block, Cast, Const, Expr, For, Load, Stmt, Store, Var
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.levels.arrays import (
    checked_order,
    checked_range,
    index_array,
    ranks,
    starts,
)
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
    minus,
    one_after,
    plus,
)


@dataclass(frozen=True, slots=True)
class Compressed(Level):
    """Stored coordinates only; not unique, it is the first level of coordinates (COO)."""

    name: ClassVar[str] = "compressed"
    appends: ClassVar[bool] = True
    relaxes: ClassVar[bool] = True

    def arrays(self, site: Site) -> tuple[Array, ...]:
        """``pos`` (parents + 1) and ``crd``."""
        return (
            Array("pos", one_after(site.parents), site.index_dtype, ascending=True),
            Array("crd", site.positions, site.index_dtype),
        )

    def positions(self, site: Site) -> None:
        """As many as are stored."""
        return

    def count(self, site: Site, parent: Expr) -> Expr:
        """pos[parent + 1] - pos[parent]."""
        return minus(site.load("pos", one_after(parent)), site.load("pos", parent))

    def position(self, site: Site, parent: Expr, k: Expr) -> Expr:
        """pos[parent] + k."""
        return plus(site.load("pos", parent), k)

    def planned(self, counted: Counted, above: int, extent: int) -> int:
        """As many as there are nodes."""
        return counted.nodes

    def inserted(self, site: Site, elements: Elements) -> Inserted:
        """``pos`` from the number of nodes below each parent."""
        pos, crd, p = site.name("pos"), site.name("crd"), Var("p")
        length = Cast(site.index_dtype, Load(elements.lengths, (p,)))
        end = plus(Load(pos, (p,)), length)
        body: list[Stmt] = [
            Store(pos, (whole(0),), Const(0, site.index_dtype)),
            For("p", site.parents, Store(pos, (one_after(p),), end)),
        ]
        if not elements.listed:
            value = Cast(site.index_dtype, elements.coordinate)
            body.append(For("e", elements.count, Store(crd, (elements.node,), value)))
        return Inserted(elements.node, Block(tuple(body)))

    def pack(
        self, parents: Whole, coordinates: Whole, above: int, extent: int, dtype: str
    ) -> Packed:
        """One position for each coordinate below a parent (each element, if not unique)."""
        first = starts(parents, coordinates) if self.unique else np.ones(parents.size, bool)
        lengths = np.bincount(parents[first], minlength=above)
        pos = np.concatenate(([0], np.cumsum(lengths)))
        arrays = {
            "pos": index_array("pos", pos, dtype),
            "crd": index_array("crd", coordinates[first], dtype),
        }
        return Packed(arrays, np.cumsum(first) - 1, int(pos[-1]))

    def listed(
        self, arrays: Arrays, parents: Whole, above: int, extent: int, coordinates: Whole
    ) -> Listed:
        """The stored coordinates of every parent."""
        pos = arrays["pos"].astype(np.int64)
        lengths = pos[parents + 1] - pos[parents]
        index = np.repeat(np.arange(parents.size), lengths)
        positions = pos[parents][index] + ranks(lengths)
        return Listed(index, positions, arrays["crd"].astype(np.int64)[positions])

    def check(self, arrays: Arrays, above: int, extent: int) -> int:
        """``pos`` from 0 never descending within ``crd``; coordinates in range, and below each
        parent ascending and distinct as the level promises.
        """
        pos, crd = arrays["pos"].astype(np.int64), arrays["crd"].astype(np.int64)
        if pos.size != above + 1:
            raise StorageError(f"pos: expected {above + 1} elements, found {pos.size}")
        if pos[0] != 0:
            raise StorageError(f"pos[0]: expected 0, found {pos[0]}")
        if (wrong := np.flatnonzero(pos[1:] < pos[:-1])).size:
            at = int(wrong[0]) + 1
            raise StorageError(f"pos[{at}]: expected at least {pos[at - 1]}, found {pos[at]}")
        if pos[-1] > crd.size:
            raise StorageError(f"pos[{above}]: expected at most {crd.size}, found {pos[-1]}")
        used = crd[: pos[-1]]
        checked_range("crd", used, np.ones(used.size, bool), 0, extent - 1)
        parents = np.repeat(np.arange(above), np.diff(pos))
        checked_order(self, parents, used, np.arange(used.size))
        return int(pos[-1])
