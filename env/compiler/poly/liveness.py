"""Which values of a temporary are there when they are read: reads that no earlier write serves, and
values that a circular buffer would overwrite while they are still needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import islpy as isl

from kernelwright.env.compiler.ir.accesses import Access, reads_of
from kernelwright.env.compiler.ir.nodes import Procedure, Tensor
from kernelwright.env.compiler.poly.dependence import Conflict
from kernelwright.env.compiler.poly.model import (
    Instance,
    Model,
    affine_text,
    build_model,
    condition_text,
    isl_name,
)
from kernelwright.env.compiler.poly.sample import coordinates, iteration_text


@dataclass(frozen=True)
class Life:
    """The instances that touch a temporary, with its writes and each of its reads apart."""

    model: Model
    tensor: Tensor
    writes: isl.UnionMap
    reads: tuple[isl.UnionMap, ...]
    is_affine: bool

    def before(self, first: isl.UnionMap, second: isl.UnionMap) -> isl.UnionMap:
        """Pairs of instances that make two sorts of accesses, the first of which runs earlier."""
        early = self._order.intersect_domain(first.domain())
        late = self._order.intersect_domain(second.domain())
        return early.lex_lt_union_map(late)

    @cached_property
    def any_read(self) -> isl.UnionMap:
        """All reads."""
        out = isl.UnionMap(f"{self.model.parameters}{{ }}")
        for read in self.reads:
            out = out.union(read)
        return out

    @cached_property
    def _order(self) -> isl.UnionMap:
        return self.model.order()


def life_of(procedure: Procedure, tensor: Tensor) -> Life:
    """Who touches a temporary, and when."""
    name = tensor.name
    whole_model = build_model(procedure)
    kept = []
    for instance in whole_model.instances:
        touched = instance.store.tensor == name or any(_reads(instance, name))
        kept += [instance] if touched else []
    model = Model(tuple(kept), procedure.extents)
    empty = isl.UnionMap(f"{model.parameters}{{ }}")
    writes, is_affine = empty, True
    for instance in kept:
        if instance.store.tensor == name:
            is_affine = is_affine and instance.is_affine
            if instance.is_affine:
                writes = writes.union(_touches(model, instance, tensor, instance.store.indices, ()))
    reads = []
    for instance in kept:
        for access in _reads(instance, name):
            is_affine = is_affine and all(affine_text(i) is not None for i in access.indices)
            reads.append(_touches(model, instance, tensor, access.indices, access.conditions))
    domain = model.domain
    return Life(
        model,
        tensor,
        writes.intersect_domain(domain),
        tuple(each.intersect_domain(domain) for each in reads),
        is_affine,
    )


def _reads(instance: Instance, name: str) -> list[Access]:
    store = instance.store
    found = (
        [Access(name, store.indices, (), (), is_write=False)]
        if (store.reduce is not None and store.tensor == name)
        else []
    )
    extents = (loop.extent for loop in instance.loops)
    for root in (store.value, *store.indices, *instance.conditions, *extents):
        found += [access for access in reads_of(root) if access.tensor == name]
    return list(dict.fromkeys(found))


def _touches(
    model: Model,
    instance: Instance,
    tensor: Tensor,
    indices: Sequence[object],
    conditions: Sequence[object],
) -> isl.UnionMap:
    """Instance → elements under further conditions; an index that is not affine may be any that the
    tensor has.
    """
    own = list(map(isl_name, dict(instance.private).get(tensor.name, ())))
    places, limits = [], []
    for axis, (index, size) in enumerate(zip(indices, tensor.shape, strict=True)):
        text = affine_text(index)  # type: ignore[arg-type]
        if text is None:
            text, most = f"any{axis}", affine_text(size)
            limits.append(f"0 <= {text}" + (f" and {text} < {most}" if most else ""))
        places.append(text)
    known = (condition_text(c) for c in conditions)  # type: ignore[arg-type]
    limits += [f"({text})" for text in known if text is not None]
    target = f"t_{tensor.name}[{', '.join([*own, *places])}]"
    held = f" : {' and '.join(limits)}" if limits else ""
    return isl.UnionMap(f"{model.parameters}{{ {instance.tuple_text} -> {target}{held} }}")


def undefined_read(procedure: Procedure, tensor: Tensor) -> str | None:
    """A read of a temporary that no earlier write serves, in words; None if there is none."""
    life = life_of(procedure, tensor)
    if not life.reads:
        return None
    later = life.before(life.writes, life.any_read).reverse()
    for read in life.reads:
        if life.is_affine:
            # One element a read, so to be served by some write is to be served.
            served = read.apply_range(life.writes.reverse()).intersect(later)
            missing = read.subtract_domain(served.domain())
        else:
            missing = read.subtract(later.apply_range(life.writes))
        if not missing.is_empty():
            return _read_in_words(life, missing)
    return None


def late_write(procedure: Procedure, tensor: Tensor, reader: str) -> str | None:
    """A write of a tensor after a read of the same element by a statement that writes ``reader``,
    in words; None if there is none.
    """
    life = life_of(procedure, tensor)
    if not life.is_affine:
        return f"{tensor.name} is touched at places that are not affine"
    parts = [i.tuple_text for i in life.model.instances if i.store.tensor == reader]
    readers = isl.UnionSet(f"{life.model.parameters}{{ {'; '.join(parts)} }}")
    for read in life.reads:
        meet = read.intersect_domain(readers).apply_range(life.writes.reverse())
        late = meet.intersect(life.before(read, life.writes))
        if not late.is_empty():
            return str(_conflict(life, late.reverse()))
    return None


def _read_in_words(life: Life, missing: isl.UnionMap) -> str:
    sample = missing.sample()
    space = sample.get_space()
    values, count = _coordinates(sample), space.dim(isl.dim_type.in_)
    instance = _instance(life, space.get_tuple_name(isl.dim_type.in_))
    where = iteration_text(zip(instance.variables, values[:count], strict=True))
    rank = len(life.tensor.shape)
    element = f"{life.tensor.name}{values[-rank:] if rank else ''}"
    return f"iteration {where} reads {element} before anything has written it"


def _coordinates(sample: isl.BasicMap) -> list[int]:
    """The coordinates of a map's one pair, first those of its start."""
    return list(coordinates(sample.wrap().sample_point()))


