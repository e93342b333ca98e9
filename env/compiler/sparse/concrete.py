"""Concrete index notation: an assignment with the order in which its coordinates are visited
(Kjolstad, Ahrens, Kamil and Amarasinghe, Tensor Algebra Compilation with Workspaces, CGO 2019,
section 4).

    forall i: forall j: y(i) += A(i,j) * x(j)

`Where` computes a workspace (the producer) before it is read (the consumer); `Sequence` is one
statement after the other. Directives rewrite this form, `lower` makes loops of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from kernelwright.env.compiler.sparse.notation import (
    Access,
    Add,
    Assignment,
    Expression,
    Literal,
    Mul,
    Neg,
    Sub,
    accesses,
)

# Sparse operands that one loop merges: every set of them has a loop of its own.
MOST_MERGED = 5


@dataclass(frozen=True, slots=True)
class Assign:
    """The target's element becomes the expression, or with ``accumulate`` what is there plus it."""

    target: Access
    expression: Expression
    accumulate: bool


@dataclass(frozen=True, slots=True)
class Forall:
    """``body`` for every coordinate of ``var`` at which it is not zero."""

    var: str
    body: Concrete


@dataclass(frozen=True, slots=True)
class Where:
    """``consumer``, which reads the workspace that ``producer`` has computed."""

    consumer: Concrete
    producer: Concrete
    workspace: str


@dataclass(frozen=True, slots=True)
class InOrder:
    """Statements in order."""

    body: tuple[Concrete, ...]


Concrete: TypeAlias = Assign | Forall | Where | InOrder


def assigns(node: Concrete) -> tuple[Assign, ...]:
    """All assignments, producers before their consumers."""
    match node:
        case Assign():
            return (node,)
        case Forall(_, body):
            return assigns(body)
        case Where(consumer, producer, _):
            return assigns(producer) + assigns(consumer)
        case InOrder(body):
            return tuple(found for each in body for found in assigns(each))
        case _:
            assert_never(node)


def addends(
    node: Expression, summed: Callable[[Expression], frozenset[str]]
) -> tuple[Expression, ...]:
    """What is added up to the expression. A product stays whole unless its factors' addends are
    summed over different loops: then it is distributed.
    """
    match node:
        case Add(left, right):
            return addends(left, summed) + addends(right, summed)
        case Sub(left, right):
            return addends(left, summed) + tuple(map(Neg, addends(right, summed)))
        case Neg(operand):
            return tuple(map(Neg, addends(operand, summed)))
        case Mul(left, right):
            first, second = addends(left, summed), addends(right, summed)
            if len(set(map(summed, first))) == 1 == len(set(map(summed, second))):
                return (node,)
            return tuple(Mul(a, b) for a in first for b in second)
        case Access() | Literal():
            return (node,)
        case _:
            assert_never(node)


def total(parts: Sequence[Expression]) -> Expression:
    """The sum of expressions."""
    out = parts[0]
    for part in parts[1:]:
        out = Sub(out, part.operand) if isinstance(part, Neg) else Add(out, part)
    return out


def concretize(
    assignment: Assignment,
    order: Sequence[str],
    loops: Callable[[Access], Sequence[str]],
    is_sparse: Callable[[Access], bool] = lambda access: False,
) -> Concrete:
    """The assignment as foralls in an order of loop variables; ``loops`` gives those of an access
    (two for a blocked index, and one more for diagonals).

    Addends that are summed over other variables have foralls of their own, and so have those with
    more than `MOST_MERGED` sparse operands together at the innermost variable: they are added in
    turns.
    """
    target = assignment.target
    kept = frozenset(loops(target))

    def summed(part: Expression) -> frozenset[str]:
        return frozenset(loop for access in accesses(part) for loop in loops(access)) - kept

    parts = addends(assignment.expression, summed)
    needs = [kept | summed(part) for part in parts]
    groups = _turns(parts, is_sparse)
    adds_up = any(map(summed, parts)) or len(set(groups)) > 1

    def nest(which: Sequence[int], rest: Sequence[str]) -> Concrete:
        if not rest:
            return Assign(target, total([parts[i] for i in which]), adds_up)
        var, inner = rest[0], rest[1:]
        having = [i for i in which if var in needs[i]]
        lacking = [i for i in which if var not in needs[i]]
        body = [nest(lacking, inner)] if lacking else []
        turns = (
            [having]
            if inner
            else [[i for i in having if groups[i] == group] for group in range(max(groups) + 1)]
        )
        body += [Forall(var, nest(turn, inner)) for turn in turns if turn]
        return body[0] if len(body) == 1 else InOrder(tuple(body))

    return nest(range(len(parts)), order)


