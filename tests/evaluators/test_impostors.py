"""Outputs that need no computing are refused by every problem, or the problem is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelwright.env.types import ErrorModel
from kernelwright.evaluators.corpus.draws import draws, instances
from kernelwright.evaluators.corpus.impostors import impostors, passing_impostors
from kernelwright.evaluators.corpus.specimen import named

SHAPES = (
    "batched_matmul batch=3 m=10 n=12 k=14",
    "blur h=9 w=14",
    "box4 h=9 w=14",
    "column_sum rows=21 cols=13",
    "conv2d_nchw images=2 channels=3 filters=4 h=5 w=6",
    "conv2d_nhwc images=2 channels=3 filters=4 h=5 w=6",
    "depthwise channels=3 h=5 w=6",
    "gauss_seidel h=9 w=14 t=3",
    "jacobi2d h=9 w=14 t=3",
    "pyramid h=14 w=18",
    "unsharp h=9 w=14",
    "conv3x3 h=9 w=14",
    "gelu n=200",
    "histogram n=300 bins=20",
    "jacobi1d n=120 t=6",
    "layer_norm rows=12 cols=20",
    "matmul m=10 n=12 k=14",
    "matmul m=6 n=6 k=6 dtype=float64",
    "prefix_sum n=90",
    "prefix_sum n=90 dtype=int32",
    "row_sum rows=13 cols=21",
    "softmax rows=15 cols=20",
    "spmv rows=20 cols=15 nnz=70",
    "transpose rows=14 cols=9",
)


def made(text):
    return named(text).make()


def drawn(problem, count=3, seed=0):
    rng = np.random.default_rng(seed)
    return [problem.inputs(problem.workloads[0], rng) for _ in range(count)]


def passing(problem, given):
    shapes = {name: array.shape for name, array in problem.reference(given[0]).items()}
    return passing_impostors(problem, given, shapes)


@pytest.mark.parametrize("text", SHAPES)
def test_no_impostor_passes_on_a_problem_of_the_catalogue(text):
    problem = made(text)
    assert passing(problem, drawn(problem)) == ()
    rng = np.random.default_rng(1)
    (workload,) = instances(problem, rng)
    stressed = [draw.arrays for draw in draws(problem, workload, rng)]
    assert passing(problem, stressed) == ()


@pytest.mark.parametrize("text", SHAPES)
def test_impostors_have_the_declared_shapes_and_dtypes(text):
    problem = made(text)
    first, second = drawn(problem, 2)
    reference, previous = problem.reference(first), problem.reference(second)
    (name,) = reference
    found = impostors(problem, first, reference, previous)
    inputs = {f"input {key}" for key in first}
    assert {"zeros", "ones", "mean", "previous output", "shifted by one", *inputs} <= set(found)
    dtypes = {spec.name: spec.dtype for spec in problem.tensors}
    for outputs in found.values():
        assert outputs[name].shape == reference[name].shape
        assert outputs[name].dtype == dtypes[name]


def test_means_are_taken_of_all_and_along_each_axis():
    problem = made("transpose rows=3 cols=2")
    x = np.array([[1, 2], [3, 4], [5, 9]], np.float32)
    found = impostors(problem, {"x": x}, {"y": x.T})
    np.testing.assert_array_equal(found["mean"]["y"], np.full((2, 3), 4))
    np.testing.assert_array_equal(found["mean along axis 0"]["y"], [[1.5, 3.5, 7]] * 2)
    np.testing.assert_array_equal(found["mean along axis 1"]["y"], [[3] * 3, [5] * 3])


def test_unfinished_work_is_an_impostor():
    problem = made("prefix_sum n=300")
    (arrays,) = drawn(problem, 1)
    reference = problem.reference(arrays)
    found = impostors(problem, arrays, reference)["last elements zero"]["y"]
    assert (found[-3:] == 0).all()
    assert (found[:-3] != 0).all()


def test_a_copy_is_truncated_or_repeated():
    problem = made("conv3x3 h=2 w=3")
    (arrays,) = drawn(problem, 1)
    found = impostors(problem, arrays, problem.reference(arrays))
    image, weights = arrays["image"].ravel(), arrays["weights"].ravel()
    np.testing.assert_array_equal(found["input image"]["out"].ravel(), image[:6])
    np.testing.assert_array_equal(found["input weights"]["out"].ravel(), weights[:6])
    wide = made("row_sum rows=4 cols=1")
    x = np.array([[1], [2], [3], [4]], np.float32)
    given = impostors(wide, {"x": x[:3]}, {"y": np.zeros(4)})["input x"]["y"]
    np.testing.assert_array_equal(given, [1, 2, 3, 1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("transpose rows=1 cols=9", {"input x"}),
        ("softmax rows=4 cols=1", {"ones", "previous output"}),
        ("histogram n=9 bins=1", {"previous output"}),
        ("jacobi1d n=2 t=3", {"input start"}),
        ("prefix_sum n=1", {"input x"}),
    ],
)
def test_a_problem_without_work_is_found_out(text, expected):
    problem = made(text)
    assert set(passing(problem, drawn(problem, 4))) == expected


def test_what_equals_the_answer_is_no_impostor():
    problem = made("row_sum rows=1 cols=7")
    (arrays,) = drawn(problem, 1)
    found = impostors(problem, arrays, problem.reference(arrays))
    assert not {"mean", "shifted by one", "previous output"} & set(found)
    assert passing(problem, drawn(problem)) == ()


def test_a_loose_error_model_lets_impostors_pass():
    """Zeros under a tolerance of the size of the result: what a refusal is for."""
    problem = made("row_sum rows=40 cols=50")
    loose = replace(problem, error_model=ErrorModel(0.9, "far too much"))
    assert {"zeros", "mean", "previous output"} <= set(passing(loose, drawn(problem)))
    in_norm = replace(problem, error_model=ErrorModel(0.2, "in the norm"), magnitude=None)
    assert "last elements zero" in passing(in_norm, drawn(problem))
    assert "zeros" not in passing(in_norm, drawn(problem))


def test_an_impostor_must_pass_on_every_draw():
    problem = made("row_sum rows=4 cols=6")
    none, some = {"x": np.zeros((4, 6), np.float32)}, drawn(problem, 1)[0]
    assert "zeros" in passing(problem, [none])
    assert "zeros" not in passing(problem, [none, some])
    assert "zeros" not in passing(problem, [some, none])


def test_the_previous_output_needs_a_draw_before():
    problem = made("histogram n=6 bins=1")
    assert passing(problem, drawn(problem, 1)) == ()
    assert "previous output" in passing(problem, drawn(problem, 2))
