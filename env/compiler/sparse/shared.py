"""A target that shares the structure of an operand: its levels are the operand's, and only values
are written, at the operand's positions.
"""

from __future__ import annotations

from kernelwright.env.compiler.sparse.concrete import without
from kernelwright.env.compiler.sparse.format import Diagonal, Outer
from kernelwright.env.compiler.sparse.notation import Access, access_text, accesses
from kernelwright.env.compiler.sparse.program import Program, SparseError


def sharer(program: Program) -> Access:
    """The access to the operand whose structure the target has: the one by the target's indices.

    Raises:
        SparseError: if there is none.
    """
    wanted = Access(str(program.structure), program.assignment.target.indices)
    if wanted not in accesses(program.assignment.expression):
        raise SparseError(
            f"{access_text(program.assignment.target)}: expected {access_text(wanted)} as an "
            f"operand, whose structure it is to share, found none"
        )
    return wanted


def check_shared(program: Program) -> None:
    """Refuse a structure that cannot hold the result.

    Raises:
        SparseError: if the operand is no sparse tensor, or the result need not be zero where the
            operand is.
    """
    target, own = program.assignment.target, sharer(program)
    if program.is_plain(own.tensor):
        raise SparseError(
            f"{access_text(target)}: expected the structure of a sparse operand, found "
            f"{own.tensor}, which is an array"
        )
    if without(program.assignment.expression, {own}) is not None:
        raise SparseError(
            f"{access_text(target)}: expected a result that is zero wherever {own.tensor}, whose "
            f"structure it is to share, has no element, found a term without {access_text(own)}"
        )


def has_places_without_elements(program: Program) -> bool:
    """Whether the shared structure has places of values that no loop visits: padding, empty places
    of tables, and what blocks and diagonals have outside of the tensor.
    """
    return any(
        not kind.compact or isinstance(dimension, Outer | Diagonal)
        for kind, dimension in program.format(str(program.structure)).levels
    )
