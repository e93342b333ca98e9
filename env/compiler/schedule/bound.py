"""The directive bound: what is known of an extent, used where it is proved."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import islpy as isl

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Expr,
    For,
    If,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Var,
    While,
    children,
    rebuild,
    substitute,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.affine import context_set
from kernelwright.env.compiler.poly.context import Context, context_of, known
from kernelwright.env.compiler.poly.model import isl_name
from kernelwright.env.compiler.schedule.buffer import conditions_of, guarded, less_than
from kernelwright.env.compiler.schedule.edit import (
    find_loop,
    finish,
    replace_loop,
    whole_argument,
)
from kernelwright.env.compiler.schedule.ranges import Ranges, bounds, linear, tidy


def bound(procedure: Procedure, loop: str, extent: str, multiple: int) -> Procedure:
    """Use in a loop that an extent is a multiple of a number there (Halide ``align_bounds``):
    rounded extents become whole, guards that then always hold go.

    Before::

        if n % 8 == 0:
          for io in (n + 7) // 8:
            for ii in 8:
              if io * 8 + ii < n:
                y[io * 8 + ii] = x[io * 8 + ii]

    After ``bound("io", "n", 8)``::

        if n % 8 == 0:
          for io in n // 8:
            for ii in 8:
              y[io * 8 + ii] = x[io * 8 + ii]

    Legal if the conditions around the loop say so. A kernel returns nothing, so it could not tell
    its caller that a promise was broken: none is taken.

    Raises:
        ScheduleError: if there is no such loop or extent, nothing would change, or the extent may
            be no multiple; then it has its value.
    """
    op = "bound"
    found = find_loop(op, procedure, loop)
    if extent not in procedure.extents:
        listed = ", ".join(procedure.extents) or "none"
        raise ScheduleError(op, f"expected one of the extents {listed}, found {extent!r}")
    multiple = whole_argument(op, "a multiple", multiple, 2)
    inside = context_of(procedure, loop)
    around = Context(inside.extents, inside.loops[:-1], inside.conditions)
    example = _no_multiple(around, extent, multiple)
    if example is not None:
        reason = f"nothing around loop {loop} says that {extent} is a multiple of {multiple}"
        raise ScheduleError(op, reason, f"{extent} may be {example}")
    known_as = _Known(extent, multiple)
    ranges = {each.var: known_as.inside(each.extent) for each in around.loops}
    new = known_as.statement(found, ranges)
    if new == found:
        raise ScheduleError(op, f"expected rounded extents or guards of {extent}, found none")
    return finish(op, replace_loop(procedure, loop, lambda _: new))


def _no_multiple(around: Context, extent: str, multiple: int) -> int | None:
    """A value of an extent that the conditions allow and that is no multiple."""
    no_multiple = context_set(around.parameters, [f"{isl_name(extent)} mod {multiple} != 0"])
    others = known(around).intersect(no_multiple)
    if others.is_empty():
        return None
    place = others.find_dim_by_name(isl.dim_type.param, isl_name(extent))
    point = others.sample_point()
    value: int = point.get_coordinate_val(isl.dim_type.param, place).to_python()
    return value


class _Known:
    """An extent that is a multiple: ``n`` is ``n // 8 * 8``."""

    def __init__(self, extent: str, multiple: int) -> None:
        self._extent = Var(extent)
        blocks = Binary("floordiv", self._extent, whole(multiple))
        self._product = Binary("mul", blocks, whole(multiple))

    def inside(self, node: Expr) -> Expr:
        """An expression in which the multiple can be seen."""
        return substitute(node, {self._extent.name: self._product})

    def _outside(self, node: Expr) -> Expr:
        if node == self._product:
            return self._extent
        operands = tuple(self._outside(child) for child in children(node))
        return rebuild(node, operands) if operands else node

    def _extent_of(self, loop: For, ranges: Ranges) -> Expr:
        seen = self.inside(loop.extent)
        return tidy(_least(seen, ranges), ranges) if seen != loop.extent else loop.extent

    def statement(self, node: Stmt, ranges: Ranges) -> Stmt:
        """The statement with whole extents and without guards that always hold."""
        match node:
            case For(var, _, body, _):
                extent = self._extent_of(node, ranges)
                body = self.statement(body, {**ranges, var: extent})
                return replace(node, extent=self._outside(extent), body=body)
            case If(condition, then):
                kept = [part for part in conditions_of(condition) if not self._holds(part, ranges)]
                return guarded(kept, self.statement(then, ranges))
            case While(_, body):
                return replace(node, body=self.statement(body, ranges))
            case Block(items):
                return Block(tuple(self.statement(item, ranges) for item in items))
            case Allocate(tensor, body):
                return Allocate(tensor, self.statement(body, ranges))
            case Store() | Prefetch() | Barrier() | Call():
                return node
            case _:
                assert_never(node)

    def _holds(self, condition: Expr, ranges: Ranges) -> bool:
        match condition:
            case Binary("lt", left, right):
                limit = _least(self.inside(right), ranges)
                return not less_than(linear(self.inside(left), ranges), limit, ranges)
        return False


def _least(node: Expr, ranges: Ranges) -> Expr:
    """An expression without minima of which one side is known."""
    match node:
        case Binary("min", left, right):
            a, b = _least(left, ranges), _least(right, ranges)
            for first, second in ((a, b), (b, a)):
                difference = linear(first, ranges).plus(linear(second, ranges), -1)
                found = bounds(difference, ranges)
                if found is not None and not found[1].terms and found[1].constant <= 0:
                    return first
            return Binary("min", a, b)
    return node
