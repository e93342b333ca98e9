"""The directive pad: a temporary with room for whole blocks, so that guards can go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.accesses import accesses
from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    Expr,
    If,
    Procedure,
    Stmt,
    Tensor,
    map_statements,
    statements,
)
from kernelwright.env.compiler.ir.queries import has_loads
from kernelwright.env.compiler.ir.simplify import TRUE, simplify_procedure, whole
from kernelwright.env.compiler.poly.definedness import is_defined, undefined_read
from kernelwright.env.compiler.poly.extra import harm
from kernelwright.env.compiler.poly.model import condition_text
from kernelwright.env.compiler.poly.timed import Access, accesses_of
from kernelwright.env.compiler.schedule.access import (
    checked_axis,
    find_temporary,
    fitting_lanes,
    no_instructions,
)
from kernelwright.env.compiler.schedule.buffer import conditions_of, guarded, zero_nest
from kernelwright.env.compiler.schedule.edit import finish, taken_names, whole_argument
from kernelwright.env.compiler.schedule.ranges import linear


def pad(procedure: Procedure, tensor: str, axis: int, multiple: int) -> Procedure:
    """Round an axis of a temporary up to a multiple, and run guarded iterations that touch it
    without their guards where the padding makes that harmless (in the spirit of TVM
    ``pad_einsum``).

    Before::

        for io in 3:
          allocate t: float32[8]
          for ii in 8:
            if io * 8 + ii < 20:
              t[ii] = x_packed[io, ii] * 2
          for ij in 8:
            if io * 8 + ij < 20:
              y[io * 8 + ij] = t[ij]

    After ``pad("t", 0, 8)``::

        for io in 3:
          allocate t: float32[8]
          for ii in 8:
            t[ii] = x_packed[io, ii] * 2
          for ij in 8:
            if io * 8 + ij < 20:
              y[io * 8 + ij] = t[ij]

    A guard goes if the iterations that it kept from running touch nothing outside a tensor, read
    nothing undefined, and write only elements of temporaries that no other iteration reads; or if
    all they do is add a product of zeros (which makes a sum of -0 be 0). Where new iterations would
    read the temporary undefined it is filled with zeros first: its padding, or all of it if the
    axis was a multiple before.

    Raises:
        ScheduleError: if there is no such temporary or axis, or nothing would change; then it has
            what keeps the guards, if there are some.
    """
    op = "pad"
    found = find_temporary(op, procedure, tensor)
    no_instructions(op, procedure.body, tensor)
    number = checked_axis(op, found, axis)
    multiple = whole_argument(op, "a multiple", multiple)
    size = found.shape[number]
    wider = _rounded(size, multiple)
    new = replace(found, shape=(*found.shape[:number], wider, *found.shape[number + 1 :]))
    plain = _declared(procedure, new, ())
    filled = _declared(procedure, new, _fill(procedure, new, number, size))
    done, gone, why = _without_guards(filled, tensor)
    if not gone:
        if wider == size:
            reason = f"axis {number} of {tensor} is a multiple of {multiple}, and no guard can go"
            raise ScheduleError(op, reason, why)
        return finish(op, plain)
    # Where nothing reads the zeros they are not written.
    bare = reduce(_without, gone, plain)
    return finish(op, bare if is_defined(bare, tensor) else done)


def _rounded(size: Expr, multiple: int) -> Expr:
    if isinstance(size, Const):
        return whole(-(-int(size.value) // multiple) * multiple)
    over = linear(size).plus(Linear(multiple - 1))
    blocks = linear(Binary("floordiv", over.expression(), whole(multiple)))
    return Linear(0).plus(blocks, multiple).expression()


def _fill(procedure: Procedure, tensor: Tensor, axis: int, size: Expr) -> tuple[Stmt, ...]:
    """Zeros from ``size`` on along an axis, or everywhere if nothing lies there."""
    start = Linear(0) if tensor.shape[axis] == size else linear(size)
    lanes = None
    if tensor.scope == "register":
        # Nothing but numbers can index registers.
        lanes = fitting_lanes(procedure.body, tensor.name, tensor.shape)
        lanes = lanes if axis < len(tensor.shape) - 1 or not start.constant else 1
    return (zero_nest(tensor, axis, start, taken_names(procedure), lanes),)


def _declared(procedure: Procedure, tensor: Tensor, first: Sequence[Stmt]) -> Procedure:
    def declare(node: Stmt) -> Stmt:
        if isinstance(node, Allocate) and node.tensor.name == tensor.name:
            return Allocate(tensor, Block((*first, node.body)))
        return node

    body = map_statements(procedure.body, lambda e: e, declare)
    return simplify_procedure(replace(procedure, body=body))


def _without_guards(procedure: Procedure, tensor: str) -> tuple[Procedure, list[Expr], str | None]:
    """The procedure without the guards around a temporary's accesses that can go, those guards, and
    what keeps the others.
    """
    gone: list[Expr] = []
    kept: dict[Expr, str] = {}
    touched = accesses_of(procedure)
    while True:
        guard = next((g for g in _guards(procedure.body, tensor) if g not in kept), None)
        if guard is None:
            return procedure, gone, "; ".join(dict.fromkeys(kept.values())) or None
        after = _without(procedure, guard)
        now = accesses_of(after)
        why = _why_not(after, touched, now)
        if why is None:
            procedure, touched = after, now
            gone.append(guard)
        else:
            kept[guard] = why


def _without(procedure: Procedure, guard: Expr) -> Procedure:
    """The procedure without a guard, wherever it stands."""

    def open_up(node: Stmt) -> Stmt:
        if isinstance(node, If) and guard in conditions_of(node.condition):
            rest = [part for part in conditions_of(node.condition) if part != guard]
            return guarded(rest, node.then)
        return node

    return replace(procedure, body=map_statements(procedure.body, lambda e: e, open_up))


def _why_not(procedure: Procedure, touched: Sequence[Access], now: Sequence[Access]) -> str | None:
    """What is wrong with a procedure whose accesses had a guard more before."""
    found = harm(touched, now, procedure)
    if found is not None:
        return str(found)
    # What was read before is as defined as it was, or more.
    for was, access in zip(touched, now, strict=True):
        is_old = was.conditions == access.conditions
        if is_old or access.is_write or access.tensor.role != "temporary":
            continue
        into = None if access.store is None else access.store.tensor
        undefined = undefined_read(procedure, [access.tensor.name], into)
        if undefined is not None:
            return str(undefined)
    return None


def _guards(node: Stmt, tensor: str) -> Iterator[Expr]:
    """The parts of guards around accesses of a temporary, from the outside in."""
    for each in statements(node):
        if isinstance(each, If) and any(a.tensor == tensor for a in accesses(each.then)):
            for part in conditions_of(each.condition):
                reads = has_loads(part)
                if not reads and part != TRUE and condition_text(part) is not None:
                    yield part
