"""Stages and functions to LoopIR: every one computed whole, before those that read it, one nest
after the other.

A reduction becomes two nests, its start and its update, the reduced axes innermost; every update of
a function is a nest of its own. Loops are named after the axes, with the stage's name in front
where a name is taken, and ``_start`` behind for a reduction's first nest, ``_1``, ``_2``, … for
updates. Stages that are no outputs become temporaries; an array begins at the first element that is
needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Expr,
    Load,
    Procedure,
    Stmt,
    Store,
    Tensor,
    map_expression,
    map_statements,
)
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.poly.demand import Box
from kernelwright.env.compiler.poly.limits import LOCK
from kernelwright.env.compiler.tensor.index import moved, tidy
from kernelwright.env.compiler.tensor.order import Output
from kernelwright.env.compiler.tensor.plan import Realised, make_plan
from kernelwright.env.compiler.tensor.stage import Stage

_Lows = Mapping[str, tuple[Expr, ...]]


def lower(name: str, outputs: Sequence[Output]) -> Procedure:
    """The procedure that computes ``outputs``, stages and functions on regions; its inputs are
    those that they read, in the order in which they are first read.

    Raises:
        TensorError: if a stage reads what it did not list, two tensors have one name, a tensor is
            read outside its bounds, or a region has none.
    """
    # Beside other threads: what isl counts for them must not end this.
    with LOCK:
        plan = make_plan(name, outputs)
    results = {id(o if isinstance(o, Stage) else o.func): None for o in outputs}
    lows = {each.tensor.name: each.box.low for each in (*plan.inputs, *plan.stages)}
    nests = [_stored(nest, lows) for stage in plan.stages for nest in stage.nests]
    body: Stmt = nests[0] if len(nests) == 1 else Block(tuple(nests))
    for stage in reversed(plan.stages):
        if id(stage.tensor) not in results:
            body = Allocate(_array(stage, "temporary"), body)
    arguments = [_array(each, "input") for each in plan.inputs]
    by_id = {id(stage.tensor): stage for stage in plan.stages}
    arguments += [_array(by_id[key], "output") for key in results]
    return verify(Procedure(name, plan.extents, tuple(arguments), body))


def regions(outputs: Sequence[Output]) -> dict[str, Box]:
    """The region of every tensor of a pipeline by name, in the coordinates of its definition:
    inputs first, then stages in program order.

    Raises:
        TensorError: as `lower`.
    """
    with LOCK:
        plan = make_plan("regions", outputs)
    return {each.tensor.name: each.box for each in (*plan.inputs, *plan.stages)}


def _array(realised: Realised, role: str) -> Tensor:
    tensor = realised.tensor
    return Tensor(tensor.name, realised.box.extent, tensor.dtype, role)


def _stored(nest: Stmt, lows: _Lows) -> Stmt:
    """A nest over coordinates as one over arrays."""

    def statement(node: Stmt) -> Stmt:
        match node:
            case Store(tensor, indices, value, reduce):
                return Store(tensor, _places(indices, lows[tensor]), value, reduce)
        return node

    def load(node: Expr) -> Expr:
        if isinstance(node, Load):
            places = _places(node.indices, lows[node.tensor])
            return node if places == node.indices else Load(node.tensor, places)
        return node

    return map_statements(nest, lambda e: map_expression(e, load), statement)


def _places(indices: tuple[Expr, ...], low: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return tuple([tidy(moved(i, first)) for i, first in zip(indices, low, strict=True)])
