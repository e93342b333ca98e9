"""The normal form of the bounds that a polyhedral code generator computes: linear forms, of whose
minima and maxima only the operands stay that may be the least or greatest.

Unlike the spelling of `poly.sums`, it takes a minimum apart and drops operands that differ from
another by a constant.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernelwright.env.compiler.ir.linear import Linear, as_term, linear
from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Load, Var, children, rebuild
from kernelwright.env.compiler.ir.simplify import simplify


def normalized(node: Expr) -> Expr:
    """A whole-number expression in normal form; the indices of loads in any other."""
    match node:
        case Const() | Var():
            return node
        case Binary("add" | "sub" | "mul" | "floordiv" | "mod" | "min" | "max") if is_index(node):
            return _form(node).expression()
        case Load(tensor, indices):
            return Load(tensor, tuple(normalized(index) for index in indices))
        case _:
            return rebuild(node, tuple(normalized(child) for child in children(node)))


def minimum(terms: Iterable[Expr]) -> Expr:
    """The smallest of affine expressions, of which those that differ from another by a positive
    constant are left out.
    """
    return _extremum("min", [_form(each) for each in terms])


def difference(left: Expr, right: Expr, constant: int = 0) -> Expr:
    """``left - right + constant`` in normal form."""
    return _form(left).plus(_form(right), -1).shifted(constant).expression()


def operands(op: str, node: Expr) -> list[Expr]:
    """The operands of a chain of one operator, from the left; of what is none the expression."""
    if isinstance(node, Binary) and node.op == op:
        return [*operands(op, node.left), *operands(op, node.right)]
    return [node]


def is_index(node: Expr) -> bool:
    """Whether an expression is built of variables and whole constants alone."""
    if isinstance(node, Binary):
        return is_index(node.left) and is_index(node.right)
    return isinstance(node, Var) or (isinstance(node, Const) and node.dtype == "int64")


def _form(node: Expr) -> Linear:
    return linear(node, _term)


def _term(node: Expr) -> Linear:
    match node:
        case Binary("min" | "max" as op, _, _):
            parts = [_form(part) for part in operands(op, node)]
            written = _extremum(op, parts)
            # A constant common to all stands outside, so that it can cancel.
            return parts[0] if written == parts[0].expression() else as_term(written)
        case Binary("mul" | "floordiv" | "mod" as op, left, right):
            sides = _form(left).expression(), _form(right).expression()
            return as_term(simplify(Binary(op, *sides)))
    return as_term(node)


def _extremum(op: str, parts: list[Linear]) -> Expr:
    kept: dict[frozenset[tuple[Expr, int]], Linear] = {}
    choose = min if op == "min" else max
    for part in parts:
        known = kept.get(frozenset(part.terms), part)
        constant = choose(known.constant, part.constant)
        kept[frozenset(part.terms)] = Linear(constant, part.terms)
    written = [part.expression() for part in kept.values()]
    out = written[0]
    for each in written[1:]:
        out = Binary(op, out, each)
    return out
