"""Scalar expressions with operators: a LoopIR expression, its dtype and what it is made of.

Two operands have one dtype; a Python number beside an expression takes that expression's dtype, if
it can hold it. Nothing else is converted: `cast` says what is meant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.dtypes import FLOATS, INTEGERS, fits
from kernelwright.env.compiler.ir.nodes import Binary, Const, Expr, Unary


class TensorError(CompilerError):
    """A definition that makes no sense: what was expected and what was found."""


class Source:
    """What an expression can be made of: a tensor that it reads, or a domain that it runs over."""

    __slots__ = ()


class Operand:
    """What may stand in an expression: operators that build larger ones.

    Comparisons, ``==`` and ``!=`` among them, build conditions; ``&``, ``|`` and ``~`` combine
    these.
    """

    __slots__ = ()
    # Two operands are the same thing only if they are one object: ``==`` builds a condition.
    __hash__ = object.__hash__

    def as_value(self) -> Value:
        """The operand as an expression.

        Raises:
            TensorError: if it stands for none.
        """
        raise NotImplementedError

    def __add__(self, other: Operand | float) -> Value:
        return binary("add", self, other)

    def __radd__(self, other: float) -> Value:
        return binary("add", other, self)

    def __sub__(self, other: Operand | float) -> Value:
        return binary("sub", self, other)

    def __rsub__(self, other: float) -> Value:
        return binary("sub", other, self)

    def __mul__(self, other: Operand | float) -> Value:
        return binary("mul", self, other)

    def __rmul__(self, other: float) -> Value:
        return binary("mul", other, self)

    def __truediv__(self, other: Operand | float) -> Value:
        return binary("div", self, other)

    def __rtruediv__(self, other: float) -> Value:
        return binary("div", other, self)

    def __floordiv__(self, other: Operand | int) -> Value:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: int) -> Value:
        return binary("floordiv", other, self)

    def __mod__(self, other: Operand | int) -> Value:
        return binary("mod", self, other)

    def __rmod__(self, other: int) -> Value:
        return binary("mod", other, self)

    def __pow__(self, other: Operand | float) -> Value:
        return binary("pow", self, other)

    def __rpow__(self, other: float) -> Value:
        return binary("pow", other, self)

    def __neg__(self) -> Value:
        return unary("neg", self)

    def __abs__(self) -> Value:
        return unary("abs", self)

    def __lt__(self, other: Operand | float) -> Value:
        return _compare("lt", self, other)

    def __le__(self, other: Operand | float) -> Value:
        return _compare("le", self, other)

    def __gt__(self, other: Operand | float) -> Value:
        return _compare("gt", self, other)

    def __ge__(self, other: Operand | float) -> Value:
        return _compare("ge", self, other)

    def __eq__(self, other: Operand | float) -> Value:  # type: ignore[override]
        return _compare("eq", self, other)

    def __ne__(self, other: Operand | float) -> Value:  # type: ignore[override]
        return _compare("ne", self, other)

    def __and__(self, other: Operand) -> Value:
        return _logic("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return _logic("or", self, other)

    def __invert__(self) -> Value:
        value = self.as_value()
        if value.dtype != "bool":
            raise TensorError(f"not: expected a condition, found {value.dtype}")
        return Value(Unary("not", value.node), "bool", value.sources)

    def __bool__(self) -> bool:
        raise TensorError(
            "expected select(condition, a, b), found an expression used as a truth value"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Value(Operand):
    """An expression, its dtype, and the tensors and domains in it in the order in which they first
    appear.
    """

    node: Expr
    dtype: str
    sources: tuple[Source, ...] = ()

    def as_value(self) -> Value:
        """Itself."""
        return self


def merged(*parts: tuple[Source, ...]) -> tuple[Source, ...]:
    """Sources in order, each once."""
    if not any(parts[1:]):
        return parts[0] if parts else ()
    return tuple({id(source): source for part in parts for source in part}.values())


def constant(value: float, dtype: str) -> Value:
    """A number of a dtype.

    Raises:
        TensorError: if the dtype cannot hold it.
    """
    if dtype in INTEGERS:
        if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
            raise TensorError(f"expected a whole number for {dtype}, found {value!r}")
        if not fits(int(value), dtype):
            raise TensorError(f"expected a number that {dtype} holds, found {value!r}")
        return Value(Const(int(value), dtype), dtype)
    if dtype not in FLOATS:
        raise TensorError(f"expected a number's dtype, found {dtype!r}")
    try:
        return Value(Const(float(value), dtype), dtype)
    except OverflowError:
        raise TensorError(f"expected a number that {dtype} holds, found {value!r:.40}") from None


def pair(op: str, left: Operand | float, right: Operand | float) -> tuple[Value, Value]:
    """Two operands of one dtype.

    Raises:
        TensorError: if their dtypes differ, or neither is an expression.
    """
    if isinstance(left, Operand) and isinstance(right, Operand):
        a, b = left.as_value(), right.as_value()
        if a.dtype != b.dtype:
            raise TensorError(f"{op}: expected one dtype, found {a.dtype} and {b.dtype}")
        return a, b
    for side in (left, right):
        if not isinstance(side, Operand | int | float) or isinstance(side, bool):
            raise TensorError(f"{op}: expected an expression or a number, found {side!r}")
    if isinstance(left, Operand) and not isinstance(right, Operand):
        a = left.as_value()
        return a, constant(right, a.dtype)
    if isinstance(right, Operand) and not isinstance(left, Operand):
        b = right.as_value()
        return constant(left, b.dtype), b
    raise TensorError(f"{op}: expected an expression, found two numbers")


def binary(op: str, left: Operand | float, right: Operand | float) -> Value:
    """An operation on two numbers.

    Raises:
        TensorError: if it does not exist for their dtypes.
    """
    a, b = pair(op, left, right)
    if a.dtype == "bool":
        raise TensorError(f"{op}: expected numbers, found conditions")
    if op in ("div", "pow") and a.dtype not in FLOATS:
        hint = " (// divides whole numbers)" if op == "div" else ""
        raise TensorError(f"{op}: expected floats{hint}, found {a.dtype}")
    if op in ("floordiv", "mod") and a.dtype not in INTEGERS:
        raise TensorError(f"{op}: expected whole numbers, found {a.dtype}")
    if op in ("floordiv", "mod") and isinstance(b.node, Const) and b.node.value == 0:
        raise TensorError(f"{op}: expected a divisor other than 0")
    return Value(Binary(op, a.node, b.node), a.dtype, merged(a.sources, b.sources))


def _compare(op: str, left: Operand | float, right: Operand | float) -> Value:
    a, b = pair(op, left, right)
    return Value(Binary(op, a.node, b.node), "bool", merged(a.sources, b.sources))


def _logic(op: str, left: Operand, right: Operand) -> Value:
    for side in (left, right):
        if not isinstance(side, Operand) or side.as_value().dtype != "bool":
            raise TensorError(f"{op}: expected conditions, found {side!r}")
    a, b = left.as_value(), right.as_value()
    return Value(Binary(op, a.node, b.node), "bool", merged(a.sources, b.sources))


def unary(op: str, operand: Operand) -> Value:
    """An operation on one number.

    Raises:
        TensorError: if it is a condition.
    """
    value = operand.as_value()
    if value.dtype == "bool":
        raise TensorError(f"{op}: expected a number, found a condition")
    return Value(Unary(op, value.node), value.dtype, value.sources)
