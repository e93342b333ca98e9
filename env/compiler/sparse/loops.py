"""Loops of one variable that need no merge: over all coordinates, the positions of one level, or
the list of a workspace; and the body at a coordinate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    Var,
    map_expression,
    map_statements,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.sparse.bound import Bound, Place
from kernelwright.env.compiler.sparse.concrete import (
    Concrete,
    assigns,
    restricted,
)
from kernelwright.env.compiler.sparse.iterate import (
    coordinate,
    count,
    position,
    read,
)
from kernelwright.env.compiler.sparse.lattice import Point
from kernelwright.env.compiler.sparse.levels.base import minus, plus
from kernelwright.env.compiler.sparse.minted import scalar
from kernelwright.env.compiler.sparse.notation import (
    Access,
)
from kernelwright.env.compiler.sparse.program import Program

if TYPE_CHECKING:
    from kernelwright.env.compiler.sparse.lower import Lowering


class Inside:
    """What the loops of one forall have in common."""

    def __init__(
        self,
        var: str,
        body: Concrete,
        steps: dict[Access, int],
        bound: Bound,
        pending: bool,
        target: Access,
    ) -> None:
        self.var, self.body, self.steps = var, body, steps
        self.bound, self.pending, self.target = bound, pending, target


def _renamed(node: Expr, names: Mapping[str, str]) -> Expr:
    """An expression with other names of scalars."""

    def change(part: Expr) -> Expr:
        if isinstance(part, Load) and part.tensor in names:
            return Load(names[part.tensor], part.indices)
        return part

    return map_expression(node, change)


def _renamed_in(node: Stmt, names: Mapping[str, str]) -> Stmt:
    """A statement with other names of scalars."""

    def change(part: Stmt) -> Stmt:
        if isinstance(part, Store) and part.tensor in names:
            return replace(part, tensor=names[part.tensor])
        return part

    return map_statements(node, lambda e: _renamed(e, names), change)


def one_iterator(lowering: Lowering, inside: Inside, access: Access) -> Stmt:
    """A loop over the positions of one level."""
    number, bound = inside.steps[access], inside.bound
    trips = simplify(count(access, number, bound))
    is_one = trips == whole(1)
    name = "" if is_one else lowering.names.new(inside.var)
    here = position(access, number, bound, whole(0) if is_one else Var(name))
    value = coordinate(access, number, bound, here)
    kind, place = lowering.program.level(access, number), bound.place(access)
    now = bound.with_place(access, Place(number + 1, here))
    there = kind.present(bound.site(access, number), place.position, here)
    body = at(lowering, inside, now, value, frozenset((access,)))
    if there is not None and not _is_harmless(lowering, access, number, inside):
        body = If(there, body)
    return body if is_one else For(name, trips, body)


def has_runs(lowering: Lowering, access: Access, inside: Inside) -> bool:
    """Whether positions of one coordinate have to be visited as one: the level is not unique,
    and the target appends here or stores instead of adding up.
    """
    if lowering.program.level(access, inside.steps[access]).unique:
        return False
    target = inside.target
    if lowering.assembly.appends(target, inside.var) or lowering.assembly.appends_below(
        target, inside.bound
    ):
        return True
    return not all(each.accumulate for each in assigns(inside.body))


def _is_harmless(lowering: Lowering, access: Access, number: int, inside: Inside) -> bool:
    """Whether positions that hold no coordinate may be visited like others: their value is zero
    and is only added, or the loops outside leave them out.
    """
    kind = lowering.program.level(access, number)
    if kind.computed:
        return access in inside.bound.trimmed
    adds = all(each.accumulate for each in assigns(inside.body))
    return kind.relaxes and adds and not lowering.assembly.appends(inside.target, inside.var)


def listed(lowering: Lowering, inside: Inside, access: Access) -> Stmt:
    """A loop over the elements of a workspace that are in use."""
    space = lowering.program.workspace(access.tensor)
    assert space is not None
    name = lowering.names.new(inside.var)
    value = lowering.workspaces.coordinate(space, Var(name))
    body = at(lowering, inside, inside.bound, value, frozenset((access,)))
    clear = lowering.workspaces.cleared(space, value)
    return For(name, lowering.workspaces.count(space), Block((body, clear)))


def every_coordinate(lowering: Lowering, inside: Inside, point: Point) -> Stmt:
    """A loop over all coordinates."""
    name = lowering.names.new(inside.var)
    trim = _trimmed(lowering.program, inside)
    if trim is None:
        body = at(lowering, inside, inside.bound, Var(name), point)
        return For(name, lowering.program.extent(inside.var), body)
    access, start, count = trim
    now = inside.bound.with_trimmed(access)
    return For(name, count, at(lowering, inside, now, plus(start, Var(name)), point))


def _trimmed(program: Program, inside: Inside) -> tuple[Access, Expr, Expr] | None:
    """The access that is stored by diagonals with its rows here, and of the diagonal at hand
    the first row and the number of rows that have a column; None where it is not needed in
    all that is computed.
    """
    for access in read(program, inside.body):
        form = program.format(access.tensor)
        for number in range(len(form.levels)):
            addends = form.addends(number + 1)
            if addends is None or program.loop(access, addends[1] - 1) != inside.var:
                continue
            diagonal = inside.bound.index(program.loop(access, addends[0] - 1))
            if diagonal is None or restricted(inside.body, {access}) is not None:
                continue
            rows = program.extent(inside.var)
            columns = program.extent(program.loop(access, number))
            # column = diagonal + row - (rows - 1), from 0 to columns - 1
            lead = minus(minus(rows, whole(1)), diagonal)
            start = Binary("max", lead, whole(0))
            end = Binary("min", plus(lead, columns), rows)
            return access, start, minus(end, start)
    return None


def at(
    lowering: Lowering,
    inside: Inside,
    bound: Bound,
    value: Expr,
    point: Point,
    merged: bool = False,
) -> Stmt:
    """The body at a coordinate where just the iterators of a point are."""
    absent = {a for a in inside.steps if a not in point}
    # Of a product, what another operand steers and this one can locate.
    absent = {
        a for a in absent if not (lowering.program.level(a, inside.steps[a]).locates and point)
    }
    body = restricted(inside.body, absent)
    if body is None:
        return Block(())
    now = bound.with_coordinate(inside.var, value)
    target = inside.target
    now, search, scalars = _located(lowering, inside, body, now, value, point)
    now, opening, after = lowering.assembly.entered(target, inside.var, now)
    now = now.located((*read(lowering.program, body), target))
    lowered = lowering.statement(body, now, pending=inside.pending, target=target)
    guard = now.guard(inside.var)
    out = Block((*opening, lowered, *after)) if opening or after else lowered
    if lowering.assembly.appends(target, inside.var):
        # What a product has nothing of is not appended as a zero.
        for access in inside.steps:
            there = now.place(access).found
            if access not in point and there and restricted(body, {access}) is None:
                out = If(there, out)
    if guard is not None:
        out = If(guard, out)
    out = Block((*search, out)) if search else out
    for name in scalars:
        out = Allocate(scalar(name), out)
    return out


def _located(
    lowering: Lowering, inside: Inside, body: Concrete, now: Bound, value: Expr, point: Point
) -> tuple[Bound, list[Stmt], list[str]]:
    """Accesses that are found at a coordinate to which others have led, with the statements
    that find them and their scalars.
    """
    search: list[Stmt] = []
    scalars: list[str] = []
    for access, number in inside.steps.items():
        if access in point or access not in read(lowering.program, body):
            continue
        kind, place = lowering.program.level(access, number), now.place(access)
        at = kind.locate(now.site(access, number), place.position, value)
        # Other than the level's own names, by which no coordinate or position is known then.
        fresh = {old: lowering.names.new(f"{old}_at_{inside.var}") for old in at.scalars}
        found = None if at.found is None else _renamed(at.found, fresh)
        now = now.with_place(access, Place(number + 1, _renamed(at.position, fresh), None, found))
        search += [_renamed_in(each, fresh) for each in at.before]
        scalars += fresh.values()
    return now, search, scalars
