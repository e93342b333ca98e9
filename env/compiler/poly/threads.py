"""Threads of a block as isl sees them: which dependences nothing orders.

Every thread runs the text in order, so its own instances are ordered by their positions without
the loops that are bound to threads. A pair of instances of two threads of one block is ordered if
a barrier lies between them in that order (the relations are those that Kelly and Pugh's 2d+1
positions give; that a barrier is a point of a time that all threads of a block share).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import islpy as isl

from kernelwright.env.compiler.ir.levels import OWN_SCOPES, THREAD_LEVELS, has_kind
from kernelwright.env.compiler.ir.nodes import (
    BLOCK_KINDS,
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Expr,
    For,
    If,
    Procedure,
    Stmt,
    Store,
    Var,
    While,
    statements,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.whiles import Numbers, as_loop
from kernelwright.env.compiler.poly.dependence import Conflict, counterexample
from kernelwright.env.compiler.poly.distance import meets_within
from kernelwright.env.compiler.poly.elements import touches
from kernelwright.env.compiler.poly.model import (
    Model,
    Position,
    affine_text,
    build_model,
    condition_text,
    isl_name,
    time_text,
)

# What `isl_name` begins a variable with.
_VARIABLE = re.compile("[vw]_")


@dataclass(frozen=True, slots=True)
class Meeting:
    """A barrier with what surrounds it."""

    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    position: Position


def meetings(node: Stmt) -> Iterator[Meeting]:
    """The barriers in a statement; positions are as those of a model's instances."""
    yield from _meetings(node, (), (), (0,), count())


def _meetings(
    node: Stmt,
    loops: tuple[For, ...],
    conditions: tuple[Expr, ...],
    position: Position,
    numbers: Numbers,
) -> Iterator[Meeting]:
    match node:
        case Barrier():
            yield Meeting(loops, conditions, position)
        case For(var, _, body, _):
            inside = (*loops, node), conditions, (*position, var, 0)
            yield from _meetings(body, *inside, numbers)
        case If(condition, then):
            yield from _meetings(then, loops, (*conditions, condition), position, numbers)
        case While(condition, body):
            loop = as_loop(numbers)
            inside = (*loops, loop), (*conditions, condition), (*position, loop.var, 0)
            yield from _meetings(body, *inside, numbers)
        case Block(items):
            for place, item in enumerate(items):
                yield from _meetings(item, loops, conditions, (*position, place), numbers)
        case Allocate(_, body) | Call(_, body):
            yield from _meetings(body, loops, conditions, position, numbers)


def unordered(launch: Procedure) -> Conflict | None:
    """A dependence between two threads of one block that no barrier orders, or None."""
    return _first_conflict(launch, None)


def own_memory(launch: Procedure) -> Conflict | None:
    """A dependence between two threads of one block in a temporary of which each has its own, or
    None.
    """
    return _first_conflict(launch, OWN_SCOPES)


def _first_conflict(launch: Procedure, scopes: tuple[str, ...] | None) -> Conflict | None:
    """A dependence between two threads of a block: in any tensor, where no barrier is between
    them; or in temporaries of some scopes, whatever is.
    """
    for block in _blocks(launch):
        tensors = sorted({s.tensor for s in statements(block.body) if isinstance(s, Store)})
        if scopes is not None:
            own = {
                s.tensor.name
                for s in statements(launch.body)
                if isinstance(s, Allocate) and s.tensor.scope in scopes
            }
            tensors = [name for name in tensors if name in own]
        if not tensors:
            continue
        model = build_model(block)
        places = {i.name: _thread(i.loops) for i in model.instances}
        # Most tensors end here: a thread's elements are its own.
        tensors = [name for name in tensors if not meets_within(model, name, places)]
        if not tensors:
            continue
        some = tuple(i for i in model.instances if any(touches(i, name) for name in tensors))
        model = Model(some, model.extents)
        one_thread = _equal_threads(model)
        for name in tensors:
            writes = model.writes(name)
            accesses = writes.union(model.reads(name))
            pairs = writes.apply_range(accesses.reverse())
            pairs = pairs.union(accesses.apply_range(writes.reverse())).subtract(one_thread)
            if pairs.is_empty():
                continue
            order = _in_order(model, pairs)
            pairs = pairs.intersect(order)
            if scopes is None:
                pairs = pairs.subtract(_with_barrier(model, block, pairs))
            if not pairs.is_empty():
                return _in_one_block(model, pairs, name, block.extents[len(launch.extents) :])
    return None


def _in_one_block(
    model: Model, pairs: isl.UnionMap, tensor: str, around: tuple[str, ...]
) -> Conflict:
    """One of the pairs, which meet in a tensor, with the values of the loops around its block."""
    point = pairs.sample().wrap().sample_point()
    space, values = point.get_space(), {}
    for name in around:
        at = space.find_dim_by_name(isl.dim_type.param, isl_name(name))
        # What no condition mentions may be anything: 0 is the first iteration.
        value = point.get_coordinate_val(isl.dim_type.param, at).to_python() if at >= 0 else 0
        values[name] = value
    held = " and ".join(f"{isl_name(name)} = {value}" for name, value in values.items())
    chosen = isl.Set(f"{model.parameters}{{ : {held or 'true'} }}")
    conflict = counterexample(model, pairs.intersect_params(chosen))
    assert conflict is not None
    outer = tuple(values.items())
    ends = [tuple(name for name, _ in end) for end in (conflict.first, conflict.second)]
    store = next(
        i.store for i in model.instances if i.store.tensor == tensor and i.variables in ends
    )
    element = f"{tensor}[{', '.join(map(print_expr, store.indices))}]"
    return Conflict(element, (*outer, *conflict.first), (*outer, *conflict.second))


