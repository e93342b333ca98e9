"""Calls of declared instructions: a C function for each, and what it is called with."""

from __future__ import annotations

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.codegen.errors import CodegenError
from kernelwright.env.compiler.codegen.expression import LOOSE, Expressions
from kernelwright.env.compiler.ir.nodes import Call
from kernelwright.env.compiler.runtime.call import C_TYPES
from kernelwright.env.compiler.schedule.instruction import (
    Instruction,
    find_instruction,
    known_instructions,
)
from kernelwright.env.compiler.schedule.match import MatchError, match


def call_text(node: Call, expressions: Expressions) -> str | None:
    """The C that calls an instruction; None if it has none, or is not declared here: then its nest
    says what it does.

    Raises:
        CodegenError: if the call's nest is not the instruction's meaning.
    """
    if node.instruction not in known_instructions():
        return None
    instruction = find_instruction(node.instruction)
    if instruction.c is None:
        return None
    try:
        found = match(instruction, node.body, expressions.tensors)
    except MatchError as error:
        raise CodegenError(f"call of {node.instruction}: {error}") from None
    expressions.helper(function_text(instruction))
    values = []
    for tensor in instruction.windows:
        window = found.windows[tensor.name]
        values.append(f"{window.tensor} + {expressions.scalar(window.offset, 12)}")
        values += [expressions.scalar(stride, LOOSE) for stride in window.strides]
    values += [
        expressions.scalar(found.extents[name], LOOSE) for name in instruction.semantics.extents
    ]
    return f"{names.instruction(instruction.name)}({', '.join(values)});"


def described(node: Call) -> str:
    """What a comment says in the place of a call that C has no function for."""
    if node.instruction not in known_instructions():
        return f"// {node.instruction}"
    return f"// {node.instruction} of the {find_instruction(node.instruction).target}"


def function_text(instruction: Instruction) -> str:
    """The C function of an instruction: a pointer and strides for every window, then its
    extents.
    """
    parameters = []
    for tensor in instruction.windows:
        const = "const " if tensor.role == "input" else ""
        parameters.append(f"{const}{C_TYPES[tensor.dtype]} *restrict {tensor.name}")
        parameters += [f"int64_t {tensor.name}_{axis}" for axis in range(len(tensor.shape))]
    parameters += [f"int64_t {name}" for name in instruction.semantics.extents]
    body = "\n".join(f"    {line}" for line in (instruction.c or "").splitlines())
    head = f"static inline void {names.instruction(instruction.name)}({', '.join(parameters)})"
    return f"{head} {{\n{body}\n}}"
