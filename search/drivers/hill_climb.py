"""Hill climbing with restarts: try the unvisited neighbours, move to the best one if it is better,
else start again elsewhere.

Steepest ascent over one-step neighbours. It gets stuck where knobs interact, which is why it
restarts from random unvisited configurations (a batch of them; the best becomes the centre)
whenever no neighbour improves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import EXHAUSTED, Pool
from kernelwright.search.trial import Trial


class HillClimb:
    """Steepest ascent with random restarts."""

    def __init__(self, space: KnobSpace, *, seed: int, batch: int) -> None:
        del batch
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._pool = Pool(space)
        self._centre: int | None = None
        self._height = -math.inf
        self._queue: list[int] = []
        self._waiting: set[int] = set()
        self._round: dict[int, float] = {}

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return None if len(self._pool) else EXHAUSTED

    def ask(self, n: int) -> list[Proposal]:
        """The next unvisited neighbours of the centre, or a batch of random starts."""
        if not self._queue and not self._waiting:
            self._move()
        if self._centre is not None and self._queue:
            chosen, self._queue = self._queue[:n], self._queue[n:]
            parents: tuple[str, ...] = (self._space.candidate(self._centre).key,)
            for index in chosen:
                self._pool.remove(index)
        else:
            chosen = [self._pool.draw(self._rng) for _ in range(min(n, len(self._pool)))]
            parents = ()
        self._waiting.update(chosen)
        return [Proposal(self._space.candidate(i), "hill_climb", parents) for i in chosen]

    def _move(self) -> None:
        """All neighbours are known: go to the best one while that is uphill, else give the hill
        up.
        """
        while self._round and not self._queue:
            best = max(self._round, key=lambda i: (self._round[i], -i))
            if self._round[best] > self._height:
                self._centre, self._height = best, self._round[best]
                self._queue = [i for i in self._space.neighbour_indices(best) if i in self._pool]
            else:
                self._centre, self._height = None, -math.inf
            self._round.clear()
        if not self._queue:
            self._centre, self._height = None, -math.inf

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn the values of this round."""
        for trial in trials:
            index = self._space.index(trial.candidate)
            self._pool.remove(index)
            self._queue = [i for i in self._queue if i != index]
            self._waiting.discard(index)
            if trial.objective is not None:
                self._round[index] = trial.objective
