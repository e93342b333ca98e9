"""Structured schedules: a few decisions a nest, and the directives that they stand for.

Every loop is cut into at most four parts, from the inside out: lanes of a vector, copies that are
written out (what stays in registers), a block for the caches, and the rest. The parts are ordered
by role, the reduction between the blocks and the registers, as in the multi-level tiling sketches
of Ansor (Zheng et al., OSDI 2020, section 4). Decisions are read back from a trace in this form, so
a search changes one of them and keeps the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, TypeAlias

from kernelwright.env.compiler.schedule.defaults import split_names
from kernelwright.env.spaces.schedule.nest import Nest, owners
from kernelwright.env.types import Directive

Placement: TypeAlias = Literal["between", "outer", "inner", "nested"]
# Where the reduction runs: between blocks and registers, around all, inside the registers, or
# where the nest has it.
PLACEMENTS: tuple[Placement, ...] = ("between", "outer", "inner", "nested")
Trace: TypeAlias = tuple[Directive, ...]


class Part(IntEnum):
    """The parts of a loop, from the inside out."""

    LANES = 0
    REGISTER = 1
    CACHE = 2
    REST = 3


@dataclass(frozen=True, slots=True)
class Tiling:
    """How one loop is cut: iterations a part; 1 leaves the part out."""

    loop: str
    lanes: int = 1
    register: int = 1
    cache: int = 1

    @property
    def factors(self) -> tuple[int, int, int]:
        """From the inside out."""
        return self.lanes, self.register, self.cache


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions of one nest: its tilings in the nest's order, the order of its spatial loops,
    where the reduction runs, and whether the outermost loop is parallel.
    """

    tilings: tuple[Tiling, ...]
    order: tuple[str, ...]
    placement: Placement = "between"
    parallel: bool = False


@dataclass(slots=True)
class Phases:
    """A nest's directives by what they do: first the loops, then their order, then their kinds.

    Kinds come last, because from the first vectorized loop on every directive is proved to keep
    it, and a proof costs milliseconds.
    """

    splits: list[Directive] = field(default_factory=list)
    order: list[Directive] = field(default_factory=list)
    unrolls: list[Directive] = field(default_factory=list)
    kinds: list[Directive] = field(default_factory=list)

    def trace(self) -> Trace:
        """All, in order."""
        return (*self.splits, *self.order, *self.unrolls, *self.kinds)


def plain(nest: Nest) -> Plan:
    """The decisions that leave a nest as it is."""
    order = tuple(axis.loop for axis in nest.spatial)
    return Plan(tuple(Tiling(name) for name in nest.names), order, "nested")


def directives(nest: Nest, plan: Plan) -> Phases:
    """What the decisions of a nest stand for."""
    out = Phases()
    parts: dict[str, dict[Part, str]] = {}
    natural: list[str] = []
    for axis, tiling in zip(nest.axes, plan.tilings, strict=True):
        names, splits = _cut(tiling, axis.extent)
        parts[axis.loop] = names
        out.splits += splits
        natural += [names[part] for part in sorted(names, reverse=True)]
    wanted = _order(nest, plan, parts)
    if wanted != natural:
        out.order.append(Directive("reorder", wanted[0], tuple(wanted[1:])))
    for name in wanted:
        if any(names.get(Part.REGISTER) == name for names in parts.values()):
            out.unrolls.append(Directive("unroll", name))
    out.kinds += [
        Directive("vectorize", names[Part.LANES]) for names in parts.values() if Part.LANES in names
    ]
    if plan.parallel:
        out.kinds.append(Directive("parallel", wanted[0]))
    return out


