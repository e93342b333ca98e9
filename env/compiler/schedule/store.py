"""Directives that say where a temporary lives while it is computed further in: store_root and
store_at, with the sliding window that this makes possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Expr,
    For,
    If,
    LoopKind,
    Procedure,
    Stmt,
    Tensor,
    Var,
    map_statements,
    statements,
)
from kernelwright.env.compiler.ir.path import Path, conditions_in, loops_in, path_to
from kernelwright.env.compiler.ir.queries import tensors_by_name, variables_of, writes
from kernelwright.env.compiler.ir.simplify import TRUE, simplify, whole
from kernelwright.env.compiler.poly.context import Context, context_of
from kernelwright.env.compiler.poly.liveness import undefined_read
from kernelwright.env.compiler.poly.region import Interval, holds_first, interval_of
from kernelwright.env.compiler.poly.sums import (
    difference,
    linear,
    replaced,
    total,
)
from kernelwright.env.compiler.schedule.defaults import spare_first
from kernelwright.env.compiler.schedule.edit import find_loop, finish, taken_names
from kernelwright.env.compiler.schedule.narrow import (
    Span,
    moved_loads,
    narrowed,
    replaced_statement,
    with_replaced,
)
from kernelwright.env.compiler.schedule.producer import (
    Producer,
    find_temporary,
    producer_of,
    without,
)
from kernelwright.env.compiler.schedule.window import check_single_valued, offsets_of


def store_root(procedure: Procedure, tensor: str) -> Procedure:
    """Keep a temporary for the whole procedure while it is computed inside loops (Halide
    ``store_root``). The loops around it run in order, and each iteration works out only what no
    earlier one has; what the first needs beyond that comes in front, so none has a guard for it.

    Before::

        for i in n:
          allocate a[3]
          for k in 3:
            a[k] = f(i + k)
          b[i] = a[0] + a[1] + a[2]

    After ``store_root("a")``: the window slides, and each place is computed once::

        allocate a[n + 2]
        for k in 2:
          a[k] = f(k)
        for i in n:
          a[i + 2] = f(i + 2)
          b[i] = a[i] + a[i + 1] + a[i + 2]

    Raises:
        ScheduleError: if there is no such temporary, or the window does not slide.
    """
    return _store("store_root", procedure, tensor, None)


def store_at(procedure: Procedure, tensor: str, loop: str) -> Procedure:
    """Store a temporary for one iteration of a loop outside the one that computes it (Halide
    ``store_at``). What earlier iterations of the loops between store is then not computed again (a
    sliding window): what the first of them needs beyond that is computed in front.

    Before::

        for io in n // 8:
          for ii in 8:
            allocate a[3]
            for k in 3:
              a[k] = f(io * 8 + ii + k)
            b[io * 8 + ii] = a[0] + a[1] + a[2]

    After ``store_at("a", "io")``::

        for io in n // 8:
          allocate a[10]
          for k_first in 2:
            a[k_first] = f(io * 8 + k_first)
          for ii in 8:
            a[ii + 2] = f(io * 8 + ii + 2)
            b[io * 8 + ii] = a[ii] + a[ii + 1] + a[ii + 2]

    `fold_storage` then keeps only the places in use. Of a chain of stages, store the first first.

    Legal if the loops between run in order, the window moves along one axis by the same expression
    in all that the temporary comes from, and every read finds its element in the store.

    Raises:
        ScheduleError: if there is no such temporary or loop, or one of these does not hold.
    """
    find_loop("store_at", procedure, loop)
    return _store("store_at", procedure, tensor, loop)


@dataclass(frozen=True, slots=True)
class _Site:
    """A temporary where it is stored and computed now, and the loops that its storage leaves."""

    op: str
    producer: Producer
    between: tuple[For, ...]
    path: Path
    around: Context

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(loop.var for loop in self.between)


def _store(op: str, procedure: Procedure, tensor: str, loop: str | None) -> Procedure:
    site = _site(op, procedure, tensor, loop)
    offsets = offsets_of(op, site.producer, site.variables)
    sliding = [axis for axis, offset in offsets.items() if linear(offset).terms]
    if len(sliding) > 1:
        axes = " and ".join(map(str, sliding))
        raise ScheduleError(op, f"the window of {tensor} moves along the axes {axes}, not one")
    boxes = {axis: _box(site, axis, offset) for axis, offset in offsets.items()}
    first, steady = _parts(procedure, site, offsets, sliding, boxes)
    shape = tuple(boxes[axis].most for axis in sorted(boxes))
    stored = replace(site.producer.tensor, shape=shape)
    inside = _rebuilt(site, steady, offsets, boxes)
    new = replaced_statement(procedure, site.between[0], Allocate(stored, Block((first, inside))))
    for each in (stored, *_written_inputs(procedure, site)):
        missing = undefined_read(new, each)
        if missing is not None:
            reason = f"the window of {tensor} does not hold what is read of {each.name}"
            raise ScheduleError(op, reason, missing)
    return finish(op, new)


def _site(op: str, procedure: Procedure, tensor: str, loop: str | None) -> _Site:
    allocate = find_temporary(op, procedure, tensor)
    path = path_to(procedure.body, allocate)
    around = [node for node in path if isinstance(node, For)]
    where = "outside all loops"
    if loop is not None:
        names = [node.var for node in around]
        where = f"at loop {loop}"
        if loop not in names:
            found = f"inside {names[-1]}" if names else "outside all loops"
            reason = f"expected {tensor} computed inside loop {loop}, found it {found}"
            raise ScheduleError(op, f"{reason}: compute_at comes first")
        target = around[names.index(loop)]
        path = path[path.index(target) + 1 :]
        around = around[names.index(loop) + 1 :]
    if not around:
        raise ScheduleError(op, f"{tensor} is stored {where} already")
    producer = producer_of(op, allocate)
    for node in around:
        if node.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
            reason = f"loop {node.var} is {node.kind}, so no iteration of it comes after another"
            example = f"{tensor}: iteration ({node.var}=1) may run before ({node.var}=0)"
            raise ScheduleError(op, reason, example)
    deeper = path[path.index(around[0]) : -1]
    inside = {s.tensor.name for s in deeper if isinstance(s, Allocate)}
    lost = sorted(producer.inputs & inside)
    if lost:
        reason = f"{tensor} is computed from {lost[0]}, which lives further in"
        raise ScheduleError(op, f"{reason}: store {lost[0]} first")
    site = _Site(op, producer, tuple(around), path, context_of(procedure, loop))
    for each in _written_inputs(procedure, site):
        check_single_valued(op, procedure, each.name, site.between[0])
    return site


def _box(site: _Site, axis: int, offset: Expr) -> Interval:
    """The places along an axis that the whole temporary has now."""
    loops, conditions = loops_in(site.path), conditions_in(site.path)
    var, extent = _axis_loop(site.producer, axis), site.producer.extents[axis]
    index = total(Var(var), offset)
    found = interval_of(index, (*loops, For(var, extent, Block(()))), conditions, site.around)
    if found is None:
        name = site.producer.tensor.name
        raise ScheduleError(site.op, f"the places of {name} on axis {axis} have no affine bounds")
    return found


def _axis_loop(producer: Producer, axis: int) -> str:
    """A loop over an axis; all of them have one extent."""
    return next(name for name, place in producer.axes if place == axis)


def _parts(
    procedure: Procedure,
    site: _Site,
    offsets: dict[int, Expr],
    sliding: list[int],
    boxes: dict[int, Interval],
) -> tuple[Stmt, Stmt]:
    """What is computed in front of the loops, and what in each iteration."""
    producer, zero = site.producer, whole(0)
    start: dict[str, Expr] = dict.fromkeys(site.variables, zero)
    spans = {
        axis: Span(zero, producer.extents[axis], difference(offset, boxes[axis].low))
        for axis, offset in offsets.items()
    }
    fixed = all(not variables_of(span.extent) & site.variables for span in spans.values())
    if not sliding:
        # Every iteration computes the same.
        if not fixed:
            return Block(()), Block(narrowed(producer, spans))
        return _first(procedure, site, spans, start), Block(())
    (axis,) = sliding
    last = site.between[-1].var
    back = {last: Binary("sub", Var(last), whole(1))}
    offset, extent = offsets[axis], spans[axis].extent
    # Up to here the iteration before has computed.
    done = total(replaced(offset, back), replaced(extent, back))
    skipped = difference(done, offset)
    count = difference(extent, skipped)
    known = linear(count)
    if not known.terms and known.constant <= 0:
        reason = f"the window of {producer.tensor.name} does not move on along axis {axis}"
        raise ScheduleError(site.op, f"{reason} with loop {last}")
    least, most = _range(site, skipped)
    if most is not None and most <= 0:
        # No iteration needs what another has computed.
        return Block(()), Block(narrowed(producer, spans))
    if least is None or least < 0:
        # Where the window jumps ahead, the places that it leaves out stay so.
        skipped = Binary("max", zero, skipped)
        count = difference(extent, skipped)
    ahead, whole_extent = replaced(skipped, start), replaced(extent, start)
    beyond = linear(difference(ahead, whole_extent))
    if beyond.terms or beyond.constant > 0:
        ahead = Binary("min", whole_extent, ahead)
    before = {**spans, axis: Span(zero, ahead, replaced(spans[axis].place, start))}
    later = {**spans, axis: Span(skipped, count, total(spans[axis].place, skipped))}
    return _first(procedure, site, before, start), Block(_unit_free(narrowed(producer, later)))


def _range(site: _Site, value: Expr) -> tuple[int | None, int | None]:
    """The least and the greatest value in all iterations of the loops between, where they are known
    numbers.
    """
    loops, conditions = loops_in(site.path), conditions_in(site.path)
    found = interval_of(value, loops, conditions, site.around)
    if found is None:
        return None, None
    low, high = linear(found.low), linear(total(found.low, found.extent))
    return (
        None if low.terms else low.constant,
        None if high.terms else high.constant - 1,
    )


def _first(
    procedure: Procedure, site: _Site, spans: dict[int, Span], start: dict[str, Expr]
) -> Stmt:
    """What is computed in front of the loops: the first iteration's part, under its guards."""
    taken = taken_names(procedure)
    renamed: dict[str, Expr] = {}
    at_start = {
        axis: Span(replaced(s.low, start), replaced(s.extent, start), replaced(s.place, start))
        for axis, s in spans.items()
    }
    parts = _unit_free(narrowed(site.producer, at_start))
    body: Stmt = Block(tuple(_with_values(part, start) for part in parts))
    for loop in (s for s in statements(body) if isinstance(s, For)):
        name = spare_first(loop.var, taken)
        taken.add(name)
        renamed[loop.var] = Var(name)
    for local in (s for s in statements(body) if isinstance(s, Allocate)):
        raise ScheduleError(
            site.op, f"{site.producer.tensor.name} has {local.tensor.name} inside: store that first"
        )
    body = _renamed(_with_values(body, renamed), renamed)
    loops, conditions = loops_in(site.path), conditions_in(site.path)
    condition = holds_first(loops, conditions, site.around)
    if condition is None:
        raise ScheduleError(site.op, "whether there is a first iteration is not affine")
    return body if condition == TRUE else If(condition, body)


