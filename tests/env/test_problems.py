from __future__ import annotations

import math
import re
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise, product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from toys import CPU_PROBLEMS, FORMATTED

from kernelwright.configs.load import GIVEN
from kernelwright.configs.resolve import options_model, resolve
from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure, lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import Argument, Kernel
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS, find_toolchain
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.definition import normal_inputs, plain_c
from kernelwright.env.problems.program import extent_macros, program
from kernelwright.env.problems.rounding import growth
from kernelwright.env.problems.shapes import Range, shape_of, workload
from kernelwright.env.types import Candidate, Language, TensorSpec, Workload, knob_candidate

# Sizes that no tile divides, small enough for the interpreter, and the smallest that make sense.
CASES = [
    ("batched_matmul", {"batch": 3, "m": 5, "n": 9, "k": 33}),
    ("batched_matmul", {"batch": 3, "m": 5, "n": 9, "k": 33, "dtype": "float64"}),
    ("batched_matmul", {"batch": 1, "m": 1, "n": 1, "k": 1}),
    ("blur", {"h": 5, "w": 7}),
    ("blur", {"h": 1, "w": 1}),
    ("box4", {"h": 5, "w": 7}),
    ("box4", {"h": 1, "w": 1}),
    ("column_sum", {"rows": 65, "cols": 7}),
    ("column_sum", {"rows": 65, "cols": 7, "dtype": "float64"}),
    ("conv2d_nchw", {"images": 2, "channels": 3, "filters": 4, "h": 5, "w": 7}),
    ("conv2d_nchw", {"images": 1, "channels": 1, "filters": 1, "h": 1, "w": 1}),
    ("conv2d_nhwc", {"images": 2, "channels": 3, "filters": 4, "h": 5, "w": 7}),
    ("conv2d_nhwc", {"images": 1, "channels": 1, "filters": 1, "h": 1, "w": 1}),
    ("depthwise", {"channels": 3, "h": 5, "w": 7}),
    ("depthwise", {"channels": 1, "h": 1, "w": 1}),
    ("conv3x3", {"h": 5, "w": 7}),
    ("conv3x3", {"h": 1, "w": 1}),
    ("gauss_seidel", {"h": 7, "w": 11, "t": 3}),
    ("gauss_seidel", {"h": 7, "w": 11, "t": 3, "dtype": "float64"}),
    ("gauss_seidel", {"h": 2, "w": 5, "t": 1}),
    ("gelu", {"n": 300}),
    ("histogram", {"n": 200, "bins": 7}),
    ("histogram", {"n": 1, "bins": 1}),
    ("jacobi1d", {"n": 17, "t": 5}),
    ("jacobi1d", {"n": 17, "t": 5, "dtype": "float64"}),
    ("jacobi1d", {"n": 1, "t": 3}),
    ("jacobi1d", {"n": 2, "t": 1}),
    ("jacobi2d", {"h": 7, "w": 11, "t": 3}),
    ("jacobi2d", {"h": 7, "w": 11, "t": 3, "dtype": "float64"}),
    ("jacobi2d", {"h": 2, "w": 5, "t": 1}),
    ("layer_norm", {"rows": 3, "cols": 50}),
    ("layer_norm", {"rows": 2, "cols": 1}),
    ("matmul", {"m": 5, "n": 9, "k": 33}),
    ("matmul", {"m": 5, "n": 9, "k": 33, "dtype": "float64"}),
    ("matmul", {"m": 1, "n": 1, "k": 1}),
    ("prefix_sum", {"n": 200}),
    ("prefix_sum", {"n": 200, "dtype": "int32"}),
    ("pyramid", {"h": 13, "w": 18}),
    ("pyramid", {"h": 1, "w": 3}),
    ("row_sum", {"rows": 7, "cols": 65}),
    ("row_sum", {"rows": 7, "cols": 65, "dtype": "float64"}),
    ("softmax", {"rows": 3, "cols": 65}),
    ("softmax", {"rows": 2, "cols": 1}),
    ("spmv", {"rows": 19, "cols": 11, "nnz": 60}),
    ("spmv", {"rows": 19, "cols": 11, "nnz": 60, "dtype": "float64"}),
    ("spmv", {"rows": 3, "cols": 4, "nnz": 12}),
    ("spmv", {"rows": 40, "cols": 50, "nnz": 1}),
    ("spmv_formats", {"rows": 19, "cols": 13, "nnz": 60}),
    ("spmv_formats", {"rows": 19, "cols": 13, "nnz": 60, "dtype": "float64", "matrix": "banded"}),
    ("spmv_formats", {"rows": 1, "cols": 1, "nnz": 1}),
    ("spmm", {"rows": 19, "cols": 13, "width": 5, "nnz": 60}),
    ("spmm", {"rows": 19, "cols": 13, "width": 5, "nnz": 60, "dtype": "float64"}),
    ("spmm", {"rows": 16, "cols": 9, "width": 1, "nnz": 30, "matrix": "empty_rows"}),
    ("sddmm", {"rows": 19, "cols": 13, "depth": 7, "nnz": 60}),
    ("sddmm", {"rows": 19, "cols": 13, "depth": 7, "nnz": 60, "dtype": "float64"}),
    ("spadd", {"rows": 19, "cols": 13, "nnz": 60}),
    ("spadd", {"rows": 19, "cols": 13, "nnz": 60, "dtype": "float64", "matrix": "power_law"}),
    ("spadd", {"rows": 3, "cols": 1, "nnz": 3}),
    ("sparse_mul", {"rows": 19, "cols": 13, "nnz": 60}),
    ("sparse_mul", {"rows": 19, "cols": 13, "nnz": 60, "dtype": "float64", "matrix": "block"}),
    ("spgemm", {"rows": 9, "cols": 11, "inner": 10, "nnz": 25}),
    ("spgemm", {"rows": 9, "cols": 11, "inner": 10, "nnz": 25, "dtype": "float64"}),
    ("mttkrp", {"rows": 6, "cols": 5, "depth": 7, "rank": 4, "nnz": 40}),
    ("mttkrp", {"rows": 6, "cols": 5, "depth": 7, "rank": 4, "nnz": 40, "dtype": "float64"}),
    ("ttv", {"rows": 6, "cols": 5, "depth": 7, "nnz": 40}),
    ("ttv", {"rows": 6, "cols": 5, "depth": 7, "nnz": 40, "dtype": "float64"}),
    ("block_scores", {"length": 12, "depth": 5, "block": 3, "per_row": 2}),
    ("block_scores", {"length": 4, "depth": 5, "block": 4, "per_row": 1, "dtype": "float64"}),
    ("moe_matmul", {"tokens": 8, "experts": 3, "depth": 4, "width": 5, "block": 2}),
    (
        "moe_matmul",
        {"tokens": 4, "experts": 1, "depth": 4, "width": 5, "block": 4, "dtype": "float64"},
    ),
    ("paged_scores", {"pages": 4, "memory": 7, "page": 3, "depth": 5}),
    ("paged_scores", {"pages": 3, "memory": 3, "page": 1, "depth": 5, "dtype": "float64"}),
    ("transpose", {"rows": 5, "cols": 9}),
    ("transpose", {"rows": 5, "cols": 9, "dtype": "float64"}),
    ("unsharp", {"h": 5, "w": 7}),
    ("unsharp", {"h": 1, "w": 1}),
]
CPU = CPU_PROBLEMS
# Large enough that zeros, copies and one wrong element are wrong.
SIZED = {name: options for name, options in reversed(CASES) if "dtype" not in options}
SKETCHED = [name for name in CPU if "knobs" in resolve(PROBLEMS, name)().spaces]


