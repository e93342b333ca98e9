"""What the back ends refuse."""

from __future__ import annotations

from kernelwright.env.compiler.errors import CompilerError


class CodegenError(CompilerError):
    """A procedure that has no C form; it says which node and why."""
