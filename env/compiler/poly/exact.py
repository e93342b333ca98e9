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
    if model.domain.is_empty():
        return ExactDependences(model, nothing, nothing, nothing)
    writes, order = model.writes().coalesce(), _short_order(model)
    # What is never written depends on nothing, and few pieces are faster than many.
    reads = model.reads().intersect_range(writes.range())

    often = _written_often(writes)
    alone, reads = _written_once(model, writes, reads, often)
    # Of a tensor whose elements are written once no write depends on another.
    writes = writes.intersect_range(reads.range().universe().union(often))

    def nearest(touch: isl.UnionMap, schedule: isl.UnionMap) -> isl.UnionMap:
        """From the last write before each access in a schedule to the access."""
        if touch.is_empty():
            return touch.reverse().apply_range(touch)
        access = isl.UnionAccessInfo.from_sink(touch).set_must_source(writes)
        return access.set_schedule_map(schedule).compute_flow().get_must_dependence()

    # What a reduction writes it also reads: the last write before one is that before the other.
    both, only_read, only_written = _shared(reads, writes)
    combined = nearest(both, order)
    flow = nearest(only_read, order).union(combined)
    output = nearest(only_written, order).union(combined)
    # The next write after a read is the last one before it where time runs backwards.
    anti = nearest(reads, _backwards(order)).reverse()
    return ExactDependences(model, flow.coalesce().union(alone), anti.coalesce(), output.coalesce())


def _written_once(
    model: Model, writes: isl.UnionMap, reads: isl.UnionMap, often: isl.UnionSet
) -> tuple[isl.UnionMap, isl.UnionMap]:
    """The flow into reads of tensors whose elements one statement writes, each once, before any
    other touches them: every stage of a pipeline. And the other reads, for which last writes are to
    be found.
    """
    flow = others = isl.UnionMap("{ }")
    for write in _maps(writes.subtract_range(often)):
        touched = reads.intersect_range(isl.UnionSet.from_set(write.range()).universe())
        pairs = isl.UnionMap.from_map(write).apply_range(touched.reverse())
        before = _in_order(model, pairs)
        # Not among them is what may run before the write, or between its iterations.
        if before.n_map() == pairs.n_map():
            flow = flow.union(before)
        else:
            others = others.union(touched)
    return flow.coalesce(), others.union(reads.intersect_range(often)).coalesce()


def _in_order(model: Model, pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs of statements of which the first runs whole before the second."""
    positions = {i.name: i.position for i in model.instances}
    before = isl.UnionMap("{ }")
    for each in _maps(pairs):
        ends = (each.get_tuple_name(side) for side in (isl.dim_type.in_, isl.dim_type.out))
        parts = zip(*(positions[end] for end in ends), strict=False)
        apart = next(((a, b) for a, b in parts if a != b or isinstance(a, str)), (0, 0))
        if all(isinstance(part, int) for part in apart) and apart[0] < apart[1]:
            before = before.union(isl.UnionMap.from_map(each))
    return before


def _written_often(writes: isl.UnionMap) -> isl.UnionSet:
    """The tensors with elements that may be written more than once."""
    found: dict[str, list[isl.Map]] = {}
    for each in _maps(writes):
        found.setdefault(each.get_tuple_name(isl.dim_type.out), []).append(each)
    often = isl.UnionSet("{ }")
    for maps in found.values():
        if len(maps) > 1 or not maps[0].is_injective():
            often = often.union(isl.UnionSet.from_set(maps[0].range()).universe())
    return often


def _shared(
    reads: isl.UnionMap, writes: isl.UnionMap
) -> tuple[isl.UnionMap, isl.UnionMap, isl.UnionMap]:
    """The accesses of statements that read of a tensor what they write of it, no more and no less;
    the other reads and the other writes.
    """
    both = only_read = isl.UnionMap("{ }")
    for read in _maps(reads):
        written = writes.extract_map(read.get_space())
        if read.is_equal(written):
            both = both.union(isl.UnionMap.from_map(read))
        else:
            only_read = only_read.union(isl.UnionMap.from_map(read))
    return both, only_read, writes.subtract(both)


def _maps(pairs: isl.UnionMap) -> Iterator[isl.Map]:
    found = pairs.get_map_list()
    return (found.get_map(place) for place in range(found.n_map()))


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