def _with_values(node: Stmt, values: dict[str, Expr]) -> Stmt:
    return map_statements(node, lambda e: replaced(e, values))


def _renamed(node: Stmt, names: dict[str, Expr]) -> Stmt:
    def rename(s: Stmt) -> Stmt:
        if isinstance(s, For) and s.var in names:
            new = names[s.var]
            assert isinstance(new, Var)
            return replace(s, var=new.name)
        return s

    return map_statements(node, lambda e: e, rename)


def _unit_free(nodes: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements without loops of one iteration."""

    def unroll(node: Stmt) -> Stmt:
        if (
            isinstance(node, For)
            and node.kind is LoopKind.SERIAL
            and simplify(node.extent) == whole(1)
        ):
            return _with_values(node.body, {node.var: whole(0)})
        return node

    return tuple(map_statements(node, lambda e: e, unroll) for node in nodes)


def _rebuilt(
    site: _Site, steady: Stmt, offsets: dict[int, Expr], boxes: dict[int, Interval]
) -> Stmt:
    """The loops between, with what they compute and read of the new storage."""
    producer = site.producer
    moves = {axis: difference(offset, boxes[axis].low) for axis, offset in offsets.items()}
    rest = without(producer.allocate.body, producer.writers)
    rest = moved_loads(rest, producer.tensor.name, moves)
    return with_replaced(site.between[0], producer.allocate, Block((steady, rest)))


def _written_inputs(procedure: Procedure, site: _Site) -> list[Tensor]:
    """What the temporary is computed from and the loops between write."""
    return [
        tensor
        for name, tensor in tensors_by_name(procedure).items()
        if name in site.producer.inputs and writes(site.between[0], name)
    ]
