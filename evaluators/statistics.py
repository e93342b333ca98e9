"""Intervals and claims, derived from raw samples.

Pairs: the unit is the process pair (the location of its log ratios). The interval is a percentile
bootstrap over process pairs, expanded for few of them, and never narrower than Student's t over
process pairs (Satterthwaite's degrees of freedom when several workloads are averaged). Below the
process pairs calls are resampled without replacement, which leaves each pair as it is: with
replacement their spread, which is in the pairs' locations already, would count twice (Davison and
Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).
Unpaired samples: the expanded percentile bootstrap of the ratio of medians, never narrower than
Welch's t. Draws are seeded by the samples, so that an interval is a function of the stored
measurement and nothing else.

A claim is decided by an interval at the level of its `Terms`, which is stricter than the 95% that
are printed: `claimed` gives the verdict.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.objective import log2_speedup, measurements_against, process_log_ratios
from kernelwright.env.types import Evidence, Measurement, Role, Status, Terms, Unpaired, Verdict

CONFIDENCE = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimated ratio with its confidence interval."""

    low: float
    estimate: float
    high: float

    def claim(self, least_effect: float = 0.0) -> Status:
        """``win`` if the interval lies above 1 by more than the least effect, ``loss`` if it lies
        as far below, ``tie`` otherwise.
        """
        edge = 1 + least_effect
        if self.low > edge:
            return Status.WIN
        return Status.LOSS if self.high * edge < 1 else Status.TIE


def claimed(passed: Verdict, terms: Terms) -> Verdict:
    """What a confirmation that passed says about the baseline: win, tie or loss.

    Raises:
        ValueError: if it was not compared with the baseline.
    """
    interval = speedup(passed, confidence=1 - 2 * terms.alpha)
    if interval is None:
        raise ValueError("expected a comparison with the baseline, found none")
    return replace(passed, status=interval.claim(terms.least_effect), terms=terms)


def speedup(
    verdict: Verdict, role: Role = Role.BASELINE, confidence: float = CONFIDENCE
) -> Interval | None:
    """Speedup over a reference with its interval; None if it was not compared.

    Raises:
        ValueError: if some workloads were paired and others not.
    """
    point = log2_speedup(verdict, role)
    chosen = measurements_against(verdict, role)
    if point is None:
        return None
    centre = point * math.log(2)
    unpaired = [isinstance(m.samples, Unpaired) for m in chosen]
    if any(unpaired) and not all(unpaired):
        raise ValueError("expected all workloads paired or all unpaired, found a mixture")
    low, high = (_unpaired_limits if unpaired[0] else _paired_limits)(chosen, confidence)
    # A capped ratio has capped limits; and rounding must not put the estimate outside its own
    # interval.
    return Interval(
        _ratio(min(low, centre)),
        _ratio(centre),
        _ratio(max(centre, min(high, _cap(verdict, chosen)))),
    )


def _ratio(log: float) -> float:
    """The ratio of a log ratio, infinite where no number holds it: a few samples at a strict level
    know nothing.
    """
    try:
        return math.exp(log)
    except OverflowError:
        return math.inf


def _cap(verdict: Verdict, chosen: tuple[Measurement, ...]) -> float:
    """The mean log of reference / floor, infinite where no floor holds (see `log_ratio`)."""
    floors = dict(verdict.floors_ns)
    caps = []
    for m in chosen:
        if m.workload not in floors or m.evidence is Evidence.MODELLED:
            return math.inf
        times = (
            m.samples.reference_ns
            if isinstance(m.samples, Unpaired)
            else [r for pair in m.samples for _, r in pair.samples_ns]
        )
        caps.append(math.log(statistics.median(times) / floors[m.workload]))
    return statistics.fmean(caps)


def _paired_limits(chosen: tuple[Measurement, ...], confidence: float) -> tuple[float, float]:
    count, least = len(chosen), math.inf
    means: list[float] = []
    parts: list[tuple[float, int]] = []
    draws = np.zeros(RESAMPLES)
    for m in chosen:
        logs = process_log_ratios(m)
        if len(logs) < 2:
            return -math.inf, math.inf
        least = min(least, len(logs))
        means.append(statistics.fmean(logs))
        parts.append((statistics.variance(logs) / len(logs) / count**2, len(logs) - 1))
        draws += _process_draws(m, logs) / count
    low, high = _t_limits(statistics.fmean(means), parts, confidence)
    tail = _expanded_tail(int(least), confidence)
    drawn_low, drawn_high = np.quantile(draws, (tail, 1 - tail))
    return min(low, float(drawn_low)), max(high, float(drawn_high))


