"""Where temporaries are stored: sliding windows and circular buffers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pipelines
import pytest
from programs import in_turns
from test_codegen import cache, compiled, needs_cc  # noqa: F401 - a fixture among them
from test_place import inputs_of, scheduled, shapes

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.hoist import divisions, named
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import Binary, Const, For, Load, Store, Var
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace


def slides(count, at, store):
    """Windows of the first ``count`` stages of `pipelines.boxes`, all at one loop."""
    names = [f"t{k}" for k in range(count)]
    lines = [f"compute_at('{name}', '{at}')" for name in reversed(names)]
    lines += [f"store_at('{n}', '{store}')" if store else f"store_root('{n}')" for n in names]
    return "\n".join([*lines, *(f"fold_storage('{name}', 0)" for name in names)]) + "\n"


def window_sum(rows=5, columns=4, reach=3):
    """A reduction as the producer of a window: s over its columns, y over three rows of s."""
    x = te.placeholder("x", (rows + reach - 1, columns))
    k = te.reduce_axis("k", columns)
    s = te.compute("s", (rows + reach - 1,), lambda i: te.reduce_sum(x[i, k.value] * 2.0, k), [x])
    y = te.compute("y", (rows,), lambda p: s[p] + s[p + 1] * 3.0 + s[p + 2], [s])
    return te.lower("window_sum", [y])


def halved(n=9):
    """Every second place of a window."""
    x = te.placeholder("x", (2 * n + 3,))
    a = te.compute("a", (2 * n + 2,), lambda i: x[i] + x[i + 1] * 2.0, [x])
    y = te.compute("y", (n,), lambda p: a[2 * p] + a[2 * p + 1] + a[2 * p + 2] * 3.0, [a])
    return te.lower("halved", [y])


def constant_rows(rows=5, columns=4):
    """What every iteration reads is the same."""
    x = te.placeholder("x", (columns,))
    a = te.compute("a", (columns,), lambda i: x[i] * 2.0, [x])
    y = te.compute("y", (rows, columns), lambda p, q: a[q] + te.cast(p, "float32"), [a])
    return te.lower("constant_rows", [y])


ROOT = "compute_at('a', 'p')\nstore_root('a')\n"
MATRIX = [
    (pipelines.blur(), ROOT),
    (pipelines.blur(), ROOT + "fold_storage('a', 0)"),
    (pipelines.blur(), ROOT + "fold_storage('a', 0, 4)\nsplit('q', 4)\nvectorize('qi')"),
    (
        pipelines.blur(9, 8),
        ROOT + "fold_storage('a', 0)\nsplit('j_first', 4)\nvectorize('j_firsti')",
    ),
    (pipelines.blur(), "split('p', 4)\ncompute_at('a', 'pi')\nstore_at('a', 'po')"),
    (
        pipelines.blur(),
        "split('p', 4)\nparallel('po')\ncompute_at('a', 'pi')\nstore_at('a', 'po')\n"
        "fold_storage('a', 0, 3)",
    ),
    (
        pipelines.blur(),
        "split('p', 4)\ncompute_at('a', 'pi')\nstore_root('a')\nfold_storage('a', 0)",
    ),
    (
        pipelines.blur(),
        "split('q', 4)\nreorder('qo', 'p', 'qi')\ncompute_at('a', 'p')\nstore_at('a', 'qo')\n"
        "fold_storage('a', 0)",
    ),
    (
        pipelines.blur(),
        "split('p', 3)\ncompute_at('a', 'po')\nstore_root('a')\nfold_storage('a', 0)",
    ),
    (pipelines.blur(), "compute_at('a', 'q')\nstore_at('a', 'p')"),
    (pipelines.boxes(2), slides(1, "y1", None)),
    (pipelines.boxes(3), slides(2, "y2", None)),
    (pipelines.boxes(4, 5, 4), slides(3, "y3", None)),
    (pipelines.boxes(3, 7, 5), "split('y2', 3)\n" + slides(2, "y2i", "y2o")),
    (pipelines.boxes(3, 7, 5), "split('y2', 3)\nparallel('y2o')\n" + slides(2, "y2i", "y2o")),
    (window_sum(), "compute_at('s', 'p')\nstore_root('s')\nfold_storage('s', 0)"),
    (window_sum(7), "split('p', 3)\ncompute_at('s', 'pi')\nstore_at('s', 'po')"),
    (halved(), ROOT + "fold_storage('a', 0)"),
    (halved(), "split('p', 4)\ncompute_at('a', 'pi')\nstore_at('a', 'po')"),
    (pipelines.halves(), "compute_at('down', 'u')\nstore_root('down')\nfold_storage('down', 0)"),
    (constant_rows(), ROOT),
]


@pytest.mark.parametrize(("procedure", "trace"), MATRIX)
def test_windows_compute_the_same_bits(procedure, trace):
    inputs, extents = inputs_of(procedure)
    expected = interpret(procedure, inputs, extents)
    steps = parse_trace(trace)
    assert parse_trace(print_trace(steps)) == steps
    for name, values in interpret(apply_trace(procedure, steps), inputs, extents).items():
        np.testing.assert_array_equal(values, expected[name])


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize(("procedure", "trace"), in_turns(MATRIX))
def test_their_c_computes_it_too(procedure, trace, cache):  # noqa: F811
    inputs, extents = inputs_of(procedure)
    expected = interpret(procedure, inputs, extents)
    for name, values in compiled(scheduled(procedure, trace), cache)(inputs).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-5)


def test_each_row_is_computed_once():
    text = print_procedure(scheduled(pipelines.blur(), ROOT))
    assert text == (
        "def blur(input x: float32[11, 13], output b: float32[9, 11]):\n"
        "  allocate a: float32[11, 11]\n"
        "  for i_first in 2:\n"
        "    for j_first in 11:\n"
        "      a[i_first, j_first] = (x[i_first, j_first] + x[i_first, j_first + 1]"
        " + x[i_first, j_first + 2]) * float32(0.25)\n"
        "  for p in 9:\n"
        "    for j in 11:\n"
        "      a[p + 2, j] = (x[p + 2, j] + x[p + 2, j + 1] + x[p + 2, j + 2]) * float32(0.25)\n"
        "    for q in 11:\n"
        "      b[p, q] = (a[p, q] + a[p + 1, q] + a[p + 2, q]) * float32(0.25)\n"
    )


def test_a_chain_keeps_as_few_rows_as_will_do():
    """The first of three stages fills four rows in front for the second, which fills two."""
    assert shapes(scheduled(pipelines.boxes(3), slides(2, "y2", None))) == {
        "t0": [4, 11],
        "t1": [3, 9],
    }
    assert shapes(scheduled(pipelines.blur(), ROOT + "fold_storage('a', 0)")) == {"a": [3, 11]}
    assert shapes(scheduled(halved(), ROOT + "fold_storage('a', 0)")) == {"a": [3]}


def test_strips_hold_their_rows():
    trace = "split('p', 4)\ncompute_at('a', 'pi')\nstore_at('a', 'po')"
    assert shapes(scheduled(pipelines.blur(), trace)) == {"a": [6, 11]}


def test_what_does_not_change_is_computed_in_front():
    text = print_procedure(scheduled(constant_rows(), ROOT))
    assert text.index("a[i_first] =") < text.index("for p in 5:")
    assert text.count("a[") == 2


def test_extents_by_name_and_loops_that_never_run():
    x = te.placeholder("x", ("n", 4))
    a = te.compute("a", ("n", 4), lambda i, j: x[i, j] * 2.0, [x])
    b = te.compute("b", ("n", 4), lambda p, q: a[p, q] + a[te.maximum(p - 1, 0), q], [a])
    procedure = te.lower("f", [b])
    c = te.compute("c", ("n", 4), lambda p, q: a[p, q] + a[p, 3 - q], [a])
    simple = te.lower("g", [c])
    placed = scheduled(simple, ROOT)
    for n in (0, 1, 5):
        values = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        expected = interpret(simple, {"x": values}, {"n": n})["c"]
        found = interpret(placed, {"x": values}, {"n": n})["c"]
        np.testing.assert_array_equal(found, expected)
    assert shapes(scheduled(simple, ROOT + "fold_storage('a', 0)"))["a"][0] == 1
    placed = scheduled(procedure, "compute_at('a', 'p')")
    for n in (0, 1, 5):
        values = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        expected = interpret(procedure, {"x": values}, {"n": n})["b"]
        found = interpret(placed, {"x": values}, {"n": n})["b"]
        np.testing.assert_array_equal(found, expected)


REFUSED = [
    (pipelines.blur(), "store_root('a')", "a is stored outside all loops already"),
    (pipelines.blur(), "compute_at('a', 'p')\nstore_at('a', 'p')", "stored at loop p already"),
    (pipelines.blur(), "store_at('a', 'p')", "outside all loops: compute_at comes first"),
    (pipelines.blur(), "store_at('a', 'z')", "expected one of the loops i, j, p, q, found 'z'"),
    (pipelines.blur(), "store_root('b')", "temporaries a, found output b"),
    (
        pipelines.blur(),
        "compute_at('a', 'p')\nparallel('p')\nstore_root('a')",
        r"loop p is parallel, .* \(a: iteration \(p=1\) may run before \(p=0\)\)",
    ),
    (pipelines.blur(), "compute_at('a', 'q')\nstore_root('a')", "moves along the axes 0 and 1"),
    (
        pipelines.blur(),
        "reorder('q', 'p')\ncompute_at('a', 'q')\nstore_root('a')\nfold_storage('a', 1, 11)",
        "expected a factor below the extent 11, found 11",
    ),
    (pipelines.blur(), "fold_storage('a', 2)", "expected an axis below 2, found 2"),
    (pipelines.blur(), "fold_storage('a', 0)", "fewer than the 11 places of a on axis 0"),
    (pipelines.blur(), "fold_storage('a', 0, -1)", "a factor of at least 0, found -1"),
    (
        pipelines.blur(),
        ROOT + "fold_storage('a', 0, 2)",
        r"2 places of a on axis 0 are too few: .* \(a: iteration \(p=0, q=0\) must run before",
    ),
    (
        pipelines.boxes(3),
        "compute_at('t1', 'y2')\ncompute_at('t0', 'y2')\nstore_root('t1')",
        "t1 is computed from t0, which lives further in: store t0 first",
    ),
    (
        pipelines.boxes(3),
        "compute_at('t1', 'y2')\ncompute_at('t0', 'y2')\nstore_root('t0')\nfold_storage('t0', 0)\n"
        "store_root('t1')",
        "t0 is read at other times, and need not hold the same value then",
    ),
]


@pytest.mark.parametrize(("procedure", "trace", "message"), REFUSED)
def test_what_may_not_be_stored_so_is_refused_with_a_reason(procedure, trace, message):
    with pytest.raises(ScheduleError, match=message) as caught:
        scheduled(procedure, trace)
    assert caught.value.op == parse_trace(trace)[-1].op


@pytest.mark.parametrize("factor", range(1, 11))
def test_a_factor_is_refused_just_where_the_interpreter_would_read_something_else(factor):
    """The least factor that the proof finds is the least with which the result is right."""
    procedure = scheduled(pipelines.boxes(2, 8, 3), slides(1, "y1", None).replace("fold", "# fold"))
    inputs, extents = inputs_of(procedure)
    expected = interpret(procedure, inputs, extents)["t1"]
    try:
        folded = scheduled(procedure, f"fold_storage('t0', 0, {factor})")
    except ScheduleError:
        assert factor in (1, 2, 10)
        return
    np.testing.assert_array_equal(interpret(folded, inputs, extents)["t1"], expected)
    assert factor >= 3


def test_the_places_of_rows_are_computed_outside_the_loops_over_columns():
    trace = ROOT + "fold_storage('a', 0)\nsplit('q', 4)\nvectorize('qi')"
    lines = generate(scheduled(pipelines.blur(9, 8), trace)).splitlines()
    divided = [line.strip() for line in lines if "%" in line]
    assert divided == [
        "const int64_t kw_at_0 = i_first % 3;",
        "const int64_t kw_at_1 = (p + 2) % 3;",
        "const int64_t kw_at_2 = p % 3;",
        "const int64_t kw_at_3 = (p + 1) % 3;",
        "const int64_t kw_at_4 = (p + 2) % 3;",
    ]
    assert any("a + kw_at_2 * 8 + qo * 4" in line for line in lines)


def test_what_a_loop_changes_or_may_be_negative_stays_where_it_is():
    i, j = Var("i"), Var("j")
    three = whole(3)
    moves = Binary("mod", Binary("add", i, j), three)
    below = Binary("floordiv", Binary("sub", i, three), three)
    loaded = Binary("mod", Load("n", (i,)), three)
    kept = Binary("mod", Binary("sub", i, three), three)
    store = Store("y", (moves, below, loaded, kept), Const(1.0, "float32"))
    assert divisions(For("j", whole(4), store)) == (kept,)
    assert divisions(For("i", whole(4), For("j", whole(4), store))) == ()
    text = named(store, {kept: "held"})
    assert text == replace(store, indices=(moves, below, loaded, Var("held")))
