from __future__ import annotations

import numpy as np
import pytest

from kernelwright.env.compiler.machine.device import load_device
from kernelwright.env.compiler.machine.gpu_gemm import estimate_gemm
from kernelwright.env.options import OptionError
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.launch import launch_rules
from kernelwright.env.spaces.prior import predicted_log2
from kernelwright.env.types import Knob
from kernelwright.evaluators.gpu_model import GpuModel

PROBLEM = gemm_gpu(m=512, n=512, k=16384)
SPACE = KnobSpace(PROBLEM.knobs)


def test_the_lecture_s_plain_estimate_and_its_rules():
    got = predicted_log2(PROBLEM, "h100-lecture", SPACE)
    plain = estimate_gemm(load_device("h100-lecture"), 512, 512, 16384, SPACE.columns)
    np.testing.assert_array_equal(got.log2_s, np.log2(plain.time_s))
    assert np.all(np.isfinite(got.log2_s))
    assert got.launches.sum() == 3744
    np.testing.assert_array_equal(np.isinf(got.log2), ~got.launches)


@pytest.mark.parametrize("device", ["h100-lecture", "h200"])
def test_a_prior_is_what_the_target_would_say(device):
    got = predicted_log2(PROBLEM, device, SPACE)
    model = GpuModel(PROBLEM, device=device)
    index = np.arange(0, SPACE.combinations, 97)
    ns = model.true_ns([SPACE.candidate(int(i)) for i in index])
    np.testing.assert_array_equal(np.isnan(ns), ~got.launches[index])
    ran = got.launches[index]
    np.testing.assert_allclose(1e9 * np.exp2(got.log2_s[index][ran]), ns[ran])


def test_only_shared_memory_stops_a_block_of_the_h200():
    got = predicted_log2(PROBLEM, "h200", SPACE)
    (rule,) = launch_rules(load_device("h200"))
    np.testing.assert_array_equal(got.launches, rule.holds(SPACE.columns))
    assert (~got.launches).sum() >= 201


def test_the_order_breaks_ties_by_what_a_block_takes():
    got = predicted_log2(gemm_gpu(m=16, n=14336, k=4096), "h100-lecture", SPACE)
    order = got.order(np.flatnonzero(got.launches))
    assert sorted(order.tolist()) == np.flatnonzero(got.launches).tolist()
    time = got.log2_s[order]
    assert np.all(np.diff(time) >= 0)
    tied = order[time == time[0]]
    assert len(tied) > 100
    assert np.all(np.diff(got.shared_bytes[tied]) >= 0)
    assert len(got.order()) == SPACE.combinations


def test_split_k_needs_a_model_that_has_it():
    problem = gemm_gpu(m=512, n=512, k=16384, split_k=True)
    space = KnobSpace(problem.knobs)
    assert space.combinations == 30_000
    assert np.all(np.isfinite(predicted_log2(problem, "h200", space).log2_s))
    with pytest.raises(ValueError, match="no knob split_k on h100-lecture"):
        predicted_log2(problem, "h100-lecture", space)
    with pytest.raises(OptionError, match="device whose model has the knob split_k"):
        GpuModel(problem, device="h100-lecture")


def test_blocks_without_a_step_are_refused():
    problem = gemm_gpu(m=64, n=64, k=256, split_k=True)
    space = KnobSpace(problem.knobs)
    got = predicted_log2(problem, "h200", space)
    steps = 256 / space.columns["bk"]
    assert not np.any(got.launches[space.columns["split_k"] > steps])
    values = dict(problem.unscheduled) | {"bk": 128, "split_k": 16}
    (rule,) = [r for r in GpuModel(problem, device="h200").constraints if r.code == "split_k"]
    assert rule.explain(values).reason == (
        "K = 256 has 2 steps of 128, less than one for each of 16 blocks"
    )


def test_what_is_no_gpu_gemm_is_refused():
    with pytest.raises(ValueError, match="expected a GEMM with knobs bm bn bk"):
        predicted_log2(PROBLEM, "h200", KnobSpace((*PROBLEM.knobs, Knob("swizzle", (0, 1), "x"))))
    with pytest.raises(ValueError, match="h300"):
        predicted_log2(PROBLEM, "h300", SPACE)
