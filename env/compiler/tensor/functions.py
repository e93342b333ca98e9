"""Functions of scalar expressions: mathematics, choices and conversions."""

from __future__ import annotations

from kernelwright.env.compiler.ir.dtypes import FLOATS, INTEGERS
from kernelwright.env.compiler.ir.nodes import Cast, Select
from kernelwright.env.compiler.tensor.expression import (
    Operand,
    TensorError,
    Value,
    binary,
    merged,
    pair,
    unary,
)


def _of_float(op: str, operand: Operand) -> Value:
    value = operand.as_value()
    if value.dtype not in FLOATS:
        raise TensorError(f"{op}: expected a float, found {value.dtype}")
    return unary(op, value)


def exp(x: Operand) -> Value:
    """E to the power of x."""
    return _of_float("exp", x)


def log(x: Operand) -> Value:
    """The natural logarithm."""
    return _of_float("log", x)


def sqrt(x: Operand) -> Value:
    """The square root."""
    return _of_float("sqrt", x)


def sin(x: Operand) -> Value:
    """The sine of an angle in radians."""
    return _of_float("sin", x)


def cos(x: Operand) -> Value:
    """The cosine of an angle in radians."""
    return _of_float("cos", x)


def tanh(x: Operand) -> Value:
    """The hyperbolic tangent."""
    return _of_float("tanh", x)


def erf(x: Operand) -> Value:
    """The error function."""
    return _of_float("erf", x)


def floor(x: Operand) -> Value:
    """The greatest whole number at most x, as a float."""
    return _of_float("floor", x)


def ceil(x: Operand) -> Value:
    """The least whole number at least x, as a float."""
    return _of_float("ceil", x)


def rounded(x: Operand) -> Value:
    """The nearest whole number, as a float; halves go to the even one."""
    return _of_float("round", x)


def trunc(x: Operand) -> Value:
    """The whole part of x, as a float."""
    return _of_float("trunc", x)


def power(x: Operand | float, y: Operand | float) -> Value:
    """X to the power of y; the same as ``x ** y``."""
    return binary("pow", x, y)


def absolute(x: Operand) -> Value:
    """The absolute value; the same as ``abs(x)``."""
    return unary("abs", x)


def maximum(x: Operand | float, y: Operand | float) -> Value:
    """The greater of two; a NaN on either side is the result."""
    return binary("max", x, y)


def minimum(x: Operand | float, y: Operand | float) -> Value:
    """The lesser of two; a NaN on either side is the result."""
    return binary("min", x, y)


def clamp(x: Operand, low: Operand | float, high: Operand | float) -> Value:
    """The nearest to x of the values from ``low`` to ``high``, both included."""
    return maximum(minimum(x, high), low)


def cast(x: Operand, dtype: str) -> Value:
    """The value in another dtype, rounded towards zero where that is whole."""
    if dtype not in (*FLOATS, *INTEGERS):
        raise TensorError(f"cast: expected a number's dtype, found {dtype!r}")
    value = x.as_value()
    return Value(Cast(dtype, value.node), dtype, value.sources)


def select(condition: Operand, then: Operand | float, other: Operand | float) -> Value:
    """``then`` where the condition holds, else ``other``; only the chosen one is evaluated."""
    if not isinstance(condition, Operand) or condition.as_value().dtype != "bool":
        raise TensorError(f"select: expected a condition, found {condition!r}")
    held = condition.as_value()
    a, b = pair("select", then, other)
    sources = merged(held.sources, a.sources, b.sources)
    return Value(Select(held.node, a.node, b.node), a.dtype, sources)
