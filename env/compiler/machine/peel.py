"""What a compiler writes out by itself: short innermost loops of constant extent (gcc calls it
complete peeling), before it vectorises and before it puts sums into registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Call,
    Const,
    For,
    If,
    LoopKind,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    While,
)


@dataclass(frozen=True, slots=True)
class Peeling:
    """The longest loop that is written out, and the most copies of its body's statements that may
    come of it.
    """

    trips: int
    copies: int

    def apply(self, procedure: Procedure) -> Procedure:
        """The procedure with such loops unrolled, from the inside out."""
        return replace(procedure, body=self._visit(procedure.body)[0])

    def _visit(self, node: Stmt) -> tuple[Stmt, int | None]:
        """A statement after peeling, and how many stores it writes out; None if a loop is left."""
        match node:
            case Store():
                return node, 1
            case If(_, body):
                inner, count = self._visit(body)
                return replace(node, then=inner), count
            case Barrier() | Prefetch():
                return node, 0
            case Allocate(_, body) | Call(_, body):
                inner, count = self._visit(body)
                return replace(node, body=inner), count
            case Block(items):
                visited = [self._visit(item) for item in items]
                counts = [count for _, count in visited if count is not None]
                total = sum(counts) if len(counts) == len(visited) else None
                return Block(tuple(item for item, _ in visited)), total
            case While():
                raise AssertionError("whiles are loops: written_as_loops")
            case For():
                return self._loop(node)
            case _:
                assert_never(node)

    def _loop(self, loop: For) -> tuple[Stmt, int | None]:
        body, count = self._visit(loop.body)
        peeled = replace(loop, body=body)
        if loop.kind is LoopKind.VECTORIZED:
            return peeled, count
        if count is None or not isinstance(loop.extent, Const):
            return peeled, None
        trips = int(loop.extent.value)
        if loop.kind is LoopKind.UNROLLED:
            return peeled, count * trips
        short = 1 <= trips <= self.trips and count * trips <= self.copies
        if loop.kind is LoopKind.SERIAL and short:
            return replace(peeled, kind=LoopKind.UNROLLED), count * trips
        return peeled, None
