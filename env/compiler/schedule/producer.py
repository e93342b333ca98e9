"""What computes a temporary, and who reads it: the common ground of the directives that say where a
stage is computed and stored.

A temporary is computed by the statements directly in the scope of its allocation that write it: one
nest for a pure stage, a start and an update for a reduction. Every element must be a function of
its place alone, by one loop an axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelwright.env.compiler.errors import ScheduleError, did_you_mean
from kernelwright.env.compiler.ir.accesses import accesses
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Block,
    Call,
    Expr,
    For,
    If,
    LoopKind,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    statements,
)
from kernelwright.env.compiler.ir.path import Path
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import loads_from, mentions, temporaries, writes
from kernelwright.env.compiler.ir.simplify import EMPTY, whole
from kernelwright.env.compiler.poly.sums import difference


@dataclass(frozen=True, slots=True)
class Producer:
    """The statements that compute a temporary, in order, which of their loops runs over which axis,
    how far along each axis, and the tensors that they read and do not hold themselves.
    """

    allocate: Allocate
    writers: tuple[Stmt, ...]
    axes: tuple[tuple[str, int], ...]
    extents: tuple[Expr, ...]
    inputs: frozenset[str]

    @property
    def tensor(self) -> Tensor:
        """The temporary."""
        return self.allocate.tensor


def find_temporary(op: str, procedure: Procedure, name: str) -> Allocate:
    """The allocation of a temporary.

    Raises:
        ScheduleError: if there is none of that name; it lists the temporaries and the nearest. Also
            if an instruction or a prefetch knows where its elements lie.
    """
    known = {s.tensor.name: s for s in statements(procedure.body) if isinstance(s, Allocate)}
    if name in known:
        _check_uses(op, known[name])
        return known[name]
    declared = {t.name: t.role for t in procedure.tensors}
    listed = ", ".join(known)
    if not known:
        found = f"{declared[name]} {name}" if name in declared else repr(name)
        raise ScheduleError(op, f"expected a temporary, of which there are none, found {found}")
    if name in declared:
        raise ScheduleError(
            op, f"expected one of the temporaries {listed}, found {declared[name]} {name}"
        )
    hint = did_you_mean(name, known)
    raise ScheduleError(op, f"expected one of the temporaries {listed}, found {name!r}{hint}")


def _check_uses(op: str, allocate: Allocate) -> None:
    """Refuse what knows where a temporary's elements lie in memory."""
    name = allocate.tensor.name
    for node in statements(allocate.body):
        if isinstance(node, Prefetch) and node.tensor == name:
            raise ScheduleError(op, f"{name} is prefetched: place it first")
        if isinstance(node, Call) and any(a.tensor == name for a in accesses(node)):
            raise ScheduleError(op, f"{node.instruction} works on {name}: place it first")


def scope_of(node: Stmt) -> Iterator[Stmt]:
    """The statements of a scope in order, without the blocks and allocations that hold them."""
    match node:
        case Block(items):
            for item in items:
                yield from scope_of(item)
        case Allocate(_, body):
            yield from scope_of(body)
        case _:
            yield node


def without(node: Stmt, dropped: tuple[Stmt, ...]) -> Stmt:
    """A scope without some of its statements."""
    match node:
        case Block(items):
            return Block(tuple(without(item, dropped) for item in items))
        case Allocate(tensor, body):
            return Allocate(tensor, without(body, dropped))
    return EMPTY if any(node is each for each in dropped) else node


def inputs_of(nodes: tuple[Stmt, ...]) -> frozenset[str]:
    """The tensors that statements read and do not allocate themselves."""
    read = {a.tensor for node in nodes for a in accesses(node) if not a.is_write}
    own = {tensor.name for node in nodes for tensor in temporaries(node)}
    return frozenset(read - own)


def producer_of(op: str, allocate: Allocate) -> Producer:
    """What computes a temporary.

    Raises:
        ScheduleError: if that is not one nest of plain loops for each of its statements, or its
            elements are not functions of their places.
    """
    name = allocate.tensor.name
    scope = list(scope_of(allocate.body))
    writers = tuple(s for s in scope if writes(s, name))
    if not writers:
        raise ScheduleError(op, f"expected statements that compute {name}, found none")
    last = max(place for place, s in enumerate(scope) if s in writers)
    for place, statement in enumerate(scope):
        if loads_from(statement, name) and statement in writers:
            where = "in the loops that read it" if _mixed(statement, name) else "from itself"
            raise ScheduleError(op, f"expected {name} computed before it is read, found it {where}")
        if place < last and loads_from(statement, name):
            raise ScheduleError(op, f"{name} is written again after it was read")
    axes: dict[str, int] = {}
    extents: dict[int, Expr] = {}
    for writer in writers:
        _check_writer(op, writer, allocate.tensor, axes, extents)
    sizes = tuple(extents[axis] for axis in range(len(allocate.tensor.shape)))
    inputs = inputs_of(writers) - {allocate.tensor.name}
    return Producer(allocate, writers, tuple(axes.items()), sizes, inputs)


