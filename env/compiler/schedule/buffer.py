"""A temporary in front of a tensor: what a statement touches of it is copied in, accessed there,
and copied out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.dtypes import FLOATS
from kernelwright.env.compiler.ir.levels import is_launch
from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    statements,
)
from kernelwright.env.compiler.ir.simplify import EMPTY, TRUE, simplify, simplify_procedure, whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.poly.definedness import undefined_read
from kernelwright.env.compiler.poly.region import Interval, Region
from kernelwright.env.compiler.schedule.access import Element, rewritten
from kernelwright.env.compiler.schedule.defaults import numbered_name
from kernelwright.env.compiler.schedule.edit import check_kinds
from kernelwright.env.compiler.schedule.layout import Layout
from kernelwright.env.compiler.schedule.ranges import Ranges, bounds, linear


@dataclass(frozen=True, slots=True)
class Buffer:
    """A temporary for a box of a tensor."""

    tensor: Tensor
    source: str
    box: Region
    layout: Layout
    loops: tuple[For, ...]
    taken: frozenset[str]

    @property
    def ranges(self) -> Ranges:
        """The loops around the temporary, with their extents."""
        return {loop.var: loop.extent for loop in self.loops}

    def redirected(self, node: Stmt) -> Stmt:
        """The statement accessing the temporary in place of the tensor."""
        lows = [linear(axis.low, self.ranges) for axis in self.box.axes]

        def rewrite(indices: tuple[Expr, ...], known: Ranges) -> Element:
            inside = [
                linear(index, known).plus(low, -1) for index, low in zip(indices, lows, strict=True)
            ]
            return self.tensor.name, self.layout.place(inside, known)

        return rewritten(node, self.source, self.ranges, rewrite, hints=False)

    def copied(self, ending: str, *, lanes: int | None = None, inward: bool) -> Stmt:
        """The nest that copies the box into the temporary, or out of it.

        Its loops are named after the temporary, ``ending`` and the number of the stored axis. With
        ``lanes`` they are unrolled, the innermost in vectors.
        """
        stem = f"{self.tensor.name}_{ending}"
        nest = loops_over(self.tensor.shape, stem, self.taken, lanes)
        ranges = {**self.ranges, **{loop.var: loop.extent for loop in nest.loops}}
        guards: list[Expr] = []
        elements = []
        for axis, interval in enumerate(self.box.axes):
            coordinate = self.layout.coordinate(axis, nest.stored)
            guards += less_than(coordinate, interval.extent, ranges)
            # Outer variables first, as the accesses of the tensor have them.
            elements.append(linear(interval.low, self.ranges).plus(coordinate))
        outside = tuple(element.expression() for element in elements)
        inside = nest.indices
        body: Stmt = (
            Store(self.tensor.name, inside, Load(self.source, outside))
            if inward
            else Store(self.source, outside, Load(self.tensor.name, inside))
        )
        copy = _nest(nest.loops, guards, body)
        return copy if self.box.condition == TRUE else If(self.box.condition, copy)

    def zeroed(self) -> Stmt:
        """The nests that fill what a copy into the temporary leaves with zeros: along an axis that
        always ends in its last block that block, else everything.
        """
        nests = []
        for axis, interval in enumerate(self.box.axes):
            if _fills(interval, self.layout.block(axis)):
                continue
            at = self.layout.outermost(axis)
            last = linear(self.tensor.shape[at]).plus(Linear(-1))
            is_last = interval.extent == interval.most
            start = last if is_last else Linear(0)
            nest = zero_nest(self.tensor, at, start, self.taken)
            is_empty = is_last and interval.constant is None
            nests.append(If(Binary("lt", whole(0), interval.most), nest) if is_empty else nest)
        return Block(tuple(nests))


def zero_nest(
    tensor: Tensor, axis: int, start: Linear, taken: Collection[str], lanes: int | None = None
) -> Stmt:
    """The nest that fills a tensor with zeros, from ``start`` on along an axis."""
    if tensor.dtype == "bool":
        zero = Const(False, "bool")
    else:
        zero = Const(0.0 if tensor.dtype in FLOATS else 0, tensor.dtype)
    shape = list(tensor.shape)
    shape[axis] = linear(shape[axis]).plus(start, -1).expression()
    nest = loops_over(shape, f"{tensor.name}_pad{axis}_", taken, lanes)
    stored = list(nest.stored)
    stored[axis] = start.plus(stored[axis])
    indices = tuple(index.expression() for index in stored)
    return _nest(nest.loops, [], Store(tensor.name, indices, zero))


def _fills(interval: Interval, block: int) -> bool:
    """Whether an axis always ends where a block does."""
    if interval.extent != interval.most:
        return False
    return block == 1 or (interval.constant is not None and interval.constant % block == 0)


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over the axes of a shape, and the index along each."""

    loops: tuple[For, ...]
    stored: tuple[Linear, ...]

    @property
    def indices(self) -> tuple[Expr, ...]:
        """The indices as expressions."""
        return tuple(index.expression() for index in self.stored)


