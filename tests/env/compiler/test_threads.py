"""Blocks, threads and barriers: what is legal, what the interpreter catches, what C does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import add, f32, matmul, mul, tensor
from shared_matmul import ALL, BLOCKS, THREADS, shared_matmul
from test_codegen import compiled, needs_cc

from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import InterpretError, interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Store,
    Tensor,
    Var,
    loops,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.races import RaceError
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure, lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.edit import replace_loop
from kernelwright.env.compiler.schedule.threads import check_threads
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace

EXACT = ("-O2", "-ffp-contract=off")
X, Y, VT = LoopKind.THREAD_X, LoopKind.THREAD_Y, LoopKind.VTHREAD
BX = LoopKind.BLOCK_X


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def inputs_of(procedure):
    rng, given = np.random.default_rng(0), {}
    for t in procedure.tensors:
        if t.role == "input":
            given[t.name] = rng.random([e.value for e in t.shape]).astype(t.dtype)
    return given


def forced(procedure, text):
    """A procedure with loops bound as a trace says, legal or not."""
    for directive in parse_trace(text):
        kind = LoopKind(directive.args[0])
        procedure = replace_loop(
            procedure, directive.target, lambda node, kind=kind: replace(node, kind=kind)
        )
    return verify(procedure)


def procedure_of(body, *tensors):
    return verify(Procedure("f", (), tensors, body))


def loop(var, extent, *body, kind=LoopKind.SERIAL):
    return For(var, whole(extent), body[0] if len(body) == 1 else Block(body), kind)


def reversed_row(n=6, *, with_barrier=True, kind=X):
    """y is x from its end: through S, which all threads share."""
    fill = loop("t", n, Store("S", (Var("t"),), Load("x", (Var("t"),))), kind=kind)
    end = Binary("sub", whole(n - 1), Var("u"))
    drain = loop("u", n, Store("y", (Var("u"),), Load("S", (end,))), kind=kind)
    steps = (fill, Barrier(), drain) if with_barrier else (fill, drain)
    body = Allocate(Tensor("S", (whole(n),), "float32", scope="shared"), Block(steps))
    return procedure_of(body, tensor("x", n), tensor("y", n, role="output"))


@needs_cc
@pytest.mark.cc
def test_a_tiled_matmul_through_shared_memory(cache):
    procedure = verify(shared_matmul(5, 6, 7, 3, ALL))
    inputs = inputs_of(procedure)
    wanted = interpret(procedure, inputs)["C"]
    bound = apply_trace(procedure, parse_trace(BLOCKS + THREADS))
    np.testing.assert_array_equal(interpret(bound, inputs)["C"], wanted)
    kernel = compile_procedure(procedure, parse_trace(BLOCKS + THREADS), cache=cache, flags=EXACT)
    np.testing.assert_array_equal(kernel(inputs)["C"], wanted)
    np.testing.assert_allclose(wanted, inputs["A"] @ inputs["B"], rtol=1e-6)


COOPERATIVE = """reorder('i', 'j', 'k')
split('i', 4)
split('j', 4)
split('k', 4)
reorder('io', 'jo', 'ko', 'ii', 'ji', 'ki')
decompose_reduction('C', 'ko')
cache_read('A', 'ko', 'shared')
cache_read('B', 'ko', 'shared')
"""
COOPERATIVE_THREADS = """bind('io', 'block.y')
bind('jo', 'block.x')
bind('ii_start', 'thread.y', 'A_read_in0', 'B_read_in0', 'ii')
bind('ji_start', 'thread.x', 'A_read_in1', 'B_read_in1', 'ji')
"""


@needs_cc
@pytest.mark.cc
def test_threads_fetch_tiles_together(cache):
    """Nothing by hand: tiles that directives cached in shared memory, a barrier, threads."""
    procedure = verify(matmul(6, 7, 9))
    inputs = inputs_of(procedure)
    wanted = interpret(procedure, inputs)["C"]
    text = COOPERATIVE + "barrier('ii')\n" + COOPERATIVE_THREADS
    bound = apply_trace(procedure, parse_trace(text))
    np.testing.assert_array_equal(interpret(bound, inputs)["C"], wanted)
    kernel = compile_procedure(procedure, parse_trace(text), cache=cache, flags=EXACT)
    np.testing.assert_array_equal(kernel(inputs)["C"], wanted)
    with pytest.raises(ScheduleError, match="without a barrier between them") as caught:
        apply_trace(procedure, parse_trace(COOPERATIVE + COOPERATIVE_THREADS))
    assert caught.value.conflict.startswith(("A_read[", "B_read["))
    tiles = apply_trace(procedure, parse_trace(COOPERATIVE))
    racing = forced(
        tiles,
        "".join(
            f"bind('{name}', '{directive.args[0]}')\n"
            for directive in parse_trace(COOPERATIVE_THREADS)
            for name in (directive.target, *directive.args[1:])
        ),
    )
    with pytest.raises(InterpretError, match=r"no barrier is between|read before it was written"):
        interpret(racing, inputs)


@pytest.mark.parametrize("barriers", [("copied",), ("used",), ()])
def test_a_missing_barrier_is_refused_with_two_iterations(barriers):
    procedure = verify(shared_matmul(5, 6, 7, 3, barriers))
    with pytest.raises(ScheduleError) as caught:
        apply_trace(procedure, parse_trace(BLOCKS + THREADS))
    assert "two threads of a block meet without a barrier between them" in str(caught.value)
    assert caught.value.conflict.startswith(("S[", "T[", "C["))
    assert "must run before (bi=" in caught.value.conflict


@pytest.mark.parametrize("barriers", [("copied",), ("used",), ()])
def test_a_missing_barrier_is_caught_where_it_runs(barriers):
    procedure = forced(shared_matmul(5, 6, 7, 3, barriers), BLOCKS + THREADS)
    with pytest.raises(InterpretError, match=r"no barrier is between|read before it was written"):
        interpret(procedure, inputs_of(procedure))


def test_a_race_names_the_element_and_both_threads():
    procedure = reversed_row(with_barrier=False)
    with pytest.raises(InterpretError, match=r"S\[5\]: read before it was written"):
        interpret(procedure, inputs_of(procedure))
    # What was written in time is a race all the same.
    late = loop("u", 6, Store("y", (Var("u"),), Load("S", (whole(0),))), kind=X)
    first = loop("t", 6, Store("S", (Var("t"),), Load("x", (Var("t"),))), kind=X)
    shared = Tensor("S", (whole(6),), "float32", scope="shared")
    procedure = procedure_of(
        Allocate(shared, Block((first, late))), tensor("x", 6), tensor("y", 6, role="output")
    )
    wanted = r"S\[0\]: written by thread \(thread.x=0\) and read by thread \(thread.x=1\)"
    with pytest.raises(RaceError, match=wanted):
        interpret(procedure, inputs_of(procedure))


def test_a_race_on_an_output_between_threads():
    procedure = forced(
        procedure_of(
            Block(
                (
                    Store("y", (whole(0),), f32(0.0)),
                    loop("i", 4, Store("y", (whole(0),), Load("x", (Var("i"),)), "add")),
                )
            ),
            tensor("x", 4),
            tensor("y", 1, role="output"),
        ),
        "bind('i', 'thread.x')",
    )
    with pytest.raises(RaceError, match=r"y\[0\]: written by thread .* and read by thread"):
        interpret(procedure, inputs_of(procedure))


def test_a_race_between_blocks():
    procedure = matmul(4, 4, 3)
    with pytest.raises(ScheduleError, match=r"loop k carries a dependence and cannot be block\.x"):
        apply_trace(verify(procedure), parse_trace("bind('k', 'block.x')"))
    procedure = forced(procedure, "bind('k', 'block.x')")
    with pytest.raises(RaceError, match=r"of block \(0,\) and read by thread \(\) of block \(1,\)"):
        interpret(procedure, inputs_of(procedure))


def test_threads_that_do_not_meet_are_reported():
    half = If(Binary("lt", Var("t"), whole(2)), Barrier())
    body = loop("t", 4, half, Store("y", (Var("t"),), f32(1.0)), kind=X)
    procedure = procedure_of(body, tensor("y", 4, role="output"))
    with pytest.raises(RaceError, match=r"waits at a barrier, and thread \(thread.x=2\) ends"):
        interpret(procedure, {})
    with pytest.raises(ScheduleError, match="under t < 2, which differs between threads"):
        check_threads("check", procedure)
    with pytest.raises(CodegenError, match="a barrier that all threads of loop t reach"):
        generate(procedure)


def test_threads_wait_at_one_barrier_in_one_iteration():
    """Thread 0 goes round three times, the others twice."""
    extent = Binary("sub", whole(3), Binary("min", Var("t"), whole(1)))
    body = For(
        "t", whole(2), For("r", extent, Block((Store("y", (Var("t"),), f32(1.0)), Barrier()))), X
    )
    procedure = procedure_of(body, tensor("y", 2, role="output"))
    with pytest.raises(RaceError, match=r"waits at a barrier \(r=2\), and thread .* ends"):
        interpret(procedure, {})


def test_what_is_outside_thread_loops_is_done_once():
    """Thread 0 adds one; were it all four, y would be 4, and a race."""
    body = loop(
        "b",
        2,
        Store("y", (Var("b"),), f32(0.0)),
        Store("y", (Var("b"),), f32(1.0), "add"),
        loop("t", 4, Store("z", (Var("b"), Var("t")), f32(2.0)), kind=X),
        kind=BX,
    )
    procedure = procedure_of(body, tensor("y", 2, role="output"), tensor("z", 2, 4, role="output"))
    assert interpret(procedure, {})["y"].tolist() == [1, 1]
    check_threads("check", procedure)


def own_sums(scope):
    """Each thread sums in its own part of a temporary: two loops, one barrier or none."""
    fill = loop("t", 4, Store("a", (Var("t"),), Load("x", (Var("t"),))))
    more = loop("u", 4, Store("a", (Var("u"),), Load("x", (Var("u"),)), "add"))
    out = loop("w", 4, Store("y", (Var("w"),), Load("a", (Var("w"),))))
    own = Tensor("a", (whole(4),), "float32", scope=scope)
    return procedure_of(
        loop("b", 1, Allocate(own, Block((fill, more, out)))),
        tensor("x", 4),
        tensor("y", 4, role="output"),
    )


@pytest.mark.parametrize("scope", ["local", "register", "shared", "auto"])
def test_threads_may_keep_what_is_their_own(scope):
    procedure = own_sums(scope)
    text = "bind('b', 'block.x')\nbind('t', 'thread.x', 'u', 'w')"
    bound = apply_trace(procedure, parse_trace(text))
    inputs = inputs_of(procedure)
    np.testing.assert_array_equal(interpret(bound, inputs)["y"], 2 * inputs["x"])


@pytest.mark.parametrize("scope", ["local", "register"])
def test_memory_of_one_thread_is_not_another_s(scope):
    procedure = reversed_row()
    moved = replace(procedure.body, tensor=replace(procedure.body.tensor, scope=scope))
    procedure = replace(procedure, body=moved)
    with pytest.raises(ScheduleError, match="in memory of which each has its own") as caught:
        check_threads("check", procedure)
    assert caught.value.conflict.startswith("S[t]: iteration (t=")
    with pytest.raises(InterpretError, match="read before it was written"):
        interpret(procedure, inputs_of(procedure))


def test_some_binds_are_legal_only_together():
    procedure = own_sums("shared")
    with pytest.raises(ScheduleError, match="without a barrier between them"):
        apply_trace(procedure, parse_trace("bind('t', 'thread.x')"))
    apply_trace(procedure, parse_trace("bind('t', 'thread.x', 'u', 'w')"))


def test_dependences_between_launches_need_no_barrier():
    first = loop("t", 4, Store("z", (Var("t"),), Load("x", (Var("t"),))))
    second = loop("u", 4, Store("y", (Var("u"),), Load("z", (Binary("sub", whole(3), Var("u")),))))
    procedure = procedure_of(
        Block((first, second)),
        tensor("x", 4),
        tensor("z", 4, role="output"),
        tensor("y", 4, role="output"),
    )
    bound = apply_trace(procedure, parse_trace("bind('t', 'thread.x')\nbind('u', 'thread.x')"))
    inputs = inputs_of(procedure)
    np.testing.assert_array_equal(interpret(bound, inputs)["y"], inputs["x"][::-1])


def body_in(*kinds, inner=None):
    """y[i0, i1, …] = 1 under loops of kinds, the first outermost."""
    names = [f"l{i}" for i in range(len(kinds))]
    body = Store("y", tuple(map(Var, names)), f32(1.0))
    for name, kind in reversed(list(zip(names, kinds, strict=True))):
        body = For(name, whole(2), body, kind)
    return procedure_of(body, tensor("y", *[2] * len(kinds), role="output"))


MISNESTED = [
    (body_in(X, X), "loops l0 and l1, one in the other, are both thread.x"),
    (body_in(BX, BX), "loops l0 and l1, one in the other, are both block.x"),
    (body_in(VT, VT), "loops l0 and l1, one in the other, are both vthread"),
    (body_in(X, BX), "block loop l1 is inside thread.x loop l0|outside the block loops"),
    (body_in(LoopKind.PARALLEL, BX), "block loop l1 is inside parallel loop l0"),
    (body_in(LoopKind.VECTORIZED, X), "thread loop l1 is inside vectorized loop l0"),
    (
        body_in(BX, LoopKind.SERIAL, LoopKind.BLOCK_Y),
        "block loop l2 directly inside block loop l0",
    ),
]


@pytest.mark.parametrize(("procedure", "message"), MISNESTED)
def test_levels_in_the_wrong_order_are_refused(procedure, message):
    with pytest.raises(ScheduleError, match=message):
        check_threads("check", procedure)


def test_the_number_of_threads_is_a_number():
    fill = For("t", Var("n"), Store("y", (Var("t"),), f32(1.0)))
    procedure = verify(Procedure("f", ("n",), (tensor("y", "n", role="output"),), fill))
    with pytest.raises(ScheduleError, match="a number of threads in loop t, found n"):
        apply_trace(procedure, parse_trace("bind('t', 'thread.x')"))
    blocks = apply_trace(procedure, parse_trace("bind('t', 'block.x')"))
    assert interpret(blocks, {}, {"n": 3})["y"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bind('i', 'warp')", "expected one of block.x, block.y, .* found 'warp'"),
        ("bind('z', 'block.x')", "expected one of the loops"),
        ("unroll('i')\nbind('i', 'block.x')", "a serial loop, found i unrolled"),
        ("barrier('i', 'inside')", "expected before or after, found 'inside'"),
        ("barrier('z')", "expected one of the loops"),
        ("parallel('i')\nbind('k', 'block.x')", "block loop k is inside parallel loop i|carries"),
    ],
)
def test_arguments_are_checked(text, message):
    with pytest.raises(ScheduleError, match=message):
        apply_trace(verify(matmul(4, 4, 3)), parse_trace(text))


def test_memory_of_a_block_is_inside_it():
    body = loop("b", 2, loop("t", 3, Store("S", (Var("t"),), f32(1.0)), kind=X), kind=BX)
    out = loop("u", 3, Store("y", (Var("u"),), f32(1.0)))
    shared = Tensor("S", (whole(3),), "float32", scope="shared")
    procedure = procedure_of(Block((Allocate(shared, body), out)), tensor("y", 3, role="output"))
    with pytest.raises(ScheduleError, match="shared S is outside the blocks that it belongs to"):
        check_threads("check", procedure)
    with pytest.raises(InterpretError, match="memory of a block inside it, found shared S"):
        interpret(procedure, {})


def test_memory_of_a_block_is_not_in_one_thread():
    inside = Allocate(
        Tensor("S", (whole(1),), "float32", scope="shared"),
        Block((Store("S", (whole(0),), f32(1.0)), Store("y", (Var("t"),), Load("S", (whole(0),))))),
    )
    procedure = procedure_of(For("t", whole(3), inside, X), tensor("y", 3, role="output"))
    with pytest.raises(ScheduleError, match="shared S is a block's, and inside thread loop t"):
        check_threads("check", procedure)


def test_a_barrier_that_memory_decides_on_is_refused():
    decided = If(Binary("gt", Load("x", (whole(0),)), f32(0.0)), Barrier())
    fill = loop("t", 3, Store("y", (Var("t"),), f32(1.0)), kind=X)
    procedure = procedure_of(
        loop("b", 1, fill, decided, kind=BX), tensor("x", 1), tensor("y", 3, role="output")
    )
    with pytest.raises(ScheduleError, match=r"under x\[0\] > .*, which threads may read diff"):
        check_threads("check", procedure)


def test_a_barrier_for_some_threads_is_refused():
    few = loop("t", 2, Store("y", (Var("t"),), f32(1.0)), Barrier(), kind=X)
    many = loop("u", 4, Store("z", (Var("u"),), f32(1.0)), kind=X)
    procedure = procedure_of(
        loop("b", 1, few, many, kind=BX),
        tensor("y", 2, role="output"),
        tensor("z", 4, role="output"),
    )
    with pytest.raises(ScheduleError, match=r"2 of 4 threads along thread\.x run"):
        check_threads("check", procedure)
    with pytest.raises(RaceError, match="waits at a barrier"):
        interpret(procedure, {})


def work_items(scope):
    """A thread loop with a barrier in it, under a loop, and a number that each thread keeps."""
    t, r = Var("t"), Var("r")
    keep = Store("own", (whole(0),), Load("x", (t,)))
    share = Store("S", (r, t), Load("own", (whole(0),)))
    other = Load("S", (r, Binary("mod", add(t, whole(1)), whole(5))))
    use = Store("y", (r, t), add(other, Load("own", (whole(0),))))
    rounds = loop("r", 3, share, Barrier(), use)
    body = Allocate(Tensor("own", (whole(1),), "float32", scope=scope), Block((keep, rounds)))
    shared = Tensor("S", (whole(3), whole(5)), "float32", scope="shared")
    return procedure_of(
        Allocate(shared, For("t", whole(5), body, X)),
        tensor("x", 5),
        tensor("y", 3, 5, role="output"),
    )


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize("scope", ["local", "auto"])
def test_c_cuts_thread_loops_at_barriers(scope, cache):
    """Written for threads: in order it would read what is not there yet."""
    procedure = work_items(scope)
    inputs = inputs_of(procedure)
    wanted = np.tile(np.roll(inputs["x"], -1) + inputs["x"], (3, 1))
    np.testing.assert_array_equal(interpret(procedure, inputs)["y"], wanted)
    np.testing.assert_array_equal(compiled(procedure, cache)(inputs)["y"], wanted)
    with pytest.raises(ScheduleError, match="without a barrier between them"):
        lower(procedure)


def test_c_has_no_memory_of_a_thread_that_another_uses():
    """Each thread has an ``own`` of one element; C has one for all."""
    fill = loop("t", 3, Store("own", (whole(0),), Load("x", (Var("t"),))), kind=X)
    drain = loop("u", 3, Store("y", (Var("u"),), Load("own", (whole(0),))), kind=X)
    own = Tensor("own", (whole(1),), "float32", scope="local")
    body = Allocate(own, Block((fill, Barrier(), drain)))
    procedure = procedure_of(body, tensor("x", 3), tensor("y", 3, role="output"))
    inputs = inputs_of(procedure)
    np.testing.assert_array_equal(interpret(procedure, inputs)["y"], inputs["x"])
    with pytest.raises(CodegenError, match=r"memory of their own, found own\[0\]: iteration"):
        generate(procedure)


def test_c_says_which_barrier_it_cannot_cut_at():
    t = Var("t")
    inside = For("p", whole(2), Block((Store("y", (t,), f32(1.0)), Barrier())), LoopKind.PARALLEL)
    procedure = procedure_of(For("t", whole(3), inside, X), tensor("y", 3, role="output"))
    with pytest.raises(CodegenError, match="no barrier under a parallel in thread loop t"):
        generate(procedure)


VTHREADS = """split('i', 3)
reorder('io', 'k', 'ii', 'j')
bind('io', 'block.x')
bind('j', 'thread.x')
bind('ii', 'vthread')
"""


@needs_cc
@pytest.mark.cc
def test_virtual_threads_are_interleaved(cache):
    procedure = verify(matmul(5, 8, 6))
    inputs = inputs_of(procedure)
    wanted = interpret(procedure, inputs)["C"]
    bound = apply_trace(procedure, parse_trace(VTHREADS))
    np.testing.assert_array_equal(interpret(bound, inputs)["C"], wanted)
    kernel = compile_procedure(procedure, parse_trace(VTHREADS), cache=cache, flags=EXACT)
    np.testing.assert_array_equal(kernel(inputs)["C"], wanted)
    text = generate(bound)
    # Three steps beside one another in the loop over k, none of them a loop.
    assert text.index("for (int64_t k") < text.index("if (io * 3 < 5)")
    assert text.count("+=") == 3
    assert "for (int64_t ii" not in text


@needs_cc
@pytest.mark.cc
def test_virtual_threads_have_temporaries_of_their_own(cache):
    v = Var("v")
    keep = Store("own", (whole(0),), Load("x", (v,)))
    twice = loop("r", 2, Store("own", (whole(0),), Load("own", (whole(0),)), "add"))
    put = Store("y", (v,), Load("own", (whole(0),)))
    body = Allocate(Tensor("own", (whole(1),), "float32"), Block((keep, twice, put)))
    procedure = procedure_of(
        For("v", whole(3), body, VT), tensor("x", 3), tensor("y", 3, role="output")
    )
    inputs = inputs_of(procedure)
    np.testing.assert_array_equal(interpret(procedure, inputs)["y"], 4 * inputs["x"])
    np.testing.assert_array_equal(compiled(procedure, cache)(inputs)["y"], 4 * inputs["x"])
    assert "kw_own_thread2" in generate(procedure)


def test_directives_after_bind_keep_what_it_proved():
    procedure = verify(shared_matmul(6, 6, 6, 3, ALL))
    bound = apply_trace(procedure, parse_trace(BLOCKS + THREADS))
    after = apply_trace(bound, parse_trace("unroll('ki')"))
    assert "for ki in 3:  # unrolled" in print_procedure(after)
    inputs = inputs_of(procedure)
    np.testing.assert_array_equal(interpret(after, inputs)["C"], interpret(procedure, inputs)["C"])
    with pytest.raises(ScheduleError, match=r"a serial loop, found ti thread\.y"):
        apply_trace(bound, parse_trace("split('ti', 2)"))


def some_program(rng):
    """Loops over two tensors, some of which read what others wrote, and barriers here and there."""
    steps = []
    for number in range(rng.randint(2, 3)):
        var = f"l{number}"
        source, target = rng.choice([("x", "S"), ("S", "y"), ("S", "S"), ("x", "y")])
        index = rng.choice([Var(var), Binary("sub", whole(3), Var(var)), whole(1)])
        place = rng.choice([Var(var), Var(var), whole(2)])
        value = Load(source, (index,))
        steps.append(loop(var, 4, Store(target, (place,), value, rng.choice([None, "add"]))))
        if rng.random() < 0.5:
            steps.append(Barrier())
    fill = [loop(f"f{t}", 4, Store(t, (Var(f"f{t}"),), f32(1.0))) for t in ("S", "y")]
    around = loop("r", 2, *steps)
    shared = Tensor("S", (whole(4),), "float32", scope="shared")
    body = Allocate(shared, Block((*fill, Barrier(), around)))
    return procedure_of(loop("b", 1, body, kind=BX), tensor("x", 4), tensor("y", 4, role="output"))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False))
def test_what_is_refused_races_and_what_is_not_computes_the_same(rng):
    """Static and dynamic checks agree: all accesses are affine, so both are exact."""
    procedure = some_program(rng)
    chosen = [each.var for each in loops(procedure) if each.var[0] in "lf" and rng.random() < 0.8]
    bound = forced(procedure, "".join(f"bind('{name}', 'thread.x')\n" for name in chosen))
    inputs = inputs_of(procedure)
    wanted = interpret(procedure, inputs)["y"]
    try:
        check_threads("check", bound)
    except ScheduleError:
        with pytest.raises(InterpretError):
            interpret(bound, inputs)
        return
    np.testing.assert_array_equal(interpret(bound, inputs)["y"], wanted)


def some_grid(rng):
    """Nests of two loops in two blocks, of several extents, under guards and with barriers."""
    b, steps, names = Var("b"), [], []
    for number in range(rng.randint(2, 4)):
        i, j = Var(f"i{number}"), Var(f"j{number}")
        names.append((i.name, j.name))
        places = [(i, j), (i, j), (j, i), (whole(0), j), (i, whole(1))]
        here, there = rng.choice(places), rng.choice(places)
        source = rng.choice([Load("S", there), Load("x", there), Load("y", (b, *there))])
        target = rng.choice([("S", here), ("y", (b, *here)), ("y", (b, *here))])
        body = Store(*target, source, rng.choice([None, None, "add"]))
        if rng.random() < 0.3:
            body = If(Binary("le", i, j), body)
        rows, columns = rng.choice([2, 3]), rng.choice([2, 3])
        steps.append(loop(i.name, rows, loop(j.name, columns, body)))
        if rng.random() < 0.5:
            steps.append(Barrier())
    fill = [
        loop("s0", 3, loop("s1", 3, Store("S", (Var("s0"), Var("s1")), f32(1.0)))),
        loop("y0", 3, loop("y1", 3, Store("y", (b, Var("y0"), Var("y1")), f32(1.0)))),
    ]
    names += [("s0", "s1"), ("y0", "y1")]
    around = loop("r", 2, *steps) if rng.random() < 0.5 else Block(tuple(steps))
    shared = Tensor("S", (whole(3), whole(3)), "float32", scope="shared")
    body = Allocate(shared, Block((*fill, Barrier(), around)))
    tensors = (tensor("x", 3, 3), tensor("y", 2, 3, 3, role="output"))
    return procedure_of(loop("b", 2, body), *tensors), names


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False))
def test_both_checks_agree_on_grids_of_two_dimensions(rng):
    procedure, names = some_grid(rng)
    inner = rng.choice(["thread.x", "vthread"])
    text = "bind('b', 'block.x')\n"
    for outer, each in names:
        if rng.random() < 0.8:
            text += f"bind('{outer}', 'thread.y')\n"
        if rng.random() < 0.8:
            text += f"bind('{each}', '{inner}')\n"
    bound = forced(procedure, text)
    inputs = inputs_of(procedure)
    wanted = interpret(procedure, inputs)["y"]
    try:
        check_threads("check", bound)
    except ScheduleError:
        with pytest.raises(InterpretError):
            interpret(bound, inputs)
        return
    np.testing.assert_array_equal(interpret(bound, inputs)["y"], wanted)


@needs_cc
@pytest.mark.cc
def test_c_of_threads_computes_the_same(cache):
    """A sum over rows by threads in turns, with a barrier after every step."""
    i, t, r = Var("i"), Var("t"), Var("r")
    start = loop("s", 4, Store("p", (Var("s"),), f32(0.0)), kind=X)
    column = add(mul(r, whole(4)), t)
    part = If(Binary("lt", column, whole(11)), Store("p", (t,), Load("x", (i, column)), "add"))
    steps = loop("r", 3, For("t", whole(4), part, X))
    final = loop("u", 4, Store("y", (i,), Load("p", (Var("u"),)), "add"))
    shared = Tensor("p", (whole(4),), "float32", scope="shared")
    body = Block((Store("y", (i,), f32(0.0)), start, steps, Barrier(), final))
    procedure = procedure_of(
        For("i", whole(3), Allocate(shared, body), BX),
        tensor("x", 3, 11),
        tensor("y", 3, role="output"),
    )
    check_threads("check", procedure)
    inputs = inputs_of(procedure)
    wanted = interpret(procedure, inputs)["y"]
    np.testing.assert_array_equal(compiled(procedure, cache)(inputs)["y"], wanted)
    np.testing.assert_allclose(wanted, inputs["x"].sum(1), rtol=1e-6)


def squares():
    """What threads compute of a row, outside of which nothing is bound."""
    p, q = Var("p"), Var("q")
    square = mul(Load("x", (p, q)), Load("x", (p, q)))
    inner = For("q", whole(6), Store("y", (p, q), square))
    return verify(
        Procedure(
            "f", (), (tensor("x", 4, 6), tensor("y", 4, 6, role="output")), loop("p", 4, inner)
        )
    )


@pytest.mark.parametrize("level", ["thread.x", "vthread"])
@pytest.mark.parametrize(
    "cached", ["cache_write('y', 'p', 'shared')", "cache_read('x', 'p', 'shared')"]
)
def test_what_threads_use_together_is_not_copied_without_a_barrier(level, cached):
    """Thread 0 copies, and the others would not wait for it, nor it for them."""
    with pytest.raises(ScheduleError, match="without a barrier between them") as caught:
        apply_trace(squares(), parse_trace(f"bind('q', '{level}')\n{cached}"))
    assert "must run before" in str(caught.value)


@pytest.mark.parametrize("scope", ["shared", "local"])
@pytest.mark.parametrize("cached", ["cache_write('y', 'p'", "cache_read('x', 'p'"])
def test_no_copy_in_a_block_s_memory_is_outside_the_blocks(cached, scope):
    with pytest.raises(ScheduleError, match="is outside the blocks that it belongs to"):
        apply_trace(squares(), parse_trace(f"bind('q', 'block.x')\n{cached}, '{scope}')"))
