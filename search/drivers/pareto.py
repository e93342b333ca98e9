"""Several objectives: evolution that keeps what is not beaten in everything, after NSGA-II.

Of parents and their children the best ``population`` stay: first those that nothing dominates, then
those that only these dominate, and so on; where a front does not fit whole, those with most room
around them (Deb et al., A fast and elitist multiobjective genetic algorithm: NSGA-II, 2002).
Parents are drawn by tournaments of two in the same order. `search.fronts.front` reads the front
from the trials, and ``show`` prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.types import Problem, Proposal
from kernelwright.search.drivers.children import fresh_child, proposal
from kernelwright.search.drivers.facts import Demand, Facts
from kernelwright.search.drivers.pool import make_pool
from kernelwright.search.fronts import TIME, crowding, ranks, score
from kernelwright.search.trial import Trial

OBJECTIVES = (TIME, "footprint")


class Pareto:
    """A front of time and facts: NSGA-II without repetition."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        problem: Problem | None = None,
        objectives: Annotated[
            tuple[str, ...],
            Field(min_length=1, description="time and facts by name; less is better in all"),
        ] = OBJECTIVES,
        initial: Annotated[
            int, Field(ge=1, description="random configurations before the first child")
        ] = 24,
        population: Annotated[int, Field(ge=2, description="trials that may have children")] = 24,
        crossover: Annotated[
            float, Field(ge=0, le=1, description="share of children with two parents")
        ] = 0.3,
        two_knobs: Annotated[
            float, Field(ge=0, le=1, description="share of mutations that change two knobs")
        ] = 0.3,
    ) -> None:
        del batch
        if len(set(objectives)) != len(objectives):
            raise OptionError("objectives", "different names", ", ".join(objectives))
        self._pool = make_pool(space, np.random.default_rng(seed))
        self._facts = Facts(space, problem)
        # What is meant where nothing is named, is so as far as it is known.
        named = () if objectives == OBJECTIVES else [name for name in objectives if name != TIME]
        self.demand = Demand("objectives", named, self._facts)
        self._objectives, self._initial, self._size = objectives, initial, population
        self._crossover, self._two_knobs = crossover, two_knobs
        self._proposed = 0
        self._waiting: list[tuple[int, list[float]]] = []
        self._handles: list[int] = []  # best first
        self._scores: list[list[float]] = []

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self.demand.unmet or self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations first, then children of the population."""
        self._select()
        out: list[Proposal] = []
        while len(out) < n and not self.stopped:
            handle: int | None = None
            parents: tuple[int, ...] = ()
            if self._proposed >= self._initial and self._handles:
                handle, parents = fresh_child(
                    self._pool, self._pick, crossover=self._crossover, two_knobs=self._two_knobs
                )
            if handle is None:
                handle, parents = self._pool.draw(), ()
            if handle is None:
                break
            self._proposed += 1
            out.append(proposal(self._pool, handle, "pareto", parents))
        return out

    def _pick(self) -> int:
        """The better of two that are drawn."""
        draw, count = self._pool.uniform, len(self._handles)
        return self._handles[min(int(draw() * count), int(draw() * count))]

    def _select(self) -> None:
        """Let the population and what ran since the last ask compete for the places."""
        if not self._waiting:
            return
        handles = self._handles + [handle for handle, _ in self._waiting]
        scores = self._scores + [row for _, row in self._waiting]
        self._waiting = []
        table = np.array(scores)
        # What no trial tells is the same for all, and no objective (`OBJECTIVES`, if not named).
        table[:, ~np.isfinite(table).any(axis=0)] = 0.0
        rank, room = ranks(table), np.zeros(len(table))
        for level in range(int(rank.max()) + 1):
            of_level = rank == level
            room[of_level] = crowding(table[of_level])
        order = np.lexsort((np.arange(len(table)), -room, rank))[: self._size].tolist()
        self._handles = [handles[i] for i in order]
        self._scores = [scores[i] for i in order]

    def tell(self, trials: Sequence[Trial]) -> None:
        """Keep the scores of what ran for the next selection."""
        self.demand.learn(trials)
        for trial in trials:
            handle = self._pool.handle(trial.candidate)
            self._pool.remove(handle)
            if trial.objective is not None:
                row = score(trial, self._objectives, self._facts.of(trial))
                self._waiting.append((handle, row))
