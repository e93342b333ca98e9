"""Populations that evolve apart and exchange their best now and then."""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Iterable

from kernelwright.env.types import Candidate
from kernelwright.search.trial import Trial

TOURNAMENT = 2


class Islands:
    """The best trials of each island; a function of the trials in the order in which they are
    told, and of where their candidates were expected.

    Args:
        count: how many islands there are.
        population: how many trials an island keeps.
        migration: after how many trials the best of each island goes to the next one; 0 is never.
    """

    def __init__(self, count: int, population: int, migration: int) -> None:
        self._population, self._migration = population, migration
        self._islands: list[list[tuple[float, int, Trial]]] = [[] for _ in range(count)]
        self._expected: dict[str, int] = {}
        self._told = 0

    def expect(self, candidate: Candidate, island: int) -> None:
        """A candidate was proposed on an island."""
        self._expected[candidate.key] = island

    def add(self, trial: Trial) -> None:
        """A trial joins its island; one that nobody proposed joins all."""
        home = self._expected.pop(trial.candidate.key, None)
        for island in range(len(self._islands)) if home is None else (home,):
            self._join(island, trial)
        self._told += 1
        if self._migration and self._told % self._migration == 0:
            best = [island[0][2] if island else None for island in self._islands]
            for number, settler in enumerate(best):
                if settler is not None:
                    self._join((number + 1) % len(best), settler)

    def _join(self, island: int, trial: Trial) -> None:
        home = self._islands[island]
        if trial.objective is None or any(number == trial.number for _, number, _ in home):
            return
        insort(home, (-trial.objective, trial.number, trial), key=lambda entry: entry[:2])
        del home[self._population :]

    def of(self, island: int) -> list[Trial]:
        """The trials of an island, best first."""
        return [trial for _, _, trial in self._islands[island]]

    def pick(self, island: int, rng: random.Random, *, but: Trial | None = None) -> Trial | None:
        """One of an island, the better the likelier; None if there is none other."""
        others = [trial for trial in self.of(island) if trial is not but]
        if not others:
            return None
        return others[min(rng.randrange(len(others)) for _ in range(TOURNAMENT))]

    def inspirations(self, most: int, *, but: Iterable[Trial]) -> list[Trial]:
        """Good trials of all islands: the first half are the best, the others those that differ
        most from the parents and from each other.
        """
        parents = list(but)
        known = {trial.number for trial in parents}
        everywhere = [entry for island in self._islands for entry in island]
        everywhere.sort(key=lambda entry: entry[:2])
        pool = {number: trial for _, number, trial in everywhere if number not in known}
        chosen = list(pool.values())[: -(-most // 2)]
        rest = list(pool.values())[len(chosen) :]
        while rest and len(chosen) < most:
            near = [*parents, *chosen]
            far = max(rest, key=lambda t: (min(distance(t, other) for other in near), -t.number))
            rest.remove(far)
            chosen.append(far)
        return chosen


def features(candidate: Candidate) -> frozenset[object]:
    """What a program consists of: its knob values, its directives or its lines."""
    if isinstance(candidate.payload, str):
        return frozenset(line.strip() for line in candidate.payload.splitlines() if line.strip())
    return frozenset(candidate.payload)


def distance(left: Trial, right: Trial) -> float:
    """The share of parts that two programs do not have in common, from 0 to 1."""
    a, b = features(left.candidate), features(right.candidate)
    return 1 - len(a & b) / max(1, len(a | b))
