"""Instructions and micro-kernels as declared: a meaning in LoopIR, and the C that does it where
there is some.

A declaration's tensors are windows: parts of a program's tensors, each with an address and a stride
for every axis. ``tensorize`` puts an instruction in the place of a nest that means the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from kernelwright.env.compiler.errors import CompilerError, did_you_mean
from kernelwright.env.compiler.ir.nodes import (
    MEMORY_SCOPES,
    Expr,
    For,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
    statements,
    walk,
)
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.schedule.instructions import INSTRUCTIONS


class InstructionError(CompilerError):
    """A declaration that is not one, or a name that nothing has."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A declared instruction or micro-kernel.

    Args:
        semantics: what it does, under its own name; its tensors are the windows, its extents are
            numbers that a program chooses. Every index of a window is a loop variable of its own.
        c: the body of a C function that does it, None if C runs the meaning. It sees a pointer
            under every window's name, ``NAME_0``, ``NAME_1``, … as its strides in elements, and
            the extents, all ``int64_t``.
        target: the machine that has it.
        scopes: for windows that must lie in certain memory, the scopes that will do.
        contiguous: the windows whose last axis must have stride 1.

    Raises:
        InstructionError: if it is no declaration.
        VerifyError: if the meaning is not well formed.
    """

    semantics: Procedure
    c: str | None = None
    target: str = "C"
    scopes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    contiguous: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        verify(self.semantics)
        windows = {tensor.name: tensor for tensor in self.semantics.tensors}
        for name in (*dict(self.scopes), *self.contiguous):
            if name not in windows:
                known = ", ".join(windows)
                raise InstructionError(f"{self.name}: expected a window of {known}, found {name!r}")
        for name, scopes in self.scopes:
            unknown = sorted(set(scopes) - set(MEMORY_SCOPES))
            if unknown or not scopes:
                listed = ", ".join(MEMORY_SCOPES)
                raise InstructionError(
                    f"{self.name}: expected scopes of {listed} for {name}, found {scopes}"
                )
        accesses = list(_accesses(self.semantics.body))
        unused = sorted(set(windows) - {tensor for tensor, _ in accesses})
        if unused:
            raise InstructionError(f"{self.name}: expected a use of window {unused[0]}, found none")
        for tensor, indices in accesses:
            names = [index.name for index in indices if isinstance(index, Var)]
            if len(set(names)) != len(indices) or set(names) & set(self.semantics.extents):
                raise InstructionError(
                    f"{self.name}: expected a loop variable of its own for every index of {tensor}"
                )
        if any(
            isinstance(s, For) and s.kind is not LoopKind.SERIAL
            for s in statements(self.semantics.body)
        ):
            raise InstructionError(f"{self.name}: expected serial loops in its meaning")

    @property
    def name(self) -> str:
        """What programs call it."""
        return self.semantics.name

    @property
    def windows(self) -> tuple[Tensor, ...]:
        """The windows, as its meaning declares them."""
        return self.semantics.tensors


def _accesses(body: Stmt) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    for node in statements(body):
        roots: tuple[Expr, ...] = ()
        if isinstance(node, Store):
            yield node.tensor, node.indices
            roots = (node.value,)
        elif isinstance(node, For):
            roots = (node.extent,)
        for root in roots:
            for part in walk(root):
                if isinstance(part, Load):
                    yield part.tensor, part.indices


_DECLARED: dict[str, Instruction] = {}


def declare(instruction: Instruction) -> Instruction:
    """Make an instruction known to this process by its name.

    Raises:
        InstructionError: if another one has the name.
    """
    known = _DECLARED.get(instruction.name)
    if instruction.name in INSTRUCTIONS or known not in (None, instruction):
        raise InstructionError(f"expected a new name, found a second {instruction.name}")
    _DECLARED[instruction.name] = instruction
    return instruction


def known_instructions() -> tuple[str, ...]:
    """The names of all instructions, those that come with the compiler first."""
    return (*INSTRUCTIONS, *_DECLARED)


def find_instruction(name: str) -> Instruction:
    """The instruction of a name.

    Raises:
        InstructionError: if there is none; it lists the known ones and the nearest.
    """
    if name in _DECLARED:
        return _DECLARED[name]
    if name not in INSTRUCTIONS:
        hint = did_you_mean(name, known_instructions())
        listed = ", ".join(known_instructions())
        raise InstructionError(f"expected one of {listed}, found {name!r}{hint}")
    module, _, attribute = INSTRUCTIONS[name].partition(":")
    found = getattr(import_module(module), attribute)
    assert isinstance(found, Instruction)
    return found
