"""What the host does while kernels are timed: its clock, and time that others had.

Nothing here looks at a candidate's times. A pair of calls is discarded by rules that were fixed
before it was taken and that look at both arms as one: a kernel was interrupted and lost more than
a hundredth of the pair's time (two of a pair of more than 100 ms), or the clock was a tenth below
its usual before or after (a neighbour on the same core shows as that, too; nvbench drops samples
below three quarters of the default clock). A discarded pair is taken again, at most as often as
pairs were asked for.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from kernelwright.env.types import Conditions
from kernelwright.evaluators.cpu.native import judge
from kernelwright.evaluators.cpu.placement import Placement

# Dependent additions of one look at the clock, of which there are three: 3 to 8 us each.
ADDS = 1 << 14
# The share of a pair's time that may be lost: over a short time one interruption, over a long one
# what a system always has to do.
LOST, LOST_OF_LONG, LONG_NS = 0.01, 0.02, 1e8
# The share of the usual clock that must be there, which is the median of so many looks.
SLOWED, LOOKS = 0.9, 64
# The share of a claim's pairs that may be disturbed, as none better were to be had.
DISTURBED = 0.25
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
        lost = LOST_OF_LONG if pair_ns > LONG_NS else LOST
        return (
            conditions.stolen_ns > lost * pair_ns
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