def made(name, options):
    return resolve(PROBLEMS, name)(**options)


def drawn(problem, seed=0):
    return problem.inputs(problem.workloads[0], np.random.default_rng(seed))


def limits(problem, arrays):
    """How far each element may be off."""
    if problem.magnitude is None:
        assert problem.error_model.bound == 0
        return {name: np.zeros(wanted.shape) for name, wanted in problem.reference(arrays).items()}
    return {
        name: problem.error_model.bound * size for name, size in problem.magnitude(arrays).items()
    }


def accepted(problem, arrays, got):
    reference, limit = problem.reference(arrays), limits(problem, arrays)
    assert set(got) == set(reference) == set(limit)
    return all(
        got[name].shape == wanted.shape == limit[name].shape
        and bool(np.all(abs(got[name].astype(np.float64) - wanted) <= limit[name]))
        for name, wanted in reference.items()
    )


def outputs(problem, extents):
    return {
        spec.name: np.empty(shape_of(spec, extents), spec.dtype)
        for spec in problem.tensors
        if spec.role == "output"
    }


def rounded(problem, arrays):
    """The reference in the dtypes of the outputs: what a faultless kernel could return at best."""
    kinds = {spec.name: spec.dtype for spec in problem.tensors}
    return {name: out.astype(kinds[name]) for name, out in problem.reference(arrays).items()}


