"""A run's winner as a callable on NumPy arrays: what `kernelwright.load` gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kernelwright.configs.binding import Array, bound, extents_in
from kernelwright.configs.winner import Winner, as_c, sizes, unit, winner
from kernelwright.env.compiler.runtime.cache import BuildCache, cache_folder
from kernelwright.env.compiler.runtime.call import CallError, Kernel
from kernelwright.env.compiler.runtime.toolchain import Toolchain, find_toolchain
from kernelwright.env.problems.program import Program, arguments
from kernelwright.env.problems.shapes import shape_of
from kernelwright.env.types import Problem, Workload
from kernelwright.search.trial import Trial


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
        arrays = bound(self.problem, inputs, named)
        extents = extents_in(self.problem, arrays)
        sizes = tuple(extents.values())
        if sizes not in self._kernels:
            self._kernels[sizes] = self._built(self._workload(extents), extents)
        results = self._kernels[sizes](arrays, extents)
        outputs = tuple(results[t.name] for t in self.problem.tensors if t.role == "output")
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        return f"Loaded({self.problem.identity}, {self.trial.candidate})"

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
        toolchain = find_toolchain(self._best.resolved["target"].get("toolchain"))
        made = self._best.program(workload)
        return kernel_of(self.problem, made, extents, toolchain, self._best.flags)


def kernel_of(
    problem: Problem,
    made: Program,
    extents: Mapping[str, int],
    toolchain: Toolchain,
    flags: Sequence[str],
) -> Kernel:
    """A program as a function on arrays of these extents, compiled unless it was before.

    Raises:
        BuildError: if the compiler refuses.
    """
    build = BuildCache(cache_folder()).build(unit(problem, made), toolchain, flags)
    shapes = {t.name: shape_of(t, extents) for t in problem.tensors}
    resolved = tuple(replace(a, shape=shapes[a.name]) for a in arguments(problem))
    return Kernel(build.library, made.entry, resolved, tuple(extents))


def load(folder: str | Path) -> Loaded:
    """The winner of a run as a callable on NumPy arrays.

    Raises:
        StoreError: if there is no run.
        ConfigError: if the campaign cannot be read again, or a file that it stands on has changed.
        WinnerError: if nothing valid was found, or the winner has no C form.
    """
    return Loaded(winner(folder))
