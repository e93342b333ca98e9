"""Threads of a block as isl sees them: which dependences nothing orders.

Every thread runs the text in order, so its own instances are ordered by their positions without
the loops that are bound to threads. A pair of instances of two threads of one block is ordered if
a barrier lies between them in that order (the relations are those that Kelly and Pugh's 2d+1
positions give; that a barrier is a point of a time that all threads of a block share).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from kernelwright.env.compiler.ir.levels import OWN_SCOPES, THREAD_LEVELS
from kernelwright.env.compiler.ir.nodes import (
    BLOCK_KINDS,
    Allocate,
    Barrier,
    Block,
    Call,
    Expr,
    For,
    If,
    Procedure,
    Stmt,
    statements,
)
from kernelwright.env.compiler.poly.dependence import Conflict, Dependences, counterexample
from kernelwright.env.compiler.poly.model import (
    Instance,
    Model,
    Position,
    affine_text,
    condition_text,
    isl_name,
)


@dataclass(frozen=True, slots=True)
class Meeting:
    """A barrier with what surrounds it."""

    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    position: Position


def meetings(
    node: Stmt,
    loops: tuple[For, ...] = (),
    conditions: tuple[Expr, ...] = (),
    position: Position = (0,),
) -> Iterator[Meeting]:
    """The barriers in a statement; positions are as those of a model's instances."""
    match node:
        case Barrier():
            yield Meeting(loops, conditions, position)
        case For(var, _, body, _):
            yield from meetings(body, (*loops, node), conditions, (*position, var, 0))
        case If(condition, then):
            yield from meetings(then, loops, (*conditions, condition), position)
        case Block(items):
            for place, item in enumerate(items):
                yield from meetings(item, loops, conditions, (*position, place))
        case Allocate(_, body) | Call(_, body):
            yield from meetings(body, loops, conditions, position)


def unordered(launch: Procedure, dependences: Dependences) -> Conflict | None:
    """A dependence between two threads of one block that no barrier orders, or None."""
    model = dependences.model
    inside = [i for i in model.instances if _block(i, launch) is not None]
    if not inside:
        return None
    pairs = dependences.pairs.intersect(_same(model, inside, launch))
    pairs = pairs.subtract(_equal_threads(model, inside))
    if pairs.is_empty():
        return None
    found = list(meetings(launch.body))
    if found:
        length = max(len(p.position) for p in (*inside, *found))
        threads = _times(model, [(i.tuple_text, i.loops, i.position) for i in inside], length)
        threads = threads.intersect_domain(model.domain)
        named = [(f"W{n}[{_names(m.loops)}]", m) for n, m in enumerate(found)]
        waits = _times(model, [(text, m.loops, m.position) for text, m in named], length)
        waits = waits.intersect_domain(_domain(model, named))
        between = threads.lex_lt_union_map(waits).apply_range(waits.lex_lt_union_map(threads))
        pairs = pairs.subtract(between)
    return counterexample(model, pairs)


def own_memory(launch: Procedure, dependences: Dependences) -> tuple[str, Conflict] | None:
    """A temporary of which each thread has its own, with a dependence between two threads; None if
    there is none.
    """
    model = dependences.model
    scopes = {
        s.tensor.name
        for s in statements(launch.body)
        if isinstance(s, Allocate) and s.tensor.scope in OWN_SCOPES
    }
    inside = [i for i in model.instances if _block(i, launch) is not None]
    if not scopes or not inside:
        return None
    order = model.order()
    elsewhere = _same(model, inside, launch).subtract(_equal_threads(model, inside))
    for name in sorted(scopes):
        writes = model.writes(name)
        accesses = writes.union(model.reads(name))
        meet = writes.apply_range(accesses.reverse()).union(accesses.apply_range(writes.reverse()))
        pairs = meet.intersect(elsewhere).intersect(order.lex_lt_union_map(order))
        conflict = counterexample(model, pairs)
        if conflict is not None:
            return name, conflict
    return None


def _block(instance: Instance, launch: Procedure) -> tuple[str, ...] | None:
    """The loops that say in which block an instance is, None if it is in none."""
    bound = [i for i, loop in enumerate(instance.loops) if loop.kind in BLOCK_KINDS]
    if bound:
        return instance.variables[: bound[-1] + 1]
    has_blocks = any(isinstance(s, For) and s.kind in BLOCK_KINDS for s in statements(launch.body))
    return None if has_blocks else ()


def _same(model: Model, inside: list[Instance], launch: Procedure) -> isl.UnionMap:
    """Pairs of instances in one block."""
    numbers: dict[tuple[str, ...], int] = {}
    parts = []
    for instance in inside:
        around = _block(instance, launch) or ()
        number = numbers.setdefault(around, len(numbers))
        parts.append(f"{instance.tuple_text} -> B{number}[{', '.join(map(isl_name, around))}]")
    return _pairs(model, parts)


def _equal_threads(model: Model, inside: list[Instance]) -> isl.UnionMap:
    """Pairs of instances of one thread; what no loop of a level is around is its thread 0's."""
    parts = []
    for instance in inside:
        bound = {loop.kind: isl_name(loop.var) for loop in instance.loops}
        coordinates = ", ".join(bound.get(level, "0") for level in THREAD_LEVELS)
        parts.append(f"{instance.tuple_text} -> [{coordinates}]")
    return _pairs(model, parts)


def _pairs(model: Model, parts: list[str]) -> isl.UnionMap:
    mapping = isl.UnionMap(f"{model.parameters}{{ {'; '.join(parts)} }}")
    return mapping.apply_range(mapping.reverse())


def _names(loops: tuple[For, ...]) -> str:
    return ", ".join(isl_name(loop.var) for loop in loops)


def _times(
    model: Model, placed: list[tuple[str, tuple[For, ...], Position]], length: int
) -> isl.UnionMap:
    """Tuple → its time within its thread: its position without the loops bound to threads."""
    parts = []
    for text, loops, position in placed:
        bound = {loop.var for loop in loops if loop.kind in THREAD_LEVELS}
        time = [
            "0" if place in bound else isl_name(place) if isinstance(place, str) else str(place)
            for place in position
        ]
        parts.append(f"{text} -> [{', '.join([*time, *['0'] * (length - len(time))])}]")
    return isl.UnionMap(f"{model.parameters}{{ {'; '.join(parts)} }}")


def _domain(model: Model, named: list[tuple[str, Meeting]]) -> isl.UnionSet:
    """When all threads meet, as far as that is known: a barrier of which it is not counts for
    nothing.
    """
    parts = []
    for text, meeting in named:
        limits = [f"0 <= {isl_name(loop.var)}" for loop in meeting.loops]
        extents = [affine_text(loop.extent) for loop in meeting.loops]
        held = [condition_text(condition) for condition in meeting.conditions]
        if None in extents or None in held:
            continue
        limits += [
            f"{isl_name(loop.var)} < {extent}"
            for loop, extent in zip(meeting.loops, extents, strict=True)
        ]
        limits += [str(condition) for condition in held]
        parts.append(f"{text} : {' and '.join(limits)}" if limits else text)
    return isl.UnionSet(f"{model.parameters}{{ {'; '.join(parts)} }}")
