"""Boxes whose place is chosen by memory: the row ``y[crd[e]]`` of a stored row ``e``.

A number that is read and that the statement leaves alone is one more thing that is fixed around it.
It is only known to be a place of the tensor where the statement touches that: a row with nothing in
it may have the coordinate of no row at all. So the box is touched under exactly the condition under
which the statement would; where that cannot be said outside of it, under the condition that all
places are within their tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import islpy as isl

from kernelwright.env.compiler.ir.accesses import Access, accesses
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Expr,
    Load,
    Procedure,
    Tensor,
    children,
    walk,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import TRUE, whole
from kernelwright.env.compiler.poly.context import Context, known
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name
from kernelwright.env.compiler.poly.region import Interval, Region, region_of
from kernelwright.env.compiler.poly.sums import cancelled
from kernelwright.env.compiler.schedule.fixed import fixed_numbers, put, replaced
from kernelwright.env.compiler.schedule.site import Site


def region_at(
    site: Site, tensor: Tensor, procedure: Procedure, *, writes: bool = True
) -> Region | None:
    """The least box around what a statement touches of a tensor (with ``writes`` False: reads), by
    what is fixed around it and the numbers that it reads and leaves alone. None if it does not
    touch the tensor.
    """
    box = region_of(site.statement, tensor, site.around, writes=writes)
    if box is None or not box.reasons:
        return box
    return _chosen(site, tensor, procedure, writes=writes) or box


def _chosen(site: Site, tensor: Tensor, procedure: Procedure, *, writes: bool) -> Region | None:
    """The box by such numbers, None if they do not give one of a size known without them."""
    numbers = fixed_numbers(_roots(site, tensor), site.statement, procedure)
    statement = replaced(site.statement, numbers)
    found = [
        access
        for access in accesses(statement)
        if access.tensor == tensor.name and (writes or not access.is_write)
    ]
    is_exact = all(map(_is_exact, found))
    if not numbers or not (is_exact or _is_known(numbers, procedure)):
        return None
    places: list[Expr] = []
    for axis, size in enumerate(tensor.shape):
        indices = {cancelled(access.indices[axis]) for access in found}
        inner = {loop.var for access in found for loop in access.loops}
        if len(indices) == 1 and not mentions(index := indices.pop(), *inner):
            # Where it is touched it is a place.
            places += _inside(index, size)
    names = tuple(var.name for var in numbers.values())
    conditions = (*site.around.conditions, *places)
    around = replace(site.around, conditions=conditions, numbers=names)
    box = region_of(statement, tensor, around, writes=writes)
    if box is None or box.reasons or any(mentions(axis.most, *names) for axis in box.axes):
        return None
    values: dict[Expr, Expr] = {var: read for read, var in numbers.items()}
    axes = [
        Interval(put(axis.low, values), put(axis.extent, values), axis.most) for axis in box.axes
    ]
    condition = put(box.condition, values)
    if not is_exact:
        inner = (put(place, values) for place in places)
        tests: tuple[Expr, ...] = (*_loads_inside(numbers, procedure), *inner, condition)
        condition = TRUE
        # An operand of `and` is only evaluated where those before it hold.
        for test in (test for test in tests if not _holds(test, site.around)):
            condition = test if condition == TRUE else Binary("and", condition, test)
    return Region(box.tensor, tuple(axes), condition)


def _is_known(numbers: Iterable[Expr], procedure: Procedure) -> bool:
    """Whether numbers are read from inputs alone, which have a value wherever they have a place."""
    inputs = {tensor.name for tensor in procedure.tensors if tensor.role == "input"}
    return all(
        part.tensor in inputs
        for number in numbers
        for part in walk(number)
        if isinstance(part, Load)
    )


def _loads_inside(numbers: Iterable[Expr], procedure: Procedure) -> list[Expr]:
    """The conditions under which numbers can be read, those of what others need first."""
    shapes = {tensor.name: tensor.shape for tensor in procedure.tensors}
    out: list[Expr] = []

    def visit(node: Expr) -> None:
        for child in children(node):
            visit(child)
        if isinstance(node, Load):
            for index, size in zip(node.indices, shapes[node.tensor], strict=True):
                out.extend(_inside(index, size))

    for number in numbers:
        visit(number)
    return list(dict.fromkeys(out))


def _inside(index: Expr, size: Expr) -> tuple[Expr, Expr]:
    """The conditions under which an index is one of an axis."""
    return Binary("le", whole(0), index), Binary("lt", index, size)


def _holds(condition: Expr, around: Context) -> bool:
    """Whether a condition always holds."""
    text = condition_text(condition)
    if text is None:
        return False
    names = ", ".join(map(isl_name, around.parameters))
    return bool(known(around).is_subset(isl.Set(f"[{names}] -> {{ [] : {text} }}").params()))


def _roots(site: Site, tensor: Tensor) -> list[Expr]:
    """What decides which elements are touched, and whether any is."""
    out: list[Expr] = []
    for access in accesses(site.statement):
        if access.tensor == tensor.name:
            out += access.indices
            out += (loop.extent for loop in access.loops)
            out += (part for each in access.conditions for part in _compared(each))
    return out


def _compared(condition: Expr) -> list[Expr]:
    """The numbers that a condition compares."""
    return [
        side
        for part in walk(condition)
        if isinstance(part, Binary) and part.op in _COMPARISONS
        for side in (part.left, part.right)
    ]


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _is_exact(access: Access) -> bool:
    """Whether it is known where and when an access runs."""
    numbers = (*access.indices, *(loop.extent for loop in access.loops))
    return all(affine_text(number) is not None for number in numbers) and all(
        condition_text(condition) is not None for condition in access.conditions
    )
