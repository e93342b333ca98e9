from __future__ import annotations

import inspect
import random
from pathlib import Path

import numpy as np
import pipelines
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import add, elementwise, f32, matmul, mul, tensor
from sparse_nests import added, mttkrp, spmm, spmv
from test_codegen import compiled, inputs_of, needs_cc
from test_poly import jacobi, seidel

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Store,
    Unary,
    Var,
    loops,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure, lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule import known_directives
from kernelwright.env.compiler.schedule.trace import (
    TraceError,
    apply,
    apply_trace,
    directive_function,
    parse_trace,
    print_trace,
    steps,
)
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Directive

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "schedule"
I, J = Var("i"), Var("j")  # noqa: E741


def D(op, *arguments):  # noqa: N802 - short on purpose
    return Directive(op, arguments[0], tuple(arguments[1:]))


def transpose(m=5, n=6):
    nest = For("i", whole(m), For("j", whole(n), Store("y", (J, I), Load("x", (I, J)))))
    return Procedure("transpose", (), (tensor("x", m, n), tensor("y", n, m, role="output")), nest)


def row_sum(m=5, n=6):
    body = Block(
        (Store("y", (I,), f32(0.0)), For("j", whole(n), Store("y", (I,), Load("x", (I, J)), "add")))
    )
    return Procedure(
        "row_sum", (), (tensor("x", m, n), tensor("y", m, role="output")), For("i", whole(m), body)
    )


def blur(m=6, n=7):
    t = tensor("t", m + 2, n, role="output")
    across = [Load("x", (I, add(J, whole(d)))) for d in (0, 1, 2)]
    p, q = Var("p"), Var("q")
    down = [Load("t", (add(p, whole(d)), q)) for d in (0, 1, 2)]
    first = For(
        "i", whole(m + 2), For("j", whole(n), Store("t", (I, J), mul(add(*across), f32(0.25))))
    )
    second = For("p", whole(m), For("q", whole(n), Store("y", (p, q), mul(add(*down), f32(0.25)))))
    return Procedure(
        "blur",
        (),
        (tensor("x", m + 2, n + 2), t, tensor("y", m, n, role="output")),
        Block((first, second)),
    )


def triangular(n=5):
    tensors = (tensor("x", n, n), tensor("y", n, n, role="output"))
    fill = For("p", whole(n), For("q", whole(n), Store("y", (Var("p"), Var("q")), f32(0.0))))
    nest = For(
        "i",
        whole(n),
        For("j", add(I, whole(1)), Store("y", (I, J), Unary("sqrt", Load("x", (I, J))))),
    )
    return Procedure("triangular", (), tensors, Block((fill, nest)))


def symbolic():
    nest = For("i", Var("n"), Store("y", (I,), mul(Load("x", (I,)), f32(2.0))))
    return Procedure("f", ("n",), (tensor("x", "n"), tensor("y", "n", role="output")), nest)


def copied_tiles(count=4, size=3):
    """Blocks of x that are copied before they are used."""
    k, a, b = Var("k"), Var("a"), Var("b")
    start = mul(k, whole(size))
    load = For("a", whole(size), Store("t", (a,), Load("x", (add(start, a),))))
    use = For("b", whole(size), Store("y", (add(start, b),), mul(Load("t", (b,)), f32(2.0))))
    tile = Allocate(tensor("t", size, role="temporary"), Block((load, use)))
    tensors = (tensor("x", count * size), tensor("y", count * size, role="output"))
    return Procedure("f", (), tensors, For("k", whole(count), tile))


PROGRAMS = {
    "matmul": matmul(5, 6, 4),
    "transpose": transpose(),
    "row_sum": row_sum(),
    "blur": blur(),
    "triangular": triangular(),
}


