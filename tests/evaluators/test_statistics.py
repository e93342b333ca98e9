from __future__ import annotations

import math

import numpy as np
import pytest

from kernelwright.env.objective import log2_speedup, log_ratio
from kernelwright.env.types import (
    Arm,
    CacheState,
    Evidence,
    Measurement,
    ProcessPair,
    Role,
    Status,
    Terms,
    Unpaired,
    Verdict,
)
from kernelwright.evaluators.statistics import Interval, claimed, speedup, t_quantile

# Two-sided 95% quantiles of Student's t, from any table.
T_TABLE = [(1, 12.706), (2, 4.303), (5, 2.571), (9, 2.262), (30, 2.042), (120, 1.980)]


def measure(samples, workload="w", role=Role.BASELINE, evidence=Evidence.MODELLED):
    return Measurement(workload, role, "k", samples, "c", CacheState.COLD, evidence, "m")


def verdict(*measurements, floors=()):
    return Verdict(Status.OK, measurements=tuple(measurements), floors_ns=floors)


def paired(ratios):
    return tuple(ProcessPair(Arm.CANDIDATE, tuple(Arm), ((1.0, r),)) for r in ratios)


@pytest.mark.parametrize(("freedom", "value"), T_TABLE)
def test_t_quantiles(freedom, value):
    assert t_quantile(0.975, freedom) == pytest.approx(value, abs=6e-4)
    assert t_quantile(0.025, freedom) == pytest.approx(-value, abs=6e-4)


def test_a_paired_interval_is_students_t_over_process_pairs():
    logs = np.log([1.02, 1.05, 1.03, 1.01, 1.04])
    interval = speedup(verdict(measure(paired(np.exp(logs)))))
    half = 2.776 * logs.std(ddof=1) / math.sqrt(5)
    assert math.log(interval.estimate) == pytest.approx(logs.mean(), abs=1e-12)
    assert math.log(interval.low) == pytest.approx(logs.mean() - half, abs=1e-4)
    assert math.log(interval.high) == pytest.approx(logs.mean() + half, abs=1e-4)
    assert interval.claim() is Status.WIN


def test_without_noise_the_interval_is_a_point():
    interval = speedup(verdict(measure(paired([1.7] * 10))))
    assert interval.low == interval.estimate == interval.high == pytest.approx(1.7)


def test_one_process_pair_claims_nothing():
    interval = speedup(verdict(measure(paired([2.0]))))
    assert (interval.low, interval.high, interval.claim()) == (0, math.inf, Status.TIE)


def test_an_unpaired_interval_bootstraps_the_ratio_of_medians():
    samples = Unpaired((1.0, 1.1, 0.9, 1.05, 0.95), (2.0, 2.1, 1.9, 2.05, 1.95))
    interval = speedup(verdict(measure(samples)))
    assert interval.estimate == pytest.approx(2.0)
    assert 1.7 < interval.low < 2 < interval.high < 2.4
    assert speedup(verdict(measure(samples))) == interval


def test_an_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        interval = speedup(verdict(measure(paired(np.exp(0.02 * rng.standard_normal(10))))))
        hits += interval.low <= 1 <= interval.high
    assert 0.92 <= hits / 400 <= 0.98


def test_workloads_are_averaged_geometrically():
    both = verdict(measure(paired([2.0, 2.0]), "a"), measure(paired([8.0, 8.0]), "b"))
    assert log2_speedup(both) == pytest.approx(2)
    assert speedup(both).estimate == pytest.approx(4)


def test_several_workloads_widen_by_welch_and_satterthwaite():
    rng = np.random.default_rng(1)
    one = measure(paired(np.exp(0.02 * rng.standard_normal(10))), "a")
    other = measure(paired(np.exp(0.02 * rng.standard_normal(10))), "b")
    alone, both = speedup(verdict(one)), speedup(verdict(one, other))
    assert both.high / both.low < alone.high / alone.low


def test_credit_stops_at_the_floor():
    fast = measure(Unpaired((0.5,) * 4, (4.0,) * 4), evidence=Evidence.RECORDED)
    assert log_ratio(fast) == pytest.approx(math.log(8))
    assert log_ratio(fast, floor_ns=1.0) == pytest.approx(math.log(4))
    capped = speedup(verdict(fast, floors=(("w", 1.0),)))
    assert capped.estimate == capped.high == pytest.approx(4)
    assert log2_speedup(verdict(fast, floors=(("w", 1.0),))) == pytest.approx(2)


def test_a_modelled_clock_may_drift_past_the_floor():
    drifted = verdict(measure(paired([1.2] * 10)), floors=(("w", 10.0),))
    assert speedup(drifted).estimate == pytest.approx(1.2)


@pytest.mark.parametrize(("mine", "theirs"), [(1, 1), (1, 5), (2, 2), (3, 3), (1, 40), (2, 8)])
def test_too_few_samples_claim_nothing(mine, theirs):
    interval = speedup(verdict(measure(Unpaired((1.0,) * mine, (2.0,) * theirs))))
    assert (interval.low, interval.high, interval.claim()) == (0, math.inf, Status.TIE)


SIZES = [(4, 4), (3, 5), (3, 15), (15, 4)]


@pytest.mark.parametrize("spread", [(0.02, 0.02), (0.05, 0.005), (0.005, 0.05)])
@pytest.mark.parametrize(("mine", "theirs"), SIZES)
def test_unpaired_intervals_cover(mine, theirs, spread):
    rng = np.random.default_rng(0)

    def samples(count, sigma):
        return tuple(np.exp(sigma * rng.standard_normal(count)))

    hits = 0
    for _ in range(120):
        pair = Unpaired(samples(mine, spread[0]), samples(theirs, spread[1]))
        interval = speedup(verdict(measure(pair)))
        hits += interval.low <= 1 <= interval.high
    assert hits / 120 >= 0.9


def test_what_was_not_compared_has_no_speedup():
    assert speedup(verdict(measure(paired([2.0]))), Role.LIBRARY) is None
    assert log2_speedup(Verdict(Status.WRONG, "x")) is None


def test_mixtures_are_refused():
    mixed = verdict(measure(paired([2.0]), "a"), measure(Unpaired((1.0,), (2.0,)), "b"))
    with pytest.raises(ValueError, match="mixture"):
        speedup(mixed)


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        (1.01, 1.2, Status.WIN),
        (0.9, 1.1, Status.TIE),
        (0.8, 0.99, Status.LOSS),
        (1.0, 1.0, Status.TIE),
    ],
)
def test_claims(low, high, status):
    assert Interval(low, (low + high) / 2, high).claim() is status


def test_limits_beyond_any_number_are_infinite_not_an_error():
    passed = verdict(measure(paired([1.0, 1.1])))
    claim = claimed(passed, Terms(alpha=1e-7))
    assert claim.status is Status.TIE
    interval = speedup(passed, confidence=1 - 2e-7)
    assert (interval.low, interval.high) == (0.0, math.inf)


def test_a_claim_is_beyond_the_least_effect_at_its_own_level():
    passed = verdict(measure(paired([1.009, 1.01, 1.011] * 4)))
    assert claimed(passed, Terms(0.01)).status is Status.WIN
    assert claimed(passed, Terms(0.01, 0.02)).status is Status.TIE
    slower = verdict(measure(paired([1 / 1.03, 1 / 1.031, 1 / 1.029] * 4)))
    assert claimed(slower, Terms(0.01, 0.02)).status is Status.LOSS
    assert claimed(slower, Terms(0.01, 0.04)).status is Status.TIE
    assert claimed(passed, Terms(0.01)).terms == Terms(0.01)
