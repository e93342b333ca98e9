"""Search guided by a learned cost model: ridge on log time over the space's features (of knobs:
their log2 and pairwise products; of schedules: facts about the scheduled loops).

A few random configurations first; then of every eight proposals seven are the model's favourites
among the unvisited and one is random. What cannot be launched is never learned from: the space is
pruned by its constraints before anything is proposed, and failed trials are left out of the
regression (mixed in as "twice the slowest", they ruin the ranking).

A knob space is ranked whole. Of an open one a reservoir is ranked, to which every ask adds
samples and with mutations of the best trials (Zheng et al., Ansor, OSDI 2020, section 5, in small).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import Pool, make_pool
from kernelwright.search.ridge import Ridge
from kernelwright.search.trial import Trial

EXPLORE_EVERY = 8
RESERVOIR = 64
FRESH = 8  # new in the reservoir at an ask; half as many for every favourite, if that is more
PARENTS = 8


class Ranking(Protocol):
    """Where favourites are looked for."""

    def best(self, model: Ridge, count: int) -> list[int]:
        """Up to ``count`` unvisited handles with the least predicted time."""
        ...

    def visit(self, handle: int) -> None:
        """Leave a handle out from now on."""
        ...

    def learn(self, objective: float, number: int, handle: int) -> None:
        """A trial that passed."""
        ...


class CostModel:
    """Ridge regression proposes, one in eight proposals explores."""

    def __init__(
        self,
        space: Space,
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
        rng = np.random.default_rng(seed)
        self._pool = make_pool(space, rng)
        self._ranking: Ranking = (
            _Table(space) if isinstance(space, KnobSpace) else _Reservoir(self._pool)
        )
        self._initial, self._penalty = initial, ridge
        self._proposed = 0
        self._model: Ridge | None = None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations, then the model's favourites with a random one among every
        eight.
        """
        places = range(self._proposed, self._proposed + self._pool.at_most(n))
        ready = self._model is not None and self._model.count >= 2
        guided = [ready and self._is_guided(place) for place in places]
        favourites = iter(self._favourites(sum(guided)))
        chosen: list[int | None] = []
        for is_guided in guided:
            handle = next(favourites, None) if is_guided else None
            if handle is not None:
                self._visit(handle)
            chosen.append(handle)
        for place, handle in enumerate(chosen):
            if handle is None:
                chosen[place] = drawn = self._pool.draw()
                if drawn is not None:
                    self._visit(drawn)
        found = [handle for handle in chosen if handle is not None]
        self._proposed += len(found)
        return [Proposal(self._pool.candidate(handle), "cost_model") for handle in found]

    def _is_guided(self, place: int) -> bool:
        return (
            place >= self._initial and (place - self._initial) % EXPLORE_EVERY != EXPLORE_EVERY - 1
        )

    def _favourites(self, count: int) -> list[int]:
        if not count or self._model is None:
            return []
        return self._ranking.best(self._model, count)

    def _visit(self, handle: int) -> None:
        self._pool.remove(handle)
        self._ranking.visit(handle)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn log time (the objective's negative, up to a constant) of what ran."""
        handles, targets = [], []
        for trial in trials:
            handle = self._pool.handle(trial.candidate)
            self._visit(handle)
            if trial.objective is not None:
                handles.append(handle)
                targets.append(-trial.objective)
                self._ranking.learn(trial.objective, trial.number, handle)
        if handles:
            rows = self._pool.features(handles)
            if self._model is None:
                self._model = Ridge(rows.shape[1], self._penalty)
            self._model.add(rows, np.array(targets))


class _Table:
    """All of a knob space."""

    def __init__(self, space: KnobSpace) -> None:
        self._valid = space.valid
        self._features: NDArray[np.float64] = space.feature_table[self._valid]
        self._row = {index: row for row, index in enumerate(self._valid.tolist())}
        self._unvisited = np.ones(len(self._valid), dtype=bool)

    def best(self, model: Ridge, count: int) -> list[int]:
        """The unvisited configurations with the least predicted time, ties by index."""
        count = min(count, int(self._unvisited.sum()))
        if not count:
            return []
        time = np.where(self._unvisited, model.predict(self._features), np.inf)
        rows = np.argpartition(time, count - 1)[:count]
        rows = rows[np.lexsort((rows, time[rows]))]
        out: list[int] = self._valid[rows].tolist()
        return out

    def visit(self, handle: int) -> None:
        """Leave a configuration out from now on."""
        row = self._row.get(handle)
        if row is not None:
            self._unvisited[row] = False

    def learn(self, objective: float, number: int, handle: int) -> None:
        """Nothing: the table is the whole space already."""


class _Reservoir:
    """Some candidates of an open space: samples, and mutations of the best that ran."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: dict[int, None] = {}
        self._top: list[tuple[float, int, int]] = []  # (-objective, trial number, handle)

    def best(self, model: Ridge, count: int) -> list[int]:
        """The candidates of the refreshed reservoir with the least predicted time, ties by age."""
        self._refresh(max(FRESH, FRESH * count // 2) if self._waiting else RESERVOIR)
        handles = list(self._waiting)
        if not handles:
            return []
        ranked = np.argsort(model.predict(self._pool.features(handles)), kind="stable").tolist()
        self._waiting = dict.fromkeys(handles[i] for i in ranked[:RESERVOIR])
        return [handles[i] for i in ranked[:count]]

    def _refresh(self, count: int) -> None:
        for attempt in range(count):
            handle = self._mutation() if attempt % 4 else self._pool.look()
            if handle is not None and handle in self._pool:
                self._waiting[handle] = None

    def _mutation(self) -> int | None:
        if not self._top:
            return None
        parent = self._top[int(self._pool.uniform() * len(self._top))][2]
        return self._pool.mutate(parent, 1 + int(self._pool.uniform() < 0.3))

    def visit(self, handle: int) -> None:
        """Leave a candidate out from now on."""
        self._waiting.pop(handle, None)

    def learn(self, objective: float, number: int, handle: int) -> None:
        """Keep the best trials as parents."""
        insort(self._top, (-objective, number, handle))
        del self._top[PARENTS:]
