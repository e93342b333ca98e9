"""reverse_compute_at: a consumer computed in a loop of its producer."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.accesses import Access, accesses, reads
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Expr,
    For,
    If,
    Procedure,
    Stmt,
)
from kernelwright.env.compiler.ir.path import path_to
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import tensors_by_name, writes
from kernelwright.env.compiler.ir.simplify import TRUE, whole
from kernelwright.env.compiler.poly.context import context_of
from kernelwright.env.compiler.poly.liveness import late_write
from kernelwright.env.compiler.poly.model import affine_text, condition_text, isl_name
from kernelwright.env.compiler.poly.region import Region, box_of
from kernelwright.env.compiler.poly.sample import coordinates
from kernelwright.env.compiler.poly.sums import difference
from kernelwright.env.compiler.schedule.edit import find_loop, finish
from kernelwright.env.compiler.schedule.narrow import Span, narrowed, with_replaced
from kernelwright.env.compiler.schedule.place import check_lanes
from kernelwright.env.compiler.schedule.producer import (
    Producer,
    find_temporary,
    inputs_of,
    producer_of,
    scope_of,
    without,
)

_OP = "reverse_compute_at"


def reverse_compute_at(procedure: Procedure, tensor: str, loop: str) -> Procedure:
    """Compute a stage in a loop of a stage that it reads, at the end of each iteration what that
    iteration completes (TVM ``reverse_compute_at``; an epilogue).

    Before::

        for io in n // 8:
          for ii in 8:
            a[io * 8 + ii] = f(io * 8 + ii)
        for j in n:
          b[j] = g(a[j])

    After ``reverse_compute_at("b", "io")``::

        for io in n // 8:
          for ii in 8:
            a[io * 8 + ii] = f(io * 8 + ii)
          for j in 8:
            b[io * 8 + j] = g(a[io * 8 + j])

    An element is computed in the iteration that writes the last of what it reads: of the last block
    of a sum, or of the row that a stencil waits for. The loops of the stage keep their names, and
    its memory stays where it was.

    Legal if the stage is a function of its places that stands after the loop, each iteration
    completes a box of it, all of it is completed by some iteration, and nothing in between touches
    it or writes what it reads.

    Raises:
        ScheduleError: if there is no such tensor or loop, or one of these does not hold.
    """
    target = find_loop(_OP, procedure, loop)
    producer = _consumer(procedure, tensor)
    check_lanes(_OP, procedure, target)
    for size, extent in zip(producer.tensor.shape, producer.extents, strict=True):
        if difference(size, extent) != whole(0):
            found = f"{print_expr(extent)} of {print_expr(size)} places"
            raise ScheduleError(_OP, f"expected all of {tensor} computed, found {found}")
    scope = list(scope_of(producer.allocate.body))
    nest = next((s for s in scope if path_to(s, target)), None)
    first = min(i for i, s in enumerate(scope) if s in producer.writers)
    if nest is None or scope.index(nest) > first or nest in producer.writers:
        reason = f"expected a loop of a nest before that of {tensor}, found {loop}"
        raise ScheduleError(_OP, reason)
    after = [s for s in scope[scope.index(nest) :] if s not in producer.writers]
    inputs = _check_between(producer, nest, after)
    box = _completed(procedure, producer, nest, target, inputs)
    spans = {k: Span(axis.low, axis.extent, axis.low) for k, axis in enumerate(box.axes)}
    moved: Stmt = Block(narrowed(producer, spans))
    if box.condition != TRUE:
        moved = If(box.condition, moved)
    new_nest = with_replaced(nest, target, replace(target, body=Block((target.body, moved))))
    body = without(producer.allocate.body, producer.writers)
    body = with_replaced(body, nest, new_nest)
    new = replace(procedure, body=with_replaced(procedure.body, producer.allocate.body, body))
    for name in inputs:
        late = late_write(new, tensors_by_name(new)[name], tensor)
        if late is not None:
            reason = f"{name} is not complete at the end of an iteration of {loop}"
            raise ScheduleError(_OP, reason, late)
    return finish(_OP, new)


def _consumer(procedure: Procedure, tensor: str) -> Producer:
    """What computes a temporary or an output."""
    known = tensors_by_name(procedure)
    if tensor not in known or known[tensor].role == "input":
        computed = ", ".join(name for name, t in known.items() if t.role != "input")
        raise ScheduleError(_OP, f"expected one of the tensors {computed}, found {tensor!r}")
    if known[tensor].role == "output":
        return producer_of(_OP, Allocate(known[tensor], procedure.body))
    return producer_of(_OP, find_temporary(_OP, procedure, tensor))


def _check_between(producer: Producer, nest: Stmt, after: list[Stmt]) -> list[str]:
    """The inputs that the nest writes, if nothing from the nest on is in the way."""
    name = producer.tensor.name
    inputs = inputs_of(producer.writers)
    written = sorted(each for each in inputs - {name} if writes(nest, each))
    if not written:
        raise ScheduleError(_OP, f"{name} reads nothing that the nest of the loop writes")
    if reads(nest, name) or writes(nest, name):
        raise ScheduleError(_OP, f"the nest of the loop touches {name} itself")
    for statement in after:
        later = sorted(each for each in inputs - {name} if writes(statement, each))
        if later and statement is not nest:
            raise ScheduleError(_OP, f"{later[0]}, which {name} reads, is written in between")
    return written


def _completed(
    procedure: Procedure, producer: Producer, nest: Stmt, target: For, inputs: list[str]
) -> Region:
    """What of a stage is complete at the end of an iteration, and was not before."""
    around = context_of(procedure, target.var)
    inside = [node.var for node in path_to(nest, target) if isinstance(node, For)]
    outside = tuple(loop for loop in around.loops if loop.var not in inside)
    fixed = (*around.extents, *(loop.var for loop in outside))
    shape = list(producer.tensor.shape)
    places = isl.Set(f"{_parameters(fixed)}{{ D[{_axes(shape)}] : {_within(shape)} }}")
    if places.is_empty():
        raise ScheduleError(_OP, f"{producer.tensor.name} has no places")
    completing = isl.Map.empty(
        isl.Map(f"{_parameters(fixed)}{{ D[{_axes(shape)}] -> I[{_names(inside)}] }}").get_space()
    )
    for name in inputs:
        written = [a for a in accesses(nest) if a.tensor == name and a.is_write]
        for write in written:
            if target.var not in [loop.var for loop in write.loops]:
                continue
            for writer in producer.writers:
                for read in accesses(writer):
                    if read.tensor == name and not read.is_write:
                        pair = _meeting(fixed, outside, inside, write, (writer, read), producer)
                        completing = completing.union(pair)
    last = completing.intersect_domain(places).lexmax()
    missing = places.subtract(last.domain())
    if not missing.is_empty():
        values = list(coordinates(missing.sample_point()))
        reason = f"no iteration of {target.var} completes all of {producer.tensor.name}"
        raise ScheduleError(_OP, reason, f"{producer.tensor.name}{values} reads nothing of it")
    found = last.reverse()
    n_fixed = found.dim(isl.dim_type.param)
    found = found.move_dims(isl.dim_type.param, n_fixed, isl.dim_type.in_, 0, len(inside))
    for k, name in enumerate(inside):
        found = found.set_dim_name(isl.dim_type.param, n_fixed + k, isl_name(name))
    values_set = found.range().reset_tuple_id()
    box, exact = box_of(producer.tensor.name, values_set, around)
    if not exact:
        reason = f"an iteration of {target.var} completes no box of {producer.tensor.name}"
        raise ScheduleError(_OP, reason, f"the least box around it is {box}")
    return box


def _parameters(names: tuple[str, ...]) -> str:
    return f"[{', '.join(map(isl_name, names))}] -> "


def _names(names: list[str]) -> str:
    return ", ".join(map(isl_name, names))


def _axes(shape: list[Expr]) -> str:
    return ", ".join(f"d{k}" for k in range(len(shape)))


def _within(shape: list[Expr]) -> str:
    texts = [f"0 <= d{k} < {affine_text(size)}" for k, size in enumerate(shape)]
    return " and ".join(texts) or "true"


def _meeting(
    fixed: tuple[str, ...],
    outside: tuple[For, ...],
    inside: list[str],
    write: Access,
    reader: tuple[Stmt, Access],
    producer: Producer,
) -> isl.Map:
    """Places of the stage to the iterations that write what they read by one access."""
    _, read = reader
    axes = dict(producer.axes)
    loops = (*outside, *write.loops, *read.loops)
    texts = []
    for loop in loops:
        size = affine_text(loop.extent)
        texts += [f"0 <= {isl_name(loop.var)}", None if size is None else ""]
        if size is not None:
            texts[-1] = f"{isl_name(loop.var)} < {size}"
    texts += [condition_text(c) for c in (*write.conditions, *read.conditions)]
    for left, right in zip(write.indices, read.indices, strict=True):
        a, b = affine_text(left), affine_text(right)
        texts.append(None if a is None or b is None else f"{a} = {b}")
    if any(text is None for text in texts):
        raise ScheduleError(_OP, f"what is written and read of {read.tensor} is not affine")
    own = {axes[loop.var]: loop.var for loop in read.loops if loop.var in axes}
    texts += [f"d{axis} = {isl_name(var)}" for axis, var in own.items()]
    hidden = [loop.var for loop in (*write.loops, *read.loops) if loop.var not in inside]
    bound = " and ".join(str(text) for text in texts)
    if hidden:
        bound = f"exists {_names(hidden)}: {bound}"
    rank = len(producer.tensor.shape)
    source = ", ".join(f"d{k}" for k in range(rank))
    return isl.Map(f"{_parameters(fixed)}{{ D[{source}] -> I[{_names(inside)}] : {bound} }}")