def compiled_c(problem, text, workload, cache):
    extents = workload.fixed
    arguments = tuple(
        Argument(spec.name, shape_of(spec, extents), spec.dtype, spec.role == "input")
        for spec in problem.tensors
    )
    flags = (*DEFAULT_FLAGS, "-Wall", "-Wextra", "-Wno-unused-parameter")
    build = cache.build(text, find_toolchain(), flags)
    assert build.log == ""
    return Kernel(build.library, problem.name, arguments, tuple(extents))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("builds"))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_interpreted_definition_is_within_the_error_model(name, options):
    problem = made(name, options)
    arrays, extents = drawn(problem), problem.workloads[0].fixed
    procedure = verify(problem.definition(problem.workloads[0]))
    assert procedure.name == problem.name
    assert procedure.extents == tuple(extents)
    assert [t.name for t in procedure.tensors] == [t.name for t in problem.tensors]
    assert accepted(problem, arrays, interpret(procedure, arrays, extents))


@pytest.mark.cc
@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_compiled_definition_is_within_the_error_model(name, options, cache):
    problem = made(name, options)
    arrays = drawn(problem)
    kernel = compile_procedure(problem.definition(problem.workloads[0]), cache=cache)
    assert accepted(problem, arrays, kernel(arrays, problem.workloads[0].fixed))


@pytest.mark.cc
@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_plain_c_is_within_the_error_model(name, options, cache):
    problem = made(name, options)
    arrays, (chosen,) = drawn(problem), problem.workloads
    kernel = compiled_c(problem, problem.plain_c, chosen, cache)
    assert accepted(problem, arrays, kernel(arrays, chosen.fixed))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_library_is_within_the_error_model(name, options):
    problem = made(name, options)
    if problem.library is None:
        without = ("sddmm", "mttkrp", "ttv", "block_scores", "paged_scores")
        assert name in ("jacobi1d", "jacobi2d", "gauss_seidel", *without)
        return
    if find_spec(problem.library.needs) is None:
        pytest.skip(f"needs {problem.library.needs}")
    module, _, function = problem.library.function.partition(":")
    arrays, got = drawn(problem), outputs(problem, problem.workloads[0].fixed)
    before = {key: array.copy() for key, array in arrays.items()}
    getattr(import_module(module), function)(arrays, got)
    assert accepted(problem, arrays, got)
    for key, array in before.items():
        np.testing.assert_array_equal(arrays[key], array)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_reference_is_finite_and_more_exact_than_the_outputs(name, options):
    problem = made(name, options)
    arrays = drawn(problem)
    for spec in problem.tensors:
        extents = problem.workloads[0].fixed
        if spec.role == "input":
            assert (arrays[spec.name].shape, arrays[spec.name].dtype) == (
                shape_of(spec, extents),
                np.dtype(spec.dtype),
            )
        else:
            wanted = problem.reference(arrays)[spec.name]
            assert wanted.shape == shape_of(spec, extents)
            assert np.isfinite(wanted).all()
            if problem.error_model.bound > 0:
                assert wanted.dtype == np.float64
    assert accepted(problem, arrays, rounded(problem, arrays))


