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
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.protocols import Oracle
from kernelwright.env.types import Candidate
from kernelwright.search.trial import Trial

RESAMPLES = 10_000
# The share of draws that a 95% interval leaves out at either end, and the error rate of a claim.
TAIL, ALPHA = 0.025, 0.05
Floats = NDArray[np.float64]


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
class Trajectory:
    """How good a run's best *measured* candidate truly was, evaluation by evaluation.

    ``times`` are true times after 1, 2, … evaluations, infinite until something was valid (in ns,
    or any unit that ``best`` shares); ``best`` is the least time known.
    """

    times: tuple[float, ...]
    best: float

    def evaluations_to(self, within: float) -> int | None:
        """The number of evaluations to within a share of the best; None if it was not reached."""
        near = (1 + within) * self.best
        return next((n for n, time in enumerate(self.times, 1) if time <= near), None)

    def at(self, evaluations: int) -> float:
        """The best measured one after so many evaluations, as a multiple of the best known; a run
        that ended before keeps what it had. Infinite where nothing was valid.
        """
        if not self.times:
            return math.inf
        return self.times[min(evaluations, len(self.times)) - 1] / self.best


def trajectory(trials: Sequence[Trial], oracle: Oracle, best_ns: float) -> Trajectory:
    """The trajectory of a run whose judge knows true times."""
    best, time, times = -math.inf, math.inf, []
    leaders = [trial for trial in trials if trial.objective is not None]
    known = oracle.true_ns([trial.candidate for trial in leaders]).tolist() if leaders else []
    # A candidate whose truth is unknown (too fast to be true) is as good as none.
    sure = [math.inf if math.isnan(time) else time for time in known]
    true = {trial.number: t for trial, t in zip(leaders, sure, strict=True)}
    for trial in trials:
        if trial.objective is not None and trial.objective > best:
            best, time = trial.objective, true[trial.number]
        times.append(time)
    return Trajectory(tuple(times), best_ns)


@dataclass(frozen=True, slots=True)
class Median:
    """A median with its 95% bootstrap interval; infinite where the middle run did not reach the
    target.
    """

    value: float
    low: float
    high: float


def median_interval(counts: Sequence[float | None]) -> Median:
    """The median number of evaluations; a run that did not reach the target counts as infinite."""
    values = np.array([math.inf if c is None else float(c) for c in counts])
    draws = medians_of_resamples(values, "median")
    low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
    return Median(_median(values), float(low), float(high))


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two medians with its 95% bootstrap interval, and how often a ratio at least as
    far from 1 is drawn: `p` is the least error rate at which the interval would exclude 1.
    """

    value: float
    low: float
    high: float
    p: float

    @property
    def is_difference(self) -> bool:
        """Whether the interval excludes 1, which is whether p is below 5%."""
        return not self.low <= 1 <= self.high


def median_ratio(left: Sequence[float], right: Sequence[float]) -> Ratio:
    """Median of ``left`` over median of ``right``.

    A run that did not reach the target is to be counted as one more than the budget: the least it
    could have needed, so a difference that shows is there.
    """
    a, b = np.array(left, dtype=float), np.array(right, dtype=float)
    draws = medians_of_resamples(a, "left") / medians_of_resamples(b, "right")
    return ratio_of(float(np.median(a) / np.median(b)), draws)


def ratio_of(value: float, draws: Floats) -> Ratio:
    """A ratio with the interval and the p-value of its bootstrap draws.

    Both are counted in whole draws, so that they never disagree: 1 is outside exactly if fewer than
    2.5% of the draws are on its other side, or on it. No p is below what two draws stand for.
    """
    ordered = np.sort(draws)
    cut = round(TAIL * len(ordered))
    across = min(int((ordered <= 1).sum()), int((ordered >= 1).sum()))
    p = min(1.0, 2 * max(across, 1) / len(ordered))
    return Ratio(value, float(ordered[cut - 1]), float(ordered[-cut]), p)


def holm(ps: Sequence[float]) -> list[float]:
    """p-values adjusted for as many claims as there are, in the given order: claiming those below
    an error rate keeps the chance of any false claim below it, however the claims depend on one
    another (Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    adjusted, least = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = least
    return adjusted


def _median(values: Floats) -> float:
    ordered = np.sort(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return float((ordered[middle - 1] + ordered[middle]) / 2)


def medians_of_resamples(values: Floats, salt: str) -> Floats:
    """Medians of resamples; the draws are seeded by the values, so equal data give equal
    intervals.
    """
    return _resampled(values.tobytes(), salt)


@lru_cache(maxsize=64)
def _resampled(content: bytes, salt: str) -> Floats:
    """Remembered, as every campaign stands in many pairs."""
    values = np.frombuffer(content, dtype=np.float64)
    seed = hashlib.blake2b(salt.encode() + content, digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    picks = np.sort(values[rng.integers(len(values), size=(RESAMPLES, len(values)))], axis=1)
    middle = len(values) // 2
    if len(values) % 2:
        found = np.ascontiguousarray(picks[:, middle])
    else:
        found = (picks[:, middle - 1] + picks[:, middle]) / 2
    found.setflags(write=False)
    return found
