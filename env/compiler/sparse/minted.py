"""Names for loops and temporaries of generated code."""

from __future__ import annotations

from collections.abc import Iterable

from kernelwright.env.compiler.ir.names import is_identifier
from kernelwright.env.compiler.ir.nodes import Allocate, Block, Expr, Stmt, Store, Tensor


class Minted:
    """Names in use; every new one is its own: ``j``, then ``j2``, ``j3``."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def new(self, wanted: str) -> str:
        """The wanted name, or with the least number that makes it new."""
        assert is_identifier(wanted), wanted
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}{number}"
        self._taken.add(name)
        return name


def scalar(name: str, dtype: str = "int64") -> Tensor:
    """A temporary in a register."""
    return Tensor(name, (), dtype, "temporary", "register")


def initialised(name: str, value: Expr, body: Stmt) -> Stmt:
    """A whole-number scalar that starts as a value, around the body."""
    return Allocate(scalar(name), Block((Store(name, (), value), body)))
