"""Skew, unimodular, wavefront and affine: loops that isl generates compute what the nest did."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_programs import filled
from programs import add, f32, in_turns, matmul, mul, tensor
from stencils import gauss_seidel, jacobi_expanded, jacobi_two_rows, one_sweep
from test_codegen import compiled, inputs_of, needs_cc
from test_schedule import PROGRAMS, blur, row_sum, transpose, triangular

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    For,
    If,
    Load,
    Procedure,
    Store,
    Tensor,
    Unary,
    Var,
    loops,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.poly.unimodular import unimodular_maps
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace, print_trace

I, J, K, T, N = Var("i"), Var("j"), Var("k"), Var("t"), Var("n")  # noqa: E741


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def seidel_with_extent():
    """One sweep over n x n, where n is known when it is called."""
    i1, j1 = add(I, whole(1)), add(J, whole(1))
    store = Store("A", (i1, j1), mul(add(Load("A", (I, j1)), Load("A", (i1, J))), f32(0.5)))
    p, q, edge = Var("p"), Var("q"), add(N, whole(1))
    fill = For("p", edge, For("q", edge, Store("A", (p, q), Cast_(add(p, mul(q, whole(2)))))))
    nest = For("i", N, For("j", N, store))
    tensors = (tensor("B", "n"), tensor("A", 9, 9, role="output"))
    rest = For("r", whole(9), For("s", whole(9), Store("A", (Var("r"), Var("s")), f32(0.0))))
    return Procedure("seidel", ("n",), tensors, Block((rest, fill, nest)))


def Cast_(node):  # noqa: N802 - a node
    from kernelwright.env.compiler.ir.nodes import Cast

    return Cast("float32", node)


def guarded_sum():
    """A reduction whose guard reads memory, inside a guard that is affine."""
    held = Binary("gt", Load("x", (I, J)), f32(3.0))
    store = If(held, Store("y", (I,), Load("x", (I, J)), "add"))
    body = If(Binary("le", J, add(I, whole(1))), store)
    fill = For("p", whole(5), Store("y", (Var("p"),), f32(0.0)))
    nest = For("i", whole(5), For("j", whole(6), body))
    tensors = (tensor("x", 5, 6), tensor("y", 5, role="output"))
    return Procedure("f", (), tensors, Block((fill, nest)))


def with_temporary():
    """A temporary of its own in every iteration, and a loop inside."""
    t = tensor("t", 3, role="temporary")
    k = Var("k")
    body = Block(
        (
            For("k", whole(3), Store("t", (k,), mul(Load("x", (I, J)), f32(2.0)))),
            For("m", whole(3), Store("y", (J, I, Var("m")), Load("t", (Var("m"),)))),
        )
    )
    nest = For("i", whole(4), For("j", whole(5), Allocate(t, body)))
    return Procedure("f", (), (tensor("x", 4, 5), tensor("y", 5, 4, 3, role="output")), nest)


def pairs():
    """A nest whose parts depend on each other, in a loop around."""
    first = Store("A", (T, add(I, whole(1))), mul(Load("B", (T, I)), f32(0.5)))
    second = Store("B", (add(T, whole(1)), I), add(Load("A", (T, I)), Load("B", (T, I))))
    inner = For("i", whole(6), Block((first, second)))
    p, q = Var("p"), Var("q")
    fills = [
        For("p", whole(6), For("q", whole(8), Store("A", (p, q), f32(1.0)))),
        For("r", whole(6), For("s", whole(8), Store("B", (Var("r"), Var("s")), f32(2.0)))),
    ]
    tensors = (tensor("A", 6, 8, role="output"), tensor("B", 6, 8, role="output"))
    return Procedure("pairs", (), tensors, Block((*fills, For("t", whole(5), inner))))


# Program, and schedules of it that must be accepted.
ACCEPTED = [
    (one_sweep(), "wavefront('i', 'j')\nparallel('i')"),
    (one_sweep(), "wavefront('i', 'j')\nsplit('i', 4)\nvectorize('ii')"),
    (one_sweep(), "unimodular('i', 'j', 1, 1, 0, 1)\nparallel('j')"),
    (one_sweep(), "unimodular('i', 'j', 1, 0, 0, 1, 2, 3)"),
    (one_sweep(), "tile('i', 'j', 2, 3)\nwavefront('io', 'jo')\nparallel('io')"),
    (one_sweep(), "affine('i')\nwavefront('i', 'j')\nparallel('i')"),
    (one_sweep(), "affine('i', 3, 'smartfuse', True)"),
    (one_sweep(), "skew('i', 'j', 1)\nreorder('i_j', 'i')\nparallel('i')"),
    (one_sweep(), "skew('i', 'j', 2, 'w')\nreorder('w', 'i')\nparallel('i')\nsplit('w', 4)"),
    (jacobi_expanded(), "skew('t', 'i', 1)\ntile('t', 't_i', 2, 3)"),
    (jacobi_expanded(), "unimodular('t', 'i', 1, 0, 1, 1, 2, 3)"),
    (jacobi_expanded(), "unimodular('t', 'i', 1, 0, 1, 1, 4, 4)\nunroll('t_ii')"),
    (jacobi_expanded(), "unimodular('t', 'i', 2, 1, 1, 0)\nparallel('t')"),
    (jacobi_expanded(), "affine('t', 3)"),
    (jacobi_expanded(), "affine('t', 3, 'smartfuse', True)"),
    (jacobi_two_rows(), "unimodular('t', 'i', 1, 0, 1, 1, 3, 4)"),
    (jacobi_two_rows(), "affine('t', 4, 'smartfuse', True)"),
    (jacobi_two_rows(), "skew('t', 'i', 1)\nreorder('t_i', 't')"),
    (gauss_seidel(3, 5), "unimodular('t', 'i', 'j', 1, 0, 0, 1, 1, 0, 1, 0, 1, 2, 3, 4)"),
    (gauss_seidel(3, 5), "wavefront('i', 'j')\nparallel('i')"),
    (gauss_seidel(3, 5), "unimodular('t', 'i', 'j', 2, 1, 0, 1, 0, 0, 0, 0, 1)"),
    (gauss_seidel(3, 5), "affine('t', 2, 'smartfuse', True)"),
    (gauss_seidel(3, 5), "affine('i')\nwavefront('i', 'j')\nparallel('i')"),
    (matmul(5, 6, 4), "unimodular('i', 'k', 'j', 0, 0, 1, 1, 0, 0, 0, 1, 0)"),
    (matmul(5, 6, 4), "wavefront('i', 'k', 'j')"),
    (matmul(5, 6, 4), "affine('i', 4, 'maxfuse', True)\nparallel('io')"),
    (matmul(5, 6, 4), "affine('i', 0, 'maxfuse')"),
    (
        matmul(8, 8, 4),
        "unimodular('i', 'k', 'j', 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 2, 4)\nvectorize('ji')",
    ),
    (transpose(), "unimodular('i', 'j', 0, 1, -1, 0)"),
    (transpose(), "unimodular('i', 'j', -1, 0, 3, 1, 2, 2)"),
    (transpose(), "split('i', 2)\nsplit('j', 4)\nwavefront('io', 'ii', 'jo', 'ji')"),
    (transpose(), "skew('i', 'j', -2)\nskew('i', 'i_j', 1)"),
    (transpose(), "wavefront('i', 'j')\nwavefront('i_j', 'i')"),
    (triangular(), "wavefront('i', 'j')\nparallel('i')"),
    (triangular(), "unimodular('i', 'j', 0, 1, 1, 0)"),
    (triangular(), "affine('i', 2, 'nofuse', True)"),
    (triangular(), "affine('i', 0, 'maxfuse')"),
    (blur(), "affine('i', 0, 'maxfuse')"),
    (blur(), "affine('i', 3, 'maxfuse', True)"),
    (blur(), "affine('p', 4, 'smartfuse', True)"),
    (row_sum(), "affine('i', 0, 'nofuse')"),
    (row_sum(), "affine('i', 2)"),
    (pairs(), "affine('t')"),
    (pairs(), "affine('t', 2, 'nofuse')"),
    (pairs(), "affine('t', 2, 'smartfuse', True)"),
    (pairs(), "affine('i')"),
    (pairs(), "skew('t', 'i', 1)"),
    (with_temporary(), "wavefront('i', 'j')\nparallel('i_j')"),
    (with_temporary(), "unimodular('i', 'j', 0, 1, -1, 0, 2, 2)"),
    (guarded_sum(), "unimodular('i', 'j', 1, 1, 1, 0)"),
    (guarded_sum(), "skew('i', 'j', 3)\nreorder('i_j', 'i')"),
    (seidel_with_extent(), "wavefront('i', 'j')\nparallel('i')"),
    (seidel_with_extent(), "unimodular('i', 'j', 1, 1, 1, 0, 2, 3)"),
    (seidel_with_extent(), "skew('i', 'j', 2)\ntile('i', 'i_j', 2, 3)"),
    (seidel_with_extent(), "skew('i', 'j', -1)"),
    (seidel_with_extent(), "affine('i', 2, 'smartfuse', True)"),
    (seidel_with_extent(), "affine('p', 0, 'maxfuse')"),
]


def same(procedure, trace, run):
    """``run`` computes what the procedure does, for no, one, few and some iterations."""
    for size in (0, 1, 2, 7) if procedure.extents else (0,):
        extents = dict.fromkeys(procedure.extents, size)
        inputs = {"B": np.zeros(size, np.float32)} if extents else inputs_of(procedure)
        wanted, got = interpret(procedure, inputs, extents), run(inputs, extents)
        for name, array in wanted.items():
            np.testing.assert_array_equal(got[name], array, err_msg=f"{extents}\n{trace}")


@pytest.mark.parametrize(("procedure", "text"), ACCEPTED)
def test_the_result_is_the_same_to_the_last_bit(procedure, text):
    trace = parse_trace(text)
    assert parse_trace(print_trace(trace)) == trace
    after = apply_trace(verify(procedure), trace)
    same(procedure, print_procedure(after), lambda x, n: interpret(verify(after), x, n))


@pytest.mark.parametrize("domain", [(5, 3), (2, 4, 3)])
@pytest.mark.parametrize("separate", [False, True])
def test_a_band_inside_a_tiled_band_has_its_names(domain, separate):
    x, y, r = te.Var("x"), te.Var("y"), te.RDom("r", *((0, n) for n in domain))
    source, f = te.placeholder("source", (12, 12)), te.Func("f")
    f[x, y] = te.reduce_sum(source[x + r.x, y + r.y], r)
    procedure = te.lower("box", [f.realize(7, 9)])
    after = apply_trace(procedure, parse_trace(f"affine('x', 2, 'smartfuse', {separate})"))
    same(procedure, print_procedure(after), lambda x, n: interpret(verify(after), x, n))


@needs_cc
@pytest.mark.parametrize(("procedure", "text"), in_turns(ACCEPTED))
def test_the_c_computes_the_same(cache, procedure, text):
    lowered = lower(procedure, parse_trace(text))
    kernel = compiled(lowered.procedure, cache, ("-O1", "-ffp-contract=off"))
    same(procedure, lowered.source, kernel)


def test_every_map_with_small_entries_is_right_or_refused():
    """On a sweep with distances (1, 0) and (0, 1): legal maps compute the same, and those that the
    distances forbid are refused with a pair.
    """
    procedure = verify(one_sweep(3, 4))
    inputs = inputs_of(procedure)
    wanted = interpret(procedure, inputs)["A"]
    accepted = 0
    for map_ in unimodular_maps(2, 2):
        entries = ", ".join(str(entry) for row in map_.rows for entry in row)
        columns = list(zip(*map_.rows, strict=True))
        legal = all(column > (0, 0) for column in columns)
        trace = parse_trace(f"unimodular('i', 'j', {entries})")
        if not legal:
            with pytest.raises(ScheduleError, match="turns a dependence around") as caught:
                apply_trace(procedure, trace)
            assert "must run before" in caught.value.conflict
            continue
        accepted += 1
        after = apply_trace(procedure, trace)
        np.testing.assert_array_equal(interpret(after, inputs)["A"], wanted, err_msg=entries)
    assert 10 < accepted < 104


REFUSED = [
    (
        jacobi_expanded(),
        "unimodular('t', 'i', 0, 1, 1, 0)",
        r"turns a dependence around \(.*before",
    ),
    (
        jacobi_expanded(),
        "unimodular('t', 'i', 1, 0, 0, 1, 2, 3)",
        r"in tiles of 2 x 3 of \(t, i\) turns a dependence around \(.*must run before",
    ),
    (gauss_seidel(), "wavefront('t', 'i')\nparallel('t')", r"loop t carries .*must run before"),
    (one_sweep(), "parallel('j')", r"carries a dependence .*must run before"),
    (
        one_sweep(),
        "wavefront('i', 'j')\nparallel('i_j')",
        r"carries a dependence .*must run before",
    ),
    (jacobi_expanded(), "skew('t', 'i', 1)\nparallel('t_i')\nreorder('t_i', 't')", "before"),
    (transpose(), "unimodular('i', 'j', 1, 0, 0, 2)", "determinant of 1 or -1, found 2"),
    (transpose(), "unimodular('i', 'j', 1, 0, 0)", "expected 4 entries for 2 loops, or 2 sizes"),
    (transpose(), "unimodular('i', 1, 'j', 0, 0, 1)", "expected loops and then whole numbers"),
    (transpose(), "unimodular('i', 'j', 1, 0, 0, True)", "whole numbers, found True"),
    (transpose(), "unimodular('i', 'j', 1, 0, 0, 1.0)", "whole numbers, found 1.0"),
    (transpose(), "unimodular('i', 'j', 1, 0, 99, 1)", "entries from -64 to 64"),
    (transpose(), "unimodular('i', 'j', 1, 0, 0, 1, 2, 0)", "a size of tile of at least 1"),
    (transpose(), "unimodular('j', 'i', 1, 0, 0, 1)", "loop i directly inside loop j"),
    (transpose(), "unimodular('i', 'i', 1, 0, 0, 1)", "expected different loops"),
    (transpose(), "unimodular('i', 'k', 1, 0, 0, 1)", "expected one of the loops i, j"),
    (transpose(), "parallel('i')\nwavefront('i', 'j')", "a serial loop, found i parallel"),
    (transpose(), "wavefront('i', 3)", "expected loops, found 3"),
    (row_sum(), "wavefront('i', 'j')", "loop j directly inside loop i"),
    (transpose(), "skew('i', 'j', 0)", "other than 0, found 0"),
    (transpose(), "skew('i', 'j', 65)", "from -64 to 64 other than 0, found 65"),
    (transpose(), "skew('i', 'j', 1.5)", "a factor from -64 to 64"),
    (transpose(), "skew('i', 'j', 1, 'x')", "a free name for a loop, found 'x'"),
    (triangular(), "skew('i', 'j', 1)", "the extent of j depends on i"),
    (transpose(), "affine('i', 1)", "a size of tile .* of at least 2, found 1"),
    (transpose(), "affine('i', 4, 'fuse')", "one of nofuse, smartfuse, maxfuse, found 'fuse'"),
    (transpose(), "affine('i', 0, 'nofuse', True)", "a size of tile where full tiles"),
    (transpose(), "affine('i', 4, 'nofuse', 1)", "separate to be a bool, found 1"),
    (transpose(), "parallel('j')\naffine('i')", "a serial loop, found j parallel"),
    (with_temporary(), "affine('i')", "loops, guards and stores, found allocate"),
    (guarded_sum(), "affine('i')", r"the condition around y\[i\]: expected an affine .*x\[i, j\]"),
]


@pytest.mark.parametrize(("procedure", "text", "message"), REFUSED)
def test_what_may_not_be_is_refused_with_a_reason(procedure, text, message):
    with pytest.raises(ScheduleError, match=message):
        apply_trace(verify(procedure), parse_trace(text))


def test_what_is_not_affine_is_refused_by_name():
    tensors = (tensor("at", 8, dtype="int64"), tensor("x", 8), tensor("y", 8, role="output"))
    gather = Store("y", (I,), Load("x", (Load("at", (I,)),)))
    procedure = Procedure("f", (), tensors, For("i", whole(8), gather))
    wanted = r"index 0 of the load of x in the store to y\[i\]: expected an affine .*found at\[i\]"
    with pytest.raises(ScheduleError, match=wanted):
        apply_trace(procedure, parse_trace("affine('i')"))


def test_extents_and_guards_that_read_memory_stay_where_they_are():
    tensors = (tensor("n", 4, dtype="int64"), tensor("y", 4, 9, role="output"))
    fill = For("p", whole(4), For("q", whole(9), Store("y", (Var("p"), Var("q")), f32(0.0))))
    nest = For("i", whole(4), For("j", Load("n", (I,)), Store("y", (I, J), f32(1.0))))
    procedure = Procedure("f", (), tensors, Block((fill, nest)))
    with pytest.raises(ScheduleError, match="the extent of j reads n"):
        apply_trace(procedure, parse_trace("wavefront('i', 'j')"))
    square = For("i", whole(4), For("j", mul(I, I), Store("y", (I, J), f32(1.0))))
    procedure = Procedure("f", (), tensors, Block((fill, square)))
    with pytest.raises(ScheduleError, match=r"an affine extent of j, found i \* i"):
        apply_trace(procedure, parse_trace("wavefront('i', 'j')"))


@pytest.mark.parametrize("text", ["affine('i')", "affine('i', 4, 'maxfuse')"])
def test_a_loop_that_never_runs_has_a_schedule(text):
    nest = For("i", whole(0), Store("y", (I,), add(Load("y", (I,)), f32(1.0))))
    fill = For("p", whole(4), Store("y", (Var("p"),), f32(0.0)))
    procedure = Procedure("f", (), (tensor("y", 4, role="output"),), Block((fill, nest)))
    found = apply_trace(procedure, parse_trace(text))
    assert interpret(found, {})["y"].tolist() == [0.0] * 4


def test_where_isl_finds_no_schedule_the_directive_is_refused():
    """By a distance that is a variable of a loop outside isl (0.27) gives up."""
    place = add(K, whole(3))
    store = Store("y", (place,), add(Load("y", (add(J, K),)), f32(1.0)))
    nest = For("j", whole(2), For("u", whole(1), For("k", N, store)))
    size = add(N, whole(3))
    fill = For("p", size, Store("y", (Var("p"),), f32(0.0)))
    tensors = (Tensor("y", (size,), "float32", "output"),)
    procedure = verify(Procedure("f", ("n",), tensors, Block((fill, nest))))
    with pytest.raises(ScheduleError, match=r"isl finds no schedule: .*unable to carry"):
        apply_trace(procedure, parse_trace("affine('u')"))


ENDLESS = """
affine('t', 4)
unimodular('ti', 't_ii', 0, 1, 1, 0)
peel('t_ii', 2, 1)
"""


def test_what_isl_does_not_come_to_an_end_of_is_refused():
    i1, j1, size = add(I, whole(1)), add(J, whole(1)), add(N, whole(2))
    places = ((I, j1), (i1, J), (i1, add(J, whole(2))), (add(I, whole(2)), j1))
    store = Store("A", (i1, j1), mul(add(*(Load("A", place) for place in places)), f32(0.25)))
    nest = For("t", Binary("sub", N, whole(2)), For("i", N, For("j", N, store)))
    procedure = filled("A", size, size, nest, ("n",))
    *before, last = parse_trace(ENDLESS)
    procedure = apply_trace(procedure, before)
    with pytest.raises(ScheduleError, match=r"peel: .*in 4000000 steps of isl"):
        apply(procedure, last)


def test_a_copied_temporary_is_refused():
    """Full tiles apart from the others write a body twice; an instruction stays as it is."""
    body = Store("y", (J, I), Unary("sqrt", Load("x", (I, J))))
    tensors = (tensor("x", 5, 6), tensor("y", 6, 5, role="output"))
    called = Procedure("f", (), tensors, For("i", whole(5), For("j", whole(6), Call("mma", body))))
    after = apply_trace(verify(called), parse_trace("wavefront('i', 'j')"))
    assert "mma" in print_procedure(after)
    with pytest.raises(ScheduleError, match="found call"):
        apply_trace(verify(called), parse_trace("affine('i')"))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["transpose", "matmul", "one_sweep", "jacobi", "triangular"]),
    st.integers(0, 10**6),
    st.sampled_from([(), (2, 3, 2), (3, 4, 5), (1, 2, 4)]),
)
def test_any_map_that_is_accepted_keeps_the_meaning(name, number, tiles):
    procedure = {**PROGRAMS, "one_sweep": one_sweep(3, 4), "jacobi": jacobi_two_rows(4, 5)}[name]
    chain = [loop.var for loop in loops(procedure) if loop.var in ("t", "i", "k", "j")]
    maps = unimodular_maps(len(chain), 4 - len(chain))
    rows = maps[number % len(maps)].rows
    numbers = [*(entry for row in rows for entry in row), *tiles[: len(chain)]]
    arguments = ", ".join([*map(repr, chain), *map(str, numbers)])
    try:
        after = apply_trace(verify(procedure), parse_trace(f"unimodular({arguments})"))
    except ScheduleError:
        return
    inputs = inputs_of(procedure)
    for key, array in interpret(procedure, inputs).items():
        np.testing.assert_array_equal(interpret(after, inputs)[key], array, err_msg=arguments)


def test_a_nest_for_which_isl_finds_no_schedule_is_refused():
    """isl's scheduler gives up on this one with an error of its own."""

    def at(*terms):
        out = whole(24)
        for factor, name in terms:
            out = Binary("add" if factor > 0 else "sub", out, Var(name))
        return out

    read = Load("p", (at((1, "i")), at((1, "i"))))
    place = (at((-1, "j"), (1, "k")), Binary("add", at((1, "i"), (-1, "j")), whole(1)))
    store = Store("p", place, Binary("add", Load("x", (whole(0), whole(0))), read))
    nest = For("i", whole(3), For("j", whole(3), For("k", whole(2), store)))
    tensors = (tensor("x", 1, 1), tensor("p", 48, 48, role="output"))
    with pytest.raises(ScheduleError, match="affine: isl finds no schedule"):
        apply_trace(Procedure("f", (), tensors, nest), parse_trace("affine('i')"))


def test_what_commutes_may_be_reversed_as_by_reverse():
    """The greatest of a row does not depend on the order; a sum's rounding does."""
    x, k = te.placeholder("x", (3, 4)), te.reduce_axis("k", 4)
    greatest = te.lower("m", [te.compute("y", (3,), lambda i: te.reduce_max(x[i, k], k))])
    total = te.lower("s", [te.compute("y", (3,), lambda i: te.reduce_sum(x[i, k], k))])
    given = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}
    back = parse_trace("unimodular('i', 'k', 1, 0, 0, -1)")
    after = apply_trace(greatest, back)
    np.testing.assert_array_equal(interpret(after, given)["y"], interpret(greatest, given)["y"])
    with pytest.raises(ScheduleError, match="turns a dependence around"):
        apply_trace(total, back)
