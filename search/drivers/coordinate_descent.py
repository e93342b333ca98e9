"""Coordinate descent: try all values of one knob while the others stay, keep the best, go on to the
next knob; stuck when no knob alone improves, and then start again elsewhere.

This is what tuners do that descend from a heuristic's choice (PyTorch Inductor's among them), and
where two knobs must move together it stops short of the best: docs/coordinate-descent.md shows how
often and how far. Where it got stuck is kept in `CoordinateDescent.stuck`, and recorded as an event
``stuck`` in a campaign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Proposal
from kernelwright.search.driver import Journal
from kernelwright.search.drivers.pool import ListedPool, listed
from kernelwright.search.trial import Trial, event


@dataclass(frozen=True, slots=True)
class Stuck:
    """A configuration no single knob of which improves: its flat index, its objective, and how many
    trials were known by then.
    """

    index: int
    objective: float
    trials: int


def line(space: KnobSpace, index: int, knob: int) -> list[int]:
    """The valid configurations that differ from one in a knob, in the order of its values."""
    levels = space.unflat(index)
    places = [
        space.flat([*levels[:knob], level, *levels[knob + 1 :]])
        for level in range(space.shape[knob])
    ]
    return [place for place in places if place != index and space.contains_index(place)]


class CoordinateDescent:
    """One knob at a time, all its values; restarts where it is stuck."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        journal: Journal | None = None,
        start: Annotated[
            Literal["default", "random"],
            Field(
                description="where the first descent starts (or at the best known, if anything is)"
            ),
        ] = "default",
        order: Annotated[
            Literal["declared", "seeded"],
            Field(description="whether knobs are tried as declared or as the seed draws anew"),
        ] = "declared",
    ) -> None:
        del batch
        self._space, self._journal = listed(space), journal
        self._rng = np.random.default_rng(seed)
        self._pool = ListedPool(self._space, self._rng)
        self._is_seeded = order == "seeded"
        default = self._space.default
        self._first = self._space.index(default) if default and start == "default" else None
        self._takes_known = start == "default"
        self._values: dict[int, float | None] = {}
        self._starts: list[int] = []
        self._centre: int | None = None
        self._tried = 0  # knobs since the last improvement
        self._order: list[int] = []
        self._asks = 0
        self.stuck: list[Stuck] = []

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._pool.stopped

    def ask(self, n: int) -> list[Proposal]:
        """What is unvisited of the next line that has anything, or a start."""
        self._asks += 1
        parents: tuple[str, ...] = ()
        chosen = self._next_line()[:n]
        if self._centre is not None and chosen:
            parents = (self._space.candidate(self._centre).key,)
        elif not chosen:
            chosen = self._new_start()
            self._starts += chosen
        for index in chosen:
            self._pool.remove(index)
        return [Proposal(self._space.candidate(i), "coordinate_descent", parents) for i in chosen]

    def _next_line(self) -> list[int]:
        """The unvisited rest of the current line, or of the first one after it that has any; empty
        when a descent has ended.
        """
        if self._centre is None:
            self._begin()
        while self._centre is not None:
            if not self._order:
                self._order = self._new_order()
            near = line(self._space, self._centre, self._order[0])
            fresh = [index for index in near if index in self._pool]
            if fresh:
                return fresh
            self._finish_line(near)
        return []

    def _finish_line(self, near: Sequence[int]) -> None:
        """A whole line is known: keep its best if that is better, and turn to the next knob."""
        assert self._centre is not None
        self._order.pop(0)
        self._tried += 1
        best = max(near, key=lambda index: (self._height(index), -index), default=self._centre)
        if self._height(best) > self._height(self._centre):
            # The knob that moved is at its best, so it counts as tried.
            self._centre, self._tried = best, 1
        if self._tried >= len(self._space.shape):
            self._note(self._centre)
            self._centre, self._tried, self._order = None, 0, []

    def _note(self, index: int) -> None:
        found = Stuck(index, self._height(index), len(self._values))
        self.stuck.append(found)
        if self._journal is not None and math.isfinite(found.objective):
            knobs = self._space.candidate(index).knobs
            told = {"knobs": knobs, "objective": found.objective, "trials": found.trials}
            self._journal.record(event("stuck", self._asks, len(self.stuck), **told))

    def _new_order(self) -> list[int]:
        count = len(self._space.shape)
        if self._is_seeded:
            drawn: list[int] = self._rng.permutation(count).tolist()
            return drawn
        return list(range(count))

    def _begin(self) -> None:
        """Descend from the start that was waited for; the first time from the best known."""
        known = [index for index in self._starts if self._values.get(index) is not None]
        self._starts = [index for index in self._starts if index not in self._values]
        if not known and not self.stuck and self._takes_known:
            known = [index for index, value in self._values.items() if value is not None]
        if known:
            self._centre = max(known, key=lambda index: (self._height(index), -index))

    def _new_start(self) -> list[int]:
        first, self._first = self._first, None
        if first is not None and first in self._pool:
            return [first]
        drawn = self._pool.draw()
        return [] if drawn is None else [drawn]

    def _height(self, index: int) -> float:
        value = self._values.get(index)
        return -math.inf if value is None else value

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn the values of the line."""
        for trial in trials:
            index = self._space.index(trial.candidate)
            self._pool.remove(index)
            self._values[index] = trial.objective
