"""Meanings written in few words."""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Expr,
    For,
    Load,
    Stmt,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole


def window(name: str, shape: tuple[int | str, ...], dtype: str, *, written: bool = False) -> Tensor:
    """A window of numbers and extents by name."""
    sizes = tuple(_size(size) for size in shape)
    return Tensor(name, sizes, dtype, "output" if written else "input")


def load(name: str, *indices: str) -> Load:
    """An element of a window."""
    return Load(name, tuple(map(Var, indices)))


def under(body: Stmt, **loops: int | str) -> Stmt:
    """A statement under loops, the first outermost."""
    for name, size in reversed(loops.items()):
        body = For(name, _size(size), body)
    return body


def accumulate(target: Load, left: Expr, right: Expr) -> Store:
    """``target += left * right``."""
    return Store(target.tensor, target.indices, Binary("mul", left, right), "add")


def _size(size: int | str) -> Expr:
    return Var(size) if isinstance(size, str) else whole(size)
