"""Directives about loops: what they write, what they refuse, and that the meaning stays."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop_programs import (
    LOOP_PROGRAMS,
    arrays,
    assert_same,
    chain,
    filled,
    gathered,
    prefix_sum,
    row_buffer,
    seidel,
    shift_down,
    sizes,
    two_rows,
)
from programs import f32, in_turns, matmul, tensor
from test_codegen import needs_cc
from test_schedule import D, blur, transpose, triangular

from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Cast,
    Const,
    For,
    If,
    Load,
    Procedure,
    Select,
    Store,
    Tensor,
    Var,
    loops,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.trace import (
    apply,
    apply_trace,
    parse_trace,
    print_trace,
)
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Directive

FLAGS = ("-O1", "-march=native", "-ffp-contract=off")
I = Var("i")  # noqa: E741


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def text_after(procedure, trace):
    return print_procedure(apply_trace(verify(procedure), parse_trace(trace))).split("\n", 1)[1]


# Program, schedule: each keeps the meaning at every size, and compiles to the same.
LEGAL = [
    ("two_rows", "fission('i', 1)"),
    ("two_rows", "fission('i', 'k', 'r')\nmerge('i', 'r')\nmerge('j', 'k')"),
    ("two_rows", "unroll_and_jam('i', 4)"),
    ("two_rows", "partition('i')\nunroll('i', 3)"),
    ("row_buffer", "fission('i', 1)\nfission('i_second', 'b')"),
    ("plain_buffer", "fission('i', 1)"),
    ("plain_buffer", "fission('i', 1)\nmerge('i', 'i_second')"),
    ("plain_buffer", "software_pipeline('i')"),
    ("plain_buffer", "software_pipeline('i', 3)\nvectorize('a', 4)"),
    ("plain_buffer", "split('i', 3, '', '', 'partition')\nsoftware_pipeline('ii')"),
    ("plain_buffer", "unroll_and_jam('i', 3)\nreorder('a', 'ii')"),
    ("plain_buffer", "unroll_and_jam('i', 2)\npeel('io', 1)"),
    ("plain_buffer", "specialize('n == 8')\nunroll('i_special')\nprefetch('x', 'i', 2)"),
    ("row_buffer", "peel('i', 2, 1)"),
    ("two_rows", "peel('i', 3)\nunroll_and_jam('i', 4)"),
    ("plain_buffer", "peel('i', 3)\nfission('i', 1)\nreverse('i')"),
    ("plain_buffer", "peel('i', 3)\nsoftware_pipeline('i', 3)\nunroll('i', 2)"),
    ("row_buffer", "partition('i')"),
    ("row_buffer", "reverse('i')\nrename('i', 'row')\nadd_unit_loop('row', 'once')"),
    ("boundary", "partition('i')\nvectorize('i', 4)"),
    ("boundary", "partition('i')\nspecialize('n % 4 == 0', 'i')"),
    ("boundary", "peel('i', 1, 1)\nunroll('i', 2)"),
    ("boundary", "split('i', 4)\npartition('io')"),
    ("boundary", "vectorize('i', 8)\nprefetch('x', 'io', 2)\nstream_store('y')"),
    ("chain", "split('i', 4, '', '', 'round_up')\nsplit('j', 4, '', '', 'round_up')"),
    ("chain_n", "split('i', 4, '', '', 'round_up')\nsplit('j', 4, '', '', 'round_up')"),
    ("chain_n", "split('i', 4, '', '', 'round_up')\nvectorize('ii')\nunroll('k', 4)"),
    ("chain", "split('k', 4, '', '', 'shift_inwards')\nvectorize('ki')\npartition('ko')"),
    ("chain", "merge('i', 'j')\nmerge('i', 'k')"),
    ("matmul", "tile('i', 'j', 2, 4, 'partition')\nvectorize('ji')\nunroll_and_jam('ii', 2)"),
    ("matmul", "unroll_and_jam('i', 4)\nvectorize('j', 2)"),
    ("matmul", "unroll_and_jam('k', 2)"),
    ("transpose", "tile('i', 'j', 2, 4, 'shift_inwards')\nvectorize('ii')"),
    ("transpose", "tile('i', 'j', 2, 4, 'partition')"),
    ("row_sum", "split('i', 4, '', '', 'shift_inwards')\npartition('io')"),
    ("row_sum", "fission('i', 1)\nunroll_and_jam('i_second', 2)"),
    ("row_sum", "unroll_and_jam('i', 2)"),
    ("seidel", "unroll_and_jam('i', 4)"),
    ("triangular", "peel('i', 1, 2)"),
    ("gathered", "prefetch('x', 'i', 2, 1)\nunroll('i', 2)"),
    ("upsampled", "partition('i')\nunroll('i', 2)"),
    ("blur", "prefetch('t', 'p', 1)\nunroll_and_jam('p', 4)"),
]


@pytest.mark.parametrize(("name", "trace"), LEGAL)
def test_the_meaning_stays(name, trace):
    before = LOOP_PROGRAMS[name]
    assert parse_trace(print_trace(parse_trace(trace))) == parse_trace(trace)
    again = tuple(loads(Directive, dumps(d)) for d in parse_trace(trace))
    assert_same(before, apply_trace(before, again))


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize(("name", "trace"), in_turns(LEGAL))
def test_the_c_computes_the_same(cache, name, trace):
    before = LOOP_PROGRAMS[name]
    kernel = compile_procedure(before, parse_trace(trace), cache=cache, flags=FLAGS)
    for extents in sizes(before, (0, 7, 16)):
        inputs = arrays(before, extents)
        wanted, got = interpret(before, inputs, extents), kernel(inputs, extents)
        for tensor_name, array in wanted.items():
            np.testing.assert_array_equal(got[tensor_name], array)


def refusing_cast():
    """A temporary whose values come from a conversion that may fail."""
    tensors = (tensor("y", 6, role="output"),)
    value = Cast("float32", Cast("int32", Binary("div", f32(1.0), Cast("float32", I))))
    body = Block(
        (
            For("i", whole(6), Store("t", (I,), value)),
            For("j", whole(6), Store("y", (Var("j"),), f32(0.0))),
        )
    )
    body = Allocate(Tensor("t", (whole(6),), "float32"), body)
    return verify(Procedure("f", (), tensors, body))


def overwritten():
    """The element behind a temporary's first half is read later: extra iterations would hurt it."""
    tensors = (tensor("y", 6, role="output"),)
    half = For("i", whole(6), Store("t", (I,), f32(2.0)))
    every = For("a", whole(8), Store("t", (Var("a"),), f32(1.0)))
    use = For(
        "j", whole(6), Store("y", (Var("j"),), Load("t", (Binary("add", Var("j"), whole(2)),)))
    )
    body = Allocate(Tensor("t", (whole(8),), "float32"), Block((every, half, use)))
    return verify(Procedure("f", (), tensors, body))