def _instance(life: Life, name: str) -> Instance:
    return next(i for i in life.model.instances if i.name == name)


def _conflict(life: Life, pairs: isl.UnionMap) -> Conflict:
    """One of some pairs of instances, the second of which reads what the first overwrites."""
    sample = pairs.sample()
    space = sample.get_space()
    values, count = _coordinates(sample), space.dim(isl.dim_type.in_)
    first = _instance(life, space.get_tuple_name(isl.dim_type.in_))
    second = _instance(life, space.get_tuple_name(isl.dim_type.out))
    return Conflict(
        life.tensor.name,
        tuple(zip(second.variables, values[count:], strict=True)),
        tuple(zip(first.variables, values[:count], strict=True)),
    )


@dataclass(frozen=True)
class Overwrites:
    """For how far apart, along an axis, two places must not share memory."""

    distances: isl.Set
    alive: tuple[isl.UnionMap, ...]  # for each read, writes that run while its value is needed
    life: Life
    axis: int

    def conflict(self, factor: int) -> Conflict | None:
        """Two iterations that a circular buffer of ``factor`` places breaks, None if it is
        right.
        """
        multiples = isl.Set(f"{{ [d] : d mod {factor} = 0 and d != 0 }}")
        if self.distances.intersect(multiples).is_empty():
            return None
        shared = _same_place(self.life, self.axis, factor)
        for alive, read in zip(self.alive, self.life.reads, strict=True):
            meet = self.life.writes.apply_range(shared).apply_range(read.reverse())
            pairs = alive.intersect(meet)
            if not pairs.is_empty():
                return _conflict(self.life, pairs)
        return None

    def smallest(self, most: int) -> int | None:
        """The least number of places that is right, None if none below ``most`` is."""
        if self.distances.is_empty():
            return 1
        spans = _spans(self.distances)
        if spans is None:
            return next((f for f in range(1, most) if self.conflict(f) is None), None)
        # A span from 1 up to some number has a multiple of every number up to that.
        reached = [high for low, high in spans if low <= 1]
        reached += [-low for low, high in spans if high >= -1]
        start = max(0, *reached) + 1 if reached else 1
        if start >= most:
            return None
        return next((f for f in range(int(start), most) if not _has_multiple(spans, f)), None)


