"""Whole-number expressions as sums: terms with whole coefficients and a constant, so that what
cancels is gone.

What is no sum (a quotient, a minimum) is a term as a whole, its own parts normalised.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Load, Var, children, rebuild
from kernelwright.env.compiler.ir.simplify import simplify, whole

Sum = dict[Expr | None, int]


def normalized(node: Expr) -> Expr:
    """A whole-number expression in normal form; the indices of loads in any other."""
    match node:
        case Const() | Var():
            return node
        case Binary("add" | "sub" | "mul" | "floordiv" | "mod" | "min" | "max") if _is_index(node):
            return _written(_sum(node))
        case Load(tensor, indices):
            return Load(tensor, tuple(normalized(index) for index in indices))
        case _:
            return rebuild(node, tuple(normalized(child) for child in children(node)))


def minimum(terms: Iterable[Expr]) -> Expr:
    """The smallest of affine expressions, of which those that differ from another by a positive
    constant are left out.
    """
    return _extremum("min", [_sum(term) for term in terms])


def difference(left: Expr, right: Expr, constant: int = 0) -> Expr:
    """``left - right + constant`` in normal form."""
    total = _sum(left)
    _add(total, _sum(right), -1)
    _add(total, {None: constant}, 1)
    return _written(total)


def operands(op: str, node: Expr) -> list[Expr]:
    """The operands of nested minima or maxima; the expression itself if it is none."""
    if isinstance(node, Binary) and node.op == op:
        return [*operands(op, node.left), *operands(op, node.right)]
    return [node]


def _is_index(node: Expr) -> bool:
    """Whether an expression is built of variables and whole constants alone."""
    if isinstance(node, Binary):
        return _is_index(node.left) and _is_index(node.right)
    return isinstance(node, Var) or (isinstance(node, Const) and node.dtype == "int64")


def _sum(node: Expr) -> Sum:
    """Coefficients by term; the constant stands at None."""
    match node:
        case Const(value, "int64"):
            return {None: int(value)}
        case Binary("add" | "sub" as op, left, right):
            total = _sum(left)
            _add(total, _sum(right), 1 if op == "add" else -1)
            return total
        case Binary("mul", left, right):
            a, b = _sum(left), _sum(right)
            if set(b) <= {None}:
                a, b = b, a
            if set(a) <= {None}:
                return {term: entry * a.get(None, 0) for term, entry in b.items()}
            return {Binary("mul", _written(a), _written(b)): 1}
        case Binary("min" | "max" as op, _, _):
            parts = [_sum(part) for part in operands(op, node)]
            first = dict(parts[0])
            # A constant common to all stands outside, so that it can cancel.
            written = _extremum(op, parts)
            if written == _written(first):
                return first
            return {written: 1}
        case Binary("floordiv" | "mod" as op, left, right):
            return {simplify(Binary(op, _written(_sum(left)), _written(_sum(right)))): 1}
        case _:
            return {node: 1}


def _extremum(op: str, parts: list[Sum]) -> Expr:
    kept: dict[frozenset[tuple[Expr | None, int]], tuple[Sum, int]] = {}
    choose = min if op == "min" else max
    for part in parts:
        terms = frozenset((term, entry) for term, entry in part.items() if term and entry)
        constant = part.get(None, 0)
        known = kept[terms][1] if terms in kept else constant
        kept[terms] = (part, choose(known, constant))
    written = [_written({**part, None: constant}) for part, constant in kept.values()]
    out = written[0]
    for each in written[1:]:
        out = Binary(op, out, each)
    return out


def _add(total: Sum, other: Sum, factor: int) -> None:
    for term, entry in other.items():
        total[term] = total.get(term, 0) + factor * entry


def _written(total: Sum) -> Expr:
    """A sum as an expression: what is added, then what is subtracted, then the constant."""
    terms = [(term, entry) for term, entry in total.items() if term is not None and entry]
    terms.sort(key=lambda item: item[1] < 0)
    constant = total.get(None, 0)
    out: Expr | None = None
    if constant > 0 and terms and terms[0][1] < 0:
        out, constant = whole(constant), 0
    for term, entry in terms:
        size = term if abs(entry) == 1 else Binary("mul", term, whole(abs(entry)))
        if out is None:
            out = size if entry > 0 else Binary("mul", term, whole(entry))
        else:
            out = Binary("add" if entry > 0 else "sub", out, size)
    if out is None:
        return whole(constant)
    if constant == 0:
        return out
    return Binary("add" if constant > 0 else "sub", out, whole(abs(constant)))
