"""Conditions on a procedure's extents as text: ``n % 8 == 0 and m >= 64``."""

from __future__ import annotations

import ast

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Var
from kernelwright.env.compiler.ir.simplify import simplify, whole

_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}

# Sizes that a kernel can be called with are below this.
MAX_EXTENT = 2**31
# Of a condition's text; each operation in it may stand inside another.
MAX_LENGTH = 256


def parse_condition(op: str, text: object, extents: tuple[str, ...]) -> Expr:
    """The condition in a text: comparisons of extents and whole numbers with ``+ - * // %``, joined
    by ``and`` and ``or``. No extent that a kernel can be called with takes a number out of int64.

    Raises:
        ScheduleError: if it is none, or longer than `MAX_LENGTH`; it says what was found.
    """
    if isinstance(text, str) and len(text) > MAX_LENGTH:
        reason = f"expected a condition of at most {MAX_LENGTH} characters, found {len(text)}"
        raise ScheduleError(op, reason)
    try:
        tree = ast.parse(text, mode="eval") if isinstance(text, str) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        raise ScheduleError(op, f"expected a condition like 'n % 8 == 0', found {text!r}")
    return simplify(_condition(op, tree.body, extents))


def _condition(op: str, node: ast.expr, extents: tuple[str, ...]) -> Expr:
    match node:
        case ast.BoolOp(connective, values):
            name = "and" if isinstance(connective, ast.And) else "or"
            out = _condition(op, values[0], extents)
            for value in values[1:]:
                out = Binary(name, out, _condition(op, value, extents))
            return out
        case ast.Compare(left, [comparison], [right]) if type(comparison) in _COMPARISONS:
            sides = _number(op, left, extents), _number(op, right, extents)
            return Binary(_COMPARISONS[type(comparison)], *sides)
    raise ScheduleError(op, f"expected a comparison of two numbers, found {ast.unparse(node)}")


def _number(op: str, node: ast.expr, extents: tuple[str, ...]) -> Expr:
    match node:
        case ast.Constant(int(value)) if not isinstance(value, bool) and abs(value) < 2**31:
            return whole(value)
        case ast.Name(name) if name in extents:
            return Var(name)
        case ast.BinOp(left, sign, right) if type(sign) in _ARITHMETIC:
            operands = _number(op, left, extents), _number(op, right, extents)
            divides = isinstance(sign, ast.FloorDiv | ast.Mod)
            if divides and not (isinstance(right, ast.Constant) and right.value):
                reason = f"expected to divide by a number, found {ast.unparse(node)}"
                raise ScheduleError(op, reason)
            out = Binary(_ARITHMETIC[type(sign)], *operands)
            if _greatest(out) >= 2**63:
                reason = f"expected numbers that int64 holds for all extents below {MAX_EXTENT}"
                raise ScheduleError(op, f"{reason}, found {ast.unparse(node)}")
            return out
    known = ", ".join(extents) or "none"
    reason = f"expected a whole number or one of the extents {known}, found {ast.unparse(node)}"
    raise ScheduleError(op, reason)


def _greatest(node: Expr) -> int:
    """What the absolute value of a number in a condition does not exceed."""
    match node:
        case Const(value):
            return abs(int(value))
        case Binary("add" | "sub", left, right):
            return _greatest(left) + _greatest(right)
        case Binary("mul", left, right):
            return _greatest(left) * _greatest(right)
        case Binary("floordiv", left, _):
            # Towards minus infinity: -1 // 2 is -1.
            return max(_greatest(left), 1)
        case Binary("mod", _, right):
            return _greatest(right)
    return MAX_EXTENT
