"""The loop nests of a procedure as a searcher sees them: which loops run over places of the result
(spatial), which over what is combined there (reduction), and along which the result lies densely.

A nest is a chain of loops with nothing else between them. Where a loop's body is several
statements, the chain ends, and each of them may begin another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.linear import step_of
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Stmt,
    Store,
    Tensor,
    While,
    statements,
    walk,
)
from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.dependence import Dependences
from kernelwright.env.compiler.schedule.defaults import fused_name, split_names
from kernelwright.env.compiler.schedule.edit import constant_extent
from kernelwright.env.types import Directive


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop of a nest: its extent (None if it is no number), what it runs over, and whether its
    iterations are independent.
    """

    loop: str
    extent: int | None
    is_spatial: bool
    is_free: bool


@dataclass(frozen=True, slots=True)
class Nest:
    """A chain of loops, outermost first.

    ``dense`` is the spatial loop along which the store's elements lie side by side, if it is free;
    ``is_streamed`` says that along it every load is dense too or stands still. ``itemsize`` is the
    size in bytes of what is stored; ``iterations`` counts how often the innermost body runs.
    ``has_loads`` tells a computation from a mere filling.
    """

    axes: tuple[Axis, ...]
    dense: str | None
    is_streamed: bool
    has_loads: bool
    itemsize: int
    iterations: int

    @property
    def names(self) -> tuple[str, ...]:
        """The loops, outermost first."""
        return tuple(axis.loop for axis in self.axes)

    @property
    def spatial(self) -> tuple[Axis, ...]:
        """The loops over places of the result."""
        return tuple(axis for axis in self.axes if axis.is_spatial)

    @property
    def reduction(self) -> tuple[Axis, ...]:
        """The loops over what is combined."""
        return tuple(axis for axis in self.axes if not axis.is_spatial)


# A search comes by the same procedures again.
@lru_cache(maxsize=256)
def find_nests(procedure: Procedure) -> tuple[Nest, ...]:
    """The nests of a procedure whose loops are all serial, in program order."""
    dependences = Dependences(procedure)
    tensors = {tensor.name: tensor for tensor in procedure.tensors}
    for each in statements(procedure.body):
        if isinstance(each, Allocate):
            tensors[each.tensor.name] = each.tensor
    return tuple(
        _nest(chain, body, tensors, dependences)
        for chain, body in _chains(procedure.body)
        if all(loop.kind is LoopKind.SERIAL for loop in chain)
    )


def _chains(node: Stmt) -> Iterator[tuple[list[For], Stmt]]:
    chain: list[For] = []
    while isinstance(node, For | If):
        if isinstance(node, For):
            chain.append(node)
            node = node.body
        else:
            node = node.then
    if chain:
        yield chain, node
    match node:
        case Allocate(_, body) | While(_, body):
            yield from _chains(body)
        case Block(items):
            for item in items:
                yield from _chains(item)


def _nest(
    chain: Sequence[For], body: Stmt, tensors: dict[str, Tensor], dependences: Dependences
) -> Nest:
    stores = [s for s in statements(body) if isinstance(s, Store)]
    store = body if isinstance(body, Store) else None
    axes, iterations = [], 1
    for loop in chain:
        extent = constant_extent(loop)
        iterations *= extent or 1
        # Of several stores each may go elsewhere; what all of them are indexed by is spatial.
        spatial = all(any(mentions(i, loop.var) for i in s.indices) for s in stores)
        free = dependences.carried_by(loop.var) is None
        axes.append(Axis(loop.var, extent, spatial, free))
    dense, loads = None, []
    if store is not None:
        place = flat_index(tensors[store.tensor], store.indices)
        along = [a.loop for a in axes if a.is_free and step_of(place, a.loop) == 1]
        dense = along[-1] if along else None
        loads = [node for node in walk(store.value) if isinstance(node, Load)]
    steps = [step_of(flat_index(tensors[n.tensor], n.indices), dense) for n in loads if dense]
    itemsize = max((ITEM_BYTES[tensors[s.tensor].dtype] for s in stores), default=4)
    streamed = all(step in (0, 1) for step in steps)
    has_loads = store is None or bool(loads)
    return Nest(tuple(axes), dense, streamed, has_loads, itemsize, iterations)


def flat_index(tensor: Tensor, indices: tuple[Expr, ...]) -> Expr:
    """The place of an element in a row-major tensor."""
    out: Expr = whole(0)
    for index, extent in zip(indices, tensor.shape, strict=True):
        scaled = simplify(Binary("mul", out, simplify(extent)))
        out = simplify(Binary("add", scaled, index))
    return out


def strides(tensor: Tensor, indices: tuple[Expr, ...], loops: Sequence[str]) -> list[int | None]:
    """By how many elements an access moves when each of some loops goes one step on; None where
    that is no constant.
    """
    place = flat_index(tensor, indices)
    return [step_of(place, loop) for loop in loops]


def owners(nests: Sequence[Nest], trace: Sequence[Directive]) -> list[int | None]:
    """The nest that each directive of a trace is about; a loop belongs where the loops it was made
    of belong.
    """
    home = {name: place for place, nest in enumerate(nests) for name in nest.names}
    found: list[int | None] = []
    for directive in trace:
        loop, args = directive.target, directive.args
        nest = home.get(loop)
        found.append(nest)
        if nest is None:
            continue
        match directive.op, args:
            case "split", (_, *names):
                given = [str(name) for name in names[:2]]
                made = [*given, *split_names(loop)[len(given) :]]
            case "fuse", (inner, *names):
                made = [str(names[0]) if names else fused_name(loop, str(inner))]
            case "tile", (str(inner), *_):
                made = [*split_names(loop), *split_names(inner)]
            case _:
                made = []
        home.update(dict.fromkeys(made, nest))
    return found
