"""Unrolled loops written out: their copies, and how many statements that makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.codegen.memory import touches
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    While,
    map_statements,
    substitute,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import simplify, whole


def written(
    node: Stmt,
    copies: int = 1,
    *,
    lanes: For | None = None,
    registers: frozenset[str] = frozenset(),
) -> int:
    """How many statements the C of a statement has, at most: every copy of an unrolled loop counts,
    and what is guarded lane by lane in a vectorized loop (``lanes``) is written for all lanes and
    once more, for each lane if it accesses ``registers``.
    """
    match node:
        case Store() | Barrier() | Prefetch():
            return copies
        case For(_, _, body, LoopKind.VECTORIZED):
            return written(body, copies, lanes=lanes or node, registers=registers)
        case For(_, extent, body, LoopKind.UNROLLED):
            times = number(extent) or 1
            return written(body, copies * times, lanes=lanes, registers=registers)
        case For(_, _, body, _) | While(_, body) | Call(_, body):
            return written(body, copies, lanes=lanes, registers=registers)
        case If(condition, then):
            count = written(then, copies, lanes=lanes, registers=registers)
            if lanes is not None and mentions(condition, lanes.var):
                times = (number(lanes.extent) or 1) if touches(then, registers) else 1
                count += written(then, copies * times, registers=registers)
            return count
        case Block(items):
            return sum(written(item, copies, lanes=lanes, registers=registers) for item in items)
        case Allocate(tensor, body):
            known = registers | {tensor.name} if tensor.scope == "register" else registers
            return written(body, copies, lanes=lanes, registers=known)
        case _:
            assert_never(node)


def number(extent: Expr) -> int | None:
    """An extent that is a constant, None for others."""
    count = simplify(extent)
    return int(count.value) if isinstance(count, Const) else None


def copies(loop: For) -> Iterator[Stmt]:
    """The body of an unrolled loop, once for every iteration.

    Raises:
        CodegenError: if its extent is no constant.
    """
    count = number(loop.extent)
    if count is None:
        raise CodegenError(
            f"unrolled loop {loop.var}: expected a constant extent, found {simplify(loop.extent)}"
        )
    for i in range(count):
        yield with_value(loop.body, loop.var, i)


def with_value(node: Stmt, var: str, value: int) -> Stmt:
    """A statement with a loop variable replaced by a number, simplified."""
    return map_statements(node, lambda e: simplify(substitute(e, {var: whole(value)})))
