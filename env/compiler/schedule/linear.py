"""Whole-number expressions as linear forms: a constant and multiples of terms, where a term is a
variable or anything that is not linear (``n // 4``, ``min(a, b)``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Load, Unary, Var, walk
from kernelwright.env.compiler.ir.simplify import simplify, whole


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant`` plus, for each term, a factor other than 0 times the term."""

    constant: int
    terms: Mapping[Expr, int]

    def factor(self, var: str) -> int:
        """By how much the value grows when ``var`` grows by one, other terms left alone."""
        return self.terms.get(Var(var), 0)

    def hidden(self, var: str) -> bool:
        """Whether a variable stands inside a term that is not linear in it."""
        return any(term != Var(var) and mentions(term, var) for term in self.terms)

    def without(self, var: str) -> Linear:
        """The form without the multiple of a variable."""
        return Linear(self.constant, {t: f for t, f in self.terms.items() if t != Var(var)})

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """The sum with a multiple of another form."""
        terms = dict(self.terms)
        for term, times in other.terms.items():
            terms[term] = terms.get(term, 0) + factor * times
        kept = {term: times for term, times in terms.items() if times}
        return Linear(self.constant + factor * other.constant, kept)

    def shifted(self, amount: int) -> Linear:
        """The sum with a number."""
        return Linear(self.constant + amount, self.terms)

    def scaled(self, factor: int) -> Linear:
        """A multiple of the form."""
        return Linear(0, {}).plus(self, factor)

    def expression(self) -> Expr:
        """The form as an expression, what is subtracted at its end."""
        out: Expr | None = None
        for term, factor in self.terms.items():
            if factor > 0:
                out = _joined("add", out, _times(term, factor))
        if self.constant > 0 or out is None:
            out = _joined("add", out, whole(self.constant))
        for term, factor in self.terms.items():
            if factor < 0:
                out = Binary("sub", out, _times(term, -factor))
        if self.constant < 0 and out != whole(self.constant):
            out = Binary("sub", out, whole(-self.constant))
        return simplify(out)


def _joined(op: str, left: Expr | None, right: Expr) -> Expr:
    return right if left is None else Binary(op, left, right)


def _times(term: Expr, factor: int) -> Expr:
    return term if factor == 1 else Binary("mul", term, whole(factor))


def linear(node: Expr) -> Linear:
    """The linear form of a whole-number expression."""
    match node:
        case Const(value, "int64"):
            return Linear(int(value), {})
        case Binary("add", left, right):
            return linear(left).plus(linear(right))
        case Binary("sub", left, right):
            return linear(left).plus(linear(right), -1)
        case Binary("mul", left, Const(factor, "int64")) | Binary(
            "mul", Const(factor, "int64"), left
        ):
            return linear(left).scaled(int(factor))
        case Unary("neg", operand):
            return linear(operand).scaled(-1)
    return Linear(0, {node: 1})


def floor_division(form: Linear, divisor: int) -> Linear:
    """The form divided by a number greater than 0, rounded towards minus infinity; multiples of the
    number are taken out.
    """
    inside = {t: f for t, f in form.terms.items() if f % divisor}
    outside = {t: f // divisor for t, f in form.terms.items() if f % divisor == 0}
    if not inside:
        return Linear(form.constant // divisor, outside)
    rest = Linear(form.constant % divisor, inside).expression()
    quotient = Binary("floordiv", rest, whole(divisor))
    return Linear(form.constant // divisor, outside).plus(Linear(0, {quotient: 1}))


def mentions(node: Expr, var: str) -> bool:
    """Whether an expression reads a variable."""
    return any(isinstance(part, Var) and part.name == var for part in walk(node))


def is_total(node: Expr) -> bool:
    """Whether an expression can be computed anywhere: it reads no memory, which may change, and
    divides by nothing that may be 0.
    """
    return not any(isinstance(part, Load) or _may_divide_by_0(part) for part in walk(node))


def _may_divide_by_0(node: Expr) -> bool:
    match node:
        case Binary("floordiv" | "mod", _, Const(value, _)):
            return not value
        case Binary("floordiv" | "mod", _, _):
            return True
    return False
