"""Stages: inputs, computed tensors and reductions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelwright.env.compiler.ir.dtypes import DTYPES
from kernelwright.env.compiler.ir.nodes import Const, Expr, Load, Var
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.tensor.expression import TensorError, Value, constant

Size = int | str


def extent(name: str) -> Value:
    """An extent by name, as a value: its number is known when the kernel is called."""
    return Value(Var(name), "int64")


def _size(size: Size) -> Expr:
    if isinstance(size, str):
        if not size.isidentifier():
            raise TensorError(f"expected an extent's name, found {size!r}")
        return Var(size)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise TensorError(f"expected a size of at least 1 or an extent's name, found {size!r}")
    return whole(size)


@dataclass(frozen=True, slots=True, eq=False)
class _Indexed:
    """What can be read at indices."""

    name: str
    shape: tuple[Expr, ...]
    dtype: str

    def __getitem__(self, indices: Value | int | tuple[Value | int, ...]) -> Value:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != len(self.shape):
            raise TensorError(
                f"{self.name}: expected {len(self.shape)} indices, found {len(given)}"
            )
        places = []
        for index in given:
            value = index if isinstance(index, Value) else constant(index, "int64")
            if value.dtype != "int64":
                raise TensorError(f"{self.name}: expected whole indices, found {value.dtype}")
            places.append(value.node)
        return Value(Load(self.name, tuple(places)), self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder(_Indexed):
    """An input."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a stage: its name and extent."""

    name: str
    extent: Expr


@dataclass(frozen=True, slots=True, eq=False)
class ReduceAxis:
    """An axis that a reduction runs over; usable as an index."""

    axis: Axis

    @property
    def value(self) -> Value:
        """The axis as an index."""
        return Value(Var(self.axis.name), "int64")


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A value combined over axes, starting from ``start``."""

    op: str
    value: Value
    axes: tuple[Axis, ...]
    start: Const


@dataclass(frozen=True, slots=True, eq=False)
class Stage(_Indexed):
    """A computed tensor: its axes, and the value or reduction at each of its places."""

    axes: tuple[Axis, ...]
    body: Value | Reduction
    reads: tuple[_Indexed, ...]


def placeholder(name: str, shape: Sequence[Size], dtype: str = "float32") -> Placeholder:
    """An input tensor.

    Raises:
        TensorError: if name, shape or dtype are not one's.
    """
    _check(name, dtype)
    return Placeholder(name, tuple(_size(size) for size in shape), dtype)


def reduce_axis(name: str, size: Size) -> ReduceAxis:
    """An axis to reduce over; its ``value`` is the index."""
    _check(name, "int64")
    return ReduceAxis(Axis(name, _size(size)))


def _check(name: str, dtype: str) -> None:
    if not name.isidentifier():
        raise TensorError(f"expected a name, found {name!r}")
    if dtype not in DTYPES:
        raise TensorError(f"{name}: expected one of {', '.join(DTYPES)}, found {dtype!r}")


def compute(
    name: str,
    shape: Sequence[Size],
    body: Callable[..., Value | Reduction],
    reads: Sequence[Placeholder | Stage],
) -> Stage:
    """A tensor computed place by place, as in ``compute("y", (4,), lambda i: x[i] * 2.0, [x])``.

    ``body`` is called with one index a dimension; the names of its parameters name the loops.
    ``reads`` lists what it reads.

    Raises:
        TensorError: if the body has another number of parameters, or is no expression, or reads
            what is not listed.
    """
    parameters = list(inspect.signature(body).parameters)
    if len(parameters) != len(shape):
        raise TensorError(f"{name}: expected {len(shape)} indices, found {parameters}")
    axes = tuple(Axis(p, _size(size)) for p, size in zip(parameters, shape, strict=True))
    result = body(*(Value(Var(axis.name), "int64") for axis in axes))
    if not isinstance(result, Value | Reduction):
        raise TensorError(f"{name}: expected an expression, found {result!r}")
    dtype = result.dtype if isinstance(result, Value) else result.value.dtype
    _check(name, dtype)
    return Stage(name, tuple(axis.extent for axis in axes), dtype, axes, result, tuple(reads))


def _reduction(
    op: str, value: Value, over: ReduceAxis | Sequence[ReduceAxis], start: float
) -> Reduction:
    axes = (over,) if isinstance(over, ReduceAxis) else tuple(over)
    if not axes:
        raise TensorError(f"{op}: expected at least one axis")
    if value.dtype.startswith("int") and math.isinf(start):
        limit = 2 ** (31 if value.dtype == "int32" else 63)
        start = -limit if start < 0 else limit - 1
    node = constant(start, value.dtype).node
    assert isinstance(node, Const)
    return Reduction(op, value, tuple(axis.axis for axis in axes), node)


def reduce_sum(value: Value, over: ReduceAxis | Sequence[ReduceAxis]) -> Reduction:
    """The sum over axes, in their order."""
    return _reduction("add", value, over, 0)


def reduce_prod(value: Value, over: ReduceAxis | Sequence[ReduceAxis]) -> Reduction:
    """The product over axes, in their order."""
    return _reduction("mul", value, over, 1)


def reduce_max(value: Value, over: ReduceAxis | Sequence[ReduceAxis]) -> Reduction:
    """The greatest over axes."""
    return _reduction("max", value, over, -math.inf)


def reduce_min(value: Value, over: ReduceAxis | Sequence[ReduceAxis]) -> Reduction:
    """The least over axes."""
    return _reduction("min", value, over, math.inf)