def whole_blocks():
    """A loop that runs where its extent is a multiple of 8, and what runs elsewhere."""
    left = Binary("mod", Var("n"), whole(8))
    blocks = For("i", Var("n"), Store("y", (I,), Load("x", (I,))))
    rest = For("p", Var("n"), Store("y", (Var("p"),), Load("x", (Var("p"),))))
    nest = Block((If(Binary("eq", left, whole(0)), blocks), If(Binary("ne", left, whole(0)), rest)))
    tensors = (tensor("x", "n"), tensor("y", "n", role="output"))
    return Procedure("whole_blocks", ("n",), tensors, nest)


# One golden a directive: the nest it is shown on, and the calls.
SHOWN = {
    "split": (transpose(), [D("split", "i", 2)]),
    "fuse": (transpose(), [D("fuse", "i", "j")]),
    "reorder": (matmul(4, 8, 4), [D("reorder", "k", "j", "i")]),
    "tile": (transpose(8, 8), [D("tile", "i", "j", 4, 4)]),
    "unroll": (transpose(4, 2), [D("unroll", "j")]),
    "vectorize": (matmul(4, 8, 4), [D("vectorize", "j")]),
    "parallel": (matmul(4, 8, 4), [D("parallel", "i")]),
    "skew": (jacobi(), [D("skew", "t", "i", 1), D("reorder", "t_i", "t")]),
    "unimodular": (jacobi(), [D("unimodular", "t", "i", 1, 0, 1, 1, 2, 4)]),
    "wavefront": (seidel(), [D("wavefront", "i", "j"), D("parallel", "i")]),
    "affine": (matmul(4, 8, 4), [D("affine", "i", 0, "maxfuse")]),
    "reverse": (transpose(4, 2), [D("reverse", "i")]),
    "fission": (row_sum(), [D("fission", "i", "j")]),
    "merge": (row_sum(), [D("fission", "i", 1), D("merge", "i", "i_second")]),
    "peel": (transpose(), [D("peel", "i", 1, 1)]),
    "partition": (transpose(), [D("split", "i", 2), D("partition", "io")]),
    "specialize": (symbolic(), [D("split", "i", 4), D("specialize", "n % 4 == 0")]),
    "unroll_and_jam": (matmul(5, 8, 4), [D("unroll_and_jam", "i", 2)]),
    "software_pipeline": (copied_tiles(), [D("software_pipeline", "k")]),
    "rename": (transpose(), [D("rename", "i", "row")]),
    "add_unit_loop": (transpose(), [D("add_unit_loop", "i", "once")]),
    "prefetch": (blur(), [D("prefetch", "x", "i", 2)]),
    "stream_store": (transpose(), [D("stream_store", "y")]),
    "register_tile": (
        matmul(8, 32, 4),
        [
            D("split", "i", 4),
            D("split", "j", 16),
            D("split", "ji", 8, "ju", "jv"),
            D("reorder", "io", "jo", "k", "ii", "ju", "jv"),
            D("unroll", "ii"),
            D("unroll", "ju"),
            D("vectorize", "jv"),
        ],
    ),
    "compute_root": (pipelines.blur(4, 5), [D("compute_root", "a")]),
    "compute_inline": (pipelines.blur(4, 5), [D("compute_inline", "a")]),
    "compute_at": (pipelines.blur(4, 6), [D("tile", "p", "q", 2, 4), D("compute_at", "a", "qo")]),
    "reverse_compute_at": (
        pipelines.matmul_relu(4, 8, 4),
        [D("tile", "i", "j", 2, 4), D("reverse_compute_at", "D", "jo")],
    ),
    "store_root": (pipelines.blur(4, 5), [D("compute_at", "a", "p"), D("store_root", "a")]),
    "store_at": (
        pipelines.blur(9, 5),
        [D("split", "p", 4), D("compute_at", "a", "pi"), D("store_at", "a", "po")],
    ),
    "fold_storage": (
        pipelines.blur(4, 5),
        [D("compute_at", "a", "p"), D("store_root", "a"), D("fold_storage", "a", 0)],
    ),
    "reassociate": (
        matmul(4, 8, 4),
        [D("split", "k", 2), D("reassociate", "C"), D("reorder", "ki", "ko")],
    ),
    "rfactor": (
        row_sum(5, 19),
        [D("split", "j", 8), D("rfactor", "ji", "P", True), D("vectorize", "ji")],
    ),
    "decompose_reduction": (
        matmul(5, 6, 4),
        [D("reorder", "i", "j", "k"), D("decompose_reduction", "C", "k")],
    ),
    "bind": (
        transpose(64, 48),
        [D("split", "i", 16), D("bind", "io", "block.x"), D("bind", "ii", "thread.x")],
    ),
    "barrier": (
        row_sum(5, 19),
        [
            D("split", "j", 8),
            D("rfactor", "ji", "P", True),
            D("reorder", "ji", "jo"),
            D("set_scope", "P", "shared"),
            D("barrier", "ji_final"),
            D("bind", "i", "block.x"),
            D("bind", "ji_start", "thread.x", "ji"),
        ],
    ),
    "tensorize": (
        matmul(8, 16, 5),
        [D("reorder", "k", "i", "j"), D("tensorize", "k", "fma_8x16_f32")],
    ),
    "cache_read": (matmul(4, 7, 4), [D("split", "j", 3), D("cache_read", "B", "jo", "stack")]),
    "cache_write": (matmul(4, 8, 4), [D("cache_write", "C", "i")]),
    "scalar_replacement": (row_sum(), [D("scalar_replacement", "y", "j")]),
    "pack": (matmul(4, 7, 4), [D("pack", "B", "k j -> j/4 k j%4", "", "heap", "zero")]),
    "reorder_storage": (
        matmul(4, 8, 4),
        [D("cache_read", "A"), D("reorder_storage", "A_read", 1, 0)],
    ),
    "storage_align": (
        matmul(4, 8, 4),
        [D("cache_read", "B"), D("storage_align", "B_read", 0, 16, 1)],
    ),
    "set_scope": (matmul(4, 8, 4), [D("cache_read", "B"), D("set_scope", "B_read", "heap")]),
    "bound_storage": (
        matmul(4, 8, 4),
        [D("cache_read", "B"), D("bound_storage", "B_read", 1, 12)],
    ),
    "pad": (
        matmul(4, 7, 4),
        [
            D("split", "j", 4),
            D("pack", "B", "k j -> j/4 k j%4", "", "auto", "zero"),
            D("cache_write", "C", "i"),
            D("pad", "C_write", 1, 4),
        ],
    ),
    "bound": (whole_blocks(), [D("split", "i", 4), D("bound", "io", "n", 4)]),
    "storage": (spmv(), [D("storage", "A", "dcsr")]),
    "order": (spmm(), [D("order", "i", "j", "k")]),
    "workspace": (added(), [D("workspace", "j")]),
    "precompute": (mttkrp(), [D("precompute", "j", "T(i,j,k) * D(k,r)", "r")]),
    "split_coordinates": (spmv(), [D("split_coordinates", "j", 64)]),
    "split_nonzeros": (spmm(), [D("split_nonzeros", "A", 8), D("parallel", "part")]),
}


