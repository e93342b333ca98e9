"""Hill climbing with restarts: try the unvisited neighbours, move to the best one if it is better,
else start again elsewhere.

Steepest ascent over one-step neighbours (in an open space, over some of them). It gets stuck where
knobs interact, which is why it restarts from random unvisited configurations (a batch of them; the
best becomes the centre) whenever no neighbour improves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernelwright.env.protocols import Space
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import make_pool
from kernelwright.search.trial import Trial


class HillClimb:
    """Steepest ascent with random restarts."""

    def __init__(self, space: Space, *, seed: int, batch: int) -> None:
        del batch
        self._pool = make_pool(space, np.random.default_rng(seed))
        self._centre: int | None = None
        self._height = -math.inf
        self._queue: list[int] = []
        self._waiting: set[int] = set()
        self._round: dict[int, float] = {}

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return None if self._queue else self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """The next unvisited neighbours of the centre, or a batch of random starts."""
        if not self._queue and not self._waiting:
            self._move()
        if self._centre is not None and self._queue:
            chosen, self._queue = self._queue[:n], self._queue[n:]
            parents: tuple[str, ...] = (self._pool.candidate(self._centre).key,)
            for index in chosen:
                self._pool.remove(index)
        else:
            chosen, parents = [], ()
            while len(chosen) < n and (drawn := self._pool.draw()) is not None:
                chosen.append(drawn)
        self._waiting.update(chosen)
        return [Proposal(self._pool.candidate(i), "hill_climb", parents) for i in chosen]

    def _move(self) -> None:
        """All neighbours are known: go to the best one while that is uphill, else give the hill
        up.
        """
        while self._round and not self._queue:
            best = max(self._round, key=lambda i: (self._round[i], -i))
            if self._round[best] > self._height:
                self._centre, self._height = best, self._round[best]
                self._queue = [i for i in self._pool.neighbours(best) if i in self._pool]
            else:
                self._centre, self._height = None, -math.inf
            self._round.clear()
        if not self._queue:
            self._centre, self._height = None, -math.inf

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn the values of this round."""
        for trial in trials:
            index = self._pool.handle(trial.candidate)
            self._pool.remove(index)
            self._queue = [i for i in self._queue if i != index]
            self._waiting.discard(index)
            if trial.objective is not None:
                self._round[index] = trial.objective
