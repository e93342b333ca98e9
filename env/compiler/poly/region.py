"""Regions: the box of a tensor that a statement reads or writes, as expressions over the loops that
stay fixed around it and the extents (bounds inference; Ragan-Kelley et al., PLDI 2013, section 4.2,
here by parametric integer programming; Feautrier, RAIRO 22, 1988).

Loop bounds and guards are taken into account, so the last tile of a split loop touches what its
guard leaves; so is the tensor's declared shape, which no legal access leaves. What is not affine
(an index loaded from memory, a product of variables) covers its whole axis, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Const,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
    children,
    statements,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import TRUE, whole
from kernelwright.env.compiler.poly.affine import (
    context_set,
    from_extremum,
    from_set,
    greatest,
    least,
    length,
)
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name


@dataclass(frozen=True, slots=True)
class Context:
    """What stays fixed around a statement: extents, loops from the outside in, and the guards that
    hold there.
    """

    extents: tuple[str, ...] = ()
    loops: tuple[For, ...] = ()
    conditions: tuple[Expr, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all that is fixed."""
        return (*self.extents, *(loop.var for loop in self.loops))


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


@dataclass(frozen=True, slots=True)
class Access:
    """One access of a statement: what is touched, under which loops and guards within it."""

    tensor: str
    indices: tuple[Expr, ...]
    loops: tuple[For, ...]
    conditions: tuple[Expr, ...]
    is_write: bool


def context_of(procedure: Procedure, loop: str | None) -> Context:
    """What is fixed inside the body of a loop; the extents alone where ``loop`` is None.

    Raises:
        KeyError: if there is no such loop.
    """
    if loop is None:
        return Context(procedure.extents)
    found = _context_at(procedure.body, loop, Context(procedure.extents))
    if found is None:
        raise KeyError(loop)
    return found


def _context_at(node: Stmt, loop: str, around: Context) -> Context | None:
    match node:
        case For(var, _, body, _):
            inside = Context(around.extents, (*around.loops, node), around.conditions)
            return inside if var == loop else _context_at(body, loop, inside)
        case If(condition, then):
            held = Context(around.extents, around.loops, (*around.conditions, condition))
            return _context_at(then, loop, held)
    inside_all = (_context_at(child, loop, around) for child in _below(node))
    return next((found for found in inside_all if found is not None), None)