@pytest.mark.parametrize("name", SHOWN)
def test_directives_do_what_was_reviewed(name, request):
    procedure, trace = SHOWN[name]
    text = "".join(f"# {line}\n" for line in print_trace(trace).splitlines())
    text += print_procedure(apply_trace(verify(procedure), trace))
    path = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path} differs; look at it, then run with --update-golden"


def test_every_directive_is_shown_and_documented():
    for op in known_directives():
        assert op in SHOWN
        doc = inspect.getdoc(directive_function(op))
        assert "Before::" in doc
        assert "After" in doc
        assert "Raises:" in doc


REFUSED = [
    (matmul(), D("split", "i", 2**40), "a factor of at least 1"),
    (matmul(), D("split", "i", 2, True), "a free name for a loop, found True"),
    (matmul(), D("vectorize", "k"), "expected an extent|carries a dependence"),
    (matmul(4, 8, 8), D("vectorize", "k"), "loop k carries a dependence and cannot be vectorized"),
    (matmul(), D("parallel", "k"), "loop k carries a dependence and cannot be parallel"),
    (
        jacobi(),
        D("reorder", "i", "t"),
        r"the order i t turns a dependence around .*must run before",
    ),
    (matmul(), D("split", "z", 4), "expected one of the loops i0, j0, i, k, j, found 'z'"),
    (matmul(), D("split", "i0x", 4), "did you mean 'i0'"),
    (matmul(), D("split", "i", 0), "a factor of at least 1, found 0"),
    (matmul(), D("split", "i", 2.0), "a factor of at least 1, found 2.0"),
    (matmul(), D("split", "i", 2, "k"), "a free name for a loop, found 'k'"),
    (matmul(), D("split", "i", 2, "A"), "a free name for a loop, found 'A'"),
    (matmul(), D("split", "i", 2, "p", "p"), "a free name for a loop, found 'p'"),
    (
        matmul(),
        D("split", "i", 3, "p", "q", "perfect"),
        "expected 3 to divide the extent of i, found 4",
    ),
    (matmul(), D("split", "i", 3, "p", "q", "round"), "a tail of guard or perfect"),
    (matmul(), D("split", "i"), "missing a required argument: 'factor'"),
    (matmul(), D("split", "i", 2, "p", "q", "guard", 7), "too many positional arguments"),
    (matmul(), D("fuse", "i", "j"), "expected loop j directly inside loop i"),
    (triangular(), D("fuse", "i", "j"), "the extent of j depends on i"),
    (triangular(), D("reorder", "j", "i"), "the extent of j depends on i, which would come later"),
    (row_sum(), D("reorder", "j", "i"), "found other statements between i and j"),
    (blur(), D("reorder", "p", "i"), "found other statements between"),
    (matmul(), D("reorder", "i"), "at least two different loops"),
    (matmul(), D("reorder", "i", "i"), "at least two different loops"),
    (elementwise(Load("x", (I,)), n=100), D("unroll", "i"), "an extent of 1 to 64, found 100"),
    (
        elementwise(Load("x", (I,)), n=12),
        D("vectorize", "i"),
        "an extent of 2, 4, 8, 16, 32, 64, found 12",
    ),
    (
        elementwise(Load("x", (I,)), kind=LoopKind.UNROLLED),
        D("parallel", "i"),
        "a serial loop, found i unrolled",
    ),
    (matmul(), D("unrol", "i"), "did you mean 'unroll'"),
]


