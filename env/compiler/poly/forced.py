"""A nest run in an order that may be illegal, to see what goes wrong: whatever was not computed yet
reads as NaN (not a number), which spreads to all that is computed from it.

This is a way to look at programs, and no way to compile them: the order is no directive, and the
result is arrays. Every statement becomes a Python function over its points, with NumPy's scalars,
so that rounding is the interpreter's; that takes about a microsecond for each point and access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.evaluate import BINARY, UNARY
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Procedure,
    Select,
    Store,
    Tensor,
    Unary,
    Var,
    statements,
)
from kernelwright.env.compiler.poly.affine_map import AffineMap
from kernelwright.env.compiler.poly.model import Instance, build_model
from kernelwright.env.compiler.poly.nest import Nest
from kernelwright.env.compiler.poly.points import (
    Points,
    iteration_points,
    times_of,
    touched,
)


class ForcedError(CompilerError):
    """A program that cannot be run in a forced order: it has no NaN, or other statements."""


@dataclass(frozen=True, slots=True)
class ForcedOrder:
    """The loops of a nest, and the map and tiles in whose order they run."""

    loops: tuple[str, ...]
    map_: AffineMap
    tiles: tuple[int, ...] = ()


_SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and": "and",
    "or": "or",
}
_FUNCTIONS = {op: f for op, f in (BINARY | UNARY).items() if isinstance(f, np.ufunc)}


def run_forced(
    procedure: Procedure,
    inputs: Mapping[str, NDArray[Any]],
    order: ForcedOrder,
    extents: Mapping[str, int] | None = None,
) -> dict[str, NDArray[Any]]:
    """The outputs of a procedure whose nest runs in a forced order, legal or not; NaN where an
    element was never computed, or from one that was not.

    Raises:
        ForcedError: if a tensor that is written is not floating-point, a temporary is allocated
            inside a loop, an input does not fit, or an operation has no NumPy form.
        NestError: if the loops form no nest.
        NotAffineError: if an index, an extent or a condition reads memory.
        IndexError: if an index lies outside its tensor.
    """
    known = dict(extents or {})
    arrays = _arrays(procedure, inputs, known)
    model = build_model(procedure)
    inside = {i.name for i in Nest(model, order.loops).instances}
    points = [iteration_points(i, known) for i in model.instances]
    length = max(len(i.position) for i in model.instances) + len(order.tiles)
    keys = [
        _keys(i, p, order if i.name in inside else None, length)
        for i, p in zip(model.instances, points, strict=True)
    ]
    for instance, at in zip(model.instances, points, strict=True):
        _check_indices(instance, at, arrays, known)
    owner = np.repeat(np.arange(len(points)), [len(p) for p in points])
    rank = np.concatenate([np.arange(len(p)) for p in points])
    turn = np.lexsort(np.concatenate(keys).T[::-1])
    owner, rank = owner[turn], rank[turn]
    functions = [_function(i, arrays, known) for i in model.instances]
    with np.errstate(all="ignore"):
        for start, end in _runs(owner):
            which = int(owner[start])
            functions[which](points[which][rank[start:end]].tolist())
    return {t.name: arrays[t.name] for t in procedure.tensors if t.role == "output"}


def _arrays(
    procedure: Procedure, inputs: Mapping[str, NDArray[Any]], extents: Mapping[str, int]
) -> dict[str, NDArray[Any]]:
    tensors: list[Tensor] = list(procedure.tensors)
    for node in statements(procedure.body):
        if isinstance(node, Barrier):
            raise ForcedError("expected no threads that wait for one another, found a barrier")
        if isinstance(node, Allocate):
            tensors.append(node.tensor)
    for instance in build_model(procedure).instances:
        for name, around in instance.private:
            if around:
                raise ForcedError(f"expected temporary {name} outside all loops, found it inside")
    arrays: dict[str, NDArray[Any]] = {}
    for tensor in tensors:
        shape = tuple(_size(extent, extents) for extent in tensor.shape)
        if tensor.role == "input":
            given = inputs.get(tensor.name)
            if given is None or given.shape != shape or given.dtype != tensor.dtype:
                found = "none" if given is None else f"{given.dtype}{list(given.shape)}"
                expected = f"{tensor.dtype}{list(shape)}"
                raise ForcedError(f"{tensor.name}: expected {expected}, found {found}")
            arrays[tensor.name] = given
        elif np.dtype(tensor.dtype).kind != "f":
            raise ForcedError(f"{tensor.name}: expected a dtype with NaN, found {tensor.dtype}")
        else:
            arrays[tensor.name] = np.full(shape, np.nan, tensor.dtype)
    return arrays


def _size(extent: Expr, extents: Mapping[str, int]) -> int:
    if isinstance(extent, Const):
        return int(extent.value)
    if isinstance(extent, Var):
        return extents[extent.name]
    raise ForcedError(f"expected a shape of numbers and extents, found {extent}")


def _keys(instance: Instance, points: Points, order: ForcedOrder | None, length: int) -> Points:
    """When the points of a statement run, as (count, length): its place in the program, the loops
    of the nest replaced by the order's times.
    """
    columns: list[Points] = []
    place = list(instance.position)
    while place:
        item = place.pop(0)
        if isinstance(item, int):
            columns.append(np.full((len(points), 1), item, np.int64))
        elif order is not None and item == order.loops[0]:
            first = instance.variables.index(item)
            own = points[:, first : first + len(order.loops)]
            columns.append(times_of(own, order.map_, order.tiles))
            del place[: 2 * len(order.loops) - 2]
        else:
            at = instance.variables.index(item)
            columns.append(points[:, at : at + 1])
    keys = np.column_stack(columns)
    return np.pad(keys, ((0, 0), (0, length + len(place) + 1 - keys.shape[1])))


def _runs(owner: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Where the same statement runs without another between."""
    if len(owner) == 0:
        return
    changes = (np.flatnonzero(np.diff(owner)) + 1).tolist()
    yield from zip([0, *changes], [*changes, len(owner)], strict=True)