def _below(node: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside one."""
    body = getattr(node, "body", ())
    return body if isinstance(body, tuple) else (body,)


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
    return region_of(body, tensors_of(procedure)[tensor], around, reads=reads, writes=writes)


def regions(
    procedure: Procedure, loop: str | None = None
) -> dict[str, tuple[Region | None, Region | None]]:
    """By tensor, what one iteration of a loop (the whole procedure by default) reads and what it
    writes.

    Raises:
        KeyError: if there is no such loop.
    """
    return {
        name: (
            region(procedure, loop, name, writes=False),
            region(procedure, loop, name, reads=False),
        )
        for name in tensors_of(procedure)
    }


def tensors_of(procedure: Procedure) -> dict[str, Tensor]:
    """Every tensor of a procedure by name, its temporaries last."""
    inside = [s.tensor for s in statements(procedure.body) if isinstance(s, Allocate)]
    return {tensor.name: tensor for tensor in (*procedure.tensors, *inside)}


@lru_cache(maxsize=2048)
def region_of(
    statement: Stmt, tensor: Tensor, around: Context, *, reads: bool = True, writes: bool = True
) -> Region | None:
    """What a statement touches of a tensor, by what is fixed around it; None if it does not touch
    it at all.
    """
    found = [
        access
        for access in accesses(statement)
        if access.tensor == tensor.name and (writes if access.is_write else reads)
    ]
    if not found:
        return None
    context = context_set(around.parameters, _limits(around.loops, around.conditions, around))
    touched = elements(tuple(found), tensor, around).coalesce()
    if touched.is_empty():
        return None
    shape = [affine_text(size) for size in tensor.shape]
    intervals = []
    for axis, size in enumerate(tensor.shape):
        reason = _unknown(found, axis)
        known = touched.dim_has_lower_bound(isl.dim_type.set, axis)
        known = known and touched.dim_has_upper_bound(isl.dim_type.set, axis)
        if not known or (reason is not None and shape[axis] is None):
            reason = reason or f"axis {axis} of {tensor.name} has no affine bounds"
            intervals.append(Interval(whole(0), size, size, reason))
            continue
        intervals.append(_interval(touched, axis, context, around, reason))
    return Region(tensor.name, tuple(intervals), _condition(touched, context, intervals))


def elements(found: tuple[Access, ...], tensor: Tensor, around: Context) -> isl.Set:
    """The elements that accesses touch, by what is fixed around them, as isl's set."""
    box = _declared(tensor, around)
    out = isl.Set.empty(box.get_space())
    for access in found:
        part = _touched(access, around)
        out = out.union(part if part.is_subset(box) else part.intersect(box))
    return out


def _touched(access: Access, around: Context) -> isl.Set:
    axes = [f"a{axis}" for axis in range(len(access.indices))]
    texts = _limits(
        (*around.loops, *access.loops), (*around.conditions, *access.conditions), around
    )
    for axis, index in zip(axes, access.indices, strict=True):
        text = affine_text(index)
        if text is not None:
            texts.append(f"{axis} = {text}")
    inner = [isl_name(loop.var) for loop in access.loops]
    condition = " and ".join(texts) or "true"
    bound = f"exists {', '.join(inner)}: {condition}" if inner else condition
    parameters = ", ".join(map(isl_name, around.parameters))
    return isl.Set(f"[{parameters}] -> {{ [{', '.join(axes)}] : {bound} }}")


def _declared(tensor: Tensor, around: Context) -> isl.Set:
    axes = [f"a{axis}" for axis in range(len(tensor.shape))]
    texts = [f"0 <= {axis}" for axis in axes]
    for axis, size in zip(axes, tensor.shape, strict=True):
        text = affine_text(size)
        if text is not None:
            texts.append(f"{axis} < {text}")
    parameters = ", ".join(map(isl_name, around.parameters))
    return isl.Set(f"[{parameters}] -> {{ [{', '.join(axes)}] : {' and '.join(texts) or 'true'} }}")


def _limits(loops: tuple[For, ...], conditions: tuple[Expr, ...], around: Context) -> list[str]:
    """Loop bounds and guards in isl's words; those that are not affine are left out."""
    texts = [f"0 <= {isl_name(extent)}" for extent in around.extents]
    for loop in loops:
        size = affine_text(loop.extent)
        texts.append(f"0 <= {isl_name(loop.var)}")
        texts += [] if size is None else [f"{isl_name(loop.var)} < {size}"]
    return texts + [f"({t})" for t in map(condition_text, conditions) if t is not None]


def _unknown(found: list[Access], axis: int) -> str | None:
    for access in found:
        if affine_text(access.indices[axis]) is None:
            index = print_expr(access.indices[axis])
            return f"index {index} of {access.tensor} is not affine"
    return None


def _interval(
    touched: isl.Set, axis: int, context: isl.Set, around: Context, reason: str | None
) -> Interval:
    low, high = least(touched, axis, context), greatest(touched, axis, context)
    extent = length(low, high)
    return Interval(from_extremum(low), from_extremum(extent), _most(extent.exact, around), reason)


def _most(extent: isl.PwAff, around: Context) -> Expr:
    """The greatest extent over all iterations of the fixed loops."""
    sizes = isl.Set.from_pw_aff(extent)
    constant = sizes.dim_max_val(0)
    if constant.is_int():
        return whole(constant.to_python())
    extents = context_set(around.extents, [f"0 <= {isl_name(name)}" for name in around.extents])
    for loop in around.loops:
        place = sizes.find_dim_by_name(isl.dim_type.param, isl_name(loop.var))
        if place >= 0:
            sizes = sizes.project_out(isl.dim_type.param, place, 1)
    return from_extremum(greatest(sizes.coalesce(), 0, extents))


def _condition(touched: isl.Set, context: isl.Set, intervals: list[Interval]) -> Expr:
    """Where anything is touched; true where the box itself is empty elsewhere."""
    untouched = context.subtract(touched.params())
    for interval in intervals:
        text = affine_text(interval.extent)
        if text is not None and not untouched.is_empty():
            empty = f"{untouched.get_space().params()}".removesuffix("{  :  }")
            untouched = untouched.subtract(isl.Set(f"{empty}{{ : {text} <= 0 }}"))
    return TRUE if untouched.is_empty() else from_set(touched.params().gist_params(context))


def accesses(statement: Stmt) -> Iterator[Access]:
    """Every access of a statement, in program order."""
    yield from _accesses(statement, (), ())


def _accesses(node: Stmt, loops: tuple[For, ...], conditions: tuple[Expr, ...]) -> Iterator[Access]:
    for expression in _expressions(node):
        yield from _reads(expression, loops, conditions)
    match node:
        case Store(tensor, indices, _, reduce):
            if reduce is not None:
                yield Access(tensor, indices, loops, conditions, is_write=False)
            yield Access(tensor, indices, loops, conditions, is_write=True)
        case For(_, _, body, _):
            yield from _accesses(body, (*loops, node), conditions)
        case If(condition, then):
            yield from _accesses(then, loops, (*conditions, condition))
        case _:
            for child in _below(node):
                yield from _accesses(child, loops, conditions)


def _expressions(node: Stmt) -> tuple[Expr, ...]:
    """What a statement evaluates before what is inside it runs."""
    match node:
        case Store(_, indices, value, _):
            return (*indices, value)
        case For(_, extent, _, _):
            return (extent,)
        case If(condition, _):
            return (condition,)
    return ()


def _reads(node: Expr, loops: tuple[For, ...], conditions: tuple[Expr, ...]) -> Iterator[Access]:
    if isinstance(node, Load):
        yield Access(node.tensor, node.indices, loops, conditions, is_write=False)
    if isinstance(node, Select) and condition_text(node.condition) is not None:
        # Only the chosen side is evaluated.
        yield from _reads(node.condition, loops, conditions)
        yield from _reads(node.then, loops, (*conditions, node.condition))
        yield from _reads(node.other, loops, (*conditions, Unary("not", node.condition)))
        return
    for child in children(node):
        yield from _reads(child, loops, conditions)
