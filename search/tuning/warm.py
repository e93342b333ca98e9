"""A warm start: what did well under like keys is tried first, and dropped where it misleads.

Like keys are earlier searches of the same problem at this and other shapes, on this and other
devices. The best configurations of the nearest take half of the first batches, the best of each
before the second of any, and a source whose seeds are `WORSE` times slower than the best of all is
asked no more. What was found is a part of the campaign's record, so a campaign that goes on, or is
looked at elsewhere, needs no cache.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Candidate
from kernelwright.search.driver import Driver, Journal
from kernelwright.search.seeded import Seed, Seeded
from kernelwright.search.trial import Event, Trial, event
from kernelwright.search.tuning.near import Neighbour

# Kinds of events: what was found, once, and which seeds an ask began with.
FOUND, WARM = "warm_start", "warm"
SOURCES = 4  # like keys that seeds are taken of
WORSE = math.log2(1.3)


@dataclass(frozen=True, slots=True)
class WarmStart:
    """Seeds in the order in which they are tried."""

    seeds: tuple[Seed, ...]

    def driver(self, make: Callable[[Journal], Driver], journal: Journal) -> Driver:
        """A campaign's driver with the seeds in front."""
        told: list[Trial] = []
        seeded = Seeded(make(journal), journal, lambda n: self.next(n, told), kind=WARM, told=told)
        if journal.past(FOUND, 0, 0) is None:
            journal.record(self.found())
        return seeded

    def next(self, n: int, told: Sequence[Trial]) -> list[Seed]:
        """The seeds of an ask for ``n``: at most half of it, new, of sources that hold."""
        known = {trial.candidate.key: trial.objective for trial in told}
        ran = [objective for objective in known.values() if objective is not None]
        bests: dict[str, float] = {}
        for seed in self.seeds:
            if seed.candidate.key in known:
                objective = known[seed.candidate.key]
                before = bests.get(seed.source, -math.inf)
                bests[seed.source] = max(before, -math.inf if objective is None else objective)
        least = max(ran, default=-math.inf) - WORSE
        holds = [s for s in self.seeds if bests.get(s.source, math.inf) >= least]
        return [s for s in holds if s.candidate.key not in known][: max(1, n // 2)]

    def found(self) -> Event:
        """It as an event."""
        seeds = [
            {"source": seed.source, "candidate": json.loads(dumps(seed.candidate))}
            for seed in self.seeds
        ]
        return event(FOUND, 0, seeds=seeds)

    @classmethod
    def of_event(cls, event: Event) -> WarmStart:
        """The one that an earlier sitting found."""
        return cls(
            tuple(
                Seed(loads(Candidate, json.dumps(seed["candidate"])), str(seed["source"]))
                for seed in event.data["seeds"]
            )
        )


def seeds_of(
    neighbours: Iterable[Neighbour],
    current: Callable[[Neighbour], Candidate | None],
    most: int,
) -> tuple[Seed, ...]:
    """The best configurations of like keys, at most ``most``: the best of each of the nearest
    `SOURCES`, then the second of each, and so on.

    Args:
        neighbours: trials of like keys, the nearest key first and within a key the fastest first.
        current: a trial's candidate as it reads in this campaign; None if its space has it not.
        most: how many at most.
    """
    sources: dict[str, list[Candidate]] = {}
    for neighbour in neighbours:
        source = _source(neighbour)
        if source not in sources and len(sources) == SOURCES:
            break
        candidate = current(neighbour)
        if candidate is not None:
            sources.setdefault(source, []).append(candidate)
    seeds: dict[str, Seed] = {}
    for rank in range(max(map(len, sources.values()), default=0)):
        for source, candidates in sources.items():
            if rank < len(candidates) and len(seeds) < most:
                seeds.setdefault(candidates[rank].key, Seed(candidates[rank], source))
    return tuple(seeds.values())


def _source(neighbour: Neighbour) -> str:
    extents = " ".join(f"{name}={extent}" for name, extent in neighbour.extents.items())
    return f"{extents} on {neighbour.device}"
