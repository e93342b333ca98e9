"""What a program with block and thread levels consists of: launches, blocks, threads.

A launch is an outermost statement. A block is one iteration of its block-bound loops (without
these, the whole launch); what is around them is done by whoever launches. Inside a block every
thread runs the whole text: a loop bound to a thread level runs its body once, for the thread's own
coordinate, if its extent reaches so far; what lies outside all loops of a level is done by that
level's thread 0 alone. So a text means the same with threads as in order, as long as no two
threads touch one element, one of them writing, without a barrier between them in that order.

A temporary inside a block is the block's, unless its scope says that each thread has its own, or a
thread's loop is around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.env.compiler.ir.nodes import (
    BLOCK_KINDS,
    THREAD_KINDS,
    Allocate,
    Block,
    For,
    LoopKind,
    Stmt,
    statements,
)

# A virtual thread (Chen et al., TVM, OSDI 2018, section 4.4) is one more coordinate of a thread.
THREAD_LEVELS = (*THREAD_KINDS, LoopKind.VTHREAD)
OWN_SCOPES = ("local", "register")
BLOCK_SCOPES = ("shared", *OWN_SCOPES)


def has_kind(node: Stmt, kinds: tuple[LoopKind, ...]) -> bool:
    """Whether a loop of one of the kinds is in a statement."""
    return any(isinstance(s, For) and s.kind in kinds for s in statements(node))


def is_launch(node: Stmt) -> bool:
    """Whether a statement has block or thread levels."""
    return has_kind(node, (*BLOCK_KINDS, *THREAD_LEVELS))


def outermost(node: Stmt) -> Iterator[Stmt]:
    """The outermost statements, one of which may be a launch. A temporary around several of them
    is the launcher's, unless its scope is inside a block: then it is within one launch.
    """
    match node:
        case Block(items):
            for item in items:
                yield from outermost(item)
        case Allocate(tensor, body) if tensor.scope not in BLOCK_SCOPES:
            yield from outermost(body)
        case _:
            yield node
