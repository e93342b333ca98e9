"""Loops of unknown length: merges by the interpreter and in C, and what schedules may do to
them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import merges
import numpy as np
import pytest
from merges import I, P, dense, inputs, intersection, less, register, union
from test_codegen import compiled, needs_cc
from test_misses import agrees
from test_schedule import D

from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.errors import ScheduleError, VerifyError
from kernelwright.env.compiler.ir import execute
from kernelwright.env.compiler.ir.interpret import InterpretError, interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Store,
    Tensor,
    Var,
    While,
    map_statements,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import EMPTY, simplify_statement, whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.machine.cpu import (
    LOADED_TRIPS,
    estimate,
    load_machine,
    machine_names,
)
from kernelwright.env.compiler.machine.nest import EstimateError
from kernelwright.env.compiler.machine.tradeoff import measure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS
from kernelwright.env.compiler.schedule.proposals import PROPOSALS, proposals
from kernelwright.env.compiler.schedule.trace import apply, apply_trace
from kernelwright.env.spaces.loopform import loop_text

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "while"
TRUE = Const(True, "bool")
SANITIZED = ("-O1", "-g", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def arguments_of(seed, program):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([0, 1, 2, 5, 9]))
    arrays, extents, a, b = inputs(rng, n)
    if program is union:
        extents["nc"] = extents["na"] + extents["nb"]
    return arrays, extents, a, b


def seeds(count, first):
    """The first ones, and in an audit the others."""
    rest = (pytest.param(seed, marks=pytest.mark.audit) for seed in range(first, count))
    return [*range(first), *rest]


@pytest.mark.parametrize("seed", range(12))
def test_merges_are_what_dense_arithmetic_says(seed):
    arrays, extents, a, b = arguments_of(seed, intersection)
    assert np.array_equal(interpret(intersection(), arrays, extents)["y"], (a * b).sum(1))
    arrays, extents, a, b = arguments_of(seed, union)
    out = interpret(union(), arrays, extents)
    found = {part: out[f"c{part}"] for part in ("pos", "crd", "val")}
    assert np.array_equal(dense(found, extents["n"]), a + b)
    for i in range(extents["n"]):
        row = found["crd"][found["pos"][i] : found["pos"][i + 1]]
        assert (np.diff(row) > 0).all()


@needs_cc
@pytest.mark.parametrize("flags", [DEFAULT_FLAGS, SANITIZED], ids=["default", "sanitized"])
@pytest.mark.parametrize("program", [intersection, union])
def test_c_does_what_the_interpreter_does(cache, program, flags):
    kernel = compiled(program(), cache, flags)
    for seed in range(12):
        arrays, extents, _, _ = arguments_of(seed, program)
        expected = interpret(program(), arrays, extents)
        found = kernel(arrays, extents)
        assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_the_text_and_the_c_are_what_was_reviewed(request):
    for name, program in (("dots", intersection), ("spadd", union)):
        for ending, text in (("txt", print_procedure(program())), ("c", generate(program()))):
            path = GOLDEN / f"{name}.{ending}"
            if request.config.getoption("--update-golden"):
                path.write_text(text)
            assert text == path.read_text()


def test_running_positions_are_local_variables_in_c():
    text = generate(union())
    assert "int64_t kw_r_0;" in text
    assert "while (kw_p_0 < ((int64_t)apos[i + 1])) {" in text
    assert "kw_r_0 += 1;" in text


def test_a_loop_without_an_end_is_stopped(monkeypatch):
    monkeypatch.setattr(execute, "MAX_WHILE_ITERATIONS", 10)
    body = While(TRUE, Store("y", (), whole(1)))
    procedure = Procedure("f", (), (Tensor("y", (), "int64", "output"),), body)
    with pytest.raises(InterpretError, match="while True: expected an end within 10 iterations"):
        interpret(verify(procedure), {})


def counted(condition, *body):
    tensors = (Tensor("y", (whole(8),), "int64", "output"),)
    first = Store("p", (), whole(0))
    forward = Store("p", (), whole(1), "add")
    loop = While(condition, Block((*body, forward)))
    return Procedure("f", (), tensors, Allocate(register("p"), Block((first, loop))))


def test_ten_iterations_of_ten_are_no_loop_without_an_end(monkeypatch):
    monkeypatch.setattr(execute, "MAX_WHILE_ITERATIONS", 8)
    procedure = verify(counted(less(P, whole(8)), Store("y", (P,), P)))
    assert interpret(procedure, {})["y"].tolist() == list(range(8))


def test_a_condition_of_numbers_that_are_compared_is_a_number():
    loaded = [Load("x", (whole(at),)) for at in (0, 1, 0)]
    same = [Binary("eq", loaded[0], each) for each in loaded[1:]]
    stores = [Store("y", (whole(i),), Cast("int64", each)) for i, each in enumerate(same)]
    tensors = (
        Tensor("x", (whole(2),), "int32", "input"),
        Tensor("y", (whole(2),), "int64", "output"),
    )
    procedure = verify(Procedure("f", (), tensors, Block(tuple(stores))))
    assert interpret(procedure, {"x": np.array([3, 4], np.int32)})["y"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (While(whole(1), Store("y", (whole(0),), whole(1))), "while: expected a condition"),
        (While(less(Load("q", ()), whole(1)), EMPTY), "while: expected one of the tensors"),
        (While(TRUE, Store("y", (), whole(1))), "while > store y: expected 1 indices"),
        (
            While(TRUE, For("i", whole(2), EMPTY, LoopKind.THREAD_X)),
            "while: expected no block or thread loops",
        ),
    ],
)
def test_what_is_no_while_is_refused(node, message):
    procedure = Procedure("f", (), (Tensor("y", (whole(1),), "int64", "output"),), node)
    with pytest.raises(VerifyError, match=message):
        verify(procedure)


def test_what_never_runs_is_gone_and_what_might_stays():
    store = Store("y", (whole(0),), whole(1))
    assert simplify_statement(While(Const(False, "bool"), store)) == EMPTY
    assert simplify_statement(While(less(whole(2), whole(1)), store)) == EMPTY
    for condition in (TRUE, less(P, whole(1))):
        assert simplify_statement(While(condition, store)) == While(condition, store)
        # A loop whose body does nothing may have no end, which is no nothing.
        assert simplify_statement(While(condition, Block(()))) == While(condition, EMPTY)


KEPT = (
    D("split", "i", 2),
    D("split", "i", 3, "io", "ii", "partition"),
    D("unroll", "i", 2),
    D("peel", "i", 1),
    D("peel", "i", 0, 1),
    D("specialize", "n == 5"),
    D("rename", "i", "row"),
    D("add_unit_loop", "i", "one"),
    D("unroll", "ii"),
    D("split", "io", 2),
    D("partition", "io"),
)
ONLY_INTERSECTION = (D("parallel", "i"), D("parallel", "io"), D("reverse", "i"))


@pytest.mark.parametrize("seed", seeds(12, 4))
@pytest.mark.parametrize("program", [intersection, union])
def test_any_schedule_keeps_the_meaning(program, seed):
    rng = np.random.default_rng(seed)
    procedure = program()
    moves = [*KEPT, *ONLY_INTERSECTION]
    applied = []
    for at in rng.permutation(len(moves)):
        try:
            procedure = apply(procedure, moves[at])
        except ScheduleError:
            continue
        applied.append(moves[at])
    assert applied
    assert program is intersection or not set(applied) & set(ONLY_INTERSECTION)
    for draw in range(4):
        arrays, extents, _, _ = arguments_of(seed + draw, program)
        expected = interpret(program(), arrays, extents)
        found = interpret(procedure, arrays, extents)
        assert all(np.array_equal(found[name], expected[name]) for name in expected), applied


def scaled_rows():
    """A dense loop in a merge loop: rows of a dense matrix, one for each coordinate."""
    j, columns = Var("j"), whole(4)
    value = Binary("mul", Load("aval", (P,)), Load("w", (merges.here("a", P), j)))
    add_row = For("j", columns, Store("z", (I, j), value, "add"))
    clear = For("j0", columns, Store("z", (I, Var("j0")), Const(0.0, "float64")))
    body = Block(
        (
            Store("p", (), merges.start("a")),
            clear,
            merges.rest("a", P, "p", add_row),
        )
    )
    rows = Var("n")
    tensors = (
        *merges.operands(rows)[:3],
        Tensor("w", (whole(7), columns), "float64", "input"),
        Tensor("z", (rows, columns), "float64", "output"),
    )
    nest = For("i", rows, Allocate(register("p"), body))
    return verify(Procedure("spmm", ("n", "na"), tensors, nest))


def only_of(procedure, arrays, extents, rng):
    """The arguments that a procedure has."""
    given = {**arrays, "w": rng.integers(1, 9, (7, 4)).astype(np.float64)}
    named = {t.name for t in procedure.tensors}
    return (
        {name: array for name, array in given.items() if name in named},
        {name: extents[name] for name in procedure.extents},
    )


@pytest.mark.parametrize("seed", seeds(24, 6))
def test_whatever_is_proposed_and_not_refused_keeps_the_meaning(seed):
    rng = np.random.default_rng(seed)
    program = (intersection, union, scaled_rows)[seed % 3]
    procedure, applied = program(), []
    for op in rng.choice(list(PROPOSALS), 60):
        found = list(proposals(procedure, str(op)))
        if not found or len(applied) == 6:
            continue
        step = found[rng.integers(len(found))]
        try:
            procedure = apply(procedure, step)
        except ScheduleError:
            continue
        applied.append(step)
    assert applied
    for draw in range(3):
        some, sizes, _, _ = arguments_of(seed + draw, union)
        arrays, extents = only_of(procedure, some, sizes, rng)
        expected = interpret(program(), arrays, extents)
        found = interpret(procedure, arrays, extents)
        assert all(np.array_equal(found[name], expected[name]) for name in expected), applied


@needs_cc
@pytest.mark.parametrize("seed", range(4))
def test_a_schedule_compiles_to_the_same(cache, seed):
    steps = [D("split", "i", 2), D("parallel", "io"), D("unroll", "ii")][: seed + 1]
    procedure = apply_trace(intersection(), steps)
    arrays, extents, _, _ = arguments_of(seed, intersection)
    expected = interpret(intersection(), arrays, extents)["y"]
    assert np.array_equal(compiled(procedure, cache)(arrays, extents)["y"], expected)


@pytest.mark.parametrize(
    ("program", "directive", "message"),
    [
        (intersection, D("vectorize", "i", 4), "expected no while in vectorized loop ii"),
        (intersection, D("split", "i", 2, "io", "ii", "round_up"), "round_up: expected no while"),
        (intersection, D("fission", "i", 1), "expected no while in the procedure"),
        (intersection, D("cache_write", "i", "y"), "expected no while in the procedure"),
        (intersection, D("cache_read", "i", "aval"), "expected no while in the procedure"),
        (intersection, D("scalar_replacement", "i", "y"), "expected no while in the procedure"),
        (intersection, D("software_pipeline", "i"), "expected no while in the procedure"),
        (intersection, D("unroll_and_jam", "i", 2), "expected no while in the procedure"),
        (intersection, D("bind", "i", "block.x"), "expected no while in the procedure"),
        (union, D("parallel", "i"), "carries a dependence"),
        (union, D("reverse", "i"), "carries a dependence"),
    ],
)
def test_what_may_not_be_done_around_a_while_is_refused(program, directive, message):
    with pytest.raises(ScheduleError, match=message):
        apply(program(), directive)


def inside(*body, kind=LoopKind.SERIAL):
    """A loop in a while: ``y[j]`` for as long as ``p`` says."""
    return verify(counted(less(P, whole(3)), For("j", whole(8), Block(body), kind)))


def test_a_loop_in_a_while_is_scheduled_by_what_its_body_touches():
    free = inside(Store("y", (Var("j"),), P))
    for directive in (D("vectorize", "j"), D("parallel", "j"), D("split", "j", 4)):
        done = apply(free, directive)
        assert interpret(done, {})["y"].tolist() == [2] * 8
    # The condition reads what the loop writes.
    bound = inside(Store("y", (Var("j"),), P), Store("p", (), whole(0), "add"))
    for directive in (D("vectorize", "j"), D("parallel", "j")):
        with pytest.raises(ScheduleError, match="carries a dependence"):
            apply(bound, directive)


def test_a_condition_reads_what_another_iteration_writes():
    # Row i runs for as long as the row before lets it.
    body = While(
        less(Load("y", (I,)), Load("y", (merges.NEXT,))), Store("y", (I,), whole(1), "add")
    )
    tensors = (Tensor("y", (whole(8),), "int64", "output"),)
    fill = For("k", whole(8), Store("y", (Var("k"),), Var("k")))
    nest = For("i", whole(7), body)
    procedure = verify(Procedure("f", (), tensors, Block((fill, nest))))
    for directive in (D("parallel", "i"), D("reverse", "i")):
        with pytest.raises(ScheduleError, match="carries a dependence"):
            apply(procedure, directive)


def test_estimates_take_a_while_for_a_loop_of_assumed_length():
    machine = load_machine(machine_names()[0])
    procedure = counted(less(P, whole(8)), Store("y", (P,), P))
    times = [estimate(procedure, machine, loaded_trips=trips).time_s for trips in (8.0, 800.0)]
    assert 0 < times[0] < times[1]
    assert estimate(procedure, machine) == estimate(procedure, machine, loaded_trips=LOADED_TRIPS)
    with pytest.raises(EstimateError, match="found while p"):
        measure(intersection(), extents={"n": 4, "na": 3, "nb": 3})


def test_texts_of_nests_tell_a_while_from_a_guard():
    loop = counted(less(P, whole(8)), Store("y", (P,), P))
    first, loop_in = loop.body.body.body
    guard = replace(
        loop, body=Allocate(register("p"), Block((first, If(loop_in.condition, loop_in.body))))
    )
    assert loop_text(loop) != loop_text(guard)
    assert "{while" in loop_text(loop)


@needs_cc
@pytest.mark.parametrize("program", [intersection, union])
def test_accesses_of_a_merge_are_the_interpreter_s(program, monkeypatch):
    def in_memory(node):
        if isinstance(node, Allocate):
            return replace(node, tensor=replace(node.tensor, scope="auto"))
        return node

    procedure = program()
    body = map_statements(procedure.body, lambda e: e, in_memory)
    arrays, extents, _, _ = arguments_of(3, program)
    agrees(replace(procedure, body=body), arrays, monkeypatch, extents=extents)
