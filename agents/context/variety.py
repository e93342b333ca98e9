"""Candidates that differ: how far two are apart, and an archive of the best of each kind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from kernelwright.env.types import Candidate, Language
from kernelwright.search.trial import Trial

Marks = frozenset[str]


@lru_cache(maxsize=1024)
def marks_of(candidate: Candidate) -> Marks:
    """What a candidate is told from others by: knobs with their values, directives, or lines."""
    if candidate.language is Language.SOURCE:
        return frozenset(
            filter(None, (line.strip() for line in str(candidate.payload).split("\n")))
        )
    if isinstance(candidate.payload, str):
        return frozenset((candidate.payload,))
    return frozenset(map(repr, candidate.payload))


def apart(a: Marks, b: Marks) -> float:
    """The share of all marks that only one of two has (Jaccard's distance)."""
    both = len(a | b)
    return 1 - len(a & b) / both if both else 0.0


class Archive:
    """The best candidates of each kind, by crowding: what comes in when it is full takes the place
    of the one that it resembles most, if it is better (Mahfoud, Niching methods for genetic
    algorithms, 1995).

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[Marks, Trial]] = []

    @property
    def trials(self) -> list[Trial]:
        """What is kept, in the order in which it came to its place."""
        return [trial for _, trial in self._kept]

    def add(self, trial: Trial) -> None:
        """Offer a trial that passed."""
        own = marks_of(trial.candidate)
        if len(self._kept) < self._most:
            self._kept.append((own, trial))
            return
        place = min(range(len(self._kept)), key=lambda i: apart(own, self._kept[i][0]))
        if (trial.objective or 0.0) > (self._kept[place][1].objective or 0.0):
            self._kept[place] = (own, trial)


def spread(trials: Sequence[Trial], most: int, *, but: Collection[Candidate] = ()) -> list[Trial]:
    """Trials that differ from each other and from those in ``but``: the best, then each time the
    one that is farthest from all that are chosen, the better of equals.
    """
    if not most:
        return []
    taken = {candidate.key for candidate in but}
    rest = {t.candidate.key: t for t in trials if t.candidate.key not in taken}
    left = sorted(rest.values(), key=lambda t: (-(t.objective or 0.0), t.number))
    known = {t.number: marks_of(t.candidate) for t in left}
    around = [marks_of(candidate) for candidate in but]
    chosen: list[Trial] = []
    while left and len(chosen) < most:
        if chosen:
            far = max(left, key=lambda t: min(apart(known[t.number], m) for m in around))
        else:
            far = left[0]
        left.remove(far)
        chosen.append(far)
        around.append(known[far.number])
    return chosen
