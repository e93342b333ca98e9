"""Random search without replacement: the baseline that every other driver must beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.pool import EXHAUSTED, Pool
from kernelwright.search.trial import Trial


class Random:
    """Every valid configuration equally likely, none twice."""

    def __init__(self, space: KnobSpace, *, seed: int, batch: int) -> None:
        del batch
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._pool = Pool(space)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return None if len(self._pool) else EXHAUSTED

    def ask(self, n: int) -> list[Proposal]:
        """``n`` unvisited configurations, fewer at the end of the space."""
        count = min(n, len(self._pool))
        return [
            Proposal(self._space.candidate(self._pool.draw(self._rng)), "random")
            for _ in range(count)
        ]

    def tell(self, trials: Sequence[Trial]) -> None:
        """Forget what somebody else visited."""
        for trial in trials:
            self._pool.remove(self._space.index(trial.candidate))
