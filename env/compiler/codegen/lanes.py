"""Vectorized loops in C: operations on vectors of all lanes, or the lanes one by one.

A vectorized loop is never left to the compiler's own vectoriser, which picks the wrong loop of a
register tile and loses a factor of ten. What has no vector form (a choice, a math function, a
strided store) is executed lane by lane, in order. A guard on the lanes (the tail of a split) is
tested once for all of them, with the lanes one by one where it does not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.codegen.expression import LOOSE
from kernelwright.env.compiler.codegen.memory import touches
from kernelwright.env.compiler.codegen.stream import can_stream
from kernelwright.env.compiler.codegen.unrolled import copies, number, with_value
from kernelwright.env.compiler.codegen.vectors import Lanes, Vectors
from kernelwright.env.compiler.codegen.writer import Writer
from kernelwright.env.compiler.ir.linear import step_of
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Expr,
    For,
    If,
    LoopKind,
    Prefetch,
    Stmt,
    Store,
    substitute,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import simplify, whole


class Scalars(Protocol):
    """Writes what runs outside lanes."""

    def statement(self, node: Stmt) -> None:
        """Write a statement."""

    def loop(self, var: str, extent: Expr, body: Callable[[], None]) -> None:
        """Write a serial loop around what ``body`` writes."""


class LaneStatements:
    """Writes what is inside vectorized loops."""

    def __init__(self, writer: Writer, scalars: Scalars) -> None:
        self._writer = writer
        self._expressions = writer.expressions
        self._vectors = Vectors(writer.expressions)
        self._scalars = scalars

    def vectorized(self, loop: For) -> None:
        """Write a vectorized loop.

        Raises:
            CodegenError: if its extent is no constant above 0.
        """
        count = number(loop.extent)
        if count is None or count < 1:
            raise CodegenError(f"vectorized loop {loop.var}: expected a constant number of lanes")
        self._statement(loop.body, Lanes(loop.var, count))

    def _statement(self, node: Stmt, lanes: Lanes) -> None:
        match node:
            case Store():
                text = self._store(node, lanes)
                if text is None:
                    self._one_by_one(node, lanes)
                else:
                    self._writer.line(text)
            case For(_, extent, _, LoopKind.UNROLLED) if not mentions(extent, lanes.var):
                for copy in copies(node):
                    self._statement(copy, lanes)
            case For(var, extent, body, LoopKind.SERIAL) if not mentions(extent, lanes.var):
                self._scalars.loop(var, extent, lambda: self._statement(body, lanes))
            case If(Binary("and", left, right), then) if mentions(right, lanes.var):
                self._statement(If(left, If(right, then)), lanes)
            case If(condition, then) if not mentions(condition, lanes.var):
                with self._writer.braces(f"if ({self._expressions.scalar(condition, LOOSE)})"):
                    self._statement(then, lanes)
            case If(Binary("lt" | "le", left, right) as condition, then) if (
                step_of(left, lanes.var) or -1
            ) > 0 and not mentions(right, lanes.var):
                last = simplify(substitute(condition, {lanes.var: whole(lanes.count - 1)}))
                self._writer.branch(
                    self._expressions.scalar(last, LOOSE),
                    lambda: self._statement(then, lanes),
                    lambda: self._one_by_one(node, lanes),
                )
            case Block(items):
                for item in items:
                    self._statement(item, lanes)
            case Prefetch():
                # The lanes lie in one cache line or the next.
                self._scalars.statement(with_value(node, lanes.var, 0))
            case _:
                self._one_by_one(node, lanes)

    def _one_by_one(self, node: Stmt, lanes: Lanes) -> None:
        if touches(node, frozenset(self._expressions.registers)):
            # A vector that is indexed by a variable would live in memory.
            for lane in range(lanes.count):
                self._scalars.statement(with_value(node, lanes.var, lane))
            return
        self._scalars.loop(lanes.var, whole(lanes.count), lambda: self._scalars.statement(node))

    def _store(self, node: Store, lanes: Lanes) -> str | None:
        """The store of all lanes as one statement, None if it has no such form."""
        tensor, indices, reduce = node.tensor, node.indices, node.reduce
        expressions = self._expressions
        dtype = expressions.tensors[tensor].dtype
        if not self._vectors.exist(dtype, lanes) or reduce not in (None, "add", "mul"):
            return None
        if step_of(expressions.flat(tensor, indices), lanes.var) != 1:
            return None
        text = self._vectors.value(node.value, lanes, dtype, LOOSE)
        if text is None:
            return None
        target = self._vectors.element(tensor, indices, lanes, const="")
        in_memory = tensor not in expressions.registers
        if node.stream and in_memory and reduce is None and can_stream(dtype, lanes.count):
            helper = expressions.stream(dtype, lanes.count)
            return f"{helper}({self._vectors.first_lane(tensor, indices, lanes)}, {text});"
        return self._writer.store(target, tensor, text, reduce)
