from __future__ import annotations

import numpy as np
import pytest

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.search.efficiency import (
    evaluations_to_target,
    median_interval,
    median_ratio,
)
from kernelwright.search.figures import autotuning, gemm_space, halide
from kernelwright.search.figures.padding import padding
from kernelwright.search.figures.table import all_figures
from kernelwright.search.models.ranks import spearman

A_IDS = [f"A{i}" for i in range(1, 18)]
B_IDS = [f"B{i}" for i in range(1, 11)]
# The cache simulator computes C2 and C3.
C_IDS = ["C1", "C4", "C5", "C6", "C7", "H4"]
D_IDS = [f"D{i}" for i in range(1, 6)]


@pytest.fixture(scope="module")
def figures():
    return all_figures()


def test_every_figure_of_the_list_is_there(figures):
    assert [f.id for f in figures] == [*A_IDS, *B_IDS, *C_IDS, *D_IDS, "H3"]


def test_every_figure_is_in_its_range(figures):
    assert [(f.id, f.got, f.accepted) for f in figures if not f.ok] == []


def test_figures_come_from_the_machinery_not_from_a_list(monkeypatch):
    """A changed device or rule changes the figures."""
    from dataclasses import replace

    from kernelwright.env.compiler.machine.device import load_device

    slower = replace(load_device("h100-lecture"), peak_flops=500e12, latency_s=2e-6)
    monkeypatch.setattr(gemm_space, "load_device", lambda name: slower)
    ok = {f.id: f.ok for f in gemm_space.gemm_space()}
    assert not ok["A9"]
    assert not ok["A10"]


def test_more_noise_changes_the_searches(monkeypatch):
    monkeypatch.setattr(autotuning, "NOISE", 1.0)
    monkeypatch.setattr(autotuning, "SEEDS", 20)
    assert not {f.id: f.ok for f in autotuning._searches()}["B4"]


def test_image_pipelines_follow_what_they_are_made_of(monkeypatch):
    """Another pipeline has other figures."""
    monkeypatch.setattr(halide, "blur", lambda size: halide.boxes(size))
    with pytest.raises(ScheduleError, match="expected one of the loops"):
        halide.halide()
    monkeypatch.undo()
    monkeypatch.setattr(halide, "images", lambda stages, size: halide.blur(size))
    assert not halide._storage().ok


def test_padding():
    assert [f.got for f in padding()] == ["8320, 1.56%"]


def test_spearman_with_ties():
    scipy_value = 0.7631578947368421  # scipy.stats.spearmanr([1, 2, 2, 4, 5], [1, 3, 2, 2, 6])
    a, b = np.array([1.0, 2, 2, 4, 5]), np.array([1.0, 3, 2, 2, 6])
    assert spearman(a, b) == pytest.approx(scipy_value)
    assert spearman(a, -a) == pytest.approx(-1)


class Truth:
    """A true time for every candidate's ``a``."""

    def true_ns(self, candidates):
        return np.array([float(c.knobs["a"]) for c in candidates])


def trials_of(pairs):
    from contracts import judged

    from kernelwright.env.types import knob_candidate

    return [judged(i, knob_candidate({"a": a}), o) for i, (a, o) in enumerate(pairs)]


def test_evaluations_follow_the_best_measured_not_the_best_true():
    # The second is truly good but measured worse than the first; the fourth looks best and is good.
    trials = trials_of([(200, 5.0), (100, 4.0), (101, None), (104, 6.0)])
    assert evaluations_to_target(trials, Truth(), 100.0, 0.05) == 4
    assert evaluations_to_target(trials[:3], Truth(), 100.0, 0.05) is None
    assert evaluations_to_target(trials_of([(100, 1.0)]), Truth(), 100.0, 0.05) == 1


def test_medians_with_unsolved_runs():
    assert median_interval([1, 2, 3, None, None]).value == 3
    assert median_interval([1, None, None]).value == float("inf")
    assert median_interval([5] * 20).low == median_interval([5] * 20).high == 5


def test_ratios_see_a_difference_and_do_not_invent_one():
    rng = np.random.default_rng(0)
    a, b = ([int(x) for x in rng.integers(10, 30, 20)] for _ in range(2))
    assert not median_ratio(a, b).is_difference
    assert median_ratio([100 + x for x in a], b).is_difference
    assert median_ratio([257] * 20, a).is_difference
    assert not median_ratio([257] * 20, [257] * 20).is_difference
    assert median_ratio(a, b) == median_ratio(a, b)
