"""Partial results of a reduction, an own one for every iteration of a loop: rfactor."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.dtypes import INTEGERS, whole_range
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
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
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.path import chain_around, chain_inside, loops_around, path_to
from kernelwright.env.compiler.ir.queries import mentions, stores, tensors_by_name
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.dependence import regroups_exactly
from kernelwright.env.compiler.poly.elements import point_of, shared_loops, written
from kernelwright.env.compiler.poly.model import build_model
from kernelwright.env.compiler.schedule.access import new_tensor_name
from kernelwright.env.compiler.schedule.defaults import copied_name
from kernelwright.env.compiler.schedule.edit import (
    constant_extent,
    find_loop,
    finish,
    replace_loop,
    taken_names,
)
from kernelwright.env.compiler.schedule.fixed import fixed_numbers, replaced


@dataclass(frozen=True, slots=True)
class _Nest:
    """An update and the loops and guards around it, from its outermost reduction loop on.

    ``kept`` are the loops that a partial result has an index for: those that choose the element,
    and the factored one.
    """

    chain: tuple[Stmt, ...]
    update: Store
    kept: tuple[For, ...]
    factored: For

    @property
    def loops(self) -> tuple[For, ...]:
        return tuple(node for node in self.chain if isinstance(node, For))

    @property
    def dropped(self) -> tuple[For, ...]:
        """The loops that are summed over before the final reduction."""
        return tuple(loop for loop in self.loops if loop not in self.kept)


def rfactor(
    procedure: Procedure, loop: str, tensor: str | None = None, reassociate: bool = False
) -> Procedure:
    """Give every iteration of a reduction loop a partial result of its own, in a new temporary, and
    combine these at the end (Halide ``rfactor``: Suriana, Adams, Kamil, Parallel Associative
    Reductions in Halide, CGO 2017; TVM ``rfactor``).

    Before::

        for ko in n // 8:
          for ki in 8:
            C[i] += A[i, ko * 8 + ki]

    After ``rfactor("ki", "P", True)``; the loop carries no dependence any more, so it may be
    vectorized or parallel::

        allocate P[8]
        for ki_start in 8:
          P[ki_start] = 0
        for ko in n // 8:
          for ki in 8:
            P[ki] += A[i, ko * 8 + ki]
        for ki_final in 8:
          C[i] += P[ki_final]

    The temporary has an index for the loop, and one for every loop inside the outermost loop of
    the reduction that chooses the element. Exact for whole numbers and for min and max.
    Floating-point sums and products round differently: ``reassociate`` says that they may, if
    `reassociate` has not said so for the tensor. Its default name is the reduced tensor's with
    ``_rf`` behind.

    Raises:
        ScheduleError: if there is no such loop, it is not serial, it does not lead to one update
            alone or chooses its element, the update reads what it writes, floating-point values
            would be regrouped without leave, the temporary would have no shape known at the call,
            or an element would be combined with a partial result that nothing was combined with
            before.
    """
    if not isinstance(reassociate, bool):
        reason = f"expected reassociate to be True or False, found {reassociate!r}"
        raise ScheduleError("rfactor", reason)
    found = find_loop("rfactor", procedure, loop)
    nest = _nest(procedure, found)
    update = nest.update
    dtype = _dtype_of(procedure, update.tensor)
    assert update.reduce is not None
    if not (reassociate or update.reassociable or regroups_exactly(update.reduce, dtype)):
        reason = f"regrouping {update.reduce} on {dtype} rounds differently"
        raise ScheduleError("rfactor", f"{reason}; True as its third argument allows it")
    taken = taken_names(procedure)
    given = "" if tensor is None else tensor
    name = new_tensor_name("rfactor", procedure, given, f"{update.tensor}_rf")
    shape = tuple(_known_extent(procedure, kept) for kept in nest.kept)
    is_marked = reassociate or update.reassociable
    marked = replace(nest, update=replace(update, reassociable=is_marked))
    start, rest, final = _pieces(marked, name, dtype, taken | {name})
    partial = Tensor(name, shape, dtype)
    whole_nest = Allocate(partial, Block((start, rest, final)))
    result = replace_loop(procedure, nest.loops[0].var, lambda _: whole_nest)
    if not _same_elements(procedure, update, result, name):
        _same_inside(procedure, nest, whole_nest, name)
    return finish("rfactor", result)


def _size_or_guard(node: Stmt) -> Expr:
    assert isinstance(node, For | If)
    return node.extent if isinstance(node, For) else node.condition


def _nest(procedure: Procedure, loop: For) -> _Nest:
    if loop.kind is not LoopKind.SERIAL:
        raise ScheduleError("rfactor", f"expected a serial loop, found {loop.var} {loop.kind}")
    inside = chain_inside(loop)
    update = inside[-1]
    if not isinstance(update, Store) or update.reduce is None:
        reason = f"expected one update alone in loop {loop.var}, found other statements"
        raise ScheduleError("rfactor", reason)
    chain = (*chain_around(path_to(procedure, loop.var))[:-1], *inside[:-1])
    chooses = {
        node.var
        for node in chain
        if isinstance(node, For) and any(mentions(index, node.var) for index in update.indices)
    }
    if loop.var in chooses:
        reason = f"loop {loop.var} chooses the element of {update.tensor} and reduces nothing"
        raise ScheduleError("rfactor", reason)
    first = next(
        i for i, node in enumerate(chain) if isinstance(node, For) and node.var not in chooses
    )
    chain = chain[first:]
    loops = [node for node in chain if isinstance(node, For)]
    guards = [node.condition for node in chain if isinstance(node, If)]
    for root in (update.value, *update.indices, *guards, *(node.extent for node in loops)):
        if any(isinstance(part, Load) and part.tensor == update.tensor for part in walk(root)):
            raise ScheduleError("rfactor", f"the update of {update.tensor} reads {update.tensor}")
    kept = tuple(node for node in loops if node.var in chooses or node is loop)
    return _Nest(chain, update, kept, loop)


def _dtype_of(procedure: Procedure, name: str) -> str:
    return tensors_by_name(procedure)[name].dtype


def _known_extent(procedure: Procedure, loop: For) -> Expr:
    """The extent of a loop as that of a temporary: known where the kernel is called."""
    for node in walk(loop.extent):
        known = not isinstance(node, Load) and (
            not isinstance(node, Var) or node.name in procedure.extents
        )
        if not known:
            reason = f"the partial results have no shape: the extent of {loop.var} varies"
            raise ScheduleError("rfactor", reason)
    return simplify(loop.extent)


def _pieces(nest: _Nest, name: str, dtype: str, taken: set[str]) -> tuple[Stmt, Stmt, Stmt]:
    """The start of the partial results, their update, and the final reduction."""
    update, op = nest.update, nest.update.reduce
    assert op is not None
    places: dict[str, tuple[Expr, ...]] = {}
    renamed: dict[str, dict[str, Expr]] = {}
    for ending in ("start", "final"):
        renamed[ending] = {}
        for loop in nest.kept:
            fresh = copied_name(loop.var, ending, taken)
            renamed[ending][loop.var], taken = Var(fresh), taken | {fresh}
        places[ending] = tuple(renamed[ending].values())
    start: Stmt = Store(name, places["start"], _neutral(op, dtype))
    start = _under(start, nest.kept, renamed["start"])
    own = tuple(Var(loop.var) for loop in nest.kept)
    rest: Stmt = replace(update, tensor=name, indices=own, stream=False)
    for node in reversed(nest.chain):
        assert isinstance(node, For | If)
        inside = rest
        rest = replace(node, body=inside) if isinstance(node, For) else If(node.condition, inside)
    values = renamed["final"]
    final: Stmt = Store(
        update.tensor,
        tuple(substitute(index, values) for index in update.indices),
        Load(name, places["final"]),
        op,
        update.stream,
        update.reassociable,
    )
    for guard in reversed(_final_guards(nest)):
        final = If(substitute(guard, values), final)
    elements = tuple(loop for loop in nest.kept if loop is not nest.factored)
    return start, rest, _under(final, (*elements, nest.factored), values)


def _under(body: Stmt, loops: tuple[For, ...], names: dict[str, Expr]) -> Stmt:
    """A statement under copies of loops, the first outermost."""
    for loop in reversed(loops):
        name = names[loop.var]
        assert isinstance(name, Var)
        body = For(name.name, loop.extent, body)
    return body


def _final_guards(nest: _Nest) -> list[Expr]:
    """Where the final reduction runs: under the guards that do not ask for the dropped loops, if
    those ran at all.
    """
    dropped = {loop.var for loop in nest.dropped}
    guards: list[Expr] = [
        part
        for node in nest.chain
        if isinstance(node, If)
        for part in _conjuncts(node.condition)
        if not any(mentions(part, name) for name in dropped)
    ]
    for loop in nest.dropped:
        extent = constant_extent(loop)
        if extent is None and not any(mentions(loop.extent, name) for name in dropped):
            guards.append(Binary("lt", whole(0), loop.extent))
    return guards


def _conjuncts(condition: Expr) -> tuple[Expr, ...]:
    if isinstance(condition, Binary) and condition.op == "and":
        return (*_conjuncts(condition.left), *_conjuncts(condition.right))
    return (condition,)


def _neutral(op: str, dtype: str) -> Const:
    """What combines with every value to that value."""
    if op in ("add", "mul"):
        one = 1 if op == "mul" else 0
        return Const(one if dtype in INTEGERS else float(one), dtype)
    if dtype in INTEGERS:
        held = whole_range(dtype)
        return Const(held.stop - 1 if op == "min" else held.start, dtype)
    return Const(math.inf if op == "min" else -math.inf, dtype)


def _same_inside(procedure: Procedure, nest: _Nest, new: Stmt, partial: str) -> None:
    """See the same in one iteration of the loops around, in which what is read from memory may be
    one number.
    """
    outermost = nest.loops[0]
    outside = (each.var for each in loops_around(procedure, outermost.var))
    roots = (*nest.update.indices, *(_size_or_guard(node) for node in nest.chain))
    numbers = fixed_numbers(roots, new, procedure)
    known = (*procedure.extents, *outside, *(variable.name for variable in numbers.values()))
    before = replace(procedure, extents=known, body=replaced(outermost, numbers))
    after = replace(before, body=replaced(new, numbers))
    (update,) = stores(before.body)
    if not _same_elements(before, update, after, partial):
        what = f"around the update of {update.tensor}"
        raise ScheduleError("rfactor", f"expected affine loops, guards and indices {what}")


def _same_elements(before: Procedure, update: Store, after: Procedure, partial: str) -> bool:
    """See that the final reduction touches no element that the update did not touch; False if
    elements are not known exactly.
    """
    first, second = build_model(before), build_model(after)
    old = next(i for i in first.instances if i.store is update)
    new = next(
        i
        for i in second.instances
        if isinstance(i.store.value, Load) and i.store.value.tensor == partial
    )
    shared = shared_loops(old, new)
    here, there = written(first, old, shared), written(second, new, shared)
    if here is None or there is None:
        return False
    extra = there.subtract(here)
    if not extra.is_empty():
        place = ", ".join(map(str, point_of(extra)[len(shared) :]))
        reason = f"{update.tensor}[{place}] would be combined, and nothing was combined with it"
        raise ScheduleError("rfactor", reason)
    return True
