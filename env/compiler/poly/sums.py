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
    Load,
    Select,
    Unary,
    Var,
    children,
    rebuild,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.queries import has_loads, mentions
from kernelwright.env.compiler.ir.simplify import simplify_top


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
    unchanged = all(new is old for new, old in zip(operands, children(node), strict=True))
    return simplify_top(node if unchanged else rebuild(node, operands))


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


class Replacing:
    """`replaced` for many values of the same variables in large expressions: what comes out equal
    is one object, and one object is looked at once for all its places.
    """

    def __init__(self) -> None:
        self._pool: dict[object, Expr] = {}

    def replaced(self, node: Expr, values: Mapping[str, Expr]) -> Expr:
        """An expression with variables replaced, and what cancels out then left away."""
        if not mentions(node, *values):
            return node
        return self._put(node, dict(values), {})

    def _put(self, node: Expr, values: dict[str, Expr], done: dict[int, Expr]) -> Expr:
        known = done.get(id(node))
        if known is None:
            known = done[id(node)] = self._new(node, values, done)
        return known

    def _new(self, node: Expr, values: dict[str, Expr], done: dict[int, Expr]) -> Expr:
        if isinstance(node, Const | Var | Load) or is_whole(node):
            out = cancelled(substitute(node, values))
            return self._pool.setdefault(out, out) if _is_plain(out) else out
        below = children(node)
        operands = tuple([self._put(child, values, done) for child in below])
        unchanged = all(new is old for new, old in zip(operands, below, strict=True))
        out = simplify_top(node if unchanged else rebuild(node, operands))
        key = _key(out)
        return out if key is None else self._pool.setdefault(key, out)


def _is_plain(node: Expr) -> bool:
    """Whether equal expressions are one and the same: of numbers that are not whole 0.0 is equal
    to -0.0.
    """
    return all(
        isinstance(part, Var | Load | Binary) or (isinstance(part, Const) and part.dtype == "int64")
        for part in walk(node)
    )


def _key(node: Expr) -> object:
    """What tells operations on the same operands apart; None for what is no operation."""
    match node:
        case Binary(word, _, _) | Unary(word, _) | Cast(word, _):
            return type(node), word, *map(id, children(node))
        case Select():
            return Select, *map(id, children(node))
    return None


def is_whole(node: Expr) -> bool:
    """Whether an expression is known to be a whole number (``int64``) that reads no memory."""
    first = node
    while isinstance(first, Binary) and first.op in _WHOLE:
        first = first.left
    known = isinstance(first, Var) or (isinstance(first, Const | Cast) and first.dtype == "int64")
    return known and not has_loads(node)


_WHOLE = frozenset({"add", "sub", "mul", "floordiv", "mod", "min", "max"})
