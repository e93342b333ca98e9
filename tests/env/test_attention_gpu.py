from __future__ import annotations

import numpy as np
import pytest

from kernelwright.env.compiler.machine.device import load_device
from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.problems.attention_gpu import attention_gpu


def half(arrays, *, causal, weights_in_half=True):
    """Attention as the kernel computes it: products of halves, sums and exponentials in singles."""
    q, k, v = (arrays[name].astype(np.float32) for name in "QKV")
    scores = np.einsum("hid,hjd->hij", q, k) / np.float32(np.sqrt(q.shape[2]))
    if causal:
        scores[:, *np.triu_indices(scores.shape[1], 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    total = weights.sum(axis=2, keepdims=True)
    rounded = weights.astype(np.float16).astype(np.float32) if weights_in_half else weights
    return (np.einsum("hij,hjd->hid", rounded, v) / total).astype(np.float16)


def error_of(got, wanted):
    return np.linalg.norm(got.astype(np.float64) - wanted) / np.linalg.norm(wanted)


@pytest.mark.parametrize("causal", [True, False])
def test_an_honest_half_precision_attention_is_within_the_error_model(causal):
    problem = attention_gpu(heads=2, seq=96, dim=32, causal=causal)
    arrays = problem.inputs(problem.workloads[0], np.random.default_rng(0))
    wanted = problem.reference(arrays)["O"]
    assert wanted.dtype == np.float64
    error = error_of(half(arrays, causal=causal), wanted)
    assert 1e-4 < error < problem.error_model.bound
    assert error_of(half(arrays, causal=not causal), wanted) > problem.error_model.bound
    unscaled = {**arrays, "Q": (arrays["Q"] * np.float16(1.01))}
    assert error_of(half(unscaled, causal=causal), wanted) > problem.error_model.bound


def test_the_first_row_of_causal_attention_is_the_first_value():
    problem = attention_gpu(heads=1, seq=4, dim=8)
    arrays = problem.inputs(problem.workloads[0], np.random.default_rng(1))
    first = problem.reference(arrays)["O"][0, 0]
    np.testing.assert_allclose(first, arrays["V"][0, 0].astype(np.float64))


def test_counts_of_the_roofline():
    full, causal = (attention_gpu(heads=3, seq=8, dim=16, causal=c) for c in (False, True))
    (workload,) = full.workloads
    assert full.flops(workload) == 4 * 3 * 8 * 8 * 16
    assert causal.flops(workload) == 4 * 3 * 36 * 16
    assert full.moved_bytes(workload) == causal.moved_bytes(workload) == 4 * 3 * 8 * 16 * 2
    assert workload.label == "3x8x16"


@pytest.mark.parametrize("mask", ["causal", "full"])
def test_no_recorded_time_is_below_the_roofline(mask):
    problem = attention_gpu(causal=mask == "causal")
    landscape = open_landscape(locate(f"h200_attention_32x4096x128_{mask}"))
    (workload,) = problem.workloads
    floor_s = load_device("h200").floor_s(problem.flops(workload), problem.moved_bytes(workload))
    assert 0.3 < floor_s * 1e9 / min(landscape.library_ns) < 1
    assert landscape.best.true_ns > floor_s * 1e9
    errors = [entry.max_error for entry in landscape.entries if entry.max_error is not None]
    assert 0 < max(errors) < problem.error_model.bound
