"""Search guided by a learned cost model of log time over the space's features (of knobs: their log2
and pairwise products; of schedules: facts about the scheduled loops), by default ridge regression.

A few random configurations first; then of every eight proposals seven are the model's favourites
among the unvisited and one is random. What cannot be launched is never learned from: the space is
pruned by its constraints before anything is proposed, and failed trials are left out of the
regression (mixed in as "twice the slowest", they ruin the ranking). A model that knows something
before anything is measured (a prior) is asked for every other of the first configurations too.

A knob space is ranked whole, as far as memory allows. Of a larger or an open one a reservoir is
ranked, to which every ask adds samples and with mutations of the best trials (Zheng et al., Ansor,
OSDI 2020, section 5, in small).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Problem, Proposal
from kernelwright.search.driver import Journal
from kernelwright.search.drivers.pool import Pool, is_ranked_whole, make_pool
from kernelwright.search.models.model import Array, Model, Spreads, make_model, needs, note
from kernelwright.search.trial import Trial, event

EXPLORE_EVERY = 8
RESERVOIR = 64
FRESH = 8  # new in the reservoir at an ask; half as many for every favourite, if that is more
PARENTS = 8


Cost = Callable[[Array], Array]


class Ranking(Protocol):
    """Where favourites are looked for."""

    def best(self, cost: Cost, count: int) -> list[int]:
        """Up to ``count`` unvisited handles of least cost."""
        ...

    def visit(self, handle: int) -> None:
        """Leave a handle out from now on."""
        ...

    def learn(self, objective: float, number: int, handle: int) -> None:
        """A trial that passed."""
        ...


class CostModel:
    """A model proposes, one in eight proposals explores."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        problem: Problem | None = None,
        journal: Journal | None = None,
        initial: Annotated[
            int, Field(ge=2, description="random configurations before the model is asked")
        ] = 16,
        ridge: Annotated[
            float, Field(gt=0, description="the penalty λ on standardised weights")
        ] = 0.1,
        model: Annotated[
            str, Field(description="what predicts: ridge, trees, prior or a dotted path")
        ] = "ridge",
        kappa: Annotated[
            float, Field(ge=0, description="standard deviations that a favourite may be better by")
        ] = 0.0,
    ) -> None:
        del batch
        rng = np.random.default_rng(seed)
        self._pool = make_pool(space, rng)
        self._ranking: Ranking = _Table(space) if is_ranked_whole(space) else _Reservoir(self._pool)
        self._model: Model = make_model(model, space, seed=seed, problem=problem, penalty=ridge)
        if kappa and not isinstance(self._model, Spreads):
            raise OptionError("kappa", f"0 with {model}, which tells no spread", f"{kappa:g}")
        self._initial, self._kappa, self._journal = initial, kappa, journal
        self._proposed = self._asks = 0
        self._told: list[Trial] = []
        self._note = ""

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations, then the model's favourites with a random one among every
        eight.
        """
        self._asks += 1
        self._learn()
        places = range(self._proposed, self._proposed + self._pool.at_most(n))
        ready = self._model.count >= needs(self._model)
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
        proposer = f"cost_model {self._note}".rstrip()
        return [Proposal(self._pool.candidate(handle), proposer) for handle in found]

    def _is_guided(self, place: int) -> bool:
        if place < self._initial:
            return needs(self._model) == 0 and place % 2 == 1
        return (place - self._initial) % EXPLORE_EVERY != EXPLORE_EVERY - 1

    def _favourites(self, count: int) -> list[int]:
        return self._ranking.best(self._cost, count) if count else []

    def _cost(self, rows: Array) -> Array:
        predicted = self._model.predict(rows)
        if self._kappa and isinstance(self._model, Spreads):
            return predicted - self._kappa * self._model.spread(rows)
        return predicted

    def _visit(self, handle: int) -> None:
        self._pool.remove(handle)
        self._ranking.visit(handle)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Take the trials out of what may be proposed; they are learned at the next ask."""
        for trial in trials:
            handle = self._pool.handle(trial.candidate)
            self._visit(handle)
            if trial.objective is not None:
                self._told.append(trial)
                self._ranking.learn(trial.objective, trial.number, handle)

    def _learn(self) -> None:
        """Learn log time (the objective's negative, up to a constant) of what ran since the last
        ask, all at once, so that it does not matter in which pieces it was told.
        """
        told, self._told = self._told, []
        if told:
            rows = self._pool.features([self._pool.handle(trial.candidate) for trial in told])
            self._model.add(rows, np.array([-(trial.objective or 0.0) for trial in told]))
        if note(self._model) != self._note:
            self._note = note(self._model)
            if self._journal is not None:
                says = str(getattr(self._model, "says", self._note))
                self._journal.record(event("model", self._asks, note=self._note, says=says))


class _Table:
    """All of a knob space."""

    def __init__(self, space: KnobSpace) -> None:
        self._valid = space.valid
        self._features: NDArray[np.float64] = space.feature_rows(self._valid)
        self._row = {index: row for row, index in enumerate(self._valid.tolist())}
        self._unvisited = np.ones(len(self._valid), dtype=bool)

    def best(self, cost: Cost, count: int) -> list[int]:
        """The unvisited configurations with the least predicted time, ties by index."""
        count = min(count, int(self._unvisited.sum()))
        if not count:
            return []
        time = np.where(self._unvisited, cost(self._features), np.inf)
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

    def best(self, cost: Cost, count: int) -> list[int]:
        """The candidates of the refreshed reservoir with the least predicted time, ties by age."""
        self._refresh(max(FRESH, FRESH * count // 2) if self._waiting else RESERVOIR)
        handles = list(self._waiting)
        if not handles:
            return []
        ranked = np.argsort(cost(self._pool.features(handles)), kind="stable").tolist()
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
