"""Stored elements in parts of equal length, whatever rows they are in (Merrill and Garland,
Merge-Based Parallel Sparse Matrix-Vector Multiplication, SC 2016, of which this is the cut by
nonzeros alone).

A part finds the row of its first element by bisection. What it adds to that row goes to a carry of
its own, since the part before may be at work on the same row; all other rows that it adds to begin
inside it, so they are no other part's. The carries are added when all parts are done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    Expr,
    For,
    If,
    Load,
    Select,
    Stmt,
    Store,
    Tensor,
    Var,
    While,
)
from kernelwright.env.compiler.ir.simplify import FALSE, whole
from kernelwright.env.compiler.sparse.bound import Bound, Place
from kernelwright.env.compiler.sparse.concrete import (
    Assign,
    Concrete,
    Forall,
    assigns,
    restricted,
)
from kernelwright.env.compiler.sparse.format import Mode
from kernelwright.env.compiler.sparse.iterate import read
from kernelwright.env.compiler.sparse.levels.base import Site, one_after, plus, times
from kernelwright.env.compiler.sparse.notation import Access
from kernelwright.env.compiler.sparse.program import Program, SparseError, Workspace
from kernelwright.env.compiler.sparse.values import where_is
from kernelwright.env.compiler.sparse.writes import zero

if TYPE_CHECKING:
    from kernelwright.env.compiler.sparse.lower import Lowering


@dataclass(frozen=True, slots=True)
class _Rows:
    """The two outermost loops, over a matrix's rows and what is stored in them."""

    access: Access
    row: str
    column: str
    body: Concrete


def _rows(program: Program, tensor: str) -> _Rows:
    """The loops that are cut.

    Raises:
        SparseError: if they are not those of a matrix stored by rows, or the target is not theirs.
    """
    named = [a for a in program.accesses[1:] if a.tensor == tensor]
    if len(named) != 1:
        known = ", ".join(dict.fromkeys(a.tensor for a in program.accesses[1:]))
        raise SparseError(f"expected an operand that is read once ({known}), found {tensor}")
    (access,) = named
    levels = program.format(tensor).levels
    shapes = [(kind.name, kind.unique, isinstance(d, Mode)) for kind, d in levels[:2]]
    if shapes != [("dense", True, True), ("compressed", True, True)]:
        raise SparseError(
            f"expected {tensor} to be stored by rows (dense, then compressed), found "
            f"{program.format(tensor).words}"
        )
    row, column = program.loop(access, 0), program.loop(access, 1)
    outer = program.concrete
    if not isinstance(outer, Forall) or outer.var != row:
        raise SparseError(f"expected forall {row} outermost, found another statement")
    inner = outer.body
    if not isinstance(inner, Forall) or inner.var != column:
        raise SparseError(f"expected forall {column} right inside forall {row}")
    target = program.assignment.target
    if not program.is_plain(target.tensor) or target.indices[:1] != (row,):
        raise SparseError(f"expected a dense result whose first index is {row}")
    for each in assigns(inner):
        if each.target != target or not each.accumulate:
            raise SparseError(f"expected a sum over {column} in {target.tensor} alone")
    # Nothing else is visited: elsewhere there must be nothing to add.
    if restricted(inner, (access,)) is not None:
        raise SparseError(f"expected {tensor} in every product, found one without it")
    for loop in (row, column):
        if loop in dict(program.blocks_of):
            raise SparseError(f"expected forall {loop} whole, found it in blocks")
    return _Rows(access, row, column, inner.body)


