"""Dependences: pairs of instances that touch the same element, one of them writing, in the order in
which the program runs them.

All of them are kept, flow, anti and output alike, whether or not another write lies between: an
order that keeps them all keeps the meaning. An order of execution is legal if no pair is turned
around; a loop may run in any order if no pair meets in two of its iterations.

Two reductions into one element by one operation may change places where regrouping is exact or was
allowed (`regroups_exactly`, ``Store.reassociable``); they may still not meet in a parallel loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from kernelwright.env.compiler.ir.dtypes import INTEGERS
from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import tensors_by_name
from kernelwright.env.compiler.poly.distance import carries_nothing, keeps_order
from kernelwright.env.compiler.poly.limits import MAX_ANSWER_OPERATIONS, limited
from kernelwright.env.compiler.poly.model import (
    Access,
    Instance,
    Model,
    Position,
    build_model,
    changing_tensors,
    isl_name,
)
from kernelwright.env.compiler.poly.opaque import is_opaque, meetings
from kernelwright.env.compiler.poly.sample import coordinates, iteration_text


@dataclass(frozen=True, slots=True)
class Conflict:
    """A counterexample: two iterations that must stay in this order."""

    element: str
    first: tuple[tuple[str, int], ...]
    second: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        first, second = iteration_text(self.first), iteration_text(self.second)
        return f"{self.element}: iteration {first} must run before {second}"


class Dependences:
    """The dependences of a procedure in program order."""

    def __init__(self, procedure: Procedure) -> None:
        self.model: Model = build_model(procedure)
        self._dtypes = _dtypes(procedure)

    @cached_property
    def pairs(self) -> isl.UnionMap:
        """All pairs, first the one that runs first."""
        # A limit of its own: what is known already must not leave more for the next question.
        with limited("the dependences", MAX_ANSWER_OPERATIONS):
            order = self.model.order()
            return self._meet().intersect(order.lex_lt_union_map(order)).coalesce()

    def _meet(self) -> isl.UnionMap:
        """The pairs of instances that touch one element, one of them writing."""
        model = self.model
        changing = changing_tensors(model.instances)
        stored = {i.store.tensor for i in model.instances}
        written = _by_kind(model.written, changing)
        read = _by_kind((each for each in model.read if each[1] in stored), changing)
        if not (written[True] or read[True]):
            writes, reads = model.writes(), model.reads()
            meet = writes.apply_range(writes.reverse())
            if not reads.is_empty():
                meet = meet.union(writes.apply_range(reads.reverse()))
                meet = meet.union(reads.apply_range(writes.reverse()))
            return meet
        writes = model.touched(written[False])
        others = model.touched((*written[False], *read[False]))
        half = writes.apply_range(others.reverse())
        half = half.union(
            meetings(model, written[True], (*model.written, *read[True], *read[False]), changing)
        )
        half = half.union(meetings(model, written[False], read[True], changing))
        return half.union(half.reverse())

    @cached_property
    def ordered(self) -> isl.UnionMap:
        """The pairs that must stay in their order: without reductions that commute."""
        groups = self._commuting
        if not groups:
            return self.pairs
        pairs = self.pairs
        with limited("the dependences", MAX_ANSWER_OPERATIONS):
            writes, loads = self.model.writes(), self.model.loads()
            meet = writes.apply_range(writes.reverse())
            for instances in groups:
                texts = [instance.tuple_text for instance in instances]
                members = isl.UnionSet(f"{self.model.parameters}{{ {'; '.join(texts)} }}")
                own = writes.intersect_domain(members)
                meet = meet.subtract(own.apply_range(own.reverse()))
            if not loads.is_empty():
                meet = meet.union(writes.apply_range(loads.reverse()))
                meet = meet.union(loads.apply_range(writes.reverse()))
            return pairs.intersect(meet).coalesce()

    @cached_property
    def _commuting(self) -> tuple[tuple[Instance, ...], ...]:
        """Reductions into one tensor that may change places."""
        groups: dict[tuple[str, str], list[Instance]] = {}
        for instance in self.model.instances:
            store = instance.store
            dtype = self._dtypes.get(store.tensor)
            if store.reduce is not None and (
                store.reassociable or regroups_exactly(store.reduce, dtype)
            ):
                groups.setdefault((store.tensor, store.reduce), []).append(instance)
        return tuple(map(tuple, groups.values()))

    def turned_around(self, positions: Mapping[str, Position]) -> Conflict | None:
        """A pair that another order runs the other way round, or None if the order is legal; it may
        give no two instances of one statement the same time.
        """
        groups = {i.name: place for place, group in enumerate(self._commuting) for i in group}
        if keeps_order(self.model, positions, groups):
            return None
        ordered = self.ordered
        with limited("what another order turns around", MAX_ANSWER_OPERATIONS):
            order = self.model.order(positions)
            return counterexample(self.model, ordered.intersect(order.lex_ge_union_map(order)))

    def carried_by(self, var: str) -> Conflict | None:
        """A pair that meets in two iterations of one run of the loop ``var``, or None.

        Raises:
            LimitError: if isl does not come to an end.
        """
        inside = [i for i in self.model.instances if var in i.variables]
        if not inside or carries_nothing(self.model, var):
            return None
        pairs = self.pairs
        with limited(f"what loop {var} carries", MAX_ANSWER_OPERATIONS):
            same_run = self._equal(inside, lambda i: i.variables[: i.variables.index(var)])
            same_iteration = self._equal(inside, lambda i: (var,))
            meeting = pairs.intersect(same_run).subtract(same_iteration)
            return counterexample(self.model, meeting)

    def _equal(
        self, instances: list[Instance], key: Callable[[Instance], tuple[str, ...]]
    ) -> isl.UnionMap:
        """Pairs of instances whose keys (tuples of variables) are equal."""
        parts = [f"{i.tuple_text} -> [{', '.join(map(isl_name, key(i)))}]" for i in instances]
        mapping = isl.UnionMap(f"{self.model.parameters}{{ {'; '.join(parts)} }}")
        return mapping.apply_range(mapping.reverse())


def _by_kind(found: Iterable[Access], changing: Collection[str]) -> dict[bool, list[Access]]:
    """The opaque accesses (True) and the others."""
    kinds: dict[bool, list[Access]] = {True: [], False: []}
    for access in found:
        kinds[is_opaque(access, changing)].append(access)
    return kinds


def regroups_exactly(op: str, dtype: str | None) -> bool:
    """Whether any order and grouping of a reduction gives the same values: whole numbers wrap, and
    the least and the greatest are what they are. (Which of two zeros of different sign is the
    lesser LoopIR leaves open.) Floating-point sums and products round.
    """
    return op in ("min", "max") or dtype in INTEGERS


def _dtypes(procedure: Procedure) -> dict[str, str]:
    return {name: tensor.dtype for name, tensor in tensors_by_name(procedure).items()}


def counterexample(model: Model, pairs: isl.UnionMap) -> Conflict | None:
    """One of the pairs of instances that an order breaks, None if there are none."""
    if pairs.is_empty():
        return None
    by_name = {i.name: i for i in model.instances}
    point = _first(pairs)
    first, second = by_name[point[0][0]], by_name[point[1][0]]
    return Conflict(
        _element(second),
        tuple(zip(first.variables, point[0][1], strict=True)),
        tuple(zip(second.variables, point[1][1], strict=True)),
    )


def _element(instance: Instance) -> str:
    """What an instance writes."""
    indices = ", ".join(print_expr(index) for index in instance.store.indices)
    return f"{instance.store.tensor}[{indices}]"


def _first(pairs: isl.UnionMap) -> tuple[tuple[str, tuple[int, ...]], tuple[str, tuple[int, ...]]]:
    """One pair: names and coordinates of its two instances."""
    sample = pairs.sample()
    values = coordinates(sample.wrap().sample_point())
    space = sample.get_space()
    n_in = space.dim(isl.dim_type.in_)
    names = (
        space.get_tuple_name(isl.dim_type.in_),
        space.get_tuple_name(isl.dim_type.out),
    )
    return (names[0], values[:n_in]), (names[1], values[n_in:])
