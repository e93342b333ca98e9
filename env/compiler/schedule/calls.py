"""Instructions in a program stay what they stand for."""

from __future__ import annotations

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Allocate, Call, Procedure, Stmt, Tensor
from kernelwright.env.compiler.ir.path import below
from kernelwright.env.compiler.schedule.instruction import find_instruction, known_instructions
from kernelwright.env.compiler.schedule.match import MatchError
from kernelwright.env.compiler.schedule.match import match as unify


def check_calls(op: str, procedure: Procedure) -> Procedure:
    """The procedure itself, if every instruction in it does what its nest means.

    Raises:
        ScheduleError: if one does not any more, at the first place where they differ.
    """
    _check(op, procedure.body, {tensor.name: tensor for tensor in procedure.tensors})
    return procedure


def _check(op: str, node: Stmt, tensors: dict[str, Tensor]) -> None:
    match node:
        case Allocate(tensor, _):
            tensors = {**tensors, tensor.name: tensor}
        case Call(instruction, body):
            try:
                # What nobody has declared is what its nest says, whatever that is.
                if instruction in known_instructions():
                    unify(find_instruction(instruction), body, tensors)
            except MatchError as error:
                reason = f"the nest of {instruction} would not be its meaning: {error}"
                raise ScheduleError(op, reason) from None
    for child in below(node):
        _check(op, child, tensors)
