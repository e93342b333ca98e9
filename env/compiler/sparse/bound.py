"""What is known inside some loops: the coordinates of loop variables, and how far the levels of
each access have been followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kernelwright.env.compiler.ir.nodes import Binary, Expr
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.sparse.levels.base import Site, minus, plus, times
from kernelwright.env.compiler.sparse.notation import Access
from kernelwright.env.compiler.sparse.program import Program


@dataclass(frozen=True, slots=True)
class Place:
    """A position of a level (``depth`` levels have been followed); ``until`` is the end of a run of
    positions that have one coordinate (levels that are not unique); ``found`` is the condition
    under which there is such a position at all.
    """

    depth: int
    position: Expr
    until: Expr | None = None
    found: Expr | None = None


ROOT = Place(0, whole(0))


@dataclass(frozen=True, slots=True)
class Bound:
    """Coordinates by loop variable, and places by access; ``trimmed`` are accesses by diagonals
    whose loop over rows leaves out those that have no column.
    """

    program: Program
    coordinates: Mapping[str, Expr] = field(default_factory=lambda: MappingProxyType({}))
    places: Mapping[Access, Place] = field(default_factory=lambda: MappingProxyType({}))
    trimmed: frozenset[Access] = frozenset()

    def place(self, access: Access) -> Place:
        """How far an access has been followed."""
        return self.places.get(access, ROOT)

    def with_coordinate(self, loop: str, value: Expr) -> Bound:
        """The same with one more coordinate."""
        return replace(self, coordinates={**self.coordinates, loop: value})

    def with_place(self, access: Access, place: Place) -> Bound:
        """The same with an access followed further."""
        return replace(self, places={**self.places, access: place})

    def with_trimmed(self, access: Access) -> Bound:
        """The same with the rows of an access trimmed."""
        return replace(self, trimmed=self.trimmed | {access})

    def index(self, variable: str) -> Expr | None:
        """The coordinate of an index variable, from its blocks if it has them; None: not yet."""
        if variable in self.coordinates:
            return self.coordinates[variable]
        block = self.program.block(variable)
        parts = [self.coordinates.get(loop) for loop in self.program.loops(variable)]
        if block is None or None in parts:
            return None
        outer, inner = (part for part in parts if part is not None)
        return plus(times(outer, whole(block)), inner)

    def site(self, access: Access, number: int) -> Site:
        """A level (from 0) of an access, with its coordinate where levels above decide it."""
        addends = self.program.format(access.tensor).addends(number + 1)
        if addends is None:
            return self.program.site(access, number)
        diagonal, row = (self.program.loop(access, at - 1) for at in addends)
        rows = self.program.extent(row)
        first, second = self.index(diagonal), self.index(row)
        if first is None or second is None:
            return self.program.site(access, number)
        value = minus(plus(first, second), minus(rows, whole(1)))
        return self.program.site(access, number, value)

    def located(self, accesses: Iterable[Access], but: Iterable[Access] = ()) -> Bound:
        """Every access followed through all levels that locate their coordinate."""
        out, left_out = self, frozenset(but)
        for access in accesses:
            if access in left_out or self.program.is_plain(access.tensor):
                continue
            out = out._followed(access)
        return out

    def _followed(self, access: Access) -> Bound:
        out, levels = self, self.program.format(access.tensor).levels
        while (place := out.place(access)).depth < len(levels):
            kind = self.program.level(access, place.depth)
            value = out.index(self.program.loop(access, place.depth))
            if not kind.full or value is None or place.until is not None:
                break
            at = kind.locate(out.site(access, place.depth), place.position, value)
            found = at.found if place.found is None else place.found
            out = out.with_place(access, Place(place.depth + 1, at.position, None, found))
        return out

    def guard(self, loop: str) -> Expr | None:
        """The condition under which the coordinate that a loop completes is within its mode; None
        where it always is.
        """
        for variable, size in self.program.sizes:
            block = self.program.block(variable)
            if block and loop in self.program.loops(variable) and _overhangs(size, block):
                value = self.index(variable)
                return None if value is None else Binary("lt", value, size)
        return None


def _overhangs(size: Expr, block: int) -> bool:
    """Whether the last block of a mode may reach beyond it."""
    return simplify(Binary("mod", size, whole(block))) != whole(0)
