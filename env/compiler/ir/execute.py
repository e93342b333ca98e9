"""LoopIR's statements executed one element at a time, in order."""

from __future__ import annotations

from typing import Any, assert_never

from kernelwright.env.compiler.ir.evaluate import BINARY, Elements, Memory, evaluate
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Call,
    For,
    If,
    Prefetch,
    Stmt,
    Store,
)


def execute(node: Stmt, variables: dict[str, Any], memory: dict[str, Elements]) -> None:
    """Run a statement without threads of blocks: its loops in order, a barrier is nothing.

    Raises:
        InterpretError: if it goes wrong.
    """
    match node:
        case Store(tensor, indices, value, reduce):
            place = tuple(evaluate(index, variables, memory) for index in indices)
            new = evaluate(value, variables, memory)
            target = memory[tensor]
            if reduce is not None:
                new = BINARY[reduce](target.read(place), new)
            target.write(place, new)
        case For(var, extent, body, _):
            for i in range(evaluate(extent, variables, memory)):
                variables[var] = i
                execute(body, variables, memory)
            variables.pop(var, None)
        case If(condition, then):
            if evaluate(condition, variables, memory):
                execute(then, variables, memory)
        case Block(body):
            for item in body:
                execute(item, variables, memory)
        case Allocate(tensor, body):
            memory[tensor.name] = Memory.of(tensor, variables)
            execute(body, variables, memory)
            del memory[tensor.name]
        case Call(_, body):
            execute(body, variables, memory)
        case Barrier() | Prefetch():
            pass
        case _:
            assert_never(node)
