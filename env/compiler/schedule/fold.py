"""fold_storage: a circular buffer in the place of a temporary of which only a window is needed at a
time.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Const,
    Expr,
    Load,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    map_expression,
    map_statements,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.liveness import Overwrites, overwrites
from kernelwright.env.compiler.schedule.edit import finish, whole_argument
from kernelwright.env.compiler.schedule.producer import find_temporary

# Of a temporary whose extent is known only when the kernel is called, so many places are tried.
MAX_FACTOR = 1024


def fold_storage(procedure: Procedure, tensor: str, axis: int, factor: int = 0) -> Procedure:
    """Keep ``factor`` places of a temporary along an axis and use them over and over (Halide
    ``fold_storage``); 0, the default, means as few as will do.

    Before::

        allocate a[n + 2]
        for i in n:
          a[i + 2] = f(i + 2)
          b[i] = a[i] + a[i + 1] + a[i + 2]

    After ``fold_storage("a", 0, 3)``::

        allocate a[3]
        for i in n:
          a[(i + 2) % 3] = f(i + 2)
          b[i] = a[i % 3] + a[(i + 1) % 3] + a[(i + 2) % 3]

    Legal if no value is overwritten before its last read: for two places whose distance is a
    multiple of the factor, none is written between the last write and a read of the other.

    Raises:
        ScheduleError: if there is no such temporary or axis, the factor saves nothing, or a value
            would be lost; then it has the iteration that reads and the one that overwrites.
    """
    op = "fold_storage"
    allocate = find_temporary(op, procedure, tensor)
    shape = allocate.tensor.shape
    axis = whole_argument(op, "an axis", axis, 0)
    factor = whole_argument(op, "a factor", factor, 0)
    if axis >= len(shape):
        raise ScheduleError(op, f"expected an axis below {len(shape)}, found {axis}")
    size = simplify(shape[axis])
    most = int(size.value) if isinstance(size, Const) else MAX_FACTOR
    if most < 2:
        raise ScheduleError(op, f"{tensor} has one place on axis {axis}, and cannot have fewer")
    if factor >= most and isinstance(size, Const):
        raise ScheduleError(op, f"expected a factor below the extent {most}, found {factor}")
    found = overwrites(procedure, allocate.tensor, axis)
    if not found.life.is_affine:
        raise ScheduleError(op, f"{tensor} is touched at places that are not affine")
    if factor == 0:
        factor = _smallest(found, tensor, axis, print_expr(size), most)
    conflict = found.conflict(factor)
    if conflict is not None:
        reason = f"{factor} places of {tensor} on axis {axis} are too few: one is overwritten early"
        raise ScheduleError(op, reason, str(conflict))
    return finish(op, _folded(procedure, allocate, axis, factor))


def _smallest(found: Overwrites, tensor: str, axis: int, size: str, most: int) -> int:
    factor = found.smallest(most)
    if factor is None:
        reason = f"fewer than the {size} places of {tensor} on axis {axis} would not do"
        raise ScheduleError("fold_storage", reason, str(found.conflict(most - 1)))
    return factor


def _folded(procedure: Procedure, allocate: Allocate, axis: int, factor: int) -> Procedure:
    name = allocate.tensor.name

    def place(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        index = simplify(Binary("mod", indices[axis], whole(factor)))
        return (*indices[:axis], index, *indices[axis + 1 :])

    def fold(node: Expr) -> Expr:
        if isinstance(node, Load) and node.tensor == name:
            return Load(name, place(node.indices))
        return node

    def statement(node: Stmt) -> Stmt:
        match node:
            case Store(tensor, indices) | Prefetch(tensor, indices) if tensor == name:
                return replace(node, indices=place(indices))
            case Allocate(tensor, body) if tensor.name == name:
                shape = (*tensor.shape[:axis], whole(factor), *tensor.shape[axis + 1 :])
                return Allocate(replace(tensor, shape=shape), body)
        return node

    return replace(
        procedure, body=map_statements(procedure.body, lambda e: map_expression(e, fold), statement)
    )
