"""Stages to LoopIR: every stage computed whole, before the stages that read it, one nest after the
other.

A reduction becomes two nests, its start and its update, the reduced axes innermost; loops are named
after the axes, with the stage's name in front where a name is taken, and ``_start`` behind for the
first nest. Stages that are no outputs become temporaries.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Expr,
    For,
    Load,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    substitute,
    walk,
)
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.tensor.expression import TensorError, Value
from kernelwright.env.compiler.tensor.stage import Axis, Placeholder, Stage


def lower(name: str, outputs: Sequence[Stage]) -> Procedure:
    """The procedure that computes ``outputs``; its inputs are the placeholders they read, in the
    order in which they are first read.

    Raises:
        TensorError: if a stage reads what it did not list, or two tensors have one name.
    """
    stages, inputs = _in_order(outputs)
    names = [t.name for t in (*inputs, *stages)]
    for tensor in names:
        if names.count(tensor) > 1:
            raise TensorError(f"{name}: expected distinct names, found two tensors {tensor!r}")
    loops = _Names({*names, *_extents(stages, inputs)})
    nests = [nest for stage in stages for nest in _nests(stage, loops)]
    body: Stmt = nests[0] if len(nests) == 1 else Block(tuple(nests))
    for stage in reversed(stages):
        if stage not in outputs:
            body = Allocate(Tensor(stage.name, stage.shape, stage.dtype), body)
    arguments = [Tensor(t.name, t.shape, t.dtype, "input") for t in inputs]
    arguments += [Tensor(s.name, s.shape, s.dtype, "output") for s in outputs]
    return verify(Procedure(name, _extents(stages, inputs), tuple(arguments), body))


def _in_order(outputs: Sequence[Stage]) -> tuple[list[Stage], list[Placeholder]]:
    """Stages with those they read before them, and the placeholders at the bottom."""
    stages: list[Stage] = []
    inputs: list[Placeholder] = []

    def visit(stage: Stage) -> None:
        if stage in stages:
            return
        _check_reads(stage)
        for read in stage.reads:
            if isinstance(read, Stage):
                visit(read)
            elif isinstance(read, Placeholder) and read not in inputs:
                inputs.append(read)
        stages.append(stage)

    for output in outputs:
        if not isinstance(output, Stage):
            raise TensorError(f"expected computed outputs, found {output!r:.80}")
        visit(output)
    if not stages:
        raise TensorError("expected at least one output")
    return stages, inputs


def _check_reads(stage: Stage) -> None:
    value = stage.body if isinstance(stage.body, Value) else stage.body.value
    listed = {read.name for read in stage.reads}
    for node in walk(value.node):
        if isinstance(node, Load) and node.tensor not in listed:
            known = ", ".join(sorted(listed)) or "nothing"
            raise TensorError(f"{stage.name}: expected to read {known}, found {node.tensor!r}")


def _extents(stages: Sequence[Stage], inputs: Sequence[Placeholder]) -> tuple[str, ...]:
    """The extents by name, in the order in which shapes mention them."""
    found: dict[str, None] = {}
    for tensor in (*inputs, *stages):
        for size in tensor.shape:
            if isinstance(size, Var):
                found[size.name] = None
    for stage in stages:
        axes = () if isinstance(stage.body, Value) else stage.body.axes
        for axis in axes:
            if isinstance(axis.extent, Var):
                found[axis.extent.name] = None
    return tuple(found)


class _Names:
    """Loop names that were not used before."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = set(taken)

    def fresh(self, wanted: str, stage: str) -> str:
        name = wanted if wanted not in self._taken else f"{stage}_{wanted}"
        number = 2
        while name in self._taken:
            name, number = f"{stage}_{wanted}{number}", number + 1
        self._taken.add(name)
        return name


def _nests(stage: Stage, loops: _Names) -> list[Stmt]:
    if isinstance(stage.body, Value):
        return [_nest(stage, stage.axes, stage.body.node, None, loops, "")]
    reduction = stage.body
    axes = (*stage.axes, *reduction.axes)
    # The update's loops get the plain names: they are the ones that schedules are about.
    update = _nest(stage, axes, reduction.value.node, reduction.op, loops, "")
    start = _nest(stage, stage.axes, reduction.start, None, loops, "_start")
    return [start, update]


def _nest(
    stage: Stage,
    axes: tuple[Axis, ...],
    value: Expr,
    reduce: str | None,
    loops: _Names,
    suffix: str,
) -> Stmt:
    renamed = {axis.name: loops.fresh(axis.name + suffix, stage.name) for axis in axes}
    values: dict[str, Expr] = {old: Var(new) for old, new in renamed.items()}
    place = tuple(values[axis.name] for axis in stage.axes)
    node: Stmt = Store(stage.name, place, substitute(value, values), reduce)
    for axis in reversed(axes):
        node = For(renamed[axis.name], axis.extent, node)
    return node