@pytest.mark.parametrize(("procedure", "directive", "message"), REFUSED)
def test_what_may_not_be_applied_is_refused_with_a_reason(procedure, directive, message):
    with pytest.raises(ScheduleError, match=message) as caught:
        apply(verify(procedure), directive)
    assert caught.value.op == directive.op


def test_a_reorder_that_breaks_a_parallel_loop_is_refused():
    """Inside t, the loop i of a Jacobi sweep is free; outside it would not be."""
    free = apply(verify(jacobi()), D("parallel", "i"))
    with pytest.raises(ScheduleError, match=r"turns a dependence around|cannot be parallel"):
        apply(free, D("reorder", "i", "t"))


def test_loops_of_negative_extents_are_not_fused():
    inner = For(
        "i", Binary("sub", Var("k"), whole(3)), For("j", whole(4), Store("y", (J,), f32(1.0)))
    )
    fill = For("p", whole(4), Store("y", (Var("p"),), f32(0.0)))
    nest = Block((fill, For("k", whole(6), inner)))
    procedure = verify(Procedure("f", (), (tensor("y", 4, role="output"),), nest))
    with pytest.raises(ScheduleError, match="a number or an extent of the procedure in loop i"):
        apply(procedure, D("fuse", "i", "j"))


def test_kinds_that_come_with_a_procedure_are_checked_too():
    shift = For("i", whole(7), Store("y", (add(I, whole(1)),), Load("y", (I,))), LoopKind.PARALLEL)
    procedure = Procedure("f", (), (tensor("y", 8, role="output"),), shift)
    with pytest.raises(ScheduleError, match="cannot be parallel"):
        lower(procedure)


