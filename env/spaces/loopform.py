"""A loop nest as text that is equal for equal nests: loops and temporaries have numbers for names,
and whole-number sums and products are in one order.

What is left different is different to a compiler: extents, kinds, the order of loops and of
statements, floating-point expressions as they are written.
"""

from __future__ import annotations

from typing import assert_never

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Cast,
    Const,
    Expr,
    For,
    If,
    Load,
    Prefetch,
    Procedure,
    Select,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
    While,
)
from kernelwright.env.compiler.poly.normal import operands

_WHOLE = frozenset({"add", "sub", "mul", "floordiv", "mod", "min", "max"})
_SORTED = frozenset({"add", "mul"})


def loop_text(procedure: Procedure) -> str:
    """The text of a procedure."""
    return _Writer(procedure).text


class _Writer:
    """Writes a procedure; ``_names`` are the numbers of loops and temporaries met so far."""

    def __init__(self, procedure: Procedure) -> None:
        self._names: dict[str, str] = {}
        tensors = " ".join(f"{t.role} {self._tensor(t)}" for t in procedure.tensors)
        head = f"{procedure.name}({' '.join(procedure.extents)})({tensors})"
        self.text = head + self._statement(procedure.body)

    def _name(self, name: str) -> str:
        return self._names.get(name, name)

    def _number(self, name: str) -> str:
        self._names[name] = f"#{len(self._names)}"
        return self._names[name]

    def _tensor(self, tensor: Tensor) -> str:
        shape = ",".join(map(self._expr, tensor.shape))
        scope = "" if tensor.scope == "auto" else f"@{tensor.scope}"
        return f"{self._name(tensor.name)}:{tensor.dtype}[{shape}]{scope}"

    def _statement(self, node: Stmt) -> str:
        match node:
            case Store(tensor, indices, value, reduce, stream):
                sign = f"{'stream ' if stream else ''}{reduce or ''}"
                return f"{{{self._element(tensor, indices)}{sign}={self._expr(value)}}}"
            case For(var, extent, body, kind):
                count = self._expr(extent)
                return f"{{{kind} {self._number(var)}<{count} {self._statement(body)}}}"
            case If(condition, then):
                return f"{{if {self._expr(condition)} {self._statement(then)}}}"
            case While(condition, body):
                return f"{{while {self._expr(condition)} {self._statement(body)}}}"
            case Block(body):
                return f"{{{''.join(map(self._statement, body))}}}"
            case Allocate(tensor, body):
                self._number(tensor.name)
                return f"{{allocate {self._tensor(tensor)} {self._statement(body)}}}"
            case Barrier():
                return "{barrier}"
            case Prefetch(tensor, indices, write, locality):
                how = f"{'write' if write else 'read'} {locality}"
                return f"{{prefetch {self._element(tensor, indices)} {how}}}"
            case Call(instruction, body):
                return f"{{call {instruction} {self._statement(body)}}}"
            case _:
                assert_never(node)

    def _element(self, tensor: str, indices: tuple[Expr, ...]) -> str:
        return f"{self._name(tensor)}[{','.join(map(self._expr, indices))}]"

    def _expr(self, node: Expr) -> str:
        match node:
            case Const(value, dtype):
                return f"{dtype} {value!r}"
            case Var(name):
                return self._name(name)
            case Load(tensor, indices):
                return self._element(tensor, indices)
            case Binary(op, left, right):
                parts = [left, right]
                if op in _SORTED and is_whole(node):
                    parts = operands(op, node)
                    return f"({op} {' '.join(sorted(map(self._expr, parts)))})"
                return f"({op} {' '.join(map(self._expr, parts))})"
            case Unary(op, operand):
                return f"({op} {self._expr(operand)})"
            case Cast(dtype, operand):
                return f"(to {dtype} {self._expr(operand)})"
            case Select(condition, then, other):
                return f"(select {' '.join(map(self._expr, (condition, then, other)))})"
            case _:
                assert_never(node)


def is_whole(node: Expr) -> bool:
    """Whether an expression is of loops, extents and whole constants alone, so that its sums and
    products may be put in any order.
    """
    match node:
        case Var() | Const(_, "int64"):
            return True
        case Binary(op, left, right):
            return op in _WHOLE and is_whole(left) and is_whole(right)
    return False
