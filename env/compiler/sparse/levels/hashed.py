"""Hashed: a table of coordinates below every parent, searched by linear probing (Knuth, The Art of
Computer Programming 3, section 6.4; hashed levels of Chou, Kjolstad and Amarasinghe, OOPSLA 2018).

A table has a power of two of places, at least one of them empty (-1), so that every search ends.
A coordinate's first place is its multiplicative (Fibonacci) hash, which spreads strided coordinates
over the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
    While,
    map_statements,
    substitute,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.levels.arrays import (
    checked_order,
    checked_positions,
    checked_range,
    index_array,
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
    Located,
    Packed,
    Site,
    StorageError,
    Whole,
    minus,
    one_after,
    plus,
    times,
)

EMPTY_PLACE = -1
# 2^32 divided by the golden ratio; a coordinate below 2^31 times it fits in int64.
_FACTOR, _COORDINATES, _HASHES = 2654435769, 2**31, 2**32


@dataclass(frozen=True, slots=True)
class Hashed(Level):
    """A table of ``width`` places a parent; None: twice as many as the fullest parent has
    coordinates, rounded up to a power of two.
    """

    name: ClassVar[str] = "hashed"
    compact: ClassVar[bool] = False
    locates: ClassVar[bool] = True
    inserts: ClassVar[bool] = True
    ordered: bool = False
    width: int | None = None

    def parameters(self) -> tuple[str, ...]:
        """``64``."""
        return () if self.width is None else (str(self.width),)

    @classmethod
    def option(cls, word: str) -> tuple[str, Any] | None:
        """A width, a power of two."""
        if word.isdecimal() and int(word) > 1 and int(word).bit_count() == 1:
            return "width", int(word)
        return None

    def arrays(self, site: Site) -> tuple[Array, ...]:
        """``crd`` (positions)."""
        return (Array("crd", self.positions(site) or site.positions, site.index_dtype),)

    def positions(self, site: Site) -> Expr | None:
        """Parents · width."""
        return None if self.width is None else times(site.parents, whole(self.width))

    def count(self, site: Site, parent: Expr) -> Expr:
        """The width, empty places included."""
        if self.width is not None:
            return whole(self.width)
        return Binary("floordiv", site.positions, Binary("max", site.parents, whole(1)))

    def position(self, site: Site, parent: Expr, k: Expr) -> Expr:
        """Parent · width + k."""
        return plus(times(parent, self.count(site, parent)), k)

    def present(self, site: Site, parent: Expr, position: Expr) -> Expr:
        """Whether the place is not empty."""
        return Binary("ge", site.load("crd", position), whole(0))

    def locate(self, site: Site, parent: Expr, coordinate: Expr) -> Located:
        """The coordinate's place, or the empty place where it would be inserted: from its hash on,
        round the table.
        """
        slot = site.name("slot")
        width = self.count(site, parent)
        position = self.position(site, parent, Load(slot, ()))
        here = site.load("crd", position)
        occupied = Binary("ne", here, whole(EMPTY_PLACE))
        other = Binary("ne", here, coordinate)
        following = Binary("mod", one_after(Load(slot, ())), width)
        search = (
            Store(slot, (), _first_place(coordinate, width)),
            While(Binary("and", occupied, other), Store(slot, (), following)),
        )
        return Located(position, Binary("eq", here, coordinate), search, (slot,))

    @property
    def ascends(self) -> bool:
        """No."""
        return False

    def planned(self, counted: Counted, above: int, extent: int) -> int:
        """Above · width."""
        return above * self._wide_enough(counted.fullest, counted.at)

    def inserted(self, site: Site, elements: Elements) -> Inserted:
        """In rounds, as `pack`: a coordinate takes its place if it is empty, or waits for the next
        round, in which it looks one place further.
        """
        crd, places, waiting = site.name("crd"), site.name("place"), site.name("waiting")
        left, kept, away, q = (Load(name, ()) for name in ("left", "kept", "away", "q"))
        e, d, k = Var("e"), Var("d"), Var("k")
        width = self.count(site, elements.parent)
        slot = Binary("mod", plus(_first_place(elements.coordinate, width), away), width)
        mine = Load(waiting, (k,))
        empty = Binary("eq", site.load("crd", q), whole(EMPTY_PLACE))
        looking: Stmt = For(
            "k",
            left,
            _with_scalars(
                ("q",),
                (
                    Store("q", (), self.position(site, elements.parent, slot)),
                    If(
                        Unary("not", empty),
                        Block(
                            (
                                Store(waiting, (kept,), e),
                                Store("kept", (), whole(1), "add"),
                            )
                        ),
                    ),
                    If(
                        empty,
                        Block(
                            (
                                Store(crd, (q,), Cast(site.index_dtype, elements.coordinate)),
                                Store(places, (e,), q),
                            )
                        ),
                    ),
                ),
            ),
        )
        looking = map_statements(looking, lambda found: substitute(found, {"e": mine}))
        queue = Block((Store(waiting, (left,), e), Store("left", (), whole(1), "add")))
        again = Store(places, (d,), Load(places, (minus(d, whole(1)),)))
        body = (
            For("p", site.positions, Store(crd, (Var("p"),), Const(EMPTY_PLACE, site.index_dtype))),
            Store("left", (), whole(0)),
            Store("away", (), whole(0)),
            For("e", elements.count, If(elements.starts("e"), queue)),
            While(
                Binary("gt", left, whole(0)),
                Block(
                    (
                        Store("kept", (), whole(0)),
                        looking,
                        Store("left", (), kept),
                        Store("away", (), whole(1), "add"),
                    )
                ),
            ),
            For("d", elements.count, If(Unary("not", elements.starts("d")), again)),
        )
        out = Allocate(
            Tensor(waiting, (elements.count,), "int64", "temporary", "heap"),
            _with_scalars(("left", "kept", "away"), body),
        )
        return Inserted(Load(places, (e,)), out, places)

    def room(self, above: int, extent: int) -> int:
        """Above · width."""
        return above * (self.width or 0)

    def pack(
        self, parents: Whole, coordinates: Whole, above: int, extent: int, dtype: str
    ) -> Packed:
        """Each coordinate in the first empty place from its hash on."""
        first = starts(parents, coordinates)
        lengths = np.bincount(parents[first], minlength=above)
        fullest = int(lengths.max(initial=0))
        width = self._wide_enough(fullest, int(lengths.argmax()) if fullest else 0)
        checked_positions(above * width, dtype)
        crd = np.full(above * width, EMPTY_PLACE, np.int64)
        places = _insert(crd, parents[first], coordinates[first], width)
        arrays = {"crd": index_array("crd", crd, dtype)}
        return Packed(arrays, places[np.cumsum(first) - 1], above * width)

    def listed(
        self, arrays: Arrays, parents: Whole, above: int, extent: int, coordinates: Whole
    ) -> Listed:
        """The places that are not empty."""
        crd = arrays["crd"].astype(np.int64)
        width = crd.size // above if above else 0
        table = crd.reshape(above, width)[parents]
        index, slots = np.nonzero(table != EMPTY_PLACE)
        return Listed(index, parents[index] * width + slots, table[index, slots])

    def check(self, arrays: Arrays, above: int, extent: int) -> int:
        """A power of two of places, one empty; coordinates in range and distinct, each without an
        empty place between its hash and itself.
        """
        crd = arrays["crd"].astype(np.int64)
        width = self.width or (crd.size // above if above else 2)
        exact = self.width is not None or crd.size == above * width
        if width < 2 or width.bit_count() != 1 or crd.size < above * width or not exact:
            expected = f"{above} tables of {self.width or 'a power of two of at least 2'} places"
            raise StorageError(f"crd: expected {expected}, found {crd.size} elements")
        crd = crd[: above * width]
        used = crd != EMPTY_PLACE
        checked_range("crd", crd, used, 0, extent - 1)
        table = used.reshape(above, width)
        if (full := np.flatnonzero(table.all(axis=1))).size:
            at = int(full[0]) * width
            raise StorageError(f"crd[{at}:{at + width}]: expected an empty place (-1), found none")
        places = np.flatnonzero(used)
        checked_order(self, places // width, crd[places], places)
        self._check_reachable(crd, table, places, width)
        return above * width

    def _wide_enough(self, fullest: int, at: int) -> int:
        """The number of places a parent, if they are more than the fullest needs."""
        width = self.width or max(2, 1 << max(2 * fullest - 1, 0).bit_length())
        if fullest >= width:
            raise StorageError(
                f"expected fewer than {width} coordinates below a position, found {fullest} below "
                f"{at}"
            )
        return width

    def _check_reachable(self, crd: Whole, table: Any, places: Whole, width: int) -> None:
        rows, slots = places // width, places % width
        away = (slots - _hashed(crd[places], width)) % width
        # The number of occupied places up to each, over the table twice, for runs that wrap round.
        twice = np.concatenate((np.zeros((len(table), 1), np.int64), np.tile(table, 2)), axis=1)
        counts = np.cumsum(twice, axis=1)
        end = slots + width
        between = counts[rows, end] - counts[rows, end - away]
        if (wrong := np.flatnonzero(between != away)).size:
            at = int(wrong[0])
            raise StorageError(
                f"crd[{places[at]}]: expected no empty place from {_hashed(crd[places], width)[at]}"
                f" to {slots[at]} of its table, found one before {crd[places[at]]}"
            )


def _first_place(coordinate: Expr, width: Expr) -> Expr:
    """The first place of a coordinate in its table, in code."""
    product = times(Binary("mod", coordinate, whole(_COORDINATES)), whole(_FACTOR))
    return Binary("floordiv", times(Binary("mod", product, whole(_HASHES)), width), whole(_HASHES))


def _with_scalars(names: Sequence[str], body: Sequence[Stmt]) -> Stmt:
    out: Stmt = Block(tuple(body))
    for name in names:
        out = Allocate(Tensor(name, (), "int64", "temporary", "register"), out)
    return out


def _hashed(coordinates: Whole, width: int) -> Whole:
    """The first place of each coordinate in its table."""
    return (coordinates % _COORDINATES * _FACTOR % _HASHES) * width // _HASHES


def _insert(crd: Whole, parents: Whole, coordinates: Whole, width: int) -> Whole:
    """Put every coordinate into its table, all at once: in each round those that are first at an
    empty place take it, the others go on to the next.
    """
    out = np.zeros(coordinates.size, np.int64)
    slots = _hashed(coordinates, width)
    waiting = np.arange(coordinates.size)
    while waiting.size:
        places = parents[waiting] * width + slots[waiting]
        wins = np.zeros(waiting.size, bool)
        wins[np.unique(places, return_index=True)[1]] = True
        wins &= crd[places] == EMPTY_PLACE
        crd[places[wins]] = coordinates[waiting[wins]]
        out[waiting[wins]] = places[wins]
        waiting = waiting[~wins]
        slots[waiting] = (slots[waiting] + 1) % width
    return out
