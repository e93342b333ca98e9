"""What the host does while kernels are timed: its clock, time that others had, and how far
identical kernels seem apart.

Nothing here looks at a candidate's times. A pair of calls is discarded by rules that were fixed
before it was taken and that look at both arms as one: a kernel was interrupted and lost more than
a hundredth of the pair's time, or the clock was a tenth below its usual before or after (a
neighbour on the same core shows as that, too; nvbench drops samples below three quarters of the
default clock). A discarded pair is taken again, at most as often as pairs were asked for.

Identical kernels in fresh processes (A/A) tell what no interval can: what this host adds to a
comparison whatever the samples say. Less than that is never claimed.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelwright.env.objective import common_scale, locations
from kernelwright.env.types import (
    Arrays,
    Candidate,
    Conditions,
    ErrorModel,
    Language,
    Problem,
    ProcessPair,
    TensorSpec,
    Workload,
)
from kernelwright.evaluators.cpu.native import judge
from kernelwright.evaluators.cpu.placement import Placement

# Dependent additions of one look at the clock, of which there are three: 3 to 8 us each.
ADDS = 1 << 14
# The share of a pair's time that may be lost, and of the usual clock that must be there, which is
# the median of so many looks.
LOST, SLOWED, LOOKS = 0.01, 0.9, 64
# The share of a claim's pairs that may be disturbed, as none better were to be had.
DISTURBED = 0.25
# Identical kernels: how many process pairs of how many pairs. A host on which they seem further
# apart than this can say nothing; one on which they seem closer is not believed to be that good.
AA_PROCESS_PAIRS, AA_PAIRS = 10, 8
NOISY, QUIET = 0.02, 0.001
# For how many s that holds.
AA_HOLDS_S = 60.0
ADVICE = (
    "end other programs on this machine, fix its clock (cpupower frequency-set -g performance; "
    "turbo off), or take another machine, and run again"
)
_TICK_NS = 1e7


class Watch:
    """Watches the cores that kernels run on, through a sitting.

    Args:
        where: whose cores.
    """

    def __init__(self, where: Placement) -> None:
        self._where = where
        self._ffi, self._native = judge()
        self._clocks: list[float] = []
        self._stolen_ns = 0.0

    def look(self) -> float:
        """The clock of the kernels' core now, in Hz: this thread moves there for a moment, while
        every kernel rests. From here on time that others have is counted.
        """
        took = int(self._native.kw_adds(self._where.workers[0], ADDS))
        clock = 1e9 * ADDS / max(1, took)
        self._clocks.append(clock)
        self._stolen_ns = stolen_ns(self._where.workers)
        return clock

    def conditions(self, clock_hz: float, calls: Sequence[tuple[int, float]]) -> Conditions:
        """What the host did since a look at the clock: the lower of that and of the clock now, and
        what became of each call's (interruptions, time waited in ns).
        """
        # Threads leave their cores and come back as their kernel pleases: that is its own doing,
        # and it could have just its slow calls discarded.
        alone = len(self._where.workers) == 1
        waited = sum(ns for interruptions, ns in calls if interruptions and alone)
        before = self._stolen_ns
        clock_hz = min(clock_hz, self.look())
        stolen = max(0.0, self._stolen_ns - before)
        return Conditions(clock_hz, waited + stolen, sum(count for count, _ in calls))

    def is_disturbed(self, conditions: Conditions, pair_ns: float) -> bool:
        """Whether a pair that took so long in all is discarded."""
        return (
            conditions.stolen_ns > LOST * pair_ns
            or conditions.clock_hz < SLOWED * self.usual_clock_hz
        )

    @property
    def usual_clock_hz(self) -> float:
        """The median clock of late; 0 before the first look."""
        return statistics.median(self._clocks[-LOOKS:]) if self._clocks else 0.0

    @property
    def drift(self) -> float:
        """How far the clock has moved: the median of the last looks over that of the first, 1 where
        it is what it was. Looks that met a neighbour are not what is meant.
        """
        if not self._clocks:
            return 1.0
        first, last = self._clocks[:LOOKS], self._clocks[-LOOKS:]
        return statistics.median(last) / statistics.median(first)


def stolen_ns(cores: Sequence[int]) -> float:
    """The time in ns for which a hypervisor has given these cores to others since it started; 0
    where the system does not say.
    """
    wanted = {f"cpu{core}" for core in cores}
    try:
        with Path("/proc/stat").open() as lines:
            rows = [line.split() for line in lines if line.startswith("cpu")]
    except OSError:
        return 0.0
    return sum(_TICK_NS * int(row[8]) for row in rows if row[0] in wanted and len(row) > 8)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How far identical kernels seem apart on this host: the log ratios of process pairs; how long
    it took to find out, in s, and when that was, by the monotonic clock.
    """

    log_ratios: tuple[float, ...]
    seconds: float
    at: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether it is not too old to stand for the host as it is now."""
        return time.monotonic() - self.at < AA_HOLDS_S

    @property
    def effect(self) -> float:
        """The ratio less 1 that identical kernels differ by: where the middle of their log ratios
        is, or its standard error where that is greater, whatever one disturbed process says.
        """
        (middle,) = locations([self.log_ratios])
        error = common_scale([self.log_ratios]) / math.sqrt(len(self.log_ratios))
        return max(QUIET, math.expm1(max(abs(middle), error)))

    @property
    def is_noisy(self) -> bool:
        """Whether nothing can be claimed on this host."""
        return self.effect > NOISY

    def __str__(self) -> str:
        spread = 100 * statistics.stdev(self.log_ratios)
        return (
            f"identical kernels differ by {100 * self.effect:.2f}% here "
            f"({len(self.log_ratios)} pairs of processes, spread {spread:.2f}%)"
        )


def likeness(pair: Callable[[int], ProcessPair]) -> Likeness:
    """Compare identical kernels in fresh processes; ``pair`` measures one pair of a number. What is
    noisy once is looked at again: a disturbance may be over.
    """
    for attempt in range(2):
        began = time.perf_counter()
        numbers = range(attempt * AA_PROCESS_PAIRS, (attempt + 1) * AA_PROCESS_PAIRS)
        logs = [[math.log(r / c) for c, r in pair(number).samples_ns] for number in numbers]
        took = time.perf_counter() - began
        found = Likeness(tuple(locations(logs)), took, time.monotonic())
        if not found.is_noisy:
            break
    return found


# The kernel that is compared with itself: some arithmetic on 64 KiB, exact in any order.
_STEPS, _WORKLOAD = 64, Workload((("n", 16384),))
_MULTIPLIER, _INCREMENT = 1664525, 1013904223
PROBE = Candidate(
    Language.SOURCE,
    f"""#include <stdint.h>
