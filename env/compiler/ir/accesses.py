"""What statements access: every load and store with the loops, guards and choices around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Expr,
    For,
    If,
    Load,
    Select,
    Stmt,
    Store,
    Unary,
    While,
    children,
)
from kernelwright.env.compiler.ir.path import below
from kernelwright.env.compiler.ir.simplify import EMPTY
from kernelwright.env.compiler.ir.whiles import Numbers, as_loop


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a statement: what is touched, under which loops and guards within it."""

    tensor: str
    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    is_write: bool


def distinct(found: Iterable[Access]) -> list[Access]:
    """Accesses without those that touch the same again: a value that was put into its readers many
    times over has few different ones.
    """
    return list(dict.fromkeys(found))


def accesses(statement: Stmt) -> Iterator[Access]:
    """Every access of a statement, in program order."""
    yield from _accesses(statement, (), (), count())


def _accesses(
    node: Stmt, loops: tuple[For, ...], conditions: tuple[Expr, ...], numbers: Numbers
) -> Iterator[Access]:
    if isinstance(node, While):
        # The loop is around its condition, too: every iteration reads that, and one more does.
        loops = (*loops, as_loop(numbers))
    for expression in _expressions(node):
        yield from reads_of(expression, loops, conditions)
    match node:
        case Store(tensor, indices, _, reduce):
            if reduce is not None:
                yield Access(tensor, indices, loops, conditions, is_write=False)
            yield Access(tensor, indices, loops, conditions, is_write=True)
        case For(var, extent, body, kind):
            # Without its body, which makes loops dear to compare.
            bare = For(var, extent, EMPTY, kind)
            yield from _accesses(body, (*loops, bare), conditions, numbers)
        case If(condition, then) | While(condition, then):
            yield from _accesses(then, loops, (*conditions, condition), numbers)
        case _:
            for child in below(node):
                yield from _accesses(child, loops, conditions, numbers)


def _expressions(node: Stmt) -> tuple[Expr, ...]:
    """What a statement evaluates before what is inside it runs."""
    match node:
        case Store(_, indices, value, _):
            return (*indices, value)
        case For(_, extent, _, _):
            return (extent,)
        case If(condition, _) | While(condition, _):
            return (condition,)
    return ()


def reads_of(
    node: Expr, loops: tuple[For, ...] = (), conditions: tuple[Expr, ...] = ()
) -> Iterator[Access]:
    """The reads of an expression under loops and guards, and under those of its own choices."""
    for load, held in evaluated_loads(node, conditions):
        yield Access(load.tensor, load.indices, loops, held, is_write=False)


def evaluated_loads(
    node: Expr, conditions: tuple[Expr, ...]
) -> Iterator[tuple[Load, tuple[Expr, ...]]]:
    """The loads in an expression, each with the conditions under which it is evaluated: only the
    chosen side of a `Select` is, and the right of ``and`` only after a left that holds.
    """
    match node:
        case Select(condition, then, other):
            yield from evaluated_loads(condition, conditions)
            yield from evaluated_loads(then, (*conditions, condition))
            yield from evaluated_loads(other, (*conditions, Unary("not", condition)))
        case Binary("and", left, right):
            yield from evaluated_loads(left, conditions)
            yield from evaluated_loads(right, (*conditions, left))
        case Binary("or", left, right):
            yield from evaluated_loads(left, conditions)
            yield from evaluated_loads(right, (*conditions, Unary("not", left)))
        case _:
            if isinstance(node, Load):
                yield node, conditions
            for child in children(node):
                yield from evaluated_loads(child, conditions)


def reads(node: Stmt, tensor: str) -> bool:
    """Whether a statement reads a tensor, be it to combine a value with what is there."""
    return any(a.tensor == tensor and not a.is_write for a in accesses(node))
