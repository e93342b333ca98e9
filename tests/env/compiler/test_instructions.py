"""Declared instructions: what they may stand for, and that their C does it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from programs import add, f32, matmul, mul, tensor
from test_codegen import TOOLCHAIN, compiled, needs_cc

from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.conformance import ConformanceError, verify_instruction
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Call,
    Cast,
    Const,
    For,
    Load,
    Procedure,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.instruction import (
    Instruction,
    InstructionError,
    declare,
    find_instruction,
    known_instructions,
)
from kernelwright.env.compiler.schedule.instructions import INSTRUCTIONS
from kernelwright.env.compiler.schedule.instructions.write import accumulate, load, under, window
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace

TILE = "split('i', {0})\nsplit('j', 16)\nreorder('io', 'jo', 'k', 'ii', 'ji')\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def values(procedure, seed=0):
    rng, given = np.random.default_rng(seed), {}
    for t in procedure.tensors:
        if t.role == "input":
            shape = [e.value for e in t.shape]
            given[t.name] = rng.integers(0, 4, shape).astype(t.dtype)
    return given


def after(procedure, text):
    trace = parse_trace(text)
    assert parse_trace(print_trace(trace)) == trace
    return apply_trace(verify(procedure), trace)


def ordered(m, n, k):
    """A matmul with its loops as i, j, k."""
    return apply_trace(verify(matmul(m, n, k)), parse_trace("reorder('i', 'j', 'k')"))


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize("name", sorted(INSTRUCTIONS))
def test_every_declared_instruction_does_what_it_means(name, cache):
    instruction = find_instruction(name)
    assert instruction.name == name
    verify_instruction(instruction, cache, toolchain=TOOLCHAIN.name)


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p < k", "p < k - 1"),
        ("A[i * A_0 + p * A_1]", "A[i * A_0 + p]"),
        ("(B + p * B_0)", "(B + p * 16)"),
        ("i < 4; i++) *(row *)", "i < 5; i++) *(row *)"),
        ("sum[i] +=", "sum[i] -="),
    ],
)
def test_c_that_does_something_else_is_found(old, new, cache):
    right = find_instruction("fma_4x4_f64")
    text = right.c.replace("row sum[4]", "row sum[5] = {}").replace(old, new)
    assert text != right.c.replace("row sum[4]", "row sum[5] = {}")
    name = "wrong_" + "".join(filter(str.isalnum, old))
    wrong = declare(replace(right, semantics=replace(right.semantics, name=name), c=text))
    with pytest.raises(ConformanceError, match=rf"{name} with \{{'k': \d\}}: C_result\["):
        verify_instruction(wrong, cache, toolchain=TOOLCHAIN.name)


@needs_cc
@pytest.mark.cc
@pytest.mark.parametrize(
    ("size", "rows", "name"), [(64, 8, "fma_8x16_f32"), (48, 6, "fma_6x16_f32")]
)
def test_a_tensorized_matmul(size, rows, name, cache):
    procedure = ordered(size, size, size)
    text = TILE.format(rows) + f"tensorize('k', '{name}')\nparallel('io')"
    scheduled = after(procedure, text)
    assert f"call {name}:" in print_procedure(scheduled)
    source = generate(scheduled)
    assert source.count(f"kw_call_{name}(") == 2
    inputs = values(procedure)
    kernel = compile_procedure(procedure, parse_trace(text), cache=cache)
    np.testing.assert_array_equal(kernel(inputs)["C"], inputs["A"] @ inputs["B"])


def test_the_meaning_of_a_call_is_its_nest():
    procedure = ordered(16, 32, 3)
    scheduled = after(procedure, TILE.format(8) + "tensorize('k', 'fma_8x16_f32')")
    inputs = values(procedure)
    np.testing.assert_array_equal(
        interpret(scheduled, inputs)["C"], interpret(procedure, inputs)["C"]
    )


REFUSED = [
    (ordered(60, 64, 64), "fma_8x16_f32", 8, r"expected a store into C, found a guard \(io \* 8"),
    (ordered(64, 64, 64), "fma_6x16_f32", 8, "expected an extent of loop ii of 6, found 8"),
    (ordered(64, 64, 64), "fma_4x4_f64", 4, "expected an extent of loop ji of 4, found 16"),
    (ordered(64, 64, 64), "dot_4_u8s8", 8, "expected an extent of loop k of 16, found 64"),
    (ordered(64, 64, 64), "fma", 8, "expected one of fma_8x16_f32, .* found 'fma'"),
]


@pytest.mark.parametrize(("procedure", "name", "rows", "message"), REFUSED)
def test_what_is_not_the_instruction_is_refused_where_they_differ(procedure, name, rows, message):
    with pytest.raises(ScheduleError, match=message):
        after(procedure, TILE.format(rows) + f"tensorize('k', '{name}')")


def nest(update, *tensors, m=8, n=16, k=3, order="pij"):
    """An update under loops p, i, j in some order."""
    sizes = {"p": k, "i": m, "j": n}
    body = update
    for name in reversed(order):
        body = For(name, whole(sizes[name]), body)
    return verify(Procedure("f", (), tensors, body))


A = load("A", "i", "p")
B = load("B", "p", "j")
C = load("C", "i", "j")
OUT = tensor("C", 8, 16, role="output")
IN = (tensor("A", 8, 3), tensor("B", 3, 16))
ADD = accumulate(C, A, B)
WRONG = [
    (nest(replace(ADD, reduce="max"), *IN, OUT), "expected add into C, found max"),
    (nest(replace(ADD, reduce=None), *IN, OUT), "expected add into C, found ="),
    (nest(replace(ADD, value=add(A, B)), *IN, OUT), "expected mul, found add"),
    (nest(replace(ADD, value=A), *IN, OUT), "expected mul, found an element of A"),
    (nest(replace(ADD, value=mul(A, f32(2.0))), *IN, OUT), "an element of B, found float32"),
    (
        nest(accumulate(C, A, load("B", "j", "p")), tensor("A", 8, 3), tensor("B", 16, 3), OUT),
        "expected the last axis of B side by side, found a step of 3",
    ),
    (
        nest(accumulate(load("C", "j", "i"), A, B), *IN, tensor("C", 16, 8, role="output")),
        "expected the last axis of C side by side, found a step of 8",
    ),
    (
        nest(
            ADD,
            tensor("A", 8, 3, dtype="int32"),
            tensor("B", 3, 16, dtype="int32"),
            tensor("C", 8, 16, dtype="int32", role="output"),
        ),
        "expected float32 for C, found C: int32",
    ),
    (
        nest(
            accumulate(C, Load("C", (Var("i"), Var("p"))), B),
            tensor("B", 3, 16),
            OUT,
        ),
        "expected A and C in different tensors, found both in C",
    ),
    (
        nest(
            Store("C", (Var("i"), add(Var("i"), Var("j"))), mul(A, B), "add"),
            *IN,
            tensor("C", 8, 32, role="output"),
        ),
        "expected an element of its own for each C, found C",
    ),
    (
        nest(
            Store("C", C.indices, mul(A, Load("B", (Var("p"), add(Var("j"), Var("i"))))), "add"),
            tensor("A", 8, 3),
            tensor("B", 3, 32),
            OUT,
        ),
        "expected a constant step along the window's axes, found B",
    ),
    (nest(ADD, *IN, OUT, order="ipj"), "expected an extent of loop p of 8, found 3"),
]


@pytest.mark.parametrize(("procedure", "message"), WRONG)
def test_a_nest_that_means_something_else_is_no_instruction(procedure, message):
    outer = procedure.body.var
    with pytest.raises(ScheduleError, match=message):
        after(procedure, f"tensorize('{outer}', 'fma_8x16_f32')")


def test_a_product_may_stand_either_way_round():
    procedure = nest(accumulate(C, B, A), *IN, OUT)
    assert "call fma_8x16_f32" in print_procedure(
        after(procedure, "tensorize('p', 'fma_8x16_f32')")
    )


def test_an_extent_that_varies_inside_is_none():
    body = For("i", whole(8), For("p", Var("i"), For("j", whole(16), ADD)))
    short = Instruction(
        Procedure(
            "rows",
            ("k",),
            (
                window("A", (8, "k"), "float32"),
                window("B", ("k", 16), "float32"),
                window("C", (8, 16), "float32", written=True),
            ),
            under(ADD, i=8, p="k", j=16),
        )
    )
    declare(short)
    procedure = verify(Procedure("f", (), (tensor("A", 8, 8), tensor("B", 8, 16), OUT), body))
    with pytest.raises(ScheduleError, match="an extent of loop p that stays, found i"):
        after(procedure, "tensorize('i', 'rows')")


LATER = [
    ("split('ii', 4)", "of loop iio of 8, found 2"),
    ("unroll('ji')", "a serial loop, found ji unrolled"),
    ("reorder('k', 'ji', 'ii')", "of loop ji of 8, found 16"),
    ("tensorize('ii', 'fma_8x16_f32')", "loop ii is not"),
]


@pytest.mark.parametrize(("text", "message"), LATER)
def test_an_instruction_is_not_taken_apart(text, message):
    with pytest.raises(ScheduleError, match=message):
        after(ordered(64, 64, 64), TILE.format(8) + "tensorize('k', 'fma_8x16_f32')\n" + text)


def test_a_call_of_another_nest_has_no_c():
    other = Call("fma_8x16_f32", For("i", whole(8), Store("y", (Var("i"),), f32(1.0))))
    procedure = verify(Procedure("f", (), (tensor("y", 8, role="output"),), other))
    with pytest.raises(CodegenError, match=r"expected a loop \(i\), found a store into y"):
        generate(procedure)


@needs_cc
@pytest.mark.cc
def test_bytes_are_multiplied_in_fours(cache):
    """C[i, n] += A[i, 4 k + q] * B[k, n, q], B packed in fours."""
    i, k, n, q = (Var(name) for name in ("i", "k", "n", "q"))
    left = Cast("int32", Load("A", (i, add(mul(k, whole(4)), q))))
    right = Cast("int32", Load("B", (k, n, q)))
    update = Store("C", (i, n), mul(left, right), "add")
    start = Store("C", (Var("i0"), Var("n0")), Const(0, "int32"))
    body = Block(
        (
            For("i0", whole(3), For("n0", whole(16), start)),
            For("i", whole(3), For("k", whole(5), For("n", whole(16), For("q", whole(4), update)))),
        )
    )
    tensors = (
        tensor("A", 3, 20, dtype="uint8"),
        tensor("B", 5, 16, 4, dtype="int8"),
        tensor("C", 3, 16, dtype="int32", role="output"),
    )
    procedure = verify(Procedure("f", (), tensors, body))
    scheduled = after(procedure, "tensorize('n', 'dot_4_u8s8')")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (3, 20)).astype(np.uint8)
    b = rng.integers(-128, 128, (5, 16, 4)).astype(np.int8)
    wanted = np.einsum("ikq,knq->in", a.reshape(3, 5, 4).astype(int), b.astype(int))
    given = {"A": a, "B": b}
    np.testing.assert_array_equal(interpret(scheduled, given)["C"], wanted)
    np.testing.assert_array_equal(compiled(scheduled, cache)(given)["C"], wanted)


def engine_matmul(m=32, n=16, k=48):
    """Tiles of 16: A's columns and B's rows copied, multiplied, and the sums put back."""
    v = {
        name: Var(name)
        for name in [
            "mo",
            "no",
            "ko",
            "a0",
            "a1",
            "b0",
            "b1",
            "z0",
            "z1",
            "pk",
            "pm",
            "pn",
            "s0",
            "s1",
        ]
    }

    def at(outer, inner):
        return add(mul(v[outer], whole(16)), v[inner])

    def tile(first, second, body):
        return For(first, whole(16), For(second, whole(16), body))

    zero = tile("z0", "z1", Store("P", (v["z0"], v["z1"]), f32(0.0)))
    copy_a = tile(
        "a0", "a1", Store("SA", (v["a0"], v["a1"]), Load("A", (at("mo", "a1"), at("ko", "a0"))))
    )
    copy_b = tile(
        "b0", "b1", Store("SB", (v["b0"], v["b1"]), Load("B", (at("ko", "b0"), at("no", "b1"))))
    )
    product = mul(Load("SA", (v["pk"], v["pm"])), Load("SB", (v["pk"], v["pn"])))
    multiply = For(
        "pk", whole(16), tile("pm", "pn", Store("P", (v["pm"], v["pn"]), product, "add"))
    )
    put = tile(
        "s0", "s1", Store("C", (at("mo", "s0"), at("no", "s1")), Load("P", (v["s0"], v["s1"])))
    )
    step = Block((copy_a, copy_b, multiply))
    for name in ("SB", "SA"):
        step = Allocate(Tensor(name, (whole(16), whole(16)), "float32"), step)
    body = Block((zero, For("ko", whole(k // 16), step), put))
    body = Allocate(Tensor("P", (whole(16), whole(16)), "float32"), body)
    nests = For("mo", whole(m // 16), For("no", whole(n // 16), body))
    tensors = (tensor("A", m, k), tensor("B", k, n), tensor("C", m, n, role="output"))
    return verify(Procedure("f", (), tensors, nests))


SCOPES = """set_scope('SA', 'scratchpad')
set_scope('SB', 'scratchpad')
set_scope('P', 'accumulator')
"""
ENGINE = (
    SCOPES
    + """tensorize('z0', 'engine_zero')
