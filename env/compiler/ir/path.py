"""The way from a statement down to one inside it, and the loops and guards around that."""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Call,
    Expr,
    For,
    If,
    Procedure,
    Stmt,
    While,
)

Path = tuple[Stmt, ...]


def path_to(root: Procedure | Stmt, wanted: str | Stmt) -> Path:
    """The statements from the outermost down to the loop of a name, or to a statement; empty if it
    is not there.
    """
    node = root.body if isinstance(root, Procedure) else root
    if node is wanted or (isinstance(node, For) and node.var == wanted):
        return (node,)
    for child in below(node):
        rest = path_to(child, wanted)
        if rest:
            return (node, *rest)
    return ()


def below(node: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a statement."""
    match node:
        case For() | While() | Allocate() | Call():
            return (node.body,)
        case If(_, then):
            return (then,)
        case Block(items):
            return items
    return ()


def loops_around(root: Procedure | Stmt, name: str) -> tuple[For, ...]:
    """The loops outside a loop, outermost first; none if there is no such loop."""
    return loops_in(path_to(root, name)[:-1])


def loops_in(path: Path) -> tuple[For, ...]:
    """The loops of a path."""
    return tuple(node for node in path if isinstance(node, For))


def conditions_in(path: Path) -> tuple[Expr, ...]:
    """The conditions of the guards of a path."""
    return tuple(node.condition for node in path if isinstance(node, If))


def next_inside(loop: For) -> For | None:
    """The loop inside a loop, if nothing but guards lies between."""
    inside = loop.body
    while isinstance(inside, If):
        inside = inside.then
    return inside if isinstance(inside, For) else None


def chain_around(path: Path) -> Path:
    """The loops and guards at the end of a path (its last statement with those that contain
    nothing else).
    """
    first = len(path) - 1
    while first > 0 and isinstance(path[first - 1], For | If):
        first -= 1
    return path[first:]


def chain_inside(node: Stmt) -> Path:
    """The loops and guards under a statement, each alone in the one before, and what is
    innermost.
    """
    found = [node]
    while isinstance(found[-1], For | If):
        found += below(found[-1])
    return tuple(found)