def test_guards_move_inward_when_loops_are_reordered():
    trace = [D("split", "i", 2), D("split", "j", 4), D("reorder", "jo", "io", "ji", "ii")]
    text = print_procedure(apply_trace(verify(transpose()), trace))
    assert text.index("for ii") < text.index("if ")


def moves(procedure, rng):
    """Some directives that might be tried on a procedure."""
    names = [loop.var for loop in loops(procedure)]
    loop, other = rng.choice(names), rng.choice(names)
    yield D("split", loop, rng.choice([2, 3, 4, 8]))
    yield D("vectorize", loop)
    yield D("unroll", loop)
    yield D("parallel", loop)
    yield D("fuse", loop, other)
    chosen = rng.sample(names, min(len(names), rng.choice([2, 3])))
    if len(chosen) > 1:
        yield D("reorder", *chosen)
    yield D("tile", loop, other, 2, 4)


def random_trace(procedure, seed, length=5):
    """A legal trace, by trying."""
    rng, trace = random.Random(seed), []
    for _ in range(length):
        for directive in sorted(moves(procedure, rng), key=lambda _: rng.random()):
            try:
                procedure = apply(procedure, directive)
            except ScheduleError:
                continue
            trace.append(directive)
            break
    return tuple(trace), procedure


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(PROGRAMS)), st.integers(0, 10**6))
def test_any_legal_trace_keeps_the_meaning(name, seed):
    procedure = verify(PROGRAMS[name])
    trace, scheduled = random_trace(procedure, seed)
    inputs = inputs_of(procedure)
    wanted, got = interpret(procedure, inputs), interpret(verify(scheduled), inputs)
    for key, array in wanted.items():
        # Legal orders combine a reduction's parts in the same order, so even rounding is the same.
        np.testing.assert_array_equal(got[key], array, err_msg=print_trace(trace))


@needs_cc
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(list(PROGRAMS)), seed=st.integers(0, 10**6))
def test_any_legal_trace_compiles_to_the_same(cache, name, seed):
    procedure = verify(PROGRAMS[name])
    trace, _ = random_trace(procedure, seed)
    inputs = inputs_of(procedure)
    kernel = compiled(lower(procedure, trace).procedure, cache, ("-O2", "-ffp-contract=off"))
    wanted, got = interpret(procedure, inputs), kernel(inputs)
    for key, array in wanted.items():
        np.testing.assert_array_equal(got[key], array, err_msg=print_trace(trace))


@needs_cc
def test_the_pipeline_compiles_a_schedule(cache):
    procedure, trace = SHOWN["register_tile"]
    inputs = inputs_of(procedure)
    got = compile_procedure(procedure, trace, cache=cache)(inputs)["C"]
    np.testing.assert_allclose(got, inputs["A"] @ inputs["B"], rtol=1e-5)


@given(
    st.lists(st.sampled_from([d for _, trace in SHOWN.values() for d in trace]), max_size=6).map(
        tuple
    )
)
def test_traces_print_parse_and_go_to_json(trace):
    assert parse_trace(print_trace(trace)) == trace
    assert tuple(loads(Directive, dumps(d)) for d in trace) == trace


NOT_TRACES = [
    ("split('i', 8", "line 1: expected directives"),
    ("split('i', 8)\nx = 3", "line 2: expected a call"),
    ("split(8)", "line 1: expected a loop's name first"),
    ("split('i', n)", "expected a number or text, found n"),
    ("split('i', factor=8)", "expected values by place in split"),
    ("a.split('i', 8)", "expected a call"),
    ("split('i', [8])", "expected a number or text"),
    ("split('i', 8)\nsplit('j', -1e400)", "line 2: expected a finite number, found -1e309"),
    ("\0", "expected directives"),
    ("split('i', {[]: 1})", "expected a number or text"),
]


@pytest.mark.parametrize(("text", "message"), NOT_TRACES)
def test_what_is_no_trace_is_refused_with_its_line(text, message):
    with pytest.raises(TraceError, match=message):
        parse_trace(text)