def _spans(numbers: isl.Set) -> list[tuple[float, float]] | None:
    """The runs of whole numbers that make up a set; None if it has strides."""
    found = []
    pieces = numbers.get_basic_set_list()
    for place in range(pieces.n_basic_set()):
        piece = isl.Set.from_basic_set(pieces.get_at(place))
        if piece.dim(isl.dim_type.div) or piece.is_empty():
            return None
        ends = (piece.dim_min_val(0), piece.dim_max_val(0))
        low, high = (end.to_python() if end.is_int() else inf for end in ends)
        found.append((-low if low == inf else low, high))
    return found


def _has_multiple(spans: list[tuple[float, float]], factor: int) -> bool:
    """Whether a multiple of a number other than 0 is in some runs of whole numbers."""
    return any(
        inf in (-low, high)
        or (high >= factor and high // factor * factor >= low)
        or (low <= -factor and -(-low // factor) * factor <= high)
        for low, high in spans
    )


def overwrites(procedure: Procedure, tensor: Tensor, axis: int) -> Overwrites:
    """The distances along an axis between the place of a value that is still to be read and places
    that are written in the meantime.
    """
    life = life_of(procedure, tensor)
    rewritten = life.before(life.writes, life.writes)
    before = life.before(life.writes, life.any_read)
    other = _without_axis(life, axis)
    distances = isl.Set("{ [d] : false }")
    found = []
    for read in life.reads:
        # Writes anywhere along the axis before the read, but for those before the last write of
        # what is read.
        shared = life.writes.apply_range(other).apply_range(read.apply_range(other).reverse())
        earlier = shared.intersect(before)
        serving = life.writes.apply_range(read.reverse()).intersect(before)
        alive = earlier.subtract(rewritten.apply_range(serving))
        apart = alive.apply_domain(life.writes).apply_range(read)
        for one in _maps(apart):
            distances = distances.union(_along(one, axis, tensor))
        found.append(alive)
    return Overwrites(distances.coalesce(), tuple(found), life, axis)


def _maps(union: isl.UnionMap) -> list[isl.Map]:
    found = union.get_map_list()
    return [found.get_at(i) for i in range(found.n_map())]


def _along(pairs: isl.Map, axis: int, tensor: Tensor) -> isl.Set:
    """Differences of coordinates along one axis, whatever the extents are."""
    deltas = pairs.deltas()
    place = deltas.dim(isl.dim_type.set) - len(tensor.shape) + axis
    count = deltas.dim(isl.dim_type.set)
    alone = deltas.project_out(isl.dim_type.set, place + 1, count - place - 1)
    alone = alone.project_out(isl.dim_type.set, 0, place)
    alone = alone.project_out(isl.dim_type.param, 0, alone.dim(isl.dim_type.param))
    return alone.reset_tuple_id() if alone.has_tuple_id() else alone


def _axes(life: Life) -> tuple[list[str], list[str]]:
    """Names for the coordinates of an element: of the loops around its allocation, and its own."""
    instance = life.model.instances[0]
    own = len(dict(instance.private).get(life.tensor.name, ()))
    return [f"p{k}" for k in range(own)], [f"a{k}" for k in range(len(life.tensor.shape))]


def _without_axis(life: Life, axis: int) -> isl.UnionMap:
    """Elements to what is left of them without an axis."""
    own, axes = _axes(life)
    source, target = ", ".join([*own, *axes]), ", ".join([*own, *axes[:axis], *axes[axis + 1 :]])
    name = f"t_{life.tensor.name}"
    return isl.UnionMap(f"{life.model.parameters}{{ {name}[{source}] -> rest[{target}] }}")


def _same_place(life: Life, axis: int, factor: int) -> isl.UnionMap:
    """Elements to others that a circular buffer keeps in the same place."""
    own, axes = _axes(life)
    name, here, there = f"t_{life.tensor.name}", axes[axis], "b"
    source = ", ".join([*own, *axes])
    target = ", ".join([*own, *axes[:axis], there, *axes[axis + 1 :]])
    held = f"({here} - {there}) mod {factor} = 0 and {here} != {there}"
    return isl.UnionMap(
        f"{life.model.parameters}{{ {name}[{source}] -> {name}[{target}] : {held} }}"
    )
