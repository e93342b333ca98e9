"""The trade-off of a schedule between redundant work, locality and parallelism, in numbers
(Ragan-Kelley et al., PLDI 2013, section 3): how much is computed and how often too much, how much
storage lives at once, how much memory is touched, how many iterations may run at once.

All of it is counted on LoopIR, whatever schedule led there. Counts are exact where loop bounds and
guards are arithmetic on loop variables; what reads memory is counted from above, and `is_exact`
says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelwright.env.compiler.ir.accesses import Access, accesses
from kernelwright.env.compiler.ir.dtypes import ITEM_BYTES
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Call,
    Expr,
    For,
    If,
    Procedure,
    Stmt,
    While,
    loops,
    map_statements,
    statements,
    substitute,
)
from kernelwright.env.compiler.ir.queries import tensors_by_name, variables_of
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.machine.domains import shape_bytes
from kernelwright.env.compiler.machine.nest import EstimateError
from kernelwright.env.compiler.machine.runs import Runs
from kernelwright.env.compiler.poly.demand import demand_of
from kernelwright.env.compiler.schedule.edit import carried, parts


@dataclass(frozen=True, slots=True)
class StageWork:
    """A tensor's values: how many are computed, and how many different ones there are to compute
    (None for a tensor that only the schedule brought, a copy for one).
    """

    tensor: str
    computed: int
    distinct: int | None

    @property
    def recompute(self) -> float | None:
        """How often each value is computed; 1 is once."""
        return self.computed / self.distinct if self.distinct else None


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """A schedule in numbers.

    ``operations`` are those of values (not of indices and guards) by kind, ``points`` the elements
    of the largest output, ``peak_bytes`` what temporaries of one thread hold at once, and
    ``peak_scopes`` the same by memory scope; ``footprint_bytes`` is all memory that is touched.
    ``parallelism`` is how many iterations run at once on average: the work over the work that
    remains in sequence.
    """

    operations: tuple[tuple[str, int], ...]
    points: int
    stages: tuple[StageWork, ...]
    peak_bytes: int
    peak_scopes: tuple[tuple[str, int], ...]
    footprint_bytes: int
    parallelism: float
    is_exact: bool

    @property
    def total_operations(self) -> int:
        """All operations."""
        return sum(number for _, number in self.operations)

    @property
    def operations_per_point(self) -> float:
        """Operations for each element of the largest output."""
        return self.total_operations / self.points if self.points else 0.0


def measure(
    procedure: Procedure,
    definition: Procedure | None = None,
    extents: Mapping[str, int] | None = None,
) -> Tradeoff:
    """The numbers of a scheduled procedure; ``definition`` is the same one before its schedule,
    which says what there is to compute (the procedure itself by default).

    Raises:
        EstimateError: if a loop's extent is not known: it is read from memory, or an extent of the
            procedure has no value.
    """
    known = dict(extents or {})
    missing = [name for name in _used_extents(procedure) if name not in known]
    if missing:
        raise EstimateError(f"expected values for the extents {', '.join(missing)}, found none")
    runs = Runs(procedure, known)
    base = runs if definition is None else Runs(definition, known)
    peak = _peak(procedure.body, known)
    outputs = [shape_bytes(t.shape, 1, known) for t in procedure.tensors if t.role == "output"]
    operations = Counter[str]()
    for store, domain in runs.stores:
        runs.add_operations(store, domain, operations)
    work = sum(number for number, _ in runs.degrees)
    span = sum(number / degree for number, degree in runs.degrees)
    return Tradeoff(
        operations=tuple(sorted((op, n) for op, n in operations.items() if n)),
        points=max(outputs, default=0),
        stages=_stages(runs, base),
        peak_bytes=sum(peak.values()),
        peak_scopes=tuple(sorted(peak.items())),
        footprint_bytes=_footprint(procedure, known),
        parallelism=work / span if span else 1.0,
        is_exact=runs.is_exact and base.is_exact,
    )


def _used_extents(procedure: Procedure) -> Iterator[str]:
    """The extents that shapes, loops and guards mention."""
    mentioned: list[Expr] = [size for t in tensors_by_name(procedure).values() for size in t.shape]
    for node in statements(procedure.body):
        mentioned += (node.extent,) if isinstance(node, For) else ()
        mentioned += (node.condition,) if isinstance(node, If | While) else ()
    names = {name for size in mentioned for name in variables_of(size)}
    return (name for name in procedure.extents if name in names)


def _stages(runs: Runs, base: Runs) -> tuple[StageWork, ...]:
    """Every stage of the definition; one that the schedule put into its readers is computed
    wherever they read it, as often as they are.
    """
    ratio: dict[str, float] = {}
    found: dict[str, StageWork] = {}
    order = list(base.stored)
    for tensor in reversed(order):
        distinct = base.stored[tensor]
        computed = runs.stored.get(tensor)
        if computed is None:
            readers = [(reader, base.loads(tensor, reader)) for reader in order if reader != tensor]
            computed = round(sum(ratio[r] * n for r, n in readers if n))
        ratio[tensor] = computed / distinct if distinct else 1.0
        found[tensor] = StageWork(tensor, computed, distinct)
    new = [StageWork(t, n, None) for t, n in runs.stored.items() if t not in found]
    return (*(found[tensor] for tensor in order), *new)


def _peak(node: Stmt, extents: Mapping[str, int]) -> dict[str, int]:
    """The most bytes of temporaries that live at once, by scope."""
    match node:
        case Allocate(tensor, body):
            peak = _peak(body, extents)
            size = shape_bytes(tensor.shape, ITEM_BYTES[tensor.dtype], extents)
            return {**peak, tensor.scope: peak.get(tensor.scope, 0) + size}
        case Block(items):
            found = [_peak(item, extents) for item in items]
            return max(found, key=lambda peak: sum(peak.values()), default={})
        case For(_, _, body, _) | While(_, body) | Call(_, body):
            return _peak(body, extents)
        case If(_, then):
            return _peak(then, extents)
        case _:
            return {}


def _footprint(procedure: Procedure, extents: Mapping[str, int]) -> int:
    """The bytes of the boxes that are touched of all tensors; of an axis without bounds all."""
    known: dict[str, Expr] = {name: whole(value) for name, value in extents.items()}
    body = map_statements(procedure.body, lambda node: substitute(node, known))
    tensors = tensors_by_name(procedure)
    dtypes = {tensor.name: tensor.dtype for tensor in tensors.values()}
    found: dict[str, list[Access]] = defaultdict(list)
    for access in accesses(body):
        found[access.tensor].append(access)
    total = 0
    for name, touching in found.items():
        touched, tensor = demand_of(touching, (), dtypes), tensors[name]
        if touched is not None:
            limits = [touched.limits(axis) for axis in range(len(tensor.shape))]
            sizes = tuple(
                size if limit is None else Binary("min", limit[1], size)
                for limit, size in zip(limits, tensor.shape, strict=True)
            )
            total += shape_bytes(sizes, ITEM_BYTES[tensor.dtype], extents)
    return total


def potential_parallelism(procedure: Procedure, extents: Mapping[str, int] | None = None) -> float:
    """How many iterations could run at once on average if every loop did that carries no
    dependence.

    Raises:
        EstimateError: if a loop's extent is not known.
    """
    work, span = 0, 0.0
    for part in parts(procedure):
        free = {loop.var for loop in loops(part) if carried(part, loop.var) is None}
        runs = Runs(part, dict(extents or {}))
        for _, domain in runs.stores:
            number = runs.number(domain)
            work, span = work + number, span + number / runs.degree(domain, free)
    return work / span if span else 1.0


def table(rows: Mapping[str, Tradeoff]) -> str:
    """Schedules side by side as Markdown: operations a point, the worst recompute ratio, peak
    storage, footprint, iterations at once. A ``~`` marks what was counted from above.
    """
    head = ("schedule", "operations/point", "recompute", "peak bytes", "touched bytes", "at once")
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    for name, row in rows.items():
        ratios = [s.recompute for s in row.stages if s.recompute is not None]
        about = "" if row.is_exact else "~"
        cells = (
            name,
            f"{about}{row.operations_per_point:.4g}",
            f"{about}{max(ratios, default=1.0):.4g}",
            f"{row.peak_bytes:,}",
            f"{row.footprint_bytes:,}",
            f"{row.parallelism:.4g}",
        )
        lines.append(" | ".join(cells))
    return "".join(f"| {line} |\n" for line in lines)
