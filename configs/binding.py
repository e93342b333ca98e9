"""Arrays as a problem's inputs: by position or by name, and the extents that their shapes say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.runtime.call import CallError
from kernelwright.env.problems.shapes import shape_of, solved
from kernelwright.env.types import Problem, TensorSpec

Array = NDArray[Any]


def inputs_of(problem: Problem) -> list[TensorSpec]:
    """A problem's inputs in declared order."""
    return [t for t in problem.tensors if t.role == "input"]


def bound(
    problem: Problem, inputs: Sequence[Array], named: Mapping[str, Array]
) -> dict[str, Array]:
    """The arrays by name, each of the right type and number of axes.

    Raises:
        CallError: if one is missing, unknown, given twice or does not fit.
    """
    specs = inputs_of(problem)
    names = [spec.name for spec in specs]
    if len(inputs) > len(names):
        expected = f"{len(names)} inputs ({', '.join(names)})"
        raise CallError(f"{problem.name}: expected {expected}, found {len(inputs)}")
    arrays = dict(zip(names, inputs, strict=False))
    for name, array in named.items():
        if name not in names or name in arrays:
            found = "given twice" if name in arrays else "no input"
            raise CallError(
                f"{problem.name}: expected inputs {', '.join(names)}, found {name!r}, "
                f"which is {found}"
            )
        arrays[name] = array
    missing = [name for name in names if name not in arrays]
    if missing:
        raise CallError(f"{problem.name}: expected an input {missing[0]}, found none")
    for spec in specs:
        _check(spec, arrays[spec.name])
    return arrays


def extents_in(problem: Problem, arrays: Mapping[str, Array]) -> dict[str, int]:
    """The extents that the inputs' shapes say; those that no input has are the problem's.

    Raises:
        CallError: if shapes contradict each other, or leave an extent open.
    """
    axes = [
        _Axis(spec.name, place, entry, size)
        for spec in inputs_of(problem)
        for place, (entry, size) in enumerate(zip(spec.shape, arrays[spec.name].shape, strict=True))
    ]
    said = _said(axes)
    values = {name: value for name, (value, _) in said.items()}
    extents: dict[str, int] = {}
    for name, extent in problem.workloads[0].extents:
        value = values.get(name, extent)
        if not isinstance(value, int):
            raise CallError(f"{problem.name}: no input says the extent {name}")
        extents[name] = value
    for axis in axes:
        axis.check(extents, said)
    return extents


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of an input: its entry in the declared shape, and its size in the given array."""

    tensor: str
    place: int
    entry: str | int
    size: int

    def __str__(self) -> str:
        return f"axis {self.place} of {self.tensor}"

    def check(self, extents: dict[str, int], said: dict[str, tuple[int, _Axis]]) -> None:
        """Refuse a size that is another one than the extents give."""
        spec = TensorSpec(self.tensor, (self.entry,), "uint8", "input")
        try:
            (expected,) = shape_of(spec, extents)
        except ValueError as error:
            raise CallError(str(error)) from None
        if self.size == expected:
            return
        if self.entry in said:
            source = f"as {said[str(self.entry)][1]} has it"
        elif isinstance(self.entry, int):
            source = "as the problem has it"
        else:
            source = f"{self.entry} with {', '.join(f'{n}={e}' for n, e in extents.items())}"
        raise CallError(f"{self}: expected {expected}, {source}, found {self.size}")


def _said(axes: list[_Axis]) -> dict[str, tuple[int, _Axis]]:
    """The extents that follow from sizes of axes, each with the first axis that says it."""
    said: dict[str, tuple[int, _Axis]] = {}
    while True:
        known = {name: value for name, (value, _) in said.items()}
        for axis in axes:
            found = solved(axis.entry, axis.size, known)
            if found is not None:
                said[found[0]] = found[1], axis
                break
        else:
            return said


def _check(spec: TensorSpec, array: Array) -> None:
    shape = ", ".join(map(str, spec.shape))
    expected = f"{spec.dtype}[{shape}]"
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        # A mask would be lost, and what lies below it computed with.
        found = f"a {type(array).__name__}"
        raise CallError(f"{spec.name}: expected a NumPy array {expected}, found {found}")
    if array.dtype != np.dtype(spec.dtype) or array.ndim != len(spec.shape):
        found = f"{array.dtype}{list(array.shape)}"
        raise CallError(f"{spec.name}: expected {expected}, found {found}")
