"""Sums over the lanes of registers as trees: an unrolled loop that adds up what `rfactor` has
gathered lane by lane, where the order of the sum is free (``reassociable``).

One after the other, eight additions wait for one another (32 cycles) and every lane is moved to the
front by itself; halves added to halves take three additions and two moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.env.compiler.codegen import names
from kernelwright.env.compiler.ir.dtypes import FLOATS
from kernelwright.env.compiler.ir.nodes import (
    Block,
    Const,
    Expr,
    For,
    If,
    Load,
    Store,
    Tensor,
    Var,
    walk,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import simplify
from kernelwright.env.compiler.runtime.call import C_TYPES


@dataclass(frozen=True, slots=True)
class LaneSum:
    """``store`` adds up the lanes of the first ``registers`` vectors of a temporary; it runs where
    all ``conditions`` hold.
    """

    store: Store
    conditions: tuple[Expr, ...]
    source: str
    lanes: int
    registers: int


def lane_sum(
    node: For, registers: Mapping[str, int], tensors: Mapping[str, Tensor]
) -> LaneSum | None:
    """The sum that an unrolled loop is, None if it is another loop. ``registers`` are the lanes of
    temporaries in local variables.
    """
    conditions: list[Expr] = []
    body = node.body
    while isinstance(body, If | Block):
        if isinstance(body, If):
            if mentions(body.condition, node.var):
                return None
            conditions.append(body.condition)
            body = body.then
        elif len(body.body) == 1:
            body = body.body[0]
        else:
            return None
    extent = simplify(node.extent)
    if not isinstance(body, Store) or not isinstance(extent, Const):
        return None
    value = body.value
    if (body.reduce, body.reassociable) != ("add", True) or not isinstance(value, Load):
        return None
    lanes, count = registers.get(value.tensor, 1), int(extent.value)
    is_whole = lanes > 1 and count % lanes == 0 and count > 0
    is_walked = value.indices == (Var(node.var),)
    # Every addition asks again.
    if any(_reads(condition, body.tensor) for condition in conditions):
        return None
    elsewhere = body.tensor != value.tensor and not any(mentions(i, node.var) for i in body.indices)
    if not (is_whole and is_walked and elsewhere) or tensors[value.tensor].dtype not in FLOATS:
        return None
    return LaneSum(body, tuple(conditions), value.tensor, lanes, count // lanes)


def _reads(node: Expr, tensor: str) -> bool:
    return any(isinstance(part, Load) and part.tensor == tensor for part in walk(node))


def lane_sum_helper(dtype: str, lanes: int) -> str:
    """The C function that adds up the lanes of a vector, halves to halves."""
    kind, element = names.vector_type(dtype, lanes), C_TYPES[dtype]
    steps, step = [], lanes // 2
    while step > 1:
        order = ", ".join(str(lane ^ step) for lane in range(lanes))
        steps.append(f"    v += __builtin_shufflevector(v, v, {order});")
        step //= 2
    tree = [f"v[{lane}]" for lane in range(lanes)]
    while len(tree) > 1:
        half = len(tree) // 2
        tree = [f"({a} + {b})" for a, b in zip(tree[:half], tree[half:], strict=True)]
    return "\n".join(
        [
            f"static inline {element} {names.lane_sum(dtype, lanes)}({kind} v) {{",
            "#if defined(__clang__) || __GNUC__ >= 12",
            *steps,
            "    return v[0] + v[1];",
            "#else",
            f"    return {tree[0]};",
            "#endif",
            "}",
        ]
    )
