"""The analytic CPU model: the time of a scheduled procedure, with its breakdown.

    peel         what the compiler writes out by itself
    outer        what it runs in lanes around sums
    nest         trip counts and accesses of the LoopIR
    straight     the stores of a body, unrolled and in lanes
    counting     what one iteration does
    recurrence   how long an iteration waits for earlier ones
    throughput   cycles of the core: units, chains, loop overhead
    footprint    bytes that cross each boundary of the cache hierarchy
    strides      which of them no prefetcher expects

A phase (a statement of the procedure's body) takes the longest of its core time and its transfers,
as in a roofline with a roof for each level (Williams, Waterman and Patterson, CACM 2009); phases
add up. The compiler is taken to do what the schedule says, to write short innermost loops out, to
vectorise a plain innermost loop over neighbouring elements, or a plain loop around sums; it does
not exchange loops and does not reorder sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from kernelwright.env.compiler.ir.nodes import Procedure
from kernelwright.env.compiler.ir.whiles import written_as_loops
from kernelwright.env.compiler.machine.affine import Loaded
from kernelwright.env.compiler.machine.footprint import Crossing, crossings
from kernelwright.env.compiler.machine.hierarchy import Cache
from kernelwright.env.compiler.machine.nest import read_nest
from kernelwright.env.compiler.machine.outer import OuterLanes
from kernelwright.env.compiler.machine.peel import Peeling
from kernelwright.env.compiler.machine.table import load_table, table_names, table_sha256
from kernelwright.env.compiler.machine.throughput import UNITS, CoreCost, core_cost

CPUS_DIR = Path(__file__).parent / "cpus"
LOADED_TRIPS = 16.0
BOUNDS = (*UNITS, "l2", "l3", "dram")


@dataclass(frozen=True, slots=True)
class CpuMachine:
    """A CPU's numbers, in SI units, bytes and cycles; what is of a core says so in its table."""

    name: str
    title: str
    cores: int
    clock_hz: float
    simd_bytes: int
    register_bytes: int
    vector_registers: int
    fma_pipes: int
    fma_latency: float
    add_latency: float
    loads_per_clock: float
    stores_per_clock: float
    issue_width: float
    reorder_window: float
    line_bytes: int
    l1_bytes: int
    l1_ways: int
    l2_bytes: int
    l2_ways: int
    l3_bytes: int
    dram_bytes_per_s: float
    l2_bytes_per_s: float
    # Fitted, not hardware data.
    l3_bytes_per_s: float
    l3_scattered_s: float
    dram_scattered_s: float
    pipe_efficiency: float
    divide_cycles: float
    exp_cycles: float
    log_cycles: float
    tanh_cycles: float
    erf_cycles: float
    store_forward_cycles: float
    loop_entry_cycles: float
    peeled_trips: int
    peeled_copies: int
    auto_vector_bytes: int
    fork_s: float

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, str) and not 0 < value < math.inf:
                raise ValueError(f"{item.name}: expected a finite number > 0, found {value}")
        if self.pipe_efficiency > 1:
            raise ValueError(f"pipe_efficiency: expected at most 1, found {self.pipe_efficiency}")

    def peak_flops(self, itemsize: int = 4) -> float:
        """Operations a second of one core's pipes on elements of a size; an FMA is two."""
        lanes = self.simd_bytes / itemsize
        return 2 * lanes * self.fma_pipes * self.clock_hz * self.pipe_efficiency

    def floor_s(
        self, flops: float, moved_bytes: float, *, itemsize: int = 4, threads: int = 1
    ) -> float:
        """The roofline's least time in seconds (Williams, Waterman and Patterson, CACM 2009)."""
        compute = flops / (self.peak_flops(itemsize) * threads)
        return max(compute, moved_bytes / self.dram_bytes_per_s)

    @property
    def caches(self) -> tuple[Cache, ...]:
        """The levels, from the core outwards. The last one spreads addresses over its sets by a
        hash, so no pitch is worse than another there: as one set.
        """
        return (
            Cache(self.l1_bytes, self.l1_ways, self.line_bytes),
            Cache(self.l2_bytes, self.l2_ways, self.line_bytes),
            Cache(self.l3_bytes, self.l3_bytes // self.line_bytes, self.line_bytes),
        )


@dataclass(frozen=True, slots=True)
class CpuEstimate:
    """An estimated time and what it is made of, in seconds, bytes and shares.

    ``core_s`` is the time with all data in the first cache; ``flop_s``, ``access_s``, ``issue_s``
    and ``chain_s`` are what the pipes, the load and store ports, the front end and the longest
    chains would need alone; ``overhead_s`` is the loops'. The bytes are those that the core asks
    for and those that come from (and go to) each further level. ``vector_efficiency`` is the used
    share of the pipes' lanes.
    """

    time_s: float
    core_s: float
    flop_s: float
    access_s: float
    issue_s: float
    chain_s: float
    overhead_s: float
    flops: float
    l1_bytes: float
    l2_bytes: float
    l3_bytes: float
    dram_bytes: float
    vector_efficiency: float
    bound: str

    def facts(self) -> tuple[tuple[str, float], ...]:
        """The numbers by name."""
        return tuple((name, float(getattr(self, name))) for name in fact_names())


def fact_names() -> tuple[str, ...]:
    """The names of an estimate's numbers."""
    return tuple(item.name for item in fields(CpuEstimate) if item.name != "bound")


def machine_names() -> tuple[str, ...]:
    """The CPUs with a table."""
    return table_names(CPUS_DIR)


def machine_sha256(name: str) -> str:
    """The hash of a CPU's table."""
    return table_sha256("machine", CPUS_DIR, name)


def load_machine(name: str) -> CpuMachine:
    """The CPU of a name, or of a YAML file's path.

    Raises:
        OptionError: if there is no such table, or it is not YAML, lacks a number, has an unknown
            one or a value of the wrong type; it says which.
    """
    return load_table(CpuMachine, "machine", CPUS_DIR, name)


def estimate(
    procedure: Procedure,
    machine: CpuMachine,
    *,
    threads: int = 1,
    loaded_trips: Loaded = LOADED_TRIPS,
) -> CpuEstimate:
    """The time of a scheduled procedure on ``threads`` cores, from cold caches.

    Loops whose extent is read from memory, and every `While`, are taken to run ``loaded_trips``
    times; with a mapping, as often as it says of the loop or of the array of positions
    (`affine.mean`).

    Raises:
        EstimateError: if an extent is not a number.
    """
    peeling = Peeling(machine.peeled_trips, machine.peeled_copies)
    written = OuterLanes(machine.auto_vector_bytes).apply(
        peeling.apply(written_as_loops(procedure))
    )
    nest = read_nest(written, loaded_trips)
    costs = [core_cost(phase, nest, machine, threads) for phase in nest.phases]
    crossing = crossings(nest, machine.caches)
    parts = [
        _phase_s(cost, [level[i] for level in crossing], machine) for i, cost in enumerate(costs)
    ]
    bound = _bound(parts)
    clock = machine.clock_hz

    def unit(*names: str) -> float:
        cycles = sum(cost.units[name] / cost.threads for cost in costs for name in names)
        return cycles / clock

    pipe_slots = sum(cost.pipe_slots for cost in costs)
    moved = [sum(part.lines for part in level) * machine.line_bytes for level in crossing]
    return CpuEstimate(
        time_s=sum(max(part.values()) for part in parts),
        core_s=sum(part["core"] for part in parts),
        flop_s=unit("flops"),
        access_s=unit("loads", "stores"),
        issue_s=unit("issue"),
        chain_s=unit("chain"),
        overhead_s=unit("overhead"),
        flops=sum(cost.flops for cost in costs),
        l1_bytes=sum(cost.accessed_slots for cost in costs) * machine.simd_bytes,
        l2_bytes=moved[0],
        l3_bytes=moved[1],
        dram_bytes=moved[2],
        vector_efficiency=sum(c.ideal_slots for c in costs) / pipe_slots if pipe_slots else 1.0,
        bound=bound if bound != "core" else _core_bound(costs),
    )


def _phase_s(cost: CoreCost, crossing: Sequence[Crossing], machine: CpuMachine) -> dict[str, float]:
    l2, l3, dram = crossing
    line, threads = machine.line_bytes, cost.threads

    def far(part: Crossing, bytes_per_s: float, scattered_s: float) -> float:
        """A line that nothing expects takes longer than one of a stream."""
        streamed = (part.lines - part.scattered) * line / bytes_per_s
        return streamed + part.scattered * max(line / bytes_per_s, scattered_s / threads)

    return {
        "core": cost.cycles / machine.clock_hz,
        "l2": l2.lines * line / (machine.l2_bytes_per_s * threads),
        "l3": far(l3, machine.l3_bytes_per_s * threads, machine.l3_scattered_s),
        "dram": far(dram, machine.dram_bytes_per_s, machine.dram_scattered_s),
    }


def _bound(parts: list[dict[str, float]]) -> str:
    """What the longest phase waits for."""
    longest = max(parts, key=lambda part: max(part.values()), default={"core": 0.0})
    return max(longest, key=lambda name: longest[name])


def _core_bound(costs: list[CoreCost]) -> str:
    busy = {name: sum(cost.busy[name] for cost in costs) for name in UNITS}
    return max(busy, key=lambda name: busy[name])
