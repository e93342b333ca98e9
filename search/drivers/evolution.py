"""Evolution: a random first generation, then children of the best parents by crossover and one-step
mutation.

Defaults follow the lecture this project grew from: 16 random, 8 parents, 30% crossover; of the rest
70% change one knob and 30% two, one step each. A parent is the best of ``tournament`` draws among
the parents (1 would be uniform). A child that is invalid or was proposed before is drawn again;
after `TRIES` misses a random unvisited configuration takes its place, so the budget is never spent
on nothing.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.protocols import Space
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import make_pool
from kernelwright.search.trial import Trial

TRIES = 32


class Evolution:
    """A (μ + λ) evolution strategy."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        population: Annotated[
            int, Field(ge=1, description="random configurations before the first child")
        ] = 16,
        parents: Annotated[int, Field(ge=1, description="best trials that have children")] = 8,
        crossover: Annotated[
            float, Field(ge=0, le=1, description="share of children with two parents")
        ] = 0.3,
        tournament: Annotated[
            int, Field(ge=1, le=1000, description="draws a parent is the best of")
        ] = 3,
        two_knobs: Annotated[
            float, Field(ge=0, le=1, description="share of mutations that change two knobs")
        ] = 0.3,
    ) -> None:
        del batch
        self._pool = make_pool(space, np.random.default_rng(seed))
        self._draw = self._pool.uniform
        self._population, self._count = population, parents
        self._crossover, self._two_knobs, self._tournament = crossover, two_knobs, tournament
        self._proposed = 0
        self._best: list[tuple[float, int, int]] = []  # (-objective, trial number, handle)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations first, then children."""
        out: list[Proposal] = []
        while len(out) < n and not self._pool.stopped:
            index, parents = self._child() if self._proposed >= self._population else (None, ())
            if index is None:
                index, parents = self._pool.draw(), ()
            if index is None:
                break
            self._pool.remove(index)
            self._proposed += 1
            keys = tuple(self._pool.candidate(i).key for i in parents)
            out.append(Proposal(self._pool.candidate(index), "evolution", keys))
        return out

    def _child(self) -> tuple[int | None, tuple[int, ...]]:
        draw, best = self._draw, self._best
        for _ in range(TRIES if best else 0):
            parents: tuple[int, ...]
            if len(best) > 1 and draw() < self._crossover:
                left, right = self._two_ranks()
                parents = (best[left][2], best[right][2])
                index = self._pool.crossover(*parents)
            else:
                parents = (best[self._rank()][2],)
                steps = 2 if draw() < self._two_knobs else 1
                index = self._pool.mutate(parents[0], steps)
            if index is not None and index in self._pool:
                return index, parents
        return None, ()

    def _rank(self) -> int:
        """A parent's rank: the least of some uniform draws."""
        least = min([self._draw() for _ in range(self._tournament)])
        return int(least * len(self._best))

    def _two_ranks(self) -> tuple[int, int]:
        left = self._rank()
        right = self._rank()
        while right == left:
            right = int(self._draw() * len(self._best))
        return left, right

    def tell(self, trials: Sequence[Trial]) -> None:
        """Keep the best trials as parents."""
        for trial in trials:
            index = self._pool.handle(trial.candidate)
            self._pool.remove(index)
            if trial.objective is not None:
                insort(self._best, (-trial.objective, trial.number, index))
                del self._best[self._count :]