def balanced_loops(lowering: Lowering) -> Stmt:
    """The whole body, in parts.

    Raises:
        SparseError: if the statement is not one over a matrix's rows.
    """
    program = lowering.program
    assert program.balanced is not None
    tensor, parts = program.balanced
    rows = _rows(program, tensor)
    target, names = program.assignment.target, lowering.names
    part, carry, begins = names.new("part"), names.new("carry"), names.new("first_row")
    # The carry has the part in the place of the row.
    index, rest = f"{rows.row}_part", target.indices[1:]
    kept = Access(carry, (index, *rest))
    program = replace(
        program,
        workspaces=(*program.workspaces, Workspace(carry, kept.indices)),
        sizes=(*program.sizes, (index, whole(parts))),
    )
    lowering.program = program
    bound = Bound(program).located(program.accesses).with_coordinate(index, Var(part))
    zeros = zero(lowering, target, bound)
    clear = zero(lowering, kept, bound)
    site = program.site(rows.access, 1)
    end = site.load("pos", program.extent(rows.row))
    length = Binary("floordiv", plus(end, whole(parts - 1)), whole(parts))
    first, stop, row, at = (names.new(n) for n in ("first", "stop", "row", "at"))
    rowed, here = Load(row, ()), Load(at, ())

    def element(place: Access) -> Stmt:
        now = bound.with_place(rows.access, Place(2, here)).with_coordinate(rows.row, rowed)
        now = now.with_coordinate(rows.column, site.load("crd", here))
        now = now.located(read(program, rows.body), but=(rows.access,))
        body = _redirected(rows.body, target, place)
        return lowering.statement(body, now, pending=False, target=place)

    def until_row_ends(body: Stmt) -> Stmt:
        limit = Binary("min", Load(stop, ()), site.load("pos", one_after(rowed)))
        return While(Binary("lt", here, limit), Block((body, Store(at, (), whole(1), "add"))))

    # Before those of the carry, so that the loops inside have their plain names.
    inside = until_row_ends(element(target))
    more = While(
        Binary("lt", here, Load(stop, ())),
        Block((Store(row, (), whole(1), "add"), inside)),
    )
    lead = until_row_ends(element(kept))
    work = Block(
        (
            _bisection(lowering, site, row, Load(first, ()), program.extent(rows.row)),
            Store(begins, (Var(part),), rowed),
            Store(at, (), Load(first, ())),
            lead,
            more,
        )
    )
    empty = Store(begins, (Var(part),), whole(0))
    start = Binary("min", times(Var(part), length), end)
    body: Stmt = Block(
        (
            Store(first, (), start),
            Store(stop, (), Binary("min", plus(Load(first, ()), length), end)),
            *clear,
            empty,
            If(Binary("lt", Load(first, ()), end), work),
        )
    )
    for scalar in (at, row, stop, first):
        body = Allocate(Tensor(scalar, (), "int64", "temporary", "register"), body)
    cut = For(part, whole(parts), body, apart=True)
    again = names.new("part")
    rowed_again = bound.with_coordinate(rows.row, Load(begins, (Var(again),)))
    added = _added(lowering, target, kept, rowed_again.with_coordinate(index, Var(again)))
    # Where nothing is stored there may be no row at all.
    combined = If(Binary("lt", whole(0), end), For(again, whole(parts), added))
    out: Stmt = Block((*zeros, cut, combined))
    shape = (whole(parts), *(program.size(index) for index in rest))
    out = Allocate(Tensor(carry, shape, program.dtype, "temporary", "heap"), out)
    return Allocate(Tensor(begins, (whole(parts),), "int64", "temporary", "heap"), out)


def _redirected(node: Concrete, old: Access, new: Access) -> Concrete:
    """The statement with another target."""
    match node:
        case Assign(_, expression, accumulate):
            return Assign(new, expression, accumulate)
        case Forall(var, body):
            return Forall(var, _redirected(body, old, new))
    raise SparseError("expected foralls and one assignment inside of the rows' elements")


def _bisection(lowering: Lowering, site: Site, row: str, first: Expr, rows: Expr) -> Stmt:
    """The last row that begins at or before a position: that of the element there."""
    low, high = Load(row, ()), lowering.names.new("high")
    middle = lowering.names.new("middle")
    above, between = Load(high, ()), Load(middle, ())
    is_before = Binary("le", site.load("pos", between), first)
    step = Block(
        (
            Store(middle, (), Binary("floordiv", plus(low, above), whole(2))),
            If(is_before, Store(row, (), between)),
            If(Select(is_before, FALSE, Const(True, "bool")), Store(high, (), between)),
        )
    )
    search: Stmt = Block(
        (
            Store(row, (), whole(0)),
            Store(high, (), rows),
            While(Binary("lt", one_after(low), above), step),
        )
    )
    for scalar in (middle, high):
        search = Allocate(Tensor(scalar, (), "int64", "temporary", "register"), search)
    return search


def _added(lowering: Lowering, target: Access, carry: Access, bound: Bound) -> Stmt:
    """A carry added to its row."""
    loops: list[tuple[str, Expr]] = []
    for index in target.indices[1:]:
        name = lowering.names.new(f"{index}c")
        loops.append((name, lowering.program.size(index)))
        bound = bound.with_coordinate(index, Var(name))
    value = Load(*where_is(carry, bound))
    out: Stmt = Store(*where_is(target, bound), value, "add")
    for name, extent in reversed(loops):
        out = For(name, extent, out)
    return out