def waiting():
    body = Block((Store("y", (I,), f32(0.0)), Barrier(), Store("y", (I,), f32(1.0))))
    tensors = (tensor("y", 6, role="output"),)
    return verify(Procedure("f", (), tensors, For("i", whole(6), body)))


def guarded_by_memory():
    inner = Block((Store("y", (I,), f32(2.0)), Store("y", (I,), f32(3.0))))
    body = Block((Store("y", (I,), f32(1.0)), If(Binary("gt", Load("x", (I,)), f32(0.0)), inner)))
    tensors = (tensor("x", 6), tensor("y", 6, role="output"))
    nest = For("i", whole(6), body)
    free = For(
        "k",
        whole(6),
        If(
            Binary("gt", Load("x", (Var("k"),)), f32(0.0)),
            Block((Store("y", (Var("k"),), f32(2.0)), Store("y", (Var("k"),), f32(3.0)))),
        ),
    )
    return verify(Procedure("f", (), tensors, Block((nest, free))))


def forwarding(n=6):
    """Loads into a temporary what the iteration before stored."""
    load = Store("t", (whole(0),), Load("A", (I, whole(0))))
    use = Store("A", (Binary("add", I, whole(1)), whole(0)), Load("t", (whole(0),)))
    inner = Allocate(Tensor("t", (whole(1),), "float32"), Block((load, use)))
    return filled("A", whole(n), whole(1), For("i", whole(n - 1), inner))


