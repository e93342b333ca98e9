"""Software pipelining: what an iteration loads is loaded while earlier iterations compute.

Lam, Software Pipelining: An Effective Scheduling Technique for VLIW Machines (PLDI 1988); as double
buffering of copied tiles it is Triton's ``num_stages``.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.linear import linear
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Expr,
    For,
    LoopKind,
    Procedure,
    Stmt,
    Var,
)
from kernelwright.env.compiler.ir.queries import loads, stores, tensors_of
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.model import Instance, Position
from kernelwright.env.compiler.schedule.copies import copied, expanded, indexed, renamed
from kernelwright.env.compiler.schedule.edit import (
    constant_extent,
    find_loop,
    finish,
    no_loads,
    replace_loop,
    replace_variables,
    taken_names,
    whole_argument,
)
from kernelwright.env.compiler.schedule.facts import facts_at
from kernelwright.env.compiler.schedule.legal import keep_order, no_barrier, of_kind, part_with

OP = "software_pipeline"
MAX_STAGES = 8


def software_pipeline(procedure: Procedure, loop: str, stages: int = 2) -> Procedure:
    """Load for the iteration ``stages - 1`` ahead before an iteration computes.

    The load stage is the first statements of the body, as far as they only copy into temporaries
    that are allocated in the body; the rest is the compute stage. Temporaries of both get an axis
    of ``stages`` buffers. The first loads run before the loop, in loops with ``_head`` behind their
    names, the last iterations compute after it, with ``_tail``.

    Before::

        for k in 8:
          allocate t: float32[4]
          for a in 4:
            t[a] = x[k * 4 + a]
          S(k, t)

    After ``software_pipeline("k")``::

        allocate t: float32[2, 4]
        for a_head in 4:
          t[0, a_head] = x[a_head]
        for k in 7:
          for a in 4:
            t[(k + 1) % 2, a] = x[(k + 1) * 4 + a]
          S(k, t[k % 2])
        S(7, t[1])

    Legal if no load reads what an iteration computes that it now comes before.

    Raises:
        ScheduleError: if there is no such loop, it is not serial, it has no load stage or no other,
            its extent reads memory, the stages are not from 2 to 8, or a dependence is turned
            around; then it has the two iterations.
    """
    found = find_loop(OP, procedure, loop)
    of_kind(OP, found, LoopKind.SERIAL)
    no_barrier(OP, found)
    if whole_argument(OP, "a number of stages", stages, 2) > MAX_STAGES:
        raise ScheduleError(OP, f"expected at most {MAX_STAGES} stages, found {stages}")
    no_loads(OP, f"the extent of {loop}", found.extent)
    around, first, then = _stages(found)
    _keep_ahead(procedure, loop, len(first), stages - 1)
    both = [
        a for a in around if a.tensor.name in tensors_of(Block(first)) & tensors_of(Block(then))
    ]
    for each in both:
        first, then = (
            tuple(indexed(item, each.tensor.name, Var(_slot(loop))) for item in side)
            for side in (first, then)
        )
    own = [each for each in around if each not in both]
    taken = taken_names(procedure)
    ahead = stages - 1
    facts = facts_at(procedure, loop)
    short = replace(found, extent=facts.least(whole(ahead), found.extent))
    steady = linear(found.extent).shifted(-ahead).expression()
    last = simplify(Binary("add", Var(loop), facts.greatest(steady, whole(0))))
    shift = simplify(Binary("add", Var(loop), whole(ahead)))
    body = Block(
        (
            _at(_allocated(own, first), loop, shift, stages),
            _at(_allocated(own, then), loop, Var(loop), stages),
        )
    )
    nest: Stmt = Block(
        (
            _ending(short, _allocated(own, first), Var(loop), 0, "head", taken),
            replace(found, extent=steady, body=body),
            _ending(short, _allocated(own, then), last, stages, "tail", taken),
        )
    )
    for each in reversed(both):
        nest = Allocate(expanded(each.tensor, whole(stages)), nest)
    return finish(OP, replace_loop(procedure, loop, lambda _: nest))


def _stages(loop: For) -> tuple[list[Allocate], tuple[Stmt, ...], tuple[Stmt, ...]]:
    """The temporaries of a loop's body, its load stage and its compute stage."""
    around: list[Allocate] = []
    node = loop.body
    while isinstance(node, Allocate):
        around.append(node)
        node = node.body
    names = {each.tensor.name for each in around}
    items = node.body if isinstance(node, Block) else (node,)
    count = 0
    while count < len(items) and _copies(items[count], names):
        count += 1
    if not 0 < count < len(items):
        reason = f"expected loop {loop.var} to copy into temporaries of its own, then to compute"
        raise ScheduleError(OP, f"{reason}; found {'only copies' if count else 'no copy first'}")
    return around, items[:count], items[count:]


def _copies(node: Stmt, temporaries: set[str]) -> bool:
    """Whether a statement only fills temporaries from something else."""
    return all(store.tensor in temporaries and store.reduce is None for store in stores(node)) and (
        not any(load.tensor in temporaries for load in loads(node))
    )


def _keep_ahead(procedure: Procedure, loop: str, count: int, ahead: int) -> None:
    def moved(instance: Instance) -> Position | None:
        if loop not in instance.variables:
            return None
        place = instance.position.index(loop)
        # Behind the loop variable stand its place in the loop and the one among the statements.
        among = instance.position[place + 2]
        assert isinstance(among, int)
        computes = among >= count
        time: Expr = Var(loop) if computes else Binary("sub", Var(loop), whole(ahead))
        return (*instance.position[:place], time, int(computes), *instance.position[place + 2 :])

    reason = f"loading {ahead} of {loop} ahead turns a dependence around"
    keep_order(OP, part_with(procedure, loop), moved, reason)


def _slot(loop: str) -> str:
    """Stands for the buffer of an iteration until that is known; no name has a space."""
    return f"{loop} slot"


def _allocated(temporaries: list[Allocate], items: tuple[Stmt, ...]) -> Stmt:
    """Statements inside those of the temporaries that they use."""
    used = tensors_of(Block(items))
    body: Stmt = Block(items)
    for each in reversed(temporaries):
        if each.tensor.name in used:
            body = replace(each, body=body)
    return body


def _at(body: Stmt, loop: str, index: Expr, stages: int) -> Stmt:
    """A stage of the iteration ``index``, whose buffer is the index itself where there are no
    ``stages`` to count.
    """
    slot = simplify(Binary("mod", index, whole(stages))) if stages else index
    return replace_variables(body, {loop: index, _slot(loop): slot})


def _ending(loop: For, body: Stmt, index: Expr, stages: int, ending: str, taken: set[str]) -> Stmt:
    """What runs before the loop or after it."""
    piece = copied(replace(loop, body=_at(body, loop.var, index, stages)), ending, taken)
    assert isinstance(piece, For)
    if constant_extent(piece) == 1:
        return renamed(piece.body, {piece.var: whole(0)}, {})
    return piece
