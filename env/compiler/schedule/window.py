"""How the window of a temporary moves while loops go on, and which tensors hold one value for each
place whenever they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.linear import Linear, as_term
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Stmt,
    Store,
    Var,
    children,
    map_statements,
    statements,
    walk,
)
from kernelwright.env.compiler.ir.path import path_to
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import variables_of, writes
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.sums import cancelled, is_whole, linear, replaced
from kernelwright.env.compiler.schedule.producer import Producer


def _leaves(node: Stmt, tensor: str) -> Iterator[Expr]:
    """The whole-number expressions that a statement depends on, but for the places of a tensor that
    it writes.
    """
    match node:
        case Store(name, indices, value, _, _):
            for expression in (value, *(() if name == tensor else indices)):
                yield from _whole_parts(expression)
            return
        case For(_, extent, body, _):
            yield from _whole_parts(extent)
            yield from _leaves(body, tensor)
        case If(condition, then):
            yield from _whole_parts(condition)
            yield from _leaves(then, tensor)
        case Allocate(_, body):
            yield from _leaves(body, tensor)
        case Block(items):
            for item in items:
                yield from _leaves(item, tensor)


def _whole_parts(node: Expr) -> Iterator[Expr]:
    """The largest whole-number expressions in one."""
    if is_whole(node):
        yield node
        return
    for child in children(node):
        yield from _whole_parts(child)


def offsets_of(op: str, producer: Producer, between: frozenset[str]) -> dict[int, Expr]:
    """By axis, how far the window has moved in an iteration: what its elements are a function of is
    their place plus that. ``between`` are the loops whose iterations follow one another.

    Raises:
        ScheduleError: if the elements of two iterations are not the same function of that sum.
    """
    axes, tensor = dict(producer.axes), producer.tensor
    sums = [
        each
        for writer in producer.writers
        for leaf in _leaves(_without_axis_extents(writer, axes), tensor.name)
        for each in _sums(leaf, axes)
    ]
    found: dict[int, Linear] = {}
    for each in sums:
        moving = each.only(lambda term: bool(variables_of(term) & between))
        own = [(t.name, f) for t, f in each.terms if isinstance(t, Var) and t.name in axes]
        if len(own) != 1:
            continue
        axis, factor = axes[own[0][0]], own[0][1]
        if axis not in found and all(f % factor == 0 for _, f in moving.terms):
            found[axis] = Linear(0, tuple((t, f // factor) for t, f in moving.terms))
    offsets = {axis: found.get(axis, Linear(0)) for axis in range(len(tensor.shape))}
    for each in sums:
        rest = each.only(lambda term: bool(variables_of(term) & between))
        for term, factor in each.terms:
            if isinstance(term, Var) and term.name in axes:
                rest = rest.plus(offsets[axes[term.name]], -factor)
        if rest.terms:
            loops = ", ".join(sorted(between))
            reason = f"{tensor.name} is computed from {print_expr(each.expression())}"
            reason += ", which is no function of its places and one offset for each iteration"
            example = f"iterations of {loops} compute other values for the same place"
            raise ScheduleError(op, reason, example)
    return {axis: offset.expression() for axis, offset in offsets.items()}


def _without_axis_extents(node: Stmt, axes: dict[str, int]) -> Stmt:
    """A statement whose axis loops have no extents: how many elements there are changes none."""
    return map_statements(
        node,
        lambda e: e,
        lambda s: replace(s, extent=whole(0)) if isinstance(s, For) and s.var in axes else s,
    )


def _sums(node: Expr, axes: dict[str, int]) -> Iterator[Linear]:
    """A whole-number expression as sums of terms without axes: terms that have some apart."""
    whole_sum = linear(node)
    plain = whole_sum.only(lambda t: isinstance(t, Var) or not variables_of(t) & set(axes))
    yield plain
    for term, _ in whole_sum.terms:
        if not isinstance(term, Var) and variables_of(term) & set(axes):
            for child in children(term):
                yield from _sums(child, axes)


def check_single_valued(
    op: str, procedure: Procedure, tensor: str, within: Stmt, known: frozenset[str] = frozenset()
) -> None:
    """See that whatever a statement writes to an element of a tensor is the same value each time,
    so that it may be read at any time after the first; and so for what that value is computed from.

    Raises:
        ScheduleError: if that is not known.
    """
    stores = [s for s in statements(procedure.body) if isinstance(s, Store) and s.tensor == tensor]
    # Every iteration of the loops around its allocation has a tensor of its own.
    own = (s for s in statements(procedure.body) if isinstance(s, Allocate))
    found = next((s for s in own if s.tensor.name == tensor), None)
    around = () if found is None else path_to(procedure.body, found)
    fixed = {*procedure.extents, *(node.var for node in around if isinstance(node, For))}
    values = (_by_place(candidate, fixed) for candidate in stores)
    if not any(v is not None and all(_agrees(s, v) for s in stores) for v in values):
        reason = f"{tensor} is read at other times, and need not hold the same value then"
        raise ScheduleError(op, reason, f"{tensor} is written by {len(stores)} statements")
    read = {part.tensor for s in stores for part in walk(s.value) if isinstance(part, Load)}
    for name in sorted(read - known - {tensor}):
        if writes(within, name):
            check_single_valued(op, procedure, name, within, known | {tensor})


def _place(axis: int) -> str:
    return f"#{axis}"  # no name of a variable


def _by_place(store: Store, fixed: set[str]) -> Expr | None:
    """The value of a store as a function of its place alone, None if it is not seen to be one."""
    if store.reduce is not None:
        return None
    indices = [linear(index) for index in store.indices]
    pivots: dict[int, Var] = {}
    for axis, index in enumerate(indices):
        others = {t for k, each in enumerate(indices) if k != axis for t, _ in each.terms}
        for each, factor in index.terms:
            if isinstance(each, Var) and abs(factor) == 1 and each not in others:
                pivots[axis] = each
    values: dict[str, Expr] = {}
    for axis, pivot in pivots.items():
        # pivot = (place - the rest of the index) / factor
        index = indices[axis]
        rest = index.without(pivot.name)
        factor = index.factor(pivot.name)
        solved = as_term(Var(_place(axis))).plus(rest, -1).scaled(factor)
        values[pivot.name] = solved.expression()
    value = replaced(store.value, values)
    places = {_place(axis) for axis in pivots}
    return value if variables_of(value) <= fixed | places else None


def _agrees(store: Store, value: Expr) -> bool:
    """Whether a store writes that function of its place."""
    at = {_place(axis): index for axis, index in enumerate(store.indices)}
    return store.reduce is None and cancelled(store.value) == cancelled(replaced(value, at))
