"""Interval arithmetic (Moore, 1966): between which numbers a whole-number expression lies while its
variables do.

Numbers alone; bounds that are expressions of what is not known are those of `schedule.ranges`.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.env.compiler.ir.nodes import Binary, Cast, Const, Expr, Unary, Var

# The least and the greatest value.
Interval = tuple[int, int]


def interval(node: Expr, values: Callable[[str], Interval | None]) -> Interval | None:
    """The values of an expression, where ``values`` has those of variables; None if it depends on
    memory or on a variable that may have any.

    Exact where every variable occurs once and no remainder is taken.
    """
    match node:
        case Const(value, "int64"):
            return int(value), int(value)
        case Var(name):
            return values(name)
        case Cast("int64", operand):
            return interval(operand, values)
        case Unary("neg", operand):
            found = interval(operand, values)
            return None if found is None else (-found[1], -found[0])
        case Binary(op, left, right):
            a, b = interval(left, values), interval(right, values)
            return None if a is None or b is None else _combined(op, a, b)
    return None


def _combined(op: str, a: Interval, b: Interval) -> Interval | None:
    match op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            ends = [x * y for x in a for y in b]
            return min(ends), max(ends)
        case "floordiv" if b[0] == b[1] > 0:
            return a[0] // b[0], a[1] // b[0]
        case "mod" if b[0] == b[1] > 0:
            one_block = a[0] // b[0] == a[1] // b[0]
            return (a[0] % b[0], a[1] % b[0]) if one_block else (0, b[0] - 1)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
    return None