def _blocks(launch: Procedure) -> list[Procedure]:
    """What a block of each grid in a launch does, the loops around it as extents: their values are
    known there.
    """
    if not has_kind(launch.body, BLOCK_KINDS):
        return [launch]
    return list(_inside(launch.body, launch, (), ()))


def _inside(
    node: Stmt, launch: Procedure, around: tuple[For, ...], held: tuple[Expr, ...]
) -> Iterator[Procedure]:
    if around and around[-1].kind in BLOCK_KINDS and not has_kind(node, BLOCK_KINDS):
        body = node
        for loop in around:
            body = If(Binary("lt", Var(loop.var), loop.extent), body)
            body = If(Binary("le", whole(0), Var(loop.var)), body)
        for condition in held:
            body = If(condition, body)
        extents = (*launch.extents, *(loop.var for loop in around))
        yield replace(launch, extents=extents, body=body)
        return
    match node:
        case For(_, _, body, _):
            yield from _inside(body, launch, (*around, node), held)
        case If(condition, then):
            yield from _inside(then, launch, around, (*held, condition))
        case Block(items):
            for item in items:
                yield from _inside(item, launch, around, held)
        case Allocate(_, body) | Call(_, body):
            yield from _inside(body, launch, around, held)


def _in_order(model: Model, pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs' instances in the order of the text."""
    rows = _compact([(i.tuple_text, tuple(map(time_text, i.position))) for i in model.instances])
    order = _map(model, rows)
    first, second = (
        order.intersect_domain(side.universe()) for side in (pairs.domain(), pairs.range())
    )
    return first.lex_lt_union_map(second)


def _with_barrier(model: Model, block: Procedure, pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs' instances with a barrier between them."""
    found = list(meetings(block.body))
    if not found:
        return pairs.subtract(pairs)
    # A barrier is alone at its place, so nothing is decided behind it.
    length = max(len(meeting.position) for meeting in found)
    named = [(f"W{n}[{_names(m.loops)}]", m) for n, m in enumerate(found)]
    rows = [(i.tuple_text, _thread_time(i.loops, i.position)) for i in model.instances]
    rows += [(text, _thread_time(m.loops, m.position)) for text, m in named]
    rows = _compact([(text, time[:length]) for text, time in rows])
    threads = _map(model, rows[: len(model.instances)])
    waits = _map(model, rows[len(model.instances) :]).intersect_domain(_domain(model, named))
    before, after = (
        threads.intersect_domain(side.universe()) for side in (pairs.domain(), pairs.range())
    )
    return before.lex_lt_union_map(waits).apply_range(waits.lex_lt_union_map(after))


def _equal_threads(model: Model) -> isl.UnionMap:
    """Pairs of instances of one thread; what no loop of a level is around is its thread 0's."""
    parts = []
    for instance in model.instances:
        coordinates = ", ".join(map(time_text, _thread(instance.loops)))
        parts.append(f"{instance.tuple_text} -> [{coordinates}]")
    mapping = isl.UnionMap(f"{model.parameters}{{ {'; '.join(parts)} }}")
    return mapping.apply_range(mapping.reverse())


def _thread(loops: tuple[For, ...]) -> tuple[str | int, ...]:
    """The coordinates of the thread that runs what is inside loops."""
    bound = {loop.kind: loop.var for loop in loops}
    return tuple(bound.get(level, 0) for level in THREAD_LEVELS)


def _names(loops: tuple[For, ...]) -> str:
    return ", ".join(isl_name(loop.var) for loop in loops)


def _thread_time(loops: tuple[For, ...], position: Position) -> tuple[str, ...]:
    """A place in the time of one thread: without the loops bound to threads."""
    bound = {loop.var for loop in loops if loop.kind in THREAD_LEVELS}
    return tuple("0" if place in bound else time_text(place) for place in position)


def _compact(rows: list[tuple[str, tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    """Times of one length without the components in which all are the same number."""
    length = max(len(time) for _, time in rows)
    padded = [(*time, *["0"] * (length - len(time))) for _, time in rows]
    differing = [
        i
        for i in range(length)
        if len({time[i] for time in padded}) > 1 or _VARIABLE.search(padded[0][i])
    ]
    return [
        (text, tuple(time[i] for i in differing))
        for (text, _), time in zip(rows, padded, strict=True)
    ]


def _map(model: Model, rows: list[tuple[str, tuple[str, ...]]]) -> isl.UnionMap:
    parts = [f"{text} -> [{', '.join(time)}]" for text, time in rows]
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
