"""The scheduler: the next batch goes where weight x best time x expected relative gain is greatest.

The relative gain of a task's next batch is guessed from three witnesses, each a fall of log time a
batch: its own recent slope; what tasks like it gained by their batch of the same number (a pooled
learning curve, the nearer the task the more it counts); and an optimist who knows nothing and says
``optimism / batches^1.5``. No task can fall below its roofline, so no gain is expected beyond it.

Nobody starves: every task has its first batch before anybody has a second (so all of them have a
time, if anything passes), and of the batches that follow a fixed part, ``floor``, goes to whoever
waited longest, whatever is expected. A task in which nothing has passed has no time and no gain: it
lives on its part of the floor, so it neither blocks the others nor is forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.search.tasks.standing import (
    FIRST,
    FLOOR,
    GAIN,
    Standing,
    Turn,
    longest_waiting,
    newcomer,
    open_tasks,
)

# How fast optimism fades with the number of batches. With 1, tasks of great weight are still hoped
# for when everything has been found in them, and light ones wait (see benchmarks/tasks.py).
FADES = 1.5
# How many tasks the pooled curve counts as, at most: the own slope must stay heard.
MOST_POOLED = 3.0


class Gradient:
    """Share of the total time x expected gain, with a floor for everybody."""

    def __init__(
        self,
        *,
        floor: Annotated[
            float,
            Field(
                gt=0, le=1, description="part of the batches that goes to whoever waited longest"
            ),
        ] = 0.1,
        optimism: Annotated[
            float, Field(ge=0, description="fall of log time that a second batch may bring")
        ] = 0.3,
        window: Annotated[int, Field(ge=1, description="batches that a slope is taken over")] = 3,
        reach: Annotated[
            float, Field(gt=0, description="doublings within which tasks are much alike")
        ] = 2.0,
    ) -> None:
        self._floor, self._optimism = floor, optimism
        self._window, self._reach = window, reach

    def choose(self, standings: Sequence[Standing]) -> Turn | None:
        """Who is next."""
        tasks = open_tasks(standings)
        if not tasks:
            return None
        fresh = newcomer(standings)
        if fresh is not None:
            return Turn(fresh, FIRST)
        # The batches after the first ones, of which every so manieth is the floor's.
        after = sum(max(standing.batches - 1, 0) for standing in standings)
        gains = self._gains(standings)
        best = min(tasks, key=lambda i: (-gains[i], standings[i].last_turn, i))
        due = math.floor((after + 1) * self._floor) > math.floor(after * self._floor)
        if due or not gains[best] > 0:
            return Turn(longest_waiting(standings), FLOOR)
        return Turn(best, GAIN, gains[best])

    def _gains(self, standings: Sequence[Standing]) -> list[float]:
        """The expected fall of the weighted total, in ns, by one more batch of each."""
        pooled = self._pooled(standings)
        return [
            standing.share * -math.expm1(-self._fall(standing, *pooled[i]))
            for i, standing in enumerate(standings)
        ]

    def _fall(self, standing: Standing, pooled: float, count: float) -> float:
        """The expected fall of a task's log time by its next batch."""
        best = standing.best_ns
        if best is None:
            return 0.0
        room = math.log(best / standing.floor_ns) if standing.floor_ns > 0 else math.inf
        witnesses = [(self._optimism * float(standing.batches) ** -FADES, 1.0), (pooled, count)]
        known = [time for time in standing.curve if time is not None]
        steps = min(self._window, len(known) - 1)
        if steps:
            witnesses.append((math.log(known[-1 - steps] / best) / steps, steps / self._window))
        mean = sum(fall * weight for fall, weight in witnesses) / sum(w for _, w in witnesses)
        return max(0.0, min(float(mean), room))

    def _pooled(self, standings: Sequence[Standing]) -> list[tuple[float, float]]:
        """Of each task, what others gained by the batch that it would have next, and as how many
        that counts.
        """
        kernel = _kernel(tuple(standing.place for standing in standings), self._reach)
        falls = _falls(standings)
        # Row i: what each task gained by the batch that task i would have next, and whether it had.
        next_up = falls[:, [standing.batches for standing in standings]].T
        had = ~np.isnan(next_up)
        weights = np.where(had, kernel, 0.0)
        totals = weights.sum(axis=1)
        means = (weights * np.where(had, next_up, 0.0)).sum(axis=1) / np.maximum(totals, 1e-300)
        return list(zip(means.tolist(), np.minimum(totals, MOST_POOLED).tolist(), strict=True))


def _falls(standings: Sequence[Standing]) -> NDArray[np.float64]:
    """The fall of log time of each task (row) by each of its batches but the first, and one column
    more; NaN where an end is not known.
    """
    out = np.full((len(standings), 1 + max(s.batches for s in standings)), np.nan)
    for row, standing in zip(out, standings, strict=True):
        curve = [math.nan if time is None else math.log(time) for time in standing.curve]
        row[1 : len(curve)] = -np.diff(curve)
    return out


@lru_cache(maxsize=8)
def _kernel(places: tuple[tuple[float, ...], ...], reach: float) -> NDArray[np.float64]:
    """How much alike tasks are, from 1 (the same place) to 0; a task and itself count as 0."""
    at = np.array(places, dtype=float).reshape(len(places), -1)
    squares = ((at[:, None, :] - at[None, :, :]) ** 2).sum(axis=-1)
    kernel: NDArray[np.float64] = np.exp(-squares / (2 * reach**2))
    np.fill_diagonal(kernel, 0.0)
    return kernel