def counted():
    """Whole numbers that grow with the iterations."""
    tensors = (tensor("x", 8, dtype="int32"), tensor("y", 6, dtype="int32", role="output"))
    square = Binary("mul", Load("x", (I,)), Load("x", (I,)))
    use = Load("t", (Var("j"),))
    body = Block(
        (
            For("i", whole(6), Store("t", (I,), square)),
            For("j", whole(6), Store("y", (Var("j"),), use)),
        )
    )
    return verify(Procedure("f", (), tensors, Allocate(Tensor("t", (whole(6),), "int32"), body)))


def gathered_in_part():
    """Indices that are only there for the first iterations."""
    element = Load("x", (Load("p", (I,)),))
    value = Select(Binary("lt", I, whole(3)), element, f32(0.0))
    tensors = (tensor("x", 8), tensor("p", 3, dtype="int64"), tensor("y", 6, role="output"))
    return verify(Procedure("f", (), tensors, For("i", whole(6), Store("y", (I,), value))))


def below(n=6):
    """Every element of z is the one of y below."""
    k = Var("k")
    tensors = (
        tensor("x", n),
        tensor("y", n, role="output"),
        tensor("z", n, role="output"),
    )
    first = For("i", whole(n), Store("y", (I,), Load("x", (I,))))
    next_one = Binary("min", Binary("add", k, whole(1)), whole(n - 1))
    second = For("k", whole(n), Store("z", (k,), Load("y", (next_one,))))
    return verify(Procedure("f", (), tensors, Block((first, second))))


