"""Index notation: what is computed, not in which order and not from which storage.

A variable that is not an index of the target is summed over, in each term of a sum by itself
(Einstein's convention): y(i) = A(i,j) * x(j) + b(i) adds b(i) once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Access:
    """An element of a tensor; without indices, a scalar."""

    tensor: str
    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Neg:
    """The operand with the other sign."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Add:
    """A sum: of what either operand stores (union)."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Sub:
    """A difference (union)."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Mul:
    """A product: of what both operands store (intersection)."""

    left: Expression
    right: Expression


Expression: TypeAlias = Literal | Access | Neg | Add | Sub | Mul


@dataclass(frozen=True, slots=True)
class Assignment:
    """The target's elements as an expression."""

    target: Access
    expression: Expression
