"""Tails of a split that do without a guard: iterations beyond the extent that harm nothing, and a
last block that runs iterations again.

The words are Halide's (``TailStrategy::RoundUp`` and ``ShiftInwards``); here both are proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.dtypes import INTEGERS
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Cast,
    Const,
    Expr,
    For,
    Load,
    Procedure,
    Stmt,
    Tensor,
    Unary,
    Var,
    map_statements,
    walk,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.queries import (
    expressions,
    stores,
    temporaries,
    tensors_by_name,
    tensors_of,
)
from kernelwright.env.compiler.ir.simplify import simplify, whole
from kernelwright.env.compiler.poly.affine import context_set, from_extremum, greatest
from kernelwright.env.compiler.poly.dependence import counterexample
from kernelwright.env.compiler.poly.elements import same_iteration
from kernelwright.env.compiler.poly.model import (
    Instance,
    Model,
    affine_text,
    build_model,
    isl_name,
)
from kernelwright.env.compiler.poly.sample import coordinates
from kernelwright.env.compiler.schedule.edit import replace_loop
from kernelwright.env.compiler.schedule.facts import Facts
from kernelwright.env.compiler.schedule.legal import no_barrier, part_with

OP = "split"


def rounded_up(procedure: Procedure, loop: For, rounded: Expr) -> Procedure:
    """The procedure with more iterations of a loop, and with room for what they write.

    Legal if these iterations write temporaries only, where nothing else reads before it is written
    again, and read what is there: elements of inputs, and what was certainly written before.

    Raises:
        ScheduleError: if they do not; it has the element.
    """
    no_barrier(OP, loop)
    limit = affine_text(loop.extent)
    if limit is None:
        raise ScheduleError(OP, f"expected an affine extent of {loop.var} to round up")
    _check_values(procedure, loop)
    longer = replace_loop(procedure, loop.var, lambda node: replace(node, extent=rounded))
    found = _Extra(longer, loop.var, limit, rounded)
    if found.iterations.is_empty():
        return longer
    found.check_writes()
    found.check_reads()
    return found.grown()


def _check_values(procedure: Procedure, loop: For) -> None:
    """Refuse what may go wrong on numbers that no one meant to be computed."""
    dtypes = {name: tensor.dtype for name, tensor in tensors_by_name(procedure).items()}
    for store in stores(loop.body):
        computes = store.reduce is not None or isinstance(store.value, Binary | Unary)
        if dtypes[store.tensor] in INTEGERS and computes:
            reason = f"an iteration beyond the extent may compute what {store.tensor} cannot hold"
            raise ScheduleError(OP, f"round_up: {reason}")
    for root in expressions(loop.body):
        for node in walk(root):
            match node:
                case Binary("floordiv" | "mod", _, Const(value, _)) if value:
                    continue
                case Binary("floordiv" | "mod", _, divisor):
                    reason = f"an iteration beyond the extent may divide by {print_expr(divisor)}"
                    raise ScheduleError(OP, f"round_up: {reason} = 0")
                case Cast(dtype, _) if "int" in dtype:
                    reason = f"an iteration beyond the extent may convert what {dtype} cannot hold"
                    raise ScheduleError(OP, f"round_up: {reason}")


class _Extra:
    """The iterations beyond a loop's extent, and what they touch."""

    def __init__(self, procedure: Procedure, loop: str, limit: str, rounded: Expr) -> None:
        self._procedure, self._rounded = procedure, rounded
        self._model = model = _around(build_model(procedure), loop)
        beyond = _union(
            model.parameters,
            [
                f"{i.tuple_text} : {isl_name(loop)} >= {limit}"
                for i in model.instances
                if loop in i.variables
            ],
        )
        self.iterations = beyond.intersect(model.domain)
        self._writes, self._reads = model.writes(), model.reads()
        self._temporaries = {tensor.name: tensor for tensor in temporaries(procedure.body)}

    def check_writes(self) -> None:
        own = [
            i.tuple_text for i in self._model.instances if i.store.tensor not in self._temporaries
        ]
        others = self.iterations.intersect(_union(self._model.parameters, own))
        self._refuse(
            self._writes.intersect_domain(others), "writes", "and only temporaries can have more"
        )
        order = self._model.order()
        meant = self._reads.intersect_domain(self._model.domain.subtract(self.iterations))
        written = self._writes.intersect_domain(self.iterations)
        pairs = written.apply_range(meant.reverse()).intersect(order.lex_lt_union_map(order))
        conflict = counterexample(self._model, pairs)
        if conflict is not None:
            reason = "round_up: an iteration beyond the extent overwrites what another reads"
            raise ScheduleError(OP, reason, str(conflict))

    def check_reads(self) -> None:
        order = self._model.order()
        before = order.lex_lt_union_map(order)
        exact = _exact(self._model, self._model.instances)
        written = self._writes.intersect_domain(exact)
        covered = written.reverse().apply_range(before).reverse()
        reads = self._reads.intersect_domain(self.iterations)
        missing = reads.subtract(covered).subtract(self._held())
        self._refuse(missing, "reads", "which is not there or not yet written")

    def _held(self) -> isl.UnionMap:
        """Whoever reads an element of an input reads something."""
        parts = []
        for tensor in self._procedure.tensors:
            sizes = [affine_text(size) for size in tensor.shape]
            if tensor.role == "input" and None not in sizes:
                names = [f"e{axis}" for axis in range(len(sizes))]
                inside = [f"0 <= {n} < {size}" for n, size in zip(names, sizes, strict=True)]
                held = f" : {' and '.join(inside)}" if inside else ""
                parts.append(f"t_{tensor.name}[{', '.join(names)}]{held}")
        elements = _union(self._model.parameters, parts)
        return isl.UnionMap.from_domain_and_range(self._model.domain, elements)

    def grown(self) -> Procedure:
        """The procedure with larger temporaries where the iterations write beyond their ends."""
        written = self._writes.intersect_domain(self.iterations)
        private = {name: len(own) for i in self._model.instances for name, own in i.private}
        larger: dict[str, Tensor] = {}
        facts = Facts(self._procedure.extents)
        names = self._procedure.extents
        is_shape = all(n.name in names for n in walk(self._rounded) if isinstance(n, Var))
        context = context_set(names, [f"{isl_name(name)} >= 0" for name in names])
        for found in _sets(written.range()):
            name = found.get_tuple_name().removeprefix("t_")
            tensor = self._temporaries[name]
            shape = []
            for axis, size in enumerate(tensor.shape):
                place = private[name] + axis
                if not found.lower_bound_val(isl.dim_type.set, place, isl.Val(0)).is_equal(found):
                    element = f"{name} below 0 on axis {axis}"
                    reason = f"round_up: an iteration beyond the extent writes {element}"
                    raise ScheduleError(OP, reason)
                count = found.dim(isl.dim_type.set)
                alone = found.project_out(isl.dim_type.set, place + 1, count - place - 1)
                alone = alone.project_out(isl.dim_type.set, 0, place)
                last = from_extremum(greatest(alone, context))
                end = simplify(Binary("add", last, whole(1)))
                # As a rule the extent of the loop itself, which reads better.
                if is_shape and facts.decide(Binary("eq", end, self._rounded)):
                    end = self._rounded
                shape.append(facts.greatest(size, end))
            larger[name] = replace(tensor, shape=tuple(shape))

        def statement(node: Stmt) -> Stmt:
            if isinstance(node, Allocate) and node.tensor.name in larger:
                return replace(node, tensor=larger[node.tensor.name])
            return node

        return replace(
            self._procedure, body=map_statements(self._procedure.body, lambda e: e, statement)
        )

    def _refuse(self, touched: isl.UnionMap, what: str, why: str) -> None:
        if touched.is_empty():
            return
        private = {name: len(own) for i in self._model.instances for name, own in i.private}
        point = touched.range().sample_point()
        space = point.get_space()
        name = space.get_tuple_name(isl.dim_type.set).removeprefix("t_")
        values = list(coordinates(point)[private.get(name, 0) :])
        reason = f"round_up: an iteration beyond the extent {what} {name}{values}, {why}"
        raise ScheduleError(OP, reason)


