"""Programs with thread levels as loops alone, which is how a processor without such threads runs
them.

A loop bound to threads that has a barrier inside is cut in two there: all threads run up to it
before the first goes on (work-item loops: Jääskeläinen et al., pocl, International Journal of
Parallel Programming, 2015, section 4). What each thread has of its own across the barrier gets an
index for the thread. Virtual threads are written out step by step, one beside the other (Chen et
al., TVM, OSDI 2018, section 4.4). No barrier is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.ir.levels import THREAD_LEVELS, is_launch, outermost
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Var,
    While,
    map_expression,
    map_statements,
    statements,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.queries import temporaries
from kernelwright.env.compiler.ir.simplify import EMPTY, simplify, simplify_statement, whole
from kernelwright.env.compiler.poly.threads import own_memory

# A tensor's access in the terms of another: name and indices.
_Access: TypeAlias = Callable[[str, tuple[Expr, ...]], tuple[str, tuple[Expr, ...]]]


def as_loops(procedure: Procedure) -> Procedure:
    """The procedure without barriers and virtual threads.

    Raises:
        CodegenError: if a barrier is inside a thread loop and under something that its threads may
            decide differently, or inside an instruction; or if two threads use one element of a
            temporary of which each has its own.
    """
    body = procedure.body
    if not is_launch(body) and not _has_barrier(body):
        return procedure
    for statement in outermost(body):
        launch = replace(procedure, body=statement)
        conflict = own_memory(launch) if is_launch(statement) else None
        if conflict is not None:
            reason = f"expected threads to keep to memory of their own, found {conflict}"
            raise CodegenError(reason)
    body = simplify_statement(_dropped(_cut(_interleaved(body))))
    return replace(procedure, body=body)


def _has_barrier(node: Stmt) -> bool:
    return any(isinstance(s, Barrier) for s in statements(node))


def _dropped(node: Stmt) -> Stmt:
    return map_statements(node, lambda e: e, lambda s: EMPTY if isinstance(s, Barrier) else s)


def _cut(node: Stmt) -> Stmt:
    """Thread loops with barriers inside as several, from the inside out."""

    def rewrite(inner: Stmt) -> Stmt:
        is_meant = isinstance(inner, For) and inner.kind in THREAD_LEVELS and _has_barrier(inner)
        return _fission(inner, inner.body) if is_meant and isinstance(inner, For) else inner

    return map_statements(node, lambda e: e, rewrite)


def _fission(loop: For, body: Stmt) -> Stmt:
    """A thread loop over a body with a barrier in it, cut at the barrier."""
    if not _has_barrier(body):
        return replace(loop, body=body)
    match body:
        case Barrier():
            return body
        case Block(items):
            return Block(tuple(_groups(loop, items)))
        case For(var, extent, inside, LoopKind.SERIAL | LoopKind.UNROLLED as kind):
            _uniform(loop, extent)
            return For(var, extent, _fission(loop, inside), kind)
        case If(condition, then):
            _uniform(loop, condition)
            return If(condition, _fission(loop, then))
        case Allocate(tensor, inside):
            # Every thread keeps its own from one part to the next.
            expanded = replace(tensor, shape=(loop.extent, *tensor.shape))
            own = Var(loop.var)

            def indexed(name: str, indices: tuple[Expr, ...]) -> tuple[str, tuple[Expr, ...]]:
                return (name, (own, *indices)) if name == tensor.name else (name, indices)

            return Allocate(expanded, _fission(loop, _accessed(inside, indexed)))
    found = body.kind.value if isinstance(body, For) else type(body).__name__.lower()
    raise CodegenError(f"expected no barrier under a {found} in thread loop {loop.var}, found one")


def _groups(loop: For, items: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The items of a block under a thread loop, those without a barrier together."""
    waiting: list[Stmt] = []
    for item in items:
        if not _has_barrier(item):
            waiting.append(item)
            continue
        if waiting:
            yield replace(loop, body=Block(tuple(waiting)))
            waiting = []
        yield _fission(loop, item)
    if waiting:
        yield replace(loop, body=Block(tuple(waiting)))


def _uniform(loop: For, decided: Expr) -> None:
    for node in walk(decided):
        if node == Var(loop.var) or isinstance(node, Load):
            reason = f"expected a barrier that all threads of loop {loop.var} reach"
            raise CodegenError(f"{reason}, found one under {decided}")


def _accessed(node: Stmt, access: _Access) -> Stmt:
    """A statement with its accesses to tensors replaced."""

    def load(part: Expr) -> Expr:
        return Load(*access(part.tensor, part.indices)) if isinstance(part, Load) else part

    def statement(inner: Stmt) -> Stmt:
        if isinstance(inner, Store | Prefetch):
            tensor, indices = access(inner.tensor, inner.indices)
            return replace(inner, tensor=tensor, indices=indices)
        return inner

    return map_statements(node, lambda e: map_expression(e, load), statement)


def _interleaved(node: Stmt) -> Stmt:
    """Loops over virtual threads written out, from the inside out."""

    def rewrite(inner: Stmt) -> Stmt:
        if not isinstance(inner, For) or inner.kind is not LoopKind.VTHREAD:
            return inner
        count = simplify(inner.extent)
        if not isinstance(count, Const):
            reason = f"expected a number of virtual threads in loop {inner.var}"
            raise CodegenError(f"{reason}, found {inner.extent}")
        return _spread(inner.body, inner.var, int(count.value), frozenset())

    return map_statements(node, lambda e: e, rewrite)


def _spread(node: Stmt, var: str, count: int, own: frozenset[str]) -> Stmt:
    """Every step of a body for all virtual threads before the next step; ``own`` are the
    temporaries of which each has one.
    """

    def varies(decided: Expr) -> bool:
        return any(
            part == Var(var) or (isinstance(part, Load) and part.tensor in own)
            for part in walk(decided)
        )

    match node:
        case Block(items):
            return Block(tuple(_spread(item, var, count, own) for item in items))
        case For(name, extent, body, kind) if kind is not LoopKind.VECTORIZED and not varies(
            extent
        ):
            return For(name, extent, _spread(body, var, count, own), kind)
        case If(condition, then) if not varies(condition):
            return If(condition, _spread(then, var, count, own))
        case Allocate(tensor, body):
            inside = _spread(body, var, count, own | {tensor.name})
            for i in range(count):
                copy = replace(tensor, name=names.thread_copy(tensor.name, i))
                inside = Allocate(copy, inside)
            return inside
        case While() if _has_barrier(node):
            reason = f"expected no barrier under a while in loop {var} over virtual threads"
            raise CodegenError(f"{reason}, found one")
        case Barrier():
            return node
    return Block(tuple(_copy(node, var, i, own) for i in range(count)))


def _copy(node: Stmt, var: str, number: int, own: frozenset[str]) -> Stmt:
    """What one virtual thread does of a step."""
    inside = {tensor.name for tensor in temporaries(node)}

    def renamed(name: str, indices: tuple[Expr, ...]) -> tuple[str, tuple[Expr, ...]]:
        is_own = name in own or name in inside
        return (names.thread_copy(name, number), indices) if is_own else (name, indices)

    def declared(inner: Stmt) -> Stmt:
        if not isinstance(inner, Allocate):
            return inner
        copy = replace(inner.tensor, name=names.thread_copy(inner.tensor.name, number))
        return replace(inner, tensor=copy)

    chosen = map_statements(node, lambda e: simplify(substitute(e, {var: whole(number)})))
    return map_statements(_accessed(chosen, renamed), lambda e: e, declared)
