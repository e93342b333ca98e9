"""Regions: the box of a tensor that a statement reads or writes, as expressions over the loops that
stay fixed around it and the extents (bounds inference; Ragan-Kelley et al., PLDI 2013, section 4.2,
here by parametric integer programming; Feautrier, RAIRO 22, 1988).

Loop bounds and guards are taken into account, so the last tile of a split loop touches what its
guard leaves; so is the tensor's declared shape, which no legal access leaves. What is not affine
(an index loaded from memory, a product of variables) covers its whole axis, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import islpy as isl

from kernelwright.env.compiler.ir.accesses import Access, accesses, distinct
from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Const,
    Expr,
    For,
    Procedure,
    Stmt,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import tensors_by_name
from kernelwright.env.compiler.ir.simplify import TRUE, whole
from kernelwright.env.compiler.poly.affine import (
    Extremum,
    context_set,
    from_extremum,
    from_set,
    greatest,
    least,
    length,
)
from kernelwright.env.compiler.poly.context import Context, context_of, known, values_over
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name
from kernelwright.env.compiler.poly.sums import linear


@dataclass(frozen=True, slots=True)
class Interval:
    """A region along one axis: ``extent`` elements from ``low`` on; ``extent`` may be negative
    where nothing is touched.

    ``most`` bounds the extent over all iterations of the fixed loops, in constants and extents of
    the procedure alone: the shape of a buffer for it. ``reason`` says why the whole axis is
    covered, if it is for want of knowledge.
    """

    low: Expr
    extent: Expr
    most: Expr
    reason: str | None = None

    @property
    def constant(self) -> int | None:
        """The bound on the extent where it is a number."""
        return int(self.most.value) if isinstance(self.most, Const) else None

    def __str__(self) -> str:
        return f"{print_expr(self.low)} +: {print_expr(self.extent)}"


@dataclass(frozen=True, slots=True)
class Region:
    """The least box around the elements of a tensor that are touched, where ``condition`` holds;
    elsewhere nothing is.
    """

    tensor: str
    axes: tuple[Interval, ...]
    condition: Expr = TRUE

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why axes are covered whole for want of knowledge; empty if the box is the least."""
        return tuple(axis.reason for axis in self.axes if axis.reason is not None)

    def __str__(self) -> str:
        box = f"{self.tensor}[{', '.join(map(str, self.axes))}]"
        return box if self.condition == TRUE else f"{box} if {print_expr(self.condition)}"


def region(
    procedure: Procedure,
    loop: str | None,
    tensor: str,
    *,
    reads: bool = True,
    writes: bool = True,
) -> Region | None:
    """What one iteration of a loop touches of a tensor, by the variables of that loop and those
    around it; what the whole procedure touches where ``loop`` is None. None if it does not touch
    the tensor at all.

    Raises:
        KeyError: if there is no such loop or tensor.
    """
    around = context_of(procedure, loop)
    body = around.loops[-1].body if around.loops else procedure.body
    return region_of(body, tensors_by_name(procedure)[tensor], around, reads=reads, writes=writes)


@lru_cache(maxsize=2048)
def region_of(
    statement: Stmt, tensor: Tensor, around: Context, *, reads: bool = True, writes: bool = True
) -> Region | None:
    """What a statement touches of a tensor, by what is fixed around it; None if it does not touch
    it at all.
    """
    found = distinct(
        access
        for access in accesses(statement)
        if access.tensor == tensor.name and (writes if access.is_write else reads)
    )
    if not found:
        return None
    at_once = _constant_boxes(tuple(found), tensor, around)
    if at_once is not None:
        return Region(tensor.name, at_once)
    context = known(around)
    touched = _domain(found, around)
    intervals = []
    for axis, size in enumerate(tensor.shape):
        reason = _unknown(found, axis)
        if reason is None:
            low, high = _ends(found, axis, size, around)
            if low.is_empty():
                return None
            if low.dim_has_lower_bound(isl.dim_type.set, 0) and high.dim_has_upper_bound(
                isl.dim_type.set, 0
            ):
                plain = partial(_ends, found, axis, size, around.alone)
                intervals.append(_interval((low, high), plain, context, around))
                continue
            reason = f"axis {axis} of {tensor.name} has no affine bounds"
        intervals.append(Interval(whole(0), size, size, reason))
    return Region(tensor.name, tuple(intervals), _condition(touched, context, intervals))


