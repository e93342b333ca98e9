"""Whole-number expressions as linear forms: a constant plus multiples of terms, so that what
cancels out is gone.

A term is a variable or anything that is no sum: ``n // 4``, ``min(a, b)``. What becomes of the
second kind is the caller's affair: it stays as written, is spelled canonically (`poly.sums`,
`poly.normal`), is carried out as far as the ranges of loop variables decide it (`schedule.ranges`),
or is refused (`machine.affine`). Terms keep the order in which they first appear, so that an index
reads as it was written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Unary, Var
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import simplify, whole


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant`` plus the sum of factor times term; no factor is 0."""

    constant: int
    terms: tuple[tuple[Expr, int], ...] = ()

    def factor(self, var: str) -> int:
        """By how much the value grows when ``var`` grows by one, other terms left alone."""
        for term, factor in self.terms:
            if isinstance(term, Var) and term.name == var:
                return factor
        return 0

    def mentions(self, var: str) -> bool:
        """Whether a variable is in it."""
        return any(mentions(term, var) for term, _ in self.terms)

    def hidden(self, var: str) -> bool:
        """Whether a variable stands inside a term that is not linear in it."""
        return any(term != Var(var) and mentions(term, var) for term, _ in self.terms)

    def without(self, var: str) -> Linear:
        """The form without the multiple of a variable."""
        return Linear(self.constant, tuple(each for each in self.terms if each[0] != Var(var)))

    def only(self, keep: Callable[[Expr], bool]) -> Linear:
        """The multiples of chosen terms, without the constant."""
        return Linear(0, tuple(each for each in self.terms if keep(each[0])))

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The sum with a multiple of another form."""
        constant = self.constant + factor * other.constant
        if not other.terms:
            return Linear(constant, self.terms)
        terms = dict(self.terms)
        for term, times in other.terms:
            terms[term] = terms.get(term, 0) + factor * times
        kept = tuple((term, times) for term, times in terms.items() if times)
        return Linear(constant, kept)

    def shifted(self, amount: int) -> Linear:
        """The sum with a number."""
        return Linear(self.constant + amount, self.terms)

    def scaled(self, factor: int) -> Linear:
        """A multiple of the form."""
        return Linear(0).plus(self, factor)

    def expression(self) -> Expr:
        """What is added, then what is subtracted, then the constant, simplified; a constant above 0
        comes first where nothing else is added.
        """
        added = [each for each in self.terms if each[1] > 0]
        taken = [each for each in self.terms if each[1] < 0]
        constant = self.constant
        if added:
            out = _times(*added.pop(0))
        elif constant > 0 or not taken:
            out, constant = whole(constant), 0
        else:
            out = _times(*taken.pop(0))
        for each, factor in added:
            out = Binary("add", out, _times(each, factor))
        for each, factor in taken:
            out = Binary("sub", out, _times(each, -factor))
        if constant:
            out = Binary("add" if constant > 0 else "sub", out, whole(abs(constant)))
        return simplify(out)


def _times(each: Expr, factor: int) -> Expr:
    return each if factor == 1 else Binary("mul", each, whole(factor))


def as_term(node: Expr) -> Linear:
    """An expression as a term of its own."""
    return Linear(0, ((node, 1),))


def linear(node: Expr, other: Callable[[Expr], Linear] = as_term) -> Linear:
    """The linear form of a whole-number expression; ``other`` gives that of a part which is no sum
    and no multiple.
    """
    match node:
        case Const(value, "int64"):
            return Linear(int(value))
        case Var():
            return as_term(node)
        case Binary("add", left, right):
            return linear(left, other).plus(linear(right, other))
        case Binary("sub", left, right):
            return linear(left, other).plus(linear(right, other), -1)
        case Binary("mul", left, right):
            first, second = linear(left, other), linear(right, other)
            if not first.terms:
                return second.scaled(first.constant)
            if not second.terms:
                return first.scaled(second.constant)
        case Unary("neg", operand):
            return linear(operand, other).scaled(-1)
    return other(node)


def step_of(node: Expr, var: str) -> int | None:
    """By how much a whole-number expression grows when ``var`` grows by one; None if that is no
    constant.
    """
    form = linear(node)
    return None if form.hidden(var) else form.factor(var)


def split_multiples(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    """The multiples of a number greater than 0 divided by it, and what is left; the constant that
    is left is at least 0 and less than the number.
    """
    outside = tuple((each, f // divisor) for each, f in form.terms if f % divisor == 0)
    inside = tuple((each, f) for each, f in form.terms if f % divisor)
    return Linear(form.constant // divisor, outside), Linear(form.constant % divisor, inside)


def floor_division(form: Linear, divisor: int) -> Linear:
    """The form divided by a number greater than 0, rounded towards minus infinity; multiples of the
    number are taken out.
    """
    quotient, rest = split_multiples(form, divisor)
    if not rest.terms:
        return quotient
    return quotient.plus(as_term(Binary("floordiv", rest.expression(), whole(divisor))))