def shift_inwards(procedure: Procedure, loop: For, extent: int, factor: int) -> None:
    """Check that the iterations of the last block, moved back so that it ends at the extent, may
    run a second time.

    Legal if what such an iteration reads, and was not written in the last block before, is not
    written from its first run on.

    Raises:
        ScheduleError: if it is; it has the two iterations.
    """
    no_barrier(OP, loop)
    part = part_with(procedure, loop.var)
    model = build_model(part)
    inside = [i for i in model.instances if loop.var in i.variables]
    if not inside:
        return
    name, again = isl_name(loop.var), extent // factor * factor
    first_run = _union(model.parameters, [f"{i.tuple_text} : {name} < {again}" for i in inside])
    last = _union(
        model.parameters, [f"{i.tuple_text} : {name} >= {extent - factor}" for i in inside]
    )
    twice = first_run.intersect(last).intersect(model.domain)
    order = model.order()
    around = inside[0].variables[: inside[0].variables.index(loop.var)]
    same_run = same_iteration(model, around)
    before = order.lex_lt_union_map(order).intersect(same_run)
    written = model.writes().intersect_domain(_exact(model, inside).intersect(last))
    covered = written.reverse().apply_range(before).reverse()
    reads = model.reads().intersect_domain(twice).subtract(covered)
    writes = model.writes().intersect_domain(first_run)
    pairs = reads.apply_range(writes.reverse()).intersect(same_run)
    pairs = pairs.intersect(order.lex_le_union_map(order))
    conflict = counterexample(model, pairs)
    if conflict is not None:
        reason = f"shift_inwards: iterations of {loop.var} that run again read what was overwritten"
        raise ScheduleError(OP, reason, str(conflict))


def _around(model: Model, loop: str) -> Model:
    """The instances in a loop, and all others that touch what these touch."""
    touched: set[str] = set()
    for instance in model.instances:
        if loop in instance.variables:
            touched |= _tensors(instance)
    kept = [i for i in model.instances if loop in i.variables or touched & _tensors(i)]
    return Model(tuple(kept), model.extents)


def _tensors(instance: Instance) -> set[str]:
    """What an instance reads and writes."""
    roots = (*instance.conditions, *(each.extent for each in instance.loops))
    read = {part.tensor for root in roots for part in walk(root) if isinstance(part, Load)}
    return tensors_of(instance.store) | read


def _exact(model: Model, instances: Sequence[Instance]) -> isl.UnionSet:
    """The iterations of instances that certainly run and whose element is certain."""
    certain = [i.tuple_text for i in instances if i.is_affine]
    return _union(model.parameters, certain).intersect(model.domain)


def _union(parameters: str, parts: Sequence[str]) -> isl.UnionSet:
    return isl.UnionSet(f"{parameters}{{ {'; '.join(parts)} }}")


def _sets(union: isl.UnionSet) -> list[isl.Set]:
    found: list[isl.Set] = []
    union.foreach_set(found.append)
    return found
