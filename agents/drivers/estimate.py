"""What is expected of a program before it is measured: by a model that learns from the trials, or
by the analytic model of a CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.simplify import simplify_procedure
from kernelwright.env.compiler.machine.cpu import estimate, load_machine, machine_names
from kernelwright.env.options import OptionError
from kernelwright.env.types import Candidate, Language, Problem
from kernelwright.search.models.model import make_model, needs
from kernelwright.search.trial import Trial

LEAST = 6  # trials that ran before anything is said


class UnknownError(Exception):
    """Nothing is expected of a program; the message says why."""


class Learned:
    """A model of log time over the space's features; see `search.models`.

    Raises:
        OptionError: if there is no such model, or it cannot learn from this space or problem.
    """

    def __init__(self, name: str, space: Any, *, seed: int, problem: Problem) -> None:
        self._space = space
        self._model = make_model(name, space, seed=seed, problem=problem, penalty=0.1)
        self._waiting: list[Trial] = []

    def tell(self, trial: Trial) -> None:
        """Learn from a trial that ran, when the next estimate is wanted."""
        self._waiting.append(trial)

    def faster(self, candidate: Candidate, than: Candidate) -> float:
        """How many times faster a program should be, log2.

        Raises:
            UnknownError: if too little is known.
        """
        if self._waiting:
            rows = np.stack([self._space.features(t.candidate) for t in self._waiting])
            self._model.add(rows, np.array([-(t.objective or 0.0) for t in self._waiting]))
            self._waiting = []
        least = 0 if needs(self._model) == 0 else max(LEAST, needs(self._model))
        if self._model.count < least:
            raise UnknownError(f"{self._model.count} trials are known, {least} are needed")
        rows = np.stack([self._space.features(each) for each in (candidate, than)])
        here, there = self._model.predict(rows).tolist()
        return float(there - here)


class Analytic:
    """The analytic model of a CPU, for schedules.

    Raises:
        OptionError: if the space has no schedules.
    """

    def __init__(self, machine: str, space: Any) -> None:
        if space.language is not Language.SCHEDULE:
            raise OptionError("model", f"schedules, which {machine} is a model for", space.language)
        self._space, self._machine = space, load_machine(machine)

    def tell(self, trial: Trial) -> None:
        """Nothing is learned."""

    def faster(self, candidate: Candidate, than: Candidate) -> float:
        """As `Learned.faster`.

        Raises:
            UnknownError: if the model cannot read a program.
        """
        try:
            here, there = (self._log2_s(each) for each in (candidate, than))
        except CompilerError as error:
            raise UnknownError(str(error)) from None
        return there - here

    def _log2_s(self, candidate: Candidate) -> float:
        final = simplify_procedure(self._space.scheduled(candidate))
        threads = min(self._space.threads, self._machine.cores)
        return float(np.log2(estimate(final, self._machine, threads=threads).time_s))


class Estimator:
    """What agents are told of a program that was not measured.

    Args:
        name: a model of `search.models`, a dotted path, or a CPU table.
        space: whose candidates are estimated.
        seed: the campaign's.
        problem: for models that know something of it beforehand.

    Raises:
        OptionError: if there is no such model, or it has nothing to say of this space.
    """

    def __init__(self, name: str, space: Any, *, seed: int, problem: Problem) -> None:
        self._name = name
        self._model: Learned | Analytic = (
            Analytic(name, space)
            if name in machine_names()
            else Learned(name, space, seed=seed, problem=problem)
        )
        self._known: dict[str, float] = {}

    def tell(self, trial: Trial) -> None:
        """Learn from a trial that ran."""
        if trial.objective is not None:
            self._model.tell(trial)
            self._known[trial.candidate.key] = trial.objective

    def expected(self, candidate: Candidate, than: Candidate) -> str:
        """How much faster a program should be than another, as a sentence."""
        known = self._known.get(candidate.key)
        if known is not None:
            return f"it was measured: speedup {2**known:.4g} over the baseline"
        try:
            faster = min(max(self._model.faster(candidate, than), -20.0), 20.0)
        except UnknownError as error:
            return f"none yet: {error}"
        what = "times the speed of the program it was made from"
        return f"estimate: {2**faster:.3g} {what} ({self._name})"
