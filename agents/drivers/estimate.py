"""What a model learned from the trials expects of a program, for agents that ask before they
measure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.env.types import Candidate, Problem
from kernelwright.search.models.model import make_model, needs
from kernelwright.search.trial import Trial

LEAST = 6  # trials that ran before anything is said


class Estimator:
    """A model of log time over the space's features; see `search.models`.

    Args:
        name: the model's, or a dotted path.
        space: whose candidates are estimated.
        seed: the campaign's.
        problem: for models that know something of it beforehand.

    Raises:
        OptionError: if there is no such model, or it cannot learn from this space or problem.
    """

    def __init__(self, name: str, space: Any, *, seed: int, problem: Problem) -> None:
        self._name, self._space = name, space
        self._model = make_model(name, space, seed=seed, problem=problem, penalty=0.1)
        self._waiting: list[Trial] = []
        self._known: dict[str, float] = {}

    def tell(self, trial: Trial) -> None:
        """Learn from a trial that ran, when the next estimate is wanted."""
        if trial.objective is not None:
            self._waiting.append(trial)
            self._known[trial.candidate.key] = trial.objective

    def expected(self, candidate: Candidate, than: Candidate) -> str:
        """How much faster a program should be than another, as a sentence."""
        self._learn()
        known = self._known.get(candidate.key)
        if known is not None:
            return f"it was measured: speedup {2**known:.4g} over the baseline"
        least = 0 if needs(self._model) == 0 else max(LEAST, needs(self._model))
        if self._model.count < least:
            return f"none yet: {self._model.count} trials are known, {least} are needed"
        rows = np.stack([self._space.features(each) for each in (candidate, than)])
        here, there = self._model.predict(rows).tolist()
        faster = min(max(there - here, -20.0), 20.0)
        what = "times the speed of the program it was made from"
        return f"estimate: {2**faster:.3g} {what} ({self._name}, {self._model.count} trials)"

    def _learn(self) -> None:
        if self._waiting:
            rows = np.stack([self._space.features(t.candidate) for t in self._waiting])
            targets = np.array([-(t.objective or 0.0) for t in self._waiting])
            self._model.add(rows, targets)
            self._waiting = []
