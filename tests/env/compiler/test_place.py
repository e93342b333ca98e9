"""Where stages are computed: inline, in a loop of a consumer, in a loop of a producer."""

from __future__ import annotations

import numpy as np
import pipelines
import pytest
from programs import in_turns
from test_codegen import cache as cache
from test_codegen import compiled, needs_cc

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    Const,
    For,
    Load,
    Prefetch,
    Procedure,
    Store,
    Var,
    statements,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.poly.region import region
from kernelwright.env.compiler.schedule import place
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Directive

SIZE = 13


def inputs_of(procedure, seed=0):
    rng = np.random.default_rng(seed)
    extents = dict.fromkeys(procedure.extents, SIZE)
    out = {}
    for t in procedure.tensors:
        if t.role == "input":
            shape = [int(n.value) if isinstance(n, Const) else extents[n.name] for n in t.shape]
            out[t.name] = rng.integers(0, 9, shape).astype(t.dtype)
    return out, extents


def scheduled(procedure, trace):
    return apply_trace(procedure, parse_trace(trace))


def shapes(procedure):
    """The shapes of the temporaries by name."""
    found = (s.tensor for s in statements(procedure.body) if isinstance(s, Allocate))
    return {t.name: [int(n.value) for n in t.shape] for t in found}


TILE = "tile('p', 'q', 4, 4)\n"
MATRIX = [
    (pipelines.blur(), "compute_root('a')"),
    (pipelines.blur(), "compute_inline('a')"),
    (pipelines.blur(), "compute_inline('a')\nsplit('q', 4)\nvectorize('qi')"),
    (pipelines.blur(), "compute_at('a', 'p')"),
    (pipelines.blur(), "compute_at('a', 'q')\nunroll('i')"),
    (
        pipelines.blur(),
        "tile('p', 'q', 4, 4)\ncompute_at('a', 'qo')\nsplit('j', 4)\nvectorize('ji')",
    ),
    (pipelines.blur(), "tile('p', 'q', 4, 4)\nparallel('po')\ncompute_at('a', 'po')"),
    (pipelines.blur(), "reorder('j', 'i')\nsplit('p', 4)\ncompute_at('a', 'po')\nparallel('j')"),
    (pipelines.blur(), "compute_at('a', 'p')\ncompute_at('a', 'q')"),
    (pipelines.blur(), "reverse_compute_at('b', 'i')"),
    (pipelines.blur(), "split('i', 4)\nreverse_compute_at('b', 'io')"),
    (pipelines.boxes(2), "compute_inline('t0')"),
    (pipelines.boxes(2), "tile('y1', 'x1', 2, 4)\ncompute_at('t0', 'x1o')"),
    (
        pipelines.boxes(3),
        "tile('y2', 'x2', 2, 4)\ncompute_at('t1', 'x2o')\ncompute_at('t0', 'x2o')",
    ),
    (pipelines.boxes(3), "compute_at('t1', 'y2')\ncompute_at('t0', 'y1')"),
    (pipelines.boxes(3), "compute_at('t0', 'y1')\nsplit('y2', 2)\ncompute_at('t1', 'y2o')"),
    (pipelines.boxes(3), "compute_inline('t1')\nsplit('y2', 2)\ncompute_at('t0', 'y2o')"),
    (
        pipelines.boxes(4, 3, 4),
        "split('y3', 2)\ncompute_at('t2', 'y3o')\ncompute_at('t1', 'y3o')\ncompute_at('t0', 'y3o')",
    ),
    (pipelines.halves(), "compute_inline('down')"),
    (pipelines.halves(), "split('u', 6)\ncompute_at('down', 'uo')"),
    (pipelines.halves(), "split('u', 5)\ncompute_at('down', 'uo')\nsplit('ui', 2)"),
    (pipelines.halves(), "compute_at('down', 'u')"),
    (pipelines.matmul_relu(), "tile('i', 'j', 2, 4)\nreverse_compute_at('D', 'jo')"),
    (
        pipelines.matmul_relu(),
        "split('k', 2)\nreorder('ko', 'i', 'j')\nreverse_compute_at('D', 'i')",
    ),
    (
        pipelines.matmul_relu(),
        "tile('p', 'q', 2, 4)\ncompute_at('C', 'qo')\nreorder('i', 'k', 'j')",
    ),
    (pipelines.matmul_relu(), "compute_at('C', 'p')\nsplit('j', 4)\nvectorize('ji')"),
    (pipelines.softmax(), "compute_at('total', 'p')\ncompute_at('e', 'p')\ncompute_at('top', 'p')"),
    (pipelines.softmax(), "compute_at('top', 'f')\nreverse_compute_at('y', 's')"),
    (pipelines.softmax(), "reverse_compute_at('total', 'f')"),
]