REFUSED = [
    # fission
    (two_rows(), "fission('i', 2)", "a loop or a number of statements from 1 to 1, found 2"),
    (two_rows(), "fission('i', True)", "a number of statements from 1 to 1, found True"),
    (two_rows(), "fission('i', 'j')", "a loop in i after its first statement, found 'j'"),
    (two_rows(), "fission('j', 1)", "several statements in loop j, found one"),
    (two_rows(), "fission('i', 1, 'k')", "a free name for a loop, found 'k'"),
    (guarded_by_memory(), "fission('k', 1)", "a guard in k reads x, and would be read"),
    (waiting(), "fission('i', 1)", "threads wait for one another in loop i"),
    # merge
    (blur(), "merge('i', 'p')", "expected one extent, found 8 and 6"),
    (matmul(), "merge('i', 'i0')", "expected loop i0 directly after loop i"),
    (matmul(), "parallel('i0')\nmerge('i0', 'i')", "loops of one kind, found i0 parallel and i"),
    (chain(), "merge('i', 'k')", "expected loop k directly after loop i"),
    # reverse
    (prefix_sum(), "reverse('i')", r"cannot be reversed \(.*must run before"),
    (matmul(), "unroll('i')\nreverse('i')", "a serial loop, found i unrolled"),
    (shift_down(), "reverse('i')", r"cannot be reversed \(A.*must run before"),
    (seidel(), "reverse('j')", r"cannot be reversed \(A.*must run before"),
    (below(), "merge('i', 'k')", r"k cannot run along with i \(z.*must run before"),
    # peel and partition
    (transpose(), "peel('i', 0)", "expected iterations to peel, found none"),
    (transpose(), "peel('i', -1)", "a number of first iterations of at least 0, found -1"),
    (matmul(4, 8, 4), "vectorize('j')\npeel('j', 1)", "found j vectorized"),
    (transpose(), "partition('i')", "expected a condition in loop i .* found none"),
    (gathered(), "partition('i')", "found none"),
    (transpose(3, 4), "split('i', 4)\npartition('io')", "no iteration of io is free"),
    # specialize
    (two_rows(), "specialize('n > ')", "a condition like 'n % 8 == 0', found 'n > '"),
    (two_rows(), "specialize('n')", "a comparison of two numbers, found n"),
    (two_rows(), "specialize('n == i')", "one of the extents n, m, found i"),
    (two_rows(), "specialize('n % m == 0')", "expected to divide by a number, found n % m"),
    (
        two_rows(),
        f"specialize('n * {2**31 - 1} * {2**31 - 1} == 4')",
        f"int64 holds for all extents below {2**31}, found n",
    ),
    (two_rows(), f"specialize('{'n + ' * 300}1 == 4')", "at most 256 characters, found 1206"),
    (two_rows(), f"specialize('{'n > 4 and ' * 300}n > 3')", "at most 256 characters"),
    (two_rows(), "specialize('n >= 0')", "n >= 0 always holds here"),
    (two_rows(), "specialize('n < 0')", "n < 0 never holds here"),
    (two_rows(), "specialize('n == 1', 'q')", "expected one of the loops"),
    # unroll_and_jam
    (triangular(), "unroll_and_jam('i', 2)", "the extent of j depends on i"),
    (prefix_sum(), "unroll_and_jam('i', 2)", r"expected a loop in i, found none \(unroll it\)"),
    (matmul(), "unroll_and_jam('i', 1)", "a factor of at least 2, found 1"),
    (matmul(), "unroll_and_jam('i', 65)", "a factor of at most 64, found 65"),
    (matmul(), "unroll_and_jam('i', 8)", "at least 8 iterations of loop i, found 4"),
    (seidel(), "unroll_and_jam('t', 2)", r"turn a dependence around \(A\[.*must run before"),
    # software_pipeline
    (
        row_buffer(),
        "software_pipeline('i')",
        "temporaries of its own, then to compute",
    ),
    (matmul(), "software_pipeline('i')", "found no copy first"),
    (row_buffer(guard=False), "software_pipeline('i', 9)", "at most 8 stages, found 9"),
    (forwarding(), "software_pipeline('i')", r"loading 1 of i ahead .*must run before"),
    # tails
    (transpose(), "split('i', 2, '', '', 'round_up')", r"writes y\[0, 5\], and only temporaries"),
    (chain(), "split('j', 4, '', '', 'round_up')", r"reads t\[10\], which is not there"),
    (refusing_cast(), "split('i', 4, '', '', 'round_up')", "may convert what int32 cannot hold"),
    (
        overwritten(),
        "split('i', 4, '', '', 'round_up')",
        "overwrites what another .*must run",
    ),
    (matmul(), "split('k', 3, '', '', 'shift_inwards')", r"read what was overwritten \(C\[i, j\]"),
    (shift_down(), "split('i', 4, '', '', 'shift_inwards')", "read what was overwritten"),
    (two_rows(), "split('i', 4, '', '', 'shift_inwards')", "of i, found no number"),
    (
        transpose(),
        "split('i', 8, '', '', 'shift_inwards')",
        "at least 8 as the extent .* 5",
    ),
    # names
    (transpose(), "rename('i', 'j')", "a free name for a loop, found 'j'"),
    (transpose(), "rename('i', 'int')", "a name for a loop that C leaves free, found 'int'"),
    (transpose(), "add_unit_loop('i', 'x')", "a free name for a loop, found 'x'"),
    (transpose(), "unroll('i', 70)", "a factor of 1 to "),
    (transpose(), "vectorize('j', 3)", "an extent of 2, 4, 8, 16, 32, 64, found 3 in loop ji"),
    # memory
    (two_rows(), "stream_store('y')", "y is read again in the procedure"),
    (matmul(), "stream_store('C')", "combines with what C has"),
    (matmul(), "stream_store('A')", "expected an output, found input A"),
    (matmul(), "stream_store('Z')", "one of the tensors A, B, C, found 'Z'"),
    (matmul(), "prefetch('A', 'j', 2)", "to touch elements of A known ahead, found none"),
    (gathered_in_part(), "prefetch('x', 'i', 1)", "elements of x known ahead, found none"),
    (matmul(), "prefetch('A', 'i', 2, 4)", "a locality of 0 to 3, found 4"),
    (matmul(), "prefetch('A', 'i', 0)", "a distance of at least 1, found 0"),
    (row_buffer(guard=False), "prefetch('t', 'i', 1)", "to touch elements of t known ahead"),
]


