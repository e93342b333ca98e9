"""Simplification of whole-number and logical expressions: a table of rules, tried from the bottom
up until none applies.

    fold          an operation on constants is its result
    x + 0, 0 + x, x - 0, x * 1, 1 * x, x // 1   →   x
    x * 0, 0 * x, x % 1                         →   0
    (x + a) + b  →  x + (a + b),   (x * a) * b  →  x * (a * b),   (x + a) - b  →  x + (a - b)
    (x + a) * b  →  x * b + a * b,   x + (y + z)  →  (x + y) + z  (whole numbers)
    min(x, x), max(x, x)                        →   x
    true and c, c and true, false or c          →   c;   false and c → false;   true or c → true
    select(true, a, b) → a;   select(false, a, b) → b
    if true: s → s;   if false: s → nothing;   for v in 0: s → nothing;
    while false: s → nothing

Floating-point expressions are left alone: x + 0 is not x for x = -0, and folding would round
differently from the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Procedure,
    Select,
    Stmt,
    Unary,
    Var,
    While,
    children,
    map_statements,
    rebuild,
)

_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
TRUE, FALSE = Const(True, "bool"), Const(False, "bool")
EMPTY = Block(())


def whole(value: int) -> Const:
    """A whole-number constant."""
    return Const(value, "int64")


def product(factors: Iterable[Expr]) -> Expr:
    """The product of some whole numbers; 1 of none."""
    out: Expr = whole(1)
    for factor in factors:
        out = Binary("mul", out, factor)
    return out


def simplify(node: Expr) -> Expr:
    """The expression after all rules."""
    # Written out for what index arithmetic is made of: this is where lowering spends its time.
    if isinstance(node, Const | Var):
        return node
    if isinstance(node, Binary):
        left, right = simplify(node.left), simplify(node.right)
        if left is not node.left or right is not node.right:
            node = Binary(node.op, left, right)
    else:
        operands = children(node)
        simpler = tuple([simplify(child) for child in operands])
        if any(new is not old for new, old in zip(simpler, operands, strict=True)):
            node = rebuild(node, simpler)
    return simplify_top(node)


def simplify_top(node: Expr) -> Expr:
    """The expression after all rules, where its operands have been through them already."""
    while True:
        again = _once(node)
        if again is node:
            return node
        node = again


def _is(node: Expr, value: int) -> bool:
    return isinstance(node, Const) and node.dtype == "int64" and node.value == value


def _is_whole(node: Expr) -> bool:
    """Whether an expression is known to be a whole number, whose sums may be regrouped."""
    while isinstance(node, Binary) and node.op in _FOLD:
        node = node.left
    return isinstance(node, Var) or (isinstance(node, Const | Cast) and node.dtype == "int64")


def _once(node: Expr) -> Expr:
    """The expression after one rule, or itself."""
    if isinstance(node, Binary):
        x, y = node.left, node.right
        if isinstance(x, Const) and isinstance(y, Const) and x.dtype == y.dtype == "int64":
            return _fold(node, node.op, x.value, y.value)
        rule = _RULES.get(node.op)
        return node if rule is None else rule(node)
    match node:
        case Unary("not", Const(a, "bool")):
            return FALSE if a else TRUE
        case Select(Const(a, "bool"), then, other):
            return then if a else other
    return node


def _add(node: Binary) -> Expr:
    x, y = node.left, node.right
    if _is(y, 0):
        return x
    if _is(x, 0):
        return y
    match x, y:
        case Binary("add", inner, Const(a, "int64")), Const(b, "int64"):
            return Binary("add", inner, whole(int(a) + int(b)))
        case _, Binary("add", left, right) if _is_whole(x):
            return Binary("add", simplify(Binary("add", x, left)), right)
    return node


def _sub(node: Binary) -> Expr:
    x, y = node.left, node.right
    if _is(y, 0):
        return x
    match x, y:
        case Binary("add", inner, Const(a, "int64")), Const(b, "int64"):
            rest = int(a) - int(b)
            if rest < 0:
                return Binary("sub", inner, whole(-rest))
            return Binary("add", inner, whole(rest)) if rest else inner
    return node


def _mul(node: Binary) -> Expr:
    x, y = node.left, node.right
    if _is(x, 1) or _is(y, 0):
        return y
    if _is(y, 1) or _is(x, 0):
        return x
    match x, y:
        case Binary("mul", inner, Const(a, "int64")), Const(b, "int64"):
            return Binary("mul", inner, whole(int(a) * int(b)))
        case Binary("add", inner, Const(a, "int64")), Const(b, "int64"):
            product = simplify(Binary("mul", inner, whole(int(b))))
            return Binary("add", product, whole(int(a) * int(b)))
    return node


def _floordiv(node: Binary) -> Expr:
    return node.left if _is(node.right, 1) else node


def _mod(node: Binary) -> Expr:
    return whole(0) if _is(node.right, 1) else node


def _extremum(node: Binary) -> Expr:
    return node.left if isinstance(node.left, Var) and node.left == node.right else node


def _connective(node: Binary) -> Expr:
    return _logic(node, node.left, node.right)


_RULES: dict[str, Callable[[Binary], Expr]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "floordiv": _floordiv,
    "mod": _mod,
    "min": _extremum,
    "max": _extremum,
    "and": _connective,
    "or": _connective,
}


def _fold(node: Expr, op: str, a: Any, b: Any) -> Expr:
    if op in _COMPARE:
        return TRUE if _COMPARE[op](a, b) else FALSE
    if op not in _FOLD or (op in ("floordiv", "mod") and b == 0):
        return node
    result = _FOLD[op](a, b)
    # A result that int64 cannot hold stays an operation, so that it fails where it runs.
    return whole(result) if -(2**63) <= result < 2**63 else node


def _logic(node: Binary, x: Expr, y: Expr) -> Expr:
    neutral, absorbing = (TRUE, FALSE) if node.op == "and" else (FALSE, TRUE)
    if absorbing in (x, y):
        return absorbing if x == absorbing else node
    if x == neutral:
        return y
    return x if y == neutral else node


def simplify_statement(node: Stmt) -> Stmt:
    """The statement with simplified expressions and without what never runs."""
    return map_statements(node, simplify, _prune)


def _prune(node: Stmt) -> Stmt:
    match node:
        case If(Const(a, "bool"), then):
            return then if a else EMPTY
        case If(_, then) if then == EMPTY:
            return EMPTY
        case While(Const(False, "bool"), _):
            return EMPTY
        case For(_, extent, body, _) if body == EMPTY or _is(extent, 0):
            return EMPTY
        case Allocate(_, body) | Call(_, body) if body == EMPTY:
            return EMPTY
        case Block(body):
            flat: list[Stmt] = []
            for item in body:
                flat += item.body if isinstance(item, Block) else (item,)
            return flat[0] if len(flat) == 1 else Block(tuple(flat))
    return node


def simplify_procedure(procedure: Procedure) -> Procedure:
    """The procedure with a simplified body."""
    body = simplify_statement(procedure.body)
    return replace(procedure, body=body)
