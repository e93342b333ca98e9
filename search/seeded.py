"""A driver with configurations that did well elsewhere in front of its own proposals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.driver import Driver, Journal
from kernelwright.search.trial import Trial, event

SEEDED = "seeded"


@dataclass(frozen=True, slots=True)
class Seed:
    """A configuration and where it did well: another task, an earlier run."""

    candidate: Candidate
    source: str


class Seeded:
    """Proposes seeds first, then lets the driver go on, which is told of all.

    Seeds are taken whenever the driver is asked; each ask that has some is an event in the record.
    They must be a function of what was told so far.

    Args:
        driver: whose proposals follow.
        journal: where seeds are recorded.
        seeds: gives at most so many for the coming ask, all of them valid and new.
        kind: of the events.
        told: where what was told is kept.
    """

    def __init__(
        self,
        driver: Driver,
        journal: Journal,
        seeds: Callable[[int], Sequence[Seed]],
        *,
        kind: str = SEEDED,
        told: list[Trial] | None = None,
    ) -> None:
        self._driver, self._journal, self._seeds, self._kind = driver, journal, seeds, kind
        self._asks = 0
        self.told: list[Trial] = [] if told is None else told

    @property
    def stopped(self) -> str | None:
        """Why the driver has nothing more to propose."""
        return self._driver.stopped

    def ask(self, n: int) -> list[Proposal]:
        """Seeds, and proposals of the driver for the rest of the batch."""
        self._asks += 1
        seeds = self._seeds(n)
        own = list(self._driver.ask(n - len(seeds))) if len(seeds) < n else []
        taken = {proposal.candidate.key for proposal in own}
        seeds = [seed for seed in seeds if seed.candidate.key not in taken]
        if seeds:
            given = [{"key": seed.candidate.key, "source": seed.source} for seed in seeds]
            self._journal.record(event(self._kind, self._asks, seeds=given))
        return [*(Proposal(s.candidate, f"{self._kind} by {s.source}") for s in seeds), *own]

    def tell(self, trials: Sequence[Trial]) -> None:
        """Tell the driver, and keep what it was told."""
        self.told += trials
        self._driver.tell(trials)
