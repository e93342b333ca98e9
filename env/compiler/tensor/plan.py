"""What is realised, and where: the order of stages, the region of each, and its nests in the
coordinates of unbounded space.

From the outputs backwards: a function over unbounded space is computed on the least box around all
that is read of it; what its updates touch belongs to the box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelwright.env.compiler.ir import nodes
from kernelwright.env.compiler.ir.accesses import accesses
from kernelwright.env.compiler.ir.nodes import Const, Expr, For, If, Stmt, Store, substitute
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import simplify
from kernelwright.env.compiler.poly.demand import Box, Demand, UnboundedError, demand
from kernelwright.env.compiler.tensor.domain import Axis
from kernelwright.env.compiler.tensor.expression import TensorError
from kernelwright.env.compiler.tensor.func import Realization
from kernelwright.env.compiler.tensor.order import (
    Computed,
    LoopNames,
    Output,
    check_names,
    extents_of,
    in_order,
    loop_names,
)
from kernelwright.env.compiler.tensor.stage import (
    Definition,
    ImageParam,
    Indexed,
    Placeholder,
    Stage,
)


@dataclass(frozen=True, slots=True)
class Realised:
    """A tensor on its region, with the nests that compute it; inputs have none."""

    tensor: Indexed
    box: Box
    nests: tuple[Stmt, ...] = ()


@dataclass(slots=True)
class Plan:
    """Everything that a pipeline computes and reads, in program order, and the extents by name."""

    extents: tuple[str, ...]
    inputs: list[Realised] = field(default_factory=list)
    stages: list[Realised] = field(default_factory=list)


def make_plan(name: str, outputs: Sequence[Output]) -> Plan:
    """The plan of a pipeline.

    Raises:
        TensorError: if names collide, a region has no bounds, or a tensor is read outside its own.
    """
    tensors = in_order(name, outputs)
    computed = [each for each in tensors if isinstance(each, Computed)]
    inputs = [each for each in tensors if not isinstance(each, Computed)]
    check_names(name, tensors)
    given = {id(o.func): Box(o.low, o.shape) for o in outputs if isinstance(o, Realization)}
    plan = Plan(extents_of([*inputs, *computed], given))
    loops = loop_names(tensors, computed, plan.extents)
    dtypes = {tensor.name: tensor.dtype for tensor in tensors}
    readers: dict[str, list[Stmt]] = {tensor.name: [] for tensor in tensors}
    for tensor in reversed(computed):
        reach = _Reach(tensor, plan.extents, dtypes, loops)
        box, own = reach.realise(readers[tensor.name], given.get(id(tensor)))
        plan.stages.insert(0, Realised(tensor, box, own))
        for nest in own:
            for name in dict.fromkeys(access.tensor for access in accesses(nest)):
                readers[name].append(nest)
    for source in inputs:
        reach = _Reach(source, plan.extents, dtypes, loops)
        plan.inputs.append(Realised(source, reach.of_input(readers[source.name])))
    return plan


@dataclass(frozen=True, slots=True)
class _Reach:
    """The region of one tensor."""

    tensor: Indexed
    extents: tuple[str, ...]
    dtypes: dict[str, str]
    loops: LoopNames

    def realise(self, readers: Sequence[Stmt], given: Box | None) -> tuple[Box, tuple[Stmt, ...]]:
        """The box of a computed tensor, and its nests."""
        tensor = self.tensor
        assert isinstance(tensor, Computed)
        needed = self._needed(readers)
        if isinstance(tensor, Stage):
            given = Box(tensor.low, tensor.shape)
        if given is not None:
            self._check_within(needed, given)
            return given, self._updated(given, is_fixed=True)[1]
        if needed is None:
            # Read by what never runs: an element of it is one that nobody asks for.
            nothing = (Const(0, "int64"),) * tensor.rank
            return self._updated(Box(nothing, nothing), is_fixed=False)
        return self._updated(self._box(needed), is_fixed=False)

    def of_input(self, readers: Sequence[Stmt]) -> Box:
        """The box of an input."""
        needed = self._needed(readers)
        if isinstance(self.tensor, Placeholder):
            box = Box(self.tensor.low, self.tensor.shape)
            self._check_within(needed, box)
            return box
        assert isinstance(self.tensor, ImageParam)
        if needed is None:
            raise TensorError(f"{self.tensor.name}: expected to be read, found no read that runs")
        return self._box(needed)

    def _needed(self, statements: Sequence[Stmt], *, writes: bool = False) -> Demand | None:
        return demand(statements, self.tensor.name, self.extents, self.dtypes, writes=writes)

    def _box(self, needed: Demand) -> Box:
        try:
            return needed.box()
        except UnboundedError as error:
            raise TensorError(
                f"{self.tensor.name}: expected bounds for index {self._written(error.index)} "
                f"(axis {error.axis}), found none; clamp it"
            ) from None

    def _written(self, index: Expr) -> str:
        """An index in the variables of the definition that it is from."""
        names = {loop: v for loops in self.loops.values() for v, loop in loops.items()}
        values: dict[str, Expr] = {loop: nodes.Var(v) for loop, v in names.items()}
        return print_expr(substitute(index, values))

    def _check_within(self, needed: Demand | None, box: Box) -> None:
        if needed is None or needed.is_within(box) or not needed.is_exact:
            return
        try:
            found = str(needed.box())
        except UnboundedError as error:
            found = f"index {self._written(error.index)}"
        raise TensorError(f"{self.tensor.name}: expected to be used inside {box!s}, found {found}")

    def _updated(self, box: Box, *, is_fixed: bool) -> tuple[Box, tuple[Stmt, ...]]:
        """The box that holds what updates touch, and all nests; later updates run on no more than
        what is needed of them.
        """
        tensor = self.tensor
        assert isinstance(tensor, Computed)
        nests: list[Stmt] = []
        for number in reversed(range(len(tensor.definitions))):
            definition = tensor.definitions[number]
            nest = _nest(tensor, definition, box, self.loops[id(tensor), number])
            nests.insert(0, nest)
            if len(definition.pure) == tensor.rank and definition.indices == _place(definition):
                continue  # it touches what it computes, no more
            touched = self._needed([nest], writes=True)
            if touched is None:
                continue
            if is_fixed:
                self._check_within(touched, box)
                continue
            # Its own box joins, as a statement that reads the whole of it would say.
            box = self._box(self._joined(touched, box))
        return box, tuple(nests)

    def _joined(self, touched: Demand, box: Box) -> Demand:
        names = [f"joined{axis}" for axis in range(len(box.low))]
        place = tuple(
            simplify(nodes.Binary("add", nodes.Var(name), low))
            for name, low in zip(names, box.low, strict=True)
        )
        reader: Stmt = Store("", (), nodes.Load(self.tensor.name, place))
        for name, extent in zip(names, box.extent, strict=True):
            reader = For(name, extent, reader)
        known = self._needed([reader])
        if known is None:
            return touched
        return Demand((*touched.found, *known.found), self.extents, self.dtypes)


def _place(definition: Definition) -> tuple[Expr, ...]:
    return tuple(nodes.Var(name) for name in definition.pure)


def _nest(tensor: Computed, definition: Definition, box: Box, names: dict[str, str]) -> Stmt:
    """A definition as a nest: its loops start at 0, and its indices are coordinates."""
    own = dict(zip(tensor.variables, zip(box.low, box.extent, strict=True), strict=True))
    axes = [Axis(variable, own[variable][1], own[variable][0]) for variable in definition.pure]
    axes += definition.axes
    values: dict[str, Expr] = {
        axis.name: simplify(nodes.Binary("add", nodes.Var(names[axis.name]), axis.low))
        for axis in axes
    }
    place = tuple(substitute(index, values) for index in definition.indices)
    node: Stmt = Store(tensor.name, place, substitute(definition.value, values), definition.reduce)
    if definition.condition is not None:
        node = If(substitute(definition.condition, values), node)
    for axis in reversed(axes):
        node = For(names[axis.name], axis.extent, node)
    return node
