"""What expressions read: inputs and computed tensors, and the definitions that compute one.

A tensor's elements have coordinates; the first element along an axis is at ``low``, which is 0 but
for inputs declared otherwise and for the realisations of functions over unbounded space.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelwright.env.compiler.ir import nodes
from kernelwright.env.compiler.ir.dtypes import DTYPES, INTEGERS
from kernelwright.env.compiler.ir.nodes import Cast, Expr, Load, walk
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.tensor.domain import (
    Axis,
    Coordinate,
    RDom,
    Size,
    Var,
    coordinate,
    proper_name,
    size,
)
from kernelwright.env.compiler.tensor.expression import (
    Operand,
    Source,
    TensorError,
    Value,
    constant,
    merged,
)
from kernelwright.env.compiler.tensor.reduction import Reduction

Index = Operand | int


class Indexed(Source):
    """What can be read at indices, in NumPy's order: the last axis is the innermost in memory."""

    __slots__ = ()
    name: str
    dtype: str

    @property
    def rank(self) -> int:
        """The number of its axes."""
        raise NotImplementedError

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Value:
        places = self.place(indices)
        node = Load(self.name, tuple(place.node for place in places))
        return Value(node, self.dtype, merged((self,), *(place.sources for place in places)))

    def place(self, indices: Index | tuple[Index, ...]) -> tuple[Value, ...]:
        """Indices as whole numbers, one an axis.

        Raises:
            TensorError: if they are too few or too many, or no whole numbers.
        """
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != self.rank:
            raise TensorError(f"{self.name}: expected {self.rank} indices, found {len(given)}")
        return tuple(self._whole(index) for index in given)

    def _whole(self, index: Index) -> Value:
        value = index.as_value() if isinstance(index, Operand) else constant(index, "int64")
        if value.dtype not in INTEGERS:
            raise TensorError(f"{self.name}: expected whole indices, found {value.dtype}")
        if value.dtype == "int64":
            return value
        return Value(Cast("int64", value.node), "int64", value.sources)


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder(Indexed):
    """An input: its shape, and the coordinates of its first element."""

    name: str
    shape: tuple[Expr, ...]
    dtype: str
    low: tuple[Expr, ...]

    @property
    def rank(self) -> int:
        """The number of its axes."""
        return len(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class ImageParam(Indexed):
    """An input over unbounded space: its array holds the region that is read of it."""

    name: str
    axes: int
    dtype: str = "float32"

    def __post_init__(self) -> None:
        proper_name(self.name)
        _check_dtype(self.name, self.dtype)
        if not isinstance(self.axes, int) or isinstance(self.axes, bool) or self.axes < 1:
            raise TensorError(f"{self.name}: expected at least 1 axis, found {self.axes!r}")

    @property
    def rank(self) -> int:
        """The number of its axes."""
        return self.axes


@dataclass(frozen=True, slots=True)
class Definition:
    """How elements get a value: a store at ``indices`` for every value of the ``pure`` variables
    (loops over the tensor's own axes) and of the reduction ``axes`` inside them, where
    ``condition`` holds.

    ``suffix`` ends the names of its loops.
    """

    indices: tuple[Expr, ...]
    value: Expr
    pure: tuple[str, ...]
    axes: tuple[Axis, ...] = ()
    reduce: str | None = None
    condition: Expr | None = None
    suffix: str = ""

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Everything that is evaluated."""
        known = () if self.condition is None else (self.condition,)
        return (*self.indices, self.value, *known)


@dataclass(frozen=True, slots=True, eq=False)
class Stage(Indexed):
    """A computed tensor of a known shape: the variables of its axes, its definitions in order, and
    what they are made of.
    """

    name: str
    shape: tuple[Expr, ...]
    dtype: str
    variables: tuple[str, ...]
    definitions: tuple[Definition, ...]
    sources: tuple[Source, ...]

    @property
    def rank(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    @property
    def low(self) -> tuple[Expr, ...]:
        """The coordinates of its first element: zeros."""
        return (whole(0),) * len(self.shape)


def placeholder(
    name: str, shape: Sequence[Size], dtype: str = "float32", low: Sequence[Coordinate] = ()
) -> Placeholder:
    """An input tensor; ``low`` are the coordinates of its first element, zeros unless given.

    Raises:
        TensorError: if name, shape or dtype are not one's.
    """
    proper_name(name)
    _check_dtype(name, dtype)
    if low and len(low) != len(shape):
        raise TensorError(f"{name}: expected {len(shape)} coordinates in low, found {len(low)}")
    first = tuple(map(coordinate, low)) if low else (whole(0),) * len(shape)
    return Placeholder(name, tuple(size(each) for each in shape), dtype, first)


def _check_dtype(name: str, dtype: str) -> None:
    if dtype not in DTYPES:
        raise TensorError(f"{name}: expected one of {', '.join(DTYPES)}, found {dtype!r}")


def compute(
    name: str,
    shape: Sequence[Size],
    body: Callable[..., Value | Reduction],
    reads: Sequence[Indexed] | None = None,
) -> Stage:
    """A tensor computed place by place, as in ``compute("y", (4,), lambda i: x[i] * 2.0)``.

    ``body`` is called with one index a dimension; the names of its parameters name the loops.
    ``reads`` may list what it reads, and is then what it may read.

    Raises:
        TensorError: if the body has another number of parameters, or is no expression, or reads
            what is not listed.
    """
    proper_name(name)
    parameters = tuple(inspect.signature(body).parameters)
    if len(parameters) != len(shape):
        raise TensorError(f"{name}: expected {len(shape)} indices, found {list(parameters)}")
    result = body(*(Value(nodes.Var(parameter), "int64") for parameter in parameters))
    if not isinstance(result, Value | Reduction):
        raise TensorError(f"{name}: expected an expression, found {result!r}")
    _check_dtype(name, result.dtype)
    definitions = defined(name, parameters, result)
    sizes = tuple(size(each) for each in shape)
    return Stage(name, sizes, result.dtype, parameters, definitions, _sources(name, result, reads))


def _sources(
    name: str, result: Value | Reduction, reads: Sequence[Indexed] | None
) -> tuple[Source, ...]:
    if reads is None:
        return result.sources
    value = result if isinstance(result, Value) else result.value
    listed = {read.name for read in reads}
    for node in walk(value.node):
        if isinstance(node, Load) and node.tensor not in listed:
            known = ", ".join(sorted(listed)) or "nothing"
            raise TensorError(f"{name}: expected to read {known}, found {node.tensor!r}")
    return merged(tuple(reads), result.sources)


def defined(
    name: str, variables: tuple[str, ...], result: Value | Reduction
) -> tuple[Definition, ...]:
    """The definitions of a tensor's elements as a pure function of their coordinates: one, or for a
    reduction its start and its update.

    Raises:
        TensorError: if the function runs over a domain without a reduction, or has a variable that
            is none of its own.
    """
    place: tuple[Expr, ...] = tuple(nodes.Var(variable) for variable in variables)
    domains = () if isinstance(result, Value) else result.domains
    for source in result.sources:
        if isinstance(source, RDom) and not any(source is domain for domain in domains):
            raise TensorError(f"{name}: expected a reduction over {source.name}, found none")
        if isinstance(source, Var) and source.name not in variables:
            known = ", ".join(variables) or "none"
            raise TensorError(f"{name}: expected the variables {known}, found {source.name}")
    if isinstance(result, Value):
        return (Definition(place, result.node, variables),)
    # The update's loops get the plain names: they are the ones that schedules are about.
    return (
        Definition(place, result.start, variables, suffix="_start"),
        Definition(place, result.value.node, variables, result.axes, result.op, result.condition),
    )
