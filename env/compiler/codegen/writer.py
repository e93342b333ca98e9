"""Lines of C, indented, and the expressions in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernelwright.env.compiler.codegen.expression import Expressions
from kernelwright.env.compiler.ir.nodes import Procedure


class Writer:
    """What all that writes statements of one procedure shares."""

    def __init__(self, procedure: Procedure) -> None:
        self.lines: list[str] = []
        self.expressions = Expressions(procedure)
        self._level = 0

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self._level + text)

    @contextmanager
    def braces(self, head: str = "") -> Iterator[None]:
        """What is written inside stands in braces after ``head``."""
        self.line(f"{head} {{".lstrip())
        self._level += 1
        yield
        self._level -= 1
        self.line("}")

    def branch(
        self, condition: str, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """Write a choice between what two functions write."""
        self.line(f"if ({condition}) {{")
        self._level += 1
        then()
        self._level -= 1
        self.line("} else {")
        self._level += 1
        otherwise()
        self._level -= 1
        self.line("}")

    def store(self, target: str, tensor: str, value: str, reduce: str | None) -> str:
        """The statement that stores a value in an element, or combines it with what is there."""
        match reduce:
            case None:
                return f"{target} = {value};"
            case "add":
                return f"{target} += {value};"
            case "mul":
                return f"{target} *= {value};"
            case _:
                helper = self.expressions.extremum(reduce, self.expressions.tensors[tensor].dtype)
                return f"{target} = {helper}({target}, {value});"