@pytest.mark.parametrize(("procedure", "trace", "message"), REFUSED)
def test_what_may_not_be_applied_is_refused_with_a_reason(procedure, trace, message):
    with pytest.raises(ScheduleError, match=message) as caught:
        apply_trace(verify(procedure), parse_trace(trace))
    # What others are made of refuses under its own name.
    assert caught.value.op in (parse_trace(trace)[-1].op, "split", "partition")


def touched(procedure):
    """What every run of a store touches: (loop variables, elements, whether they are written)."""
    found = []

    def elements(node, values):
        for part in walk(node):
            if isinstance(part, Load) and not any(isinstance(i, Load) for i in part.indices):
                place = tuple(number(index, values) for index in part.indices)
                found[-1][1].append((part.tensor, place, False))

    def number(node, values):
        out = simplify(substitute(node, {name: whole(v) for name, v in values.items()}))
        assert isinstance(out, Const)
        return out.value

    def run(node, values):
        match node:
            case For(var, extent, body, _):
                for i in range(number(extent, values)):
                    run(body, {**values, var: i})
            case If(condition, then):
                if number(condition, values):
                    run(then, values)
            case Block(items):
                for item in items:
                    run(item, values)
            case Allocate(_, body):
                run(body, values)
            case Store(name, indices, value, _):
                found.append((values, []))
                elements(value, values)
                place = tuple(number(index, values) for index in indices)
                found[-1][1].append((name, place, True))

    run(procedure.body, {})
    return found


def test_the_counterexamples_of_refusals_are_such():
    """Both iterations exist, in that order, and touch one element, which one of them writes."""
    seen = 0
    for procedure, trace, _ in REFUSED:
        *before, last = parse_trace(trace)
        at = apply_trace(verify(procedure), before)
        try:
            apply(at, last)
        except ScheduleError as error:
            if error.conflict is None or last.args[-1:] == ("round_up",):
                continue
            points = re.findall(r"\(((?:\w+=\d+(?:, )?)+)\)", error.conflict)
            first, second = (
                {k: int(v) for k, v in (item.split("=") for item in point.split(", "))}
                for point in points
            )
        runs = touched(at)
        earlier = [n for n, (values, _) in enumerate(runs) if values == first]
        later = [n for n, (values, _) in enumerate(runs) if values == second]
        shared = [
            a
            for n in earlier
            for m in later
            for a in runs[n][1]
            for b in runs[m][1]
            if n <= m and a[:2] == b[:2] and (a[2] or b[2])
        ]
        assert shared, (trace, first, second)
        seen += 1
    assert seen >= 6


def test_no_clamp_is_left_in_the_middle():
    text = text_after(LOOP_PROGRAMS["upsampled"], "partition('i')")
    assert text == (
        "  y[0] = x[0] + x[0]\n"
        "  for i in 10:\n"
        "    y[i + 1] = x[(i + 1) // 2] + x[(i + 1) // 2 - 1 + (i + 1) % 2 * 2]\n"
        "  y[11] = x[5] + x[5]\n"
    )


def test_what_may_divide_by_nothing_stays_inside():
    """Where m is 0 the guard is never tested."""
    guard = Binary("lt", Binary("floordiv", I, Var("m")), Binary("sub", Var("n"), I))
    nest = For("i", Var("n"), For("j", Var("m"), If(guard, Store("y", (I, Var("j")), f32(1.0)))))
    first = For("a", Var("n"), For("b", Var("m"), Store("y", (Var("a"), Var("b")), f32(0.0))))
    tensors = (tensor("y", "n", "m", role="output"),)
    procedure = verify(Procedure("f", ("n", "m"), tensors, Block((first, nest))))
    with pytest.raises(ScheduleError, match="found none"):
        apply(procedure, D("partition", "i"))
    trace = parse_trace("peel('i', 1)\nprefetch('y', 'i', 1)\nspecialize('n == 5')")
    assert_same(procedure, apply_trace(procedure, trace))