@pytest.mark.parametrize("name", CPU)
def test_one_element_off_by_fifty_times_its_limit_is_refused(name):
    problem = made(name, SIZED[name])
    arrays = drawn(problem)
    right, limit = rounded(problem, arrays), limits(problem, arrays)
    for output, values in right.items():
        for place in (0, values.size // 2, values.size - 1):
            wrong = {**right, output: values.copy()}
            off = 50 * limit[output].flat[place] or 1
            wrong[output].flat[place] += np.asarray(off).astype(values.dtype)
            assert not accepted(problem, arrays, wrong), (output, place)
            wrong[output].flat[place] = np.nan if values.dtype.kind == "f" else -1
            assert not accepted(problem, arrays, wrong)


@pytest.mark.parametrize("name", CPU)
def test_zeros_and_a_copy_of_an_input_are_refused(name):
    problem = made(name, SIZED[name])
    arrays = drawn(problem)
    right = rounded(problem, arrays)
    assert not accepted(problem, arrays, {k: np.zeros_like(v) for k, v in right.items()})
    for source in arrays.values():
        copies = {k: np.resize(source, v.shape).astype(v.dtype) for k, v in right.items()}
        assert not accepted(problem, arrays, copies)


def in_half_precision(problem, arrays):
    return {
        k: a.astype(np.float16).astype(a.dtype) if a.dtype.kind == "f" else a
        for k, a in arrays.items()
    }


@pytest.mark.parametrize("name", [n for n in CPU if n not in ("histogram",)])
def test_inputs_rounded_to_half_precision_are_refused_at_the_default_size(name):
    problem = resolve(PROBLEMS, name)()
    arrays = drawn(problem)
    cheap = problem.reference(in_half_precision(problem, arrays))
    assert not accepted(problem, arrays, cheap)


@pytest.mark.parametrize("name", CPU)
def test_inputs_depend_on_the_seed_alone(name):
    problem = made(name, SIZED[name])
    first, again, other = drawn(problem, 1), drawn(problem, 1), drawn(problem, 2)
    for key in first:
        np.testing.assert_array_equal(first[key], again[key])
    assert any(not np.array_equal(first[key], other[key]) for key in first)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_counts_are_positive_whole_numbers(name, options):
    problem = made(name, options)
    (chosen,) = problem.workloads
    assert isinstance(problem.flops(chosen), int)
    assert problem.flops(chosen) > 0
    arrays = drawn(problem)
    moved = [*arrays.values(), *outputs(problem, chosen.fixed).values()]
    total = sum(array.nbytes for array in moved)
    if name in FORMATTED:
        # Of the copies of an operand, one is read.
        assert 0 < problem.moved_bytes(chosen) <= total
    else:
        assert problem.moved_bytes(chosen) == total


def test_operations_are_counted_as_known():
    def flops(name, **options):
        problem = made(name, options)
        return problem.flops(problem.workloads[0])

    assert flops("matmul", m=2, n=3, k=5) == 60
    assert flops("conv3x3", h=4, w=5) == 9 * 2 * 20
    assert flops("spmv", rows=4, cols=5, nnz=7) == 14
    assert flops("blur", h=4, w=5) == 3 * (30 + 20)
    assert flops("jacobi1d", n=12, t=3) == 3 * 3 * 10
    assert flops("batched_matmul", batch=7, m=2, n=3, k=5) == 7 * 60
    assert flops("conv2d_nchw", images=2, channels=3, filters=5, h=4, w=5) == 18 * 20 * 30
    assert flops("conv2d_nhwc", images=2, channels=3, filters=5, h=4, w=5) == 18 * 20 * 30
    assert flops("depthwise", channels=3, h=4, w=5) == 18 * 20 * 3
    assert flops("box4", h=4, w=5) == 9 * (10 * 11 + 8 * 9 + 6 * 7 + 20)
    assert flops("unsharp", h=4, w=5) == 7 * (40 + 20) + 3 * 20
    assert flops("spmv_formats", rows=4, cols=5, nnz=7) == 14
    assert flops("spmm", rows=4, cols=5, width=3, nnz=7) == 42
    assert flops("sddmm", rows=4, cols=5, depth=3, nnz=7) == 49
    assert flops("spadd", rows=4, cols=5, nnz=8) == 8
    assert flops("sparse_mul", rows=4, cols=5, nnz=8) == 2
    assert flops("spgemm", rows=3, cols=4, inner=5, nnz=1, matrix="banded") <= 2
    assert flops("mttkrp", rows=3, cols=4, depth=5, rank=2, nnz=7) == 42
    assert flops("ttv", rows=3, cols=4, depth=5, nnz=7) == 14
    assert flops("block_scores", length=8, depth=3, block=2, per_row=2) == 7 * 4 * 7
    assert flops("moe_matmul", tokens=4, experts=3, depth=5, width=2, block=2) == 80
    assert flops("paged_scores", pages=3, memory=4, page=2, depth=5) == 66
    assert flops("jacobi2d", h=6, w=5, t=3) == flops("gauss_seidel", h=6, w=5, t=3) == 5 * 3 * 12


@pytest.mark.cc
@pytest.mark.parametrize("name", sorted(set(CPU) - set(FORMATTED)))
def test_ranges_of_extents_are_accepted(name, cache):
    # Some problems have an extent that no array shows; it stays a number.
    steps = {"t": 4}
    fixed = {
        "histogram": {"bins": 5},
        "jacobi1d": steps,
        "jacobi2d": steps,
        "gauss_seidel": steps,
    }.get(name, {})
    ranged = set(SIZED[name]) - set(fixed)
    # Few of what multiplies: the interpreter takes an element at a time.
    largest = {"nnz": 20, "batch": 3, "images": 3, "channels": 4, "filters": 4}
    if "images" in ranged:
        largest |= {"h": 7, "w": 7}
    options = {
        key: Range(low=min(6, largest.get(key, 6) - 1), high=largest.get(key, 40)) for key in ranged
    }
    problem = made(name, {**options, **fixed})
    with pytest.raises(ValueError, match="expected a number, found the range"):
        problem.definition(problem.workloads[0])
    with pytest.raises(CompilerError, match=f"{name}: extent .*expected a number"):
        program(problem, Candidate(Language.SCHEDULE, ()), problem.workloads[0])
    rng = np.random.default_rng(0)
    for _ in range(3):
        extents = {
            key: value if isinstance(value, int) else int(rng.integers(value.low, value.high + 1))
            for key, value in problem.workloads[0].extents
        }
        shape = Workload(tuple(extents.items()))
        arrays = problem.inputs(shape, rng)
        kernel = compiled_c(problem, problem.plain_c, shape, cache)
        assert accepted(problem, arrays, kernel(arrays, extents))
        assert problem.flops(shape) > 0
        assert interpret(problem.definition(shape), arrays, extents).keys() == set(
            problem.reference(arrays)
        )


@pytest.mark.parametrize("name", sorted(set(CPU) - set(FORMATTED)))
def test_every_extent_and_dtype_is_an_option_of_a_campaign(name):
    model = options_model(resolve(PROBLEMS, name), GIVEN["problem"])
    problem = made(name, SIZED[name])
    extents = [key for key, _ in problem.workloads[0].extents]
    assert [key for key in model.model_fields if key != "dtype"] == extents
    text = yaml.safe_dump({extents[0]: {"low": 8, "high": 9}})
    checked = model.model_validate_json(str(yaml.safe_load(text)).replace("'", '"'))
    assert getattr(checked, extents[0]) == Range(low=8, high=9)


@pytest.mark.parametrize(
    ("given_m", "said"),
    [
        (0, "greater than or equal to 1"),
        (1 << 40, "less than or equal to"),
        ("512", "valid integer"),
        ({"low": 9, "high": 8}, "at least low = 9"),
        ({"low": 9}, "Field required"),
        ({"low": 1, "high": 2, "step": 1}, "Extra inputs"),
        ({"low": 0, "high": 2}, "greater than or equal to 1"),
    ],
)
def test_what_is_no_extent_is_refused(given_m, said):
    model = options_model(resolve(PROBLEMS, "matmul"), GIVEN["problem"])
    with pytest.raises(ValueError, match=said) as refused:
        model.model_validate({"m": given_m})
    assert refused.value.error_count() == 1


def test_shapes_are_sums_differences_and_products_of_extents():
    extents = {"h": 4, "w": 5}

    def shape(*entries):
        return shape_of(TensorSpec("t", entries, "float32", "input"), extents)

    assert shape("h + 2", "2 * w - h", 3, "h") == (6, 6, 3, 4)
    assert shape() == ()
    for wrong in ("h / 2", "q", "h ** w", "h.real", "__import__('os')", "h +", "-h", "", "True"):
        with pytest.raises(ValueError, match=r"tensor t: expected a sum.*extents h, w"):
            shape(wrong)
    with pytest.raises(ValueError, match="expected a size of at least 0"):
        shape("h - w")


@given(st.integers(1, 1 << 28))
def test_growth_is_the_smaller_of_the_two_bounds(n):
    # A hundredth above the first order, for what that leaves out.
    assert growth(float(n)) == pytest.approx(1.01 * min(n, 4 * math.sqrt(n)))
    assert growth(float(n + 1)) > growth(float(n))


def test_an_approximate_gelu_is_refused():
    problem = made("gelu", {"n": 1000})
    arrays = drawn(problem)
    x = arrays["x"].astype(np.float64)
    tanh = x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert not accepted(problem, arrays, {"y": tanh.astype(np.float32)})


def test_other_ways_to_compute_the_same_are_accepted():
    """Blocked and online algorithms that a search may well find, in float32 throughout."""
    problem = made("layer_norm", {"rows": 16, "cols": 512})
    arrays = drawn(problem)
    x = arrays["x"]
    mean = x.mean(axis=1, keepdims=True)
    variance = np.square(x).mean(axis=1, keepdims=True) - np.square(mean)
    scale = arrays["gamma"] / np.sqrt(variance + np.float32(1e-5))
    y = x * scale + (arrays["beta"] - mean * scale)
    assert y.dtype == np.float32
    assert accepted(problem, arrays, {"y": y})

    problem = made("softmax", {"rows": 16, "cols": 512})
    arrays = drawn(problem)
    x = arrays["x"]
    top = np.full((16, 1), -np.inf, np.float32)
    total = np.zeros((16, 1), np.float32)
    for j in range(512):
        higher = np.maximum(top, x[:, j : j + 1])
        total = total * np.exp(top - higher) + np.exp(x[:, j : j + 1] - higher)
        top = higher
    assert total.dtype == np.float32
    assert accepted(problem, arrays, {"y": np.exp(x - top) * (1 / total)})

    problem = made("matmul", {"m": 32, "n": 32, "k": 2048})
    arrays = drawn(problem)
    sequential = np.zeros((32, 32), np.float32)
    for p in range(2048):
        sequential += np.outer(arrays["A"][:, p], arrays["B"][p])
    assert accepted(problem, arrays, {"C": sequential})

    problem = made("blur", {"h": 40, "w": 40})
    arrays = drawn(problem)
    i = arrays["image"]
    nine = sum(i[dy : dy + 40, dx : dx + 40] for dy, dx in product(range(3), repeat=2))
    assert accepted(problem, arrays, {"out": nine * np.float32(1 / 9)})

    problem = made("jacobi1d", {"n": 500, "t": 3000})
    arrays = drawn(problem)
    state = arrays["start"].copy()
    for _ in range(3000):
        state[1:-1] = (state[:-2] + state[1:-1] + state[2:]) * np.float32(1 / 3)
    assert state.dtype == np.float32
    assert accepted(problem, arrays, {"now": state})


def test_whole_prefix_sums_never_leave_int32():
    problem = made("prefix_sum", {"n": 1 << 20, "dtype": "int32"})
    x = drawn(problem)["x"]
    assert int(abs(x).astype(np.int64).sum()) < 2**31
    assert len(np.unique(x)) > 100


def test_sparse_matrices_are_in_canonical_form_with_empty_rows():
    problem = made("spmv", {"rows": 200, "cols": 90, "nnz": 2000})
    arrays = drawn(problem)
    pos, crd = arrays["pos"], arrays["crd"]
    lengths = np.diff(pos)
    assert (pos[0], pos[-1], lengths.min()) == (0, 2000, 0)
    assert 0.05 < np.mean(lengths == 0) < 0.4
    for first, last in pairwise(pos):
        row = crd[first:last]
        assert np.all(np.diff(row) > 0)
        assert np.all((row >= 0) & (row < 90))
    huge = drawn(made("spmv", {"rows": 1 << 16, "cols": 1 << 16, "nnz": 1000}))
    assert huge["pos"][-1] == 1000
    with pytest.raises(ValueError, match="nnz: expected at most rows x cols = 6, found 7"):
        made("spmv", {"rows": 2, "cols": 3, "nnz": 7})


def test_nonzeros_must_fit_whatever_shape_is_drawn():
    two_to_nine = Range(low=2, high=9)
    for options, said in (
        ({"rows": two_to_nine, "cols": 4, "nnz": Range(low=1, high=9)}, "= 8, found 9"),
        ({"rows": two_to_nine, "cols": two_to_nine, "nnz": 5}, "= 4, found 5"),
        ({"rows": 3, "cols": two_to_nine, "nnz": 7}, "= 6, found 7"),
    ):
        with pytest.raises(ValueError, match=f"nnz: expected at most the least rows x cols {said}"):
            made("spmv", options)
    with pytest.raises(ValueError, match="nnz: expected at most rows x cols = 6, found 7"):
        made("spmv", {"rows": 2, "cols": 3, "nnz": Range(low=1, high=7)})
    problem = made("spmv", {"rows": two_to_nine, "cols": 4, "nnz": Range(low=1, high=8)})
    smallest = Workload((("rows", 2), ("cols", 4), ("nnz", 8)))
    assert problem.inputs(smallest, np.random.default_rng(0))["crd"].size == 8


def test_inputs_and_c_of_a_dtype_that_c_does_not_have_are_refused():
    with pytest.raises(ValueError, match="x: expected float32 or float64, found float16"):
        normal_inputs((TensorSpec("x", ("n",), "float16", "input"),))
    with pytest.raises(ValueError, match=r"matmul: expected one of bool, .*, found complex64"):
        plain_c("matmul", "complex64")


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_sparse_matrices_of_any_density_have_distinct_columns(rows, cols, data):
    nnz = data.draw(st.integers(1, rows * cols))
    problem = made("spmv", {"rows": rows, "cols": cols, "nnz": nnz})
    arrays = drawn(problem, data.draw(st.integers(0, 99)))
    row = np.repeat(np.arange(rows), np.diff(arrays["pos"]))
    assert len(set(zip(row.tolist(), arrays["crd"].tolist(), strict=True))) == nnz
    dense = np.zeros((rows, cols))
    dense[row, arrays["crd"]] = arrays["vals"]
    np.testing.assert_allclose(
        problem.reference(arrays)["y"], dense @ arrays["x"].astype(np.float64), atol=1e-12
    )


def test_what_no_array_shows_must_agree():
    for name, key in (("histogram", "bins"), ("jacobi1d", "t")):
        problem = made(name, SIZED[name])
        other = Workload(tuple((k, v + (k == key)) for k, v in problem.workloads[0].extents))
        with pytest.raises(ValueError, match=f"{name}: expected {SIZED[name][key]} "):
            problem.inputs(other, np.random.default_rng(0))


def combinations(problem):
    names = [knob.name for knob in problem.knobs]
    for values in product(*(knob.values for knob in problem.knobs)):
        yield dict(zip(names, values, strict=True))


def sample(problem, count):
    """The plain configuration, the last one, and some between them."""
    everything = list(combinations(problem))
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(everything), min(count, len(everything)), replace=False)
    return [dict(problem.unscheduled), everything[-1], *(everything[i] for i in chosen)]


