from __future__ import annotations

import numpy as np
import pytest

from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.types import Workload


def test_counts_of_the_roofline():
    problem = gemm_gpu(m=16, n=32, k=64)
    (workload,) = problem.workloads
    assert problem.flops(workload) == 2 * 16 * 32 * 64
    assert problem.moved_bytes(workload) == 2 * (16 * 64 + 64 * 32 + 16 * 32)
    assert workload.label == "16x32x64"
    assert problem.identity == "gemm_gpu@1"


def test_an_honest_half_precision_gemm_is_within_the_error_model():
    problem = gemm_gpu(m=64, n=48, k=256)
    arrays = problem.inputs(problem.workloads[0], np.random.default_rng(0))
    wanted = problem.reference(arrays)["C"]
    assert wanted.dtype == np.float64
    got = (arrays["A"].astype(np.float32) @ arrays["B"].astype(np.float32)).astype(np.float16)
    error = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
    assert 0 < error < problem.error_model.bound
    wrong = got.copy()
    wrong[0] = 0
    assert np.linalg.norm(wrong - wanted) / np.linalg.norm(wanted) > problem.error_model.bound


def test_inputs_depend_on_the_generator_alone():
    problem = gemm_gpu(m=8, n=8, k=8)
    workload = Workload((("m", 4), ("n", 2), ("k", 3)))

    def draw(seed):
        return problem.inputs(workload, np.random.default_rng(seed))

    np.testing.assert_array_equal(draw(1)["A"], draw(1)["A"])
    assert draw(1)["A"].shape == (4, 3)
    assert not np.array_equal(draw(1)["A"], draw(2)["A"])


def test_version_and_roles():
    problem = gemm_gpu()
    assert [t.role for t in problem.tensors] == ["input", "input", "output"]
    with pytest.raises(ValueError, match="version"):
        type(problem)(**{f: getattr(problem, f) for f in problem.__slots__} | {"version": 0})
