"""The early cut: from which time on a candidate is clearly slower than the best so far, so that the
rest of its samples need not be taken.

A screen ends after `least` samples or more if every one of them is above a limit: the time of the
best candidate, times a margin that says what is slow enough to be given up, times how far the least
of as many first samples may lie above a candidate's own time. That last factor is the greatest seen
among the candidates before that were sampled to the end, so nothing is assumed of how times
scatter. If the next candidate is like the ``m`` before it, at each number of samples its factor is
greater than all of theirs with a chance of 1 / (m + 1), and only then can one that is no slower
than the margin be given up; nothing is given up before `FEWEST` were sampled to the end. It is no
help where the first calls of fast kernels are slow for longer than those of slow ones, as on a
device that wakes up while it is timed: warm it up first.

Pure: limits are a function of the times that were told, in their order, so a search that is
replayed cuts the same samples.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence

from kernelwright.evaluators.early import least

# The candidates sampled to the end of which there have to be so many before one is given up, and
# the latest of them that are looked at.
FEWEST, POOLED = 8, 64


class Pace:
    """The limits that the candidates so far have set.

    Args:
        margin: from which ratio to the best time on a candidate is slow enough to be given up.
        pairs: how many samples a candidate has that is not given up.

    Raises:
        ValueError: if the margin is not above 1, or a screen has too few samples to end early.
    """

    def __init__(self, margin: float, pairs: int) -> None:
        if not 1 < margin < math.inf:
            raise ValueError(f"margin: expected a ratio above 1, found {margin}")
        if pairs < 2:
            raise ValueError(f"pairs: expected more than 1, found {pairs}")
        self._margin, self._pairs, self._fewest = math.log(margin), pairs, least(pairs)
        self._best = math.inf
        # How far the least of the first 1, 2, … samples of a candidate was above its own time.
        self._pool: deque[list[float]] = deque(maxlen=POOLED)

    def learn(self, times_ns: Sequence[float]) -> None:
        """The times of a candidate that ran.

        Raises:
            ValueError: if there is none.
        """
        if not times_ns:
            raise ValueError("expected at least one time, found none")
        logs = [math.log(time) for time in times_ns]
        if len(logs) < self._pairs:
            return
        place = statistics.median(logs)
        self._best = min(self._best, place)
        lowest, above = math.inf, []
        for log in logs[: self._pairs]:
            lowest = min(lowest, log)
            above.append(lowest - place)
        self._pool.append(above[self._fewest - 1 : -1])

    @property
    def limits_ns(self) -> tuple[float, ...]:
        """For `least` samples and each number above the times of which the least has to be above
        its own for the candidate to be given up; empty while too few candidates were sampled to
        the end.
        """
        if len(self._pool) < FEWEST:
            return ()
        # The least of many samples may lie below the middle of all: that makes no limit lower.
        greatest = [max(0.0, *above) for above in zip(*self._pool, strict=True)]
        return tuple(math.exp(self._best + self._margin + above) for above in greatest)
