"""The Hopper model against the shipped landscapes, and its breakdown by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelwright.env.compiler.machine.device import HopperDevice, LectureDevice, load_device
from kernelwright.env.compiler.machine.gemm_model import estimate_on
from kernelwright.env.compiler.machine.gpu_gemm import estimate_gemm
from kernelwright.env.compiler.machine.hopper_block import (
    operand_bytes,
    read_knobs,
    registers,
    shared_bytes,
)
from kernelwright.env.compiler.machine.hopper_gemm import estimate_hopper
from kernelwright.env.compiler.machine.hopper_step import BOUNDS, norm
from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.ranking import rank, ranks, spearman, tabulate
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.launch import launch_rules
from kernelwright.env.spaces.prior import predicted_log2

DEVICE = load_device("h200")
SHAPES = ((4096, 4096, 4096), (16, 14336, 4096), (2048, 14336, 4096), (512, 512, 16384))
BEST = {"bm": 128, "bn": 256, "bk": 64, "warps": 8, "stages": 4, "group_m": 8}


def recorded(shape):
    m, n, k = shape
    return tabulate(open_landscape(locate(f"h200_gemm_{m}x{n}x{k}")))


def columns_of(**knobs):
    return {name: np.array([value]) for name, value in (BEST | knobs).items()}


def one(shape=SHAPES[0], **knobs):
    return estimate_hopper(DEVICE, *shape, columns_of(**knobs)).row(0)


@pytest.mark.parametrize("shape", SHAPES)
def test_shared_memory_is_what_the_compiler_took(shape):
    table = recorded(shape)
    assert len(table.ns) == 5400
    got = shared_bytes(read_knobs(table.columns))
    np.testing.assert_array_equal(got, table.facts["shared"])
    np.testing.assert_array_equal(got > DEVICE.shared_per_block, ~table.ran)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_launch_rule_has_no_error(shape):
    table = recorded(shape)
    (rule,) = launch_rules(DEVICE)
    np.testing.assert_array_equal(rule.holds(table.columns), table.ran)


def test_the_rule_is_the_model_s_own_shared_memory():
    space = KnobSpace(gemm_gpu(split_k=True).knobs)
    knobs = read_knobs(space.columns)
    rule, split = launch_rules(DEVICE, split_of=128)
    np.testing.assert_array_equal(rule.holds(space.columns), shared_bytes(knobs) <= 232_448)
    np.testing.assert_array_equal(rule.holds(space.columns), operand_bytes(knobs) <= 232_448)
    np.testing.assert_array_equal(split.holds(space.columns), knobs.split_k * knobs.bk <= 128)


# What the model reached when it was calibrated, with slack: a golden, not a target.
FLOORS = {SHAPES[0]: (0.96, 1.03), SHAPES[1]: (0.96, 1.08)}
FLOORS |= {SHAPES[2]: (0.95, 1.02), SHAPES[3]: (0.96, 1.02)}


@pytest.mark.parametrize("shape", SHAPES)
def test_it_ranks_what_was_measured(shape):
    table = recorded(shape)
    table = table.where(table.ran)
    estimate = estimate_hopper(DEVICE, *shape, table.columns)
    order = np.lexsort((table.columns["warps"], estimate.shared_bytes, estimate.time_s))
    got = rank(estimate.time_s, order, table.ns)
    least, most = FLOORS[shape]
    assert len(table.ns) == 5199
    assert got.spearman >= least
    assert got.first <= most
    assert got.first_at_worst <= most + 0.02


def test_registers_and_spills_follow_the_compiler():
    table = recorded(SHAPES[0])
    table = table.where(table.ran)
    used, words = registers(DEVICE, read_knobs(table.columns))
    counted, spilled = table.facts["regs"], table.facts["spills"]
    free = (spilled == 0) & (counted < 250)
    assert np.median(np.abs(used / counted - 1)[free]) < 0.1
    assert np.mean((words > 10) == (spilled > 10)) > 0.95


def test_the_breakdown_by_hand():
    row = one()
    peak = DEVICE.peak_flops / DEVICE.sms
    assert row["shared_bytes"] == 4 * (128 + 256) * 64 * 2
    assert row["occupancy"] == row["resident"] == 1
    assert (row["tiles"], row["blocks"], row["k_steps"]) == (512, 512, 64)
    assert row["rounds"] == -(-512 // 132)
    assert row["spilled_words"] == row["spill_s"] == row["reduction_s"] == 0
    assert row["padding"] == 1
    assert row["tensor_s"] == pytest.approx(2 * 128 * 256 * 64 / peak)
    # Two warpgroups read 64 x 16 of A and all of B in each of 4 steps, and 48 KiB are filled.
    clocks = (2 * 4 * (64 + 256) * 16 * 2 + 48 * 1024) / 128
    assert row["shared_s"] == pytest.approx(clocks / DEVICE.clock_hz)
    tile = DEVICE.tile_s + 128 * DEVICE.accumulator_clocks / DEVICE.clock_hz
    hbm = DEVICE.hbm_bytes_per_s * DEVICE.hbm_efficiency
    assert row["hbm_s"] == pytest.approx(row["hbm_bytes"] / hbm)
    # Three full rounds; the last has 116 blocks, so its share of HBM is a little smaller.
    assert 4 * (64 * row["step_s"] + tile) * 0.99 < row["sm_s"] <= 4 * (64 * row["step_s"] + tile)
    total = norm(2 * DEVICE.overlap, np.array([row["sm_s"]]), np.array([row["hbm_s"]]))[0]
    assert row["time_s"] == pytest.approx(total + DEVICE.launch_s)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_breakdown_adds_up(shape):
    space = KnobSpace(gemm_gpu(split_k=True).knobs)
    e = estimate_hopper(DEVICE, *shape, space.columns)
    parts = np.stack([e.tensor_s, e.shared_s, e.issue_s, e.l2_s, e.hbm_step_s, e.spill_s])
    parts = np.vstack([parts, e.latency_s])
    assert np.all(np.isfinite(e.time_s))
    assert np.all(e.step_s >= parts.max(axis=0) * (1 - 1e-12))
    # Spilled words take bandwidth and are waited for: twice at most.
    assert np.all(e.step_s <= (parts.sum(axis=0) + e.spill_s) * (1 + 1e-12))
    least = np.maximum(e.sm_s, e.hbm_s) + e.reduction_s + DEVICE.launch_s
    assert np.all(e.time_s >= least * (1 - 1e-12))
    assert np.all((e.resident >= 1) & (e.resident <= e.occupancy))
    assert np.all(e.rounds * e.resident * DEVICE.sms >= e.blocks)
    by_hbm = e.hbm_s > e.sm_s
    assert np.all(e.bound[by_hbm] == BOUNDS.index("hbm"))
    np.testing.assert_array_equal(e.bound[~by_hbm], np.argmax(parts, axis=0)[~by_hbm])
    assert one(shape)["bound"] in BOUNDS


def test_vectorised_equals_one_by_one():
    several = {name: np.array([value, 64 if name == "bm" else 1]) for name, value in BEST.items()}
    several["bn"], several["bk"] = np.array([256, 16]), np.array([64, 32])
    both = estimate_hopper(DEVICE, 100, 300, 500, several)
    for i in range(2):
        alone = {name: column[i : i + 1] for name, column in several.items()}
        assert estimate_hopper(DEVICE, 100, 300, 500, alone).row(0) == both.row(i)


def test_neighbours_in_an_array_change_no_bit():
    # Campaigns are replayed with other batches.
    columns = KnobSpace(gemm_gpu().knobs).columns
    whole = estimate_hopper(DEVICE, *SHAPES[0], columns).time_s
    for start, stop in ((0, 1), (1, 4), (5, 12), (777, 808), (5999, 6000)):
        part = {name: column[start:stop] for name, column in columns.items()}
        got = estimate_hopper(DEVICE, *SHAPES[0], part).time_s
        np.testing.assert_array_equal(got, whole[start:stop])


def test_what_a_pipeline_hides():
    shape = (512, 512, 16384)
    small = {"bm": 64, "bn": 32, "bk": 128, "warps": 4}
    waits = [one(shape, **small, stages=s)["latency_s"] for s in (1, 2, 3, 4, 5)]
    assert waits == sorted(waits, reverse=True)
    assert one(shape, **small, stages=2)["bound"] == "latency"
    sync = DEVICE.sync_clocks / DEVICE.clock_hz
    assert waits[3] - sync == pytest.approx((waits[1] - sync) / 3)


def test_spills_cost_time_instead_of_a_refusal():
    crowded, fitting = one(warps=4), one(warps=8)
    assert crowded["spilled_words"] == 256
    assert crowded["time_s"] > 3 * fitting["time_s"]
    assert crowded["bound"] == "spill"


def test_few_warps_leave_schedulers_idle():
    small = {"bm": 16, "bn": 128, "bk": 64, "stages": 4}
    assert (
        one((16, 16, 4096), **small, warps=1)["issue_s"]
        > one((16, 16, 4096), **small, warps=4)["issue_s"]
    )


def test_split_k_pays_where_there_are_few_tiles():
    # cuBLAS, which splits K, takes 0.57 of the best time measured without it.
    landscape = open_landscape(locate("h200_gemm_512x512x16384"))
    measured = min(entry.true_ns for entry in landscape.entries if entry.error is None)
    library = measured / np.median(landscape.library_ns)
    gains = {}
    for m, n, k in SHAPES:
        problem = gemm_gpu(m=m, n=n, k=k, split_k=True)
        space = KnobSpace(problem.knobs)
        times = predicted_log2(problem, "h200", space).log2
        gains[m, n, k] = 2 ** (times[space.columns["split_k"] == 1].min() - times.min())
    assert library == pytest.approx(1.75, abs=0.01)
    assert library / 1.25 < gains[512, 512, 16384] < library * 1.25
    assert all(gains[shape] < 1.05 for shape in SHAPES[:3])


def test_split_k_of_one_is_none():
    assert one(split_k=1) == one()
    split = one((512, 512, 16384), split_k=8)
    whole = one((512, 512, 16384))
    assert split["blocks"] == 8 * whole["blocks"]
    assert split["k_steps"] == whole["k_steps"] / 8
    assert split["reduction_s"] > DEVICE.launch_s + DEVICE.latency_s
    # 8 fp32 results of 512 x 512 stay in L2; those of 4096 x 4096 do not.
    assert split["hbm_bytes"] == 2 * 512 * 16384 * 2
    assert one(split_k=8)["hbm_bytes"] - one()["hbm_bytes"] == (8 * 4 - 2) * 4096 * 4096


def test_each_device_has_its_model():
    lecture = load_device("h100-lecture")
    assert isinstance(lecture, LectureDevice)
    assert isinstance(DEVICE, HopperDevice)
    columns = columns_of()
    shape = SHAPES[0]
    np.testing.assert_array_equal(
        estimate_on(lecture, shape, columns).time_s, estimate_gemm(lecture, *shape, columns).time_s
    )
    np.testing.assert_array_equal(
        estimate_on(DEVICE, shape, columns).time_s, estimate_hopper(DEVICE, *shape, columns).time_s
    )
    with pytest.raises(ValueError, match="no knob split_k on h100-lecture"):
        estimate_on(lecture, shape, columns_of(split_k=2))
    with pytest.raises(ValueError, match="operands of 2 bytes, found 4"):
        estimate_on(DEVICE, shape, columns, itemsize=4)
    with pytest.raises(TypeError, match="expected a device of the lecture's model, found h200"):
        estimate_gemm(DEVICE, *shape, columns)


def test_constants_are_read():
    """Every fitted constant changes some estimate: none is there for show."""
    space = KnobSpace(gemm_gpu().knobs)
    shape = (16, 14336, 4096)
    base = estimate_hopper(DEVICE, *shape, space.columns).time_s
    fitted = HopperDevice.__slots__
    assert "mma_clocks" in fitted
    for name in fitted:
        changed = replace(DEVICE, **{name: getattr(DEVICE, name) * 1.25})
        other = estimate_hopper(changed, *shape, space.columns).time_s
        assert np.any(other != base), name


def test_ranks_share_ties():
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [2.5, 0, 2.5, 1]
    assert spearman(np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 30, 40])) == pytest.approx(1)
    scipy = pytest.importorskip("scipy.stats")
    draws = np.random.default_rng(0).integers(0, 9, (2, 100)).astype(float)
    assert spearman(*draws) == pytest.approx(scipy.spearmanr(*draws).statistic)


def test_a_ranking_says_what_ties_hide():
    predicted, measured = np.array([1.0, 1.0, 2.0]), np.array([30.0, 10.0, 20.0])
    got = rank(predicted, np.array([0, 1, 2]), measured)
    assert (got.first, got.first_at_worst, got.best_of_10) == (3, 3, 1)
    assert got.first_by_chance in (1, 2, 3)
