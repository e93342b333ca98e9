"""Lines of C, indented, and the expressions in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kernelwright.env.compiler.codegen.expression import Expressions
from kernelwright.env.compiler.ir.nodes import Procedure


class Writer:
    """What all that writes statements of one procedure shares."""

    def __init__(self, procedure: Procedure) -> None:
        self.lines: list[str] = []
        self.expressions = Expressions(procedure)
        # The variables declared in each block that is open, the function's first.
        self._declared: list[set[str]] = [set()]

    @property
    def _level(self) -> int:
        return len(self._declared) - 1

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self._level + text)

    @contextmanager
    def braces(self, head: str = "") -> Iterator[None]:
        """What is written inside stands in braces after ``head``."""
        self.line(f"{head} {{".lstrip())
        with self._block():
            yield
        self.line("}")

    @contextmanager
    def scope(self, variables: Sequence[str]) -> Iterator[None]:
        """What is written inside declares these variables: in the block at hand, or in one of its
        own where it has variables of these names, as copies of a statement do.
        """
        if self._declared[-1].isdisjoint(variables):
            self._declared[-1].update(variables)
            yield
        else:
            with self.braces():
                self._declared[-1].update(variables)
                yield

    @contextmanager
    def _block(self) -> Iterator[None]:
        self._declared.append(set())
        yield
        self._declared.pop()

    def branch(
        self, condition: str, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """Write a choice between what two functions write."""
        self.line(f"if ({condition}) {{")
        with self._block():
            then()
        self.line("} else {")
        with self._block():
            otherwise()
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
