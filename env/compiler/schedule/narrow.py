"""Computing a part of a temporary, and finding its elements elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Call,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Stmt,
    Store,
    Var,
    map_expression,
    map_statements,
)
from kernelwright.env.compiler.poly.sums import replaced, total
from kernelwright.env.compiler.schedule.producer import Producer


@dataclass(frozen=True, slots=True)
class Span:
    """A part of an axis: ``extent`` places from ``low`` on, found in memory at ``place`` and
    after.
    """

    low: Expr
    extent: Expr
    place: Expr


def narrowed(producer: Producer, spans: Mapping[int, Span]) -> tuple[Stmt, ...]:
    """The statements that compute a part of a temporary, axis by axis."""
    axes = dict(producer.axes)
    name = producer.tensor.name
    values = {var: total(spans[axis].low, Var(var)) for var, axis in axes.items() if axis in spans}
    places = {var: spans[axis].place for var, axis in axes.items() if axis in spans}

    def place_of(index: Expr) -> Expr:
        if isinstance(index, Var) and index.name in places:
            return total(places[index.name], index)
        return index

    def build(node: Stmt) -> Stmt:
        match node:
            case Store(tensor, indices, value):
                put = tuple(place_of(i) if tensor == name else replaced(i, values) for i in indices)
                return replace(node, indices=put, value=replaced(value, values))
            case For(var, extent, body, kind):
                span = spans.get(axes[var]) if var in axes else None
                size = span.extent if span is not None else replaced(extent, values)
                return For(var, size, build(body), kind)
            case Block(items):
                return Block(tuple(build(item) for item in items))
            case Allocate(tensor, body):
                return Allocate(tensor, build(body))
            case If(condition, then):
                return If(replaced(condition, values), build(then))
        return map_statements(node, lambda e: replaced(e, values))

    return tuple(build(writer) for writer in producer.writers)


def moved_loads(node: Stmt, tensor: str, offsets: Mapping[int, Expr]) -> Stmt:
    """A statement that finds a tensor's elements ``offsets`` further on, axis by axis."""

    def move(part: Expr) -> Expr:
        if isinstance(part, Load) and part.tensor == tensor:
            at = tuple(
                total(index, offsets[axis]) if axis in offsets else index
                for axis, index in enumerate(part.indices)
            )
            return Load(tensor, at)
        return part

    return map_statements(node, lambda e: map_expression(e, move))


def replaced_statement(procedure: Procedure, old: Stmt, new: Stmt) -> Procedure:
    """The procedure with one statement replaced."""
    return replace(procedure, body=with_replaced(procedure.body, old, new))


def with_replaced(node: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """A statement with one in it replaced."""
    if node is old:
        return new
    match node:
        case Block(items):
            return Block(tuple(with_replaced(item, old, new) for item in items))
        case Allocate(tensor, body):
            return Allocate(tensor, with_replaced(body, old, new))
        case For(var, extent, body, kind):
            return For(var, extent, with_replaced(body, old, new), kind)
        case If(condition, then):
            return If(condition, with_replaced(then, old, new))
        case Call(instruction, body):
            return Call(instruction, with_replaced(body, old, new))
    return node
