"""Scalar expressions with operators: a LoopIR expression and its dtype.

Two operands have one dtype; a Python number beside an expression takes that expression's dtype, if
it can hold it. Nothing else is converted: `cast` says what is meant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.dtypes import fits
from kernelwright.env.compiler.ir.nodes import Binary, Cast, Const, Expr, Select, Unary

_FLOATS = ("float32", "float64")
_INTEGERS = ("int32", "int64")


class TensorError(CompilerError):
    """A definition that makes no sense: what was expected and what was found."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An expression and its dtype; ``==`` and ``<`` build conditions."""

    node: Expr
    dtype: str

    def __add__(self, other: Value | float) -> Value:
        return _binary("add", self, other)

    def __radd__(self, other: float) -> Value:
        return _binary("add", other, self)

    def __sub__(self, other: Value | float) -> Value:
        return _binary("sub", self, other)

    def __rsub__(self, other: float) -> Value:
        return _binary("sub", other, self)

    def __mul__(self, other: Value | float) -> Value:
        return _binary("mul", self, other)

    def __rmul__(self, other: float) -> Value:
        return _binary("mul", other, self)

    def __truediv__(self, other: Value | float) -> Value:
        return _binary("div", self, other)

    def __rtruediv__(self, other: float) -> Value:
        return _binary("div", other, self)

    def __floordiv__(self, other: Value | int) -> Value:
        return _binary("floordiv", self, other)

    def __mod__(self, other: Value | int) -> Value:
        return _binary("mod", self, other)

    def __neg__(self) -> Value:
        return _unary("neg", self)

    def __lt__(self, other: Value | float) -> Value:
        return _compare("lt", self, other)

    def __le__(self, other: Value | float) -> Value:
        return _compare("le", self, other)

    def __gt__(self, other: Value | float) -> Value:
        return _compare("gt", self, other)

    def __ge__(self, other: Value | float) -> Value:
        return _compare("ge", self, other)

    def equals(self, other: Value | float) -> Value:
        """The condition that two values are equal."""
        return _compare("eq", self, other)

    def __and__(self, other: Value) -> Value:
        return _logic("and", self, other)

    def __or__(self, other: Value) -> Value:
        return _logic("or", self, other)

    def __bool__(self) -> bool:
        raise TensorError(
            "expected select(condition, a, b), found an expression used as a truth value"
        )


def constant(value: float, dtype: str) -> Value:
    """A number of a dtype.

    Raises:
        TensorError: if the dtype cannot hold it.
    """
    if dtype in _INTEGERS:
        if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
            raise TensorError(f"expected a whole number for {dtype}, found {value!r}")
        if not fits(value, dtype):
            raise TensorError(f"expected a number that {dtype} holds, found {value!r}")
        return Value(Const(int(value), dtype), dtype)
    if dtype not in _FLOATS:
        raise TensorError(f"expected a number's dtype, found {dtype!r}")
    try:
        return Value(Const(float(value), dtype), dtype)
    except OverflowError:
        raise TensorError(f"expected a number that {dtype} holds, found {value!r:.40}") from None


def _pair(op: str, left: Value | float, right: Value | float) -> tuple[Value, Value]:
    if isinstance(left, Value) and isinstance(right, Value):
        if left.dtype != right.dtype:
            raise TensorError(f"{op}: expected one dtype, found {left.dtype} and {right.dtype}")
        return left, right
    for side in (left, right):
        if not isinstance(side, Value | int | float) or isinstance(side, bool):
            raise TensorError(f"{op}: expected an expression or a number, found {side!r}")
    if isinstance(left, Value):
        return left, constant(_number(right), left.dtype)
    if isinstance(right, Value):
        return constant(_number(left), right.dtype), right
    raise TensorError(f"{op}: expected an expression, found two numbers")


def _number(value: Value | float) -> float:
    assert not isinstance(value, Value)
    return value


def _binary(op: str, left: Value | float, right: Value | float) -> Value:
    a, b = _pair(op, left, right)
    if a.dtype == "bool":
        raise TensorError(f"{op}: expected numbers, found conditions")
    if op == "div" and a.dtype not in _FLOATS:
        raise TensorError(f"div: expected floats (// divides whole numbers), found {a.dtype}")
    if op in ("floordiv", "mod") and a.dtype not in _INTEGERS:
        raise TensorError(f"{op}: expected whole numbers, found {a.dtype}")
    return Value(Binary(op, a.node, b.node), a.dtype)


def _compare(op: str, left: Value | float, right: Value | float) -> Value:
    a, b = _pair(op, left, right)
    return Value(Binary(op, a.node, b.node), "bool")


def _logic(op: str, left: Value, right: Value) -> Value:
    for side in (left, right):
        if not isinstance(side, Value) or side.dtype != "bool":
            raise TensorError(f"{op}: expected conditions, found {side!r}")
    return Value(Binary(op, left.node, right.node), "bool")


def _unary(op: str, operand: Value) -> Value:
    if operand.dtype == "bool":
        raise TensorError(f"{op}: expected a number, found a condition")
    return Value(Unary(op, operand.node), operand.dtype)


def _float_function(op: str, operand: Value) -> Value:
    if operand.dtype not in _FLOATS:
        raise TensorError(f"{op}: expected a float, found {operand.dtype}")
    return _unary(op, operand)


def exp(x: Value) -> Value:
    """E to the power of x."""
    return _float_function("exp", x)


def log(x: Value) -> Value:
    """The natural logarithm."""
    return _float_function("log", x)


def sqrt(x: Value) -> Value:
    """The square root."""
    return _float_function("sqrt", x)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent."""
    return _float_function("tanh", x)


def erf(x: Value) -> Value:
    """The error function."""
    return _float_function("erf", x)


def floor(x: Value) -> Value:
    """The greatest whole number at most x, as a float."""
    return _float_function("floor", x)


def absolute(x: Value) -> Value:
    """The absolute value."""
    return _unary("abs", x)


def maximum(x: Value | float, y: Value | float) -> Value:
    """The greater of two; a NaN on either side is the result."""
    return _binary("max", x, y)


def minimum(x: Value | float, y: Value | float) -> Value:
    """The lesser of two; a NaN on either side is the result."""
    return _binary("min", x, y)


def cast(x: Value, dtype: str) -> Value:
    """The value in another dtype, rounded towards zero where that is whole."""
    if dtype not in (*_FLOATS, *_INTEGERS):
        raise TensorError(f"cast: expected a number's dtype, found {dtype!r}")
    return Value(Cast(dtype, x.node), dtype)


def select(condition: Value, then: Value | float, other: Value | float) -> Value:
    """``then`` where the condition holds, else ``other``; only the chosen one is evaluated."""
    if not isinstance(condition, Value) or condition.dtype != "bool":
        raise TensorError(f"select: expected a condition, found {condition!r}")
    a, b = _pair("select", then, other)
    return Value(Select(condition.node, a.node, b.node), a.dtype)
