"""The meaning of LoopIR: a plain interpreter, one element at a time. Every back end is an
optimisation of it.

``evaluate`` has the values of expressions, ``execute`` the statements, ``threads`` the blocks and
threads, whose steps it orders as barriers allow and whose races it finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.evaluate import Elements, InterpretError, Memory, evaluate
from kernelwright.env.compiler.ir.execute import execute
from kernelwright.env.compiler.ir.levels import BLOCK_SCOPES, is_launch
from kernelwright.env.compiler.ir.nodes import Allocate, Block, Procedure, Stmt
from kernelwright.env.compiler.ir.threads import Grid

__all__ = ["InterpretError", "interpret"]


def interpret(
    procedure: Procedure,
    inputs: Mapping[str, NDArray[Any]],
    extents: Mapping[str, int] | None = None,
) -> dict[str, NDArray[Any]]:
    """Run a procedure: its outputs by name, from its inputs by name and the values of its extents.

    Raises:
        InterpretError: if an argument does not fit, or the program goes wrong; an output element
            that was never written is one of these.
    """
    given = dict(extents or {})
    if set(given) != set(procedure.extents):
        raise InterpretError(f"expected extents {list(procedure.extents)}, found {sorted(given)}")
    for name, value in given.items():
        if not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
            raise InterpretError(f"extent {name}: expected a whole number, found {value!r}")
    variables: dict[str, Any] = {name: int(value) for name, value in given.items()}
    memory: dict[str, Memory] = {}
    for tensor in procedure.tensors:
        shape = tuple(evaluate(extent, variables, memory) for extent in tensor.shape)
        if tensor.role == "output":
            memory[tensor.name] = Memory(tensor, np.zeros(shape, tensor.dtype), defined=False)
            continue
        if tensor.name not in inputs:
            raise InterpretError(f"expected an array for input {tensor.name}, found none")
        data = inputs[tensor.name]
        if data.shape != shape or data.dtype != tensor.dtype:
            found = f"{data.dtype}{list(data.shape)}"
            raise InterpretError(
                f"{tensor.name}: expected {tensor.dtype}{list(shape)}, found {found}"
            )
        if "ascending" in tensor.facts and (data[1:] < data[:-1]).any():
            at = int((data[1:] < data[:-1]).argmax()) + 1
            raise InterpretError(
                f"{tensor.name}: expected elements that ascend, found less at {at}"
            )
        memory[tensor.name] = Memory(tensor, data, defined=True)
    running: dict[str, Elements] = dict(memory)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        _outermost(procedure.body, variables, running)
    out = {}
    for tensor in procedure.tensors:
        if tensor.role == "output":
            if not memory[tensor.name].defined.all():
                missing = np.argwhere(~memory[tensor.name].defined)[0].tolist()
                raise InterpretError(f"output {tensor.name}{missing} was never written")
            out[tensor.name] = memory[tensor.name].data
    return out


def _outermost(node: Stmt, variables: dict[str, Any], memory: dict[str, Elements]) -> None:
    """Run outermost statements one after the other: a launch ends before the next begins."""
    match node:
        case Block(items):
            for item in items:
                _outermost(item, variables, memory)
        case Allocate(tensor, body) if tensor.scope not in BLOCK_SCOPES:
            memory[tensor.name] = Memory.of(tensor, variables)
            _outermost(body, variables, memory)
            del memory[tensor.name]
        case _ if is_launch(node):
            Grid(node, variables, memory).run()
        case _:
            execute(node, variables, memory)
