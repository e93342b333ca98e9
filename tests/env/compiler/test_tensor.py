from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_codegen import compiled, needs_cc
from test_schedule import random_trace

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.pipeline import lower as lower_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.trace import print_trace
from kernelwright.env.compiler.tensor import TensorError


def matmul(m=5, n=6, k=4, dtype="float32"):
    a, b = te.placeholder("A", (m, k), dtype), te.placeholder("B", (k, n), dtype)
    q = te.reduce_axis("k", k)
    return te.compute(
        "C", (m, n), lambda i, j: te.reduce_sum(a[i, q.value] * b[q.value, j], q), [a, b]
    )


def softmax(m=3, n=7):
    x = te.placeholder("x", (m, n))
    k, q = te.reduce_axis("k", n), te.reduce_axis("q", n)
    top = te.compute("top", (m,), lambda i: te.reduce_max(x[i, k.value], k), [x])
    e = te.compute("e", (m, n), lambda i, j: te.exp(x[i, j] - top[i]), [x, top])
    total = te.compute("total", (m,), lambda i: te.reduce_sum(e[i, q.value], q), [e])
    return te.compute("y", (m, n), lambda i, j: e[i, j] / total[i], [e, total])


def blur(m=5, n=6):
    x = te.placeholder("x", (m + 2, n + 2))
    across = te.compute(
        "across", (m + 2, n), lambda i, j: (x[i, j] + x[i, j + 1] + x[i, j + 2]) / 3.0, [x]
    )
    return te.compute(
        "y",
        (m, n),
        lambda i, j: (across[i, j] + across[i + 1, j] + across[i + 2, j]) / 3.0,
        [across],
    )


def row_sum(m=4, n=9):
    x, k = te.placeholder("x", (m, n)), te.reduce_axis("k", n)
    return te.compute("y", (m,), lambda i: te.reduce_sum(x[i, k.value], k), [x])


def transpose(m=4, n=7):
    x = te.placeholder("x", (m, n))
    return te.compute("y", (n, m), lambda i, j: x[j, i], [x])


def numpy_softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def numpy_blur(x):
    across = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3
    return (across[:-2] + across[1:-1] + across[2:]) / 3


KERNELS = {
    "matmul": (matmul, {"A": (5, 4), "B": (4, 6)}, lambda **x: x["A"] @ x["B"]),
    "softmax": (softmax, {"x": (3, 7)}, lambda x: numpy_softmax(x)),
    "blur": (blur, {"x": (7, 8)}, lambda x: numpy_blur(x)),
    "row_sum": (row_sum, {"x": (4, 9)}, lambda x: x.sum(1)),
    "transpose": (transpose, {"x": (4, 7)}, lambda x: x.T),
}


def case(name, seed=0):
    make, shapes, numpy = KERNELS[name]
    rng = np.random.default_rng(seed)
    inputs = {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
    wanted = numpy(**{key: value.astype(np.float64) for key, value in inputs.items()})
    stage = make()
    return te.lower(name, [stage]), inputs, {stage.name: wanted}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("name", KERNELS)
def test_lowered_stages_compute_what_numpy_computes(name):
    procedure, inputs, wanted = case(name)
    got = interpret(procedure, inputs)
    for key, array in wanted.items():
        np.testing.assert_allclose(got[key], array, rtol=2e-5, atol=1e-6)


@needs_cc
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(list(KERNELS)), seed=st.integers(0, 10**6))
def test_any_legal_trace_leaves_interpreter_c_and_numpy_equal(cache, name, seed):
    procedure, inputs, wanted = case(name, seed)
    trace, scheduled = random_trace(procedure, seed)
    interpreted = interpret(scheduled, inputs)
    kernel = compiled(
        lower_procedure(procedure, trace).procedure, cache, ("-O2", "-ffp-contract=off")
    )
    got = kernel(inputs)
    for key, array in wanted.items():
        note = print_trace(trace)
        # exp is the C library's own and may differ from NumPy's by a few units in the last place,
        # in the quotient and in the sum below it; all else is exact.
        exact = (
            np.testing.assert_array_equal
            if name != "softmax"
            else np.testing.assert_array_almost_equal_nulp
        )
        exact(got[key], interpreted[key], *((8,) if name == "softmax" else ()))
        np.testing.assert_allclose(got[key], array, rtol=2e-5, atol=1e-6, err_msg=note)


def test_a_reduction_is_a_start_and_an_update():
    assert print_procedure(te.lower("matmul", [matmul()])) == (
        "def matmul(input A: float32[5, 4], input B: float32[4, 6], output C: float32[5, 6]):\n"
        "  for i_start in 5:\n"
        "    for j_start in 6:\n"
        "      C[i_start, j_start] = float32(0.0)\n"
        "  for i in 5:\n"
        "    for j in 6:\n"
        "      for k in 4:\n"
        "        C[i, j] += A[i, k] * B[k, j]\n"
    )


def test_stages_between_are_temporaries_and_loops_have_names_of_their_own():
    text = print_procedure(te.lower("softmax", [softmax()]))
    assert text.splitlines()[1:4] == [
        "  allocate top: float32[3]",
        "  allocate e: float32[3, 7]",
        "  allocate total: float32[3]",
    ]
    loops = [line.split()[1] for line in text.splitlines() if line.strip().startswith("for ")]
    assert len(set(loops)) == len(loops)
    assert {"i", "e_i", "j", "y_i", "y_j"} <= set(loops)


