"""The one performance figure searchers see: the estimated log2 speedup over the baseline, derived
from a verdict's samples.

With several workloads the ratio is the geometric mean of the per-workload ratios, each capped at
its physical floor (a candidate cannot be faster than the roofline allows, so neither can its
credit).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from kernelwright.env.types import Evidence, Measurement, Role, Unpaired, Verdict

# Of fewer values than this a few interrupted ones decide where the middle is.
FEW = 5
# Huber's constant (95% efficient where nothing is interrupted), what makes a median absolute
# deviation a standard deviation, and when the estimate has settled.
_HUBER, _MAD, _STEPS, _ENOUGH = 1.345, 1.483, 30, 1e-4


def log_ratio(measurement: Measurement, floor_ns: float | None = None) -> float:
    """Natural logarithm of reference time / candidate time, capped at the floor.

    A modelled time is not capped: a model keeps its own roofline, and its simulated clock may drift
    against a floor in absolute time while the ratio of a pair does not.

    Unpaired samples give the ratio of medians. Pairs give the mean over process pairs of the
    location of the log ratios in each.
    """
    samples = measurement.samples
    if isinstance(samples, Unpaired):
        reference = statistics.median(samples.reference_ns)
        value = math.log(reference / statistics.median(samples.candidate_ns))
    else:
        value = statistics.fmean(process_log_ratios(measurement))
        reference = statistics.median(r for pair in samples for _, r in pair.samples_ns)
    if floor_ns is None or measurement.evidence is Evidence.MODELLED:
        return value
    return min(value, math.log(reference / floor_ns))


def process_log_ratios(measurement: Measurement) -> list[float]:
    """The location of the log ratios of each process pair (see `locations`).

    Raises:
        TypeError: if the samples are unpaired.
    """
    if isinstance(measurement.samples, Unpaired):
        raise TypeError("expected process pairs, found unpaired samples")
    return locations(
        [[math.log(r / c) for c, r in pair.samples_ns] for pair in measurement.samples]
    )


def locations(samples: Sequence[Sequence[float]]) -> list[float]:
    """Where the middle of each of some like samples is, whatever a few interrupted calls say:
    Huber's M-estimate with the scale that all of them have in common (Huber, Robust estimation of
    a location parameter, Annals of Mathematical Statistics 1964). A few values cannot tell their
    own scale, and with one that is too small this is the median.

    Raises:
        ValueError: if there is no sample, or one has no value.
    """
    return [place for place, _ in weighed_locations(samples, common_scale(samples))]


def weighed_locations(
    samples: Sequence[Sequence[float]], scale: float
) -> list[tuple[float, float]]:
    """The location of each sample, and how many of its values it stands on: those that are far off
    count for less.

    Raises:
        ValueError: if there is no sample, or one has no value.
    """
    if not samples or not all(samples):
        raise ValueError("expected samples of at least one value each")
    return [_huber(values, scale) for values in samples]


def common_scale(samples: Sequence[Sequence[float]]) -> float:
    """The median absolute deviation from each sample's own median, as a standard deviation of
    normal values; 0 where no sample has two values.
    """
    apart: list[float] = []
    for values in samples:
        if len(values) > 1:
            middle = statistics.median(values)
            # The sample's own median takes a degree of freedom.
            freed = math.sqrt(len(values) / (len(values) - 1))
            apart += [abs(value - middle) * freed for value in values]
    return _MAD * statistics.median(apart) if apart else 0.0


def _huber(values: Sequence[float], scale: float) -> tuple[float, float]:
    """Huber's M-estimate of location, by iterated weights from the median; and their sum."""
    middle = statistics.median(values)
    bound, weights = _HUBER * scale, float(len(values))
    if len(values) < 3 or bound <= 0:
        return middle, weights
    for _ in range(_STEPS):
        total = weights = 0.0
        for value in values:
            apart = abs(value - middle)
            weight = 1.0 if apart <= bound else bound / apart
            total += weight * value
            weights += weight
        moved = total / weights - middle
        middle += moved
        if abs(moved) < _ENOUGH * scale:
            break
    return middle, weights


def measurements_against(verdict: Verdict, role: Role) -> tuple[Measurement, ...]:
    """The measurements against one reference, one a workload."""
    return tuple(m for m in verdict.measurements if m.role is role)


def log2_speedup(verdict: Verdict, role: Role = Role.BASELINE) -> float | None:
    """log2 of the geometric mean of the capped ratios; None if the candidate failed or was not
    compared with ``role``.
    """
    chosen = measurements_against(verdict, role)
    if not chosen:
        return None
    floors = dict(verdict.floors_ns)
    return statistics.fmean(log_ratio(m, floors.get(m.workload)) for m in chosen) / math.log(2)
