"""Simulated annealing: walk to a random neighbour, always if it is better and at times if it is
worse, ever more rarely; then heat up and begin again.

Worse by d is accepted with probability exp(-d / T) (Metropolis et al. 1953; Kirkpatrick, Gelatt and
Vecchi, Science 1983). Objectives are logarithms, so d is a ratio of times and no scale has to be
given: T starts where half of the steps that a typical worsening would be are taken, the median of
the worsenings seen lately over log 2, and falls by a constant factor a trial to a hundredth of
that at the end of a cycle. A budget is not known to a driver, so it does not end there: it reheats
from the best configuration known. Nothing is asked twice: a neighbour whose value is known is
stepped to, or not, for nothing.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.protocols import Space
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import make_pool, uniforms
from kernelwright.search.trial import Trial

TRIES = 32
# Of the temperature, from the first trial of a cycle to its last.
COOLING = 0.01
# Worsenings that the temperature is read from, the latest.
REMEMBERED = 64
# A factor of 1.19 in time: what counts as typical before any worsening was seen.
FIRST_WORSENING = 0.25


class Annealing:
    """A walk that accepts worse configurations while it is hot, with reheating."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        initial: Annotated[
            int, Field(ge=1, description="random configurations, from whose best the walk starts")
        ] = 8,
        cycle: Annotated[
            int, Field(ge=2, description="trials from hot to cold, then it is heated again")
        ] = 64,
        two_steps: Annotated[
            float, Field(ge=0, le=1, description="share of moves that change two knobs")
        ] = 0.3,
    ) -> None:
        del batch
        self._pool = make_pool(space, np.random.default_rng(seed))
        # Decisions have a stream of their own, so that they do not depend on how moves are drawn.
        self._decide = uniforms(np.random.default_rng((seed, 1)))
        self._initial, self._cycle, self._two_steps = initial, cycle, two_steps
        self._proposed = self._told = 0
        self._values: dict[int, float | None] = {}
        self._worsenings: deque[float] = deque(maxlen=REMEMBERED)
        self._best: tuple[float, int] | None = None  # (objective, handle)
        self._here: tuple[float, int] | None = None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    @property
    def temperature(self) -> float:
        """The temperature now, in units of the objective (log2 of a ratio of times)."""
        typical = statistics.median(self._worsenings or (FIRST_WORSENING,))
        walked = max(0, self._told - self._initial)
        return typical / math.log(2) * math.pow(COOLING, walked % self._cycle / (self._cycle - 1))

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations first, then neighbours of where the walk is."""
        out: list[Proposal] = []
        while len(out) < n and not self._pool.stopped:
            walking = self._proposed >= self._initial and self._here is not None
            handle, parents = self._neighbour() if walking else (None, ())
            if handle is None:
                handle, parents = self._pool.draw(), ()
            if handle is None:
                break
            self._pool.remove(handle)
            self._proposed += 1
            out.append(Proposal(self._pool.candidate(handle), "annealing", parents))
        return out

    def _neighbour(self) -> tuple[int | None, tuple[str, ...]]:
        """An unvisited neighbour of where the walk is, which goes on over what is known."""
        for _ in range(TRIES):
            assert self._here is not None
            centre = self._here[1]
            steps = 2 if self._pool.uniform() < self._two_steps else 1
            handle = self._pool.mutate(centre, steps)
            if handle is None:
                continue
            if handle in self._pool:
                return handle, (self._pool.candidate(centre).key,)
            self._step(handle, self._values.get(handle))
        return None, ()

    def _step(self, handle: int, value: float | None) -> None:
        """Walk to a configuration of known value, or stay."""
        if value is None or self._here is None:
            return
        worsening = self._here[0] - value
        chance = math.exp(-worsening / self.temperature) if worsening > 0 else 1.0
        if self._decide() < chance:
            self._here = (value, handle)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Decide about every trial, in order."""
        for trial in trials:
            handle, value = self._pool.handle(trial.candidate), trial.objective
            self._pool.remove(handle)
            self._values[handle] = value
            self._told += 1
            if value is not None:
                self._learn(handle, value)
            if self._told >= self._initial and (self._told - self._initial) % self._cycle == 0:
                self._here = self._best

    def _learn(self, handle: int, value: float) -> None:
        if self._here is not None and value < self._here[0]:
            self._worsenings.append(self._here[0] - value)
        if self._best is None or value > self._best[0]:
            self._best = (value, handle)
        if self._here is None or (self._told <= self._initial and self._best[1] == handle):
            self._here = (value, handle)
        elif self._told > self._initial:
            self._step(handle, value)
