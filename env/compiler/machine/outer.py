"""What a compiler runs in lanes by itself where the innermost loop only adds up: neighbouring sums
of the loop around it, side by side (outer-loop vectorization: Nuzman and Zaks, PACT 2008).

Before::

    for j in 20:
      for k in 64:
        C[j] += A[k] * B[k, j]

After, with eight lanes::

    for j.o in 2:
      for k in 64:
        for j.i in 8:  # vectorized
          C[j.o * 8 + j.i] += A[k] * B[k, j.o * 8 + j.i]
    for j.r in 4:
      for k.r in 64:
        C[16 + j.r] += A[k.r] * B[k.r, 16 + j.r]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Unary,
    Var,
    children,
    map_statements,
    statements,
    substitute,
)
from kernelwright.env.compiler.ir.queries import tensors_by_name
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.machine.affine import flat

_LANE_OPS = ("add", "sub", "mul", "div")


@dataclass(frozen=True, slots=True)
class OuterLanes:
    """The width of the vectors that a compiler chooses, in bytes."""

    vector_bytes: int

    def apply(self, procedure: Procedure) -> Procedure:
        """The procedure with such loops in lanes."""
        known = tensors_by_name(procedure)

        def visit(node: Stmt) -> Stmt:
            lanes = self._lanes(node, known)
            return node if lanes is None or not isinstance(node, For) else _split(node, lanes)

        return replace(procedure, body=map_statements(procedure.body, lambda e: e, visit))

    def _lanes(self, node: Stmt, tensors: dict[str, Tensor]) -> int | None:
        """How many lanes a loop gets; None if it is left alone."""
        if not (isinstance(node, For) and isinstance(node.body, For)):
            return None
        inner = node.body
        for loop in (node, inner):
            if loop.kind is not LoopKind.SERIAL or not isinstance(loop.extent, Const):
                return None
        stores = list(_straight(inner.body))
        if not stores or not all(isinstance(store, Store) for store in stores):
            return None
        sums = [store for store in stores if isinstance(store, Store)]
        size = max(ITEM_BYTES[tensors[store.tensor].dtype] for store in sums)
        lanes = self.vector_bytes // size
        assert isinstance(node.extent, Const)
        if lanes < 2 or int(node.extent.value) < lanes:
            return None
        fit = all(_is_sum(store, node.var, inner.var, size, tensors) for store in sums)
        return lanes if fit else None


def _straight(node: Stmt) -> Iterator[Stmt]:
    """The statements of a body that a compiler sees after unrolling."""
    match node:
        case Block(items):
            for item in items:
                yield from _straight(item)
        case For(_, Const(), body, LoopKind.UNROLLED):
            yield from _straight(body)
        case _:
            yield node


def _is_sum(store: Store, outer: str, inner: str, size: int, tensors: dict[str, Tensor]) -> bool:
    """Whether a store adds to an element that stays while ``inner`` runs, all of it in lanes."""
    steps = _steps(store.tensor, store.indices, outer, inner, tensors)
    if store.reduce not in ("add", "mul") or steps != (1, 0):
        return False
    return _has_lanes(store.value, outer, inner, size, tensors)


def _has_lanes(node: Expr, outer: str, inner: str, size: int, tensors: dict[str, Tensor]) -> bool:
    match node:
        case Const():
            return True
        case Load(tensor, indices):
            steps = _steps(tensor, indices, outer, inner, tensors)
            alike = ITEM_BYTES[tensors[tensor].dtype] == size
            return steps is not None and steps[0] in (0, 1) and alike
        case Unary("neg" | "abs" | "sqrt"):
            pass
        case Binary(op, _, _) if op in _LANE_OPS:
            pass
        case _:
            return False
    return all(_has_lanes(child, outer, inner, size, tensors) for child in children(node))


def _steps(
    tensor: str, indices: tuple[Expr, ...], outer: str, inner: str, tensors: dict[str, Tensor]
) -> tuple[int, int] | None:
    """By how many elements an access moves with each of the two loops."""
    shape = []
    for extent in tensors[tensor].shape:
        if not isinstance(extent, Const):
            return None
        shape.append(int(extent.value))
    offset = flat(indices, tuple(shape))
    return None if offset is None else (offset.factor(outer), offset.factor(inner))


def _split(loop: For, lanes: int) -> Stmt:
    """The loop in lanes, and what is left over."""
    inner, extent = loop.body, loop.extent
    assert isinstance(inner, For)
    assert isinstance(extent, Const)
    blocks, rest = divmod(int(extent.value), lanes)
    first, lane = Var(f"{loop.var}.o"), Var(f"{loop.var}.i")
    place = Binary("add", Binary("mul", first, whole(lanes)), lane)
    body = For(lane.name, whole(lanes), _at(inner.body, {loop.var: place}), LoopKind.VECTORIZED)
    main = For(first.name, whole(blocks), replace(inner, body=body))
    if not rest:
        return main
    left = Binary("add", whole(blocks * lanes), Var(f"{loop.var}.r"))
    values: dict[str, Expr] = {loop.var: left}
    renamed = _renamed(inner, values)
    return Block((main, For(f"{loop.var}.r", whole(rest), _at(renamed, values))))


def _renamed(node: Stmt, values: dict[str, Expr]) -> Stmt:
    """A statement whose loops have names of their own; ``values`` gets what stands for the old."""
    values |= {s.var: Var(f"{s.var}.r") for s in statements(node) if isinstance(s, For)}

    def rename(part: Stmt) -> Stmt:
        return replace(part, var=f"{part.var}.r") if isinstance(part, For) else part

    return map_statements(node, lambda e: e, rename)


def _at(node: Stmt, values: dict[str, Expr]) -> Stmt:
    return map_statements(node, lambda e: simplify(substitute(e, values)))
