"""Which stable sorts bring the elements of a tensor into the order of another format.

Elements are sorted by counting, by the last level first (a radix sort of which a digit is the
coordinate of a level; Knuth, The Art of Computer Programming 3, section 5.2.5). The order that they
come in is used: compressed rows become compressed columns by one pass over the columns' numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.env.compiler.ir.nodes import Binary, Expr
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.sparse.format import (
    Diagonal,
    Dimension,
    Format,
    Inner,
    Mode,
    Outer,
)

# A histogram of so many counts stays in a core's caches.
RADIX = 1 << 16


@dataclass(frozen=True, slots=True)
class Pass:
    """A stable sort by one digit of the coordinate of a level (from 0): coordinate // divisor %
    radix, where the radix is at least 1.
    """

    level: int
    divisor: int
    radix: int
    is_last: bool

    def digit(self, coordinate: Expr, radix: Expr) -> Expr:
        """The digit in code."""
        if self.divisor > 1:
            coordinate = Binary("floordiv", coordinate, whole(self.divisor))
        return coordinate if self.is_last else Binary("mod", coordinate, radix)


def passes(source: Format, target: Format, shape: Sequence[int]) -> tuple[Pass, ...]:
    """The sorts, in their order, after which the elements of a tensor in the source's order of
    storage are in the order of the target's levels.
    """
    wanted = [dimension for _, dimension in target.levels]
    given = _ordered(source)
    number = next(n for n in range(len(wanted) + 1) if _follows(given, wanted, n))
    extents = target.extents(shape)
    out: list[Pass] = []
    for level in reversed(range(number)):
        out += _digits(level, max(extents[level], 1))
    return tuple(out)


def _digits(level: int, extent: int) -> list[Pass]:
    out, divisor = [], 1
    while extent > RADIX:
        out.append(Pass(level, divisor, RADIX, False))
        divisor, extent = divisor * RADIX, -(-extent // RADIX)
    return [*out, Pass(level, divisor, extent, True)]


def _ordered(form: Format) -> list[Dimension]:
    """The dimensions of the levels from the root by which stored elements ascend."""
    kinds = [kind for kind, _ in form.levels]
    end = next((n for n, kind in enumerate(kinds) if not kind.ordered), len(kinds))
    if end < len(kinds):
        # Below a level that is not unique, order is promised only if all levels promise it.
        end = min([end, *(n + 1 for n, kind in enumerate(kinds) if not kind.unique)])
    return [dimension for _, dimension in form.levels[:end]]


def _follows(given: Sequence[Dimension], wanted: Sequence[Dimension], number: int) -> bool:
    """Whether elements that ascend by the given dimensions ascend by the wanted ones after stable
    sorts by the first ``number`` of these.
    """
    known: set[Dimension] = set()
    for dimension in wanted[:number]:
        _learn(known, dimension)
    rest = _in_parts(wanted[number:], given)
    left = _in_parts(given, wanted)
    for dimension in rest:
        if _is_known(known, dimension):
            continue
        while left and _is_known(known, left[0]):
            left.pop(0)
        if not left or _alike(known, left[0]) != _alike(known, dimension):
            return False
        _learn(known, dimension)
    return True


def _in_parts(dimensions: Sequence[Dimension], others: Sequence[Dimension]) -> list[Dimension]:
    """Modes as blocks and places in them, where others have these."""
    sizes = {d.mode: d.size for d in (*others, *dimensions) if isinstance(d, Outer | Inner)}
    out: list[Dimension] = []
    for dimension in dimensions:
        if isinstance(dimension, Mode) and dimension.mode in sizes:
            size = sizes[dimension.mode]
            out += [Outer(dimension.mode, size), Inner(dimension.mode, size)]
        else:
            out.append(dimension)
    return out


def _learn(known: set[Dimension], dimension: Dimension) -> None:
    """Take a dimension, and what follows from it, to be the same in all elements."""
    known.add(dimension)
    modes = {d.mode for d in known if isinstance(d, Mode)}
    for each in tuple(known):
        if isinstance(each, Outer) and _is_known(known, Inner(each.mode, each.size)):
            modes.add(each.mode)
        if isinstance(each, Diagonal) and (each.row in modes or each.column in modes):
            modes |= {each.row, each.column}
    known |= {Mode(mode) for mode in modes}


def _is_known(known: set[Dimension], dimension: Dimension) -> bool:
    match dimension:
        case Inner(_, 1):
            return True
        case Outer(mode, _) | Inner(mode, _):
            return dimension in known or Mode(mode) in known
        case Diagonal(row, column):
            return dimension in known or {Mode(row), Mode(column)} <= known
    return dimension in known


def _alike(known: set[Dimension], dimension: Dimension) -> Dimension:
    """The mode that a dimension orders elements by where what is known is the same in all."""
    match dimension:
        case Outer(mode, size) if Inner(mode, size) in known:
            return Mode(mode)
        case Inner(mode, size) if Outer(mode, size) in known:
            return Mode(mode)
        case Diagonal(row, column) if Mode(row) in known:
            return Mode(column)
    return dimension
