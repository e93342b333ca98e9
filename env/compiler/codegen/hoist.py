"""Remainders and quotients that a loop does not change, computed once in front of it: above all the
place of a row in a circular buffer, which would stand in the innermost loop otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Const,
    Expr,
    For,
    Load,
    Stmt,
    Var,
    children,
    map_statements,
    rebuild,
    statements,
    walk,
)


def is_natural(node: Expr) -> bool:
    """Whether a whole-number expression is seen to be at least 0: variables and extents are."""
    match node:
        case Const(value, "int64"):
            return value >= 0
        case Var():
            return True
        case Binary("add" | "mul" | "floordiv" | "min", left, right):
            return is_natural(left) and is_natural(right)
        case Binary("max", left, right):
            return is_natural(left) or is_natural(right)
        case Binary("mod", _, Const(value, "int64")):
            return value > 0
    return False


def divisions(loop: For) -> tuple[Expr, ...]:
    """The remainders and quotients in a loop's body by positive numbers that no iteration of it, or
    of a loop inside, changes; those that lie in others are left to them.
    """
    bound = {loop.var, *(s.var for s in statements(loop.body) if isinstance(s, For))}
    found: dict[Expr, None] = {}

    def note(node: Expr) -> Expr:
        found.update(dict.fromkeys(_free(node, bound)))
        return node

    map_statements(loop.body, note)
    return tuple(found)


def _free(node: Expr, bound: set[str]) -> Iterator[Expr]:
    match node:
        case Binary("mod" | "floordiv", left, Const(value, "int64")) if value > 0:
            fixed = not any(
                isinstance(part, Load) or (isinstance(part, Var) and part.name in bound)
                for part in walk(left)
            )
            if fixed and is_natural(node) and not isinstance(left, Const):
                yield node
                return
    for child in children(node):
        yield from _free(child, bound)


def named(node: Stmt, names: dict[Expr, str]) -> Stmt:
    """A statement with expressions replaced by the variables that hold them."""

    def put(part: Expr) -> Expr:
        if part in names:
            return Var(names[part])
        below = children(part)
        new = tuple(put(child) for child in below)
        changed = any(a is not b for a, b in zip(new, below, strict=True))
        return rebuild(part, new) if changed else part

    return map_statements(node, put)
