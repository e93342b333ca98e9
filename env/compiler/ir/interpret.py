"""The meaning of LoopIR: a plain interpreter, one element at a time. Every back end is an
optimisation of it.

Values are NumPy scalars, so float32 rounds as float32. Integer division rounds towards minus
infinity; reading what was never written, indexing outside a tensor and overflowing whole numbers
are errors, not values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.dtypes import INTEGERS, fits
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Prefetch,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
)


class InterpretError(CompilerError):
    """A program that goes wrong when it runs: an index outside its tensor, an undefined element, a
    wrong argument.
    """


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
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
_UNARY: dict[str, Callable[[Any], Any]] = {
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


class _Memory:
    """A tensor's elements, and which of them are defined."""

    def __init__(self, tensor: Tensor, data: NDArray[Any], *, defined: bool) -> None:
        self.name, self.data = tensor.name, data
        self.defined = np.full(data.shape, defined)

    def place(self, indices: tuple[int, ...]) -> tuple[int, ...]:
        for axis, (index, size) in enumerate(zip(indices, self.data.shape, strict=True)):
            if not 0 <= index < size:
                raise InterpretError(
                    f"{self.name}{list(indices)}: expected 0 <= index < {size} on axis {axis}"
                )
        return indices

    def read(self, indices: tuple[int, ...]) -> Any:
        place = self.place(indices)
        if not self.defined[place]:
            raise InterpretError(f"{self.name}{list(indices)}: read before it was written")
        return self.data[place]

    def write(self, indices: tuple[int, ...], value: Any) -> None:
        place = self.place(indices)
        self.data[place] = value
        self.defined[place] = True


def interpret(
    procedure: Procedure,
    inputs: Mapping[str, NDArray[Any]],
    extents: Mapping[str, int] | None = None,
) -> dict[str, NDArray[Any]]:
    """Run a procedure: its outputs by name, from its inputs by name and the values of its extents.

    Raises:
        InterpretError: if an argument does not fit, or the program goes wrong; an output element
            that was never written is one of these.
    """
    given = dict(extents or {})
    if set(given) != set(procedure.extents):
        raise InterpretError(f"expected extents {list(procedure.extents)}, found {sorted(given)}")
    for name, value in given.items():
        if not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
            raise InterpretError(f"extent {name}: expected a whole number, found {value!r}")
    variables: dict[str, Any] = {name: int(value) for name, value in given.items()}
    memory: dict[str, _Memory] = {}
    for tensor in procedure.tensors:
        shape = tuple(_evaluate(extent, variables, memory) for extent in tensor.shape)
        if tensor.role == "output":
            memory[tensor.name] = _Memory(tensor, np.zeros(shape, tensor.dtype), defined=False)
            continue
        if tensor.name not in inputs:
            raise InterpretError(f"expected an array for input {tensor.name}, found none")
        data = inputs[tensor.name]
        if data.shape != shape or data.dtype != tensor.dtype:
            found = f"{data.dtype}{list(data.shape)}"
            raise InterpretError(
                f"{tensor.name}: expected {tensor.dtype}{list(shape)}, found {found}"
            )
        memory[tensor.name] = _Memory(tensor, data, defined=True)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        _run(procedure.body, variables, memory)
    out = {}
    for tensor in procedure.tensors:
        if tensor.role == "output":
            if not memory[tensor.name].defined.all():
                missing = np.argwhere(~memory[tensor.name].defined)[0].tolist()
                raise InterpretError(f"output {tensor.name}{missing} was never written")
            out[tensor.name] = memory[tensor.name].data
    return out


def _run(node: Stmt, variables: dict[str, Any], memory: dict[str, _Memory]) -> None:
    match node:
        case Store(tensor, indices, value, reduce):
            place = tuple(_evaluate(index, variables, memory) for index in indices)
            new = _evaluate(value, variables, memory)
            target = memory[tensor]
            if reduce is not None:
                new = _BINARY[reduce](target.read(place), new)
            target.write(place, new)
        case For(var, extent, body, _):
            for i in range(_evaluate(extent, variables, memory)):
                variables[var] = i
                _run(body, variables, memory)
            variables.pop(var, None)
        case If(condition, then):
            if _evaluate(condition, variables, memory):
                _run(then, variables, memory)
        case Block(body):
            for item in body:
                _run(item, variables, memory)
        case Allocate(tensor, body):
            shape = tuple(_evaluate(extent, variables, memory) for extent in tensor.shape)
            memory[tensor.name] = _Memory(tensor, np.zeros(shape, tensor.dtype), defined=False)
            _run(body, variables, memory)
            del memory[tensor.name]
        case Call(_, body):
            _run(body, variables, memory)
        case Barrier() | Prefetch():
            pass
        case _:
            assert_never(node)


def _evaluate(node: Expr, variables: dict[str, Any], memory: dict[str, _Memory]) -> Any:
    match node:
        case Const(value, dtype):
            # Whole numbers stay Python's: they index, and cannot overflow unseen.
            return value if dtype in ("int64", "bool") else np.dtype(dtype).type(value)
        case Var(name):
            return variables[name]
        case Load(tensor, indices):
            place = tuple(_evaluate(index, variables, memory) for index in indices)
            value = memory[tensor].read(place)
            return int(value) if memory[tensor].data.dtype == np.int64 else value
        case Binary("and", left, right):
            return bool(_evaluate(left, variables, memory)) and bool(
                _evaluate(right, variables, memory)
            )
        case Binary("or", left, right):
            return bool(_evaluate(left, variables, memory)) or bool(
                _evaluate(right, variables, memory)
            )
        case Binary(op, left, right):
            a, b = _evaluate(left, variables, memory), _evaluate(right, variables, memory)
            if op in ("floordiv", "mod") and b == 0:
                raise InterpretError(f"{op} by zero")
            if op in ("min", "max") and isinstance(a, int):
                return min(a, b) if op == "min" else max(a, b)
            return _held(_BINARY[op](a, b))
        case Unary(op, operand):
            return _held(_UNARY[op](_evaluate(operand, variables, memory)))
        case Cast(dtype, operand):
            return _cast(_evaluate(operand, variables, memory), dtype)
        case Select(condition, then, other):
            chosen = then if _evaluate(condition, variables, memory) else other
            return _evaluate(chosen, variables, memory)
        case _:
            assert_never(node)


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