tensorize('a0', 'engine_load')
tensorize('b0', 'engine_load')
tensorize('pk', 'engine_matmul')
tensorize('s0', 'engine_store')
"""
)


@needs_cc
@pytest.mark.cc
def test_an_accelerator_s_program_runs_by_its_meaning(cache):
    procedure = engine_matmul()
    scheduled = after(procedure, ENGINE)
    text = print_procedure(scheduled)
    assert text.count("call engine_") == 5
    assert "allocate P: float32[16, 16]  # accumulator" in text
    assert "// engine_matmul of the matrix engine" in generate(scheduled)
    inputs = values(procedure)
    wanted = inputs["A"] @ inputs["B"]
    np.testing.assert_array_equal(interpret(scheduled, inputs)["C"], wanted)
    np.testing.assert_array_equal(compiled(scheduled, cache)(inputs)["C"], wanted)


def test_an_accelerator_s_memories_are_asked_for():
    with pytest.raises(ScheduleError, match="expected A in scratchpad, found SA in auto"):
        after(engine_matmul(), SCOPES.split("\n", 1)[1] + "tensorize('pk', 'engine_matmul')")
    with pytest.raises(ScheduleError, match="expected Y in auto or heap, found SA in scratchpad"):
        after(engine_matmul(), SCOPES + "tensorize('a0', 'engine_store')")
    with pytest.raises(ScheduleError, match="set_scope: the nest of engine_zero would not be"):
        after(engine_matmul(), ENGINE + "set_scope('P', 'heap')")


def test_what_c_points_at_is_in_memory():
    text = TILE.format(8) + "cache_write('C', 'jo', 'register')\ntensorize('k', 'fma_8x16_f32')"
    with pytest.raises(ScheduleError, match="expected C in memory, found C_write in registers"):
        after(ordered(16, 32, 4), text)
    text = text.replace("register", "stack")
    assert "call fma_8x16_f32" in print_procedure(after(ordered(16, 32, 4), text))


def test_declarations_are_checked():
    meaning = find_instruction("fma_4x4_f64").semantics
    with pytest.raises(InstructionError, match="a window of A, B, C, found 'D'"):
        Instruction(meaning, contiguous=("D",))
    with pytest.raises(InstructionError, match=r"expected scopes of auto, .* for A, found"):
        Instruction(meaning, scopes=(("A", ("cloud",)),))
    twice = Store("C", (Var("i"), Var("j")), Load("A", (Var("i"), Var("i"))))
    tensors = (window("A", (4, 4), "float32"), window("C", (4, 4), "float32", written=True))
    diagonal = Procedure("twice", (), tensors, under(twice, i=4, j=4))
    with pytest.raises(InstructionError, match="a loop variable of its own for every index of A"):
        Instruction(diagonal)
    tensors = (
        window("A", (4,), "float32"),
        window("B", (4,), "float32"),
        window("C", (4,), "float32", written=True),
    )
    copy = Procedure("copy", (), tensors, under(Store("C", (Var("i"),), load("A", "i")), i=4))
    with pytest.raises(InstructionError, match="expected a use of window B, found none"):
        Instruction(copy)
    with pytest.raises(InstructionError, match="expected a new name, found a second fma_4x4_f64"):
        declare(find_instruction("fma_4x4_f64"))
    with pytest.raises(InstructionError, match="did you mean 'fma_4x4_f64'"):
        find_instruction("fma_4x4_f63")
    assert set(INSTRUCTIONS) <= set(known_instructions())
