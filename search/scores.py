"""Scores over many problems, each with its uncertainty.

`fast` is fast_p, the share of problems that are correct and more than p times as fast
(Ouyang et al., KernelBench: Can LLMs Write Efficient GPU Kernels?, arXiv:2502.10517), counted by
claims; the count by point estimates, as published, stands beside it. `mean_of_claims` is the
geometric mean of speedups. Whoever fails cannot gain: a problem without a claimed win counts as not
fast, and in that mean as 1x. `mean_of_confirmed` describes, and is nothing to rank by.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.objective import measurements_against, process_log_ratios
from kernelwright.env.types import Role, Stage, Status, Unpaired
from kernelwright.evaluators.rates import Rate
from kernelwright.evaluators.statistics import (
    CONFIDENCE,
    RESAMPLES,
    Interval,
    speedup,
    t_quantile,
)
from kernelwright.search.claims import is_known
from kernelwright.search.trial import Trial

# How often the measurement of one problem is redrawn.
REDRAWN = 2_000


@dataclass(frozen=True, slots=True)
class Scored:
    """A problem as scores see it: the best that was found for it.

    ``status`` is None where nothing valid was found. ``estimate`` is the speedup over the baseline,
    of the confirmation, else of screens. ``interval`` is that of the confirmation at 95%, None if
    there is none or its limits could not be told. ``logs`` are the log ratios of its process pairs
    by workload, empty where it was not measured in pairs.

    Raises:
        ValueError: if a speedup is not positive and finite, or an interval belongs to what was not
            confirmed.
    """

    name: str
    status: Status | None = None
    estimate: float | None = None
    interval: Interval | None = None
    logs: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.estimate is not None and not 0 < self.estimate < math.inf:
            raise ValueError(f"{self.name}: expected a positive speedup, found {self.estimate}")
        if self.interval is not None and not (self.is_claim and is_known(self.interval)):
            raise ValueError(f"{self.name}: expected no interval of what has no known limits")

    @property
    def is_claim(self) -> bool:
        """Whether it was confirmed."""
        return self.status is not None and self.status.is_claim

    def is_faster(self, p: float) -> bool:
        """Whether it may be claimed to be more than p times as fast: its interval lies above p, and
        from 1 on it is a win, which is decided at a stricter level.
        """
        if self.interval is None or (p >= 1 and self.status is not Status.WIN):
            return False
        return self.interval.low > p


def scored(name: str, best: Trial | None) -> Scored:
    """The record of a run with this best trial."""
    if best is None:
        return Scored(name)
    verdict = best.verdict(Stage.CONFIRM)
    found = None if verdict is None else speedup(verdict)
    if verdict is None or found is None:
        screened = None if best.objective is None else 2.0**best.objective
        return Scored(name, best.status, screened)
    chosen = measurements_against(verdict, Role.BASELINE)
    paired = [m for m in chosen if not isinstance(m.samples, Unpaired)]
    return Scored(
        name,
        best.status,
        found.estimate,
        found if is_known(found) else None,
        tuple(tuple(process_log_ratios(m)) for m in paired),
    )


@dataclass(frozen=True, slots=True)
class Fast:
    """fast_p: the problems that may be claimed to be more than ``p`` times as fast, among all, with
    the Wilson interval of their share; and how many are by their point estimates alone.
    """

    p: float
    claimed: Rate
    estimated: int

    @property
    def unclaimed(self) -> int:
        """How many a count by point estimates takes for faster without a claim."""
        return self.estimated - self.claimed.count


def fast(problems: Sequence[Scored], p: float = 1.0) -> Fast:
    """fast_p over problems; those that failed, and those of which nothing is known, are not fast.

    Raises:
        ValueError: if p is not a positive number.
    """
    if not 0 < p < math.inf:
        raise ValueError(f"expected p > 0, found {p}")
    claims = sum(problem.is_faster(p) for problem in problems)
    # Above p by its interval is above p by its estimate.
    estimated = sum(one.estimate is not None and one.estimate > p for one in problems)
    return Fast(p, Rate(claims, len(problems)), estimated)


@dataclass(frozen=True, slots=True)
class Mean:
    """A geometric mean of the speedups of so many problems, ``left_out`` others not among them.
    The upper limit is infinite where it could not be told.
    """

    interval: Interval
    count: int
    left_out: int


def mean_of_confirmed(problems: Sequence[Scored]) -> Mean | None:
    """The geometric mean over the confirmed problems, losses included; None if there are none.

    What failed is not in it, so a slow kernel that fails would raise it: it is nothing to be ranked
    by, and is reported with the number of those left out.
    """
    confirmed = [problem for problem in problems if problem.interval is not None]
    if not confirmed:
        return None
    return Mean(_interval(confirmed), len(confirmed), len(problems) - len(confirmed))


def mean_of_claims(problems: Sequence[Scored]) -> Mean | None:
    """The geometric mean over all problems of what claims are worth: a win its speedup, everything
    else 1x; None of no problem.

    That is what a user has who takes the kernel where a win is claimed, and keeps the baseline
    where it is not. Were only failures counted as 1x, a slow kernel would gain by failing; so ties
    and losses are, too, and nothing that is not a win can be told from another. Where there is no
    win, every value is 1 and the bootstrap knows of no others: the upper limit is unknown.
    """
    if not problems:
        return None
    credited = [one if one.is_faster(1.0) else _KEPT for one in problems]
    if all(one is _KEPT for one in credited):
        return Mean(Interval(1.0, 1.0, math.inf), len(problems), 0)
    found = _interval(credited)
    # No credit is less than 1.
    return Mean(replace(found, low=max(1.0, found.low)), len(problems), 0)


# A problem whose baseline is kept.
_KEPT = Scored("kept", Status.TIE, 1.0, Interval(1.0, 1.0, 1.0))


def _interval(problems: Sequence[Scored]) -> Interval:
    """The geometric mean of speedups with its 95% interval: a bootstrap in which problems are drawn
    with replacement and each drawn one is measured again, which speaks of problems like these.

    The spread of estimates among problems holds the measurement error already, so redrawing it
    counts that twice (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section
    3.8). It is done all the same: the interval errs to the wide side, by little where problems
    differ by more than their errors, and is not too narrow where few of them happen to agree. For
    few problems draws are spread by sqrt(n / (n - 1)) t / z (Hesterberg, What Teachers Should Know
    About the Bootstrap, The American Statistician 2015, section 5). One problem has its own
    interval, which speaks of nothing else. Draws are seeded by the records without their names, and
    these are put into an order first: the result is a function of the set.
    """
    if len(problems) == 1:
        assert problems[0].interval is not None
        return problems[0].interval
    ordered = sorted(problems, key=_content)
    text = "\n".join(map(_content, ordered))
    seed = hashlib.blake2b(text.encode(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    count = len(ordered)
    redrawn = np.stack([_redrawn(problem, rng) for problem in ordered])
    sums = np.zeros(RESAMPLES)
    for _ in range(count):
        sums += redrawn[rng.integers(count, size=RESAMPLES), rng.integers(REDRAWN, size=RESAMPLES)]
    centre = statistics.fmean(_log(problem) for problem in ordered)
    spread = centre + _widening(count) * (sums / count - centre)
    low, high = np.quantile(spread, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Interval(
        math.exp(min(float(low), centre)), math.exp(centre), math.exp(max(float(high), centre))
    )


def _content(problem: Scored) -> str:
    return repr((problem.estimate, problem.interval, problem.logs))


def _log(problem: Scored) -> float:
    assert problem.interval is not None
    return math.log(problem.interval.estimate)


def _widening(count: int) -> float:
    """What makes up for the narrowness of a bootstrap of few values."""
    tail = (1 + CONFIDENCE) / 2
    student = t_quantile(tail, count - 1) / NormalDist().inv_cdf(tail)
    return math.sqrt(count / (count - 1)) * student


def _redrawn(problem: Scored, rng: np.random.Generator) -> NDArray[np.float64]:
    """The log speedup of a problem, measured again and again: its process pairs drawn with
    replacement, or where there are none the normal error that its wider limit stands for.
    """
    errors = np.zeros(REDRAWN)
    if problem.logs and all(len(logs) > 1 for logs in problem.logs):
        for logs in problem.logs:
            values = np.array(logs)
            picks = rng.integers(len(logs), size=(REDRAWN, len(logs)))
            # A drawn mean varies by (n - 1) / n of what the mean does.
            lacking = math.sqrt(len(logs) / (len(logs) - 1))
            errors += lacking * (values[picks].mean(axis=1) - values.mean()) / len(problem.logs)
        return _log(problem) + errors
    assert problem.interval is not None
    low, high = math.log(problem.interval.low), math.log(problem.interval.high)
    half = max(high - _log(problem), _log(problem) - low)
    deviation = half / NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    drawn: NDArray[np.float64] = rng.normal(_log(problem), deviation, size=REDRAWN)
    return drawn
