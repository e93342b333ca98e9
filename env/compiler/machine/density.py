"""When a sparse kernel pays: its time and that of its dense alternative by density, and where they
cross, without running either.

A sparse kernel's time is that of its scheduled loops, with trip counts by array of positions:

    core       cycles with all data in the first cache (`throughput`), or what merges wait for
    streams    lines of arrays that are walked along, from where data of their size come
    gathers    lines at places that are read from memory, each from where its array lies
    branches   guards inside merges and the ends of them, which no predictor knows

Lines of streams and of gathers share the buffers through which the first cache is filled, so they
add up; the core works beside them. But a sum that waits for itself also waits for what is streamed:
nothing makes up for it. What a line costs is a machine's to say, measured by working set
(`MemoryCosts`): a curve has the share of hits in a cache that is nearly full in it, and how much of
a shared cache there is. Times are of repeated calls, so what fits a cache is there.

A dense alternative is library calls: operations, elements that a matrix product packs, and arrays
that are read or written (`DenseWork`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.ir.whiles import written_as_loops
from kernelwright.env.compiler.machine.cpu import CpuMachine
from kernelwright.env.compiler.machine.footprint import lines_by_array
from kernelwright.env.compiler.machine.gathers import gathered_lines, gathering_depth
from kernelwright.env.compiler.machine.memory import MemoryCosts
from kernelwright.env.compiler.machine.merges import Segments, read_merges
from kernelwright.env.compiler.machine.nest import Access, Nest, read_nest
from kernelwright.env.compiler.machine.outer import OuterLanes
from kernelwright.env.compiler.machine.peel import Peeling
from kernelwright.env.compiler.machine.throughput import core_cost

# Densities between which a crossover is looked for, and how many halvings find it.
LEAST_DENSITY, MOST_DENSITY, HALVINGS = 1e-4, 1.0, 8
# A branch that memory decides is foretold wrongly half of the time.
MISPREDICTED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class LibraryCosts:
    """A matrix product's operations a second on large squares, and seconds for an element of an
    operand that it packs: measured on other shapes than those in question.
    """

    flops_per_s: float
    packed_s: float


@dataclass(frozen=True, slots=True)
class DenseWork:
    """A dense alternative: operations of matrix products, elements packed for them, other
    operations, bytes that are read or written once each, and bytes of all its arrays.
    """

    product_flops: float = 0.0
    packed: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0
    working_set: float = 0.0

    def time_s(self, machine: CpuMachine, memory: MemoryCosts, library: LibraryCosts) -> float:
        """Seconds. Packing and multiplying take turns with reading."""
        product = self.product_flops / library.flops_per_s + self.packed * library.packed_s
        other = self.flops / machine.peak_flops(8)
        lines = self.moved_bytes / machine.line_bytes
        return product + max(other, lines * memory.stream(self.working_set))


@dataclass(frozen=True, slots=True)
class SparseEstimate:
    """A sparse kernel's predicted time and its parts, in seconds; ``chain_s`` is the part of
    ``core_s`` in which sums wait for themselves.
    """

    time_s: float
    core_s: float
    chain_s: float
    merge_s: float
    branch_s: float
    stream_s: float
    gathered_s: float


def sparse_estimate(
    procedure: Procedure, machine: CpuMachine, memory: MemoryCosts, segments: Segments
) -> SparseEstimate:
    """The time of a scheduled sparse procedure on one core; ``segments`` says of each array of
    positions how long its segments are in the mean, and out of how many coordinates.

    Raises:
        EstimateError: if an extent is not a number, or read from an array without a length.
    """
    looped = written_as_loops(procedure)
    merging = read_merges(looped, segments)
    peeling = Peeling(machine.peeled_trips, machine.peeled_copies)
    written = OuterLanes(machine.auto_vector_bytes).apply(peeling.apply(looped))
    nest = read_nest(written, merging.numbers)
    costs = [core_cost(phase, nest, machine, 1) for phase in nest.phases]
    core = sum(cost.cycles for cost in costs) / machine.clock_hz
    merge = merging.steps * memory.merge_step_s
    missed = merging.tests * MISPREDICTED_SHARE + merging.exits
    branch = missed * memory.mispredict_s
    stream, gathered = _lines_s(procedure, nest, machine, memory)
    chain = sum(cost.busy["chain"] for cost in costs) / machine.clock_hz
    time = max(max(core, merge) + branch, stream + gathered, chain + stream)
    return SparseEstimate(time, core, chain, merge, branch, stream, gathered)


def _lines_s(
    procedure: Procedure, nest: Nest, machine: CpuMachine, memory: MemoryCosts
) -> tuple[float, float]:
    """Seconds for lines of streams and of gathers; what lies in the first cache costs the core
    alone.
    """
    arrays = [nest.arrays[tensor.name] for tensor in procedure.tensors]
    total = sum(array.size_bytes for array in arrays)
    by_array = {array.name: list[Access]() for array in arrays}
    walked = []
    for access in nest.accesses:
        if access.array.name not in by_array:
            continue
        if gathering_depth(access, nest) is None:
            walked.append(access)
        else:
            by_array[access.array.name].append(access)
    stream = gathered = 0.0
    for name, lines in lines_by_array(nest, walked, machine.caches[0]).items():
        size = nest.arrays[name].size_bytes
        # What is walked once comes from where it was left by the call before.
        once = lines * machine.line_bytes <= 2 * size
        stream += lines * memory.stream(total if once else size)
    for name, accesses in by_array.items():
        size = nest.arrays[name].size_bytes
        if size > machine.l1_bytes:
            lines = gathered_lines(accesses, nest, machine.line_bytes)
            gathered += lines * memory.gathered(size)
    return stream, gathered


def crossover(sparse_s: Callable[[float], float], dense_s: float) -> float:
    """The density from which on a dense alternative is as fast, by halving the logarithm; `MOST`
    if it never is, `LEAST` if it always is. Sparse times ascend with density.
    """
    low, high = math.log(LEAST_DENSITY), math.log(MOST_DENSITY)
    if sparse_s(MOST_DENSITY) <= dense_s:
        return MOST_DENSITY
    if sparse_s(LEAST_DENSITY) >= dense_s:
        return LEAST_DENSITY
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if sparse_s(math.exp(middle)) < dense_s:
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)
