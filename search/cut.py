"""The early cut: from which time on a candidate is clearly slower than the best so far, so that the
rest of its samples need not be taken.

A screen ends after `LEAST` samples or more if every one of them is above a limit. The limit lies
above the best candidate's time by a margin, which says what is slow enough to be given up, by the
best one's own uncertainty, and by what one sample scatters. A candidate that is no slower than the
margin allows has each sample above the limit with a chance of ``ERROR ** (1 / LEAST)`` at most, so
it is given up with a chance of about `ERROR`, provided that samples are independent and scatter
like those of the candidates before it. The spread is pooled: a few samples cannot tell their own.

Pure: a limit is a function of the times that were told, in their order, so a search that is
replayed cuts the same samples.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from statistics import NormalDist

from kernelwright.env.objective import common_scale
from kernelwright.evaluators.early import LEAST

# The chance that a candidate within the margin of the best is given up.
ERROR = 1e-4
# The candidates whose samples tell the spread, the latest that have several.
POOLED = 64

_QUANTILE = NormalDist().inv_cdf(1 - ERROR ** (1 / LEAST))


class Pace:
    """The limit that the candidates so far have set.

    Args:
        margin: from which ratio to the best time on a candidate is slow enough to be given up.

    Raises:
        ValueError: if the margin is not above 1.
    """

    def __init__(self, margin: float) -> None:
        if not 1 < margin < math.inf:
            raise ValueError(f"margin: expected a ratio above 1, found {margin}")
        self._margin = math.log(margin)
        self._best: list[float] = []
        self._place = math.inf
        self._pool: deque[list[float]] = deque(maxlen=POOLED)
        self._scale: float | None = None

    def learn(self, times_ns: Sequence[float]) -> None:
        """The times of a candidate that ran.

        Raises:
            ValueError: if there is none.
        """
        logs = [math.log(time) for time in times_ns]
        if len(logs) > 1:
            self._pool.append(logs)
            self._scale = None
        place = statistics.median(logs)
        if place < self._place:
            self._best, self._place = logs, place

    @property
    def limit_ns(self) -> float | None:
        """The time above which all samples of a candidate have to be for it to be given up; None
        while nothing ran, or no candidate has told its spread.
        """
        if not self._pool:
            return None
        if self._scale is None:
            self._scale = common_scale(self._pool)
        doubt = _QUANTILE * self._scale * (1 + 1 / math.sqrt(len(self._best)))
        return math.exp(self._place + self._margin + doubt)
