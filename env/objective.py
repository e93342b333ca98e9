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

import numpy as np

from kernelwright.env.types import Evidence, Measurement, Role, Unpaired, Verdict

# Of fewer values the location is the median; up to so many, arrays do not pay.
FEW, _PLAIN = 5, 24


def log_ratio(measurement: Measurement, floor_ns: float | None = None) -> float:
    """Natural logarithm of reference time / candidate time, capped at the floor.

    A modelled time is not capped: a model keeps its own roofline, and its simulated clock may drift
    against a floor in absolute time while the ratio of a pair does not.

    Unpaired samples give the ratio of medians. Pairs give the mean over process pairs of the
    `location` of the log ratios in each.
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
    """The `location` of the log ratios of each process pair.

    Raises:
        TypeError: if the samples are unpaired.
    """
    if isinstance(measurement.samples, Unpaired):
        raise TypeError("expected process pairs, found unpaired samples")
    return [location([math.log(r / c) for c, r in pair.samples_ns]) for pair in measurement.samples]


def location(values: Sequence[float]) -> float:
    """Where the middle of a sample is, whatever a few interrupted calls say: the median of few
    values, the Hodges-Lehmann estimate of more (the median of the means of all pairs; Hodges and
    Lehmann, Estimates of location based on rank tests, Annals of Mathematical Statistics 1963),
    which needs a third fewer samples for the same spread.

    Raises:
        statistics.StatisticsError: if there is no value.
    """
    if len(values) < FEW:
        return statistics.median(values)
    if len(values) <= _PLAIN:
        return statistics.median((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    array = np.asarray(values)
    left, right = np.triu_indices(len(array))
    return float(np.median((array[left] + array[right]) / 2))


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
