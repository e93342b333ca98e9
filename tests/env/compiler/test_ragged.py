"""Rows of a compressed level are apart: what is proved of positions that ascend, and what is
not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_codegen import compiled, needs_cc
from test_schedule import D

from kernelwright.env.compiler.errors import ScheduleError, VerifyError
from kernelwright.env.compiler.ir.interpret import InterpretError, interpret
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Cast,
    Const,
    For,
    If,
    Load,
    Procedure,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import CallError
from kernelwright.env.compiler.schedule.trace import apply, apply_trace

I, J, K, P, Q = (Var(name) for name in "ijkpq")  # noqa: E741
ONE = whole(1)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def add(a, b):
    return Binary("add", a, b)


def sub(a, b):
    return Binary("sub", a, b)


def at(row, pos="pos"):
    return Cast("int64", Load(pos, (row,)))


def length(row, pos="pos"):
    return sub(at(add(row, ONE), pos), at(row, pos))


def f64(value):
    return Const(value, "float64")


def program(body, facts=("ascending",), size="m", rows="n", pos=("pos",), more=()):
    """A loop nest that writes ``y``, an element for each of the positions."""
    tensors = (
        *(Tensor(p, (add(Var(rows), ONE),), "int32", "input", facts=facts) for p in pos),
        Tensor("crd", (Var(size),), "int32", "input"),
        Tensor("x", (Var(size),), "float64", "input"),
        Tensor("y", (Var(size),), "float64", "output"),
        *more,
    )
    return verify(Procedure("f", (rows, size), tensors, body))


def row(*body, extent=None, var="p"):
    return For("i", Var("n"), For(var, length(I) if extent is None else extent, Block(body)))


PLACE = add(at(I), P)
X = Load("x", (PLACE,))
DOUBLE = Store("y", (PLACE,), add(X, X))


def sddmm(**changed):
    """Inner products of rows and columns, where there are coordinates."""
    column = Cast("int64", Load("crd", (PLACE,)))
    term = Binary("mul", Load("B", (I, K)), Load("C", (column, K)))
    body = Block(
        (
            Store("y", (PLACE,), f64(0.0)),
            For("k", whole(4), Store("y", (PLACE,), Binary("mul", X, term), "add")),
        )
    )
    more = tuple(Tensor(name, (Var("n"), whole(4)), "float64", "input") for name in "BC")
    return program(row(body), more=more, **changed)


def arrays(procedure, rng, n=5):
    counts = rng.choice([0, 1, 3], n)
    pos = np.cumsum([0, *counts]).astype(np.int32)
    m = int(pos[-1])
    given = {
        "pos": pos,
        "crd": rng.integers(0, n, m).astype(np.int32),
        "x": rng.integers(1, 9, m).astype(np.float64),
        "B": rng.integers(1, 9, (n, 4)).astype(np.float64),
        "C": rng.integers(1, 9, (n, 4)).astype(np.float64),
    }
    names = {t.name for t in procedure.tensors}
    return {k: v for k, v in given.items() if k in names}, {"n": n, "m": m}


STEPS = {
    "rows": [D("parallel", "i")],
    "blocks of rows": [D("split", "i", 2), D("parallel", "io")],
    "positions": [D("parallel", "p")],
    "backwards": [D("reverse", "i")],
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("make", [sddmm, lambda: program(row(DOUBLE))], ids=["sddmm", "double"])
def test_rows_of_ascending_positions_run_in_any_order(make, name):
    procedure = make()
    done = apply_trace(procedure, STEPS[name])
    for seed in range(4):
        given, extents = arrays(procedure, np.random.default_rng(seed))
        expected = interpret(procedure, given, extents)["y"]
        assert np.array_equal(interpret(done, given, extents)["y"], expected)


def test_loops_around_a_row_change_places():
    inner = For("p", length(I), For("k", whole(4), Store("y", (PLACE,), X, "max")))
    start = For("q", length(I), Store("y", (add(at(I), Q),), f64(0.0)))
    procedure = program(For("i", Var("n"), Block((start, inner))))
    done = apply_trace(procedure, [D("reorder", "k", "p"), D("parallel", "i")])
    given, extents = arrays(procedure, np.random.default_rng(1))
    expected = interpret(procedure, given, extents)["y"]
    assert np.array_equal(interpret(done, given, extents)["y"], expected)


@needs_cc
def test_rows_run_on_several_threads_in_c(cache):
    procedure = sddmm()
    kernel = compiled(apply(procedure, D("parallel", "i")), cache)
    for seed in range(4):
        given, extents = arrays(procedure, np.random.default_rng(seed), n=9)
        expected = interpret(procedure, given, extents)["y"]
        assert np.array_equal(kernel(given, extents)["y"], expected)


def nested(second="rows"):
    """A compressed level under another: rows of rows."""
    outer = add(at(whole(0), "rows"), I)
    tensors = (
        Tensor("rows", (whole(2),), "int32", "input", facts=("ascending",)),
        Tensor("pos", (Var("n"),), "int32", "input", facts=("ascending",)),
        Tensor("y", (Var("m"),), "float64", "output"),
    )
    store = Store("y", (add(at(outer), P),), f64(1.0))
    nest = For("i", length(whole(0), second), For("p", length(outer), store))
    return verify(Procedure("f", ("n", "m"), tensors, nest))


def test_rows_of_rows_are_apart_too():
    done = apply(nested(), D("parallel", "i"))
    given = {"rows": np.array([0, 3], np.int32), "pos": np.array([0, 2, 2, 5], np.int32)}
    assert interpret(done, given, {"n": 4, "m": 5})["y"].tolist() == [1.0] * 5
    # The outer loop is no row of what starts it.
    with pytest.raises(ScheduleError, match="carries a dependence"):
        apply(nested("pos"), D("parallel", "i"))


def other_row(index):
    return add(at(index), P)


TWO = Cast("int64", Load("pos", (add(I, whole(2)),)))
REFUSED = {
    "not ascending": program(row(DOUBLE), facts=()),
    "one place further": program(row(Store("y", (add(PLACE, ONE),), X))),
    "one place before": program(row(Store("y", (sub(PLACE, ONE),), X))),
    "a longer row": program(row(DOUBLE, extent=add(length(I), ONE))),
    "two rows": program(row(DOUBLE, extent=sub(TWO, at(I)))),
    "a row of the next": program(row(DOUBLE, extent=length(add(I, ONE)))),
    "the row upside down": program(row(DOUBLE, extent=sub(at(I), at(add(I, ONE))))),
    "an extent of the procedure": program(row(DOUBLE, extent=Var("n"))),
    "every other place": program(
        row(Store("y", (add(at(I), Binary("mul", P, whole(2))),), X)),
    ),
    "the start twice": program(row(Store("y", (add(add(at(I), at(I)), P),), X))),
    "another pos": program(row(Store("y", (add(at(I, "other"), P),), X)), pos=("pos", "other")),
    "two pos": program(
        Block((row(DOUBLE, Store("y", (add(at(I, "other"), P),), X)),)), pos=("pos", "other")
    ),
    "read at another place": program(
        row(Store("y", (PLACE,), Load("y", (Cast("int64", Load("crd", (PLACE,))),))))
    ),
    "read in the next row": program(
        row(If(Binary("lt", I, ONE), Store("y", (PLACE,), Load("y", (Var("i"),)))), DOUBLE)
    ),
    "read in the row before": program(
        row(If(Binary("lt", ONE, I), Store("y", (PLACE,), Load("y", (at(sub(I, ONE)),)))))
    ),
    "one row for all": program(
        For(
            "i",
            Var("n"),
            For("p", length(whole(0)), Store("y", (add(at(whole(0)), P),), f64(1.0), "add")),
        )
    ),
    "two rows at once": program(
        For(
            "i",
            Var("n"),
            For(
                "p",
                length(Binary("floordiv", I, whole(2))),
                Store("y", (add(at(Binary("floordiv", I, whole(2))), P),), f64(1.0)),
            ),
        )
    ),
    "the difference of short numbers": program(
        row(
            DOUBLE,
            extent=Cast("int64", Binary("sub", Load("pos", (add(I, ONE),)), Load("pos", (I,)))),
        )
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_row_is_refused(name):
    with pytest.raises(ScheduleError, match="loop i carries a dependence"):
        apply(REFUSED[name], D("parallel", "i"))


def test_a_row_that_is_read_in_another_is_found():
    # The row before, by the same form: rows i and i - 1 meet.
    before = sub(I, ONE)
    inner = For("q", length(before), Store("y", (PLACE,), Load("y", (add(at(before), Q),))))
    guarded = If(Binary("lt", whole(0), I), For("p", length(I), inner))
    procedure = program(For("i", Var("n"), Block((guarded,))))
    with pytest.raises(ScheduleError, match=r"i=0|i=1"):
        apply(procedure, D("parallel", "i"))


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor("pos", (ONE,), "int32", "output", facts=("ascending",)),
        Tensor("pos", (ONE, ONE), "int32", "input", facts=("ascending",)),
        Tensor("pos", (), "int32", "input", facts=("ascending",)),
        Tensor("pos", (ONE,), "float32", "input", facts=("ascending",)),
        Tensor("pos", (ONE,), "bool", "input", facts=("ascending",)),
    ],
)
def test_a_fact_is_about_vectors_of_whole_numbers_that_are_given(tensor):
    with pytest.raises(VerifyError, match="expected a 1-D input of whole numbers to be ascending"):
        verify(Procedure("f", (), (tensor,), Block(())))


@pytest.mark.parametrize("facts", [("sorted",), ("ascending", "ascending")])
def test_facts_are_those_that_there_are(facts):
    tensor = Tensor("pos", (ONE,), "int32", "input", facts=facts)
    with pytest.raises(VerifyError, match="facts among ascending, once"):
        verify(Procedure("f", (), (tensor,), Block(())))


def test_a_fact_is_printed():
    assert "input pos: int32[n + 1] ascending, " in print_procedure(sddmm())
    assert "ascending" not in print_procedure(sddmm(facts=()))


@needs_cc
def test_positions_that_descend_are_refused_where_they_are_given(cache):
    procedure = program(row(DOUBLE))
    given, extents = arrays(procedure, np.random.default_rng(0))
    given["pos"] = np.array([0, 1, 2, 1, 1, extents["m"]], np.int32)
    with pytest.raises(InterpretError, match="pos: expected elements that ascend, found less at 3"):
        interpret(procedure, given, extents)
    with pytest.raises(CallError, match="pos: expected elements that ascend, found less at 3"):
        compiled(procedure, cache)(given, extents)
    plain = replace(procedure, tensors=tuple(replace(t, facts=()) for t in procedure.tensors))
    given["pos"] = np.array([0, 0, 0, 0, 0, 0], np.int32)
    assert compiled(plain, cache)(given, extents)["y"].shape == (extents["m"],)
