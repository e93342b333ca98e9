"""What is iterated at a loop variable, and its positions and coordinates."""

from __future__ import annotations

from kernelwright.env.compiler.ir.nodes import (
    Expr,
)
from kernelwright.env.compiler.sparse.bound import Bound
from kernelwright.env.compiler.sparse.concrete import (
    MOST_MERGED,
    Concrete,
    assigns,
    contribution,
)
from kernelwright.env.compiler.sparse.lattice import FULL, Point, points
from kernelwright.env.compiler.sparse.levels.base import minus, plus
from kernelwright.env.compiler.sparse.notation import (
    Access,
    accesses,
)
from kernelwright.env.compiler.sparse.program import Program, SparseError


def read(program: Program, body: Concrete) -> tuple[Access, ...]:
    """All accesses that a statement reads, workspaces left out."""
    found = (a for each in assigns(body) for a in accesses(each.expression))
    return tuple(a for a in dict.fromkeys(found) if program.workspace(a.tensor) is None)


def iterators(var: str, body: Concrete, bound: Bound) -> dict[Access, int]:
    """The accesses that have to be iterated at a variable, with the number of the level.

    Raises:
        SparseError: if a level above has not been followed yet.
    """
    out = {}
    for access in read(bound.program, body):
        if bound.program.is_plain(access.tensor):
            continue
        depth = bound.place(access).depth
        for number in range(depth, len(bound.program.format(access.tensor).levels)):
            if bound.program.loop(access, number) != var:
                continue
            if bound.program.level(access, number).full:
                break
            if number != depth:
                above = bound.program.loop(access, depth)
                raise SparseError(
                    f"{access.tensor} stores {above} before {var}, found forall {var} outside "
                    f"forall {above}"
                )
            out[access] = number
    return out


def merge_points(
    program: Program, body: Concrete, steps: dict[Access, int], var: str
) -> tuple[Point, ...]:
    """The points of a variable's merge lattice.

    Raises:
        SparseError: if iterators that are not ordered would have to be merged, or too many.
    """
    listed = {
        access
        for each in assigns(body)
        for access in accesses(each.expression)
        if (space := program.workspace(access.tensor)) and space.listed
    }

    def kind(access: Access) -> str:
        if access in listed and var in access.indices:
            return "iterate"
        if access not in steps:
            return "full"
        return "either" if program.level(access, steps[access]).locates else "iterate"

    found = points(contribution(body), kind)
    merged = frozenset().union(*found) - {FULL}
    if len(found) > 1 and len(merged) > MOST_MERGED:
        names = ", ".join(sorted(access.tensor for access in merged))
        raise SparseError(
            f"{var}: expected a sum of at most {MOST_MERGED} sparse operands at once, whose loops "
            f"are as many as 2 to the power of that, found {names}; add them up in several "
            "statements"
        )
    for point in found:
        for access in point - {FULL} if len(point) > 1 else ():
            if access in steps and not program.level(access, steps[access]).ordered:
                others = ", ".join(sorted(a.tensor or "a dense operand" for a in point))
                raise SparseError(
                    f"{access.tensor}: expected an ordered level at {var} to merge "
                    f"({others}), found {program.level(access, steps[access]).text}"
                )
    return found


def count(access: Access, number: int, bound: Bound) -> Expr:
    """How many positions an iterator goes through."""
    place = bound.place(access)
    kind = bound.program.level(access, number)
    if place.until is not None:
        return minus(place.until, place.position)
    return kind.count(bound.site(access, number), place.position)


def position(access: Access, number: int, bound: Bound, k: Expr) -> Expr:
    """An iterator's k-th position."""
    place = bound.place(access)
    if place.until is not None:
        return plus(place.position, k)
    kind = bound.program.level(access, number)
    return kind.position(bound.site(access, number), place.position, k)


def coordinate(access: Access, number: int, bound: Bound, position: Expr) -> Expr:
    """The coordinate at an iterator's position."""
    kind = bound.program.level(access, number)
    return kind.coordinate(bound.site(access, number), bound.place(access).position, position)
