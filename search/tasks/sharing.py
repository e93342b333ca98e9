"""Which configurations a task tries because they did well next door.

Tasks of one problem differ by shape, and what is fast for one shape is often fast for a shape
twice as long. So a batch of a task begins with the best configurations of the tasks nearest to it
that it has not tried: in its first batch up to half of the batch, later one.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Sequence

from kernelwright.env.protocols import Space
from kernelwright.env.types import Candidate
from kernelwright.search.seeded import Seed
from kernelwright.search.tasks.standing import Standing, distance

# How many of a task's best configurations others may take, and of how many neighbours one takes.
TOP, NEIGHBOURS = 2, 4


class Top:
    """The best configurations of a task by measured time."""

    def __init__(self) -> None:
        self._ranked: list[tuple[float, int, Candidate]] = []

    def learn(self, time_ns: float, number: int, candidate: Candidate) -> None:
        """A trial that passed."""
        insort(self._ranked, (time_ns, number, candidate), key=lambda place: place[:2])
        del self._ranked[TOP:]

    def __getitem__(self, rank: int) -> Candidate:
        return self._ranked[rank][2]

    def __len__(self) -> int:
        return len(self._ranked)


def seeds_for(
    task: int,
    standings: Sequence[Standing],
    tops: Sequence[Top],
    tried: Container[str],
    space: Space,
    batch: int,
) -> list[Seed]:
    """The seeds of a task's next batch: valid and new, the best of the nearest first."""
    me = standings[task]
    donors = [i for i, top in enumerate(tops) if i != task and len(top)]
    donors.sort(key=lambda i: (distance(me, standings[i]), i))
    is_first = not me.batches
    most, ranks = (max(1, batch // 2), TOP) if is_first else (min(1, batch // 2), 1)
    out: list[Seed] = []
    for rank in range(ranks):
        for donor in donors[:NEIGHBOURS]:
            if len(out) == most or rank >= len(tops[donor]):
                continue
            candidate = tops[donor][rank]
            known = candidate.key in tried or any(s.candidate.key == candidate.key for s in out)
            if not known and not space.check(candidate):
                out.append(Seed(candidate, standings[donor].name))
    return out
