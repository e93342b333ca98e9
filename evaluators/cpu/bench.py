"""What a kernel works on: the values, memory and answers of one workload of fixed extents."""

from __future__ import annotations

import numpy as np

from kernelwright.env.compiler.ir.nodes import DTYPES
from kernelwright.env.options import ProblemError
from kernelwright.env.problems.integers import integer_inputs
from kernelwright.env.types import Arrays, Problem, Workload
from kernelwright.evaluators.cpu.check import Answers
from kernelwright.evaluators.cpu.memory import Arena

# Sets of input values, so that a call seldom repeats the one before.
SETS = 3


class Bench:
    """One workload of fixed extents: its memory and its answers."""

    def __init__(self, problem: Problem, workload: Workload, rng: np.random.Generator) -> None:
        self._problem, self._workload, self.extents = problem, workload, workload.fixed
        values = [_drawn_inputs(problem, workload, rng) for _ in range(SETS)]
        exact = [False] * SETS
        if problem.exact_on_integers:
            # Sums of whole numbers are exact in any order, so not a single term may be missing.
            values.append(_whole_inputs(problem, values[0], rng))
            exact.append(True)
        self._values: tuple[Arrays, ...] = tuple(values)
        try:
            self.arena = self._fresh()
            shapes = {slot.name: slot.shape for slot in self.arena.slots if not slot.is_input}
            self.answers = [
                Answers(problem, arrays, shapes, exact=is_exact)
                for arrays, is_exact in zip(values, exact, strict=True)
            ]
        except (MemoryError, OSError) as error:
            what = f"{problem.name} {workload.label}: no memory for its arrays: {error}"
            raise ProblemError(what) from None

    def _fresh(self) -> Arena:
        return Arena(self._problem, self._workload, self._values)

    def move(self) -> None:
        """Put everything into other memory. Where pages lie decides which of them share a cache
        set, and that favours one kernel over another for as long as they stay.
        """
        self.arena.close()
        self.arena = self._fresh()


def _drawn_inputs(problem: Problem, workload: Workload, rng: np.random.Generator) -> Arrays:
    """Input values.

    Raises:
        ProblemError: if the problem's generator raises.
    """
    try:
        return problem.inputs(workload, rng)
    except (Exception, SystemExit) as error:  # a user's generator may raise anything
        what = f"{problem.name} {workload.label}: inputs: {type(error).__name__}: {error}"
        raise ProblemError(what) from error


def _whole_inputs(problem: Problem, like: Arrays, rng: np.random.Generator) -> Arrays:
    """Whole numbers as inputs.

    Raises:
        ProblemError: if the problem's reference raises on them, or is not exact.
    """
    try:
        return integer_inputs(problem, like, rng)
    except ProblemError:
        raise
    except Exception as error:  # a user's reference may raise anything
        what = f"{problem.name}: exact_on_integers: {type(error).__name__}: {error}"
        raise ProblemError(what) from error


def check_tensors(problem: Problem) -> None:
    """Refuse what has no place in a kernel's arguments.

    Raises:
        ProblemError: naming the tensor.
    """
    if not any(t.role == "output" for t in problem.tensors):
        raise ProblemError(f"{problem.name}: expected at least one output")
    for tensor in problem.tensors:
        if tensor.dtype not in DTYPES:
            expected = f"expected one of {', '.join(DTYPES)} on a CPU, found {tensor.dtype}"
            raise ProblemError(f"{problem.name}: {tensor.name}: {expected}")
        if tensor.role == "scratch":
            expected = "expected inputs and outputs; scratch is not granted on a CPU yet"
            raise ProblemError(f"{problem.name}: {tensor.name}: {expected}")
