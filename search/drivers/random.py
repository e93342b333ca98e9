"""Random search without replacement: the baseline that every other driver must beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelwright.env.protocols import Space
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import make_pool
from kernelwright.search.trial import Trial


class Random:
    """Samples of the space, none twice; in a knob space all equally likely."""

    def __init__(self, space: Space, *, seed: int, batch: int) -> None:
        del batch
        self._pool = make_pool(space, np.random.default_rng(seed))

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """``n`` unvisited configurations, fewer at the end of the space."""
        out: list[Proposal] = []
        while len(out) < n and (drawn := self._pool.draw()) is not None:
            out.append(Proposal(self._pool.candidate(drawn), "random"))
        return out

    def tell(self, trials: Sequence[Trial]) -> None:
        """Forget what somebody else visited."""
        for trial in trials:
            self._pool.remove(self._pool.handle(trial.candidate))
