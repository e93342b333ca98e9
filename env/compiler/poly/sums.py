"""Whole-number expressions as sums of multiples of terms: what cancels out cancels out.

A term is a variable or anything that is no sum: ``(i + 1) // 2`` is one, and equal where it is
written alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Var,
    children,
    rebuild,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.simplify import simplify, simplify_top, whole


@dataclass(frozen=True, slots=True)
class Linear:
    """``number`` plus the sum of ``factor`` times term; no factor is zero."""

    terms: tuple[tuple[Expr, int], ...]
    number: int = 0

    @property
    def expression(self) -> Expr:
        """What is added, then what is subtracted, then the number."""
        added = [_times(term, factor) for term, factor in self.terms if factor > 0]
        subtracted = [_times(term, -factor) for term, factor in self.terms if factor < 0]
        number = self.number
        if not added:
            added.append(whole(max(number, 0)))
            number = min(number, 0)
        out = added[0]
        for term in added[1:]:
            out = Binary("add", out, term)
        for term in subtracted:
            out = Binary("sub", out, term)
        if number:
            out = Binary("add" if number > 0 else "sub", out, whole(abs(number)))
        return simplify(out)

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """This, and a multiple of another."""
        sums = dict(self.terms)
        for term, each in other.terms:
            sums[term] = sums.get(term, 0) + factor * each
        kept = tuple((term, each) for term, each in sums.items() if each)
        return Linear(kept, self.number + factor * other.number)

    def only(self, keep: Callable[[Expr], bool]) -> Linear:
        """The multiples of chosen terms, without the number."""
        return Linear(tuple((term, factor) for term, factor in self.terms if keep(term)))


def _times(term: Expr, factor: int) -> Expr:
    return term if factor == 1 else Binary("mul", term, whole(factor))


def linear(node: Expr) -> Linear:
    """A whole-number expression as a sum."""
    match node:
        case Const(value, "int64"):
            return Linear((), int(value))
        case Binary("add", left, right):
            return linear(left).plus(linear(right))
        case Binary("sub", left, right):
            return linear(left).plus(linear(right), -1)
        case Binary("mul", left, right):
            first, second = linear(left), linear(right)
            if not first.terms:
                first, second = second, first
            if not second.terms:
                return Linear(()).plus(first, second.number)
    return Linear(((_inside(node), 1),))


def _inside(node: Expr) -> Expr:
    """A term with its own operands as sums."""
    if isinstance(node, Const | Var):
        return node
    operands = tuple(cancelled(child) for child in children(node))
    if isinstance(node, Binary) and node.op in ("min", "max") and is_whole(node):
        # One spelling of what is the same, the number first.
        operands = tuple(sorted(operands, key=lambda each: not isinstance(each, Const)))
    unchanged = all(new is old for new, old in zip(operands, children(node), strict=True))
    return simplify_top(node if unchanged else rebuild(node, operands))


def cancelled(node: Expr) -> Expr:
    """An expression with all whole-number expressions in it written as sums."""
    if is_whole(node):
        return linear(node).expression
    return _inside(node)


def difference(left: Expr, right: Expr) -> Expr:
    """``left - right``."""
    return linear(left).plus(linear(right), -1).expression


def total(left: Expr, right: Expr) -> Expr:
    """``left + right``."""
    return linear(left).plus(linear(right)).expression


def replaced(node: Expr, values: Mapping[str, Expr]) -> Expr:
    """An expression with variables replaced, and what cancels out then left away."""
    if not any(isinstance(part, Var) and part.name in values for part in walk(node)):
        return node
    return cancelled(substitute(node, dict(values)))


def is_whole(node: Expr) -> bool:
    """Whether an expression is known to be a whole number (``int64``) that reads no memory."""
    first = node
    while isinstance(first, Binary) and first.op in _WHOLE:
        first = first.left
    known = isinstance(first, Var) or (isinstance(first, Const | Cast) and first.dtype == "int64")
    return known and not any(isinstance(part, Load) for part in walk(node))


_WHOLE = frozenset({"add", "sub", "mul", "floordiv", "mod", "min", "max"})
