"""A union without branches: where every operand may be present or not, what is absent adds zero.

    u = A_vals[jA]; v = B_vals[jB]
    C_vals[next] = (jA_at == j ? u : 0) + (jB_at == j ? v : 0)

Which case holds at the next coordinate is as good as random, so a branch for each is mispredicted
every few elements; the selects cost a cycle. An absent operand adds 0.0, so that a sum of a stored
-0.0 and nothing is 0.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    Expr,
    If,
    Load,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
)
from kernelwright.env.compiler.sparse.bound import Bound
from kernelwright.env.compiler.sparse.concrete import Assign
from kernelwright.env.compiler.sparse.lattice import Point
from kernelwright.env.compiler.sparse.notation import (
    Access,
    Add,
    Expression,
    Literal,
    Mul,
    Neg,
    Sub,
    accesses,
)
from kernelwright.env.compiler.sparse.values import element
from kernelwright.env.compiler.sparse.writes import store

if TYPE_CHECKING:
    from kernelwright.env.compiler.sparse.loops import Inside
    from kernelwright.env.compiler.sparse.lower import Lowering


def branch_free(
    lowering: Lowering,
    inside: Inside,
    bound: Bound,
    now: Expr,
    below: tuple[Point, ...],
    tests: Mapping[Access, Expr],
) -> list[Stmt] | None:
    """The statements at a coordinate of a union, None where it is no plain union of the operands
    that are merged: an assignment of their sum.
    """
    body = inside.body
    if not isinstance(body, Assign) or (inside.pending and body.accumulate):
        return None
    if len(tests) < 2 or any(frozenset((access,)) not in below for access in tests):
        return None
    if set(accesses(body.expression)) != set(tests) or not _is_sum(body.expression):
        return None
    program = lowering.program
    for access in tests:
        if bound.place(access).depth != len(program.format(access.tensor).levels):
            return None
    here = bound.with_coordinate(inside.var, now)
    here, opening, after = lowering.assembly.entered(inside.target, inside.var, here)
    here = here.located((inside.target,))
    values: dict[Access, str] = {}
    loads: list[Stmt] = []
    for access in tests:
        values[access] = lowering.names.new(f"{inside.var}{access.tensor}_value")
        loads.append(Store(values[access], (), element(access, bound)))
    zero = Const(0.0, program.dtype)
    operands = {a: Select(tests[a], Load(values[a], ()), zero) for a in tests}
    value = _value(body.expression, operands, program.dtype)
    added = store(lowering, inside.target, here, value, "add" if body.accumulate else None)
    out: Stmt = Block((*loads, *opening, added, *after))
    if (guard := here.guard(inside.var)) is not None:
        out = If(guard, out)
    for name in values.values():
        out = Allocate(Tensor(name, (), program.dtype, "temporary", "register"), out)
    return [out]


def _is_sum(node: Expression) -> bool:
    match node:
        case Add(left, right) | Sub(left, right):
            return _is_sum(left) and _is_sum(right)
        case Neg(operand):
            return _is_sum(operand)
        case Mul(Literal(), operand) | Mul(operand, Literal()):
            return _is_sum(operand)
        case Access():
            return True
    return False


def _value(node: Expression, operands: Mapping[Access, Expr], dtype: str) -> Expr:
    match node:
        case Literal(number):
            return Const(float(number), dtype)
        case Access():
            return operands[node]
        case Neg(operand):
            return Unary("neg", _value(operand, operands, dtype))
        case Add(left, right):
            return Binary("add", _value(left, operands, dtype), _value(right, operands, dtype))
        case Sub(left, right):
            return Binary("sub", _value(left, operands, dtype), _value(right, operands, dtype))
        case Mul(left, right):
            return Binary("mul", _value(left, operands, dtype), _value(right, operands, dtype))
