"""Advice put to the test: who proposes first, who is believed, who is dropped.

Recordings of near shapes and models of the problem itself propose a few configurations each, in
that order; then the one whose proposals did best goes on, until `HEAD` were made. Recordings of far
shapes propose one configuration each, and only where there is nothing nearer: an optimum rarely
survives `NEAR` octaves.
Every eighth place is left to others, so that bad advice costs little and is found out. Later an
advice is the mean of the driver's model for as long as it ranks what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.search.advice import Advice
from kernelwright.search.drivers.pool import Pool
from kernelwright.search.models.ranks import spearman

Array = NDArray[np.float64]

HEAD = 12  # proposals by advice before anything else is believed
TRIED = 2  # proposals of each before they are compared
NEAR = 4.0  # octaves
OTHERS_EVERY = 8
ENOUGH, LEAST = 8, 0.4  # trials that ran, and the rank correlation that is believed
FAR_LEAST = 0.8  # of far shapes, whose slow configurations agree more than their fast ones
WORSE = math.log(1.3)  # an advice whose best is this far behind is asked no more
PULL = 0.5  # how much evidence that the advice is right it brings itself, in squared log time


class Counsel:
    """Some advice about one space."""

    def __init__(
        self, space: KnobSpace, advice: Sequence[Advice], rng: np.random.Generator
    ) -> None:
        # Who knows no configuration (a model on whose device none fits) has nothing to say.
        advice = [a for a in advice if np.isfinite(a.cost).any()]
        ranked = sorted(advice, key=lambda a: (a.distance > NEAR, a.distance == 0, a.distance))
        near = [a for a in ranked if a.distance <= NEAR]
        ranked = near or ranked
        self._head = HEAD if near else len(ranked)
        self._tried = TRIED if near else 1
        self._valid = space.valid
        self._advice = ranked
        self._orders = [space.valid[a.order(space, rng)].tolist() for a in ranked]
        self._next = [0] * len(ranked)
        self._asked = [0] * len(ranked)
        self._best = [math.inf] * len(ranked)
        self._whose: dict[int, int] = {}
        self._best_of_all = math.inf

    def propose(self, place: int, pool: Pool) -> tuple[int, str] | None:
        """A handle and whose it is; None where it is others' turn."""
        if sum(self._asked) >= self._head or place % OTHERS_EVERY == OTHERS_EVERY - 1:
            return None
        while (who := self._speaker()) is not None:
            order = self._orders[who]
            while self._next[who] < len(order) and order[self._next[who]] not in pool:
                self._next[who] += 1
            if self._next[who] < len(order):
                handle = int(order[self._next[who]])
                self._asked[who] += 1
                self._whose[handle] = who
                return handle, f"auto {self._advice[who].name}"
            self._asked[who] += HEAD  # has nothing left to say
        return None

    def _speaker(self) -> int | None:
        """Whoever has not been tried, else whose proposals did best."""
        some = range(len(self._advice))
        untried = [i for i in some if self._asked[i] < self._tried]
        if untried:
            return untried[0]
        left = [
            i for i in some if self._asked[i] < HEAD and self._best[i] <= self._best_of_all + WORSE
        ]
        return min(left, key=lambda i: (self._best[i], i), default=None)

    def learn(self, handle: int, cost: float) -> None:
        """The log time of a configuration, infinite if it failed."""
        self._best_of_all = min(self._best_of_all, cost)
        who = self._whose.get(handle)
        if who is not None:
            self._best[who] = min(self._best[who], cost)

    def opinion(self, handles: list[int], costs: Array) -> Array | None:
        """What the most trusted advice says of every row in the unit of ``costs`` (natural log
        time); None if nothing is believed.
        """
        ran = np.isfinite(costs)
        if ran.sum() < ENOUGH:
            return None
        places = np.searchsorted(self._valid, handles)
        best, found = -1.0, None
        for advice in self._advice:
            if np.isfinite(advice.cost).sum() < ENOUGH:
                continue  # a few best ones say nothing of the others
            least = max(best, LEAST if advice.distance <= NEAR else FAR_LEAST)
            said = _finite(advice.cost) * math.log(2)
            both = said[places][ran]
            if np.ptp(both) > 0 and (agrees := spearman(both, costs[ran])) >= least:
                best, found = agrees, said + float(np.median(costs[ran] - both))
        return found


def _finite(cost: Array) -> Array:
    """An advice with what it refuses, or does not know, one octave behind its slowest."""
    known = np.isfinite(cost)
    return np.where(known, cost, cost[known].max() + 1.0)


def shrunk_slope(said: Array, targets: Array) -> float:
    """The regression of targets on what was said, drawn towards 1."""
    left, right = said - said.mean(), targets - targets.mean()
    return float(np.clip((left @ right + PULL) / (left @ left + PULL), 0.0, 1.2))
