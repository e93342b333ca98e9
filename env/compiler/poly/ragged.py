"""Rows that lie one behind the other in an array: ``out[pos[e] + p]`` for ``p`` below
``pos[e + 1] - pos[e]``, the positions of a compressed level (Kjolstad et al., The Tensor Algebra
Compiler, OOPSLA 2017, section 3).

Where the elements of ``pos`` never descend, no two pairs (e, p) have one place: for e < f,
``pos[e] + p < pos[e + 1] <= pos[f]``. So that is the element (e, p) of an array with an axis more,
and where all accesses of a tensor are of this form, with one ``pos``, they meet where e and p are
equal. The row e may be of such a form itself: a compressed level under another.

A tensor with one access of another form keeps its indices, of which nothing is known then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from kernelwright.env.compiler.ir.linear import Linear
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Cast,
    Expr,
    For,
    Load,
    Procedure,
    Stmt,
    Store,
    Var,
    loops,
    map_expression,
    map_statements,
)
from kernelwright.env.compiler.ir.queries import has_loads, loads, stores
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.sums import linear

_Indices: TypeAlias = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """An index as a row and what is in it: the tensors of positions, outermost row first, and the
    coordinates, one more than there are of those.
    """

    positions: tuple[str, ...]
    coordinates: _Indices


@dataclass(frozen=True, slots=True)
class _Known:
    """The tensors whose elements never descend, and the loops by their variables, which are their
    own: an index that has one is inside it.
    """

    positions: frozenset[str]
    loops: Mapping[str, For]

    def place(self, index: Expr) -> _Place | None:
        """An index as a row and what is in it, None if it reads memory otherwise."""
        form = linear(index)
        read = [(term, factor) for term, factor in form.terms if has_loads(term)]
        if not read:
            return _Place((), (index,))
        others = [(term, factor) for term, factor in form.terms if not has_loads(term)]
        match read, others:
            case [(start, 1)], [(Var(var), 1)] if form.constant == 0 and var in self.loops:
                position = self._position(start)
            case _:
                return None
        if position is None or not self._is_row(self.loops[var], start, position):
            return None
        row = self.place(position.indices[0])
        if row is None:
            return None
        return _Place((*row.positions, position.tensor), (*row.coordinates, Var(var)))

    def _position(self, node: Expr) -> Load | None:
        """The element of positions that an expression is, without loss."""
        load = node.operand if isinstance(node, Cast) and node.dtype == "int64" else node
        if isinstance(load, Load) and load.tensor in self.positions:
            return load
        return None

    def _is_row(self, loop: For, start: Expr, position: Load) -> bool:
        """Whether a loop has the extent of the row that starts at a position."""
        following = Load(position.tensor, (Binary("add", position.indices[0], whole(1)),))
        end: Expr = Cast("int64", following) if isinstance(start, Cast) else following
        beside = linear(loop.extent).plus(linear(Binary("sub", end, start)), -1)
        return beside == Linear(0)

    def indices(self, found: Iterator[_Indices]) -> dict[_Indices, _Indices]:
        """The indices under which a tensor is accessed with those of rows; none if they are not all
        of one form, or none is ragged.
        """
        out: dict[_Indices, _Indices] = {}
        forms: set[tuple[tuple[str, ...], ...]] = set()
        for indices in found:
            if indices in out:
                continue
            places = [self.place(index) for index in indices]
            known = [place for place in places if place is not None]
            forms.add(tuple(place.positions for place in known))
            if len(known) < len(places) or len(forms) > 1:
                return {}
            out[indices] = tuple(each for place in known for each in place.coordinates)
        return out if any(map(any, forms)) else {}


def with_rows(procedure: Procedure) -> Procedure:
    """The procedure as dependences may see it: tensors that are written have an index for every row
    around an element in the place of its position, where all of their accesses are of that form.

    Their shapes are those of the indices before: it is for models of dependences alone.
    """
    positions = frozenset(t.name for t in procedure.tensors if "ascending" in t.facts)
    if not positions:
        return procedure
    known = _Known(positions, {loop.var: loop for loop in loops(procedure)})
    accesses: list[Store | Load] = [*stores(procedure.body), *loads(procedure.body)]
    rows: dict[str, dict[_Indices, _Indices]] = {}
    for tensor in dict.fromkeys(each.tensor for each in accesses if isinstance(each, Store)):
        touching = (each.indices for each in accesses if each.tensor == tensor)
        rows[tensor] = known.indices(touching)

    def load(node: Expr) -> Expr:
        if isinstance(node, Load) and rows.get(node.tensor):
            return replace(node, indices=rows[node.tensor][node.indices])
        return node

    def statement(node: Stmt) -> Stmt:
        if isinstance(node, Store) and rows[node.tensor]:
            return replace(node, indices=rows[node.tensor][node.indices])
        return node

    body = map_statements(procedure.body, lambda e: map_expression(e, load), statement)
    return replace(procedure, body=body)
