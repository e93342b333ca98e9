"""Which elements an instance writes, exactly, and what touches them before it."""

from __future__ import annotations

from itertools import takewhile

import islpy as isl

from kernelwright.env.compiler.ir.nodes import Load, walk
from kernelwright.env.compiler.poly.dependence import Conflict, counterexample
from kernelwright.env.compiler.poly.distance import touched_only_after
from kernelwright.env.compiler.poly.model import (
    Instance,
    Model,
    affine_text,
    isl_name,
)
from kernelwright.env.compiler.poly.sample import coordinates


def touches(instance: Instance, tensor: str) -> bool:
    """Whether a store, or what surrounds it, writes or reads a tensor."""
    store = instance.store
    roots = (*store.indices, store.value, *instance.conditions, *(n.extent for n in instance.loops))
    return store.tensor == tensor or any(
        isinstance(node, Load) and node.tensor == tensor for root in roots for node in walk(root)
    )


def written(model: Model, instance: Instance, shared: tuple[str, ...]) -> isl.UnionSet | None:
    """The points (iteration of the ``shared`` loops, element) that an instance writes; None if its
    loops, conditions or indices are not affine, so that they are not known exactly.
    """
    if not instance.is_affine:
        return None
    place = [affine_text(index) for index in instance.store.indices]
    point = ", ".join([*map(isl_name, shared), *map(str, place)])
    text = f"{model.parameters}{{ {instance.tuple_text} -> [{point}] }}"
    return isl.UnionMap(text).intersect_domain(model.domain).range()


def point_of(points: isl.UnionSet) -> tuple[int, ...]:
    """The coordinates of one of the points of a set that has some."""
    return coordinates(points.sample_point())


def touched_before(model: Model, instance: Instance, shared: tuple[str, ...]) -> Conflict | None:
    """Another instance that touches an element no later than ``instance`` writes it, in the same
    iteration of the ``shared`` loops; None if there is none.
    """
    if touched_only_after(model, instance, shared):
        return None
    own = isl.UnionSet(f"{model.parameters}{{ {instance.tuple_text} }}")
    writes = model.writes()
    begin = writes.intersect_domain(own)
    others = writes.subtract(begin).union(model.reads()).apply_range(begin.reverse())
    order = model.order()
    early = others.intersect(order.lex_le_union_map(order)).intersect(same_iteration(model, shared))
    return counterexample(model, early)


def same_iteration(model: Model, shared: tuple[str, ...]) -> isl.UnionMap:
    """Pairs of instances in one iteration of the ``shared`` loops, which are outermost."""
    point = ", ".join(map(isl_name, shared))
    inside = [i for i in model.instances if i.variables[: len(shared)] == shared]
    parts = [f"{i.tuple_text} -> [{point}]" for i in inside]
    mapping = isl.UnionMap(f"{model.parameters}{{ {'; '.join(parts)} }}")
    return mapping.apply_range(mapping.reverse())


def shared_loops(first: Instance, second: Instance) -> tuple[str, ...]:
    """The loops around both instances, from the outermost on."""
    pairs = zip(first.variables, second.variables, strict=False)
    return tuple(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