def test_steps_show_the_nest_after_each_directive():
    procedure, trace = SHOWN["register_tile"]
    shown = list(steps(verify(procedure), trace))
    assert [d for d, _ in shown] == trace
    assert len({print_procedure(p) for _, p in shown}) == len(trace)


def shrinking():
    """A loop whose body writes what its extent was read from."""
    tensors = (tensor("n", 1, dtype="int64", role="output"), tensor("y", 4, role="output"))
    start = Block(
        (Store("n", (whole(0),), whole(4)), For("p", whole(4), Store("y", (Var("p"),), f32(0.0))))
    )
    body = Block((Store("y", (I,), f32(1.0)), Store("n", (whole(0),), whole(1))))
    return Procedure("f", (), tensors, Block((start, For("i", Load("n", (whole(0),)), body))))


@needs_cc
def test_an_extent_is_read_once(cache):
    procedure = verify(shrinking())
    assert interpret(procedure, {})["y"].tolist() == [1, 1, 1, 1]
    assert compiled(procedure, cache)({})["y"].tolist() == [1, 1, 1, 1]
    with pytest.raises(
        ScheduleError, match="the extent of i reads n, and would be read at another time"
    ):
        apply(procedure, D("split", "i", 2))


def test_a_guard_that_reads_memory_does_not_move():
    tensors = (tensor("a", 4, role="output"), tensor("y", 4, 4, role="output"))
    fill = For(
        "p",
        whole(4),
        Block(
            (
                Store("a", (Var("p"),), f32(1.0)),
                For("q", whole(4), Store("y", (Var("p"), Var("q")), f32(0.0))),
            )
        ),
    )
    inner = For("j", whole(4), Block((Store("y", (I, J), f32(2.0)), Store("a", (I,), f32(-1.0)))))
    nest = For("i", whole(4), If(Binary("gt", Load("a", (I,)), f32(0.0)), inner))
    procedure = verify(Procedure("f", (), tensors, Block((fill, nest))))
    with pytest.raises(ScheduleError, match="a guard between the loops reads a"):
        apply(procedure, D("reorder", "j", "i"))


def counted(written):
    """As many columns of a row as n[0] says, which ``written`` is an element of or not."""
    tensors = (tensor("n", 2, dtype="int64", role="output"), tensor("y", 8, role="output"))
    start = Block(
        (
            For("p", whole(2), Store("n", (Var("p"),), whole(3))),
            For("q", whole(8), Store("y", (Var("q"),), f32(0.0))),
        )
    )
    first = Binary("and", Binary("eq", J, whole(1)), Binary("eq", I, whole(0)))
    longer = If(first, Store("n", (whole(0),), whole(7)))
    count = If(Binary("eq", J, whole(2)), Store("y", (I,), f32(1.0)))
    body = Block((longer, count) if written else (count,))
    nest = For("i", Load("n", (whole(0),)), For("j", whole(3), body))
    return verify(Procedure("f", (), tensors, Block((start, nest))))


def test_the_outermost_extent_does_not_move_behind_what_writes_it():
    with pytest.raises(
        ScheduleError, match="the extent of i reads n, and would be read at another time"
    ):
        apply(counted(written=True), D("reorder", "j", "i"))
    same = apply(counted(written=False), D("reorder", "j", "i"))
    assert interpret(same, {})["y"].tolist() == [1, 1, 1, 0, 0, 0, 0, 0]


def test_a_guard_in_a_nest_is_no_other_statement():
    body = If(Binary("lt", I, whole(3)), For("j", whole(4), Store("y", (I, J), f32(1.0))))
    nest = Block(
        (
            For("p", whole(4), For("q", whole(4), Store("y", (Var("p"), Var("q")), f32(0.0)))),
            For("i", whole(4), body),
        )
    )
    procedure = verify(Procedure("f", (), (tensor("y", 4, 4, role="output"),), nest))
    again = apply(procedure, D("reorder", "j", "i"))
    np.testing.assert_array_equal(interpret(procedure, {})["y"], interpret(again, {})["y"])
