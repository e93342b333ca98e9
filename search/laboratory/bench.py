"""What a rule has to work with: kernels that it may time, one of which is the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kernelwright.search.laboratory.noise import Clock, Factors


class Bench:
    """Kernels with planted speedups on a clock.

    Args:
        clock: how times err.
        speedups: the true speedup of each candidate over the baseline.
        rng: where noise comes from.
        time_ns: the baseline's true time.
    """

    def __init__(
        self,
        clock: Clock,
        speedups: Sequence[float],
        rng: np.random.Generator,
        time_ns: float = 1e5,
    ) -> None:
        self.clock, self.time_ns = clock, time_ns
        self._speedups, self._rng = np.array(speedups, dtype=np.float64), rng
        self.calls = 0

    @property
    def candidates(self) -> int:
        """How many candidates there are."""
        return len(self._speedups)

    def times(self, candidate: int | None, calls: int) -> Factors:
        """Times in ns of so many calls in a row, of the baseline if None."""
        self.calls += calls
        found: Factors = self._true_ns(candidate) * self.clock.window(self._rng, calls)
        return found

    def pairs(self, candidate: int, windows: int, pairs: int) -> Factors:
        """Times in ns of (candidate, baseline) in turns, in fresh pairs of processes; of shape
        (windows, pairs, 2).
        """
        self.calls += 2 * windows * pairs
        true = np.array([self._true_ns(candidate), self.time_ns])
        found: Factors = self.clock.pairs(self._rng, windows, pairs) * true
        return found

    def _true_ns(self, candidate: int | None) -> float:
        return (
            self.time_ns if candidate is None else self.time_ns / float(self._speedups[candidate])
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """What a rule says: the candidate that it chose, the speedup that it names, with its interval
    where it has one, and whether it calls that faster.
    """

    candidate: int
    speedup: float
    is_win: bool
    low: float | None = None
    high: float | None = None


class Rule(Protocol):
    """A way to time candidates and to claim that one is faster. It is called with a bench, which
    may have one candidate or many, and claims at most one.
    """

    def __call__(self, bench: Bench, /) -> Claim | None:
        """The claim; None if nothing can be said."""
        ...
