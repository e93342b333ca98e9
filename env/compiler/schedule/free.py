"""The iterations of a loop that are free of its conditions: in all of them every guard holds, and
every choice, ``min`` and ``max`` is decided alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from kernelwright.env.compiler.ir.linear import Linear, floor_division, linear
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Expr,
    For,
    If,
    Select,
    Stmt,
    Var,
    While,
    walk,
)
from kernelwright.env.compiler.ir.queries import expressions, is_total, mentions
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.model import affine_text
from kernelwright.env.compiler.schedule.edit import (
    constant_extent,
)
from kernelwright.env.compiler.schedule.facts import Facts, opposite


@dataclass(frozen=True, slots=True)
class Range:
    """The iterations from ``start`` up to, not including, ``end``; none where that is no more."""

    start: Expr
    end: Expr


def free_range(loop: For, facts: Facts) -> Range | None:
    """The iterations of a loop that are free of conditions, None if there is no condition to be
    free of; ``facts`` hold where the loop begins.
    """
    return _from_margins(loop, facts) or _around_middle(loop, facts)


def _from_margins(loop: For, facts: Facts) -> Range | None:
    """The iterations of a loop in which the conditions hold that can be removed; None if there are
    no such conditions.
    """
    starts, ends = [], []
    for condition, inner in _conditions(loop.body, (), loop.var):
        for form in _margins(condition):
            least = _least(form, loop.var, inner)
            if least is None:
                continue
            slope, rest = least.factor(loop.var), least.without(loop.var)
            if slope < 0:
                # rest - |slope| v >= 0 up to v = rest // |slope|.
                ends.append(floor_division(rest.shifted(-slope), -slope).expression())
            elif slope > 0:
                starts.append(
                    floor_division(rest.scaled(-1).shifted(slope - 1), slope).expression()
                )
    if not starts and not ends:
        return None
    start: Expr = whole(0)
    end = loop.extent
    for each in starts:
        start = facts.greatest(start, each)
    for each in ends:
        end = facts.least(end, each)
    return Range(start, end)


def _around_middle(loop: For, facts: Facts) -> Range | None:
    """The iterations around the middle one in which all conditions that are decided there are
    decided alike; None if there is no other, or the extent is no number.
    """
    count = constant_extent(loop)
    if count is None:
        return None
    middle, start, end = count // 2, 0, count
    for choice, inner in _choices_in(loop.body, ()):
        around = facts.inside(loop)
        for each in inner:
            around = around.inside(each)
        at_middle = around.given(Binary("eq", Var(loop.var), whole(middle)))
        wanted = next((each for each in choice if at_middle.decide(each)), None)
        if wanted is not None:
            others = around.exceptions(wanted)
            if others is not None and not others.is_empty():
                before, after = _neighbours(
                    others, len(around.fixed) + len(facts.variables), middle
                )
                start, end = max(start, before + 1), min(end, count if after is None else after)
    return Range(whole(start), whole(end)) if (start, end) != (0, count) else None


def _neighbours(values: isl.Set, axis: int, middle: int) -> tuple[int, int | None]:
    """The last value below the middle (-1 if there is none) and the first above (None)."""
    dims = values.dim(isl.dim_type.set)
    line = values.project_out(isl.dim_type.set, axis + 1, dims - axis - 1)
    line = line.project_out(isl.dim_type.set, 0, axis)
    line = line.project_out(isl.dim_type.param, 0, line.dim(isl.dim_type.param))
    below = line.upper_bound_val(isl.dim_type.set, 0, isl.Val(middle - 1))
    above = line.lower_bound_val(isl.dim_type.set, 0, isl.Val(middle))
    return (
        -1 if below.is_empty() else below.dim_max_val(0).to_python(),
        None if above.is_empty() else above.dim_min_val(0).to_python(),
    )


def _choices_in(
    node: Stmt, inner: tuple[For, ...]
) -> Iterator[tuple[tuple[Expr, Expr], tuple[For, ...]]]:
    """Every condition in a statement and its opposite, with the loops between; of a ``min`` or
    ``max``, when it is which operand.
    """
    match node:
        case For(_, _, body, _):
            yield from _choices_in(body, (*inner, node))
            return
        case If(condition, then):
            yield (condition, opposite(condition)), inner
            yield from _choices_in(then, inner)
            return
        case Block(items):
            for item in items:
                yield from _choices_in(item, inner)
            return
        case Allocate(_, body) | While(_, body):
            yield from _choices_in(body, inner)
            return
    for root in expressions(node):
        for part in walk(root):
            match part:
                case Select(condition, _, _):
                    yield (condition, opposite(condition)), inner
                case Binary("min" | "max", left, right) if affine_text(part) is not None:
                    yield (Binary("le", left, right), Binary("ge", left, right)), inner


def _conditions(
    node: Stmt, inner: tuple[For, ...], var: str
) -> Iterator[tuple[Expr, tuple[For, ...]]]:
    """The conditions in a statement that depend on a loop and do not read memory, each with the
    loops between.
    """
    match node:
        case For(_, _, body, _):
            yield from _conditions(body, (*inner, node), var)
        case If(condition, then):
            yield from ((each, inner) for each in _usable(condition, var))
            yield from _conditions(then, inner, var)
        case Block(items):
            for item in items:
                yield from _conditions(item, inner, var)
        case Allocate(_, body) | While(_, body):
            yield from _conditions(body, inner, var)
        case _:
            for root in expressions(node):
                for part in walk(root):
                    yield from ((each, inner) for each in _choices(part, var))


def _choices(node: Expr, var: str) -> Iterator[Expr]:
    """The conditions under which a choice is the one of most iterations: that of a boundary, whose
    limit is a number, is not.
    """
    match node:
        case Select(Binary("or", _, _) as condition, _, _):
            yield from _usable(opposite(condition), var)
        case Select(Binary("and", _, _) as condition, _, _):
            yield from _usable(condition, var)
        case Select(condition, _, _):
            for each in _usable(condition, var):
                upwards = any(form.factor(var) > 0 for form in _margins(each))
                short = not any(form.without(var).terms for form in _margins(each))
                yield each if upwards or not short else opposite(each)
        case Binary("min" | "max" as op, left, right) if affine_text(node) is not None:
            if mentions(left, var) != mentions(right, var):
                moving, limit = (left, right) if mentions(left, var) else (right, left)
                yield Binary("le" if op == "min" else "ge", moving, limit)


def _usable(condition: Expr, var: str) -> Iterator[Expr]:
    match condition:
        case Binary("and", left, right):
            yield from _usable(left, var)
            yield from _usable(right, var)
        case Binary("lt" | "le" | "gt" | "ge", _, _):
            if mentions(condition, var) and is_total(condition):
                yield condition


def _margins(condition: Expr) -> Iterator[Linear]:
    """What must be at least 0 for a comparison to hold."""
    match condition:
        case Binary("lt" | "le" as op, left, right):
            yield linear(right).plus(linear(left), -1).shifted(-1 if op == "lt" else 0)
        case Binary("gt" | "ge" as op, left, right):
            yield linear(left).plus(linear(right), -1).shifted(-1 if op == "gt" else 0)


def _least(form: Linear, var: str, inner: tuple[For, ...]) -> Linear | None:
    """The least value of a form over the loops inside, None if it is not known."""
    for loop in inner:
        if form.hidden(loop.var):
            return None
        factor = form.factor(loop.var)
        extent = linear(loop.extent)
        if factor and extent.terms:
            return None
        form = form.without(loop.var)
        if factor < 0:
            form = form.shifted(factor * (extent.constant - 1))
    return None if form.hidden(var) or not form.factor(var) else form
