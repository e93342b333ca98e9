"""LoopIR's statements executed one element at a time, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from kernelwright.env.compiler.ir.evaluate import (
    BINARY,
    Elements,
    InterpretError,
    Memory,
    evaluate,
)
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
    While,
)
from kernelwright.env.compiler.ir.printer import print_expr

# How often a `While` runs its body at most. What the interpreter is given is small, so a loop that
# gets there has no end; a merge takes one iteration for each coordinate.
MAX_WHILE_ITERATIONS = 1_000_000


def while_holds(
    node: While, variables: dict[str, Any], memory: dict[str, Elements]
) -> Iterator[None]:
    """One step for every iteration of a `While`; the condition is evaluated before each.

    Raises:
        InterpretError: after `MAX_WHILE_ITERATIONS` iterations, or as `evaluate` does.
    """
    count = 0
    while evaluate(node.condition, variables, memory):
        if count == MAX_WHILE_ITERATIONS:
            condition = print_expr(node.condition)
            raise InterpretError(
                f"while {condition}: expected an end within {count} iterations, found none"
            )
        count += 1
        yield


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
        case While(_, body):
            for _ in while_holds(node, variables, memory):
                execute(body, variables, memory)
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
