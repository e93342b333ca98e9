"""The race: which few of many candidates are worth a claim, on samples that no claim will use.

Rounds of fresh pairs against one reference, all entrants interleaved, so that drift meets all of
them. After each round the estimate of an entrant is taken over all of its pairs; who is behind the
finalists beyond doubt leaves (successive elimination: Even-Dar, Mannor and Mansour, Action
elimination and stopping conditions for the multi-armed bandit, JMLR 2006), and of the rest the
best `KEPT` share stays, with about `GROWTH` times the pairs of each (sequential halving: Karnin,
Koren and Somekh, Almost optimal exploration in multi-armed bandits, ICML 2013, whose allocation is
within a logarithm of the best there is). The doubt is shared out over all entrants and looks in
advance, so looking often does no harm. Few samples an entrant and interrupted calls among them are
why the location is robust: Huber's, with the scale of the whole field, which a few samples cannot
tell.

Pure: it says who is measured next and is told what came out. The campaign and the noise laboratory
run the same race.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from kernelwright.env.objective import FEW, common_scale, weighed_locations

# The share of the field that stays after a round (after the screens: `FIRST_KEPT`, and so many at
# most), and how the pairs of each grow.
FIRST_KEPT, FIRST_MOST, KEPT, GROWTH = 0.5, 112, 0.4, 1.6
# The chance that the best entrant is eliminated over a race.
DOUBT = 0.01
# The log ratio by which one process pair may be off whatever its samples say, so that many pairs
# in few processes eliminate nobody by a hair (0 to 0.5% on the machines measured), and that by
# which screens against different references may.
PROCESS_BIAS, REFERENCE_BIAS = 0.005, 0.02
# How many standard errors are added to an estimate for the choice of who stays; and an entrant that
# stands on less than this share of its calls, the others being interrupted, stays in any case.
HOPE, BYE = 2.0, 0.65


@dataclass(frozen=True, slots=True)
class Heat:
    """A round: who is measured, the best so far first, with how many pairs each."""

    entrants: tuple[int, ...]
    pairs: int


class Race:
    """A race of entrants ``0 .. n-1``.

    Args:
        screened: the log ratios of each entrant's screen, on the scale of the objective.
        comparable: whether a screen was against the reference of this race; one that was not
            only helps to choose who starts.
        keep: how many are never dropped for want of room, the finalists.
        rounds: how many rounds there are at most.

    Raises:
        ValueError: if an entrant has no sample.
    """

    def __init__(
        self,
        screened: Sequence[Sequence[float]],
        *,
        comparable: Sequence[bool] | None = None,
        keep: int = 3,
        rounds: int = 5,
    ) -> None:
        if not all(screened):
            raise ValueError("expected at least one sample of every entrant, found one without")
        self._logs = [list(logs) for logs in screened]
        self._keep, self._rounds, self._round = keep, rounds, 0
        self._field = len(screened)
        # Of those that were not stopped early.
        self._pairs = max(map(len, screened), default=0)
        self._alive = list(range(self._field))
        fresh = comparable is not None and not all(comparable)
        self._cut(FIRST_KEPT, REFERENCE_BIAS if fresh else PROCESS_BIAS)
        if comparable is not None and rounds:
            for entrant in self._alive:
                if not comparable[entrant]:
                    self._logs[entrant].clear()

    def heat(self) -> Heat | None:
        """The next round; None when the race is over."""
        if self._round >= self._rounds or len(self._alive) <= 1:
            return None
        total = self._pairs * GROWTH ** (self._round + 1)
        return Heat(tuple(self._alive), max(2, round(total - total / GROWTH)))

    def tell(self, logs: Mapping[int, Sequence[float]]) -> None:
        """The log ratios of a round; an entrant that has none failed, and is out."""
        self._alive = [entrant for entrant in self._alive if logs.get(entrant)]
        for entrant in self._alive:
            self._logs[entrant] += logs[entrant]
        self._round += 1
        self._cut(KEPT, PROCESS_BIAS)

    @property
    def ranking(self) -> tuple[int, ...]:
        """Those still in the race, the best first."""
        return tuple(self._alive)

    def _cut(self, share: float, bias: float) -> None:
        """Rank the field, and drop who is behind beyond doubt and who is beyond the share."""
        if not self._alive:
            return
        logs = [self._logs[entrant] for entrant in self._alive]
        scale = common_scale(logs)
        found = weighed_locations(logs, scale)
        places = [place for place, _ in found]
        # Whoever stands on few calls, the others being interrupted, gets the benefit of the doubt.
        hopes = [place + HOPE * scale / math.sqrt(weight) for place, weight in found]
        order = sorted(range(len(places)), key=lambda place: -places[place])
        looks = max(1, self._field * (self._rounds + 1))
        doubt = NormalDist().inv_cdf(1 - DOUBT / looks)
        # Not the leader: of many entrants some lead by their interrupted calls alone.
        trusted = [place for place in order if found[place][1] >= BYE * len(logs[place])]
        ahead = trusted[min(self._keep, len(trusted)) - 1] if trusted else order[-1]
        most = math.ceil(share * len(order))
        room = max(self._keep, most if self._round else min(most, FIRST_MOST))
        chosen = set(sorted(order, key=lambda place: -hopes[place])[:room])
        is_last = self._round >= self._rounds

        def stays(place: int) -> bool:
            if found[place][1] < BYE * len(logs[place]) and not is_last:
                return True
            fewest = min(len(logs[place]), len(logs[ahead]))
            behind = places[ahead] - places[place]
            doubtful = fewest < FEW or behind <= doubt * scale * math.sqrt(2 / fewest) + bias
            return place in chosen and doubtful

        self._alive = [self._alive[place] for place in order if stays(place)]
