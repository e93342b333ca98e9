"""Directives that say where a producer is computed: compute_root, compute_inline, compute_at
(Ragan-Kelley et al., PLDI 2013, section 3; the names are Halide's, and TVM's for the last two).
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.accesses import accesses
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Call,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    Var,
    map_expression,
    map_statements,
    walk,
)
from kernelwright.env.compiler.ir.path import path_to
from kernelwright.env.compiler.ir.queries import loads_from
from kernelwright.env.compiler.ir.simplify import TRUE, whole
from kernelwright.env.compiler.poly.context import context_of
from kernelwright.env.compiler.poly.region import Region, region_of
from kernelwright.env.compiler.poly.sums import Replacing, difference
from kernelwright.env.compiler.schedule.edit import find_loop, finish
from kernelwright.env.compiler.schedule.narrow import (
    Span,
    moved_loads,
    narrowed,
    replaced_statement,
)
from kernelwright.env.compiler.schedule.producer import (
    Producer,
    check_inputs,
    find_temporary,
    producer_of,
    scope_of,
    without,
)

MAX_INLINED = 1 << 17


def compute_root(procedure: Procedure, tensor: str) -> Procedure:
    """Have a temporary whole, before the loops that read it (Halide ``compute_root``). This is how
    every stage starts, so the directive says that it is meant to stay so.

    Before::

        allocate a[n]
        for i in n:
          a[i] = f(i)
        for j in n:
          b[j] = a[j]

    After ``compute_root("a")`` it is the same.

    Legal where the temporary is computed outside all loops; where an earlier directive has placed
    it inside one, only leaving that one away brings it back.

    Raises:
        ScheduleError: if there is no such temporary, or it is computed inside a loop.
    """
    allocate = find_temporary("compute_root", procedure, tensor)
    producer_of("compute_root", allocate)
    loop = _innermost(path_to(procedure.body, allocate))
    if loop is not None:
        reason = f"{tensor} is computed for one iteration of {loop.var}: leave out what placed it"
        raise ScheduleError("compute_root", reason)
    return procedure


def _innermost(path: tuple[Stmt, ...]) -> For | None:
    return next((node for node in reversed(path) if isinstance(node, For)), None)


def compute_inline(procedure: Procedure, tensor: str) -> Procedure:
    """Put the operations for an element of a temporary where it is read, and keep none (Halide and
    TVM ``compute_inline``). What is read several times is worked out several times, by the same
    operations.

    Before::

        allocate a[n + 1]
        for i in n + 1:
          a[i] = f(i)
        for j in n:
          b[j] = a[j] + a[j + 1]

    After ``compute_inline("a")``::

        for j in n:
          b[j] = f(j) + f(j + 1)

    Legal for a pure stage: one value for each place, no reduction, from inputs that nothing writes
    in between.

    Raises:
        ScheduleError: if there is no such temporary, it is a reduction or no pure function of its
            place, or what it reads is written in between.
    """
    allocate = find_temporary("compute_inline", procedure, tensor)
    producer = producer_of("compute_inline", allocate)
    check_inputs("compute_inline", producer)
    store = _only_store(producer)
    places = [index.name for index in store.indices if isinstance(index, Var)]
    size = sum(1 for _ in walk(store.value))
    put = Replacing()

    def expand(node: Expr) -> Expr:
        if isinstance(node, Load) and node.tensor == tensor:
            return put.replaced(store.value, dict(zip(places, node.indices, strict=True)))
        return node

    body = without(allocate.body, producer.writers)
    count = size * sum(1 for a in accesses(body) if a.tensor == tensor)
    if count > MAX_INLINED:
        reason = f"expected at most {MAX_INLINED} operations inlined, found {count}"
        raise ScheduleError("compute_inline", reason)
    inlined = map_statements(body, lambda e: map_expression(e, expand))
    return finish("compute_inline", replaced_statement(procedure, allocate, inlined))


def _only_store(producer: Producer) -> Store:
    name, op = producer.tensor.name, "compute_inline"
    if len(producer.writers) > 1:
        reason = f"{name} is a reduction or has updates, {len(producer.writers)} nests in all"
        raise ScheduleError(op, f"{reason}: only a pure stage can be computed where it is read")
    node, axes = producer.writers[0], dict(producer.axes)
    while isinstance(node, For) and node.var in axes:
        node = node.body
    if not isinstance(node, Store):
        found = f"loop {node.var}" if isinstance(node, For) else "other statements"
        raise ScheduleError(op, f"expected one value for each place of {name}, found {found}")
    if node.reduce is not None:
        raise ScheduleError(op, f"{name} is a reduction: it has no one value to write where it is")
    return node


def compute_at(procedure: Procedure, tensor: str, loop: str) -> Procedure:
    """Compute in every iteration of a loop what that iteration reads of a temporary, and no more
    (Halide and TVM ``compute_at``). What several iterations read, each has to compute.

    Before::

        allocate a[n + 2]
        for i in n + 2:
          a[i] = f(i)
        for jo in n // 8:
          for ji in 8:
            b[jo * 8 + ji] = a[jo * 8 + ji] + a[jo * 8 + ji + 2]

    After ``compute_at("a", "jo")``::

        for jo in n // 8:
          allocate a[10]
          for i in 10:
            a[i] = f(jo * 8 + i)
          for ji in 8:
            b[jo * 8 + ji] = a[ji] + a[ji + 2]

    The loops that compute it keep their names, order and threads, and compute the least box around
    what is read; its memory is the largest such box. A reduction moves with its start and its
    update. Loops that were cut or vectorized before are refused: compute_at first, schedule then.

    Legal if all that reads it is inside the loop, to compute an element takes its place alone, and
    nothing writes in between what they compute it from.

    Raises:
        ScheduleError: if there is no such temporary or loop, or one of these does not hold.
    """
    op = "compute_at"
    allocate = find_temporary(op, procedure, tensor)
    target = find_loop(op, procedure, loop)
    producer = producer_of(op, allocate)
    check_inputs(op, producer)
    _check_readers(op, producer, target)
    check_lanes(op, procedure, target)
    around = context_of(procedure, loop)
    guards, body = [], target.body
    while isinstance(body, If) and not loads_from(replace(body, then=Block(())), tensor):
        guards.append(body.condition)
        body = body.then
    around = replace(around, conditions=(*around.conditions, *guards))
    # Of what is not affine, no more than is computed now.
    computed = replace(allocate.tensor, shape=producer.extents)
    box = region_of(body, computed, around, writes=False)
    if box is None:
        raise ScheduleError(op, f"loop {loop} does not read {tensor}")
    inside = placed(producer, box, body)
    for guard in reversed(guards):
        inside = If(guard, inside)
    rest = without(allocate.body, producer.writers)
    rest = _with_loop(rest, loop, replace(target, body=inside))
    return finish(op, replaced_statement(procedure, allocate, rest))


def _with_loop(node: Stmt, loop: str, new: For) -> Stmt:
    return map_statements(
        node, lambda e: e, lambda s: new if isinstance(s, For) and s.var == loop else s
    )


def placed(producer: Producer, box: Region, body: Stmt) -> Stmt:
    """A statement with what it reads of a temporary allocated and computed in front of it."""
    tensor = producer.tensor
    zero = whole(0)
    spans = {k: Span(axis.low, axis.extent, zero) for k, axis in enumerate(box.axes)}
    computed: Stmt = Block(narrowed(producer, spans))
    if box.condition != TRUE:
        computed = If(box.condition, computed)
    offsets = {axis: difference(zero, span.low) for axis, span in spans.items()}
    shape = tuple(
        axis.most if axis.reason is None else size
        for axis, size in zip(box.axes, tensor.shape, strict=True)
    )
    local = replace(tensor, shape=shape)
    return Allocate(local, Block((computed, moved_loads(body, tensor.name, offsets))))


def _check_readers(op: str, producer: Producer, target: For) -> None:
    name = producer.tensor.name
    for statement in scope_of(producer.allocate.body):
        path = path_to(statement, target)
        if statement in producer.writers:
            if path:
                raise ScheduleError(op, f"loop {target.var} is one of those that compute {name}")
        elif not path:
            if loads_from(statement, name):
                raise _read_outside(op, name, statement, target)
        elif loads_from(_with_loop(statement, target.var, replace(target, body=Block(()))), name):
            raise _read_outside(op, name, statement, target)
    if not path_to(producer.allocate.body, target):
        found = f"{name} lives inside another loop or beside {target.var}"
        raise ScheduleError(op, f"expected a loop in the scope of {name}, found that {found}")


def _read_outside(op: str, name: str, statement: Stmt, target: For) -> ScheduleError:
    outside = _with_loop(statement, target.var, replace(target, body=Block(())))
    access = next(a for a in accesses(outside) if a.tensor == name and not a.is_write)
    place = ", ".join(loop.var for loop in access.loops) or "no loop"
    reason = f"{name} is read outside loop {target.var} too, under {place}"
    return ScheduleError(op, reason, f"what {place} reads would not have been computed")


def check_lanes(op: str, procedure: Procedure, target: For) -> None:
    """Refuse to compute a stage in each lane of a vectorized loop, or in what an instruction does.

    Raises:
        ScheduleError: if a loop or one around it is vectorized or part of an instruction.
    """
    for node in path_to(procedure.body, target):
        if isinstance(node, For) and node.kind is LoopKind.VECTORIZED:
            reason = f"loop {node.var} is vectorized: its lanes cannot each hold a temporary"
            raise ScheduleError(op, reason)
        if isinstance(node, Call):
            raise ScheduleError(op, f"loop {target.var} is part of {node.instruction}")