@pytest.mark.parametrize("name", SKETCHED)
def test_sampled_knobs_are_legal_at_the_default_size(name):
    problem = resolve(PROBLEMS, name)()
    assert set(dict(problem.unscheduled)) == {knob.name for knob in problem.knobs}
    for knobs in sample(problem, 6):
        found = program(problem, knob_candidate(knobs), problem.workloads[0])
        assert found.entry == name
        assert found.trace == problem.sketch(knobs)


@pytest.mark.cc
@pytest.mark.parametrize("name", SKETCHED)
def test_sketches_compute_the_problem_where_no_tile_divides(name, cache):
    problem = made(name, SIZED[name])
    arrays, (chosen,) = drawn(problem), problem.workloads
    procedure = problem.definition(chosen)
    for knobs in sample(problem, 4):
        kernel = compile_procedure(procedure, problem.sketch(knobs), cache=cache, flags=("-O1",))
        assert accepted(problem, arrays, kernel(arrays, chosen.fixed)), knobs


@pytest.mark.cc
@pytest.mark.parametrize("name", SKETCHED)
def test_sketches_compute_the_problem_where_tiles_divide(name, cache):
    sizes = {"m": 48, "n": 192, "k": 128, "rows": 128, "cols": 256, "h": 16, "w": 64}
    problem = made(name, {key: sizes[key] for key in SIZED[name]})
    arrays, (chosen,) = drawn(problem), problem.workloads
    procedure = problem.definition(chosen)
    for knobs in sample(problem, 3):
        kernel = compile_procedure(procedure, problem.sketch(knobs), cache=cache, flags=("-O1",))
        assert accepted(problem, arrays, kernel(arrays, chosen.fixed)), knobs


