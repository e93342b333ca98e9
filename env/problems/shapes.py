"""Extents and shapes: the option type of an extent, workloads made of such options, and the shape
of a tensor for given extents.

A shape's entry is a number, an extent's name or a short expression over extents, as ``"h + 2"`` for
an image with its border. An option is a whole number, or a range ``{low: 256, high: 512}`` from
which a judge draws.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
)

from kernelwright.env.types import ExtentRange, TensorSpec, Workload

MAX_EXTENT = 1 << 28


class Range(BaseModel):
    """An extent that may take any value from ``low`` to ``high``, both included."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    low: Annotated[int, Field(ge=1, le=MAX_EXTENT)]
    high: Annotated[int, Field(ge=1, le=MAX_EXTENT)]

    @field_validator("high")
    @classmethod
    def _is_ascending(cls, high: int, others: ValidationInfo) -> int:
        low = others.data.get("low", high)
        if high < low:
            raise ValueError(f"at least low = {low}")
        return high


def _kind(value: Any) -> str:
    # One member of the union is tried, so that an error is about what was meant.
    return "range" if isinstance(value, Mapping | Range) else "number"


Count: TypeAlias = Annotated[int, Field(ge=1, le=MAX_EXTENT)]
Extent: TypeAlias = Annotated[
    Annotated[Count, Tag("number")] | Annotated[Range, Tag("range")], Discriminator(_kind)
]


def workload(**extents: int | Range) -> Workload:
    """The workload of these extents, in this order."""
    return Workload(
        tuple(
            (name, ExtentRange(value.low, value.high) if isinstance(value, Range) else value)
            for name, value in extents.items()
        )
    )


def least(extent: Extent) -> int:
    """The least that an extent can be."""
    return extent if isinstance(extent, int) else extent.low


def shape_of(spec: TensorSpec, extents: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor for these extents.

    Raises:
        ValueError: if an entry is no sum, difference or product of numbers and known extents, or
            gives a negative size.
    """
    return tuple(_size(spec.name, entry, extents) for entry in spec.shape)


def _size(tensor: str, entry: str | int, extents: Mapping[str, int]) -> int:
    try:
        size = entry if isinstance(entry, int) else _evaluate(_parsed(entry), extents)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        known = ", ".join(extents) or "none"
        raise ValueError(
            f"tensor {tensor}: expected a sum, difference or product of numbers and the extents "
            f"{known}, found {entry!r}"
        ) from None
    if size < 0:
        raise ValueError(
            f"tensor {tensor}: expected a size of at least 0, found {entry!r} = {size}"
        )
    return size


def _parsed(entry: str) -> ast.expr:
    return ast.parse(entry.strip(), mode="eval").body


def solved(entry: str | int, size: int, known: Mapping[str, int]) -> tuple[str, int] | None:
    """The extent that makes a shape's entry this size: its name and value. None unless it is the
    only one in the entry that is not known, and the entry is linear in it with a whole solution.
    """
    if isinstance(entry, int):
        return None
    try:
        node = _parsed(entry)
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - set(known)
        if len(names) != 1:
            return None
        (name,) = names
        at = [_evaluate(node, {**known, name: value}) for value in range(3)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    slope = at[1] - at[0]
    if slope == 0 or at[2] - at[1] != slope or (size - at[0]) % slope:
        return None
    return name, (size - at[0]) // slope


def _evaluate(node: ast.expr, extents: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(int() as value) if not isinstance(value, bool):
            return value
        case ast.Name(name) if name in extents:
            return extents[name]
        case ast.BinOp(left, ast.Add(), right):
            return _evaluate(left, extents) + _evaluate(right, extents)
        case ast.BinOp(left, ast.Sub(), right):
            return _evaluate(left, extents) - _evaluate(right, extents)
        case ast.BinOp(left, ast.Mult(), right):
            return _evaluate(left, extents) * _evaluate(right, extents)
    raise ValueError(ast.unparse(node))


def compulsory_bytes(tensors: Sequence[TensorSpec]) -> Callable[[Workload], int]:
    """A counter of compulsory traffic: every input read once, every output written once."""

    def moved_bytes(workload: Workload) -> int:
        extents = workload.fixed
        return sum(
            math.prod(shape_of(spec, extents)) * np.dtype(spec.dtype).itemsize
            for spec in tensors
            if spec.role in ("input", "output")
        )

    return moved_bytes
