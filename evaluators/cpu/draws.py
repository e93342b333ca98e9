"""What a call is given and what must come out: values drawn for it alone, with their answers."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import ProblemError
from kernelwright.env.problems.integers import integer_inputs
from kernelwright.env.problems.rounding import worst_case
from kernelwright.env.types import Arrays, Problem, Workload
from kernelwright.evaluators.cpu.check import Answers, ProjectedAnswers
from kernelwright.evaluators.cpu.memory import fields_of, see_that_they_fit
from kernelwright.evaluators.cpu.policy import Checking
from kernelwright.evaluators.cpu.stress import STRUCTURED, kinds_of, stressed

PLAIN, WHOLE = "plain", "whole"


@dataclass(frozen=True, slots=True)
class Drawn:
    """Input values of a kind, and the answers to them."""

    kind: str
    inputs: Arrays
    answers: Answers | ProjectedAnswers


class Draws:
    """Draws values of one workload of fixed extents.

    Args:
        problem: whose values.
        workload: the extents.
        checking: whether outputs are compared in full or by the problem's projection.
    """

    def __init__(
        self, problem: Problem, workload: Workload, checking: Checking = Checking.FULL
    ) -> None:
        self.problem, self.workload, self._checking = problem, workload, checking
        self._fields = fields = fields_of(problem, workload.fixed)
        self.slot_bytes = sum(f.map_bytes for f in fields)
        self.shapes = {f.name: f.shape for f in fields if not f.is_input}
        whole = (WHOLE,) if problem.exact_on_integers else ()
        # Sums of whole numbers are exact in any order, so not a single term may be missing.
        self.stresses = (*whole, *kinds_of(problem))

    def inputs(self, rng: np.random.Generator, kind: str = PLAIN) -> Arrays:
        """Input values of a kind.

        Raises:
            ProblemError: if the problem's generator or reference raises.
        """
        where = f"{self.problem.name} {self.workload.label}: inputs"
        try:
            arrays = self.problem.inputs(self.workload, rng)
            see_that_they_fit(self.problem, self._fields, arrays)
            arrays = {name: _read_only(array) for name, array in arrays.items()}
            if kind == PLAIN:
                return arrays
            if kind == WHOLE:
                where = f"{self.problem.name}: exact_on_integers"
                return integer_inputs(self.problem, arrays, rng)
            return stressed(self.problem, arrays, kind, rng)
        except ProblemError:
            raise
        except (Exception, SystemExit) as error:  # a user's generator may raise anything
            what = f"{where}: {type(error).__name__}: {error}"
            raise ProblemError(what) from error

    def draw(self, rng: np.random.Generator, kind: str = PLAIN) -> Drawn:
        """Values of a kind and their answers.

        Raises:
            ProblemError: if a part of the problem raises, or its parts do not fit.
            MemoryError: if there is no room for them.
        """
        inputs = self.inputs(rng, kind)
        if self._checking is Checking.PROJECTION and kind == PLAIN:
            by_signs = ProjectedAnswers(self.problem, inputs, self.shapes, rng, self.workload)
            return Drawn(kind, inputs, by_signs)
        exact = kind == WHOLE
        with worst_case() if kind in STRUCTURED else nullcontext():
            answers = Answers(
                self.problem, inputs, self.shapes, exact=exact, workload=self.workload
            )
        return Drawn(kind, inputs, answers)


def _read_only(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A view for those who get the values: who changed them would compute with others than the
    candidate. A generator may use its array again.
    """
    out = array.view()
    out.flags.writeable = False
    return out
