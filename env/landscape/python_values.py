"""Lists of values that a tuning file writes as a Python expression: ``[16, 32]``,
``range(1, 9)``, ``[16 * i for i in range(1, 17)]``. Nothing but literals, arithmetic, ranges and
comprehensions is evaluated, no list longer than `MAX_VALUES`, and in no more than `MAX_STEPS`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

MAX_VALUES = 100_000
MAX_TEXT = 100_000
MAX_STEPS = 1_000_000
UNPARSED = (SyntaxError, RecursionError, MemoryError)
"""What `ast.parse` raises on text that is no Python, or nested too deeply."""
_LARGEST = 2**53

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def values_of(text: str) -> list[Any]:
    """The list that an expression stands for.

    Raises:
        ValueError: if it is no such expression.
    """
    if len(text) > MAX_TEXT:
        raise ValueError(f"expected at most {MAX_TEXT} characters, found {len(text)}")
    try:
        value = _value(ast.parse(text.strip(), mode="eval").body, {}, _Allowance())
    except (*UNPARSED, TypeError, ArithmeticError, KeyError) as error:
        raise ValueError(f"{text!r:.80}: expected a list in Python: {error}") from None
    if not isinstance(value, list):
        raise ValueError(f"{text!r:.80}: expected a list in Python")
    return value


class _Allowance:
    """The steps that are left for one expression: nested comprehensions have no length of their
    own.
    """

    def __init__(self) -> None:
        self._left = MAX_STEPS

    def spend(self, steps: int) -> None:
        """Take some.

        Raises:
            ValueError: if none is left.
        """
        self._left -= steps
        if self._left < 0:
            raise ValueError(f"expected an expression of at most {MAX_STEPS:,} steps, found more")


def _value(node: ast.expr, names: Mapping[str, Any], left: _Allowance) -> Any:
    left.spend(1)
    match node:
        case ast.Constant(bool() | int() | float() | str() as value):
            return value
        case ast.Name(name):
            return names[name]
        case ast.List(parts) | ast.Tuple(parts):
            return [_value(part, names, left) for part in parts]
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, names, left)
        case ast.BinOp(first, op, second) if type(op) in _OPERATORS:
            return _combined(type(op), _value(first, names, left), _value(second, names, left))
        case ast.Compare(first, [op], [second]) if type(op) in _COMPARISONS:
            return _COMPARISONS[type(op)](_value(first, names, left), _value(second, names, left))
        case ast.Call(ast.Name("range"), arguments, []):
            return _short(left, range(*(_value(argument, names, left) for argument in arguments)))
        case ast.Call(ast.Name("list" | "sorted"), [argument], []):
            return list(_value(argument, names, left))
        case ast.ListComp(element, [ast.comprehension(ast.Name(name), over, tests, 0)]):
            return [
                _value(element, {**names, name: each}, left)
                for each in _value(over, names, left)
                if all(_value(test, {**names, name: each}, left) for test in tests)
            ]
    raise ValueError(f"{ast.unparse(node)!r:.80}: expected literals, ranges and arithmetic")


def _short(left: _Allowance, values: range) -> list[int]:
    if len(values) > MAX_VALUES:
        raise ValueError(f"expected at most {MAX_VALUES} values, found {len(values)}")
    left.spend(len(values))
    return list(values)


def _combined(op: type[ast.operator], left: Any, right: Any) -> Any:
    if isinstance(left, list) or isinstance(right, list):
        whole = op is ast.Add and isinstance(left, list) and isinstance(right, list)
        if not whole or len(left) + len(right) > MAX_VALUES:
            raise ValueError("lists: expected only sums of short ones")
        return left + right
    for number in (left, right):
        if isinstance(number, str) or abs(number) > _LARGEST:
            raise ValueError(f"expected a number up to 2^53, found {number!r:.80}")
    if op is ast.Pow and not (0 <= right <= 64 and abs(left) <= 1024):
        raise ValueError(f"expected a small power, found {left}**{right}")
    return _OPERATORS[op](left, right)
