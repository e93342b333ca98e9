"""Boxes whose place is chosen by memory: the row ``y[crd[e]]`` of a stored row ``e``.

A number that is read and that the statement leaves alone is one more thing that is fixed around it.
It is only known to be a place of the tensor where the statement touches that: a row with nothing in
it may have the coordinate of no row at all. So the box is touched under exactly the condition under
which the statement would; where that cannot be said outside of it, under the condition that all
places are within their tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import islpy as isl

from kernelwright.env.compiler.ir.accesses import Access, accesses
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Select,
    Stmt,
    Tensor,
    Var,
    children,
    walk,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import TRUE, whole
from kernelwright.env.compiler.poly.context import Context, known
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name
from kernelwright.env.compiler.poly.region import Interval, Region, region_of, touched_where
from kernelwright.env.compiler.poly.sums import cancelled
from kernelwright.env.compiler.schedule.buffer import conditions_of
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
    if not numbers:
        return None
    names = tuple(var.name for var in numbers.values())
    alone = replace(site.around, numbers=names)
    places = _places(found, tensor)
    around = replace(alone, conditions=(*site.around.conditions, *places))
    box = region_of(statement, tensor, around, writes=writes)
    if box is None or box.reasons or any(mentions(axis.most, *names) for axis in box.axes):
        return None
    # Every access reads these, so where one is made they can be read.
    common = frozenset(names).intersection(*map(_read_by, found))
    condition = touched_where(found, alone)
    ends = [end for axis in box.axes for end in (axis.low, axis.extent)]
    if not _mentioned(ends, names) <= common:
        return None
    values: dict[Expr, Expr] = {var: read for read, var in numbers.items()}
    axes = [
        Interval(put(axis.low, values), put(axis.extent, values), axis.most) for axis in box.axes
    ]
    asked = _mentioned([condition], names)
    if all(map(_is_exact, found)) and asked <= _mentioned(_evaluated(statement), names):
        return Region(box.tensor, tuple(axes), put(condition, values))
    used = asked | _mentioned((*ends, *places), names)
    reads = [read for read, var in numbers.items() if var.name in used]
    if not used <= common or not _is_known(reads, procedure):
        return None
    inner = [put(test, values) for test in (*places, condition)]
    held: Expr = TRUE
    # An operand of `and` is only evaluated where those before it hold.
    for test in (*_loads_inside(reads, procedure), *inner):
        if not _holds(test, site.around):
            held = test if held == TRUE else Binary("and", held, test)
    return Region(box.tensor, tuple(axes), held)


def _places(found: Iterable[Access], tensor: Tensor) -> list[Expr]:
    """What holds where a tensor is touched: an index that all accesses share is one of its axis."""
    out: list[Expr] = []
    inner = {loop.var for access in found for loop in access.loops}
    for axis, size in enumerate(tensor.shape):
        indices = {cancelled(access.indices[axis]) for access in found}
        if len(indices) == 1 and not mentions(index := indices.pop(), *inner):
            out += _inside(index, size)
    return out


def _mentioned(nodes: Iterable[Expr], names: Iterable[str]) -> frozenset[str]:
    """Those of some variables that are in expressions."""
    found = {part.name for node in nodes for part in walk(node) if isinstance(part, Var)}
    return frozenset(names) & found


def _read_by(access: Access) -> frozenset[str]:
    """The variables in what is evaluated whenever an access is made."""
    held = (part for each in access.conditions for part in conditions_of(each))
    numbers = (*access.indices, *(loop.extent for loop in access.loops), *held)
    found = (part for number in numbers if _is_strict(number) for part in walk(number))
    return frozenset(part.name for part in found if isinstance(part, Var))


def _evaluated(node: Stmt) -> Iterator[Expr]:
    """What a statement evaluates whenever it runs."""
    match node:
        case For(_, extent, _, _):
            yield from (extent,) if _is_strict(extent) else ()
        case If(condition, _):
            yield from (condition,) if _is_strict(condition) else ()
        case Block(items):
            for item in items:
                yield from _evaluated(item)
        case Allocate(_, body):
            yield from _evaluated(body)


def _is_strict(node: Expr) -> bool:
    """Whether all operands of an expression are evaluated with it."""
    return not any(
        isinstance(part, Select) or (isinstance(part, Binary) and part.op in ("and", "or"))
        for part in walk(node)
    )


def _is_known(numbers: Sequence[Expr], procedure: Procedure) -> bool:
    """Whether numbers have a value wherever what they read has a place: it is read from inputs, and
    nothing divides by it.
    """
    inputs = {tensor.name for tensor in procedure.tensors if tensor.role == "input"}
    return all(
        (part.tensor in inputs if isinstance(part, Load) else _is_total(part))
        for number in numbers
        for part in walk(number)
    )


def _is_total(node: Expr) -> bool:
    """Whether an operation has a result whatever its operands are, all of which it needs."""
    match node:
        case Binary("floordiv" | "mod", _, Const(value, "int64")):
            return int(value) > 0
        case Binary(op, _, _):
            return op in ("add", "sub", "mul", "min", "max")
    return isinstance(node, Const | Var | Cast)


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
