"""Wrong kernels that look right: each is refused by the inputs that a judge draws."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import FORMATTED

from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.options import ProblemError
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.integers import integer_inputs

EXACT = (
    "batched_matmul",
    "column_sum",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv3x3",
    "depthwise",
    "matmul",
    "prefix_sum",
    "row_sum",
    "spmv",
    "transpose",
    *FORMATTED,
)


def made(name, **options):
    return resolve(PROBLEMS, name)(**options)


def drawn(problem, seed=0):
    return problem.inputs(problem.workloads[0], np.random.default_rng(seed))


def whole(problem, seed=0):
    return integer_inputs(problem, drawn(problem, seed), np.random.default_rng(seed))


def accepted(problem, arrays, got):
    (wanted,), (limit,) = problem.reference(arrays).values(), problem.magnitude(arrays).values()
    return bool(np.all(abs(got.astype(np.float64) - wanted) <= problem.error_model.bound * limit))


def half(array):
    return array.astype(np.float16).astype(array.dtype)


def tail_skipped(x):
    x = x.copy()
    x[..., -16:] = 0
    return x


def half_after(x):
    x = x.copy()
    x[1024:] = half(x[1024:])
    return x


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "options", "spoil"),
    [
        ("prefix_sum", {}, lambda a: {"x": tail_skipped(a["x"])}),
        ("prefix_sum", {}, lambda a: {"x": half_after(a["x"])}),
        ("row_sum", {"rows": 4, "cols": 1 << 20}, lambda a: {"x": half(a["x"])}),
        (
            "row_sum",
            {"rows": 4, "cols": 1 << 20},
            lambda a: {"x": np.where(np.arange(1 << 20) < (1 << 20) - 64, a["x"], 0)},
        ),
        ("matmul", {"m": 64, "n": 64, "k": 8192}, lambda a: {"A": half(a["A"]), "B": half(a["B"])}),
        ("matmul", {"m": 64, "n": 64, "k": 8192}, lambda a: {"A": half(a["A"]), "B": a["B"]}),
        (
            "matmul",
            {"m": 64, "n": 64, "k": 8192},
            lambda a: {"A": tail_skipped(a["A"]), "B": a["B"]},
        ),
        ("spmv", {}, lambda a: {**a, "vals": half(a["vals"])}),
        ("conv3x3", {}, lambda a: {**a, "image": half(a["image"])}),
        ("transpose", {}, lambda a: {"x": half(a["x"])}),
    ],
)
def test_whole_numbers_find_skipped_tails_and_half_precision(name, options, spoil, seed):
    problem = made(name, **options)
    arrays = whole(problem, seed)
    (right,), (wrong,) = (
        problem.reference(arrays).values(),
        problem.reference(spoil(arrays)).values(),
    )
    assert not np.array_equal(right, wrong)


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in EXACT for seed in range(2)])
def test_whole_numbers_give_the_same_in_every_order(name, seed):
    """In float32 throughout, from the front, from the back and in the library's order."""
    problem = made(name)
    arrays = whole(problem, seed)
    for spec in problem.tensors:
        if spec.role == "input":
            assert arrays[spec.name].dtype == np.dtype(spec.dtype)
    *_, right = problem.reference(arrays).values()
    if name == "row_sum":
        x = arrays["x"]
        for order in (x, x[:, ::-1]):
            np.testing.assert_array_equal(np.cumsum(order, axis=1)[:, -1], right)
    if name == "prefix_sum":
        got = np.cumsum(arrays["x"])
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, right)
    if name == "matmul":
        np.testing.assert_array_equal(arrays["A"] @ arrays["B"], right)
        assert (arrays["A"] @ arrays["B"]).dtype == np.float32
    assert abs(right).max() < 2**24
    np.testing.assert_array_equal(right.astype(np.float32), right)


@pytest.mark.parametrize("name", EXACT)
def test_a_library_is_exact_on_whole_numbers(name):
    problem = made(name)
    if problem.library is None:
        assert name in FORMATTED
        return
    if find_spec(problem.library.needs) is None:
        pytest.skip(f"needs {problem.library.needs}")
    module, _, function = problem.library.function.partition(":")
    arrays = whole(problem)
    wanted = problem.reference(arrays)
    kinds = {spec.name: spec.dtype for spec in problem.tensors}
    got = {output: np.empty(right.shape, kinds[output]) for output, right in wanted.items()}
    getattr(import_module(module), function)(arrays, got)
    for output, right in wanted.items():
        np.testing.assert_array_equal(got[output], right)


