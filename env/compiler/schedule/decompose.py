"""Where the start of a reduction runs: decompose_reduction."""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Expr,
    For,
    If,
    Load,
    Procedure,
    Stmt,
    Store,
    Var,
    map_statements,
    statements,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.path import path_to
from kernelwright.env.compiler.ir.queries import mentions, variables_of
from kernelwright.env.compiler.ir.simplify import EMPTY, simplify_procedure
from kernelwright.env.compiler.poly.elements import (
    point_of,
    shared_loops,
    touched_before,
    touches,
    written,
)
from kernelwright.env.compiler.poly.model import Model, build_model
from kernelwright.env.compiler.schedule.defaults import copied_name
from kernelwright.env.compiler.schedule.edit import (
    find_loop,
    finish,
    replace_loop,
    taken_names,
)

_OP = "decompose_reduction"


def decompose_reduction(procedure: Procedure, tensor: str, loop: str | None = None) -> Procedure:
    """Let the start of a reduction run just before ``loop``, a loop of the nest that updates it
    (TVM ``decompose_reduction``); without a loop, before that whole nest.

    Before::

        for i_start in n:
          C[i_start] = 0
        for i in n:
          for k in m:
            C[i] += A[i, k]

    After ``decompose_reduction("C", "k")``::

        for i in n:
          C[i] = 0
          for k in m:
            C[i] += A[i, k]

    ``decompose_reduction("C", "i")`` leads back. The start gets loops of its own, named after the
    update's with ``_start`` behind, for those at and inside ``loop`` that choose the element.
    Exact: the same elements start with the same values, before all else that touches them.

    Raises:
        ScheduleError: if the tensor has not one start and, in the loop, one update; the start would
            miss elements, start others or start one twice; or something else touches an element
            before its start; with the element or the two iterations.
    """
    start = _start_of(procedure, tensor)
    bare = simplify_procedure(_without_start(procedure, tensor))
    loop = _outermost(bare, tensor) if loop is None else find_loop(_OP, bare, loop).var
    path = path_to(bare, loop)
    inner = _update_under(path[-1], tensor, loop)
    if any(isinstance(node, Allocate) and node.tensor.name == tensor for node in inner):
        raise ScheduleError(_OP, f"{tensor} lives inside loop {loop}, and would start outside")
    update = inner[-1]
    assert isinstance(update, Store)
    nest = [node for node in inner if isinstance(node, For)]
    kept = [node for node in nest if any(mentions(index, node.var) for index in update.indices)]
    dropped = {node.var for node in nest} - {node.var for node in kept}
    taken = taken_names(bare)
    names: dict[str, Expr] = {}
    for node in kept:
        if any(mentions(node.extent, name) for name in dropped):
            raise ScheduleError(_OP, f"the extent of {node.var} depends on a reduction loop")
        name = copied_name(node.var, "start", taken)
        names[node.var], taken = Var(name), taken | {name}
    place = tuple(substitute(index, names) for index in update.indices)
    body: Stmt = Store(tensor, place, _value(procedure, start, place), None, start.stream)
    for around in reversed(inner[:-1]):
        if isinstance(around, For) and around.var in names:
            variable = names[around.var]
            assert isinstance(variable, Var)
            body = For(variable.name, substitute(around.extent, names), body)
        elif isinstance(around, If) and not any(mentions(around.condition, n) for n in dropped):
            body = If(substitute(around.condition, names), body)
    result = replace_loop(bare, loop, lambda node: Block((body, node)))
    _check(procedure, result, tensor)
    return finish(_OP, result)


def _start_of(procedure: Procedure, tensor: str) -> Store:
    stores = [s for s in statements(procedure.body) if isinstance(s, Store) and s.tensor == tensor]
    starts = [s for s in stores if s.reduce is None]
    if len(starts) != 1 or len(stores) == 1:
        reason = f"expected one start and an update of {tensor}"
        found = f"{len(starts)} and {len(stores) - len(starts)}"
        raise ScheduleError(_OP, f"{reason}, found {found}")
    return starts[0]


def _is_start(node: Stmt, tensor: str) -> bool:
    return isinstance(node, Store) and node.tensor == tensor and node.reduce is None


def _without_start(procedure: Procedure, tensor: str) -> Procedure:
    body = map_statements(
        procedure.body, lambda e: e, lambda s: EMPTY if _is_start(s, tensor) else s
    )
    return replace(procedure, body=body)


def _outermost(bare: Procedure, tensor: str) -> str:
    """The outermost loop of the nest around a tensor's update."""
    update = next(s for s in statements(bare.body) if isinstance(s, Store) and s.tensor == tensor)
    nest: str | None = None
    for node in reversed(path_to(bare, update)[:-1]):
        if isinstance(node, For):
            nest = node.var
        elif not isinstance(node, If):
            break
    if nest is None:
        raise ScheduleError(_OP, f"expected a loop around the update of {tensor}, found none")
    return nest


def _update_under(node: Stmt, tensor: str, loop: str) -> tuple[Stmt, ...]:
    """What leads from a loop to the one update of a tensor in it."""
    updates = [s for s in statements(node) if isinstance(s, Store) and s.tensor == tensor]
    if len(updates) != 1:
        reason = f"expected one update of {tensor} in loop {loop}, found {len(updates)}"
        raise ScheduleError(_OP, reason)
    return path_to(node, updates[0])


def _value(procedure: Procedure, start: Store, place: tuple[Expr, ...]) -> Expr:
    """The start's value where its element is ``place``."""
    inputs = {t.name for t in procedure.tensors if t.role == "input"}
    for node in walk(start.value):
        if isinstance(node, Load) and node.tensor not in inputs:
            reason = f"the start reads {node.tensor}, which might have changed"
            raise ScheduleError(_OP, reason)
    values = {
        index.name: there
        for index, there in zip(start.indices, place, strict=True)
        if isinstance(index, Var)
    }
    used = variables_of(start.value) - set(procedure.extents)
    axes = [index.name for index in start.indices if isinstance(index, Var)]
    if any(axes.count(name) != 1 for name in used):
        raise ScheduleError(_OP, "the start depends on loops that are not its element's indices")
    return substitute(start.value, values)


def _check(before: Procedure, after: Procedure, tensor: str) -> None:
    """See that the same elements start, and before all else that touches them."""
    first, second = (_touching(procedure, tensor) for procedure in (before, after))
    begin = next(i for i in first.instances if _is_start(i.store, tensor))
    again = next(i for i in second.instances if _is_start(i.store, tensor))
    shared = shared_loops(begin, again)
    here, there = written(first, begin, shared), written(second, again, shared)
    if here is None or there is None:
        reason = f"expected affine loops and indices around the start of {tensor}"
        raise ScheduleError(_OP, reason)
    for missing, what in (
        (here.subtract(there), "would no longer be started"),
        (there.subtract(here), "would be started, and was not"),
    ):
        if not missing.is_empty():
            place = ", ".join(map(str, point_of(missing)[len(shared) :]))
            raise ScheduleError(_OP, f"{tensor}[{place}] {what}")
    for model, instance, word in ((first, begin, "is"), (second, again, "would be")):
        conflict = touched_before(model, instance, shared)
        if conflict is not None:
            reason = f"an element of {tensor} {word} touched before its start"
            raise ScheduleError(_OP, reason, str(conflict))


def _touching(procedure: Procedure, tensor: str) -> Model:
    """The model of what touches a tensor; nothing else matters here."""
    model = build_model(procedure)
    return Model(tuple(i for i in model.instances if touches(i, tensor)), model.extents)