def _check_indices(
    instance: Instance,
    points: Points,
    arrays: Mapping[str, NDArray[Any]],
    extents: Mapping[str, int],
) -> None:
    for access in touched(instance, points, extents):
        shape = np.array(arrays[access.tensor].shape)
        outside = ((access.indices < 0) | (access.indices >= shape)).any(axis=1)
        if outside.any():
            found = access.indices[outside.argmax()].tolist()
            raise IndexError(f"{access.tensor}{found}: expected an element of {shape.tolist()}")


@dataclass(slots=True)
class _Names:
    """What a generated function may refer to."""

    values: dict[str, Any] = field(default_factory=dict)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.values)}"
        self.values[name] = value
        return name


def _function(
    instance: Instance, arrays: Mapping[str, NDArray[Any]], extents: Mapping[str, int]
) -> Callable[[Sequence[Sequence[int]]], None]:
    """A statement as a Python function over a list of points."""
    names = _Names({f"f_{op}": function for op, function in _FUNCTIONS.items()})
    names.values |= {f"t_{name}": array for name, array in arrays.items()}
    names.values |= {f"v_{name}": value for name, value in extents.items()}
    store = instance.store
    target = f"t_{store.tensor}[{_indices(store.indices, names)}]"
    value = _text(store.value, names)
    if store.reduce is not None:
        value = _combined(store, target, value)
    variables = "".join(f"v_{name}, " for name in instance.variables)
    head = f"    for {variables} in points:" if variables else "    for _ in points:"
    exec(f"def run(points):\n{head}\n        {target} = {value}\n", names.values)
    function: Callable[[Sequence[Sequence[int]]], None] = names.values["run"]
    return function


def _combined(store: Store, target: str, value: str) -> str:
    op = store.reduce or ""
    return f"f_{op}({target}, {value})" if op in _FUNCTIONS else f"{target} {_SIGNS[op]} {value}"


def _indices(indices: Sequence[Expr], names: _Names) -> str:
    return "".join(f"{_text(index, names)}, " for index in indices) or "()"


def _text(node: Expr, names: _Names) -> str:
    match node:
        case Const(value, dtype):
            whole = dtype in ("int64", "bool")
            return f"({value!r})" if whole else names.constant(np.dtype(dtype).type(value))
        case Var(name):
            return f"v_{name}"
        case Load(tensor, indices):
            return f"t_{tensor}[{_indices(indices, names)}]"
        case Binary(op, left, right):
            a, b = _text(left, names), _text(right, names)
            return f"({a} {_SIGNS[op]} {b})" if op in _SIGNS else f"f_{op}({a}, {b})"
        case Unary("neg" | "not" as op, operand):
            return f"({'-' if op == 'neg' else 'not '}{_text(operand, names)})"
        case Unary(op, operand) if op in _FUNCTIONS:
            return f"f_{op}({_text(operand, names)})"
        case Unary(op, _):
            raise ForcedError(f"expected an operation of NumPy, found {op}")
        case Cast(dtype, operand):
            return f"{names.constant(np.dtype(dtype).type)}({_text(operand, names)})"
        case Select(condition, then, other):
            parts = (then, condition, other)
            a, held, b = (_text(part, names) for part in parts)
            return f"({a} if {held} else {b})"
        case _:
            assert_never(node)
