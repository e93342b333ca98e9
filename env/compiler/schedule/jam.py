"""Unroll-and-jam: several iterations of an outer loop side by side in its inner loops.

Callahan, Cocke and Kennedy, Estimating Interlock and Improving Balance for Pipelined Architectures
(Journal of Parallel and Distributed Computing 5, 1988).
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.linear import Linear, floor_division, linear
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Expr,
    For,
    If,
    LoopKind,
    Procedure,
    Stmt,
    Var,
    statements,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.model import Instance, Position, affine_text
from kernelwright.env.compiler.schedule.copies import copied, expanded, indexed
from kernelwright.env.compiler.schedule.defaults import spare_half
from kernelwright.env.compiler.schedule.edit import (
    constant_extent,
    find_loop,
    finish,
    no_loads,
    replace_loop,
    replace_variables,
    taken_names,
    whole_argument,
)
from kernelwright.env.compiler.schedule.facts import facts_at
from kernelwright.env.compiler.schedule.kind import MAX_UNROLL
from kernelwright.env.compiler.schedule.legal import (
    PLAIN,
    keep_order,
    loops_of,
    no_barrier,
    of_kind,
    part_with,
)

OP = "unroll_and_jam"


def unroll_and_jam(procedure: Procedure, loop: str, factor: int) -> Procedure:
    """Run ``factor`` iterations of a loop side by side: what has no loop inside is written out for
    each of them, innermost (unroll-and-jam; register blocking).

    The loop becomes its outer half with the usual name of `split`; the copies are unrolled loops
    with that of the inner half. Iterations left over run after all others in a copy of the nest,
    whose loops have ``_tail`` behind. A temporary of one iteration gets an element for each of the
    ``factor``.

    Before::

        for i in 8:
          for j in m:
            S(i, j)

    After ``unroll_and_jam("i", 2)``::

        for io in 4:
          for j in m:
            for ii in 2:  # unrolled
              S(io * 2 + ii, j)

    Legal if the iterations of a block, meeting in each iteration of the inner loops, turn no
    dependence around.

    Raises:
        ScheduleError: if there is no such loop, it is not serial, it has no loop inside or one
            whose extent depends on it, a guard or extent reads memory, the factor is not from 2 to
            64, or a dependence is turned around; then it has the two iterations.
    """
    found = find_loop(OP, procedure, loop)
    of_kind(OP, found, LoopKind.SERIAL)
    no_barrier(OP, found)
    if whole_argument(OP, "a factor", factor, 2) > MAX_UNROLL:
        raise ScheduleError(OP, f"expected a factor of at most {MAX_UNROLL}, found {factor}")
    no_loads(OP, f"the extent of {loop}", found.extent)
    extent = constant_extent(found)
    if extent is not None and extent < factor:
        reason = f"expected at least {factor} iterations of loop {loop}, found {extent}"
        raise ScheduleError(OP, reason)
    _check_inside(found)
    taken = taken_names(procedure)
    outer = spare_half(loop, "o", taken)
    taken.add(outer)
    # A negative extent means no iterations, and has whole blocks below 0.
    count = facts_at(procedure, loop).greatest(found.extent, whole(0))
    blocks = floor_division(linear(count), factor)
    done = blocks.scaled(factor)
    _keep_jammed(procedure, found, factor, done)
    tail = _tail(found, count, done, taken)
    body = _Jam(loop, outer, factor, taken).statement(found.body)
    main = For(outer, blocks.expression(), body)
    return finish(OP, replace_loop(procedure, loop, lambda _: Block((main, tail))))


def _check_inside(loop: For) -> None:
    inner = loops_of(loop.body)
    if not inner:
        raise ScheduleError(OP, f"expected a loop in {loop.var}, found none (unroll it)")
    for each in inner:
        of_kind(OP, each, *PLAIN)
        no_loads(OP, f"the extent of {each.var}", each.extent)
        if mentions(each.extent, loop.var):
            raise ScheduleError(OP, f"the extent of {each.var} depends on {loop.var}")
    for node in statements(loop.body):
        if isinstance(node, If) and loops_of(node):
            no_loads(OP, f"a guard in {loop.var}", node.condition)


def _tail(loop: For, count: Expr, done: Linear, taken: set[str]) -> Stmt:
    """The iterations that are left after whole blocks."""
    rest = linear(count).plus(done, -1).expression()
    index = simplify(Binary("add", done.expression(), Var(loop.var)))
    body = replace_variables(loop.body, {loop.var: index})
    return copied(replace(loop, extent=rest, body=body), "tail", taken)


class _Jam:
    """Moves the iterations of a block to where no loop is inside."""

    def __init__(self, loop: str, outer: str, factor: int, taken: set[str]) -> None:
        self._loop, self._factor, self._taken = loop, factor, taken
        self._base = Binary("mul", Var(outer), whole(factor))

    def statement(self, node: Stmt) -> Stmt:
        if not loops_of(node):
            return self._copies(node)
        match node:
            case For():
                return replace(node, body=self.statement(node.body))
            case Block(items):
                return Block(tuple(self._joined(items)))
            case If(condition, then) if not mentions(condition, self._loop):
                return If(condition, self.statement(then))
            case If(condition, then):
                return self.statement(_pushed(condition, then))
            case Allocate(tensor, body):
                inside = indexed(body, tensor.name, Var(_inner(self._loop)))
                return Allocate(expanded(tensor, whole(self._factor)), self.statement(inside))
        raise ScheduleError(
            OP, f"expected loops, guards and temporaries, found a {type(node).__name__}"
        )

    def _joined(self, items: tuple[Stmt, ...]) -> list[Stmt]:
        """Statements with loops one by one, those without together as far as they follow each
        other.
        """
        out: list[Stmt] = []
        plain: list[Stmt] = []
        for item in items:
            if not loops_of(item):
                plain.append(item)
                continue
            if plain:
                out.append(self._copies(Block(tuple(plain))))
                plain = []
            out.append(self.statement(item))
        return [*out, self._copies(Block(tuple(plain)))] if plain else out

    def _copies(self, node: Stmt) -> Stmt:
        """A statement for every iteration of a block."""
        inner = spare_half(self._loop, "i", self._taken)
        self._taken.add(inner)
        index = simplify(Binary("add", self._base, Var(inner)))
        body = replace_variables(node, {self._loop: index, _inner(self._loop): Var(inner)})
        return For(inner, whole(self._factor), body, LoopKind.UNROLLED)


def _inner(loop: str) -> str:
    """Stands for which iteration of its block one is until that has a name; no name has a space."""
    return f"{loop} in block"


def _pushed(condition: Expr, node: Stmt) -> Stmt:
    """A guard moved in to where no loop is inside."""
    if not loops_of(node):
        return If(condition, node)
    match node:
        case For():
            return replace(node, body=_pushed(condition, node.body))
        case Block(items):
            return Block(tuple(_pushed(condition, item) for item in items))
        case If(other, then):
            return If(other, _pushed(condition, then))
        case Allocate(tensor, body):
            return Allocate(tensor, _pushed(condition, body))
    return If(condition, node)


def _keep_jammed(procedure: Procedure, loop: For, factor: int, done: Linear) -> None:
    part = part_with(procedure, loop.var)
    index = linear(Var(loop.var))
    block: Expr = floor_division(index, factor).expression()
    after: Expr = whole(0)
    if affine_text(done.expression()) is not None:
        # What is left runs in its own order behind the blocks.
        limit = linear(done.expression()).plus(index, -1)
        block = Binary("min", block, floor_division(done, factor).expression())
        after = Binary("max", limit.scaled(-1).expression(), whole(0))
    inner = Binary("mod", Var(loop.var), whole(factor))

    def moved(instance: Instance) -> Position | None:
        if loop.var not in instance.variables:
            return None
        place = instance.position.index(loop.var)
        rest = _jammed(loop.body, instance.position[place + 2 :], inner)
        return (*instance.position[:place], block, after, *rest)

    reason = f"iterations of {loop.var} side by side turn a dependence around"
    keep_order(OP, part, moved, reason)


def _jammed(node: Stmt, position: Position, inner: Expr) -> Position:
    """A time inside the loop, with the iteration of the block where no loop is inside any more."""
    if not loops_of(node):
        return (inner, *position)
    match node:
        case For(_, _, body, _):
            return (*position[:2], *_jammed(body, position[2:], inner))
        case If(_, body) | Allocate(_, body):
            return _jammed(body, position, inner)
        case Block(items):
            place = position[0]
            assert isinstance(place, int)
            if loops_of(items[place]):
                return (place, *_jammed(items[place], position[1:], inner))
            first = place
            while first > 0 and not loops_of(items[first - 1]):
                first -= 1
            return (first, inner, *position)
    return (inner, *position)