def _constant_boxes(
    found: tuple[Access, ...], tensor: Tensor, around: Context
) -> tuple[Interval, ...] | None:
    """The intervals of accesses under loops of constant extents and no guards, whose indices along
    an axis differ by numbers: what isl would find, by interval arithmetic. None where that does not
    say it.
    """
    fixed = _spans(around.loops)
    # A loop that runs once, or a guard, would make another text of the bounds.
    if fixed is None or around.conditions or any(last == 0 for last in fixed.values()):
        return None
    if any(access.conditions for access in found):
        return None
    ends: list[tuple[Linear, int, int]] = []
    for access in found:
        inner = _spans(access.loops)
        if inner is None:
            return None
        for axis, index in enumerate(access.indices):
            form = linear(index)
            outside = form.only(lambda term: isinstance(term, Var) and term.name in fixed)
            low = high = form.constant
            for term, factor in form.plus(outside, -1).terms:
                if not isinstance(term, Var) or term.name not in inner:
                    return None
                low += min(0, factor * inner[term.name])
                high += max(0, factor * inner[term.name])
            if axis == len(ends):
                ends.append((outside, low, high))
            elif set(ends[axis][0].terms) != set(outside.terms):
                return None
            else:
                ends[axis] = (outside, min(low, ends[axis][1]), max(high, ends[axis][2]))
    intervals = []
    for (outside, low, high), size in zip(ends, tensor.shape, strict=True):
        moves = [factor * fixed[term.name] for term, factor in outside.terms]  # type: ignore[union-attr]
        first, last = (low + sum(min(0, m) for m in moves)), (high + sum(max(0, m) for m in moves))
        if not isinstance(size, Const) or first < 0 or last >= int(size.value):
            return None
        extent = whole(high - low + 1)
        start = outside.shifted(low).expression()
        intervals.append(Interval(_as_isl_writes(start, around), extent, extent))
    return tuple(intervals)


def _spans(loops: tuple[For, ...]) -> dict[str, int] | None:
    """The last values of loops that run for a constant number of times, at least once."""
    sizes = {loop.var: loop.extent for loop in loops}
    known = {v: int(e.value) - 1 for v, e in sizes.items() if isinstance(e, Const)}
    return known if len(known) == len(sizes) and all(last >= 0 for last in known.values()) else None


def _as_isl_writes(node: Expr, around: Context) -> Expr:
    """An affine expression with its terms in isl's order."""
    if isinstance(node, Const | Var):
        return node
    names = ", ".join(map(isl_name, around.parameters))
    exact = isl.PwAff(f"[{names}] -> {{ [({affine_text(node)})] }}")
    return from_extremum(Extremum("max", exact, (exact.get_pieces()[0][1],)))


def interval_of(
    index: Expr, loops: tuple[For, ...], conditions: tuple[Expr, ...], around: Context
) -> Interval | None:
    """The values of a whole-number expression over loops under guards, None if it has none or they
    have no affine bounds.
    """
    index = linear(index).expression()
    if affine_text(index) is None:
        return None
    context = known(around)
    values = values_over(loops, conditions, (linear(index),), around)
    some = values.dim_has_lower_bound(isl.dim_type.set, 0) and not values.is_empty()
    if not some or not values.dim_has_upper_bound(isl.dim_type.set, 0):
        return None

    def plain() -> tuple[isl.Set, isl.Set]:
        free = values_over(loops, conditions, (linear(index),), around.alone)
        return free, free

    return _interval((values, values), plain, context, around)


def box_of(name: str, values: isl.Set, around: Context) -> tuple[Region, bool]:
    """The least box around a set of places by what is fixed, and whether it holds no other place.

    Every axis of the set must be bounded.
    """
    context = known(around)
    values = values.intersect_params(context).coalesce()
    count = values.dim(isl.dim_type.set)
    intervals, box = [], isl.Set.universe(values.get_space())
    for axis in range(count):
        alone = values.project_out(isl.dim_type.set, axis + 1, count - axis - 1)
        alone = alone.project_out(isl.dim_type.set, 0, axis).coalesce()
        intervals.append(_interval((alone, alone), None, context, around))
        filled = _filled(alone)
        filled = filled.insert_dims(isl.dim_type.set, 0, axis)
        filled = filled.add_dims(isl.dim_type.set, count - axis - 1)
        box = box.intersect(filled)
    region = Region(name, tuple(intervals), _condition(values, context, intervals))
    return region, bool(box.intersect_params(values.params()).is_subset(values))


def holds_first(
    loops: tuple[For, ...], conditions: tuple[Expr, ...], around: Context
) -> Expr | None:
    """The condition under which the first iterations of loops, all at 0, run under their guards;
    None if it is not affine.
    """
    texts = [condition_text(condition) for condition in conditions]
    texts += [condition_text(Binary("lt", whole(0), loop.extent)) for loop in loops]
    texts += [f"{isl_name(loop.var)} = 0" for loop in loops]
    if None in texts:
        return None
    names = ", ".join(isl_name(loop.var) for loop in loops)
    parameters = ", ".join(map(isl_name, around.parameters))
    held = " and ".join(text for text in texts if text is not None)
    bound = f"exists {names}: {held}" if names else held or "true"
    context = known(around)
    first = isl.Set(f"[{parameters}] -> {{ : {bound} }}").intersect(context)
    return TRUE if context.is_subset(first) else from_set(first.gist_params(context))


