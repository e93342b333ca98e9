"""Nests replaced by declared instructions: tensorize; and memories for them: set_scope."""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    MEMORY_SCOPES,
    Allocate,
    Call,
    Procedure,
    Stmt,
    Tensor,
    map_statements,
    statements,
)
from kernelwright.env.compiler.schedule.edit import find_loop, finish, replace_loop
from kernelwright.env.compiler.schedule.instruction import InstructionError, find_instruction
from kernelwright.env.compiler.schedule.match import MatchError, match
from kernelwright.env.compiler.schedule.path import path_to


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


def set_scope(procedure: Procedure, tensor: str, scope: str) -> Procedure:
    """Say in which memory a temporary lives (TVM ``set_scope``; Halide ``store_in``).

    Before::

        allocate S[16, 16]

    After ``set_scope("S", "scratchpad")``::

        allocate S[16, 16]  # scratchpad

    Raises:
        ScheduleError: if there is no such temporary or scope, or threads would have one each or
            share one where the program means otherwise.
    """
    known = [s.tensor.name for s in statements(procedure.body) if isinstance(s, Allocate)]
    if tensor not in known:
        listed = ", ".join(known) or "none"
        raise ScheduleError("set_scope", f"expected a temporary ({listed}), found {tensor!r}")
    if scope not in MEMORY_SCOPES:
        listed = ", ".join(MEMORY_SCOPES)
        raise ScheduleError("set_scope", f"expected one of {listed}, found {scope!r}")

    def rewrite(node: Stmt) -> Stmt:
        is_meant = isinstance(node, Allocate) and node.tensor.name == tensor
        if not is_meant or not isinstance(node, Allocate):
            return node
        return replace(node, tensor=replace(node.tensor, scope=scope))

    body = map_statements(procedure.body, lambda e: e, rewrite)
    return finish("set_scope", replace(procedure, body=body))


def tensors_at(procedure: Procedure, place: str | Stmt) -> dict[str, Tensor]:
    """The tensors that a loop or statement sees."""
    around = path_to(procedure, place)
    inside = [node.tensor for node in around if isinstance(node, Allocate)]
    return {tensor.name: tensor for tensor in (*procedure.tensors, *inside)}
