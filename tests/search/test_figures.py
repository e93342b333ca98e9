from __future__ import annotations

import numpy as np
import pytest

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.machine.hierarchy import Cache
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.search.efficiency import (
    evaluations_to_target,
    median_interval,
    median_ratio,
)
from kernelwright.search.figures import (
    autotuning,
    gemm_space,
    halide,
    sparse_storage,
    te_schedules,
    time_tiling,
)
from kernelwright.search.figures.padding import padding
from kernelwright.search.figures.table import all_figures
from kernelwright.search.models.ranks import spearman

A_IDS = [f"A{i}" for i in range(1, 18)]
B_IDS = [f"B{i}" for i in range(1, 11)]
C_IDS = ["C1", "C4", "C5", "C6", "C7", "H4", "C2", "C3"]
D_IDS = [f"D{i}" for i in range(1, 6)]
F_IDS = [f"F{i}" for i in range(1, 9)]
G_IDS = ["G1", "G3", "G4", "H5"]


@pytest.fixture(scope="module")
def figures():
    return all_figures()


def test_every_figure_of_the_list_is_there(figures):
    assert [f.id for f in figures] == [*A_IDS, *B_IDS, *C_IDS, *D_IDS, *F_IDS, *G_IDS, "H3"]


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


def test_every_order_has_its_misses(monkeypatch):
    """A larger cache, another block or another order changes the figures."""
    assert all(f.ok for f in te_schedules.te_schedules())
    monkeypatch.setattr(te_schedules, "BLOCK", 8)
    assert [f.ok for f in te_schedules._packing()] == [False, True]
    monkeypatch.setitem(te_schedules.ORDERS, "ikj", "reorder('k', 'i', 'j')")
    monkeypatch.setattr(te_schedules, "CACHE", Cache(16 * 1024, 8, 64))
    assert [f.ok for f in te_schedules._orders()] == [False, False, False, False]


def test_sparse_figures_follow_matrix_and_format(monkeypatch):
    """Another matrix, another density or wider indices change the figures."""
    from kernelwright.env.compiler.sparse.named import parse_format

    assert all(f.ok for f in sparse_storage.sparse_storage())
    monkeypatch.setattr(sparse_storage, "DENSITY", 0.06)
    monkeypatch.setattr(sparse_storage, "parse_format", lambda text: parse_format(f"{text}:int64"))
    monkeypatch.setattr(sparse_storage, "EXAMPLE", sparse_storage.EXAMPLE[::-1])
    monkeypatch.setattr(sparse_storage, "FORMAT", "ell")
    assert not any(f.ok for f in sparse_storage.sparse_storage())


def test_schedules_are_counted_by_what_splits_allow():
    assert te_schedules.schedule_count(6) == 4**3 * 720
    assert te_schedules.schedule_count(7) == 2**3 * 720


def test_time_tiles_keep_what_a_sweep_loses(monkeypatch):
    assert all(f.ok for f in time_tiling.time_tiling())
    # A row fits this one, so the order is no matter.
    monkeypatch.setattr(time_tiling, "CACHE", Cache(64 * 1024, 4, 64))
    assert not any(f.ok for f in time_tiling.time_tiling())


def test_time_tiles_without_a_skew_are_refused():
    procedure = time_tiling.jacobi(8, 16, skewed=False)
    with pytest.raises(ScheduleError, match="must run before"):
        apply_trace(procedure, parse_trace("tile('t', 'i', 4, 4)"))


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
