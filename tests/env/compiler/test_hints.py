"""What changes how a program runs and not what it computes: streams, prefetches, instructions'
names, memory scopes, thread levels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from programs import add, elementwise, f32, mul, tensor

from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.errors import VerifyError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Store,
    Tensor,
    Var,
    map_statements,
    statements,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import simplify_procedure, whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.kind import vectorize
from kernelwright.env.spaces.loopform import loop_text

I = Var("i")  # noqa: E741
DOUBLED = mul(Load("x", (I,)), f32(2.0))
TILE = Tensor("t", (whole(1),), "float32", scope="register")


def decorated(kind=LoopKind.BLOCK_X):
    """y = 2 x through a register, with every hint there is."""
    tensors = (tensor("x", 16), tensor("y", 16, role="output"))
    here = Store("t", (whole(0),), DOUBLED)
    there = Store("y", (I,), Load("t", (whole(0),)), stream=True)
    ahead = Prefetch("x", (I,), False, 2)
    body = Allocate(TILE, Block((ahead, Call("copy_one", Block((here, there))))))
    return Procedure("f", (), tensors, For("i", whole(16), body, kind))


def test_the_text_shows_them():
    assert print_procedure(decorated()) == (
        "def f(input x: float32[16], output y: float32[16]):\n"
        "  for i in 16:  # block.x\n"
        "    allocate t: float32[1]  # register\n"
        "    prefetch x[i]  # read, locality 2\n"
        "    call copy_one:\n"
        "      t[0] = x[i] * float32(2.0)\n"
        "      y[i] = t[0]  # stream\n"
    )


@pytest.mark.cc
def test_they_change_no_value(tmp_path):
    x = np.arange(16, dtype=np.float32)
    procedure = verify(simplify_procedure(decorated()))
    assert interpret(procedure, {"x": x})["y"].tolist() == (2 * x).tolist()
    kernel = compile_procedure(procedure, cache=BuildCache(tmp_path))
    assert kernel({"x": x})["y"].tolist() == (2 * x).tolist()
    assert "__builtin_prefetch(&x[i], 0, 2);" in generate(procedure)


def test_rewriting_keeps_them():
    procedure = decorated()
    assert map_statements(procedure.body, lambda e: e) == procedure.body
    kinds = [type(s).__name__ for s in statements(procedure.body)]
    assert kinds == ["For", "Allocate", "Block", "Prefetch", "Call", "Block", "Store", "Store"]


def test_programs_that_differ_in_them_are_different_programs():
    plain = decorated(LoopKind.SERIAL)
    streamless = map_statements(
        plain.body, lambda e: e, lambda s: replace(s, stream=False) if isinstance(s, Store) else s
    )
    texts = {loop_text(p) for p in (plain, decorated(), replace(plain, body=streamless))}
    assert len(texts) == 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (Prefetch("z", (whole(0),)), "one of the tensors x, y, found 'z'"),
        (Prefetch("x", (whole(0),), False, 4), "a locality from 0 to 3, found 4"),
        (Call("no name", Block(())), "the name of an instruction"),
        (Allocate(replace(TILE, scope="cloud"), Block(())), "one of auto, heap, stack"),
    ],
)
def test_ill_formed_ones_are_refused(body, message):
    tensors = (tensor("x", 16), tensor("y", 16, role="output"))
    with pytest.raises(VerifyError, match=message):
        verify(Procedure("f", (), tensors, body))


def test_an_argument_has_no_scope():
    procedure = elementwise(DOUBLED)
    shared = replace(procedure.tensors[0], scope="shared")
    with pytest.raises(VerifyError, match="auto for an argument, found input x: shared"):
        verify(replace(procedure, tensors=(shared, procedure.tensors[1])))


def test_a_prefetch_in_lanes_is_one():
    tensors = (tensor("x", 16), tensor("y", 16, role="output"))
    body = Block((Prefetch("x", (I,)), Store("y", (I,), DOUBLED)))
    lanes = vectorize(Procedure("f", (), tensors, For("i", whole(16), body)), "i")
    assert generate(lanes).count("__builtin_prefetch(&x[0], 0, 3);") == 1


def test_c_has_no_barrier_that_threads_may_not_reach():
    tensors = (tensor("x", 16), tensor("y", 16, role="output"))
    few = If(Binary("lt", I, whole(8)), Block((Store("y", (I,), DOUBLED), Barrier())))
    with pytest.raises(CodegenError, match="a barrier that all threads of loop i reach"):
        generate(Procedure("f", (), tensors, For("i", whole(16), few, LoopKind.THREAD_X)))


def test_a_prefetch_of_what_is_in_registers_asks_for_nothing():
    fill = Store("t", (whole(0),), DOUBLED)
    ask = Prefetch("t", (add(I, whole(4)),))
    body = Allocate(TILE, Block((fill, ask, Store("y", (I,), Load("t", (whole(0),))))))
    tensors = (tensor("x", 16), tensor("y", 16, role="output"))
    text = generate(verify(Procedure("f", (), tensors, For("i", whole(16), body))))
    assert "kw_t_0" in text
    assert "prefetch" not in text
