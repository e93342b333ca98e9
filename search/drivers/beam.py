"""Beam search over schedules: extend the best traces by one directive each, measure, keep the best
of those, and so on; then start again from the empty trace.

At every depth each of ``width`` traces is extended by up to ``branch`` legal directives, drawn at
random, and the ``width`` fastest of all extensions go on, even where they are slower than what they
came from: a split gains nothing before its loop is vectorised. A descent ends at ``depth``
directives, or where nothing can be extended; the next one draws other directives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from kernelwright.env.protocols import Space
from kernelwright.env.types import Proposal
from kernelwright.search.drivers.traces import Traces, schedules
from kernelwright.search.trial import Trial

TRIES = 4  # draws for one extension that was not visited


class Beam:
    """The best partial traces are extended, level by level."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        width: Annotated[int, Field(ge=1, description="traces that go on at every depth")] = 3,
        branch: Annotated[int, Field(ge=1, description="extensions of each")] = 12,
        depth: Annotated[
            int, Field(ge=1, le=128, description="directives at which a descent ends")
        ] = 12,
    ) -> None:
        del batch
        self._traces = Traces(schedules(space), np.random.default_rng(seed))
        self._pool = self._traces.pool
        self._width, self._branch, self._depth = width, branch, depth
        self._values: dict[int, float] = {}
        self._level = 0
        self._beam = [self._traces.root]
        self._queue: list[tuple[int, int]] = []  # (extension, what it extends)
        self._children: list[int] = []
        self._waiting: set[int] = set()

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """The empty trace, then extensions; a sample of the space where there are none."""
        if self._traces.root in self._pool:
            self._pool.remove(self._traces.root)
            return [Proposal(self._pool.candidate(self._traces.root), "beam")]
        if not self._queue and not self._waiting:
            self._next_level()
        out: list[Proposal] = []
        while len(out) < n and self._queue:
            handle, parent = self._queue.pop(0)
            if handle in self._pool:
                self._take(handle)
                parents = (self._pool.candidate(parent).key,) if parent in self._values else ()
                out.append(Proposal(self._pool.candidate(handle), "beam", parents))
        if not out and (drawn := self._pool.draw()) is not None:
            out.append(Proposal(self._pool.candidate(drawn), "beam"))
        return out

    def _take(self, handle: int) -> None:
        self._pool.remove(handle)
        self._waiting.add(handle)

    def _next_level(self) -> None:
        """Go one directive deeper, or back to the empty trace."""
        if self._children:
            ranked = sorted(self._children, key=lambda h: (-self._height(h), h))
            self._beam = [h for h in ranked if self._height(h) > -math.inf][: self._width]
            self._level += 1
        if self._level >= self._depth or not self._beam or not self._children:
            self._beam, self._level = [self._traces.root], 0
        self._children = []
        for parent in self._beam:
            self._grow(parent)
        if not self._queue and self._beam != [self._traces.root]:
            self._beam, self._level, self._children = [self._traces.root], 0, []
            self._grow(self._traces.root)

    def _grow(self, parent: int) -> None:
        """Draw extensions of a trace: those that were visited are known, the others are asked."""
        for _ in range(self._branch):
            for _ in range(TRIES):
                handle = self._traces.extend(parent)
                if handle is None:
                    return
                if handle not in self._children:
                    self._children.append(handle)
                    if handle in self._pool:
                        self._queue.append((handle, parent))
                    break

    def _height(self, handle: int) -> float:
        return self._values.get(handle, -math.inf)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn the values of the level."""
        for trial in trials:
            handle = self._pool.handle(trial.candidate)
            self._pool.remove(handle)
            self._waiting.discard(handle)
            if trial.objective is not None:
                self._values[handle] = trial.objective