def _process_draws(measurement: Measurement, logs: list[float]) -> NDArray[np.float64]:
    """Means of resampled process pairs; the draws are seeded by the samples."""
    if len(set(logs)) == 1:
        return np.full(RESAMPLES, logs[0])
    text = repr((measurement.workload, measurement.samples))
    seed = hashlib.blake2b(text.encode(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    picks = rng.integers(len(logs), size=(RESAMPLES, len(logs)))
    means: NDArray[np.float64] = np.array(logs)[picks].mean(axis=1)
    return means


def _unpaired_limits(chosen: tuple[Measurement, ...], confidence: float) -> tuple[float, float]:
    draws, least = np.zeros(RESAMPLES), math.inf
    for m in chosen:
        assert isinstance(m.samples, Unpaired)
        counts = (len(m.samples.candidate_ns), len(m.samples.reference_ns))
        # Fewer samples cannot speak at this level: of two the spread is unknown, and two groups
        # without any overlap come about by chance with probability 2 / C(n + m, n).
        if min(counts) < 3 or 2 / math.comb(sum(counts), counts[0]) > 1 - confidence:
            return -math.inf, math.inf
        least = min(least, *counts)
        seed = hashlib.blake2b(repr((m.workload, m.samples)).encode(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(seed, "big"))
        reference = np.array(m.samples.reference_ns)
        candidate = np.array(m.samples.candidate_ns)
        draws += np.log(_medians(reference, rng) / _medians(candidate, rng))
    tail = _expanded_tail(int(least), confidence)
    low, high = np.quantile(draws / len(chosen), (tail, 1 - tail))
    # A bootstrap of medians knows only the values it has: with few samples of unequal spread it is
    # too narrow. So its limits are never inside Welch's.
    welch_low, welch_high = _welch_limits(chosen, confidence)
    return min(float(low), welch_low), max(float(high), welch_high)


def _welch_limits(chosen: tuple[Measurement, ...], confidence: float) -> tuple[float, float]:
    """Welch's t interval of the mean difference of log times, averaged over workloads."""
    centre, parts = 0.0, []
    for m in chosen:
        assert isinstance(m.samples, Unpaired)
        for sign, times in ((1, m.samples.reference_ns), (-1, m.samples.candidate_ns)):
            logs = [math.log(t) for t in times]
            centre += sign * statistics.fmean(logs) / len(chosen)
            variance = statistics.variance(logs) / len(logs) / len(chosen) ** 2
            parts.append((variance, len(logs) - 1))
    return _t_limits(centre, parts, confidence)


def _t_limits(
    centre: float, parts: list[tuple[float, int]], confidence: float
) -> tuple[float, float]:
    """Student's interval from variances of means with their degrees of freedom (Satterthwaite)."""
    variance = sum(v for v, _ in parts)
    if variance == 0:
        return centre, centre
    freedom = variance**2 / sum(v**2 / df for v, df in parts)
    half = t_quantile(0.5 + confidence / 2, freedom) * math.sqrt(variance)
    return centre - half, centre + half


def _expanded_tail(count: int, confidence: float) -> float:
    """The percentile that makes up for the narrowness of a bootstrap of few samples.

    Φ(√(n/(n−1)) t), with t the quantile of Student's t at the nominal tail (Hesterberg, What
    Teachers Should Know About the Bootstrap, The American Statistician 2015, section 5).
    """
    nominal = (1 - confidence) / 2
    if count < 2:
        return 0.0
    widened = math.sqrt(count / (count - 1)) * t_quantile(nominal, count - 1)
    return statistics.NormalDist().cdf(widened)


def _medians(samples: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    picks = rng.integers(len(samples), size=(RESAMPLES, len(samples)))
    medians: NDArray[np.float64] = np.median(samples[picks], axis=1)
    return medians


@lru_cache(maxsize=256)
def t_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t, by bisection on its distribution function.

    With t = √ν tan θ the density becomes cos^(ν-1) θ, which Gauss-Legendre integrates to machine
    precision.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    nodes, weights = np.polynomial.legendre.leggauss(200)

    def area(theta: float) -> float:
        angles = (nodes + 1) * theta / 2
        return float(np.sum(weights * np.cos(angles) ** (freedom - 1)) * theta / 2)

    whole = area(math.pi / 2)
    low, high = 0.0, math.pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        if 0.5 + 0.5 * area(middle) / whole < probability:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)
