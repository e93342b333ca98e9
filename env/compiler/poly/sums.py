"""Whole-number expressions in one spelling: sums inside terms cancel out, too, and the number of a
minimum or maximum stands first, so that terms are equal where they are written alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.env.compiler.ir.linear import Linear, as_term
from kernelwright.env.compiler.ir.linear import linear as linear_form
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    Var,
    children,
    rebuild,
    substitute,
)
from kernelwright.env.compiler.ir.queries import has_loads, mentions
from kernelwright.env.compiler.ir.simplify import simplify


def linear(node: Expr) -> Linear:
    """A whole-number expression as a linear form whose terms are spelled canonically."""
    return linear_form(node, lambda part: as_term(_inside(part)))


def _inside(node: Expr) -> Expr:
    """A term with its own operands as sums."""
    if isinstance(node, Const | Var):
        return node
    operands = tuple(cancelled(child) for child in children(node))
    if isinstance(node, Binary) and node.op in ("min", "max") and is_whole(node):
        # One spelling of what is the same, the number first.
        operands = tuple(sorted(operands, key=lambda each: not isinstance(each, Const)))
    return simplify(rebuild(node, operands))


def cancelled(node: Expr) -> Expr:
    """An expression with all whole-number expressions in it written as sums."""
    if is_whole(node):
        return linear(node).expression()
    return _inside(node)


def difference(left: Expr, right: Expr) -> Expr:
    """``left - right``."""
    return linear(left).plus(linear(right), -1).expression()


def total(left: Expr, right: Expr) -> Expr:
    """``left + right``."""
    return linear(left).plus(linear(right)).expression()


def replaced(node: Expr, values: Mapping[str, Expr]) -> Expr:
    """An expression with variables replaced, and what cancels out then left away."""
    if not mentions(node, *values):
        return node
    return cancelled(substitute(node, dict(values)))


def is_whole(node: Expr) -> bool:
    """Whether an expression is known to be a whole number (``int64``) that reads no memory."""
    first = node
    while isinstance(first, Binary) and first.op in _WHOLE:
        first = first.left
    known = isinstance(first, Var) or (isinstance(first, Const | Cast) and first.dtype == "int64")
    return known and not has_loads(node)


_WHOLE = frozenset({"add", "sub", "mul", "floordiv", "mod", "min", "max"})
