"""Places for a temporary: the body of a loop, a loop, what runs while a tensor lives, what runs
after its last write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.accesses import accesses
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    LoopKind,
    Procedure,
    Stmt,
    Tensor,
    statements,
)
from kernelwright.env.compiler.ir.queries import writes
from kernelwright.env.compiler.poly.context import Context, context_of
from kernelwright.env.compiler.schedule.edit import find_loop, replace_loop

Wrap: TypeAlias = Callable[[Stmt], Stmt]


@dataclass(frozen=True, slots=True)
class Site:
    """A statement of a procedure, what is fixed around it, and how another takes its place."""

    statement: Stmt
    around: Context
    put: Callable[[Stmt], Procedure]


def check_visible(op: str, site: Site, tensor: Tensor) -> None:
    """A copy stands where the tensor lives."""
    if _allocates(site.statement, tensor):
        reason = f"{tensor.name} lives inside that place, and a copy would be outside"
        raise ScheduleError(op, reason)


def loop_body(op: str, procedure: Procedure, loop: str) -> Site:
    """The body of a loop."""
    found = find_loop(op, procedure, loop)
    if found.kind is LoopKind.VECTORIZED:
        raise ScheduleError(op, f"expected a loop without lanes, found {loop} {found.kind}")

    def put(body: Stmt) -> Procedure:
        return replace_loop(procedure, loop, lambda node: replace(node, body=body))

    return Site(found.body, context_of(procedure, loop), put)


def whole_loop(op: str, procedure: Procedure, loop: str) -> Site:
    """A whole loop."""
    found = find_loop(op, procedure, loop)
    inside = context_of(procedure, loop)
    around = Context(inside.extents, inside.loops[:-1], inside.conditions)
    if any(each.kind is LoopKind.VECTORIZED for each in around.loops):
        raise ScheduleError(op, f"expected loop {loop} outside vectorized loops, found it inside")

    def put(node: Stmt) -> Procedure:
        return replace_loop(procedure, loop, lambda _: node)

    return Site(found, around, put)


def whole_life(op: str, procedure: Procedure, tensor: Tensor) -> Site:
    """Everything that happens while a tensor lives."""
    around = Context(procedure.extents)
    if tensor.role != "temporary":
        return Site(procedure.body, around, lambda body: replace(procedure, body=body))
    return _lifetime(op, procedure, tensor, around)


def _lifetime(op: str, procedure: Procedure, tensor: Tensor, around: Context) -> Site:
    node: Stmt = procedure.body
    wrap: Wrap = _identity
    while True:
        match node:
            case Allocate(local, body):
                wrap = _inside_allocate(wrap, local)
                node = body
                if local == tensor:
                    break
            case Block(items):
                at = next(i for i, item in enumerate(items) if _allocates(item, tensor))
                wrap = _among(wrap, items, at)
                node = items[at]
            case _:
                reason = f"{tensor.name} lives inside a loop; name a loop"
                raise ScheduleError(op, reason)
    finish = wrap
    return Site(node, around, lambda body: replace(procedure, body=finish(body)))


def _allocates(node: Stmt, tensor: Tensor) -> bool:
    return any(isinstance(each, Allocate) and each.tensor == tensor for each in statements(node))


def after_writes(op: str, procedure: Procedure, tensor: Tensor) -> Site:
    """What runs after the last of the outermost statements that writes a tensor."""
    around = Context(procedure.extents)
    node: Stmt = procedure.body
    wrap: Wrap = _identity
    if tensor.role == "input":
        return Site(node, around, lambda body: replace(procedure, body=body))
    while writes(node, tensor.name):
        match node:
            case Allocate(local, body):
                wrap = _inside_allocate(wrap, local)
                node = body
            case Block(items):
                last = max(i for i, item in enumerate(items) if writes(item, tensor.name))
                rest = Block(items[last + 1 :])
                if any(access.tensor == tensor.name for access in accesses(rest)):
                    wrap = _behind(wrap, items[: last + 1])
                    node = rest
                else:
                    wrap = _among(wrap, items, last)
                    node = items[last]
            case _:
                reason = f"{tensor.name} is written in the nest that reads it; name a loop"
                raise ScheduleError(op, reason)
    finish = wrap
    return Site(node, around, lambda body: replace(procedure, body=finish(body)))


def _identity(node: Stmt) -> Stmt:
    return node


def _inside_allocate(wrap: Wrap, tensor: Tensor) -> Wrap:
    return lambda node: wrap(Allocate(tensor, node))


def _among(wrap: Wrap, items: tuple[Stmt, ...], at: int) -> Wrap:
    return lambda node: wrap(Block((*items[:at], node, *items[at + 1 :])))


def _behind(wrap: Wrap, items: tuple[Stmt, ...]) -> Wrap:
    return lambda node: wrap(Block((*items, node)))
