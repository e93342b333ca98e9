"""Clock cycles of a core in a loop nest whose data are in the first cache: the busiest of its
units, or the longest chain of operations that wait for each other.

For every loop body: floating-point pipes, load and store ports, and issue slots are counted in the
widths of the machine (the in-core part of the ECM model: Stengel, Treibig, Hager and Wellein, ICS
2015). A reduction whose sum is carried by the loop waits a whole latency for each update of the
same accumulator; independent accumulators, unrolled or in lanes, share that wait. What the reorder
window reaches of the next run of the loop overlaps with this one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernelwright.env.compiler.ir.nodes import LoopKind, Stmt, Store
from kernelwright.env.compiler.machine.affine import flat_from_loads
from kernelwright.env.compiler.machine.counting import Counter, Counts, Widths
from kernelwright.env.compiler.machine.nest import Guards, Nest
from kernelwright.env.compiler.machine.straight import (
    Inner,
    Lanes,
    Straight,
    straighten,
    vector_lanes,
)

if TYPE_CHECKING:
    from kernelwright.env.compiler.machine.cpu import CpuMachine

UNITS = ("flops", "loads", "stores", "issue", "chain", "overhead")


@dataclass(slots=True)
class CoreCost:
    """Cycles of a phase, and in which unit the body that waits for it spends them.

    ``busy`` adds up, body by body, the cycles by the unit that binds there; ``units`` what each
    unit would need alone.
    """

    busy: dict[str, float] = field(default_factory=lambda: dict.fromkeys(UNITS, 0.0))
    units: dict[str, float] = field(default_factory=lambda: dict.fromkeys(UNITS, 0.0))
    flops: float = 0.0
    pipe_slots: float = 0.0
    ideal_slots: float = 0.0
    accessed_slots: float = 0.0
    fork_cycles: float = 0.0
    threads: float = 1.0

    @property
    def cycles(self) -> float:
        """All cycles."""
        return sum(self.busy.values()) + self.fork_cycles


def core_cost(phase: Stmt, nest: Nest, machine: CpuMachine, threads: int) -> CoreCost:
    """The cycles of one phase on ``threads`` cores."""
    walk = _Walk(nest, machine, threads)
    walk.body(phase, None, (), _NOTHING_AROUND, 1.0, 1.0, 1.0)
    return walk.cost


@dataclass(frozen=True, slots=True)
class _Within:
    """The vectorized loop and the guards around a loop."""

    lanes: Lanes | None
    guards: Guards


_NOTHING_AROUND = _Within(None, Guards())


class _Walk:
    """Adds up a phase, loop by loop."""

    def __init__(self, nest: Nest, machine: CpuMachine, threads: int) -> None:
        self._nest, self._machine, self._threads = nest, machine, threads
        self._widths = Widths(machine.simd_bytes, machine.register_bytes)
        self.cost = CoreCost()

    def body(
        self,
        body: Stmt,
        around: str | None,
        outer: tuple[str, ...],
        within: _Within,
        trips: float,
        entries: float,
        speed: float,
    ) -> None:
        """A body that runs ``trips`` times in each of ``entries`` runs of the loop ``around`` it;
        ``speed`` is by how much threads shorten it.
        """
        straight = straighten(body, around, self._nest, within.lanes, within.guards)
        strip = self._strip(straight, around, trips, within.lanes)
        if strip is not None:
            trips /= strip.count
        counter = Counter(self._nest, self._widths, around, outer)
        counts = counter.count(straight.places, strip)
        peeled = not straight.inner and trips <= self._machine.peeled_trips
        looped = around is not None and not peeled
        self._price(counts, straight.tests, trips, entries, speed, looped=looped)
        further = outer if around is None else (around, *outer)
        # A strip is of a loop without loops inside, so these are still the loop's own trips.
        for inner in straight.inner:
            self._loop(inner, inner.runs * trips * entries, further, speed)

    def _loop(self, inner: Inner, entries: float, outer: tuple[str, ...], speed: float) -> None:
        loop = inner.loop
        trips = self._nest.trips[loop.var]
        if loop.kind is LoopKind.PARALLEL and speed == 1.0 and self._threads > 1 and trips > 0:
            speed = trips / -(-trips // self._threads)
            self.cost.threads = max(self.cost.threads, speed)
            self.cost.fork_cycles += entries * self._machine.fork_s * self._machine.clock_hz
        within = _Within(inner.lanes, inner.guards)
        self.body(loop.body, loop.var, outer, within, trips, entries, speed)

    def _strip(
        self, straight: Straight, around: str | None, trips: float, lanes: Lanes | None
    ) -> Lanes | None:
        """The lanes in which a compiler runs a plain innermost loop over neighbouring elements."""
        places = straight.places
        if around is None or lanes is not None or straight.inner or not places:
            return None
        if any(place.lanes is not None or place.pinned for place in places):
            return None
        size = max(self._nest.arrays[place.store.tensor].itemsize for place in places)
        strip = Lanes(around, self._machine.auto_vector_bytes // size)
        if strip.count < 2 or trips < strip.count:
            return None
        if any(vector_lanes(p, self._nest, strip, auto=True) == 1 for p in places):
            return None
        return None if any(self._scans(place.store, around) for place in places) else strip

    def _scans(self, store: Store, var: str) -> bool:
        """Whether a store's elements come from earlier stores of the loop ``var``."""
        counts = Counter(self._nest, self._widths, var, ())
        straight = straighten(store, var, self._nest, None, Guards())
        if counts.count(straight.places).update_chain > 0:
            return True
        target = flat_from_loads(store.indices, self._nest.arrays[store.tensor].shape)
        return target is None or target.hidden(var)

    def _price(
        self,
        counts: Counts,
        tests: float,
        trips: float,
        entries: float,
        speed: float,
        *,
        looped: bool,
    ) -> None:
        machine, cost = self._machine, self.cost
        spilled = self._spill(counts)
        uops = counts.uops + counts.integer_ops + 2 * tests + (2.0 if looped else 0.0)
        unused_loads = max(0.0, counts.load_slots - counts.pipe_slots)
        latency = machine.fma_latency if counts.latency_kind == "fma" else machine.add_latency
        chain = counts.update_chain * latency + counts.memory_chain * machine.store_forward_cycles
        if counts.chain_runs is not None and trips > 0:
            updates = trips * counts.chain_runs
            window = machine.reorder_window / max(1.0, (uops + unused_loads) * updates)
            chain /= max(1.0, window)
        # The window reaches later iterations, whose sums do not wait for these.
        ahead = machine.reorder_window / max(1.0, uops + unused_loads)
        chain = max(chain, counts.fresh_chain * machine.fma_latency / max(1.0, ahead))
        functions = sum(
            calls * getattr(machine, f"{name}_cycles")
            for name, calls in counts.function_calls.items()
        )
        each = {
            "flops": counts.pipe_slots / (machine.fma_pipes * machine.pipe_efficiency)
            + counts.divide_slots * machine.divide_cycles
            + functions,
            "loads": (counts.load_slots + spilled) / machine.loads_per_clock,
            "stores": (counts.store_slots + spilled) / machine.stores_per_clock,
            "issue": (uops + unused_loads) / machine.issue_width,
            "chain": chain,
            "overhead": 1.0 if looped else 0.0,
        }
        runs = trips * entries / speed
        binding = max(UNITS, key=lambda unit: each[unit])
        cost.busy[binding] += each[binding] * runs
        for unit in UNITS:
            cost.units[unit] += each[unit] * runs
        entry = machine.loop_entry_cycles if looped else 0.0
        entry += counts.entry_slots / machine.loads_per_clock
        cost.busy["overhead"] += entry * entries / speed
        cost.units["overhead"] += entry * entries / speed
        times = trips * entries
        cost.flops += counts.flops * times
        cost.pipe_slots += counts.pipe_slots * times
        cost.ideal_slots += counts.ideal_slots * times
        cost.accessed_slots += (counts.load_slots + counts.store_slots + 2 * spilled) * times
        cost.accessed_slots += counts.entry_slots * entries

    def _spill(self, counts: Counts) -> float:
        """Slots of a pipe's width that go to the stack and back each iteration, because sums and
        operands need more registers than there are.
        """
        operands = 1.0 + min(counts.vector_loads, 4.0)
        over = counts.accumulator_registers + operands - self._machine.vector_registers
        if counts.accumulator_registers == 0 or over <= 0:
            return 0.0
        width = self._machine.register_bytes / self._machine.simd_bytes
        return min(over, counts.accumulator_registers) * width