@pytest.mark.parametrize(("procedure", "trace"), MATRIX)
def test_placed_stages_compute_the_same_bits(procedure, trace):
    inputs, extents = inputs_of(procedure)
    expected = interpret(procedure, inputs, extents)
    steps = parse_trace(trace)
    assert parse_trace(print_trace(steps)) == steps
    assert loads(tuple[Directive, ...], dumps(steps)) == steps
    after = apply_trace(procedure, steps)
    for name, values in interpret(after, inputs, extents).items():
        np.testing.assert_array_equal(values, expected[name])


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize(("procedure", "trace"), in_turns(MATRIX))
def test_their_c_computes_it_too(procedure, trace, cache):
    inputs, extents = inputs_of(procedure)
    expected = interpret(procedure, inputs, extents)
    found = compiled(scheduled(procedure, trace), cache)(inputs)
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5)


def test_a_tile_holds_its_halo_and_no_more():
    procedure = scheduled(pipelines.blur(128, 128), "tile('p', 'q', 64, 64)\ncompute_at('a', 'qo')")
    assert shapes(procedure) == {"a": [66, 64]}
    trace = "tile('y1', 'x1', 32, 32)\ncompute_at('t0', 'x1o')"
    assert shapes(scheduled(pipelines.boxes(2, 64, 64), trace)) == {"t0": [34, 34]}


@pytest.mark.parametrize(("size", "recomputed"), [(8, 1.25), (64, 1.03125), (256, 1.0078125)])
def test_the_halo_of_a_tile_is_what_is_computed_twice(size, recomputed):
    trace = f"tile('p', 'q', {size}, {size})\ncompute_at('a', 'qo')"
    procedure = scheduled(pipelines.blur(512, 512), trace)
    rows, columns = shapes(procedure)["a"]
    assert rows * columns / size**2 == recomputed
    read = region(procedure, "qo", "x")
    assert [axis.constant for axis in read.axes] == [size + 2, size + 2]


def test_sizes_that_do_not_divide_compute_no_more_than_they_need():
    procedure = scheduled(pipelines.blur(9, 11), "tile('p', 'q', 4, 4)\ncompute_at('a', 'qo')")
    text = print_procedure(procedure)
    assert "for i in min(6, 11 - po * 4):" in text
    assert "for j in min(4, 11 - qo * 4):" in text


def test_extents_by_name():
    x = te.placeholder("x", ("n",))
    a = te.compute("a", ("n",), lambda i: x[i] * 2.0, [x])
    b = te.compute("b", ("n",), lambda j: a[j] + 1.0, [a])
    procedure = te.lower("f", [b])
    placed = scheduled(procedure, "split('j', 4)\ncompute_at('a', 'jo')")
    assert shapes(placed) == {"a": [4]}
    for n in (0, 1, 7, 8):
        values = np.arange(n, dtype=np.float32)
        found = interpret(placed, {"x": values}, {"n": n})
        np.testing.assert_array_equal(found["b"], values * 2 + 1)


def test_a_loop_that_never_runs_computes_nothing():
    x = te.placeholder("x", ("n", "m"))
    a = te.compute("a", ("n", "m"), lambda i, j: x[i, j] * 2.0, [x])
    b = te.compute("b", ("n", "m"), lambda p, q: a[p, q] + a[0, q], [a])
    placed = scheduled(te.lower("f", [b]), "compute_at('a', 'p')")
    for n, m in ((0, 0), (0, 3), (3, 0), (2, 3)):
        values = np.arange(n * m, dtype=np.float32).reshape(n, m)
        found = interpret(placed, {"x": values}, {"n": n, "m": m})
        assert found["b"].shape == (n, m)