@pytest.mark.cc
@pytest.mark.parametrize("name", EXACT)
def test_the_compiled_definition_is_exact_on_whole_numbers(name, tmp_path):
    small = {"m": 40, "n": 50, "k": 700, "h": 30, "w": 40, "rows": 30, "cols": 500, "nnz": 3000}
    small |= {"batch": 3, "images": 2, "channels": 20, "filters": 8}
    problem = made(name)
    sizes = FORMATTED.get(name)
    if sizes is None:
        sizes = {key: small[key] for key, _ in problem.workloads[0].extents}
    problem = made(name, **sizes)
    arrays, (chosen,) = whole(problem), problem.workloads
    kernel = compile_procedure(problem.definition(chosen), cache=BuildCache(tmp_path))
    got = kernel(arrays, chosen.fixed)
    for output, right in problem.reference(arrays).items():
        np.testing.assert_array_equal(got[output], right)


@pytest.mark.parametrize(
    ("name", "options", "limit"),
    [
        ("matmul", {"m": 2, "n": 2, "k": 1 << 22}, 2**24),
        ("prefix_sum", {"n": 1 << 24}, 2**24),
        ("row_sum", {"rows": 1, "cols": 1 << 24, "dtype": "float64"}, 2**53),
    ],
)
def test_long_sums_of_whole_numbers_stay_within_what_the_dtype_counts_to(name, options, limit):
    problem = made(name, **options)
    arrays = whole(problem)
    (largest,) = problem.reference({key: abs(array) for key, array in arrays.items()}).values()
    assert largest.max() < limit
    for array in arrays.values():
        assert np.count_nonzero(array) > array.size / 16


def test_no_term_can_be_skipped_unseen():
    problem = made("prefix_sum")
    assert np.all(whole(problem)["x"] != 0)


def test_float64_is_told_from_float32_by_whole_numbers():
    problem = made("matmul", m=64, n=64, k=256, dtype="float64")
    arrays = whole(problem)
    cheap = {name: array.astype(np.float32).astype(np.float64) for name, array in arrays.items()}
    assert not np.array_equal(problem.reference(arrays)["C"], problem.reference(cheap)["C"])