def _turns(parts: Sequence[Expression], is_sparse: Callable[[Access], bool]) -> list[int]:
    """The turn in which each addend is added: as many in one as merge few enough operands."""
    out: list[int] = []
    met: frozenset[Access] = frozenset()
    for part in parts:
        own = frozenset(filter(is_sparse, accesses(part)))
        if out and len(met | own) > MOST_MERGED:
            met = frozenset()
            out.append(out[-1] + 1)
        else:
            out.append(out[-1] if out else 0)
        met |= own
    return out


def without(node: Expression, absent: Collection[Access]) -> Expression | None:
    """The expression where accesses are zero, or None if it is zero."""
    match node:
        case Access():
            return None if node in absent else node
        case Literal():
            return node
        case Neg(operand):
            inner = without(operand, absent)
            return None if inner is None else Neg(inner)
        case Mul(left, right):
            first, second = without(left, absent), without(right, absent)
            return None if first is None or second is None else Mul(first, second)
        case Add(left, right):
            first, second = without(left, absent), without(right, absent)
            if first is None or second is None:
                return first if second is None else second
            return Add(first, second)
        case Sub(left, right):
            first, second = without(left, absent), without(right, absent)
            if second is None:
                return first
            return Neg(second) if first is None else Sub(first, second)
        case _:
            assert_never(node)


def restricted(node: Concrete, absent: Collection[Access]) -> Concrete | None:
    """The statement where accesses are zero, or None if nothing is left to do."""
    match node:
        case Assign(target, expression, accumulate):
            left = without(expression, absent)
            return None if left is None else Assign(target, left, accumulate)
        case Forall(var, body):
            inner = restricted(body, absent)
            return None if inner is None else Forall(var, inner)
        case Where(consumer, producer, workspace):
            made = restricted(producer, absent)
            if made is None:
                read = {a for each in assigns(consumer) for a in accesses(each.expression)}
                absent = {*absent, *(a for a in read if a.tensor == workspace)}
                return restricted(consumer, absent)
            used = restricted(consumer, absent)
            return None if used is None else Where(used, made, workspace)
        case InOrder(body):
            kept = [new for each in body if (new := restricted(each, absent)) is not None]
            if not kept:
                return None
            return kept[0] if len(kept) == 1 else InOrder(tuple(kept))
        case _:
            assert_never(node)


def contribution(node: Concrete) -> Expression:
    """What a statement adds up, in one expression: where it is zero there is nothing to do."""
    match node:
        case Assign(_, expression, _):
            return expression
        case Forall(_, body):
            return contribution(body)
        case InOrder(body):
            return total([contribution(each) for each in body])
        case Where(consumer, producer, workspace):
            made = contribution(producer)
            return replaced(contribution(consumer), workspace, made)
        case _:
            assert_never(node)


def replaced(node: Expression, tensor: str, by: Expression) -> Expression:
    """The expression with every access to a tensor replaced."""
    match node:
        case Literal():
            return node
        case Access(name, _):
            return by if name == tensor else node
        case Neg(operand):
            return Neg(replaced(operand, tensor, by))
        case Add(left, right):
            return Add(replaced(left, tensor, by), replaced(right, tensor, by))
        case Sub(left, right):
            return Sub(replaced(left, tensor, by), replaced(right, tensor, by))
        case Mul(left, right):
            return Mul(replaced(left, tensor, by), replaced(right, tensor, by))
        case _:
            assert_never(node)


def print_concrete(
    node: Concrete, expression: Callable[[Expression], str], indent: str = ""
) -> str:
    """The statement as text, a line each."""
    match node:
        case Assign(target, value, accumulate):
            sign = "+=" if accumulate else "="
            return f"{indent}{expression(target)} {sign} {expression(value)}\n"
        case Forall(var, body):
            return f"{indent}forall {var}:\n{print_concrete(body, expression, indent + '  ')}"
        case InOrder(body):
            return "".join(print_concrete(each, expression, indent) for each in body)
        case Where(consumer, producer, workspace):
            inner = indent + "  "
            return (
                f"{indent}where {workspace}:\n{print_concrete(producer, expression, inner)}"
                f"{indent}do:\n{print_concrete(consumer, expression, inner)}"
            )
        case _:
            assert_never(node)
