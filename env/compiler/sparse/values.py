"""Expressions over the elements at what is bound."""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Const,
    Expr,
    Load,
    Select,
    Unary,
)
from kernelwright.env.compiler.sparse.bound import Bound
from kernelwright.env.compiler.sparse.notation import (
    Access,
    Add,
    Expression,
    Literal,
    Mul,
    Neg,
    Sub,
)
from kernelwright.env.compiler.sparse.program import SparseError, plain_indices
from kernelwright.env.compiler.sparse.shared import (
    sharer,
)


def value(node: Expression, bound: Bound) -> Expr:
    """An expression over the elements at what is bound."""
    dtype = bound.program.dtype
    match node:
        case Literal(number):
            return Const(float(number), dtype)
        case Access():
            return element(node, bound)
        case Neg(operand):
            return Unary("neg", value(operand, bound))
        case Add(left, right):
            return Binary("add", value(left, bound), value(right, bound))
        case Sub(left, right):
            return Binary("sub", value(left, bound), value(right, bound))
        case Mul(left, right):
            return Binary("mul", value(left, bound), value(right, bound))


def element(access: Access, bound: Bound) -> Expr:
    """The value of an access."""
    tensor, indices = where_is(access, bound)
    found = bound.place(access).found
    value = Load(tensor, indices)
    return value if found is None else Select(found, value, Const(0.0, bound.program.dtype))


def where_is(access: Access, bound: Bound) -> tuple[str, tuple[Expr, ...]]:
    """The array of an access and its indices."""
    if bound.program.is_plain(access.tensor):
        places = []
        for index in plain_indices(bound.program, access):
            value = bound.index(index)
            if value is None:
                raise SparseError(f"{access.tensor}: expected a loop over {index}, found none")
            places.append(value)
        return bound.program.prefix(access.tensor), tuple(places)
    followed = sharer(bound.program) if bound.program.shares(access) else access
    place = bound.place(followed)
    levels = len(bound.program.format(followed.tensor).levels)
    if place.depth != levels:
        missing = bound.program.loop(followed, place.depth)
        raise SparseError(
            f"{access.tensor}: expected all {levels} levels followed, found none of {missing}"
        )
    return f"{bound.program.prefix(access.tensor)}_vals", (place.position,)