@given(st.sampled_from(EXACT), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_whole_numbers_keep_shapes_dtypes_and_indices(name, seed):
    small = {"spmv": {"rows": 5, "cols": 6, "nnz": 9}, **FORMATTED}
    problem = made(name, **small.get(name, {}))
    arrays = drawn(problem, seed)
    got = integer_inputs(problem, arrays, np.random.default_rng(seed))
    assert list(got) == list(arrays)
    for key, array in arrays.items():
        assert (got[key].shape, got[key].dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(got[key], np.rint(got[key]))
        if array.dtype.kind != "f":
            np.testing.assert_array_equal(got[key], array)
    again = integer_inputs(problem, arrays, np.random.default_rng(seed))
    assert all(np.array_equal(got[key], again[key]) for key in got)


def test_only_sums_of_products_have_whole_inputs():
    with pytest.raises(ProblemError, match="gelu: expected a problem that is exact on integers"):
        whole(made("gelu", n=8))
    with pytest.raises(ProblemError, match="gelu: y: expected whole results of whole numbers"):
        whole(replace(made("gelu", n=8), exact_on_integers=True))
    matmul = made("matmul", m=1, n=1, k=1)
    with pytest.raises(ProblemError, match="matmul: expected results below 16777216"):
        whole(replace(matmul, reference=lambda _: {"C": np.full((1, 1), 2.0**24)}))
    assert not made("prefix_sum", dtype="int32").exact_on_integers
    assert {n for n in set(PROBLEMS) - {"recorded_kernel"} if made(n).exact_on_integers} == set(
        EXACT
    )


def normalised(arrays, epsilon):
    x = arrays["x"].astype(np.float64)
    off = x - x.mean(axis=1, keepdims=True)
    scale = np.sqrt((off * off).mean(axis=1, keepdims=True) + epsilon)
    return off / scale * arrays["gamma"] + arrays["beta"]


@pytest.mark.parametrize("rows", [4, 512])
@pytest.mark.parametrize("epsilon", [0, 5e-6, 1.1e-5, 2e-5])
def test_another_epsilon_is_refused(rows, epsilon):
    problem = made("layer_norm", rows=rows)
    for seed in range(3):
        arrays = drawn(problem, seed)
        assert accepted(problem, arrays, normalised(arrays, 1e-5).astype(np.float32))
        assert not accepted(problem, arrays, normalised(arrays, epsilon).astype(np.float32))


def exponentials(x, top):
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        e = np.exp(x - top)
        return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("rows", [5, 256])
def test_a_softmax_without_the_greatest_element_of_all_is_refused(rows):
    problem = made("softmax", rows=rows)
    for seed in range(3):
        arrays = drawn(problem, seed)
        x = arrays["x"]
        assert accepted(problem, arrays, exponentials(x, x.max(axis=1, keepdims=True)))
        with np.errstate(over="ignore"):
            clipped = exponentials(x, np.float32(50))
        for wrong in (
            exponentials(x, np.float32(0)),
            clipped,
            exponentials(x, x.min(axis=1, keepdims=True)),
        ):
            assert wrong.dtype == np.float32
            assert not accepted(problem, arrays, wrong)


def test_the_greatest_element_of_half_a_row_is_not_enough():
    problem = made("softmax")
    x = drawn(problem)["x"]
    for part in (x[:, :16], x[:, :512], x[:, 512:], x[:, 256:768], x[:, :-1], x[:, 1:]):
        wrong = exponentials(x, part.max(axis=1, keepdims=True))
        assert not accepted(problem, drawn(problem), wrong), part.shape


@pytest.mark.parametrize(("rows", "cols"), [(256, 1024), (5, 3), (1, 1), (2, 1 << 20)])
def test_no_exponential_of_softmax_is_subnormal(rows, cols):
    for seed in range(5):
        x = drawn(made("softmax", rows=rows, cols=cols), seed)["x"].astype(np.float64)
        e = np.exp(x - x.max(axis=1, keepdims=True)).astype(np.float32)
        y = e / e.sum(axis=1, keepdims=True)
        for values in (e, y):
            assert np.all((values == 0) | (values >= np.finfo(np.float32).tiny))


def test_a_softmax_that_flushes_to_zero_is_accepted():
    problem = made("softmax")
    arrays = drawn(problem)
    x = arrays["x"]
    e = np.exp(x - x.max(axis=1, keepdims=True))
    tiny = np.finfo(np.float32).tiny
    e[e < tiny] = 0
    y = e / e.sum(axis=1, keepdims=True)
    y[y < tiny] = 0
    assert accepted(problem, arrays, y)


def test_a_gelu_that_is_cut_off_is_refused():
    problem = made("gelu", n=4096)
    arrays = drawn(problem)
    x = arrays["x"]
    erf = np.vectorize(math.erf)
    right = (x.astype(np.float64) * 0.5 * (1 + erf(x / math.sqrt(2)))).astype(np.float32)
    assert accepted(problem, arrays, right)
    sigmoid = x / (1 + np.exp(np.clip(-1.702 * x, -80, 80)))
    for wrong in (
        np.where(abs(x) > 3, np.maximum(x, 0), right),
        np.where(x > 8, 8, right),
        np.where(abs(x) < 1e-2, 0, right),
        sigmoid,
    ):
        assert not accepted(problem, arrays, wrong.astype(np.float32))


def relaxed(state, t):
    state = state.astype(np.float64)
    for _ in range(t):
        state[1:-1] = (state[:-2] + state[1:-1] + state[2:]) / 3
    return state


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "t"), [(1 << 16, 64), (1 << 14, 4096), (1000, 1), (17, 5), (4, 3)])
def test_a_step_too_few_or_too_many_is_refused(n, t, dtype):
    problem = made("jacobi1d", n=n, t=t, dtype=dtype)
    arrays = drawn(problem)
    right = relaxed(arrays["start"], t).astype(dtype)
    assert accepted(problem, arrays, right)
    for steps in (t - 1, t + 1):
        wrong = relaxed(arrays["start"], steps).astype(dtype)
        assert not accepted(problem, arrays, wrong)


def test_no_state_of_the_relaxation_is_subnormal():
    """Arithmetic on subnormal numbers is slow, which would be measured."""
    for n, t in ((1 << 16, 64), (1 << 12, 4096)):
        state = drawn(made("jacobi1d", n=n, t=t))["start"].astype(np.float64)
        for _ in range(t):
            state[1:-1] = (state[:-2] + state[1:-1] + state[2:]) / 3
            assert abs(state).min() > np.finfo(np.float32).tiny
