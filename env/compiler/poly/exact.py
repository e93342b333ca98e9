"""Exact dependences of an affine nest, by kind.

*Flow* (read after write) is value-based: each read depends on the last write before it, found by
isl's dataflow analysis (Feautrier, IJPP 1991). *Anti* (write after read): each write depends on the
reads before it that no other iteration's write hides. *Output* (write after write): each write
depends on the last one before it. Any order that keeps these keeps the meaning, because the pairs
between which other writes lie follow from them.

The analysis has to know every element that is touched: a write that may have happened hides no
earlier one. So what is not affine is refused here by name; `dependence.Dependences` covers it from
above.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import islpy as isl

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.nodes import Expr, Load, Procedure, walk
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.poly.model import (
    Instance,
    Model,
    Position,
    affine_text,
    build_model,
    condition_text,
)


class NotAffineError(CompilerError):
    """A procedure with a part that polyhedral analysis cannot know; the message names it."""


class Kind(StrEnum):
    """Why two iterations must keep their order."""

    FLOW = "flow"
    ANTI = "anti"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class ExactDependences:
    """The dependences of a procedure by kind: maps from an instance to the instances that must run
    after it.
    """

    model: Model
    flow: isl.UnionMap
    anti: isl.UnionMap
    output: isl.UnionMap

    @property
    def by_kind(self) -> tuple[tuple[Kind, isl.UnionMap], ...]:
        """Kinds with their dependences."""
        return (Kind.FLOW, self.flow), (Kind.ANTI, self.anti), (Kind.OUTPUT, self.output)

    @property
    def all(self) -> isl.UnionMap:
        """All dependences."""
        return self.flow.union(self.anti).union(self.output).coalesce()


def exact_dependences(procedure: Procedure) -> ExactDependences:
    """The flow, anti and output dependences of an affine procedure.

    Raises:
        NotAffineError: if an index, an extent or a condition is not affine in loop variables and
            extents.
    """
    model = build_model(procedure)
    for instance in model.instances:
        for what in not_affine(instance):
            raise NotAffineError(f"{procedure.name}: {what}")
    nothing = isl.UnionMap("{ }")
    if not model.instances:
        return ExactDependences(model, nothing, nothing, nothing)
    writes, order = model.writes().coalesce(), _short_order(model)
    # What is never written depends on nothing, and few pieces are faster than many.
    reads = model.reads().intersect_range(writes.range()).coalesce()

    def nearest(touch: isl.UnionMap, schedule: isl.UnionMap) -> isl.UnionMap:
        """From the last write before each access in a schedule to the access."""
        access = isl.UnionAccessInfo.from_sink(touch).set_must_source(writes)
        return access.set_schedule_map(schedule).compute_flow().get_must_dependence().coalesce()

    # The next write after a read is the last one before it where time runs backwards.
    anti = nearest(reads, _backwards(order)).reverse()
    return ExactDependences(model, nearest(reads, order), anti, nearest(writes, order))


def _short_order(model: Model) -> isl.UnionMap:
    """The program's order without the places that are the same for all statements: time has half as
    many dimensions in a perfect nest, and dataflow analysis takes half the time.
    """
    length = max(len(instance.position) for instance in model.instances)
    padded = [(*i.position, *[0] * (length - len(i.position))) for i in model.instances]
    kept = [k for k in range(length) if isinstance(padded[0][k], str) or _differ(padded, k)]
    return model.order(
        {
            instance.name: tuple(place[k] for k in kept) or (0,)
            for instance, place in zip(model.instances, padded, strict=True)
        }
    )


def _differ(positions: list[Position], place: int) -> bool:
    return any(position[place] != positions[0][place] for position in positions)


def _backwards(order: isl.UnionMap) -> isl.UnionMap:
    """The order with every dimension of time negated."""
    length = order.get_map_list().get_map(0).dim(isl.dim_type.out)
    times = [f"t{k}" for k in range(length)]
    negated = ", ".join(f"-{time}" for time in times)
    return order.apply_range(isl.UnionMap(f"{{ [{', '.join(times)}] -> [{negated}] }}"))


def not_affine(instance: Instance) -> Iterator[str]:
    """What an analysis cannot know about a store: extents, conditions and indices that are not
    affine, each with the expression and its place.
    """
    store = instance.store
    target = f"{store.tensor}[{', '.join(print_expr(index) for index in store.indices)}]"
    for loop in instance.loops:
        if affine_text(loop.extent) is None:
            yield _unknown(f"the extent of loop {loop.var}", loop.extent)
    for condition in instance.conditions:
        if condition_text(condition) is None:
            yield _unknown(f"the condition around {target}", condition)
    for place, index in enumerate(store.indices):
        if affine_text(index) is None:
            yield _unknown(f"index {place} of the store to {store.tensor}", index)
    for root in (store.value, *store.indices):
        for node in walk(root):
            if isinstance(node, Load):
                for place, index in enumerate(node.indices):
                    if affine_text(index) is None:
                        what = (
                            f"index {place} of the load of {node.tensor} in the store to {target}"
                        )
                        yield _unknown(what, index)


def _unknown(what: str, found: Expr) -> str:
    return f"{what}: expected an affine expression of loops and extents, found {print_expr(found)}"
