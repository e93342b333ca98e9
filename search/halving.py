"""A race with a purse: which of many candidates is the best, on at most so many samples.

Sequential halving (Karnin, Koren and Somekh, Almost optimal exploration in multi-armed bandits,
ICML 2013): the purse is shared out over rounds, each among fewer entrants. The greatest of many
single samples owes most of its lead to luck, so the first round is for many, and what was sampled
before the race counts as one sample among the others. Locations are Huber's with the scale of the
whole field, as in `search.race`, which has no purse and may drop whoever is behind beyond doubt.

Pure: it says who is measured next and is told what came out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kernelwright.env.objective import common_scale, weighed_locations
from kernelwright.search.race import Heat

# The fewest samples that a round gives an entrant, and the share of the purse that a round may
# spend of what is left, the last one all of it.
LEAST, SPENT = 2, 0.5
KEPT = 0.4
ROUNDS = 3


class Halving:
    """A race of entrants ``0 .. n-1`` on a purse.

    Args:
        screened: the log ratios of each entrant's screen, on the scale of the objective.
        purse: how many samples the race may take in all.

    Raises:
        ValueError: if an entrant has no sample, or the purse is negative.
    """

    def __init__(self, screened: Sequence[Sequence[float]], purse: int) -> None:
        if not all(screened):
            raise ValueError("expected at least one sample of every entrant, found one without")
        if purse < 0:
            raise ValueError(f"purse: expected at least 0 samples, found {purse}")
        self._logs = [list(logs) for logs in screened]
        self._purse, self._round = purse, 0
        self._alive = list(range(len(screened)))
        self._behind: list[int] = []
        self._rank()

    def heat(self) -> Heat | None:
        """The next round; None when the race is over."""
        if self._round >= ROUNDS or len(self._alive) <= 1:
            return None
        is_last = self._round == ROUNDS - 1
        share = self._purse if is_last else math.floor(SPENT * self._purse)
        room = share // LEAST
        if room < 2:
            return None
        if self._round:
            room = min(room, math.ceil(KEPT * len(self._alive)))
        starters = self._alive[: max(2, room)]
        return Heat(tuple(starters), share // len(starters))

    def tell(self, logs: Mapping[int, Sequence[float]]) -> None:
        """The log ratios of a round; an entrant that has none failed, and is out."""
        raced = [entrant for entrant in self._alive if entrant in logs]
        self._behind = [e for e in self._alive if e not in logs] + self._behind
        self._alive = [entrant for entrant in raced if logs[entrant]]
        for entrant in self._alive:
            self._logs[entrant] += logs[entrant]
            self._purse -= len(logs[entrant])
        self._round += 1
        self._rank()

    @property
    def ranking(self) -> tuple[int, ...]:
        """Those that did not fail, the best first: who stayed longer stands before who left."""
        return tuple(self._alive + self._behind)

    def _rank(self) -> None:
        if not self._alive:
            return
        logs = [self._logs[entrant] for entrant in self._alive]
        places = [place for place, _ in weighed_locations(logs, common_scale(logs))]
        order = sorted(range(len(places)), key=lambda place: -places[place])
        self._alive = [self._alive[place] for place in order]
