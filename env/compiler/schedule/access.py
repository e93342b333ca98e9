"""Finding tensors and rewriting what accesses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from kernelwright.env.compiler.errors import ScheduleError, did_you_mean
from kernelwright.env.compiler.ir.accesses import accesses
from kernelwright.env.compiler.ir.names import is_free, is_identifier
from kernelwright.env.compiler.ir.nodes import (
    MEMORY_SCOPES,
    Allocate,
    Barrier,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    Tensor,
    While,
    map_expression,
    statements,
)
from kernelwright.env.compiler.ir.queries import mentions, tensors_by_name
from kernelwright.env.compiler.schedule.defaults import numbered_name
from kernelwright.env.compiler.schedule.edit import taken_names, whole_argument
from kernelwright.env.compiler.schedule.ranges import Ranges

# The tensor and the indices that take the place of an access.
Element = tuple[str, tuple[Expr, ...]]
Rewrite = Callable[[tuple[Expr, ...], Ranges], Element]


def find_tensor(op: str, procedure: Procedure, name: str) -> Tensor:
    """The tensor of a name.

    Raises:
        ScheduleError: if there is none; it lists the tensors and the nearest name.
    """
    known = tensors_by_name(procedure)
    if name not in known:
        hint = did_you_mean(name, known)
        raise ScheduleError(
            op, f"expected one of the tensors {', '.join(known)}, found {name!r}{hint}"
        )
    return known[name]


def find_temporary(op: str, procedure: Procedure, name: str) -> Tensor:
    """The temporary of a name, whose layout is the compiler's to choose.

    Raises:
        ScheduleError: if there is no such tensor, or it is an argument.
    """
    found = find_tensor(op, procedure, name)
    if found.role != "temporary":
        through = "cache_read" if found.role == "input" else "cache_write"
        reason = f"expected a temporary, found the {found.role} {name}, whose layout callers know"
        raise ScheduleError(op, f"{reason}; {through} makes a temporary of it")
    return found


def checked_axis(op: str, tensor: Tensor, axis: int) -> int:
    """The number of an axis of a tensor.

    Raises:
        ScheduleError: if it has no such axis.
    """
    number = whole_argument(op, "an axis", axis, 0)
    if number >= len(tensor.shape):
        expected = f"an axis below {len(tensor.shape)} of {tensor.name}"
        raise ScheduleError(op, f"expected {expected}, found {axis}")
    return number


def check_scope(op: str, scope: str) -> None:
    """Check that there is a memory scope of a name.

    Raises:
        ScheduleError: if there is none.
    """
    if scope not in MEMORY_SCOPES:
        raise ScheduleError(op, f"expected one of {', '.join(MEMORY_SCOPES)}, found {scope!r}")


def new_tensor_name(op: str, procedure: Procedure, given: str, usual: str) -> str:
    """A name for a new tensor: the given one, or the first free one after the usual.

    Raises:
        ScheduleError: if the given one is taken, is no identifier, or is a word of C.
    """
    taken = taken_names(procedure)
    if given == "":
        return numbered_name(usual, taken)
    if not is_identifier(given) or given in taken or not is_free(given):
        raise ScheduleError(op, f"expected a free name for a tensor, found {given!r}")
    return given


def rewritten(
    node: Stmt, tensor: str, ranges: Ranges, rewrite: Rewrite, *, hints: bool = True
) -> Stmt:
    """The statement with every access of a tensor replaced; ``rewrite`` gets the indices and the
    loops around them. Prefetches stay as they are without ``hints``.
    """

    def expression(each: Expr, known: Ranges) -> Expr:
        def load(part: Expr) -> Expr:
            if isinstance(part, Load) and part.tensor == tensor:
                return Load(*rewrite(part.indices, known))
            return part

        return map_expression(each, load)

    def statement(each: Stmt, known: Ranges) -> Stmt:
        match each:
            case Store(name, indices, value):
                indices = tuple(expression(index, known) for index in indices)
                value = expression(value, known)
                if name == tensor:
                    name, indices = rewrite(indices, known)
                return replace(each, tensor=name, indices=indices, value=value)
            case Prefetch(name, indices, write, locality) if name == tensor and hints:
                name, indices = rewrite(indices, known)
                return Prefetch(name, indices, write, locality)
            case Prefetch() | Barrier():
                return each
            case For(var, extent, body, kind):
                extent = expression(extent, known)
                return For(var, extent, statement(body, {**known, var: extent}), kind)
            case If(condition, then):
                return If(expression(condition, known), statement(then, known))
            case While(condition, body):
                return While(expression(condition, known), statement(body, known))
            case Block(items):
                return Block(tuple(statement(item, known) for item in items))
            case Allocate(local, body):
                return Allocate(local, statement(body, known))
            case Call(instruction, body):
                return Call(instruction, statement(body, known))
            case _:
                assert_never(each)

    return statement(node, ranges)


def no_instructions(op: str, node: Stmt, tensor: str) -> None:
    """Refuse to give an instruction other operands than those it was matched with.

    Raises:
        ScheduleError: if an instruction in the statement accesses the tensor.
    """
    for each in statements(node):
        if isinstance(each, Call) and any(a.tensor == tensor for a in accesses(each.body)):
            reason = f"the instruction {each.instruction} was matched with accesses of {tensor}"
            raise ScheduleError(op, f"{reason}; tensorize after this directive")


def fitting_lanes(node: Stmt, tensor: str, shape: Sequence[Expr]) -> int:
    """In vectors of how many elements a temporary of a shape is best copied that stands for a
    tensor: those of the vectorized loops that move its accesses, if they have one width that
    divides its rows; else 1.
    """
    widths = {
        int(loop.extent.value)
        for access in accesses(node)
        if access.tensor == tensor
        for loop in access.loops
        if loop.kind is LoopKind.VECTORIZED and isinstance(loop.extent, Const)
        if any(mentions(index, loop.var) for index in access.indices)
    }
    row = shape[-1] if shape else None
    if len(widths) != 1 or not isinstance(row, Const):
        return 1
    width = widths.pop()
    return width if int(row.value) > 0 and int(row.value) % width == 0 else 1
