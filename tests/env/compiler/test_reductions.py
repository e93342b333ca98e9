"""The order of reductions: reassociate, rfactor, decompose_reduction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import add, f32, matmul, mul, tensor
from test_codegen import needs_cc

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.errors import ScheduleError, VerifyError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    For,
    If,
    Load,
    Procedure,
    Store,
    Tensor,
    Var,
    statements,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace

I, J, K = Var("i"), Var("j"), Var("k")  # noqa: E741
EXACT = ("-O2", "-ffp-contract=off")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def reduced(op="add", dtype="float32", m=5, k=19):
    """y[i] = the reduction of x[i, k] over k, and of 2."""
    start = Store("y", (Var("i_start"),), Const(2 if "int" in dtype else 2.0, dtype))
    update = For("k", whole(k), Store("y", (I,), Load("x", (I, K)), op))
    nests = Block((For("i_start", whole(m), start), For("i", whole(m), update)))
    tensors = (tensor("x", m, k, dtype=dtype), tensor("y", m, dtype=dtype, role="output"))
    return verify(Procedure("reduced", (), tensors, nests))


def after(procedure, text):
    trace = parse_trace(text)
    assert parse_trace(print_trace(trace)) == trace
    return apply_trace(verify(procedure), trace)


def refusal(procedure, text):
    with pytest.raises(ScheduleError) as caught:
        after(procedure, text)
    return str(caught.value)


def small(procedure, seed=0, extents=()):
    """Inputs that are small whole numbers: their sums and products are exact."""
    rng, given = np.random.default_rng(seed), {}
    for t in procedure.tensors:
        if t.role == "input":
            shape = [e.value if isinstance(e, Const) else dict(extents)[e.name] for e in t.shape]
            given[t.name] = rng.integers(1, 4, shape).astype(t.dtype)
    return given


def same_everywhere(procedure, text, cache, extents=None):
    """Interpreted before and after, and compiled."""
    procedure = verify(procedure)
    scheduled = after(procedure, text)
    inputs = small(procedure, extents=(extents or {}).items())
    wanted, found = interpret(procedure, inputs, extents), interpret(scheduled, inputs, extents)
    compiled = compile_procedure(procedure, parse_trace(text), cache=cache, flags=EXACT)
    compiled = compiled(inputs, extents or {})
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
        np.testing.assert_array_equal(compiled[name], array)
    return scheduled


RFACTORED = [
    "split('k', 8)\nrfactor('ki', 'P', True)\nvectorize('ki')\nvectorize('ki_start')\n",
    "split('k', 8)\nrfactor('ko', 'P', True)\nparallel('ko')\n",
    "rfactor('k', 'P', True)\nparallel('k')\n",
    "split('k', 8)\nreassociate('y')\nreorder('ki', 'ko')\nrfactor('ki')\nparallel('ki')\n",
    "split('k', 8)\nreorder('ko', 'i', 'ki')\nrfactor('ko', 'P', True)\nsplit('i_final', 2)\n",
    "split('k', 4)\nrfactor('ki', 'P', True)\nunroll('ki')\nunroll('ki_final')\n",
    "split('k', 8)\nsplit('ko', 2)\nrfactor('koi', 'P', True)\nrfactor('ki', 'Q')\n",
]


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize("text", RFACTORED)
def test_factored_reductions_compute_the_same(text, cache):
    same_everywhere(reduced(), text, cache)


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("add", "int32"),
        ("mul", "int64"),
        ("add", "uint8"),
        ("min", "int16"),
        ("max", "uint32"),
        ("min", "float32"),
        ("max", "float64"),
    ],
)
def test_exact_reductions_need_no_leave(op, dtype, cache):
    text = "split('k', 8)\nreorder('ki', 'ko')\nrfactor('ki')\n"
    scheduled = same_everywhere(reduced(op, dtype), text, cache)
    assert "reassociable" not in print_procedure(scheduled)


def test_whole_numbers_wrap_to_the_same_sum():
    procedure = reduced("add", "int32", 1, 6)
    x = np.array([[2**31 - 1, 2**31 - 1, 5, -(2**31), 7, 2**30]], np.int32)
    scheduled = after(procedure, "split('k', 2)\nrfactor('ki')")
    assert interpret(procedure, {"x": x})["y"] == interpret(scheduled, {"x": x})["y"]


@pytest.mark.parametrize("op", ["min", "max"])
def test_a_nan_anywhere_is_the_extreme(op):
    procedure = reduced(op, "float32", 3, 6)
    scheduled = after(procedure, "split('k', 4)\nreorder('ki', 'ko')\nrfactor('ki')")
    x = np.random.default_rng(0).standard_normal((3, 6)).astype(np.float32)
    x[0, 0], x[1, 5], x[2, 3] = np.nan, np.nan, -np.inf
    wanted, found = interpret(procedure, {"x": x})["y"], interpret(scheduled, {"x": x})["y"]
    np.testing.assert_array_equal(found, wanted)
    assert np.isnan(found[:2]).all()


def test_a_regrouped_sum_stays_within_the_bound_of_any_order():
    procedure = reduced("add", "float32", 8, 64)
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    scheduled = after(procedure, "split('k', 8)\nrfactor('ki', 'P', True)")
    found = interpret(scheduled, {"x": x})["y"].astype(np.float64)
    assert (found != interpret(procedure, {"x": x})["y"]).any()
    exact = 2 + x.astype(np.float64).sum(1)
    bound = 65 * np.finfo(np.float32).eps / 2 * (2 + np.abs(x.astype(np.float64)).sum(1))
    assert (np.abs(found - exact) <= bound).all()


def test_reduction_loops_change_places_only_with_leave():
    text = "split('k', 8)\nreorder('ki', 'ko')"
    message = refusal(reduced(), text)
    assert "reorder: the order ki ko turns a dependence around" in message
    assert "must run before" in message
    marked = after(reduced(), "reassociate('y')\n" + text)
    assert "# reassociable" in print_procedure(marked)


def test_leave_is_for_reductions_not_for_what_reads_them():
    """y[i] += y[i - 1]: a sum, and a chain."""
    chain = Store("y", (add(I, whole(1)),), Load("y", (I,)), "add")
    start = For("p", whole(6), Store("y", (Var("p"),), f32(1.0)))
    nest = For("j", whole(2), For("i", whole(5), chain))
    procedure = Procedure("f", (), (tensor("y", 6, role="output"),), Block((start, nest)))
    message = refusal(procedure, "reassociate('y')\nreorder('i', 'j')")
    assert "turns a dependence around" in message


def test_leave_is_not_to_meet():
    message = refusal(reduced(), "reassociate('y')\nparallel('k')")
    assert "loop k carries a dependence and cannot be parallel" in message


REFUSED = [
    (
        reduced(),
        "rfactor('k')",
        "regrouping add on float32 rounds differently; True as its third argument",
    ),
    (reduced(), "rfactor('i', 'P', True)", "loop i chooses the element of y and reduces nothing"),
    (reduced(), "rfactor('z', 'P', True)", "expected one of the loops"),
    (reduced(), "rfactor('k', 'P', 'yes')", "reassociate to be True or False, found 'yes'"),
    (reduced(), "rfactor('k', 'y', True)", "expected a free name for a tensor, found 'y'"),
    (reduced(), "rfactor('k', 'double', True)", "expected a free name for a tensor"),
    (reduced(), "unroll('k')\nrfactor('k', 'P', True)", "extent|a serial loop, found k unrolled"),
    (reduced(), "rfactor('i_start', 'P', True)", "one update alone in loop i_start"),
    (reduced(), "reassociate('x')", r"a tensor that is reduced into \(y\), found 'x'"),
    (reduced(), "decompose_reduction('x')", "one start and an update of x, found 0 and 0"),
    (reduced(), "decompose_reduction('y', 'i_start')", "expected one of the loops i, k, found"),
]


@pytest.mark.parametrize(("procedure", "text", "message"), REFUSED)
def test_refusals_say_why(procedure, text, message):
    with pytest.raises(ScheduleError, match=message):
        after(procedure, text)


def summed(extent, value=None, condition=None, shape=None):
    """y[i] += value under a condition, for i in 4 and k in extent; y starts as 1."""
    update = Store("y", (I,), value or Load("x", (I, K)), "add")
    body = update if condition is None else If(condition, update)
    start = For("p", whole(4), Store("y", (Var("p"),), f32(1.0)))
    nest = For("i", whole(4), For("k", extent, body))
    tensors = (tensor("x", 4, shape or 6), tensor("y", 4, role="output"))
    return Procedure("f", ("n",), tensors, Block((start, nest)))


def test_what_reads_its_own_result_is_not_factored():
    value = add(Load("x", (I, K)), Load("y", (whole(0),)))
    assert "the update of y reads y" in refusal(summed(whole(6), value), "rfactor('k', 'P', True)")


def test_partial_results_of_a_shape_that_varies_are_refused():
    message = refusal(summed(add(I, whole(1))), "rfactor('k', 'P', True)")
    assert "the partial results have no shape: the extent of k varies" in message


def test_a_guard_that_reads_memory_is_refused():
    condition = Binary("gt", Load("x", (I, K)), f32(0.0))
    message = refusal(summed(whole(6), condition=condition), "rfactor('k', 'P', True)")
    assert "expected affine loops, guards and indices around the update of y" in message


def test_an_element_that_nothing_is_added_to_is_not_touched():
    """Where i + k < 3 never holds, y may be undefined; a final sum would read it."""
    condition = Binary("lt", add(I, K), whole(3))
    message = refusal(
        summed(whole(6), condition=condition), "split('k', 2)\nrfactor('ki', 'P', True)"
    )
    assert "y[3] would be combined, and nothing was combined with it" in message


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize("n", [0, 1, 13])
def test_loops_that_may_not_run_are_asked_for(n, cache):
    procedure = summed(Var("n"), shape="n")
    text = "split('k', 4)\nrfactor('ki', 'P', True)\nvectorize('ki')"
    scheduled = same_everywhere(procedure, text, cache, {"n": n})
    assert "if 0 < " in print_procedure(scheduled)


DECOMPOSED = [
    "decompose_reduction('C', 'k')",
    "decompose_reduction('C', 'j')",
    "decompose_reduction('C', 'i')",
    "decompose_reduction('C', 'k')\ndecompose_reduction('C')",
    "split('i', 2)\nsplit('j', 4)\nreorder('io', 'jo', 'ii', 'k', 'ji')\n"
    "decompose_reduction('C', 'k')\nvectorize('ji')\nvectorize('ji_start')",
    "split('j', 4)\nreorder('i', 'jo', 'k', 'ji')\ndecompose_reduction('C', 'jo')\nparallel('i')",
    "split('k', 3)\ndecompose_reduction('C', 'ko')\nrfactor('ki', '', True)",
]


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize("text", DECOMPOSED)
def test_the_start_runs_where_it_is_told(text, cache):
    procedure = matmul(5, 6, 4)
    same_everywhere(procedure, "reorder('i', 'j', 'k')\n" + text, cache)


def test_a_start_is_not_repeated():
    message = refusal(matmul(5, 6, 4), "reorder('k', 'i', 'j')\ndecompose_reduction('C', 'i')")
    assert "an element of C would be touched before its start" in message
    assert "must run before" in message


def filled(extent, columns=5):
    """C[i] = i for i in 5, C[i] += A[i, k] for i in extent."""
    start = For("p", whole(5), Store("C", (Var("p"),), Load("B", (Var("p"),))))
    update = Store("C", (I,), Load("A", (I, K)), "add")
    nest = For("i", extent, For("k", whole(columns), update))
    tensors = (tensor("A", 5, columns), tensor("B", 5), tensor("C", 5, role="output"))
    return Procedure("f", (), tensors, Block((start, nest)))


def test_a_start_may_depend_on_its_element():
    scheduled = after(filled(whole(5)), "decompose_reduction('C', 'k')")
    assert "C[i] = B[i]" in print_procedure(scheduled)
    inputs = small(scheduled)
    wanted = interpret(verify(filled(whole(5))), inputs)["C"]
    np.testing.assert_array_equal(interpret(scheduled, inputs)["C"], wanted)


def test_all_elements_start():
    message = refusal(filled(whole(4)), "decompose_reduction('C', 'k')")
    assert "C[4] would no longer be started" in message


def test_no_other_element_starts():
    procedure = filled(whole(5))
    body = procedure.body.body
    procedure = Procedure(
        "f", (), procedure.tensors, Block((For("p", whole(4), body[0].body), body[1]))
    )
    assert "C[4] would be started, and was not" in refusal(
        procedure, "decompose_reduction('C', 'k')"
    )


def test_what_reads_between_start_and_update_keeps_the_start_away():
    procedure = filled(whole(5))
    start, nest = procedure.body.body
    look = For("q", whole(5), Store("D", (Var("q"),), Load("C", (Var("q"),))))
    tensors = (*procedure.tensors, tensor("D", 5, role="output"))
    read = Procedure("f", (), tensors, Block((start, look, nest)))
    message = refusal(read, "decompose_reduction('C', 'k')")
    assert "an element of C would be touched before its start" in message


def test_a_start_that_reads_what_may_have_changed_stays():
    start = For("p", whole(5), Store("C", (Var("p"),), Load("D", (Var("p"),))))
    first = For("q", whole(5), Store("D", (Var("q"),), f32(1.0)))
    nest = For("i", whole(5), For("k", whole(3), Store("C", (I,), f32(1.0), "add")))
    tensors = (tensor("C", 5, role="output"), tensor("D", 5, role="output"))
    procedure = Procedure("f", (), tensors, Block((first, start, nest)))
    assert "the start reads D" in refusal(procedure, "decompose_reduction('C', 'k')")


def test_a_temporary_in_a_loop_has_its_start_there():
    """Each t has a C of its own; its start moves within t."""
    t = Var("t")
    start = For("p", whole(3), Store("C", (Var("p"),), f32(0.0)))
    nest = For("i", whole(3), For("k", whole(4), Store("C", (I,), Load("A", (t, K)), "add")))
    out = For("q", whole(3), Store("y", (t, Var("q")), Load("C", (Var("q"),))))
    body = Allocate(Tensor("C", (whole(3),), "float32"), Block((start, nest, out)))
    tensors = (tensor("A", 2, 4), tensor("y", 2, 3, role="output"))
    procedure = verify(Procedure("f", (), tensors, For("t", whole(2), body)))
    scheduled = after(procedure, "decompose_reduction('C', 'k')")
    inputs = small(procedure)
    np.testing.assert_array_equal(
        interpret(scheduled, inputs)["y"], interpret(procedure, inputs)["y"]
    )


def some_trace(rng):
    """Directives about reductions among others, some of which will be refused."""
    loops = ["i", "j", "k", "ki", "ko", "ji", "jo", "ki_final", "i_start"]
    for _ in range(5):
        yield rng.choice(
            [
                f"split('{rng.choice(loops)}', {rng.choice([2, 3])})",
                f"reorder('{rng.choice(loops)}', '{rng.choice(loops)}')",
                f"rfactor('{rng.choice(loops)}', '', True)",
                f"decompose_reduction('C', '{rng.choice(loops)}')",
                "reassociate('C')",
                f"parallel('{rng.choice(loops)}')",
            ]
        )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False))
def test_any_legal_trace_with_reductions_keeps_the_meaning(rng):
    procedure = verify(matmul(3, 4, 5))
    scheduled = procedure
    for line in some_trace(rng):
        try:
            scheduled = apply_trace(scheduled, parse_trace(line))
        except ScheduleError:
            continue
    inputs = small(procedure)
    wanted, found = interpret(procedure, inputs), interpret(verify(scheduled), inputs)
    np.testing.assert_array_equal(found["C"], wanted["C"], err_msg=print_procedure(scheduled))


def some_nest(rng):
    """Reductions of several kinds into one tensor, some of which also read it, under two loops."""
    place = [I, J, whole(1), add(I, J), Binary("floordiv", add(I, J), whole(2))]
    steps = []
    for _ in range(rng.randint(1, 3)):
        value = rng.choice([Load("x", (I, J)), Load("y", (rng.choice(place),)), Const(2, "int32")])
        reduce = rng.choice(["add", "add", "min", "max", "mul", None])
        steps.append(Store("y", (rng.choice(place),), value, reduce))
    start = For("p", whole(7), Store("y", (Var("p"),), Const(3, "int32")))
    nest = For("i", whole(4), For("j", whole(4), Block(tuple(steps))))
    tensors = (tensor("x", 4, 4, dtype="int32"), tensor("y", 7, dtype="int32", role="output"))
    return verify(Procedure("f", (), tensors, Block((start, nest))))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False))
def test_reductions_that_change_places_are_of_one_kind(rng):
    """Whole numbers regroup without leave; what is accepted computes the same, overflow and all."""
    procedure = some_nest(rng)
    try:
        scheduled = apply_trace(procedure, parse_trace("reorder('j', 'i')"))
    except ScheduleError:
        return
    x = np.random.default_rng(rng.randint(0, 99)).integers(-9, 9, (4, 4)).astype(np.int32)
    wanted, found = interpret(procedure, {"x": x})["y"], interpret(scheduled, {"x": x})["y"]
    np.testing.assert_array_equal(found, wanted, err_msg=print_procedure(procedure))


def test_only_reductions_regroup():
    plain = Store("y", (whole(0),), f32(1.0), reassociable=True)
    with pytest.raises(VerifyError, match="expected a reduction that may be regrouped"):
        verify(Procedure("f", (), (tensor("y", 1, role="output"),), plain))


@needs_cc
@pytest.mark.cc
def test_split_k_runs_its_parts_in_parallel(cache):
    text = "split('k', 16)\nreorder('ko', 'i', 'j', 'ki')\nrfactor('ko', 'P', True)\nparallel('ko')"
    procedure = matmul(6, 7, 40)
    scheduled = same_everywhere(procedure, "reorder('i', 'j', 'k')\n" + text, cache)
    assert "for ko in 3:  # parallel" in print_procedure(scheduled)


@needs_cc
@pytest.mark.cc
def test_a_matmul_sums_in_lanes(cache):
    """Rows of A with rows of B: the products of a dot product lie side by side."""
    i, j, k = I, J, K
    start = For("p", whole(5), For("q", whole(3), Store("C", (Var("p"), Var("q")), f32(0.0))))
    update = Store("C", (i, j), mul(Load("A", (i, k)), Load("B", (j, k))), "add")
    nest = For("i", whole(5), For("j", whole(3), For("k", whole(21), update)))
    tensors = (tensor("A", 5, 21), tensor("B", 3, 21), tensor("C", 5, 3, role="output"))
    procedure = Procedure("f", (), tensors, Block((start, nest)))
    text = "split('k', 8)\nrfactor('ki', 'P', True)\nvectorize('ki')\nvectorize('ki_start')"
    scheduled = same_everywhere(procedure, text, cache)
    assert "f32x8" in generate(scheduled)


@pytest.mark.parametrize(
    "text",
    [
        "compute_at('t', 'p')",
        "compute_at('t', 'p')\nstore_root('t')\nfold_storage('t', 0)",
        "decompose_reduction('t', 'k')\nmerge('i', 'p')\nfold_storage('t', 0)",
        "pack('t', 'a -> a/2 a%2')",
        "cache_write('t', 'k')",
    ],
)
def test_leave_to_regroup_stays(text):
    x, k = te.placeholder("x", (5, 6)), te.reduce_axis("k", 6)
    t = te.compute("t", (5,), lambda i: te.reduce_sum(x[i, k], k), [x])
    y = te.compute("y", (5,), lambda p: t[p] * 2.0, [t])
    result = after(te.lower("rows", [y]), f"reassociate('t')\n{text}")
    updates = [s for s in statements(result.body) if isinstance(s, Store) and s.reduce is not None]
    assert updates
    assert all(s.reassociable for s in updates)


def test_a_start_does_not_leave_the_memory_that_it_starts():
    nest = For("k", whole(4), Store("t", (whole(0),), Load("x", (I, K)), "add"))
    use = Store("y", (I,), Load("t", (whole(0),)))
    body = Block((Store("t", (whole(0),), f32(0.0)), nest, use))
    loop = For("i", whole(3), Allocate(Tensor("t", (whole(1),), "float32"), body))
    tensors = (tensor("x", 3, 4), tensor("y", 3, role="output"))
    procedure = verify(Procedure("f", (), tensors, loop))
    assert "t lives inside loop i" in refusal(procedure, "decompose_reduction('t', 'i')")
