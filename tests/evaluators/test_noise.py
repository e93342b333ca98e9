from __future__ import annotations

import math
import statistics
from itertools import pairwise

import pytest

from kernelwright.evaluators.noise import Noise, drift_factor, keyed_uniforms, noisy_pair


def factors(noise, count=4000, trial=0):
    return [noisy_pair(noise, 7, f"k{i}", 0, trial)[0] for i in range(count)]


def test_draws_depend_on_seed_key_and_repeat_alone():
    assert keyed_uniforms(1, "k", 2, 4) == keyed_uniforms(1, "k", 2, 4)
    others = {tuple(keyed_uniforms(*args, 4)) for args in [(2, "k", 2), (1, "j", 2), (1, "k", 3)]}
    assert len(others | {tuple(keyed_uniforms(1, "k", 2, 4))}) == 4


def test_draws_are_uniform_and_open():
    values = [u for i in range(4000) for u in keyed_uniforms(0, str(i), 0, 2)]
    assert min(values) > 0
    assert max(values) < 1
    assert statistics.fmean(values) == pytest.approx(0.5, abs=0.01)
    assert statistics.pstdev(values) == pytest.approx(1 / math.sqrt(12), abs=0.01)


def test_no_noise_is_exact():
    assert noisy_pair(Noise(), 1, "k", 0, 5) == (1.0, 1.0)


def test_lognormal_noise_has_its_standard_deviation():
    logs = [math.log(f) for f in factors(Noise(lognormal=0.02))]
    assert statistics.pstdev(logs) == pytest.approx(0.02, rel=0.05)
    assert statistics.fmean(logs) == pytest.approx(0, abs=0.001)


def test_the_arms_of_a_pair_are_independent():
    pairs = [noisy_pair(Noise(lognormal=0.1), 0, str(i), 0, 0) for i in range(2000)]
    assert statistics.correlation(*zip(*pairs, strict=True)) == pytest.approx(0, abs=0.06)


def test_drift_is_common_slow_and_a_function_of_the_trial():
    noise = Noise(drift=0.05)
    candidate, reference = noisy_pair(noise, 3, "k", 0, 40)
    assert candidate == reference == drift_factor(noise, 3, 40)
    path = [math.log(drift_factor(noise, 3, t)) for t in range(5000)]
    assert statistics.pstdev(path) == pytest.approx(0.05, rel=0.1)
    assert max(abs(a - b) for a, b in pairwise(path)) < 0.01


def test_a_heavy_tail_only_slows_and_as_often_as_it_says():
    values = factors(Noise(heavy_tail=0.1))
    slowed = [v for v in values if v != 1]
    assert min(values) == 1
    assert len(slowed) / len(values) == pytest.approx(0.1, abs=0.02)
    assert statistics.median(slowed) == pytest.approx(2 ** (1 / 1.5), rel=0.1)


@pytest.mark.parametrize(
    "values", [{"lognormal": -0.1}, {"lognormal": 2}, {"drift": "a"}, {"x": 1}]
)
def test_impossible_noise_is_refused(values):
    with pytest.raises(ValueError, match="validation error"):
        Noise(**values)
