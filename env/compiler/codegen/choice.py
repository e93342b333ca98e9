"""Choices without a branch: between numbers that are there already, by whole numbers read from
memory, as where two sorted lists are merged.

Which list is next no branch predictor knows. C's own choice becomes a branch more often than not:
gcc 12 makes one of each of the two choices of a merge, and the merge takes 1.7 times as long
(sparse matrices, AMD Zen 4). Masks leave it none to make.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.ir.dtypes import INTEGERS, ITEM_BYTES
from kernelwright.env.compiler.ir.nodes import (
    COMPARISONS,
    Binary,
    Const,
    Expr,
    Load,
    Select,
    Tensor,
    Unary,
    Var,
    walk,
)
from kernelwright.env.compiler.runtime.call import C_TYPES

_BITS = ("float32", "float64")


def is_masked(
    node: Select, dtype: str, tensors: Mapping[str, Tensor], held: Collection[str]
) -> bool:
    """Whether a choice of a dtype is between numbers in registers (``held``), and by whole ones."""
    read = [part.tensor for part in walk(node.condition) if isinstance(part, Load)]
    by_whole = all(name in held and tensors[name].dtype in INTEGERS for name in read)
    both = (node.then, node.other)
    return dtype in _BITS and bool(read) and by_whole and all(_is_there(n, held) for n in both)


def _is_there(node: Expr, held: Collection[str]) -> bool:
    """Whether a floating-point number may be computed, and at little cost, though nobody asks."""
    match node:
        case Const() | Var():
            return True
        case Load(tensor, _):
            return tensor in held
        case Unary("neg", operand):
            return _is_there(operand, held)
        case Binary("add" | "sub" | "mul", left, right):
            return _is_there(left, held) and _is_there(right, held)
        case Select(Binary(op, left, right), then, other) if op in COMPARISONS:
            return all(_is_there(part, held) for part in (left, right, then, other))
    return False


def select_helper(dtype: str) -> str:
    """The C function that chooses the first of two numbers where a condition is 1, the second
    where it is 0, bit by bit.
    """
    element, bits = C_TYPES[dtype], f"uint{8 * ITEM_BYTES[dtype]}_t"
    head = f"static inline {element} {names.select(dtype)}({bits} yes, {element} a, {element} b)"
    body = (
        f"{bits} x, y; __builtin_memcpy(&x, &a, sizeof x); __builtin_memcpy(&y, &b, sizeof y); "
        "x = (x & -yes) | (y & (yes - 1)); __builtin_memcpy(&a, &x, sizeof a); return a;"
    )
    return f"{head} {{ {body} }}"