@pytest.mark.cc
def test_plain_c_sees_fixed_extents_as_macros(cache):
    problem = made("row_sum", {"rows": 3, "cols": 4})
    text = problem.plain_c.replace("j < cols", "j < KW_COLS")
    with_macros = "\n".join([*extent_macros(problem.workloads[0]), text])
    kernel = compiled_c(problem, with_macros, problem.workloads[0], cache)
    arrays = drawn(problem)
    assert accepted(problem, arrays, kernel(arrays, problem.workloads[0].fixed))


def test_no_problem_leaves_a_placeholder_in_its_c():
    for name in CPU:
        for options in [o for n, o in CASES if n == name]:
            assert "TYPE" not in made(name, options).plain_c


def test_a_workload_keeps_the_order_of_its_extents():
    chosen = workload(rows=3, cols=Range(low=1, high=2), nnz=1)
    assert chosen.label == "3x1..2x1"
    assert made("spmv", {}).workloads[0].label == "16384x16384x262144"


def test_a_version_is_part_of_every_identity():
    for name in set(PROBLEMS) - {"recorded_kernel"}:  # which has the name of its file's kernel
        problem = resolve(PROBLEMS, name)()
        assert problem.identity == f"{name}@1"
        assert replace(problem, version=2).identity == f"{name}@2"


