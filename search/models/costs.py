"""What it will cost to measure a configuration, in seconds, learned from what others cost.

A verdict says what its candidate cost where that is known (`SPENT`, as on the target
``recorded``). The logarithm of their sum is a linear function of coordinates, fitted by ridge
regression and kept within what was seen, and expected improvement is divided by it: expected
improvement per second (Snoek, Larochelle and Adams, Practical Bayesian Optimization of Machine
Learning Algorithms, 2012, section 3.2).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.types import Verdict
from kernelwright.search.models.ridge import Ridge

# The facts of a verdict that are seconds spent on its candidate.
SPENT = ("compile_s", "verify_s", "benchmark_s")
# Candidates of known cost before any is predicted.
FEWEST = 8


def seconds(verdict: Verdict) -> float | None:
    """What a candidate cost, None where its judge does not say."""
    known = dict(verdict.facts)
    spent = sum(known.get(name, 0.0) for name in SPENT)
    return spent if spent > 0 else None


class Costs:
    """Predicts seconds from rows of coordinates."""

    def __init__(self, penalty: float = 1.0) -> None:
        self._model = Ridge(penalty)
        self._low, self._high = math.inf, -math.inf

    def learn(self, row: NDArray[np.float32], verdict: Verdict) -> None:
        """What a candidate of these coordinates, shape (1, coordinates), cost."""
        spent = seconds(verdict)
        if spent is None:
            return
        log = math.log(spent)
        self._low, self._high = min(self._low, log), max(self._high, log)
        self._model.add(row.astype(np.float64), np.array([log]))

    def predicted(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Seconds for rows of coordinates; all 1 while too few costs are known."""
        if self._model.count < FEWEST:
            return np.ones(len(rows), dtype=np.float32)
        logs = self._model.predict(rows.astype(np.float64))
        found: NDArray[np.float32] = np.exp(np.clip(logs, self._low, self._high)).astype(np.float32)
        return found
