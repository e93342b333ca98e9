"""Where the laboratory's times come from: factors on true times, window by window.

A window is a stretch of time on one host: what is measured in one window shares its drift, so a
pair of calls cancels it and two windows do not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Factors = NDArray[np.float64]
_TAIL_SHAPE = 1.5


class Clock(Protocol):
    """A source of factors on true times."""

    @property
    def name(self) -> str:
        """What it is called in a table."""
        ...

    def window(self, rng: np.random.Generator, calls: int) -> Factors:
        """Factors of so many calls of one kernel in a window of its own, of shape (calls,)."""
        ...

    def pairs(self, rng: np.random.Generator, windows: int, pairs: int) -> Factors:
        """Factors of pairs of calls, (candidate, reference), each row in a window (a process pair)
        of its own; of shape (windows, pairs, 2).
        """
        ...


@dataclass(frozen=True, slots=True)
class Simulated:
    """A noise model.

    Args:
        name: what it is called.
        lognormal: standard deviation of the log of a call.
        drift: standard deviation of the log of a window's common factor.
        heavy_tail: the chance that a call is interrupted, which multiplies it by a Pareto variate
            of shape 1.5.
        switch: the chance that between two calls the clock changes from one of two to the other.
        slow_factor: how much slower the slower one is.
    """

    name: str
    lognormal: float = 0.02
    drift: float = 0.0
    heavy_tail: float = 0.0
    switch: float = 0.0
    slow_factor: float = 1.25

    def window(self, rng: np.random.Generator, calls: int) -> Factors:
        """See `Clock.window`."""
        found: Factors = math.exp(self.drift * rng.standard_normal()) * self._calls(rng, (calls,))
        return found

    def pairs(self, rng: np.random.Generator, windows: int, pairs: int) -> Factors:
        """See `Clock.pairs`."""
        common = np.exp(self.drift * rng.standard_normal((windows, 1, 1)))
        found: Factors = common * self._calls(rng, (windows, pairs, 2))
        return found

    def _calls(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Factors:
        out = np.exp(self.lognormal * rng.standard_normal(shape))
        if self.heavy_tail:
            struck = rng.random(shape) < self.heavy_tail
            out[struck] *= rng.random(int(struck.sum())) ** (-1 / _TAIL_SHAPE)
        if self.switch:
            windows = shape[0] if len(shape) > 1 else 1
            changes = rng.random((windows, out.size // windows)) < self.switch
            changes[:, 0] = rng.random(windows) < 0.5
            is_slow = np.cumsum(changes, axis=1) % 2 == 1
            out[is_slow.reshape(shape)] *= self.slow_factor
        return out


# What the laboratory runs through.
SIMULATED = (
    Simulated("lognormal 2%"),
    Simulated("lognormal and drift 2%", drift=0.02),
    Simulated("drift and 5% heavy tails", drift=0.02, heavy_tail=0.05),
    Simulated("two clocks", drift=0.01, switch=0.05),
)
HARDEST = SIMULATED[2]


@dataclass(frozen=True, slots=True)
class Traces:
    """Recorded pairs of calls of identical kernels, process pair by process pair, to be drawn from
    again: a drawn process pair is a stretch of one that was recorded, so what it has of placement
    and of drift stays in it.

    Args:
        name: what it is called.
        times_ns: recorded times, of shape (process pairs, pairs, 2).

    Raises:
        ValueError: if there is less than one pair in each of two process pairs.
    """

    name: str
    times_ns: Factors

    def __post_init__(self) -> None:
        shape = self.times_ns.shape
        if len(shape) != 3 or shape[0] < 2 or shape[1] < 1 or shape[2] != 2:
            raise ValueError(f"traces: expected (process pairs, pairs, 2), found shape {shape}")

    def window(self, rng: np.random.Generator, calls: int) -> Factors:
        """See `Clock.window`."""
        return self.pairs(rng, 1, calls)[0, :, 0]

    def pairs(self, rng: np.random.Generator, windows: int, pairs: int) -> Factors:
        """See `Clock.pairs`; longer than what was recorded, a process pair starts again."""
        count, length, _ = self.times_ns.shape
        rows = rng.integers(count, size=windows)
        starts = rng.integers(length, size=windows)
        places = (starts[:, None] + np.arange(pairs)) % length
        found: Factors = self.times_ns[rows[:, None], places] / float(np.median(self.times_ns))
        return found


def traces_of(name: str, process_pairs: Sequence[Sequence[tuple[float, float]]]) -> Traces:
    """Traces from samples (candidate, reference) in ns; process pairs are cut to the shortest.

    Raises:
        ValueError: if there are too few.
    """
    least = min((len(pair) for pair in process_pairs), default=0)
    return Traces(name, np.array([list(pair)[:least] for pair in process_pairs], dtype=np.float64))
