"""Search guided by a learned cost model: ridge on log time over log2 knobs and their pairwise
products.

A few random configurations first; then of every eight proposals seven are the model's favourites
among the unvisited and one is random. What cannot be launched is never learned from: the space is
pruned by its constraints before anything is proposed, and failed trials are left out of the
regression (mixed in as "twice the slowest", they ruin the ranking).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import EXHAUSTED, Pool
from kernelwright.search.ridge import Ridge
from kernelwright.search.trial import Trial

EXPLORE_EVERY = 8


class CostModel:
    """Ridge regression proposes, one in eight proposals explores."""

    def __init__(
        self,
        space: KnobSpace,
        *,
        seed: int,
        batch: int,
        initial: Annotated[
            int, Field(ge=2, description="random configurations before the model is asked")
        ] = 16,
        ridge: Annotated[
            float, Field(gt=0, description="the penalty λ on standardised weights")
        ] = 0.1,
    ) -> None:
        del batch
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._pool = Pool(space)
        self._initial = initial
        self._proposed = 0
        self._valid = space.valid
        self._features = space.feature_table[self._valid]
        self._row = {index: row for row, index in enumerate(self._valid.tolist())}
        self._unvisited = np.ones(len(self._valid), dtype=bool)
        self._model = Ridge(self._features.shape[1], ridge)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return None if len(self._pool) else EXHAUSTED

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations, then the model's favourites with a random one among every
        eight.
        """
        count = min(n, len(self._pool))
        places = range(self._proposed, self._proposed + count)
        guided = [self._model.count >= 2 and self._is_guided(place) for place in places]
        favourites = iter(self._favourites(sum(guided)))
        chosen = []
        for is_guided in guided:
            index = next(favourites) if is_guided else -1
            if is_guided:
                self._visit(index)
            chosen.append(index)
        for place, index in enumerate(chosen):
            if index < 0:
                chosen[place] = self._pool.draw(self._rng)
                self._visit(chosen[place])
        self._proposed += count
        return [Proposal(self._space.candidate(index), "cost_model") for index in chosen]

    def _is_guided(self, place: int) -> bool:
        return (
            place >= self._initial and (place - self._initial) % EXPLORE_EVERY != EXPLORE_EVERY - 1
        )

    def _favourites(self, count: int) -> list[int]:
        """The unvisited configurations with the least predicted time, ties by index."""
        if not count:
            return []
        time = np.where(self._unvisited, self._model.predict(self._features), np.inf)
        rows = np.argpartition(time, count - 1)[:count]
        rows = rows[np.lexsort((rows, time[rows]))]
        out: list[int] = self._valid[rows].tolist()
        return out

    def _visit(self, index: int) -> None:
        self._pool.remove(index)
        row = self._row.get(index)
        if row is not None:
            self._unvisited[row] = False

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn log time (the objective's negative, up to a constant) of what ran."""
        rows, targets = [], []
        for trial in trials:
            index = self._space.index(trial.candidate)
            self._visit(index)
            if trial.objective is not None:
                rows.append(index)
                targets.append(-trial.objective)
        if rows:
            self._model.add(self._space.feature_table[rows], np.array(targets))
