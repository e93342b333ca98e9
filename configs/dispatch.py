"""A tuned kernel at one executed shape, checked when it is first called."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernelwright.configs.binding import Array, inputs_of
from kernelwright.configs.buckets import Make, Shapes, cropped, padded, shapes_of
from kernelwright.configs.loaded import kernel_of
from kernelwright.configs.winner import compile_flags
from kernelwright.env.compiler.runtime.call import CallError, Kernel
from kernelwright.env.compiler.runtime.toolchain import find_toolchain
from kernelwright.env.options import ProblemError
from kernelwright.env.problems.program import program
from kernelwright.env.types import Problem
from kernelwright.evaluators.cpu.check import Answers
from kernelwright.search.tuning.rows import Row, candidate_of


class DisagreementError(Exception):
    """A kernel that computes something else than the problem's reference."""


class UncheckedError(Exception):
    """Inputs by which a kernel cannot be checked, as the reference's own answers are not finite."""


class Executed:
    """A kernel for some extents, which calls of smaller ones are padded to.

    Args:
        make: the problem, called with extents by name.
        problem: the one that the kernel was built for.
        kernel: the kernel.
    """

    def __init__(self, make: Make, problem: Problem, kernel: Kernel) -> None:
        self._make, self._problem, self._kernel = make, problem, kernel
        self._extents = problem.workloads[0].fixed
        self._inputs = shapes_of(problem, "input", self._extents)
        # By extents, since reading shapes takes longer than a small kernel.
        self._outputs: dict[tuple[int, ...], Shapes] = {}
        self._is_checked, self._lock = False, threading.Lock()

    def __call__(
        self,
        arrays: Mapping[str, Array],
        extents: Mapping[str, int],
        function: Callable[..., Any] | None,
    ) -> Any:
        """The outputs at these extents.

        Raises:
            DisagreementError: if this is the first call and they are off beyond the bounds.
            UncheckedError: if it is, and nothing can be said by these inputs.
            CallError: if it is, and the function that was decorated computes something else.
        """
        problem, outputs = self._problem, self._computed(arrays, extents)
        if not self._is_checked:
            with self._lock:
                self._check(arrays, extents, outputs, function)
        found = tuple(outputs[t.name] for t in problem.tensors if t.role == "output")
        return found[0] if len(found) == 1 else found

    def _computed(
        self, arrays: Mapping[str, Array], extents: Mapping[str, int]
    ) -> dict[str, Array]:
        sizes = tuple(extents.values())
        if sizes not in self._outputs:
            self._outputs[sizes] = shapes_of(self._problem, "output", extents)
        found = self._kernel(padded(arrays, self._inputs), self._extents)
        return cropped(found, self._outputs[sizes])

    def _check(
        self,
        arrays: Mapping[str, Array],
        extents: Mapping[str, int],
        outputs: Mapping[str, Array],
        function: Callable[..., Any] | None,
    ) -> None:
        problem = self._make(**extents)
        bound = problem.error_model.bound
        shapes = shapes_of(problem, "output", extents)
        try:
            answers = Answers(problem, dict(arrays), shapes, workload=problem.workloads[0])
        except ProblemError as error:
            raise UncheckedError(str(error)) from None
        if function is not None:
            _see_that_it_computes(problem, answers, function, arrays)
        off = answers.compare(outputs)
        if not off <= bound:
            what = f"an error of {off:.3g}, expected at most {bound:.3g}"
            raise DisagreementError(f"the tuned kernel differs from the reference: {what}")
        self._is_checked = True


def _see_that_it_computes(
    problem: Problem,
    answers: Answers,
    function: Callable[..., Any],
    arrays: Mapping[str, Array],
) -> None:
    found = function(*(arrays[spec.name] for spec in inputs_of(problem)))
    names = [t.name for t in problem.tensors if t.role == "output"]
    given = found if isinstance(found, tuple) else (found,)
    name = getattr(function, "__name__", "the function")
    if len(given) != len(names):
        raise CallError(f"{name}: expected {len(names)} outputs, found {len(given)}")
    outputs = {n: np.asarray(array) for n, array in zip(names, given, strict=True)}
    for n, wanted in answers.reference.items():
        if outputs[n].shape != wanted.shape:
            right, shape = list(wanted.shape), list(outputs[n].shape)
            raise CallError(f"{name}: expected {n} of shape {right}, found {shape}")
    error = answers.compare(outputs)
    if not error <= problem.error_model.bound:
        expected = f"expected a function that computes {problem.identity}"
        raise CallError(f"{name}: {expected}, found one that is off by {error:.3g}")


def built_for(make: Make, row: Row, extents: Mapping[str, int]) -> Executed:
    """The kernel of a choice for these extents, compiled unless it was before.

    Raises:
        CompilerError: if the choice cannot be had at these extents, or there is no compiler.
        OSError: if builds cannot be kept.
    """
    problem, target = make(**extents), row["target"]
    made = program(problem, candidate_of(row), problem.workloads[0])
    toolchain, flags = find_toolchain(target.get("toolchain")), compile_flags(target)
    return Executed(make, problem, kernel_of(problem, made, extents, toolchain, flags))