def _mixed(statement: Stmt, name: str) -> bool:
    """Whether a statement also writes something else from the tensor."""
    others = (s for s in statements(statement) if isinstance(s, Store) and s.tensor != name)
    return any(loads_from(s, name) for s in others)


def _check_writer(
    op: str, writer: Stmt, tensor: Tensor, axes: dict[str, int], extents: dict[int, Expr]
) -> None:
    for path, store in _stores(writer, ()):
        inside = [node for node in path if isinstance(node, Allocate)]
        if store.tensor != tensor.name:
            own = next((a for a in inside if a.tensor.name == store.tensor), None)
            if own is None:
                raise ScheduleError(
                    op, f"the loops that compute {tensor.name} write {store.tensor} too"
                )
            continue
        _check_store(op, path, store, tensor.name, axes, extents)
    for path, store in _stores(writer, ()):
        held = [n for n in path if isinstance(n, Allocate) and n.tensor.name == store.tensor]
        if held:
            below = path[path.index(held[0]) :]
            crossed = [n.var for n in below if isinstance(n, For) and n.var in axes]
            if crossed:
                reason = f"loop {crossed[0]} computes {store.tensor} for its later iterations too"
                raise ScheduleError(op, reason)


def _check_store(
    op: str, path: Path, store: Store, name: str, axes: dict[str, int], extents: dict[int, Expr]
) -> None:
    for node in path:
        if isinstance(node, If):
            reason = f"{name} is computed under the guard {print_expr(node.condition)}"
            raise ScheduleError(op, f"{reason}: place it first, and split its loops then")
    around = {node.var: node for node in path if isinstance(node, For)}
    for axis, index in enumerate(store.indices):
        loop = around.get(index.name) if isinstance(index, Var) else None
        if loop is None or axes.get(loop.var, axis) != axis:
            place = f"{name}[{', '.join(map(print_expr, store.indices))}]"
            reason = f"expected one loop for axis {axis} of {name}, found {place}"
            raise ScheduleError(op, f"{reason}: place it first, and split its loops then")
        if loop.kind not in (LoopKind.SERIAL, LoopKind.PARALLEL):
            reason = f"loop {loop.var} of {name} is {loop.kind}, and its extent would change"
            raise ScheduleError(op, f"{reason}: place {name} first")
        varies = next((var for var in around if mentions(loop.extent, var)), None)
        if varies is not None:
            raise ScheduleError(op, f"the extent of loop {loop.var} of {name} depends on {varies}")
        size = extents.setdefault(axis, loop.extent)
        if difference(loop.extent, size) != whole(0):
            found = f"{print_expr(loop.extent)} and {print_expr(size)}"
            raise ScheduleError(op, f"expected one extent of {name} on axis {axis}, found {found}")
        axes[loop.var] = axis
    used = [index.name for index in store.indices if isinstance(index, Var)]
    if len(set(used)) != len(used):
        raise ScheduleError(op, f"expected a loop for each axis of {name}, found one for two")


def _stores(node: Stmt, path: Path) -> Iterator[tuple[Path, Store]]:
    """Every store with the statements around it, outermost first."""
    match node:
        case Store():
            yield path, node
        case Block(items):
            for item in items:
                yield from _stores(item, path)
        case For(_, _, body, _) | Allocate(_, body) | Call(_, body):
            yield from _stores(body, (*path, node))
        case If(_, then):
            yield from _stores(then, (*path, node))


def check_inputs(op: str, producer: Producer) -> None:
    """See that nothing in the scope of a temporary, from where it is computed on, writes what it is
    computed from: it would read other values at another time.

    Raises:
        ScheduleError: if something does.
    """
    scope = list(scope_of(producer.allocate.body))
    first = min(i for i, s in enumerate(scope) if s in producer.writers)
    name = producer.tensor.name
    for statement in scope[first:]:
        for path, store in _stores(statement, ()):
            if store.tensor in producer.inputs:
                loop = next((n.var for n in path if isinstance(n, For)), "the procedure")
                reason = f"{name} is computed from {store.tensor}, which {loop} writes later"
                raise ScheduleError(op, reason, f"{store.tensor} would be read after that")
    for statement in producer.writers:
        if any(isinstance(s, Barrier) for s in statements(statement)):
            raise ScheduleError(op, f"{name} is computed across a barrier")
