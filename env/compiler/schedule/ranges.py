"""Linear forms with what is known of the loop variables in them: these run from 0 up to, not
including, their extent, which lets a quotient such as ``(io * 16 + ii) // 16`` be ``io``.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.env.compiler.ir.linear import Linear, as_term, split_multiples
from kernelwright.env.compiler.ir.linear import linear as linear_form
from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Var
from kernelwright.env.compiler.ir.queries import has_loads, mentions
from kernelwright.env.compiler.ir.simplify import whole

# Loop variables with their extents, outermost first.
Ranges = Mapping[str, Expr]


def linear(node: Expr, ranges: Ranges | None = None) -> Linear:
    """A whole-number expression as a sum; with ``ranges``, quotients and remainders that the
    ranges of loop variables decide are carried out.
    """
    known = ranges or {}
    return linear_form(node, lambda part: _carried_out(part, known))


def _carried_out(node: Expr, ranges: Ranges) -> Linear:
    match node:
        case Binary("floordiv", left, Const(value, "int64")) if int(value) > 0:
            return divided(linear(left, ranges), int(value), ranges)[0]
        case Binary("mod", left, Const(value, "int64")) if int(value) > 0:
            return divided(linear(left, ranges), int(value), ranges)[1]
        case Binary("mul" | "floordiv" | "mod" | "min" | "max" as op, left, right):
            return as_term(Binary(op, tidy(left, ranges), tidy(right, ranges)))
    return as_term(node)


def divided(form: Linear, divisor: int, ranges: Ranges) -> tuple[Linear, Linear]:
    """Quotient and remainder of a sum by a positive number, rounded towards minus infinity.

    Multiples of the divisor go to the quotient; if the rest lies within one block of the divisor
    it is the remainder, else an atom of each kind is left.
    """
    quotient, rest = split_multiples(form, divisor)
    low, high = extremes(rest, ranges)
    if low is not None and high is not None and low // divisor == high // divisor:
        block = low // divisor
        return quotient.shifted(block), rest.shifted(-block * divisor)
    node, by = rest.expression(), whole(divisor)
    return (
        quotient.plus(as_term(Binary("floordiv", node, by))),
        as_term(Binary("mod", node, by)),
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
        if has_loads(extent):
            return None  # what is in memory may be another number by now
        last = linear(_upper(extent)).shifted(-1)
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
    out = Linear(form.constant)
    for atom, times in form.terms:
        value: Linear | None = as_term(atom)
        if mentions(atom, name):
            value = _atom_replaced(atom, name, last, highest=highest == (times > 0))
        if value is None:
            return None
        out = out.plus(value, times)
    return out


def _atom_replaced(atom: Expr, name: str, last: Linear, *, highest: bool) -> Linear | None:
    match atom:
        case Var():
            return last if highest else Linear(0)
        case Binary("floordiv", left, Const(value, "int64")) if int(value) > 0:
            inner = _replaced(linear(left), name, last, highest=highest)
            if inner is None:
                return None
            return linear(Binary("floordiv", inner.expression(), whole(int(value))))
        case Binary("mod", _, Const(value, "int64")) if int(value) > 0:
            return Linear(int(value) - 1 if highest else 0)
    return None


def tidy(node: Expr, ranges: Ranges) -> Expr:
    """An index with sums collected and what the loops' ranges decide carried out."""
    return linear(node, ranges).expression()