def test_boundary_conditions_need_only_what_they_choose():
    x = te.placeholder("x", (10,))
    a = te.compute("a", (10,), lambda i: x[i] * 2.0, [x])
    inside = lambda j: te.select((j >= 1) & (j <= 9), a[j - 1], 0.0)  # noqa: E731
    procedure = te.lower("f", [te.compute("b", (12,), lambda j: inside(j) + 1.0, [a])])
    placed = scheduled(procedure, "split('j', 5)\ncompute_at('a', 'jo')")
    inputs, extents = inputs_of(procedure)
    expected = interpret(procedure, inputs, extents)["b"]
    np.testing.assert_array_equal(interpret(placed, inputs, extents)["b"], expected)


def load(name, *indices):
    return Load(name, indices)


def in_place():
    """x is written between the stage that reads it and the stage that reads that."""
    i, j, k = Var("i"), Var("j"), Var("k")
    body = Block(
        (
            For("h", whole(4), Store("y", (Var("h"),), load("x", Var("h")))),
            For("i", whole(4), Store("a", (i,), load("y", i))),
            For("j", whole(4), Store("y", (j,), Const(1.0, "float32"))),
            For("k", whole(4), Store("z", (k,), load("a", k))),
        )
    )
    tensors = pipelines.tensors(("x", 4), y=4, z=4)
    return verify(Procedure("f", (), tensors, Allocate(pipelines.temporary("a", 4), body)))


def recursive():
    """Each element from the one before."""
    i, j = Var("i"), Var("j")
    body = Block(
        (
            For("i", whole(4), Store("a", (i,), load("x", i))),
            For("k", whole(4), Store("a", (Var("k"),), load("a", Var("k")), "add")),
            For("j", whole(4), Store("y", (j,), load("a", j))),
        )
    )
    tensors = pipelines.tensors(("x", 4), y=4)
    return verify(Procedure("f", (), tensors, Allocate(pipelines.temporary("a", 4), body)))


def two_readers():
    x = te.placeholder("x", (6,))
    a = te.compute("a", (6,), lambda i: x[i] * 2.0, [x])
    b = te.compute("b", (6,), lambda j: a[j] + 1.0, [a])
    c = te.compute("c", (6,), lambda k: a[k] + 2.0, [a])
    return te.lower("f", [b, c])


REFUSED = [
    (pipelines.blur(), "compute_at('c', 'p')", "expected one of the temporaries a, found 'c'"),
    (pipelines.blur(), "compute_at('b', 'p')", "temporaries a, found output b"),
    (pipelines.blur(), "compute_at('a', 'z')", "expected one of the loops i, j, p, q, found 'z'"),
    (pipelines.blur(), "compute_at('a', 'i')", "loop i is one of those that compute a"),
    (
        two_readers(),
        "compute_at('a', 'j')",
        r"read outside loop j too, under k \(what k reads",
    ),
    (pipelines.boxes(3), "compute_at('t0', 'y2')", "t0 is read outside loop y2 too, under y1"),
    (pipelines.blur(), "split('i', 4)\ncompute_at('a', 'p')", "place it first, and split"),
    (
        pipelines.blur(9, 8),
        "split('j', 4)\nvectorize('ji')\ncompute_at('a', 'p')",
        r"expected one loop for axis 1 of a, found a\[i, jo \* 4 \+ ji\]",
    ),
    (pipelines.blur(9, 8), "vectorize('j')\ncompute_at('a', 'p')", "loop j of a is vectorized"),
    (pipelines.blur(9, 8), "unroll('j')\ncompute_inline('a')", "loop j of a is unrolled"),
    (pipelines.blur(9, 8), "vectorize('q')\ncompute_at('a', 'q')", "loop q is vectorized"),
    (in_place(), "compute_at('a', 'k')", "a is computed from y, which j writes later"),
    (in_place(), "compute_inline('a')", "a is computed from y, which j writes later"),
    (recursive(), "compute_at('a', 'j')", "from itself"),
    (pipelines.matmul_relu(), "compute_inline('C')", "C is a reduction or has updates, 2 nests"),
    (pipelines.blur(), "compute_at('a', 'p')\ncompute_root('a')", "for one iteration of p"),
    (pipelines.matmul_relu(), "reverse_compute_at('A', 'i')", "one of the tensors D, C, found 'A'"),
    (pipelines.matmul_relu(), "reverse_compute_at('D', 'p')", "a loop of a nest before that of D"),
    (pipelines.matmul_relu(), "reverse_compute_at('D', 'i_start')", "C, which D reads, is written"),
    (
        pipelines.matmul_relu(5, 8, 4),
        "vectorize('j')\nreverse_compute_at('D', 'j')",
        "loop j is vectorized",
    ),
    (
        pipelines.softmax(),
        "reverse_compute_at('y', 'f')",
        "total, which y reads, is written in between",
    ),
    (two_readers(), "reverse_compute_at('c', 'j')", "c reads nothing that the nest of the loop"),
    (
        pipelines.blur(),
        "parallel('i')\nreverse_compute_at('b', 'i')",
        r"loop i carries a dependence and cannot be parallel \(.*must run before",
    ),
]


