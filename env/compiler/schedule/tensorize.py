"""Nests replaced by declared instructions: tensorize."""

from __future__ import annotations

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Call,
    Procedure,
    Stmt,
    Tensor,
)
from kernelwright.env.compiler.ir.path import path_to
from kernelwright.env.compiler.schedule.edit import find_loop, finish, replace_loop
from kernelwright.env.compiler.schedule.instruction import InstructionError, find_instruction
from kernelwright.env.compiler.schedule.match import MatchError, match


def tensorize(procedure: Procedure, loop: str, instruction: str) -> Procedure:
    """Let a declared instruction or micro-kernel do what a loop does (Chen et al., TVM, OSDI 2018,
    section 4.3; Ikarashi et al., Exo, PLDI 2022, ``replace``).

    Before::

        for k in 64:
          for ii in 8:
            for ji in 16:
              C[io * 8 + ii, jo * 16 + ji] += A[io * 8 + ii, k] * B[k, jo * 16 + ji]

    After ``tensorize("k", "fma_8x16_f32")``; the nest stays as the meaning::

        call fma_8x16_f32:
          for k in 64:
            for ii in 8:
              for ji in 16:
                C[io * 8 + ii, jo * 16 + ji] += A[io * 8 + ii, k] * B[k, jo * 16 + ji]

    Legal if the nest is the instruction's meaning but for names, places and strides: the same loops
    in the same order and as long, the same operations on the same dtypes, windows in the memories
    that the instruction asks for, with the strides that it needs, and what is written apart from
    what is read.

    Raises:
        ScheduleError: if there is no such loop or instruction, or at the first place where they
            differ.
    """
    found = find_loop("tensorize", procedure, loop)
    try:
        declared = find_instruction(instruction)
        match(declared, found, tensors_at(procedure, loop))
    except (InstructionError, MatchError) as error:
        name = f"loop {loop} is not {instruction}: " if isinstance(error, MatchError) else ""
        raise ScheduleError("tensorize", f"{name}{error}") from None
    if any(isinstance(node, Call) for node in path_to(procedure, loop)):
        raise ScheduleError("tensorize", f"loop {loop} is part of an instruction already")
    return finish("tensorize", replace_loop(procedure, loop, lambda n: Call(declared.name, n)))


def tensors_at(procedure: Procedure, place: str | Stmt) -> dict[str, Tensor]:
    """The tensors that a loop or statement sees."""
    around = path_to(procedure, place)
    inside = [node.tensor for node in around if isinstance(node, Allocate)]
    return {tensor.name: tensor for tensor in (*procedure.tensors, *inside)}
