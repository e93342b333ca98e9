"""Padded: a fixed number of places below every parent, the first ``len[p]`` of them in use (ELL of
Bell and Garland, Implementing Sparse Matrix-Vector Multiplication on Throughput-Oriented
Processors, SC 2009; with blocks of columns above it, N:M structured sparsity).

A place that is not in use repeats the last coordinate below its parent (0 if there is none), and
its value is zero: a product may run over all places, as long as what it multiplies is finite. Where
a coordinate counts, `Padded.present` tells which are in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Expr,
    For,
    Load,
    Stmt,
    Store,
    Tensor,
    Var,
    map_statements,
    substitute,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.levels.arrays import (
    checked_order,
    checked_positions,
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
    plus,
    times,
)

DTYPES = ("int8", "int16", "int32", "int64")


@dataclass(frozen=True, slots=True)
class Padded(Level):
    """``width`` places a parent; None: as many as the fullest parent has. A mode of size 0 has no
    coordinate to pad with: it can be stored only without a width.

    With ``slots`` the first places of all parents come first, then the second ones, so that
    neighbouring parents are neighbours in memory; without it, all places of a parent. ``dtype`` is
    that of ``len`` and ``crd`` where it is not the format's: int8 is enough within a block of four.
    """

    name: ClassVar[str] = "padded"
    compact: ClassVar[bool] = False
    relaxes: ClassVar[bool] = True
    width: int | None = None
    slots: bool = False
    dtype: str | None = None

    def parameters(self) -> tuple[str, ...]:
        """``8``, ``slots``, ``int8``."""
        words = ("" if self.width is None else str(self.width), "slots" if self.slots else "")
        return tuple(w for w in (*words, self.dtype or "") if w)

    @classmethod
    def option(cls, word: str) -> tuple[str, Any] | None:
        """A width, ``slots`` or a dtype."""
        if word.isdecimal() and int(word) > 0:
            return "width", int(word)
        if word == "slots":
            return "slots", True
        return ("dtype", word) if word in DTYPES else None

    def arrays(self, site: Site) -> tuple[Array, ...]:
        """``len`` (parents) and ``crd`` (positions)."""
        dtype = self.dtype or site.index_dtype
        positions = self.positions(site) or site.positions
        return (Array("len", site.parents, dtype), Array("crd", positions, dtype))

    def positions(self, site: Site) -> Expr | None:
        """Parents · width."""
        return None if self.width is None else times(site.parents, whole(self.width))

    def count(self, site: Site, parent: Expr) -> Expr:
        """The width, places that are not in use included."""
        if self.width is not None:
            return whole(self.width)
        return Binary("floordiv", site.positions, Binary("max", site.parents, whole(1)))

    def position(self, site: Site, parent: Expr, k: Expr) -> Expr:
        """Parent · width + k, or with slots k · parents + parent."""
        if self.slots:
            return plus(times(k, site.parents), parent)
        return plus(times(parent, self.count(site, parent)), k)

    def present(self, site: Site, parent: Expr, position: Expr) -> Expr:
        """Whether the place is one of the first len[parent]."""
        return Binary("lt", position, self.position(site, parent, site.load("len", parent)))

    @property
    def ascends(self) -> bool:
        """Without slots."""
        return not self.slots

    def planned(self, counted: Counted, above: int, extent: int) -> int:
        """Above · width."""
        width = self._wide_enough(counted.fullest, counted.at)
        self._check_padding(above * width, extent)
        return above * width

    def inserted(self, site: Site, elements: Elements) -> Inserted:
        """The last coordinate below each parent in all of its places, then each in its own."""
        length, crd = site.name("len"), site.name("crd")
        first, last, places = site.name("first"), site.name("last"), site.name("place")
        dtype = self.dtype or site.index_dtype
        p, k, parent = Var("p"), Var("k"), elements.parent
        rank = minus(elements.node, Load(first, (parent,)))
        place = Load(places, (Var("e"),))
        value = Cast(dtype, elements.coordinate)
        here: dict[str, Expr] = {"p": Var("r")}
        padding = substitute(self.position(site, p, k), here)
        body: list[Stmt] = [
            Store("seen", (), whole(0)),
            For(
                "p",
                site.parents,
                Block(
                    (
                        Store(length, (p,), Cast(dtype, Load(elements.lengths, (p,)))),
                        Store(first, (p,), Load("seen", ())),
                        Store("seen", (), Load(elements.lengths, (p,)), "add"),
                        Store(last, (p,), whole(0)),
                    )
                ),
            ),
            For("e", elements.count, Store(last, (parent,), elements.coordinate)),
            For(
                "r",
                site.parents,
                For(
                    "k",
                    self.count(site, Var("r")),
                    Store(crd, (padding,), Cast(dtype, Load(last, (Var("r"),)))),
                ),
            ),
            map_statements(
                For(
                    "d",
                    elements.count,
                    Block(
                        (
                            Store(places, (Var("e"),), self.position(site, parent, rank)),
                            Store(crd, (place,), value),
                        )
                    ),
                ),
                lambda expression: substitute(expression, {"e": Var("d")}),
            ),
        ]
        out: Stmt = Allocate(
            Tensor("seen", (), "int64", "temporary", "register"), Block(tuple(body))
        )
        for name in (first, last):
            out = Allocate(Tensor(name, (site.parents,), "int64", "temporary", "heap"), out)
        return Inserted(place, out, places)

    def room(self, above: int, extent: int) -> int:
        """Above · width."""
        return above * (self.width or 0)

    def pack(
        self, parents: Whole, coordinates: Whole, above: int, extent: int, dtype: str
    ) -> Packed:
        """The coordinates below each parent in its first places."""
        first = starts(parents, coordinates) if self.unique else np.ones(parents.size, bool)
        lengths = np.bincount(parents[first], minlength=above)
        fullest = int(lengths.max(initial=0))
        width = self._wide_enough(fullest, int(lengths.argmax()) if fullest else 0)
        self._check_padding(above * width, extent)
        checked_positions(above * width, dtype)
        last = np.zeros(above, np.int64)
        used = lengths > 0
        last[used] = coordinates[first][np.cumsum(lengths)[used] - 1]
        crd = np.tile(last, width) if self.slots else np.repeat(last, width)
        places = self._places(parents[first], ranks(lengths), above, width)
        crd[places] = coordinates[first]
        own = self.dtype or dtype
        arrays = {"len": index_array("len", lengths, own), "crd": index_array("crd", crd, own)}
        return Packed(arrays, places[np.cumsum(first) - 1], above * width)

    def listed(
        self, arrays: Arrays, parents: Whole, above: int, extent: int, coordinates: Whole
    ) -> Listed:
        """The places in use."""
        lengths = arrays["len"].astype(np.int64)[parents]
        width = arrays["crd"].size // above if above else 0
        index = np.repeat(np.arange(parents.size), lengths)
        positions = self._places(parents[index], ranks(lengths), above, width)
        return Listed(index, positions, arrays["crd"].astype(np.int64)[positions])

    def check(self, arrays: Arrays, above: int, extent: int) -> int:
        """``len`` at most the width; all coordinates in range, and those in use ascending and
        distinct as the level promises.
        """
        lengths, crd = arrays["len"].astype(np.int64), arrays["crd"].astype(np.int64)
        if lengths.size < above:
            raise StorageError(f"len: expected {above} elements, found {lengths.size}")
        if self.width is not None and crd.size < above * self.width:
            raise StorageError(f"crd: expected {above * self.width} elements, found {crd.size}")
        if self.width is None and crd.size % max(above, 1):
            raise StorageError(f"crd: expected a multiple of {above} elements, found {crd.size}")
        width = (crd.size // above if above else 0) if self.width is None else self.width
        lengths, crd = lengths[:above], crd[: above * width]
        self._check_padding(crd.size, extent)
        checked_range("len", lengths, np.ones(above, bool), 0, width)
        checked_range("crd", crd, np.ones(crd.size, bool), 0, extent - 1)
        parents = np.repeat(np.arange(above), lengths)
        places = self._places(parents, ranks(lengths), above, width)
        checked_order(self, parents, crd[places], places)
        return above * width

    def _places(self, parents: Whole, k: Whole, above: int, width: int) -> Whole:
        return k * above + parents if self.slots else parents * width + k

    def _wide_enough(self, fullest: int, at: int) -> int:
        """The number of places a parent, if they are enough for the fullest."""
        width = fullest if self.width is None else self.width
        if fullest > width:
            raise StorageError(
                f"expected at most {width} coordinates below a position, found {fullest} below {at}"
            )
        return width

    def _check_padding(self, positions: int, extent: int) -> None:
        if positions and not extent:
            raise StorageError(
                f"expected a coordinate to pad {positions} places with, found a mode of size 0"
            )
