"""Grid search: every valid configuration of a space that can be listed, the last knob fastest."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.env.protocols import Space
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import EXHAUSTED, listed
from kernelwright.search.trial import Trial


class Grid:
    """The whole space in order; the seed does not matter."""

    def __init__(self, space: Space, *, seed: int, batch: int) -> None:
        del seed, batch
        self._space = listed(space)
        self._order: list[int] = self._space.valid.tolist()
        self._next = 0
        self._visited: set[int] = set()

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return EXHAUSTED if self._next == len(self._order) else None

    def ask(self, n: int) -> list[Proposal]:
        """The next ``n`` configurations."""
        out: list[Proposal] = []
        while len(out) < n and self._next < len(self._order):
            index = self._order[self._next]
            self._next += 1
            if index not in self._visited:
                out.append(Proposal(self._space.candidate(index), "grid"))
        return out

    def tell(self, trials: Sequence[Trial]) -> None:
        """Skip what somebody else visited."""
        self._visited.update(self._space.index(trial.candidate) for trial in trials)
