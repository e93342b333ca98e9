"""What the sparse problems share: their options, their loops, their C, and how they are counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.env.compiler.ir.nodes import Procedure, Tensor
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.runtime.call import C_TYPES
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.format import Format
from kernelwright.env.compiler.sparse.levels.base import Whole
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.program import Program
from kernelwright.env.options import OptionError
from kernelwright.env.problems.definition import FLOATS, Inputs, plain_c
from kernelwright.env.problems.matrices import KINDS
from kernelwright.env.problems.rounding import underflow, unit
from kernelwright.env.problems.shapes import shape_of, workload
from kernelwright.env.problems.sparse.operand import Draw, Operand
from kernelwright.env.types import (
    Arrays,
    ErrorModel,
    Followers,
    Library,
    Problem,
    TensorSpec,
    Workload,
)

Float: TypeAlias = Literal["float32", "float64"]
Kind: TypeAlias = Literal[
    "uniform",
    "uniform_rows",
    "power_law",
    "banded",
    "full_band",
    "block",
    "empty_rows",
    "dense_rows",
]
Formats: TypeAlias = Annotated[
    list[str] | str | None,
    Field(description="formats that the operand is there in besides the first (those that pay)"),
]
INDEX = "int32"
# Of a matrix that is read row by row; those whose values are in the order of rows come first.
BY_ROWS = ("csr", "dcsr", "coo")
BLOCKED = ("bcsr(2,2)", "bcsr(4,4)", "bcsr(8,8)")
OF_MATRICES = (*BY_ROWS, "csc", *BLOCKED, "ell", "ellslots", "dia", "dense")


def matrix_draw(kind: str, rows: int, cols: int, nnz: int) -> Draw:
    """Draws the places of a matrix of a kind.

    Raises:
        OptionError: if there are not so many.
    """
    if nnz > rows * cols:
        raise OptionError("nnz", f"at most rows x cols = {rows * cols}", str(nnz))
    return lambda rng: np.array(KINDS[kind](rows, cols, nnz, rng), np.int64)


def sparse_problem(
    name: str,
    statement: str,
    *,
    operands: Sequence[Operand],
    tensors: Sequence[TensorSpec],
    extents: Mapping[str, int],
    sizes: Mapping[str, int],
    dtype: str,
    inputs: Inputs,
    reference: Callable[[Arrays], Arrays],
    magnitude: Callable[[Arrays], Arrays],
    bound: str,
    flops: int,
    library: Library | None = None,
    stress: tuple[str, ...] = (),
    target: str = "dense",
    counts: Mapping[str, int] | None = None,
    structure: str | None = None,
    traits: Mapping[str, str] | None = None,
) -> Problem:
    """A problem that a statement in index notation defines.

    ``tensors`` are its dense inputs and its outputs, ``sizes`` those of index variables; ``target``
    is the format of the result, ``counts`` the positions of its levels, or it shares the
    ``structure`` of an operand. What `moved_bytes` counts is the smallest copy of each operand.
    """
    everything = (*(spec for each in operands for spec in each.tensors), *tensors)
    chosen = workload(**extents)

    @cache
    def lowered() -> Procedure:
        formats: dict[str, str | Format] = {each.name: each.first.form for each in operands}
        result = statement.partition("(")[0].strip()
        if structure is None and target != "dense":
            formats |= {result: target}
        made = program(statement, formats, sizes=sizes, dtype=dtype, structure=structure, name=name)
        known = {key: n for each in operands for key, n in each.counts.items()} | dict(counts or {})
        made = replace(
            made,
            counts=tuple((level, whole(n)) for level, n in known.items()),
            extents=tuple(extents),
            choices=tuple(each.choices for each in operands),
        )
        made = replace(made, interface=_interface(made, everything))
        return lower(made)

    def definition(found: Workload) -> Procedure:
        _check(name, found, chosen)
        return lowered()

    def checked_inputs(found: Workload, rng: np.random.Generator) -> Arrays:
        _check(name, found, chosen)
        return inputs(found, rng)

    def agreed(arrays: Arrays) -> Arrays:
        for each in operands:
            arrays = each.agreed(arrays)
        return arrays

    moved = sum(each.used_bytes for each in operands) + sum(
        math.prod(shape_of(spec, extents)) * np.dtype(spec.dtype).itemsize for spec in tensors
    )
    names = frozenset(name for each in operands for name in each.followers)
    return Problem(
        name=name,
        version=1,
        tensors=everything,
        workloads=(chosen,),
        error_model=ErrorModel(unit(dtype), bound),
        reference=reference,
        inputs=checked_inputs,
        flops=lambda found: flops,
        moved_bytes=lambda found: moved,
        spaces=("schedule", "source", "template"),
        magnitude=magnitude,
        definition=definition,
        plain_c=_c(name, dtype, everything),
        library=library,
        stress=stress,
        exact_on_integers=True,
        traits=tuple((traits or {}).items()),
        followers=Followers(names, agreed) if names else None,
    )


def _check(name: str, found: Workload, expected: Workload) -> None:
    if found.extents != expected.extents:
        raise ValueError(f"{name}: expected {expected.label}, its own extents, found {found.label}")


def _interface(made: Program, tensors: Sequence[TensorSpec]) -> tuple[Tensor, ...]:
    """The declared arguments, with what the formats know of their elements."""
    result = made.assignment.target.tensor
    known = {tensor.name: tensor for tensor in made.arguments()}
    for operand, offered in made.choices:
        for form, _ in offered:
            changed = {operand: form} | ({result: form} if made.structure == operand else {})
            formats = tuple((name, changed.get(name, old)) for name, old in made.formats)
            for tensor in replace(made, formats=formats).arguments():
                known.setdefault(tensor.name, tensor)
    return tuple(known[spec.name] for spec in tensors)


def _c(name: str, dtype: str, tensors: Sequence[TensorSpec]) -> str:
    """The plain loops over the first copies; ``ARGUMENTS`` stands for all arrays."""
    arrays = [
        f"{'const ' if spec.role == 'input' else ''}{C_TYPES[spec.dtype]} *restrict {spec.name}"
        for spec in tensors
    ]
    lines, line = [], "   "
    for each in arrays:
        if len(line) + len(each) > 96:
            lines.append(line)
            line = "   "
        line += f" {each},"
    return plain_c(name, dtype).replace("ARGUMENTS", "\n".join([*lines, line]).lstrip())


def normal(tensors: Sequence[TensorSpec], extents: Mapping[str, int]) -> Callable[..., Arrays]:
    """Draws the dense inputs: standard normal."""

    def drawn(rng: np.random.Generator) -> Arrays:
        return {
            spec.name: rng.standard_normal(shape_of(spec, extents), FLOATS[spec.dtype])
            for spec in tensors
            if spec.role == "input"
        }

    return drawn


def sums(place: Whole, terms: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Terms (elements, or elements × columns) added up by place."""
    if terms.ndim == 1:
        return np.bincount(place, terms, size).astype(np.float64)
    columns = [np.bincount(place, column, size) for column in terms.T]
    return np.array(columns, np.float64).reshape(terms.shape[1], size).T.copy()


def counted(place: Whole, size: int) -> NDArray[np.float64]:
    """How many terms there are at each place."""
    return np.bincount(place, minlength=size).astype(np.float64)


def smallest(
    dtype: str, terms: NDArray[np.float64], *factors: NDArray[np.generic]
) -> NDArray[np.float64]:
    """What so many products may be off where they lie below the normal numbers; where products are
    multiplied further, by these factors in any order.
    """
    most = [1 + float(abs(factor.astype(np.float64)).max(initial=0)) for factor in factors]
    return terms * (underflow(dtype) * math.prod(most))
