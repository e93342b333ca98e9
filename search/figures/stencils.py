"""The lecture's stencils as loop nests: Jacobi with a row for every time step, and one sweep of
Gauss-Seidel in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Const,
    Expr,
    For,
    Load,
    Procedure,
    Stmt,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.ir.verify import verify

DTYPE = "float64"


def jacobi(size: int, steps: int) -> Procedure:
    """A[t, i] = (A[t-1, i-1] + A[t-1, i] + A[t-1, i+1]) / 3 from a first row, whose ends stay as
    they are.
    """
    fill = _nest({"i0": size}, Store("A", (whole(0), Var("i0")), Load("start", (Var("i0"),))))
    edges = [
        _nest({name: steps}, Store("A", (_plus(name, 1), whole(at)), Load("start", (whole(at),))))
        for name, at in (("left", 0), ("right", size - 1))
    ]
    before = [Load("A", (Var("t"), _plus("i", offset))) for offset in range(3)]
    update = Store("A", (_plus("t", 1), _plus("i", 1)), _mean(before))
    nest = _nest({"t": steps, "i": size - 2}, update)
    tensors = (
        Tensor("start", (whole(size),), DTYPE, "input"),
        Tensor("A", (whole(steps + 1), whole(size)), DTYPE, "output"),
    )
    return verify(Procedure("jacobi", (), tensors, Block((fill, *edges, nest))))


def gauss_seidel(size: int) -> Procedure:
    """A[i, j] = (A[i-1, j] + A[i, j-1] + A[i+1, j] + A[i, j+1]) / 4 in place, once, for the size x
    size points inside a frame.
    """
    place = (Var("p"), Var("q"))
    fill = _nest({"p": size + 2, "q": size + 2}, Store("A", place, Load("start", place)))
    around = [
        Load("A", (_plus("i", a), _plus("j", b))) for a, b in ((0, 1), (1, 0), (2, 1), (1, 2))
    ]
    update = Store("A", (_plus("i", 1), _plus("j", 1)), _mean(around))
    shape = (whole(size + 2), whole(size + 2))
    tensors = (Tensor("start", shape, DTYPE, "input"), Tensor("A", shape, DTYPE, "output"))
    body = Block((fill, _nest({"i": size, "j": size}, update)))
    return verify(Procedure("gauss_seidel", (), tensors, body))


def recurrence(distances: Sequence[tuple[int, int]], size: int = 8) -> Procedure:
    """A nest (t, i) whose iterations depend on those at these distances before them."""
    margin = max(abs(part) for distance in distances for part in distance)
    before = [
        Load("A", (_plus("t", margin - rows), _plus("i", margin - columns)))
        for rows, columns in distances
    ]
    update = Store("A", (_plus("t", margin), _plus("i", margin)), _mean(before))
    place = (Var("p"), Var("q"))
    wide = size + 2 * margin
    fill = _nest({"p": wide, "q": wide}, Store("A", place, Const(1.0, DTYPE)))
    tensors = (Tensor("A", (whole(wide), whole(wide)), DTYPE, "output"),)
    body = Block((fill, _nest({"t": size, "i": size}, update)))
    return verify(Procedure("recurrence", (), tensors, body))


def _nest(extents: dict[str, int], body: Stmt) -> Stmt:
    for name, extent in reversed(extents.items()):
        body = For(name, whole(extent), body)
    return body


def _plus(name: str, offset: int) -> Expr:
    return simplify(Binary("add", Var(name), whole(offset)))


def _mean(parts: Sequence[Expr]) -> Expr:
    total = parts[0]
    for part in parts[1:]:
        total = Binary("add", total, part)
    return Binary("div", total, Const(float(len(parts)), DTYPE))
