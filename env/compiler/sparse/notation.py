"""Index notation: what is computed, not in which order and not from which storage.

A variable that is not an index of the target is summed over, in each term of a sum by itself
(Einstein's convention): y(i) = A(i,j) * x(j) + b(i) adds b(i) once. Products over sums mean what
they are multiplied out: in (A(i,j) + b(i)) * c(i), b(i) * c(i) is added once, too.

From Python operators: with ``A, x = tensors("A x")`` and ``i, j = indices("i j")``,
``A[i, j] * x[j] + 2`` is an expression.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, assert_never

from kernelwright.env.compiler.errors import CompilerError


class NotationError(CompilerError):
    """Index notation that has no meaning: the text with a caret where there is one, what was
    expected and what was found.
    """


class Operators:
    """The operators of Python, which build expressions."""

    __slots__ = ()

    def __neg__(self) -> Neg:
        return Neg(operand(self))

    def __add__(self, other: Operand) -> Add:
        return Add(operand(self), operand(other))

    def __radd__(self, other: Operand) -> Add:
        return Add(operand(other), operand(self))

    def __sub__(self, other: Operand) -> Sub:
        return Sub(operand(self), operand(other))

    def __rsub__(self, other: Operand) -> Sub:
        return Sub(operand(other), operand(self))

    def __mul__(self, other: Operand) -> Mul:
        return Mul(operand(self), operand(other))

    def __rmul__(self, other: Operand) -> Mul:
        return Mul(operand(other), operand(self))

    def __truediv__(self, other: object) -> NoReturn:
        raise NotationError("expected + or - or *, found / (division is not in index notation)")

    def __rtruediv__(self, other: object) -> NoReturn:
        raise NotationError("expected + or - or *, found / (division is not in index notation)")

    def __pow__(self, other: object) -> NoReturn:
        raise NotationError("expected + or - or *, found ** (a power is written as a product)")

    def __rpow__(self, other: object) -> NoReturn:
        raise NotationError("expected + or - or *, found ** (a power is written as a product)")


@dataclass(frozen=True, slots=True)
class Literal(Operators):
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Access(Operators):
    """An element of a tensor; without indices, a scalar."""

    tensor: str
    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Neg(Operators):
    """The operand with the other sign."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Add(Operators):
    """A sum: of what either operand stores (union)."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Sub(Operators):
    """A difference (union)."""

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Mul(Operators):
    """A product: of what both operands store (intersection)."""

    left: Expression
    right: Expression


Expression: TypeAlias = Literal | Access | Neg | Add | Sub | Mul


@dataclass(frozen=True, slots=True)
class Assignment:
    """The target's elements as an expression."""

    target: Access
    expression: Expression


@dataclass(frozen=True, slots=True)
class Index:
    """An index variable, for the operators of Python."""

    name: str


@dataclass(frozen=True, slots=True)
class Tensor(Operators):
    """A tensor, for the operators of Python: with indices an element, alone a scalar."""

    name: str

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Access:
        found = index if isinstance(index, tuple) else (index,)
        for each in found:
            if not isinstance(each, Index):
                raise NotationError(f"{self.name}[…]: expected index variables, found {each!r}")
        return Access(self.name, tuple(each.name for each in found))


Operand: TypeAlias = Expression | Tensor | float


def tensors(names: str) -> tuple[Tensor, ...]:
    """Tensors by their names, with spaces between them."""
    return tuple(Tensor(name) for name in names.split())


def indices(names: str) -> tuple[Index, ...]:
    """Index variables by their names, with spaces between them."""
    return tuple(Index(name) for name in names.split())


def operand(value: object) -> Expression:
    """What stands for a value in an expression; a negative number is the negation of one.

    Raises:
        NotationError: if nothing does.
    """
    if isinstance(value, Literal | Access | Neg | Add | Sub | Mul):
        return value
    if isinstance(value, Tensor):
        return Access(value.name, ())
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        size = Literal(abs(float(value)))
        return size if math.copysign(1, value) > 0 else Neg(size)
    raise NotationError(f"expected an element of a tensor or a finite number, found {value!r}")


def accesses(expression: Expression) -> tuple[Access, ...]:
    """All accesses in order of appearance, each as often as it appears."""
    match expression:
        case Literal():
            return ()
        case Access():
            return (expression,)
        case Neg(inner):
            return accesses(inner)
        case Add(left, right) | Sub(left, right) | Mul(left, right):
            return accesses(left) + accesses(right)
        case _:
            assert_never(expression)


def variables(expression: Expression) -> tuple[str, ...]:
    """Index variables in order of appearance."""
    return tuple(dict.fromkeys(v for access in accesses(expression) for v in access.indices))


def reduction_variables(assignment: Assignment) -> tuple[str, ...]:
    """Index variables that are summed over, in order of appearance."""
    kept = assignment.target.indices
    return tuple(v for v in variables(assignment.expression) if v not in kept)


def access_text(access: Access) -> str:
    """``A(i,j)``, or the name of a scalar."""
    return f"{access.tensor}({','.join(access.indices)})" if access.indices else access.tensor


def extents(assignment: Assignment, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The number of values of every index variable (target's first), from the shapes of operands;
    the target's shape is compared where it is given.

    Raises:
        NotationError: if an operand has no shape or one of another number of modes, or two accesses
            disagree.
    """
    sizes: dict[str, tuple[int, Access]] = {}
    operands = accesses(assignment.expression)
    if assignment.target.tensor in shapes:
        operands += (assignment.target,)
    for access in operands:
        text = access_text(access)
        if access.tensor not in shapes:
            raise NotationError(f"{text}: expected a shape of {access.tensor}, found none")
        shape = shapes[access.tensor]
        if len(shape) != len(access.indices):
            raise NotationError(
                f"{text}: expected a shape of {len(access.indices)} sizes, found {tuple(shape)}"
            )
        for variable, size in zip(access.indices, shape, strict=True):
            if size < 0:
                raise NotationError(
                    f"{text}: expected a size of at least 0 for {variable}, found {size}"
                )
            known, where = sizes.setdefault(variable, (size, access))
            if known != size:
                before = f"expected {known} as in {access_text(where)}"
                raise NotationError(f"{variable}: {before}, found {size} in {text}")
    order = dict.fromkeys((*assignment.target.indices, *sizes))
    return {variable: sizes[variable][0] for variable in order}