def test_a_fission_that_reads_ahead_is_refused_with_two_iterations():
    body = Block(
        (
            Store("A", (I, whole(0)), Load("A", (Binary("add", I, whole(1)), whole(1)))),
            Store("A", (I, whole(1)), f32(0.0)),
        )
    )
    procedure = filled("A", whole(6), whole(2), For("i", whole(5), body))
    assert_same(procedure, apply(procedure, D("fission", "i", 1)))
    body = Block(tuple(reversed(body.body)))
    again = filled("A", whole(6), whole(2), For("i", whole(5), body))
    with pytest.raises(ScheduleError, match="turns a dependence around") as caught:
        apply(again, D("fission", "i", 1))
    first, second = re.findall(r"i=(\d)", caught.value.conflict)
    assert int(second) == int(first) + 1


def moves(procedure, rng):
    """Some directives that might be tried on a procedure."""
    names = [loop.var for loop in loops(procedure)]
    loop, other = rng.choice(names), rng.choice(names)
    small = rng.choice([2, 3, 4])
    tail = rng.choice(["guard", "round_up", "shift_inwards", "partition"])
    yield D("split", loop, small, "", "", tail)
    yield D("vectorize", loop, rng.choice([2, 4, 8]))
    yield D("unroll", loop, small)
    yield D("unroll", loop)
    yield D("parallel", loop)
    yield D("reorder", loop, other)
    yield D("fuse", loop, other)
    yield D("tile", loop, other, 2, 4, tail)
    yield D("fission", loop, rng.choice([1, 2, other]))
    yield D("merge", loop, other)
    yield D("reverse", loop)
    yield D("peel", loop, rng.randrange(3), rng.randrange(3))
    yield D("partition", loop)
    yield D("unroll_and_jam", loop, small)
    yield D("software_pipeline", loop, small)
    yield D("rename", loop, f"r_{loop}")
    yield D("add_unit_loop", loop, f"u_{loop}")
    yield D("prefetch", rng.choice([t.name for t in procedure.tensors]), loop, small)
    yield D("stream_store", "y")
    if procedure.extents:
        extent = rng.choice(procedure.extents)
        condition = rng.choice(["{} == 8", "{} % 4 == 0", "{} >= 5", "{} != 3 and {} < 9"])
        yield D("specialize", condition.replace("{}", extent), *rng.choice([(), (loop,)]))


def random_trace(procedure, seed, length=4):
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


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(LOOP_PROGRAMS)), st.integers(0, 10**6))
def test_any_legal_trace_keeps_the_meaning(name, seed):
    before = LOOP_PROGRAMS[name]
    _, after = random_trace(before, seed)
    assert_same(before, after, (0, 1, 8))


@needs_cc
@pytest.mark.cc
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(list(LOOP_PROGRAMS)), seed=st.integers(0, 10**6))
def test_any_legal_trace_compiles_to_the_same(cache, name, seed):
    before = LOOP_PROGRAMS[name]
    trace, _ = random_trace(before, seed)
    try:
        kernel = compile_procedure(before, trace, cache=cache, flags=FLAGS)
    except CodegenError as error:
        assert "statements after unrolling" in str(error)  # noqa: PT017
        return
    for extents in sizes(before, (0, 5, 8)):
        inputs = arrays(before, extents)
        wanted, got = interpret(before, inputs, extents), kernel(inputs, extents)
        for key, array in wanted.items():
            np.testing.assert_array_equal(got[key], array, err_msg=print_trace(trace))


def test_a_loop_whose_extent_varies_is_rounded_up():
    """The number of iterations depends on the loop around, the memory for them does not."""
    k = Var("k")
    fill = For("i", Binary("sub", whole(3), k), Store("t", (I,), Load("x", (I,))))
    use = Store("y", (k,), Load("t", (whole(0),)))
    body = Allocate(Tensor("t", (whole(3),), "float32"), Block((fill, use)))
    tensors = (tensor("x", 4), tensor("y", 3, role="output"))
    before = verify(Procedure("f", (), tensors, For("k", whole(3), body)))
    after = apply_trace(before, parse_trace("split('i', 2, '', '', 'round_up')"))
    assert "allocate t: float32[4]" in print_procedure(after)
    assert_same(before, after)