def loops_over(shape: Sequence[Expr], stem: str, taken: Collection[str], lanes: int | None) -> Nest:
    """Loops over all axes, named ``stem`` and the axis; an axis of one element needs none.

    With ``lanes`` they are unrolled, the innermost in vectors of so many.
    """
    loops: list[For] = []
    stored: list[Linear] = []
    kind = LoopKind.SERIAL if lanes is None else LoopKind.UNROLLED
    for axis, size in enumerate(shape):
        name, index = numbered_name(f"{stem}{axis}", taken), Linear(0)
        if lanes is not None and lanes > 1 and axis == len(shape) - 1:
            outer, inner = numbered_name(f"{name}o", taken), numbered_name(f"{name}i", taken)
            blocks = simplify(Binary("floordiv", size, whole(lanes)))
            if blocks != whole(1):
                loops.append(For(outer, blocks, EMPTY, kind))
                index = Linear(0, ((Var(outer), lanes),))
            loops.append(For(inner, whole(lanes), EMPTY, LoopKind.VECTORIZED))
            index = index.plus(linear(Var(inner)))
        elif size != whole(1):
            loops.append(For(name, size, EMPTY, kind))
            index = linear(Var(name))
        stored.append(index)
    return Nest(tuple(loops), tuple(stored))


def _nest(loops: Sequence[For], guards: Sequence[Expr], body: Stmt) -> Stmt:
    body = guarded(guards, body)
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body


def guarded(conditions: Sequence[Expr], body: Stmt) -> Stmt:
    """The statement where all of some conditions hold."""
    if not conditions:
        return body
    held = conditions[0]
    for condition in conditions[1:]:
        held = Binary("and", held, condition)
    return If(held, body)


def conditions_of(condition: Expr) -> tuple[Expr, ...]:
    """The conditions that all hold where one does."""
    match condition:
        case Binary("and", left, right):
            return (*conditions_of(left), *conditions_of(right))
    return (condition,)


def less_than(index: Linear, extent: Expr, ranges: Ranges) -> list[Expr]:
    """The conditions under which an index is less than an extent, without those that always hold.

    Of ``min(32, n - jo * 32)`` only the second part is left to test in a loop of 32 iterations; it
    reads ``jo * 32 + j < n``.
    """
    if isinstance(extent, Binary) and extent.op == "min":
        return [
            condition
            for part in (extent.left, extent.right)
            for condition in less_than(index, part, ranges)
        ]
    difference = index.plus(linear(extent, ranges), -1)
    found = bounds(difference, ranges)
    if found is not None and not found[1].terms and found[1].constant < 0:
        return []
    limit = linear(extent, ranges)
    taken = Linear(max(-limit.constant, 0), tuple((a, -n) for a, n in limit.terms if n < 0))
    kept = Linear(max(limit.constant, 0), tuple((a, n) for a, n in limit.terms if n > 0))
    return [Binary("lt", taken.plus(index).expression(), kept.expression())]


def no_barriers(op: str, node: Stmt, tensor: str) -> None:
    """Refuse to keep from other threads what they wait for.

    Raises:
        ScheduleError: if threads meet within the statement.
    """
    if any(isinstance(each, Barrier) for each in statements(node)):
        reason = f"threads meet at a barrier there, and may exchange elements of {tensor}"
        raise ScheduleError(op, reason)


def checked(op: str, procedure: Procedure, buffer: Buffer) -> Procedure:
    """A procedure with a new temporary, if what is copied into it was written before.

    Raises:
        ScheduleError: if it was not, with the iteration; or if loops around the temporary whose
            iterations have no order now meet at an element, with two of them.
    """
    done = verify(simplify_procedure(procedure))
    is_input = any(t.name == buffer.source and t.role == "input" for t in done.tensors)
    if not is_input:
        # The box holds all that is accessed, so a copy of it leaves nothing undefined in there.
        example = undefined_read(done, [buffer.source], into=buffer.tensor.name)
        if example is not None:
            reason = f"the copy of {buffer.source} would read an element before it is written"
            raise ScheduleError(op, reason, str(example))
    # Inside, elements of the temporary are one to one with those of the tensor. Outside, the copies
    # may touch more of the tensor than the statement did. Threads may share the temporary, and who
    # copies is another than who uses it.
    free = {loop.kind for loop in buffer.loops} - {LoopKind.SERIAL, LoopKind.UNROLLED}
    if is_input:
        free -= {LoopKind.PARALLEL, LoopKind.VECTORIZED}
    return check_kinds(op, done) if free or is_launch(done.body) else done


def allocated(buffer: Buffer, parts: Sequence[Stmt]) -> Stmt:
    """The temporary around some statements."""
    return Allocate(buffer.tensor, Block(tuple(parts)))


def never_negative(size: Expr) -> Expr:
    """A size, or 0 where it would be less for some extents: of ``n - 2`` elements an iteration
    that reads nothing needs none.
    """
    form = linear(size)
    if form.constant >= 0 and all(_is_count(atom) and n > 0 for atom, n in form.terms):
        return size
    return Binary("max", size, whole(0))


def _is_count(atom: Expr) -> bool:
    """Whether an atom is an extent, or a rounded one."""
    match atom:
        case Binary("floordiv", inner, Const(value, "int64")) if int(value) > 0:
            form = linear(inner)
            return form.constant >= 0 and all(_is_count(a) and n > 0 for a, n in form.terms)
    return isinstance(atom, Var)


def whole_box(tensor: Tensor) -> Region:
    """All of a tensor."""
    return Region(tensor.name, tuple(Interval(whole(0), size, size) for size in tensor.shape))