def _filled(values: isl.Set) -> isl.Set:
    """All whole numbers between the least and the greatest of a set."""
    low, high = values.dim_min(0), values.dim_max(0)
    up = isl.Map("{ [a] -> [b] : a <= b }")
    down = isl.Map("{ [a] -> [b] : a >= b }")
    return isl.Set.from_pw_aff(low).apply(up).intersect(isl.Set.from_pw_aff(high).apply(down))


def touched_where(found: list[Access], around: Context) -> Expr:
    """The condition, by what is fixed, under which some accesses are made; it holds in more cases
    where their loops and guards are not affine.
    """
    context, touched = known(around), _domain(found, around)
    return TRUE if context.is_subset(touched) else from_set(touched.gist_params(context))


def _domain(found: list[Access], around: Context) -> isl.Set:
    """The values of what is fixed for which anything is touched."""
    out = isl.Set.empty(context_set(around.parameters, ()).get_space())
    for loops, conditions in dict.fromkeys((a.loops, a.conditions) for a in found):
        out = out.union(values_over(loops, conditions, (), around).params())
    return out.coalesce()


def _ends(found: list[Access], axis: int, size: Expr, around: Context) -> tuple[isl.Set, isl.Set]:
    """Sets with the least and with the greatest index along an axis.

    Of indices that differ by a number, as those of a stencil do, only the ends matter.
    """
    groups: dict[Any, list[Linear]] = {}
    for access in found:
        index = linear(access.indices[axis])
        groups.setdefault((access.loops, access.conditions, index.terms), []).append(index)
    declared = _declared(size, around)
    low = high = isl.Set.empty(declared.get_space())
    for (loops, conditions, _), indices in groups.items():
        indices = sorted(set(indices), key=lambda index: index.constant)
        ends = [values_over(loops, conditions, (i,), around) for i in (indices[0], indices[-1])]
        if not all(end.is_subset(declared) for end in ends):
            every = [values_over(loops, conditions, (index,), around) for index in indices]
            inside = isl.Set.empty(declared.get_space())
            for each in every:
                inside = inside.union(each.intersect(declared))
            ends = [inside, inside]
        low, high = low.union(ends[0]), high.union(ends[1])
    return low.coalesce(), high.coalesce()


def _declared(size: Expr, around: Context) -> isl.Set:
    """The indices that an axis has."""
    text = affine_text(size)
    parameters = ", ".join(map(isl_name, around.parameters))
    less = "" if text is None else f" and a0 < {text}"
    return isl.Set(f"[{parameters}] -> {{ [a0] : 0 <= a0{less} }}")


def _unknown(found: list[Access], axis: int) -> str | None:
    for access in found:
        if affine_text(access.indices[axis]) is None:
            index = print_expr(access.indices[axis])
            return f"index {index} of {access.tensor} is not affine"
    return None


def _interval(
    ends: tuple[isl.Set, isl.Set],
    plain: Callable[[], tuple[isl.Set, isl.Set]] | None,
    context: isl.Set,
    around: Context,
) -> Interval:
    low = least(ends[0], context, None if plain is None else lambda: plain()[0])
    high = greatest(ends[1], context, None if plain is None else lambda: plain()[1])
    extent = length(low, high)
    return Interval(from_extremum(low), from_extremum(extent), _most(extent.exact, around))


def _most(extent: isl.PwAff, around: Context) -> Expr:
    """The greatest extent over all iterations of the fixed loops."""
    sizes = isl.Set.from_pw_aff(extent)
    constant = sizes.dim_max_val(0)
    if constant.is_int():
        return whole(constant.to_python())
    extents = context_set(around.extents, [f"0 <= {isl_name(name)}" for name in around.extents])
    for name in (*(loop.var for loop in around.loops), *around.numbers):
        place = sizes.find_dim_by_name(isl.dim_type.param, isl_name(name))
        if place >= 0:
            sizes = sizes.project_out(isl.dim_type.param, place, 1)
    sizes = sizes.coalesce()
    return from_extremum(greatest(sizes, extents))


def _condition(touched: isl.Set, context: isl.Set, intervals: list[Interval]) -> Expr:
    """Where anything is touched; true where the box itself is empty elsewhere."""
    untouched = context.subtract(touched.params())
    for interval in intervals:
        text = affine_text(interval.extent)
        if text is not None and not untouched.is_empty():
            empty = f"{untouched.get_space().params()}".removesuffix("{  :  }")
            untouched = untouched.subtract(isl.Set(f"{empty}{{ : {text} <= 0 }}"))
    return TRUE if untouched.is_empty() else from_set(touched.params().gist_params(context))
