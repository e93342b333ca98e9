"""What statements need of a tensor that has no shape yet: the least box around all elements that
they touch (bounds inference over unbounded space; Ragan-Kelley et al., PLDI 2013, section 4.2).

An index may hold what is not affine, a value read from memory say: that is any whole number, of
those that its dtype holds (if it is short) or that a clamp or a remainder around it leaves. So
``f[min(x[i], 9)]`` is bounded from above and not from below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from kernelwright.env.compiler.ir.accesses import Access, accesses, distinct
from kernelwright.env.compiler.ir.intervals import interval
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Const,
    Expr,
    Stmt,
    Var,
    walk,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.affine import (
    context_set,
    from_extremum,
    greatest,
    least,
    length,
)
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name
from kernelwright.env.compiler.poly.text import Text


@dataclass(frozen=True, slots=True)
class Box:
    """A region of a tensor: by axis the least coordinate and the extent, over the extents of the
    procedure.
    """

    low: tuple[Expr, ...]
    extent: tuple[Expr, ...]

    def __str__(self) -> str:
        """``[1, 33) x [0, 32)``."""
        ends = (
            (low, simplify(Binary("add", extent, low)))
            for low, extent in zip(self.low, self.extent, strict=True)
        )
        return " x ".join(f"[{print_expr(low)}, {print_expr(high)})" for low, high in ends)


class UnboundedError(ValueError):
    """An axis without bounds: its number, and the index that has none."""

    def __init__(self, axis: int, index: Expr) -> None:
        super().__init__(f"axis {axis}: index {print_expr(index)} has no bounds")
        self.axis, self.index = axis, index


@dataclass(frozen=True)
class Demand:
    """The elements of a tensor that accesses touch, over the extents of a procedure; ``dtypes`` are
    those of the tensors that indices read.
    """

    found: tuple[Access, ...]
    extents: tuple[str, ...]
    dtypes: Mapping[str, str]

    @cached_property
    def _parts(self) -> list[tuple[isl.Set, bool]]:
        return [_touched(access, self.extents, self.dtypes) for access in self.found]

    @cached_property
    def touched(self) -> isl.Set:
        """The elements as isl's set."""
        known = self._parts[0][0]
        for part, _ in self._parts[1:]:
            known = known.union(part)
        return known.coalesce()

    @property
    def is_exact(self) -> bool:
        """Whether nothing in indices and guards had to be taken from above."""
        return all(exact for _, exact in self._parts)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is touched."""
        runs = (not a.conditions and _plain_loops(a) is not None for a in self.found)
        return not any(runs) and bool(self.touched.is_empty())

    def box(self) -> Box:
        """The least box around all elements.

        Raises:
            UnboundedError: if there is none.
        """
        limits = [self.limits(axis) for axis in range(len(self.found[0].indices))]
        for axis, limit in enumerate(limits):
            if limit is None:
                raise UnboundedError(axis, self._culprit(axis))
        known = [limit for limit in limits if limit is not None]
        return Box(tuple(low for low, _ in known), tuple(extent for _, extent in known))

    def limits(self, axis: int) -> tuple[Expr, Expr] | None:
        """The least coordinate and the extent along an axis; None if it has no bounds."""
        plain = _plain_span(self.found, axis, exactly=True)
        if plain is not None:
            return whole(plain[0]), whole(plain[1] - plain[0] + 1)
        bounded = self.touched.dim_has_lower_bound(isl.dim_type.set, axis)
        if not bounded or not self.touched.dim_has_upper_bound(isl.dim_type.set, axis):
            return None
        return self._limits(axis, _context(self.extents))

    def _limits(self, axis: int, context: isl.Set) -> tuple[Expr, Expr]:
        if not self.extents:
            first = self.touched.dim_min_val(axis).to_python()
            return whole(first), whole(self.touched.dim_max_val(axis).to_python() - first + 1)
        rank = self.touched.dim(isl.dim_type.set)
        values = self.touched.project_out(isl.dim_type.set, axis + 1, rank - axis - 1)
        values = values.project_out(isl.dim_type.set, 0, axis)
        low = least(values, context)
        high = greatest(values, context)
        size = from_extremum(length(low, high))
        return from_extremum(low), _at_least_zero(size, self.extents)

    def _culprit(self, axis: int) -> Expr:
        indices = [access.indices[axis] for access in self.found]
        return next((i for i in indices if affine_text(i) is None), indices[0])

    def is_within(self, box: Box) -> bool:
        """Whether every element lies in a box, whatever the extents are, from 1 on: an array of
        none has no element that a clamped index could be at.
        """
        if all(self._is_inside(axis, box) for axis in range(len(box.low))):
            return True
        texts = []
        for axis, (low, extent) in enumerate(zip(box.low, box.extent, strict=True)):
            first, size = affine_text(low), affine_text(extent)
            if first is not None:
                texts.append(f"{first} <= a{axis}")
                texts += [] if size is None else [f"a{axis} < {first} + {size}"]
        names = ", ".join(f"a{axis}" for axis in range(len(box.low)))
        held = isl.Set(
            f"{_parameters(self.extents)}{{ [{names}] : {' and '.join(texts) or 'true'} }}"
        )
        positive = context_set(self.extents, [f"1 <= {isl_name(name)}" for name in self.extents])
        touched = self.touched.intersect_params(positive)
        return bool(touched.is_subset(held))

    def _is_inside(self, axis: int, box: Box) -> bool:
        """Whether the values of an index lie inside, as far as that is seen without isl."""
        low, extent = box.low[axis], box.extent[axis]
        span = _plain_span(self.found, axis, exactly=False)
        if span is None or not isinstance(low, Const) or not isinstance(extent, Const):
            return False
        return int(low.value) <= span[0] and span[1] < int(low.value) + int(extent.value)


def demand(
    statements: Iterable[Stmt],
    tensor: str,
    extents: Sequence[str],
    dtypes: Mapping[str, str],
    *,
    writes: bool = False,
) -> Demand | None:
    """What statements read of a tensor, with ``writes`` what they touch; None if nothing.
    ``dtypes`` are those of the tensors that indices read.
    """
    found = (access for statement in statements for access in accesses(statement))
    wanted = [a for a in found if a.tensor == tensor and (writes or not a.is_write)]
    return demand_of(wanted, extents, dtypes)


def demand_of(
    wanted: Iterable[Access], extents: Sequence[str], dtypes: Mapping[str, str]
) -> Demand | None:
    """What accesses to one tensor touch of it; None if nothing."""
    found = tuple(distinct(wanted))
    known = Demand(found, tuple(extents), dtypes)
    return None if not found or known.is_empty else known


def _parameters(extents: Sequence[str]) -> str:
    return f"[{', '.join(map(isl_name, extents))}] -> " if extents else ""


def _context(extents: Sequence[str]) -> isl.Set:
    return context_set(extents, [f"0 <= {isl_name(name)}" for name in extents])


def _at_least_zero(size: Expr, extents: Sequence[str]) -> Expr:
    """A size that is none where the extents are so small that nothing is touched."""
    text = affine_text(size)
    if text is not None:
        negative = isl.Set(f"{_parameters(extents)}{{ : {text} < 0 }}")
        if negative.intersect(_context(extents)).is_empty():
            return size
    return Binary("max", size, whole(0))


def _touched(
    access: Access, extents: tuple[str, ...], dtypes: Mapping[str, str]
) -> tuple[isl.Set, bool]:
    text = Text(dtypes)
    limits = [f"0 <= {isl_name(name)}" for name in extents]
    for loop in access.loops:
        limits += [f"0 <= {isl_name(loop.var)}", f"{isl_name(loop.var)} < {text.of(loop.extent)}"]
    known = [condition_text(condition) for condition in access.conditions]
    limits += [f"({held})" for held in known if held is not None]
    axes = [f"a{axis}" for axis in range(len(access.indices))]
    limits += [
        f"{axis} = {text.of(index)}" for axis, index in zip(axes, access.indices, strict=True)
    ]
    inner = [*(isl_name(loop.var) for loop in access.loops), *text.anything]
    held = " and ".join([*limits, *text.limits]) or "true"
    bound = f"exists {', '.join(inner)}: {held}" if inner else held
    touched = isl.Set(f"{_parameters(extents)}{{ [{', '.join(axes)}] : {bound} }}")
    return touched, not text.anything and None not in known


def _plain_loops(access: Access) -> dict[str, tuple[int, int]] | None:
    """The values of the loops around an access; None unless all of them run at least once."""
    found = {}
    for loop in access.loops:
        if not isinstance(loop.extent, Const) or int(loop.extent.value) < 1:
            return None
        found[loop.var] = (0, int(loop.extent.value) - 1)
    return found


def _plain_span(found: Iterable[Access], axis: int, *, exactly: bool) -> tuple[int, int] | None:
    """The least and the greatest value of an index, by interval arithmetic: no isl,
    and exact for accesses without guards where every variable occurs once, in monotone operations.
    None if the loops or the index are none such.
    """
    low: list[int] = []
    high: list[int] = []
    for access in found:
        loops, index = _plain_loops(access), access.indices[axis]
        if exactly and (access.conditions or not _is_monotone(index)):
            return None
        span = None if loops is None else interval(index, loops.get)
        if span is None:
            return None
        low.append(span[0])
        high.append(span[1])
    return min(low), max(high)


def _is_monotone(node: Expr) -> bool:
    names = [part.name for part in walk(node) if isinstance(part, Var)]
    remainders = any(isinstance(part, Binary) and part.op == "mod" for part in walk(node))
    return len(set(names)) == len(names) and not remainders