def test_extents_by_name():
    x, k = te.placeholder("x", ("m", "n")), te.reduce_axis("k", "n")
    y = te.compute("y", ("m",), lambda i: te.reduce_sum(x[i, k.value], k), [x])
    procedure = te.lower("row_sum", [y])
    assert procedure.extents == ("m", "n")
    data = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(interpret(procedure, {"x": data}, {"m": 3, "n": 4})["y"], [4] * 3)


def test_several_outputs_share_their_stages():
    x = te.placeholder("x", (4,))
    half = te.compute("half", (4,), lambda i: x[i] * 0.5, [x])
    up = te.compute("up", (4,), lambda i: half[i] + 1.0, [half])
    down = te.compute("down", (4,), lambda i: 1.0 - half[i], [half])
    got = interpret(te.lower("f", [up, down]), {"x": np.arange(4, dtype=np.float32)})
    np.testing.assert_array_equal(got["up"] + got["down"], [2] * 4)


def test_integers_reductions_and_choices():
    x = te.placeholder("x", (6,), "int32")
    k = te.reduce_axis("k", 6)
    low = te.compute("low", (1,), lambda i: te.reduce_min(x[k.value], k), [x])
    product = te.compute("product", (1,), lambda i: te.reduce_prod(x[k.value], k), [x])
    odd = te.compute("odd", (6,), lambda i: te.select((x[i] % 2 == 1) & (x[i] > 2), x[i], -1), [x])
    data = np.array([3, 1, 4, 1, 5, 9], np.int32)
    got = interpret(te.lower("f", [low, product, odd]), {"x": data})
    assert (got["low"][0], got["product"][0]) == (1, 540)
    assert got["odd"].tolist() == [3, -1, -1, -1, 5, 9]


X = te.placeholder("x", (4,))
N = te.placeholder("n", (4,), "int64")
WRONG = [
    (lambda: te.placeholder("a b", (4,)), "expected a name"),
    (lambda: te.placeholder("x", (0,)), "a size of at least 1"),
    (lambda: te.placeholder("x", (True,)), "a size of at least 1"),
    (lambda: te.placeholder("x", (4,), "float8"), "x: expected one of"),
    (lambda: te.compute("y", (4,), lambda i, j: X[i], [X]), "y: expected 1 indices"),
    (lambda: te.compute("y", (4,), lambda i: 3, [X]), "expected an expression, found 3"),
    (
        lambda: te.lower("f", [te.compute("y", (4,), lambda i: X[i], [])]),
        "y: expected to read nothing, found 'x'",
    ),
    (lambda: te.lower("f", [te.compute("x", (4,), lambda i: X[i], [X])]), "two tensors 'x'"),
    (lambda: te.lower("f", []), "at least one output"),
    (lambda: te.lower("f", [X]), "expected computed outputs"),
    (lambda: te.constant(10**400, "float32"), "a number that float32 holds"),
    (lambda: te.constant(2**40, "int32"), "a number that int32 holds"),
    (lambda: te.constant(float("nan"), "int64"), "a whole number"),
    (lambda: X[te.extent("n"), 0], "x: expected 1 indices, found 2"),
    (lambda: X[X[0]], "expected whole indices, found float32"),
    (lambda: X[0] + N[0], "expected one dtype, found float32 and int64"),
    (lambda: N[0] + 0.5, "a whole number for int64, found 0.5"),
    (lambda: N[0] / N[0], "div: expected floats"),
    (lambda: X[0] // 2, "floordiv: expected whole numbers"),
    (lambda: N[0] // 0, "floordiv: expected a divisor other than 0"),
    (lambda: X[N[0] % 0], "mod: expected a divisor other than 0"),
    (lambda: te.exp(N[0]), "exp: expected a float"),
    (lambda: te.select(X[0], X[0], X[0]), "select: expected a condition"),
    (lambda: X[0] if X[0] < 1.0 else X[1], "found an expression used as a truth value"),
    (lambda: (X[0] < 1.0) + (X[0] < 1.0), "expected numbers, found conditions"),
    (lambda: (X[0] < 1.0) & X[0], "expected conditions"),
    (lambda: te.reduce_sum(X[0], []), "at least one axis"),
    (lambda: te.cast(X[0], "bool"), "a number's dtype"),
    (lambda: X[0] + "a", "an expression or a number"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_definitions_that_make_no_sense_are_refused(make, message):
    with pytest.raises(TensorError, match=message):
        make()


@pytest.mark.parametrize(
    "part", [lambda r: r / 9.0, lambda r: 2.0 * r, lambda r: -r, lambda r: r < 1.0, abs]
)
def test_a_reduction_is_a_stage_of_its_own(part):
    x, k = te.placeholder("x", (4, 9)), te.reduce_axis("k", 9)
    with pytest.raises(TensorError, match="reduce_sum: expected the whole value of a stage"):
        te.compute("y", (4,), lambda i: part(te.reduce_sum(x[i, k.value], k)))