@pytest.mark.parametrize(("procedure", "trace", "message"), REFUSED)
def test_what_may_not_be_placed_is_refused_with_a_reason(procedure, trace, message):
    with pytest.raises(ScheduleError, match=message) as caught:
        scheduled(procedure, trace)
    assert caught.value.op == parse_trace(trace)[-1].op


def test_a_consumer_that_some_iteration_would_leave_out():
    """Only the even places of a are written in the loop; c reads the odd ones of something else."""
    x = te.placeholder("x", (4,))
    a = te.compute("a", (4,), lambda i: x[i] * 2.0, [x])
    c = te.compute("c", (8,), lambda k: te.select(k < 4, a[te.minimum(k, 3)], 1.0), [a])
    procedure = te.lower("f", [c])
    with pytest.raises(ScheduleError, match="no iteration of i completes all of c"):
        scheduled(procedure, "reverse_compute_at('c', 'i')")


def test_inlining_is_bounded(monkeypatch):
    monkeypatch.setattr(place, "MAX_INLINED", 50)
    with pytest.raises(ScheduleError, match="at most 50 operations inlined, found 51"):
        scheduled(pipelines.blur(), "compute_inline('a')")


def scalar():
    """A temporary without axes."""
    i = Var("i")
    product = Binary("mul", load("x", i), load("a"))
    body = Block(
        (Store("a", (), Const(2.0, "float32")), For("i", whole(4), Store("y", (i,), product)))
    )
    return Procedure(
        "f", (), pipelines.tensors(("x", 4), y=4), Allocate(pipelines.temporary("a"), body)
    )


@pytest.mark.parametrize(
    "trace",
    ["compute_inline('a')", "compute_at('a', 'i')", "compute_at('a', 'i')\nstore_root('a')"],
)
def test_a_temporary_without_axes(trace):
    procedure = verify(scalar())
    inputs, extents = inputs_of(procedure)
    found = interpret(scheduled(procedure, trace), inputs, extents)
    np.testing.assert_array_equal(found["y"], inputs["x"] * 2)


@pytest.mark.parametrize("op", ["compute_at('a', 'j')", "compute_inline('a')"])
def test_what_knows_where_elements_lie_is_in_the_way(op):
    j = Var("j")
    start = For("i", whole(4), Store("a", (Var("i"),), load("x", Var("i"))))

    def procedure(reader):
        body = Allocate(pipelines.temporary("a", 4), Block((start, For("j", whole(4), reader))))
        return verify(Procedure("f", (), pipelines.tensors(("x", 4), y=4), body))

    store = Store("y", (j,), load("a", j))
    with pytest.raises(ScheduleError, match="copy works on a: place it first"):
        scheduled(procedure(Call("copy", store)), op)
    with pytest.raises(ScheduleError, match="a is prefetched: place it first"):
        scheduled(procedure(Block((Prefetch("a", (j,)), store))), op)


@pytest.mark.parametrize("op", ["compute_at('a', 'p')", "reverse_compute_at('a', 'i')"])
def test_what_is_computed_in_a_triangle_is_no_box(op):
    i, j, p = Var("i"), Var("j"), Var("p")
    row = For("j", Binary("sub", whole(4), i), Store("a", (i, j), load("x", j)))
    read = For("p", whole(4), Store("y", (p,), load("a", p, whole(0))))
    body = Allocate(pipelines.temporary("a", 4, 4), Block((For("i", whole(4), row), read)))
    procedure = verify(Procedure("f", (), pipelines.tensors(("x", 4), y=4), body))
    with pytest.raises(ScheduleError, match="the extent of loop j of a depends on i"):
        scheduled(procedure, op)
