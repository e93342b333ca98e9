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

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import EXHAUSTED, Pool, uniforms
from kernelwright.search.trial import Trial

TRIES = 32


class Evolution:
    """A (μ + λ) evolution strategy over a knob space."""

    def __init__(
        self,
        space: KnobSpace,
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
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._draw = uniforms(self._rng)
        self._pool = Pool(space)
        self._population, self._count = population, parents
        self._crossover, self._two_knobs, self._tournament = crossover, two_knobs, tournament
        self._proposed = 0
        self._best: list[tuple[float, int, int]] = []  # (-objective, trial number, flat index)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return None if len(self._pool) else EXHAUSTED

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations first, then children."""
        out: list[Proposal] = []
        while len(out) < n and len(self._pool):
            index, parents = self._child() if self._proposed >= self._population else (None, ())
            if index is None:
                index, parents = self._pool.draw(self._rng), ()
            self._pool.remove(index)
            self._proposed += 1
            keys = tuple(self._space.candidate(i).key for i in parents)
            out.append(Proposal(self._space.candidate(index), "evolution", keys))
        return out

    def _child(self) -> tuple[int | None, tuple[int, ...]]:
        draw, best = self._draw, self._best
        for _ in range(TRIES if best else 0):
            parents: tuple[int, ...]
            if len(best) > 1 and draw() < self._crossover:
                left, right = self._two_ranks()
                parents = (best[left][2], best[right][2])
                index = self._space.crossover_index(*parents, draw)
            else:
                parents = (best[self._rank()][2],)
                steps = 2 if draw() < self._two_knobs else 1
                index = self._space.mutate_index(parents[0], draw, steps)
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
            index = self._space.index(trial.candidate)
            self._pool.remove(index)
            if trial.objective is not None:
                insort(self._best, (-trial.objective, trial.number, index))
                del self._best[self._count :]