def test_definitions_lower_to_c_at_the_default_size():
    for name in CPU:
        problem = resolve(PROBLEMS, name)()
        assert f"void {name}(" in lower(problem.definition(problem.workloads[0])).source


def documented_blocks():
    page = (Path(__file__).parents[2] / "docs" / "problems.md").read_text()
    return page, re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


@pytest.mark.cc
def test_the_documented_file_makes_a_problem_for_a_campaign(tmp_path, cache):
    (tmp_path / "my_problem.py").write_text(documented_blocks()[1][0])
    factory = resolve(PROBLEMS, "my_problem.py:make", tmp_path)
    model = options_model(factory, GIVEN["problem"])
    problem = factory(n=model.model_validate({"n": 100}).n)
    arrays, (chosen,) = drawn(problem), problem.workloads
    for got in (
        interpret(problem.definition(chosen), arrays, chosen.fixed),
        compiled_c(problem, problem.plain_c, chosen, cache)(arrays, chosen.fixed),
    ):
        assert accepted(problem, arrays, got)
    assert not accepted(problem, arrays, {"out": arrays["a"]})


def test_the_page_has_a_row_for_every_problem_with_its_options_knobs_and_dtypes():
    page, _ = documented_blocks()
    for name in CPU:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` | ")][:1]
        model = options_model(resolve(PROBLEMS, name), GIVEN["problem"])
        knobs = [knob.name for knob in resolve(PROBLEMS, name)().knobs]
        for word in (*model.model_fields, *knobs):
            assert f"`{word}`" in row, (name, word)
        if "dtype" in model.model_fields:
            for dtype in get_args(model.model_fields["dtype"].annotation):
                assert f"`{dtype}`" in row, (name, dtype)
