"""Small procedures for the compiler's tests."""

from __future__ import annotations

import pytest

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Procedure,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole


def f32(value):
    return Const(value, "float32")


def add(*parts: Expr) -> Expr:
    out = parts[0]
    for part in parts[1:]:
        out = Binary("add", out, part)
    return out


def mul(a: Expr, b: Expr) -> Expr:
    return Binary("mul", a, b)


def tensor(name, *shape, dtype="float32", role="input"):
    return Tensor(
        name, tuple(whole(s) if isinstance(s, int) else Var(s) for s in shape), dtype, role
    )


def matmul(m=4, n=8, k=4) -> Procedure:
    i, j, q = Var("i"), Var("j"), Var("k")
    start = For("i0", whole(m), For("j0", whole(n), Store("C", (Var("i0"), Var("j0")), f32(0.0))))
    update = Store("C", (i, j), mul(Load("A", (i, q)), Load("B", (q, j))), "add")
    nest = For("i", whole(m), For("k", whole(k), For("j", whole(n), update)))
    tensors = (tensor("A", m, k), tensor("B", k, n), tensor("C", m, n, role="output"))
    return Procedure("matmul", (), tensors, Block((start, nest)))


def elementwise(value, n=16, kind=LoopKind.SERIAL, dtype="float32") -> Procedure:
    """y[i] = value, an expression over ``Var("i")`` and loads of x."""
    tensors = (tensor("x", n, dtype=dtype), tensor("y", n, dtype=dtype, role="output"))
    return Procedure("f", (), tensors, For("i", whole(n), Store("y", (Var("i"),), value), kind))


def in_turns(cases):
    """The first of every three cases, and the others for the audit: each is a call of a compiler,
    and random schedules of all directives are compiled there too.
    """
    rows = [case if isinstance(case, tuple) else tuple(case) for case in cases]
    return [
        row if number % 3 == 0 else pytest.param(*row, marks=pytest.mark.audit)
        for number, row in enumerate(rows)
    ]
