"""Names for loops and temporaries of generated code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernelwright.env.compiler.ir.names import is_identifier
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Block,
    Expr,
    Load,
    Stmt,
    Store,
    Tensor,
    map_expression,
    map_statements,
)


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


def with_tensor(node: Stmt, old: str, new: str) -> Stmt:
    """A statement that reads and writes another tensor in the place of one."""

    def read(part: Expr) -> Expr:
        return replace(part, tensor=new) if isinstance(part, Load) and part.tensor == old else part

    def written(part: Stmt) -> Stmt:
        return replace(part, tensor=new) if isinstance(part, Store) and part.tensor == old else part

    return map_statements(node, lambda expression: map_expression(expression, read), written)