void host_probe(const int32_t *restrict x, int32_t *restrict y, int64_t n)
{{
    for (int64_t i = 0; i < n; i++) {{
        uint32_t v = (uint32_t)x[i];
        for (int s = 0; s < {_STEPS}; s++)
            v = v * {_MULTIPLIER}u + {_INCREMENT}u;
        y[i] = (int32_t)v;
    }}
}}
""",
)


def probe_problem() -> Problem:
    """What the probe computes: so many steps of a linear congruence, element by element."""
    multiplier, increment = 1, 0
    for _ in range(_STEPS):
        multiplier = multiplier * _MULTIPLIER % 2**32
        increment = (increment * _MULTIPLIER + _INCREMENT) % 2**32

    def reference(arrays: Arrays) -> Arrays:
        x = arrays["x"].astype(np.int64) % 2**32
        y = (x.astype(np.uint64) * np.uint64(multiplier) + np.uint64(increment)) % 2**32
        return {"y": y.astype(np.uint32).view(np.int32)}

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        bound = 2**31
        count = workload.fixed["n"]
        return {"x": rng.integers(-bound, bound, count, dtype=np.int32)}

    return Problem(
        name="host_probe",
        version=1,
        tensors=(
            TensorSpec("x", ("n",), "int32", "input"),
            TensorSpec("y", ("n",), "int32", "output"),
        ),
        workloads=(_WORKLOAD,),
        error_model=ErrorModel(0.0, "whole numbers modulo 2^32 are exact"),
        reference=reference,
        inputs=inputs,
        flops=lambda workload: 2 * _STEPS * workload.fixed["n"],
        moved_bytes=lambda workload: 8 * workload.fixed["n"],
        spaces=("source",),
    )
