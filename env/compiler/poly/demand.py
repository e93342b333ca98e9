"""What statements need of a tensor that has no shape yet: the least box around all elements that
they touch (bounds inference over unbounded space; Ragan-Kelley et al., PLDI 2013, section 4.2).

An index may hold what is not affine, a value read from memory say: that is any whole number, of
those that its dtype holds (if it is short) or that a clamp or a remainder around it leaves. So
``f[min(x[i], 9)]`` is bounded from above and not from below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import islpy as isl

from kernelwright.env.compiler.ir.dtypes import INTEGERS, whole_range
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Stmt,
    Var,
    walk,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.affine import (
    context_set,
    from_extremum,
    greatest,
    least,
    length,
)
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name
from kernelwright.env.compiler.poly.region import Access, accesses, distinct

# Integer dtypes whose whole range may be meant as a region.
_SHORT = ("int8", "int16", "uint8", "uint16")


@dataclass(frozen=True, slots=True)
class Box:
    """A region of a tensor: by axis the least coordinate and the extent, over the extents of the
    procedure.
    """

    low: tuple[Expr, ...]
    extent: tuple[Expr, ...]


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
    reads: bool = True,
    writes: bool = False,
) -> Demand | None:
    """What statements touch of a tensor; None if nothing. ``dtypes`` are those of the tensors that
    indices read.
    """
    found = (access for statement in statements for access in accesses(statement))
    wanted = [a for a in found if a.tensor == tensor and (writes if a.is_write else reads)]
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
    text = _Text(dtypes)
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
    """The least and the greatest value of an index, by interval arithmetic (Moore, 1966): no isl,
    and exact for accesses without guards where every variable occurs once, in monotone operations.
    None if the loops or the index are none such.
    """
    low: list[int] = []
    high: list[int] = []
    for access in found:
        loops, index = _plain_loops(access), access.indices[axis]
        if exactly and (access.conditions or not _is_monotone(index)):
            return None
        span = None if loops is None else _span(index, loops)
        if span is None:
            return None
        low.append(span[0])
        high.append(span[1])
    return min(low), max(high)


def _is_monotone(node: Expr) -> bool:
    names = [part.name for part in walk(node) if isinstance(part, Var)]
    remainders = any(isinstance(part, Binary) and part.op == "mod" for part in walk(node))
    return len(set(names)) == len(names) and not remainders


def _span(node: Expr, loops: Mapping[str, tuple[int, int]]) -> tuple[int, int] | None:
    match node:
        case Const(value, "int64"):
            return int(value), int(value)
        case Var(name):
            return loops.get(name)
        case Binary(op, left, right):
            a, b = _span(left, loops), _span(right, loops)
            return None if a is None or b is None else _combined(op, a, b)
    return None


def _combined(op: str, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int] | None:
    match op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul" if a[0] == a[1] or b[0] == b[1]:
            ends = [x * y for x in a for y in b]
            return min(ends), max(ends)
        case "floordiv" if b[0] == b[1] > 0:
            return a[0] // b[0], a[1] // b[0]
        case "mod" if b[0] == b[1] > 0:
            return 0, b[0] - 1
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
    return None


@dataclass(slots=True)
class _Text:
    """Expressions in isl's words, with a variable of its own for each part that is not affine, and
    what is known of these.
    """

    dtypes: Mapping[str, str]
    anything: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    def of(self, node: Expr) -> str:
        """The text of an expression."""
        known = affine_text(node)
        if known is not None:
            return known
        match node:
            case Binary("add" | "sub" as op, left, right):
                return f"({self.of(left)} {'+' if op == 'add' else '-'} {self.of(right)})"
            case Binary("min" | "max" as op, left, right):
                return f"{op}({self.of(left)}, {self.of(right)})"
            case Binary("mul", left, Const(value, _)) | Binary("mul", Const(value, _), left):
                return f"({value} * {self.of(left)})"
            case Binary("floordiv", left, Const(value, _)) if int(value) > 0:
                return f"floor(({self.of(left)}) / {value})"
            case Binary("mod", left, Const(value, _)) if int(value) > 0:
                return f"(({self.of(left)}) mod {value})"
            case Select(condition, then, other):
                return self._choice(condition_text(condition), self.of(then), self.of(other))
            case Cast("int64", operand):
                return self._held(operand)
        return self._new()

    def _new(self) -> str:
        self.anything.append(f"any{len(self.anything)}")
        return self.anything[-1]

    def _choice(self, condition: str | None, then: str, other: str) -> str:
        name = self._new()
        if condition is None:
            self.limits.append(f"({name} = {then} or {name} = {other})")
        else:
            held = f"(({condition}) and {name} = {then})"
            self.limits.append(f"({held} or ((not ({condition})) and {name} = {other}))")
        return name

    def _held(self, operand: Expr) -> str:
        """Any value of an operand that becomes a whole number."""
        if isinstance(operand, Cast) and operand.dtype in INTEGERS:
            dtype: str | None = operand.dtype
        else:
            dtype = self.dtypes.get(operand.tensor) if isinstance(operand, Load) else None
        name = self._new()
        if dtype in _SHORT:
            held = whole_range(dtype)
            self.limits.append(f"{held.start} <= {name} < {held.stop}")
        return name
