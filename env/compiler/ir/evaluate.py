"""The values of LoopIR's expressions, and the memory that they read.

Values are NumPy scalars, so float32 rounds as float32. Integer division rounds towards minus
infinity; reading what was never written, indexing outside a tensor and overflowing whole numbers
are errors, not values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, assert_never

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.dtypes import INTEGERS, fits
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Tensor,
    Unary,
    Var,
)


class InterpretError(CompilerError):
    """A program that goes wrong when it runs: an index outside its tensor, an undefined element, a
    wrong argument.
    """


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": np.minimum,
    "max": np.maximum,
    "pow": np.power,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda a: -a,
    "not": lambda a: not a,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": lambda a: type(a)(math.erf(a)),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}
# The operations of whole numbers and conditions on arrays of them.
ON_ARRAYS: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}


class Elements(Protocol):
    """What a running program reads from and writes to: a tensor's memory, or one thread's view
    of it.
    """

    @property
    def data(self) -> NDArray[Any]:
        """The elements."""
        ...

    def read(self, indices: tuple[int, ...]) -> Any:
        """One element."""
        ...

    def write(self, indices: tuple[int, ...], value: Any) -> None:
        """Change one element."""
        ...


class Memory:
    """A tensor's elements, and which of them are defined."""

    def __init__(self, tensor: Tensor, data: NDArray[Any], *, defined: bool) -> None:
        self.name, self.data = tensor.name, data
        self.defined = np.full(data.shape, defined)

    @classmethod
    def of(cls, tensor: Tensor, variables: Mapping[str, Any]) -> Memory:
        """New memory for a tensor; nothing in it is defined."""
        shape = tuple(evaluate(extent, variables, {}) for extent in tensor.shape)
        return cls(tensor, np.zeros(shape, tensor.dtype), defined=False)

    def place(self, indices: tuple[int, ...]) -> tuple[int, ...]:
        """The indices themselves, if they are inside."""
        for axis, (index, size) in enumerate(zip(indices, self.data.shape, strict=True)):
            if not 0 <= index < size:
                raise InterpretError(
                    f"{self.name}{list(indices)}: expected 0 <= index < {size} on axis {axis}"
                )
        return indices

    def read(self, indices: tuple[int, ...]) -> Any:
        """One element, if it is defined."""
        place = self.place(indices)
        if not self.defined[place]:
            raise InterpretError(f"{self.name}{list(indices)}: read before it was written")
        return self.data[place]

    def write(self, indices: tuple[int, ...], value: Any) -> None:
        """Define one element."""
        place = self.place(indices)
        self.data[place] = value
        self.defined[place] = True


def evaluate(node: Expr, variables: Mapping[str, Any], memory: Mapping[str, Elements]) -> Any:
    """The value of an expression; whole numbers of int64 are Python's.

    Raises:
        InterpretError: if it has none.
    """
    match node:
        case Const(value, dtype):
            # Whole numbers stay Python's: they index, and cannot overflow unseen.
            return value if dtype in ("int64", "bool") else np.dtype(dtype).type(value)
        case Var(name):
            return variables[name]
        case Load(tensor, indices):
            place = tuple(evaluate(index, variables, memory) for index in indices)
            value = memory[tensor].read(place)
            return int(value) if memory[tensor].data.dtype == np.int64 else value
        case Binary("and", left, right):
            return bool(evaluate(left, variables, memory)) and bool(
                evaluate(right, variables, memory)
            )
        case Binary("or", left, right):
            return bool(evaluate(left, variables, memory)) or bool(
                evaluate(right, variables, memory)
            )
        case Binary(op, left, right):
            a, b = evaluate(left, variables, memory), evaluate(right, variables, memory)
            if op in ("floordiv", "mod") and b == 0:
                raise InterpretError(f"{op} by zero")
            if op in ("min", "max") and isinstance(a, int):
                return min(a, b) if op == "min" else max(a, b)
            return _held(BINARY[op](a, b))
        case Unary(op, operand):
            return _held(UNARY[op](evaluate(operand, variables, memory)))
        case Cast(dtype, operand):
            return _cast(evaluate(operand, variables, memory), dtype)
        case Select(condition, then, other):
            chosen = then if evaluate(condition, variables, memory) else other
            return evaluate(chosen, variables, memory)
        case _:
            assert_never(node)


def whole_value(node: Expr, extents: Mapping[str, int]) -> int:
    """The number that arithmetic on extents comes to, an extent of a shape for one.

    Raises:
        InterpretError: if it divides by zero, or leaves int64.
    """
    return int(evaluate(node, extents, {}))


def _held(value: Any) -> Any:
    """A result, if int64 holds it: Python's whole numbers would not overflow."""
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise InterpretError(f"int64 cannot hold {value}")
    return value


def _cast(value: Any, dtype: str) -> Any:
    if dtype == "bool":
        return bool(value != 0)
    if dtype in INTEGERS:
        if not math.isfinite(value):
            raise InterpretError(f"{dtype} cannot hold {value}")
        whole = int(value)
        if not fits(whole, dtype):
            raise InterpretError(f"{dtype} cannot hold {whole}")
        return whole if dtype == "int64" else np.dtype(dtype).type(whole)
    # Through int64, so that a whole number is rounded once.
    exact = np.int64(value) if isinstance(value, int) else value
    return np.dtype(dtype).type(exact)
