"""How many measurements a search needed: the measure that drivers are compared by.

*Evaluations to within 5%* is the smallest n such that the best *measured* of the first n screened
candidates has a true time (noise-free model, recorded median) within 1.05 of the best true time.
Failing candidates count, confirmations do not.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelwright.env.protocols import Oracle
from kernelwright.env.types import Candidate
from kernelwright.search.trial import Trial

RESAMPLES = 10_000


def target_watch(oracle: Oracle, best_ns: float, within: float) -> Callable[[Trial], bool]:
    """A condition that is true from the first trial at which the best measured one is good enough.

    Trials must be shown to it once each, in order.
    """
    best = -math.inf

    def reached(trial: Trial) -> bool:
        nonlocal best
        if trial.objective is None or trial.objective <= best:
            return False
        best = trial.objective
        return bool(oracle.true_ns([trial.candidate])[0] <= (1 + within) * best_ns)

    return reached


def evaluations_to_target(
    trials: Sequence[Trial], oracle: Oracle, best_ns: float, within: float
) -> int | None:
    """The number of evaluations to within a share of the best true time; None if it was not
    reached.
    """
    reached = target_watch(oracle, best_ns, within)
    return next((t.number + 1 for t in trials if reached(t)), None)


def best_true_ns(oracle: Oracle, candidates: Sequence[Candidate]) -> float:
    """The least true time of a space."""
    return float(np.nanmin(oracle.true_ns(candidates)))


@dataclass(frozen=True, slots=True)
class Median:
    """A median with its 95% bootstrap interval; infinite where the middle run did not reach the
    target.
    """

    value: float
    low: float
    high: float


def median_interval(counts: Sequence[int | None]) -> Median:
    """The median number of evaluations; a run that did not reach the target counts as infinite."""
    values = np.array([math.inf if c is None else float(c) for c in counts])
    draws = _bootstrap(values, "median")
    low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
    return Median(_median(values), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two medians with its 95% bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def is_difference(self) -> bool:
        """Whether the interval excludes 1."""
        return not self.low <= 1 <= self.high


def median_ratio(left: Sequence[float], right: Sequence[float]) -> Ratio:
    """Median of ``left`` over median of ``right``.

    A run that did not reach the target is to be counted as one more than its trials: the least it
    could have needed, so a difference that shows is there.
    """
    a, b = np.array(left, dtype=float), np.array(right, dtype=float)
    ratios = _bootstrap(a, "left") / _bootstrap(b, "right")
    low, high = np.quantile(ratios, (0.025, 0.975))
    return Ratio(float(np.median(a) / np.median(b)), float(low), float(high))


def _median(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    ordered = np.sort(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return float((ordered[middle - 1] + ordered[middle]) / 2)


def _bootstrap(
    values: np.ndarray[tuple[int], np.dtype[np.float64]], salt: str
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Medians of resamples; the draws are seeded by the values, so equal data give equal
    intervals.
    """
    seed = hashlib.blake2b(salt.encode() + values.tobytes(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    picks = np.sort(values[rng.integers(len(values), size=(RESAMPLES, len(values)))], axis=1)
    middle = len(values) // 2
    if len(values) % 2:
        return np.asarray(picks[:, middle])
    return np.asarray((picks[:, middle - 1] + picks[:, middle]) / 2)
