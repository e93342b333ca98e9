"""Directives that change how a temporary is stored: pack, reorder_storage, storage_align, pad,
set_scope, bound_storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Const,
    Expr,
    Procedure,
    Stmt,
    Tensor,
    map_statements,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import product, simplify, simplify_procedure, whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.poly.reach import outside
from kernelwright.env.compiler.schedule.access import (
    Element,
    check_scope,
    checked_axis,
    find_temporary,
    find_tensor,
    no_instructions,
    rewritten,
)
from kernelwright.env.compiler.schedule.cache import PADDINGS, ROOT, read_through
from kernelwright.env.compiler.schedule.edit import finish, whole_argument
from kernelwright.env.compiler.schedule.layout import Digit, Layout, parse_layout
from kernelwright.env.compiler.schedule.ranges import Ranges, linear

Indices = Callable[[tuple[Expr, ...], Ranges], tuple[Expr, ...]]


def pack(
    procedure: Procedure,
    tensor: str,
    layout: str,
    loop: str = ROOT,
    scope: str = "auto",
    padding: str = "undefined",
    name: str = "",
) -> Procedure:
    """Store a tensor in another order, cut into blocks (TVM ``transform_layout``; packing in
    Goto and van de Geijn, TOMS 2008): an input through a copy that the kernel makes, a temporary
    in place.

    Before::

        for j in n:
          for k in m:
            y[j] += B[k, j]

    After ``pack("B", "k j -> j/16 k j%16")``::

        allocate B_packed: float32[(n + 15) // 16, m, 16]
        for B_packed_in0 in (n + 15) // 16:
          for B_packed_in1 in m:
            for B_packed_in2 in 16:
              if B_packed_in0 * 16 + B_packed_in2 < n:
                B_packed[B_packed_in0, B_packed_in1, B_packed_in2] = B[...]
        for j in n:
          for k in m:
            y[j] += B_packed[j // 16, k, j % 16]

    ``loop`` copies what an iteration of it reads, as `cache_read` does; it and what follows are for
    inputs and outputs. A last block that is not whole ends in elements that nothing reads:
    ``padding`` leaves them ``undefined``, or makes them ``zero`` for `pad` to rely on.

    Raises:
        ScheduleError: if there is no such tensor, the layout is none of it, or as `cache_read`
            does.
    """
    found = find_tensor("pack", procedure, tensor)
    chosen = parse_layout("pack", layout, len(found.shape))
    if padding not in PADDINGS:
        expected = " or ".join(PADDINGS)
        raise ScheduleError("pack", f"expected a padding of {expected}, found {padding!r}")
    if found.role == "temporary":
        if (loop, scope, padding, name) != (ROOT, "auto", PADDINGS[0], ""):
            reason = f"{tensor} is a temporary and changes in place: expected a layout alone"
            raise ScheduleError("pack", f"{reason}; cache_read makes a copy of it")
        return _laid_out("pack", procedure, found, chosen)
    return read_through(
        "pack", procedure, found, loop, scope, name, chosen, padding, usual="packed"
    )


def reorder_storage(procedure: Procedure, tensor: str, *axes: int) -> Procedure:
    """Store the axes of a temporary in another order, outermost first (Halide ``reorder_storage``,
    which lists the innermost first). Always legal.

    Before::

        allocate t: float32[n, 8]
        for i in n:
          for j in 8:
            t[i, j] = x[i, j]

    After ``reorder_storage("t", 1, 0)``::

        allocate t: float32[8, n]
        for i in n:
          for j in 8:
            t[j, i] = x[i, j]

    Raises:
        ScheduleError: if there is no such temporary, or the axes are not each of its axes once.
    """
    found = find_temporary("reorder_storage", procedure, tensor)
    if sorted(map(_axis_number, axes)) != list(range(len(found.shape))):
        expected = f"each axis from 0 to {len(found.shape) - 1} of {tensor} once"
        raise ScheduleError("reorder_storage", f"expected {expected}, found {axes}")
    order = Layout(tuple(Digit(axis) for axis in axes))
    return _laid_out("reorder_storage", procedure, found, order)


def _axis_number(axis: object) -> int:
    return axis if isinstance(axis, int) and not isinstance(axis, bool) else -1


def _laid_out(op: str, procedure: Procedure, tensor: Tensor, layout: Layout) -> Procedure:
    def place(indices: tuple[Expr, ...], ranges: Ranges) -> tuple[Expr, ...]:
        return layout.place([linear(index, ranges) for index in indices], ranges)

    return _reshaped(op, procedure, tensor, layout.shape(tensor.shape), place)


def storage_align(
    procedure: Procedure, tensor: str, axis: int, factor: int, offset: int = 0
) -> Procedure:
    """Space the elements along an axis of a temporary so that the distance between two neighbours
    is ``offset`` more than a multiple of ``factor`` elements (TVM ``storage_align``; Halide
    ``align_storage``). Always legal: the elements between are never touched.

    Before::

        allocate t: float32[64, 1024]

    After ``storage_align("t", 0, 1024, 16)``; rows no longer fall into one set of the cache::

        allocate t: float32[64, 1040]

    Raises:
        ScheduleError: if there is no such temporary or axis, the axis is the last (its elements lie
            side by side), an extent behind it is no number, or no wider axis gives that distance.
    """
    op = "storage_align"
    found = find_temporary(op, procedure, tensor)
    axis = checked_axis(op, found, axis)
    factor = whole_argument(op, "a factor", factor)
    offset = whole_argument(op, "an offset", offset, 0) % factor
    if axis == len(found.shape) - 1:
        reason = f"elements along axis {axis} of {tensor}, the last, lie side by side"
        raise ScheduleError(op, f"{reason}; expected an axis before it")
    behind, *others = found.shape[axis + 1 :]
    step = simplify(product(others))
    if not isinstance(step, Const) or not (isinstance(behind, Const) or step == whole(1)):
        unknown = next(size for size in (behind, *others) if not isinstance(size, Const))
        reason = f"expected numbers behind axis {axis} of {tensor}, found {print_expr(unknown)}"
        raise ScheduleError(op, reason)
    wider = _wider(behind, int(step.value), factor, offset)
    if wider is None:
        reason = f"a distance in steps of {step.value} elements is never {offset} modulo {factor}"
        raise ScheduleError(op, f"{reason}: expected another offset")
    shape = (*found.shape[: axis + 1], wider, *others)
    return _reshaped(op, procedure, found, shape, lambda indices, _: indices)


def _wider(size: Expr, step: int, factor: int, offset: int) -> Expr | None:
    """The least extent from ``size`` on of which ``step`` times is ``offset`` modulo ``factor``."""
    if isinstance(size, Const):
        least = int(size.value)
        # After that many steps the remainders come again.
        fitting = (least + k for k in range(factor) if (least + k) * step % factor == offset)
        found = next(fitting, None)
        return None if found is None else whole(found)
    over = linear(size).plus(Linear(factor - 1 - offset))
    blocks = Binary("floordiv", over.expression(), whole(factor))
    return linear(Binary("mul", blocks, whole(factor))).plus(Linear(offset)).expression()


def set_scope(procedure: Procedure, tensor: str, scope: str) -> Procedure:
    """Say in which memory a temporary lives (TVM ``set_scope``; Halide ``store_in``): ``auto``,
    ``heap``, ``stack``, ``register``, of threads ``shared`` and ``local``, of an accelerator
    ``scratchpad`` and ``accumulator``.

    Before::

        allocate t: float32[8]

    After ``set_scope("t", "register")``::

        allocate t: float32[8]  # register

    Values do not change. The stack and registers have room for a known number of elements; what is
    in registers must be accessed at indices that are numbers once loops are unrolled and
    vectorized, which is for later directives to see to: the generated C is refused otherwise.

    Raises:
        ScheduleError: if there is no such temporary or scope, or its size is not known.
    """
    op = "set_scope"
    found = find_temporary(op, procedure, tensor)
    check_scope(op, scope)
    unknown = [size for size in found.shape if not isinstance(size, Const)]
    if scope in ("stack", "register") and unknown:
        reason = f"expected a shape in numbers for {scope}, found {print_expr(unknown[0])}"
        raise ScheduleError(op, f"{reason} in {tensor}; bound_storage states one")
    return finish(op, _replaced(procedure, found, replace(found, scope=scope)))


def bound_storage(procedure: Procedure, tensor: str, axis: int, extent: int) -> Procedure:
    """Give an axis of a temporary a number of elements, where its extent is not known or too large
    (Halide ``bound_storage``).

    Before::

        allocate t: float32[n]
        for i in min(n, 8):
          t[i] = x[i]

    After ``bound_storage("t", 0, 8)``::

        allocate t: float32[8]
        for i in min(n, 8):
          t[i] = x[i]

    Legal if no access reaches further, for no values of the extents: it is proved, not promised.

    Raises:
        ScheduleError: if there is no such temporary or axis, or an access may reach further; then
            it has the iteration.
    """
    op = "bound_storage"
    found = find_temporary(op, procedure, tensor)
    axis = checked_axis(op, found, axis)
    extent = whole_argument(op, "an extent", extent)
    example = outside(procedure, tensor, axis, extent)
    if example is not None:
        reason = f"{tensor} is accessed beyond {extent} elements of axis {axis}"
        raise ScheduleError(op, reason, str(example))
    shape = (*found.shape[:axis], whole(extent), *found.shape[axis + 1 :])
    return _reshaped(op, procedure, found, shape, lambda indices, _: indices)


def _reshaped(
    op: str, procedure: Procedure, tensor: Tensor, shape: Sequence[Expr], place: Indices
) -> Procedure:
    """The procedure with a temporary of another shape, accessed at other places."""
    no_instructions(op, procedure.body, tensor.name)
    new = replace(tensor, shape=tuple(shape))

    def rewrite(indices: tuple[Expr, ...], ranges: Ranges) -> Element:
        return tensor.name, place(indices, ranges)

    body = rewritten(procedure.body, tensor.name, {}, rewrite)
    # Elements stay apart, so whatever order was legal still is.
    return verify(simplify_procedure(_replaced(replace(procedure, body=body), tensor, new)))


def _replaced(procedure: Procedure, tensor: Tensor, new: Tensor) -> Procedure:
    def declare(node: Stmt) -> Stmt:
        if isinstance(node, Allocate) and node.tensor.name == tensor.name:
            return Allocate(new, node.body)
        return node

    return replace(procedure, body=map_statements(procedure.body, lambda e: e, declare))
