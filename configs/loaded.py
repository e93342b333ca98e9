"""A run's winner as a callable on NumPy arrays: what `kernelwright.load` gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.configs.winner import Winner, as_c, sizes, unit, winner
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.call import CallError, Kernel
from kernelwright.env.compiler.runtime.toolchain import find_toolchain
from kernelwright.env.problems.program import arguments
from kernelwright.env.problems.shapes import shape_of, solved
from kernelwright.env.types import Problem, TensorSpec, Workload
from kernelwright.search.trial import Trial

Array = NDArray[Any]


class Loaded:
    """The winner of a run. Call it with the inputs in declared order, or by name; it returns the
    output, or a tuple of the outputs in declared order.

    It runs in this process, on copies that start where the C interface says; programs are compiled
    at the first call of each shape and kept in the user's cache.

    Args:
        best: the winner.

    Raises:
        WinnerError: if it has no C form.
    """

    def __init__(self, best: Winner) -> None:
        self._best = best
        self._source = as_c(best)
        self._kernels: dict[tuple[int, ...], Kernel] = {}

    @property
    def source(self) -> str:
        """Its C, as ``export`` writes it."""
        return self._source

    @property
    def trial(self) -> Trial:
        """The trial that found it, with its verdicts."""
        return self._best.trial

    @property
    def problem(self) -> Problem:
        """What it computes."""
        return self._best.problem

    def __call__(self, *inputs: Array, **named: Array) -> Array | tuple[Array, ...]:
        """Compute the outputs.

        Raises:
            CallError: if an input is missing, unknown or does not fit the problem.
            BuildError: if the compiler is not there or refuses.
        """
        arrays = self._bound(inputs, named)
        extents = self._extents(arrays)
        sizes = tuple(extents.values())
        if sizes not in self._kernels:
            self._kernels[sizes] = self._built(self._workload(extents), extents)
        results = self._kernels[sizes](arrays, extents)
        outputs = tuple(results[t.name] for t in self.problem.tensors if t.role == "output")
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        return f"Loaded({self.problem.identity}, {self.trial.candidate})"

    def _inputs(self) -> list[TensorSpec]:
        return [t for t in self.problem.tensors if t.role == "input"]

    def _bound(self, inputs: tuple[Array, ...], named: dict[str, Array]) -> dict[str, Array]:
        """The arrays by name, each of the right type and number of axes."""
        specs = self._inputs()
        names = [spec.name for spec in specs]
        if len(inputs) > len(names):
            expected = f"{len(names)} inputs ({', '.join(names)})"
            raise CallError(f"{self.problem.name}: expected {expected}, found {len(inputs)}")
        arrays = dict(zip(names, inputs, strict=False))
        for name, array in named.items():
            if name not in names or name in arrays:
                found = "given twice" if name in arrays else "no input"
                raise CallError(
                    f"{self.problem.name}: expected inputs {', '.join(names)}, found {name!r}, "
                    f"which is {found}"
                )
            arrays[name] = array
        missing = [name for name in names if name not in arrays]
        if missing:
            raise CallError(f"{self.problem.name}: expected an input {missing[0]}, found none")
        for spec in specs:
            _check(spec, arrays[spec.name])
        return arrays

    def _extents(self, arrays: dict[str, Array]) -> dict[str, int]:
        """The extents that the inputs' shapes say; those that no input has are the problem's."""
        axes = [
            _Axis(spec.name, place, entry, size)
            for spec in self._inputs()
            for place, (entry, size) in enumerate(
                zip(spec.shape, arrays[spec.name].shape, strict=True)
            )
        ]
        said = _said(axes)
        values = {name: value for name, (value, _) in said.items()}
        extents: dict[str, int] = {}
        for name, extent in self.problem.workloads[0].extents:
            value = values.get(name, extent)
            if not isinstance(value, int):
                raise CallError(f"{self.problem.name}: no input says the extent {name}")
            extents[name] = value
        for axis in axes:
            axis.check(extents, said)
        return extents

    def _workload(self, extents: dict[str, int]) -> Workload:
        """The workload that these extents belong to."""
        for workload in self.problem.workloads:
            if all(
                extents[name] == extent
                if isinstance(extent, int)
                else extent.low <= extents[name] <= extent.high
                for name, extent in workload.extents
            ):
                return workload
        expected = " or ".join(map(sizes, self.problem.workloads))
        found = ", ".join(f"{name}={size}" for name, size in extents.items())
        raise CallError(f"{self.problem.name}: expected {expected}, found {found}")

    def _built(self, workload: Workload, extents: dict[str, int]) -> Kernel:
        made = self._best.program(workload)
        toolchain = find_toolchain(self._best.resolved["target"].get("toolchain"))
        text = unit(self.problem, made)
        build = BuildCache(cache_folder()).build(text, toolchain, self._best.flags)
        shapes = {t.name: shape_of(t, extents) for t in self.problem.tensors}
        resolved = tuple(replace(a, shape=shapes[a.name]) for a in arguments(self.problem))
        return Kernel(build.library, made.entry, resolved, tuple(extents))


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


def load(folder: str | Path) -> Loaded:
    """The winner of a run as a callable on NumPy arrays.

    Raises:
        StoreError: if there is no run.
        ConfigError: if the campaign cannot be read again, or a file that it stands on has changed.
        WinnerError: if nothing valid was found, or the winner has no C form.
    """
    return Loaded(winner(folder))


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
