"""Layouts: how the axes of a tensor are cut and ordered in memory, written as an index map such as
``"k j -> j/16 k j%16"`` (``transform_layout`` of TVM in the notation of einops; Rogozhnikov, ICLR
2022).

On the left every axis has a name. On the right every word is one axis of the stored array, the
outermost first: a name, then divisions and remainders from left to right, ``j%64/16`` being
``(j % 64) // 16``. The words of one name must together be that axis and no more: cut at the same
factors, none left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import Binary, Expr
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.schedule.ranges import Ranges, divided, linear

_WORD = re.compile(r"([A-Za-z_]\w*)((?:[/%][0-9]{1,9})*)")
_STEP = re.compile(r"([/%])([0-9]+)")


@dataclass(frozen=True, slots=True)
class Digit:
    """One stored axis: ``index // divisor``, and of that the remainder by ``modulus`` if there is
    one.
    """

    axis: int
    divisor: int = 1
    modulus: int | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The stored axes of a tensor, outermost first."""

    digits: tuple[Digit, ...]

    def shape(self, extents: Sequence[Expr]) -> tuple[Expr, ...]:
        """The stored shape of a tensor; what a factor does not divide is rounded up."""
        return tuple(simplify(_size(extents[d.axis], d)) for d in self.digits)

    def place(self, indices: Sequence[Linear], ranges: Ranges) -> tuple[Expr, ...]:
        """Where an element is stored."""
        out = []
        for digit in self.digits:
            form = divided(indices[digit.axis], digit.divisor, ranges)[0]
            if digit.modulus is not None:
                form = divided(form, digit.modulus, ranges)[1]
            out.append(form.expression())
        return tuple(out)

    def coordinate(self, axis: int, stored: Sequence[Linear]) -> Linear:
        """The index along an axis of what is stored at a place."""
        out = Linear(0)
        for digit, index in zip(self.digits, stored, strict=True):
            if digit.axis == axis:
                out = out.plus(index, digit.divisor)
        return out

    def outermost(self, axis: int) -> int:
        """Which stored axis has the blocks of an axis."""
        return max(
            (i for i, digit in enumerate(self.digits) if digit.axis == axis),
            key=lambda i: self.digits[i].divisor,
        )

    def block(self, axis: int) -> int:
        """Into what an axis is rounded up: the elements of one of its outermost blocks."""
        return self.digits[self.outermost(axis)].divisor


def row_major(rank: int) -> Layout:
    """The layout that every tensor has at first."""
    return Layout(tuple(Digit(axis) for axis in range(rank)))


def _size(extent: Expr, digit: Digit) -> Expr:
    if digit.modulus is not None:
        return whole(digit.modulus)
    if digit.divisor == 1:
        return extent
    rounded = Binary("add", extent, whole(digit.divisor - 1))
    return linear(Binary("floordiv", rounded, whole(digit.divisor))).expression()


def parse_layout(op: str, text: str, rank: int) -> Layout:
    """The layout that an index map says.

    Raises:
        ScheduleError: if it is no index map of that many axes, or does not keep every element
            apart.
    """
    form = "an index map like 'k j -> j/16 k j%16'"
    if not isinstance(text, str) or text.count("->") != 1:
        raise ScheduleError(op, f"expected {form}, found {text!r}")
    left, right = (side.replace(",", " ").split() for side in text.split("->"))
    if len(left) != rank or len(set(left)) != rank or not all(n.isidentifier() for n in left):
        raise ScheduleError(op, f"expected {rank} different names before '->', found {left}")
    digits = []
    for word in right:
        match = _WORD.fullmatch(word)
        if match is None or match[1] not in left:
            names = ", ".join(left)
            raise ScheduleError(op, f"expected one of {names} with / and %, found {word!r}")
        digits.append(_digit(op, left.index(match[1]), word, match[2]))
    layout = Layout(tuple(digits))
    for axis, name in enumerate(left):
        _check_axis(op, name, [d for d in layout.digits if d.axis == axis])
    return layout


def _digit(op: str, axis: int, word: str, steps: str) -> Digit:
    """``(x / d) % m / e`` is ``x / (d * e) % (m / e)`` where e divides m."""
    divisor, modulus = 1, None
    for sign, number in _STEP.findall(steps):
        factor = int(number)
        fits = factor > 0 and (modulus is None or modulus % factor == 0)
        if not fits:
            raise ScheduleError(op, f"expected factors that divide one another, found {word!r}")
        if sign == "/":
            divisor, modulus = divisor * factor, None if modulus is None else modulus // factor
        else:
            modulus = factor
    return Digit(axis, divisor, modulus)


def _check_axis(op: str, name: str, digits: list[Digit]) -> None:
    """See that the words of an axis are its digits in a mixed radix, each once."""
    ordered = sorted(digits, key=lambda d: (d.divisor, d.modulus is None))
    expected = 1
    for place, digit in enumerate(ordered, 1):
        is_last = place == len(ordered)
        if digit.divisor != expected or (digit.modulus is None) != is_last:
            break
        expected *= digit.modulus or 1
    else:
        if digits:
            return
    raise ScheduleError(
        op,
        f"expected each part of {name} once, as in '{name}/16 {name}%16', found "
        + (" ".join(_word(name, d) for d in digits) or "none"),
    )


def _word(name: str, digit: Digit) -> str:
    divided_by = "" if digit.divisor == 1 else f"/{digit.divisor}"
    return f"{name}{divided_by}" + ("" if digit.modulus is None else f"%{digit.modulus}")
