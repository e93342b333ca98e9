"""Whole-number expressions as sums: a constant plus multiples of atoms, with what is known of the
loop variables in them.

An atom is a variable, or a quotient, remainder or anything else that is no sum. Atoms keep the
order in which they first appear, so that an index reads as it was written. Loop variables run from
0 up to, not including, their extent; that is what lets a quotient such as
``(io * 16 + ii) // 16`` be ``io``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Load, Var, walk
from kernelwright.env.compiler.ir.simplify import simplify, whole

# Loop variables with their extents, outermost first.
Ranges = Mapping[str, Expr]


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant`` plus the sum of ``factor * atom``; no factor is 0."""

    constant: int
    terms: tuple[tuple[Expr, int], ...]

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """This plus ``factor`` times the other."""
        terms = dict(self.terms)
        for atom, times in other.terms:
            terms[atom] = terms.get(atom, 0) + factor * times
        kept = tuple((atom, times) for atom, times in terms.items() if times)
        return Linear(self.constant + factor * other.constant, kept)

    def node(self) -> Expr:
        """The expression, what is added before what is subtracted."""
        out: Expr | None = None
        for atom, times in sorted(self.terms, key=lambda term: term[1] < 0):
            part = atom if abs(times) == 1 else Binary("mul", atom, whole(abs(times)))
            if out is None:
                out = part if times > 0 else Binary("sub", whole(0), part)
            else:
                out = Binary("add" if times > 0 else "sub", out, part)
        if out is None:
            return whole(self.constant)
        if self.constant < 0:
            return simplify(Binary("sub", out, whole(-self.constant)))
        return simplify(Binary("add", out, whole(self.constant)))

    def mentions(self, name: str) -> bool:
        """Whether a variable is in it."""
        return any(_mentions(atom, name) for atom, _ in self.terms)


def _mentions(node: Expr, name: str) -> bool:
    return any(isinstance(part, Var) and part.name == name for part in walk(node))


def linear(node: Expr, ranges: Ranges | None = None) -> Linear:
    """A whole-number expression as a sum; with ``ranges``, quotients and remainders that the
    ranges of loop variables decide are carried out.
    """
    match node:
        case Const(value, "int64"):
            return Linear(int(value), ())
        case Binary("add", left, right):
            return linear(left, ranges).plus(linear(right, ranges))
        case Binary("sub", left, right):
            return linear(left, ranges).plus(linear(right, ranges), -1)
        case Binary("mul", left, right):
            a, b = linear(left, ranges), linear(right, ranges)
            if not a.terms:
                return Linear(0, ()).plus(b, a.constant)
            if not b.terms:
                return Linear(0, ()).plus(a, b.constant)
            return _atom(Binary("mul", a.node(), b.node()))
        case Binary("floordiv", left, Const(value, "int64")) if int(value) > 0:
            return divided(linear(left, ranges), int(value), ranges or {})[0]
        case Binary("mod", left, Const(value, "int64")) if int(value) > 0:
            return divided(linear(left, ranges), int(value), ranges or {})[1]
        case Binary(op, left, right) if op in ("floordiv", "mod", "min", "max"):
            return _atom(Binary(op, linear(left, ranges).node(), linear(right, ranges).node()))
        case _:
            return _atom(node)


def _atom(node: Expr) -> Linear:
    return Linear(0, ((node, 1),))


def divided(form: Linear, divisor: int, ranges: Ranges) -> tuple[Linear, Linear]:
    """Quotient and remainder of a sum by a positive number, rounded towards minus infinity.

    Multiples of the divisor go to the quotient; if the rest lies within one block of the divisor
    it is the remainder, else an atom of each kind is left.
    """
    outside = tuple((atom, times // divisor) for atom, times in form.terms if times % divisor == 0)
    inside = tuple((atom, times) for atom, times in form.terms if times % divisor)
    quotient = Linear(form.constant // divisor, outside)
    rest = Linear(form.constant % divisor, inside)
    low, high = extremes(rest, ranges)
    if low is not None and high is not None and low // divisor == high // divisor:
        block = low // divisor
        shifted = Linear(quotient.constant + block, quotient.terms)
        return shifted, Linear(rest.constant - block * divisor, inside)
    node, by = rest.node(), whole(divisor)
    return (
        quotient.plus(_atom(Binary("floordiv", node, by))),
        _atom(Binary("mod", node, by)),
    )


def extremes(form: Linear, ranges: Ranges) -> tuple[int | None, int | None]:
    """The least and greatest value, None where there is no number that bounds it."""
    found = bounds(form, ranges)
    if found is None:
        return None, None
    low, high = found
    return (None if low.terms else low.constant), (None if high.terms else high.constant)


def bounds(form: Linear, ranges: Ranges) -> tuple[Linear, Linear] | None:
    """A sum's least and greatest value over some loop variables, as sums of what is left; None if
    an atom of another kind depends on them.

    The bounds are exact for sums whose extents do not depend on each other, and safe for all.
    """
    low = high = form
    # An extent may depend on loops further out, so the innermost variable goes first.
    for name, extent in reversed(list(ranges.items())):
        if not (low.mentions(name) or high.mentions(name)):
            continue
        if any(isinstance(part, Load) for part in walk(extent)):
            return None  # what is in memory may be another number by now
        last = linear(_upper(extent)).plus(Linear(1, ()), -1)
        lower = _replaced(low, name, last, highest=False)
        higher = _replaced(high, name, last, highest=True)
        if lower is None or higher is None:
            return None
        low, high = lower, higher
    return low, high


def _upper(extent: Expr) -> Expr:
    """An expression that an extent does not exceed: of a minimum, a number if one is in it."""
    match extent:
        case Binary("min", left, right):
            a, b = _upper(left), _upper(right)
            return b if isinstance(b, Const) else a
    return extent


def _replaced(form: Linear, name: str, last: Linear, *, highest: bool) -> Linear | None:
    """The greatest or least value of a sum over a variable from 0 to ``last``; None if the variable
    is in an atom that is not monotone.
    """
    out = Linear(form.constant, ())
    for atom, times in form.terms:
        value: Linear | None = Linear(0, ((atom, 1),))
        if _mentions(atom, name):
            value = _atom_replaced(atom, name, last, highest=highest == (times > 0))
        if value is None:
            return None
        out = out.plus(value, times)
    return out


def _atom_replaced(atom: Expr, name: str, last: Linear, *, highest: bool) -> Linear | None:
    match atom:
        case Var():
            return last if highest else Linear(0, ())
        case Binary("floordiv", left, Const(value, "int64")) if int(value) > 0:
            inner = _replaced(linear(left), name, last, highest=highest)
            if inner is None:
                return None
            return linear(Binary("floordiv", inner.node(), whole(int(value))))
        case Binary("mod", _, Const(value, "int64")) if int(value) > 0:
            return Linear(int(value) - 1 if highest else 0, ())
    return None


def tidy(node: Expr, ranges: Ranges) -> Expr:
    """An index with sums collected and what the loops' ranges decide carried out."""
    return linear(node, ranges).node()
