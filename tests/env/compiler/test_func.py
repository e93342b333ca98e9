"""Functions over unbounded space against NumPy, by the interpreter and as compiled C."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_codegen import compiled, needs_cc
from test_schedule import random_trace

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.evaluate import whole_value
from kernelwright.env.compiler.ir.interpret import InterpretError, interpret
from kernelwright.env.compiler.ir.nodes import loops
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.pipeline import lower as lower_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.trace import print_trace
from kernelwright.env.compiler.tensor import TensorError

X, Y = te.Var("x"), te.Var("y")
FLAGS = ("-O2", "-ffp-contract=off")
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def both(cache, outputs, inputs, **extents):
    """The outputs, which the interpreter and compiled C agree on."""
    procedure = te.lower("pipeline", outputs)
    wanted = interpret(procedure, inputs, extents or None)
    got = compiled(procedure, cache, FLAGS)(inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array)
    return wanted


def histogram(levels=256):
    image, r = te.placeholder("image", (6, 5), "uint8"), te.RDom("r", (0, 6), (0, 5))
    out = te.Func("out", "int32")
    out[X] = 0
    out[image[r.x, r.y]] += 1
    return out.realize(levels)


@needs_cc
def test_scatter_adds_where_a_loaded_index_says(cache):
    image = RNG.integers(0, 256, (6, 5)).astype(np.uint8)
    got = both(cache, [histogram()], {"image": image})
    np.testing.assert_array_equal(got["out"], np.bincount(image.ravel(), minlength=256))


@needs_cc
def test_a_scan_reads_what_it_wrote_before(cache):
    x, r = te.placeholder("a", (9,)), te.RDom("r", (1, 8))
    s = te.Func("s")
    s[X] = te.select(X == 0, x[0], 0.0)
    s[r] = s[r - 1] + x[r]
    data = RNG.standard_normal(9).astype(np.float32)
    got = both(cache, [s.realize(9)], {"a": data})["s"]
    np.testing.assert_array_equal(got, np.cumsum(data, dtype=np.float32))


def gauss_seidel(grid):
    out = grid.copy()
    for i in range(1, grid.shape[0] - 1):
        for j in range(1, grid.shape[1] - 1):
            near = (out[i - 1, j] + out[i, j - 1]) + out[i + 1, j] + out[i, j + 1]
            out[i, j] = near * np.float32(0.25)
    return out


@needs_cc
def test_an_update_in_place_sees_its_own_new_values(cache):
    a, r = te.placeholder("a", (6, 7)), te.RDom("r", (1, 4), (1, 5))
    f = te.Func("f")
    f[X, Y] = te.repeat_edge(a, "edges")[X, Y]
    i, j = r
    f[i, j] = (f[i - 1, j] + f[i, j - 1] + f[i + 1, j] + f[i, j + 1]) * 0.25
    data = RNG.random((6, 7), np.float32)
    got = both(cache, [f.realize(6, 7)], {"a": data})["f"]
    np.testing.assert_array_equal(got, gauss_seidel(data))


@needs_cc
def test_domains_run_in_lexicographic_order_the_first_dimension_outermost(cache):
    r = te.RDom("r", (2, 3), (5, 4))
    f = te.Func("f", "int64")
    f[X] = 0
    # Horner's rule: another order would give another number.
    f[X] = f[X] * 7 + r.x * 10 + r.y
    wanted = 0
    for i in range(2, 5):
        for j in range(5, 9):
            wanted = wanted * 7 + i * 10 + j
    np.testing.assert_array_equal(both(cache, [f.realize(2)], {})["f"], [wanted] * 2)


@needs_cc
def test_a_domain_may_leave_points_out(cache):
    a = te.placeholder("a", (5, 5))
    r = te.RDom("r", (0, 5), (0, 5))
    r = r.where(r.x <= r.y).where(~(r.x == 1))
    f, total = te.Func("f"), te.Func("total")
    f[X] = te.reduce_sum(a[r.x, r.y], r)
    total[X] = a[0, 0] * 0.0
    total[r.x] += a[r.x, r.y]
    data = RNG.random((5, 5), np.float32)
    got = both(cache, [f.realize(1), total.realize(5)], {"a": data})
    keep = np.triu(data)
    keep[1] = 0
    np.testing.assert_allclose(got["f"], [keep.sum()], rtol=1e-6)
    np.testing.assert_allclose(got["total"], keep.sum(1), rtol=1e-6)


@needs_cc
def test_updates_run_in_order_and_only_where_they_are_needed(cache):
    a, r = te.placeholder("a", (4, 8)), te.RDom("r", (1, 7))
    f = te.Func("f")
    f[X, Y] = te.repeat_edge(a, "edges")[X, Y]
    f[X, r] += f[X, r - 1]
    f[X, Y] *= 2.0
    f[X, 3] = f[X, 0] - 1.0
    out = te.Func("out")
    out[X, Y] = f[X + 1, Y + 2]
    data = RNG.random((4, 8), np.float32)
    wanted = np.cumsum(data, 1, dtype=np.float32) * 2
    wanted[:, 3] = wanted[:, 0] - 1
    got = both(cache, [out.realize(2, 5)], {"a": data})["out"]
    np.testing.assert_array_equal(got, wanted[1:3, 2:7])
    boxes = te.regions([out.realize(2, 5)])
    assert str(boxes["f"]) == "[1, 3) x [0, 8)"


@needs_cc
def test_several_outputs_of_both_kinds_of_words(cache):
    a = te.placeholder("a", (6,))
    f, up = te.Func("f"), te.Func("up")
    f[X] = a[X] * 0.5
    up[X] = f[X] + 1.0
    down = te.compute("down", (3,), lambda i: 1.0 - f[i + 1])
    data = RNG.random(6, np.float32)
    got = both(cache, [up.realize((2, 4)), down, f.realize(6)], {"a": data})
    half = data * np.float32(0.5)
    np.testing.assert_array_equal(got["up"], half[2:] + 1)
    np.testing.assert_array_equal(got["down"], 1 - half[1:4])
    np.testing.assert_array_equal(got["f"], half)
    assert list(got) == ["up", "down", "f"]


@needs_cc
def test_a_function_and_a_stage_of_the_same_values_are_the_same_nest(cache):
    a, b = te.placeholder("A", (5, 4)), te.placeholder("B", (4, 6))
    k = te.reduce_axis("k", 4)
    stage = te.compute("C", (5, 6), lambda i, j: te.reduce_sum(a[i, k] * b[k, j], k))
    i, j = te.Var("i"), te.Var("j")
    func = te.Func("C")
    func[i, j] = te.reduce_sum(a[i, k] * b[k, j], k)
    texts = [print_procedure(te.lower("f", [o])) for o in (stage, func.realize(5, 6))]
    assert texts[0] == texts[1]
    data = {"A": RNG.random((5, 4), np.float32), "B": RNG.random((4, 6), np.float32)}
    got = both(cache, [stage], data)["C"]
    np.testing.assert_allclose(got, data["A"] @ data["B"], rtol=1e-6)


@needs_cc
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_mathematics_in_every_float(cache, dtype):
    a = te.placeholder("a", (40,), dtype)
    parts = {
        "sin": (te.sin, np.sin),
        "cos": (te.cos, np.cos),
        "ceil": (te.ceil, np.ceil),
        "round": (te.rounded, np.rint),
        "trunc": (te.trunc, np.trunc),
        "floor": (te.floor, np.floor),
        "abs": (abs, np.abs),
        "pow": (lambda v: abs(v) ** 1.5, lambda v: np.abs(v) ** v.dtype.type(1.5)),
        "rpow": (lambda v: 2.0**v, lambda v: v.dtype.type(2) ** v),
        "clamp": (lambda v: te.clamp(v, -1.0, 1.0), lambda v: np.clip(v, -1, 1)),
    }
    outputs = []
    for name, (ours, _) in parts.items():
        f = te.Func(f"out_{name}")
        f[X] = ours(a[X])
        outputs.append(f.realize(40))
    data = np.linspace(-3.5, 3.5, 40).astype(dtype)
    got = interpret(te.lower("pipeline", outputs), {"a": data})
    run = compiled(te.lower("pipeline", outputs), cache, ("-O2",))({"a": data})
    for name, (_, numpys) in parts.items():
        wanted = numpys(data.astype("float64") if name == "rpow" else data)
        tolerance = 4 * float(np.finfo(dtype).eps)
        for found in (got, run):
            assert found[f"out_{name}"].dtype == dtype
            np.testing.assert_allclose(found[f"out_{name}"], wanted, tolerance, tolerance)


@needs_cc
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"])
def test_operators_on_every_integer(cache, dtype):
    a = te.placeholder("a", (12,), dtype)
    f, g, h = te.Func("f"), te.Func("g"), te.Func("h")
    v = a[X]
    f[X] = te.select((v != 3) & ~(v == 4) | (v >= 9), v // 2 + v % 3, 100 // (v + 1) + 7 % (v + 1))
    g[X] = te.cast(v, "float32") * 0.5
    h[X] = te.maximum(te.minimum(v, 9), 2) - te.cast(te.cast(v, "int64") % 2, dtype)
    data = np.arange(12).astype(dtype)
    got = both(cache, [f.realize(12), g.realize(12), h.realize(12)], {"a": data})
    chosen = (data != 3) & ~(data == 4) | (data >= 9)
    wanted = np.where(chosen, data // 2 + data % 3, 100 // (data + 1) + 7 % (data + 1))
    np.testing.assert_array_equal(got["f"], wanted)
    np.testing.assert_array_equal(got["g"], data * np.float32(0.5))
    np.testing.assert_array_equal(got["h"], np.clip(data, 2, 9) - data % 2)


@needs_cc
def test_an_input_may_begin_anywhere_and_extents_may_be_names(cache):
    a = te.placeholder("a", ("n",), low=(-2,))
    f = te.Func("f")
    f[X] = a[X - 2] + te.cast(te.extent("n"), "float32")
    procedure = te.lower("pipeline", [f.realize("n")])
    assert procedure.extents == ("n",)
    data = RNG.random(7, np.float32)
    got = interpret(procedure, {"a": data}, {"n": 7})["f"]
    np.testing.assert_array_equal(got, data + 7)
    run = compiled(procedure, cache)
    np.testing.assert_array_equal(run({"a": data}, {"n": 7})["f"], data + 7)


@needs_cc
def test_temporaries_by_name_of_extents(cache):
    a = te.ImageParam("a", 1)
    f, g = te.Func("f"), te.Func("g")
    f[X] = a[X] + a[X + 1]
    g[X] = f[2 * X - 1] * f[X + 3]
    procedure = te.lower("pipeline", [g.realize("n")])
    shape = te.regions([g.realize("n")])["a"]
    for n in (1, 2, 3, 4, 9):
        data = RNG.random(max(n + 6, 2 * n + 2), np.float32)
        assert str(shape).startswith("[-1, ")
        data = data[: whole_value(shape.extent[0], {"n": n})]
        pairs = data[:-1] + data[1:]
        wanted = [pairs[2 * i] * pairs[i + 4] for i in range(n)]
        got = interpret(procedure, {"a": data}, {"n": n})["g"]
        np.testing.assert_array_equal(got, np.array(wanted, np.float32))
        run = compiled(procedure, cache, FLAGS)
        np.testing.assert_array_equal(run({"a": data}, {"n": n})["g"], got)


def scan():
    x, r = te.placeholder("a", (9,)), te.RDom("r", (1, 8))
    s = te.Func("s")
    s[X] = te.repeat_edge(x, "edges")[X]
    s[r] += s[r - 1]
    s[X] *= 0.5
    return [s.realize(9)], {"a": ((9,), "float32")}


def in_place():
    a, r = te.placeholder("a", (6, 7)), te.RDom("r", (1, 4), (1, 5))
    f = te.Func("f")
    f[X, Y] = a[X, Y]
    i, j = r
    f[i, j] = (f[i - 1, j] + f[i, j - 1] + f[i + 1, j] + f[i, j + 1]) * 0.25
    return [f.realize(6, 7)], {"a": ((6, 7), "float32")}


def scatter():
    return [histogram()], {"image": ((6, 5), "uint8")}


def smoothed():
    a = te.repeat_edge(te.placeholder("a", (5, 7)), "edges")
    f, g = te.Func("f"), te.Func("g")
    f[X, Y] = a[X - 1, Y] + a[X, Y] + a[X + 1, Y]
    g[X, Y] = f[X, Y - 1] + f[X, Y] + f[X, Y + 1]
    return [g.realize(5, 7)], {"a": ((5, 7), "float32")}


@needs_cc
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(make=st.sampled_from([scan, in_place, scatter, smoothed]), seed=st.integers(0, 10**6))
def test_any_legal_trace_of_updates_keeps_their_meaning(cache, make, seed):
    outputs, inputs = make()
    procedure = te.lower("pipeline", outputs)
    rng = np.random.default_rng(seed)
    data = {name: (rng.random(s) * 200).astype(dtype) for name, (s, dtype) in inputs.items()}
    wanted = interpret(procedure, data)
    trace, after = random_trace(procedure, seed)
    got = interpret(after, data)
    run = compiled(lower_procedure(procedure, trace).procedure, cache, FLAGS)(data)
    for name, array in wanted.items():
        np.testing.assert_array_equal(got[name], array, err_msg=print_trace(trace))
        np.testing.assert_array_equal(run[name], array, err_msg=print_trace(trace))


def test_loops_of_updates_have_names_of_their_own():
    a, r = te.placeholder("a", (4, 8)), te.RDom("r", (1, 7))
    f = te.Func("f")
    f[X, Y] = a[X, Y]
    f[X, r] += f[X, r - 1]
    f[X, r] += f[X, r - 1]
    names = [loop.var for loop in loops(te.lower("pipeline", [f.realize(4, 8)]))]
    assert names == ["x", "y", "x_1", "r_1", "x_2", "r_2"]


def test_adding_to_an_element_is_a_reduction_of_the_ir():
    text = print_procedure(te.lower("pipeline", [histogram()]))
    assert "out[int64(image[r_x_1, r_y_1])] += int32(1)" in text


def test_an_index_from_memory_that_leaves_the_output_is_found_when_it_runs():
    image = np.full((6, 5), 9, np.uint8)
    with pytest.raises(InterpretError, match="expected 0 <= index < 8"):
        interpret(te.lower("pipeline", [histogram(8)]), {"image": image})


def func(name, value, *variables):
    out = te.Func(name)
    out[variables or (X,)] = value
    return out


def updated(*updates, value=None, variables=(X,)):
    f = func("f", A[X] if value is None else value, *variables)
    for place, make in updates:
        f[place] = make(f)
    return f


A, N = te.placeholder("a", (8,)), te.placeholder("n", (8,), "int32")
F = func("f", A[X])
R, Q = te.RDom("r", (1, 7)), te.RDom("q", (0, 2), (0, 3))
WRONG = [
    (lambda: te.Func("a b"), "expected a name"),
    (lambda: te.Func("f", "float8"), "f: expected one of"),
    (lambda: te.Func("f")[X], "f: expected a definition before it is read"),
    (lambda: te.Func("f").realize(3), "f: expected a definition"),
    (lambda: func("f", A[X], X, X), "f: expected distinct variables"),
    (lambda: func("f", A[X], X + 1), "f: expected distinct variables"),
    (lambda: func("f", 3.0), "f: expected a dtype"),
    (lambda: func("f", "a"), "f: expected an expression"),
    (lambda: func("f", A[Y]), "f: expected the variables x, found y"),
    (lambda: func("f", A[R]), "f: expected a reduction over r, found none"),
    (lambda: te.compute("f", (4,), lambda i: A[i + X]), "expected the variables i, found x"),
    (lambda: te.compute("f", (4,), lambda i: A[i + R]), "expected a reduction over r"),
    (lambda: updated((R, lambda f: f[R] + N[R])), "expected one dtype"),
    (lambda: updated((R, lambda f: N[R])), "f: expected float32, found int32"),
    (lambda: updated((R, lambda f: f[Q.x] + A[R])), "at most one domain in an update, found q, r"),
    (lambda: updated((Y, lambda f: A[0])), "variables that stand alone .*none do.*found y"),
    (
        lambda: updated((X, lambda f: f[X - 1])),
        "f: expected an update to read itself at the same x",
    ),
    (lambda: updated((R, lambda f: te.reduce_sum(A[R], R))), "expected an update by an expression"),
    (lambda: te.lower("p", [func("f", A[X])]), r"give it a region, as in f\.realize"),
    (lambda: te.lower("p", [func("f", A[X]).realize(8, 8)]), "f: expected 1 axes, found 2"),
    (
        lambda: te.lower("p", [func("f", A[X + 1]).realize(8)]),
        r"a: expected to be used inside \[0, 8\), found \[1, 9\)",
    ),
    (
        lambda: te.lower("p", [updated((R + 1, lambda f: A[R])).realize(8)]),
        r"f: expected to be used inside \[0, 8\), found \[2, 9\)",
    ),
    (
        lambda: te.lower("p", [func("g", func("f", A[X])[N[X]]).realize(8)]),
        r"f: expected bounds for index int64\(n\[x\]\) \(axis 0\), found none; clamp it",
    ),
    (
        lambda: te.lower(
            "p", [func("g", func("f", A[X])[te.minimum(te.cast(N[X], "int64"), 3)]).realize(8)]
        ),
        r"f: expected bounds for index min\(int64\(n\[x\]\), 3\) \(axis 0\)",
    ),
    (
        lambda: te.lower("p", [F.realize(3), F.realize((3, 2))]),
        "p: expected each output once, found f twice",
    ),
    (lambda: te.RDom("r"), "r: expected at least one dimension"),
    (lambda: te.RDom("r", 4), "r: expected pairs of a least value and an extent, found 4"),
    (lambda: te.RDom("r", (0, 0)), "expected a size of at least 1"),
    (lambda: te.RDom("r", (A[0], 3)), "expected a whole number or an extent's name"),
    (lambda: Q + 1, r"q: expected one of q\.x, q\.y, found the whole domain"),
    (lambda: R[1], "r: expected a dimension below 1, found 1"),
    (lambda: R.where(R + 1), "r: expected a condition"),
    (lambda: te.ImageParam("a", 0), "a: expected at least 1 axis"),
    (lambda: te.placeholder("a", (4,), low=(0, 0)), "expected 1 coordinates in low, found 2"),
    (lambda: ~A[0], "not: expected a condition"),
    (lambda: N[0] ** 2, "pow: expected floats, found int32"),
    (lambda: bool(A[0] == A[1]), "found an expression used as a truth value"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_definitions_that_make_no_sense_are_refused(make, message):
    with pytest.raises(TensorError, match=message):
        make()


def test_functions_that_read_one_another_are_refused():
    f = func("f", A[X])
    g = func("g", f[X])
    f[R] = g[R]
    with pytest.raises(TensorError, match="reads itself, found g reads f reads g"):
        te.lower("p", [g.realize(8)])


def test_a_clamped_index_from_memory_has_bounds():
    f = func("f", te.repeat_edge(A, "edges")[X])
    g = func("g", f[te.clamp(te.cast(N[X], "int64"), 2, 5)])
    assert str(te.regions([g.realize(8)])["f"]) == "[2, 6)"
    data = np.array([-5, 0, 2, 3, 4, 5, 6, 99], np.int32)
    got = interpret(te.lower("p", [g.realize(8)]), {"a": np.arange(8, dtype="float32"), "n": data})
    np.testing.assert_array_equal(got["g"], np.clip(data, 2, 5))


def test_a_domain_s_dimensions_may_have_names():
    """In-place sweeps: loops are called as the dimensions are."""
    start, now = te.placeholder("start", (5, 6)), te.Func("now")
    y, x = te.Var("y"), te.Var("x")
    now[y, x] = start[y, x]
    r = te.RDom("r", step=(0, 3), x=(1, 3), i=(1, 4))
    now[r.x, r.i] = now[r.x - 1, r.i] + now[r.x, r.i - 1]
    procedure = te.lower("sweeps", [now.realize(5, 6)])
    text = print_procedure(procedure)
    assert "for step in 3:" in text
    assert "for now_x in 3:" in text  # x is taken
    assert "for i in 4:" in text
    given = np.random.default_rng(0).integers(0, 9, (5, 6)).astype(np.float32)
    wanted = given.copy()
    for _ in range(3):
        for a in range(1, 4):
            for b in range(1, 5):
                wanted[a, b] = wanted[a - 1, b] + wanted[a, b - 1]
    np.testing.assert_array_equal(interpret(procedure, {"start": given})["now"], wanted)


def test_dimensions_are_named_all_or_none():
    with pytest.raises(TensorError, match="by place or by name, found both"):
        te.RDom("r", (0, 3), i=(0, 2))
    with pytest.raises(TensorError, match="at least one dimension"):
        te.RDom("r")
    r = te.RDom("r", step=(0, 3), i=(0, 2))
    with pytest.raises(
        AttributeError, match="r: expected one of the dimensions step, i, found 'x'"
    ):
        _ = r.x
    with pytest.raises(TensorError, match="expected pairs"):
        te.RDom("r", i=3)
