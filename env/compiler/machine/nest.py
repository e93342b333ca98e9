"""A procedure as the CPU model reads it: how often each loop runs, and every access with the loops
around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import assert_never

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Call,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Procedure,
    Stmt,
    Store,
    While,
    loops,
    walk,
)
from kernelwright.env.compiler.ir.queries import stores, tensors_by_name, variables_of
from kernelwright.env.compiler.machine.affine import Loaded, interval, mean


class EstimateError(CompilerError):
    """A procedure without an estimate: an extent that is not known, or a tensor without a size."""


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor's name, shape in numbers, the size of an element, and whether it has values before
    the procedure runs.
    """

    name: str
    shape: tuple[int, ...]
    itemsize: int
    is_input: bool

    @property
    def size_bytes(self) -> int:
        """The bytes of all elements."""
        size = self.itemsize
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True, slots=True)
class Access:
    """One read or write: the element, the loops around it from the outside in, the phase (statement
    of the procedure's body) it belongs to, and the share of iterations that guards let through.
    """

    array: Array
    indices: tuple[Expr, ...]
    loops: tuple[str, ...]
    phase: int
    share: float
    writes: bool


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops' trip counts, which of them are written out (unrolled, or lanes), the arrays, the
    phases, all accesses, and the arrays whose elements ascend: positions, and scalars that are
    counted up.
    """

    trips: dict[str, float]
    written_out: frozenset[str]
    arrays: dict[str, Array]
    phases: tuple[Stmt, ...]
    accesses: tuple[Access, ...]
    ordered: frozenset[str] = frozenset()


def read_nest(procedure: Procedure, loaded_trips: Loaded) -> Nest:
    """What the model needs of a procedure; a loop whose extent is read from memory runs
    ``loaded_trips`` times. Of a mapping that is the number under the loop's own name, or under
    that of the array it is read from.

    Raises:
        EstimateError: if an extent is not a number, or a shape is none.
    """
    trips: dict[str, float] = {}
    for loop in loops(procedure):
        given = loaded_trips.get(loop.var) if isinstance(loaded_trips, Mapping) else None
        if given is not None:
            trips[loop.var] = given
            continue
        try:
            trips[loop.var] = max(0.0, mean(loop.extent, trips, loaded_trips))
        except KeyError as error:
            found = f"{loop.var} in {error.args[0]!r}"
            raise EstimateError(f"expected loops of known extents, found {found}") from None
    arrays = {}
    for tensor in tensors_by_name(procedure).values():
        shape = []
        for extent in tensor.shape:
            if not isinstance(extent, Const):
                raise EstimateError(f"{tensor.name}: expected a shape in numbers, found {extent}")
            shape.append(int(extent.value))
        size = ITEM_BYTES[tensor.dtype]
        arrays[tensor.name] = Array(tensor.name, tuple(shape), size, tensor.role == "input")
    phases = _phases(procedure.body)
    accesses = tuple(
        access
        for number, phase in enumerate(phases)
        for access in _accesses(phase, (), Guards(), number, arrays, trips)
    )
    kinds = (LoopKind.UNROLLED, LoopKind.VECTORIZED)
    written_out = frozenset(loop.var for loop in loops(procedure) if loop.kind in kinds)
    return Nest(trips, written_out, arrays, phases, accesses, _ordered(procedure))


def _ordered(procedure: Procedure) -> frozenset[str]:
    """Arrays whose elements ascend."""
    positions = {t.name for t in procedure.tensors if "ascending" in t.facts}
    counted = {s.tensor for s in stores(procedure.body) if s.reduce == "add" and not s.indices}
    return frozenset(positions | counted)


def _phases(body: Stmt) -> tuple[Stmt, ...]:
    match body:
        case Block(items):
            return tuple(phase for item in items for phase in _phases(item))
        case Allocate(_, inner) | Call(_, inner):
            return _phases(inner)
    return (body,)


def _accesses(
    node: Stmt,
    around: tuple[str, ...],
    guards: Guards,
    phase: int,
    arrays: dict[str, Array],
    trips: dict[str, float],
) -> Iterator[Access]:
    """Every access with the share of iterations that make it. Unlike `ir.accesses` it has both
    sides of a choice, with no share of their own.
    """
    share = guards.share

    def reads(*expressions: Expr) -> Iterator[Access]:
        for expression in expressions:
            for part in walk(expression):
                if isinstance(part, Load):
                    array = arrays[part.tensor]
                    yield Access(array, part.indices, around, phase, share, False)

    match node:
        case Store(tensor, indices, value, reduce):
            yield from reads(value, *indices)
            if reduce is not None:
                yield Access(arrays[tensor], indices, around, phase, share, False)
            yield Access(arrays[tensor], indices, around, phase, share, True)
        case For(var, extent, body, _):
            yield from reads(extent)
            yield from _accesses(body, (*around, var), guards, phase, arrays, trips)
        case If(condition, then):
            yield from reads(condition)
            passed = guards.inside(condition, trips)
            yield from _accesses(then, around, passed, phase, arrays, trips)
        case While():
            raise AssertionError("whiles are loops: written_as_loops")
        case Block(items):
            for item in items:
                yield from _accesses(item, around, guards, phase, arrays, trips)
        case Allocate(_, body) | Call(_, body):
            yield from _accesses(body, around, guards, phase, arrays, trips)
        case Barrier() | Prefetch():
            pass
        case _:
            assert_never(node)


@dataclass(frozen=True, slots=True)
class Guards:
    """The conditions around a statement: the variables of each, and the share of iterations that
    it lets through.
    """

    parts: tuple[tuple[frozenset[str], float], ...] = ()

    def inside(self, condition: Expr, trips: dict[str, float]) -> Guards:
        """These and one more."""
        match condition:
            case Binary("and", left, right):
                return self.inside(left, trips).inside(right, trips)
        names = frozenset(variables_of(condition))
        return Guards((*self.parts, (names, _passing(condition, trips))))

    @property
    def share(self) -> float:
        """The share of iterations that passes all: guards over the same loops (the tails of a
        split that was split again) hold one another, others are independent.
        """
        groups: list[tuple[frozenset[str], float]] = []
        for names, share in self.parts:
            apart = []
            for others, least in groups:
                if names & others:
                    names, share = names | others, min(share, least)
                else:
                    apart.append((others, least))
            groups = [*apart, (names, share)]
        return prod(share for _, share in groups)


def _passing(condition: Expr, trips: dict[str, float]) -> float:
    """The share of iterations for which one condition holds: of a split's tail, what is below the
    limit; of other conditions all.
    """
    match condition:
        case Binary("lt", left, Const(limit, _)):
            bounds = interval(left, trips)
            if bounds is not None and bounds[0] >= 0:
                return min(1.0, float(limit) / (bounds[1] + 1))
    return 1.0
