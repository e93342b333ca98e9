"""Several pieces of work together: the geometric mean of their medians.

Evaluations of one problem and of another are on scales of their own, so what is averaged is their
logarithm: half as many on each is half as many together. The works are taken as they are and not
drawn from others, so an interval speaks of these works alone, over the seeds of runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernelwright.search.efficiency import (
    Floats,
    Median,
    Ratio,
    medians_of_resamples,
    ratio_of,
)

Counts = Sequence[float | None]


def geometric_median(works: Sequence[Counts]) -> Median:
    """The geometric mean over works of the median number of evaluations, with a 95% bootstrap
    interval in which the runs of every work are drawn again.

    A run that did not reach the target (None) counts as infinite, so the mean is infinite where the
    middle run of any work got nowhere.

    Raises:
        ValueError: if there is no work, or one without runs.
    """
    values = _checked(works)
    draws = _draws(values, "median")
    low, high = np.quantile(draws, (0.025, 0.975), method="inverted_cdf")
    return Median(_mean([float(np.median(runs)) for runs in values]), float(low), float(high))


def geometric_ratio(left: Sequence[Sequence[float]], right: Sequence[Sequence[float]]) -> Ratio:
    """The geometric mean over works of the ratio of medians, with its 95% bootstrap interval.

    Args:
        left: evaluations, run by run, of every work; a run that did not reach the target is to be
            counted as one more than the budget, the least that it could have needed.
        right: the other campaign's, of the same works in the same order.

    Raises:
        ValueError: if they are not of the same works, or one has no runs.
    """
    if len(left) != len(right):
        raise ValueError(f"expected the same works, found {len(left)} and {len(right)}")
    mine, theirs = _checked(left), _checked(right)
    value = _mean([float(np.median(runs)) for runs in mine]) / _mean(
        [float(np.median(runs)) for runs in theirs]
    )
    return ratio_of(value, _draws(mine, "left") / _draws(theirs, "right"))


def _checked(works: Sequence[Counts]) -> list[Floats]:
    if not works or not all(works):
        raise ValueError("expected works of at least one run each")
    return [np.array([math.inf if c is None else float(c) for c in runs]) for runs in works]


def _draws(works: Sequence[Floats], salt: str) -> Floats:
    """Geometric means of medians; equal works are still drawn apart."""
    logs = [np.log(medians_of_resamples(runs, f"{salt} {i}")) for i, runs in enumerate(works)]
    means: Floats = np.exp(np.mean(logs, axis=0))
    return means


def _mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