def _cut(tiling: Tiling, extent: int | None) -> tuple[dict[Part, str], list[Directive]]:
    """The name of every part of a loop, and the splits that make them."""
    names: dict[Part, str] = {}
    splits: list[Directive] = []
    name, rest = tiling.loop, extent
    for part, factor in zip(Part, tiling.factors, strict=False):
        if factor == 1:
            continue
        if factor == rest:
            names[part] = name
            return names, splits
        splits.append(Directive("split", name, (factor,)))
        name, names[part] = split_names(name)
        rest = None if rest is None else -(-rest // factor)
    names[Part.REST] = name
    return names, splits


def _order(nest: Nest, plan: Plan, parts: dict[str, dict[Part, str]]) -> list[str]:
    def those(loops: Sequence[str], *which: Part) -> list[str]:
        return [parts[loop][part] for part in which for loop in loops if part in parts[loop]]

    reduction = [axis.loop for axis in nest.reduction]
    blocked = [loop for loop in reduction if Part.CACHE in parts[loop]]
    inner = [
        parts[loop][part]
        for loop in reduction
        for part in ((Part.CACHE,) if loop in blocked else (Part.REST,))
        if part in parts[loop]
    ]
    # Copies along the dense loop come last: neighbours in memory stay neighbours in the text.
    spatial = sorted((a.loop for a in nest.spatial), key=lambda loop: loop == nest.dense)
    registers, lanes = those(spatial, Part.REGISTER), those(spatial, Part.LANES)
    around = those(plan.order, Part.REST)
    blocks = those(plan.order, Part.CACHE)
    outer, steps = those(blocked, Part.REST), those(reduction, Part.REGISTER)
    match plan.placement:
        case "between":
            return [*around, *outer, *blocks, *inner, *steps, *registers, *lanes]
        case "outer":
            return [*outer, *inner, *around, *blocks, *steps, *registers, *lanes]
        case "inner":
            return [*around, *outer, *blocks, *registers, *inner, *steps, *lanes]
        case "nested":
            nested = those(nest.names, Part.REST, Part.CACHE)
            return [*nested, *steps, *registers, *lanes]


def decide(nest: Nest, trace: Sequence[Directive]) -> Plan | None:
    """The decisions that a nest's directives stand for, None if no decisions stand for them."""
    parsed = _parse(nest, trace)
    if parsed is None:
        return None
    tilings, order, parallel = parsed
    for placement in PLACEMENTS:
        plan = Plan(tilings, order, placement, parallel)
        if directives(nest, plan).trace() == tuple(trace):
            return plan
    return None


def _parse(
    nest: Nest, trace: Sequence[Directive]
) -> tuple[tuple[Tiling, ...], tuple[str, ...], bool] | None:
    kinds = {d.target: d.op for d in trace if d.op in ("vectorize", "unroll")}
    factors = {d.target: d.args[0] for d in trace if d.op == "split" and len(d.args) == 1}
    roles = {"vectorize": Part.LANES, "unroll": Part.REGISTER}
    tilings, root = [], {}
    for axis in nest.axes:
        found = {Part.LANES: 1, Part.REGISTER: 1, Part.CACHE: 1}
        name, rest = axis.loop, axis.extent
        root[name] = axis.loop
        while isinstance(factor := factors.get(name), int) and factor > 1:
            outer, inner = split_names(name)
            found[roles.get(kinds.get(inner, ""), Part.CACHE)] = factor
            name, rest = outer, None if rest is None else -(-rest // factor)
            root[name] = axis.loop
        if name in kinds:
            if rest is None:
                return None
            found[roles[kinds[name]]] = rest
        tilings.append(
            Tiling(axis.loop, found[Part.LANES], found[Part.REGISTER], found[Part.CACHE])
        )
    reorders = [(d.target, *map(str, d.args)) for d in trace if d.op == "reorder"]
    spatial = [axis.loop for axis in nest.spatial]
    ordered = [root[name] for name in (reorders[0] if reorders else ()) if name in root]
    # A loop without a rest has no place of its own in the order.
    order = [loop for loop in dict.fromkeys(ordered) if loop in spatial]
    order += [loop for loop in spatial if loop not in order]
    return tuple(tilings), tuple(order), any(d.op == "parallel" for d in trace)


@dataclass(frozen=True, slots=True)
class Outline:
    """A whole trace by nests: the decisions of those in the form of this module, the directives of
    the others, and what belongs to no nest.
    """

    plans: tuple[Plan | None, ...]
    foreign: tuple[Trace, ...]
    homeless: Trace

    def trace(self, nests: Sequence[Nest]) -> Trace:
        """The directives: of all nests with decisions phase by phase, then of the others."""
        known = [directives(n, p) for n, p in zip(nests, self.plans, strict=True) if p is not None]
        phases = [
            [d for each in known for d in each.splits],
            [d for each in known for d in each.order],
            [d for part in self.foreign for d in part],
            self.homeless,
            [d for each in known for d in each.unrolls],
            [d for each in known for d in each.kinds],
        ]
        return tuple(d for phase in phases for d in phase)


def outline(nests: Sequence[Nest], trace: Sequence[Directive]) -> Outline:
    """A trace by nests."""
    whose = owners(nests, trace)
    pieces = [
        tuple(d for d, owner in zip(trace, whose, strict=True) if owner == place)
        for place in range(len(nests))
    ]
    plans = tuple(decide(nest, piece) for nest, piece in zip(nests, pieces, strict=True))
    foreign = tuple(
        piece if plan is None else () for piece, plan in zip(pieces, plans, strict=True)
    )
    homeless = tuple(d for d, owner in zip(trace, whose, strict=True) if owner is None)
    return Outline(plans, foreign, homeless)
