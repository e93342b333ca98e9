"""MAP-Elites: keep the best of every kind, and breed from all kinds alike.

Candidates are told apart by what they are like (by default arithmetic intensity, footprint and
parallelism; ``facts.py`` says where those come from), not by how fast they are. A niche spans a
factor on each axis and keeps its fastest; parents are drawn from the occupied niches, so a kind
that is slow at first is not bred out (Mouret and Clune, Illuminating search spaces by mapping
elites, 2015). There each niche is equally likely; with a budget of hundreds that is little better
than chance, so here a parent is the best of ``tournament`` niches that are drawn (1 is as there).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Problem, Proposal
from kernelwright.search.drivers.children import fresh_child, proposal
from kernelwright.search.drivers.facts import COMPUTED, Demand, Facts
from kernelwright.search.drivers.pool import make_pool
from kernelwright.search.trial import Trial

Niche: TypeAlias = tuple[int | None, ...]
AXES_OF_KNOBS = 3


class MapElites:
    """Quality and diversity: the best of every niche breeds."""

    def __init__(
        self,
        space: Space,
        *,
        seed: int,
        batch: int,
        problem: Problem | None = None,
        initial: Annotated[
            int, Field(ge=1, description="random configurations before the first child")
        ] = 16,
        axes: Annotated[
            tuple[str, ...],
            Field(description="facts or knobs that kinds are told apart by; none: see docs"),
        ] = (),
        factor: Annotated[
            float, Field(gt=1, description="how wide a niche is on the axis of a fact")
        ] = 4.0,
        crossover: Annotated[
            float, Field(ge=0, le=1, description="share of children with two parents")
        ] = 0.3,
        two_knobs: Annotated[
            float, Field(ge=0, le=1, description="share of mutations that change two knobs")
        ] = 0.3,
        tournament: Annotated[
            int, Field(ge=1, le=1000, description="niches drawn, whose fastest is the parent")
        ] = 6,
    ) -> None:
        del batch
        self._tournament = tournament
        self._pool = make_pool(space, np.random.default_rng(seed))
        self._facts = Facts(space, problem)
        self._knobs = {k.name: k for k in space.knobs} if isinstance(space, KnobSpace) else {}
        self._axes = axes or self._default_axes()
        if len(set(self._axes)) != len(self._axes):
            raise OptionError("axes", "different names", ", ".join(axes))
        named = [name for name in axes if name not in self._knobs]
        self.demand = Demand("axes", named, self._facts)
        self._initial, self._step = initial, math.log(factor)
        self._crossover, self._two_knobs = crossover, two_knobs
        self._proposed = 0
        self._elites: dict[Niche, tuple[float, int, int]] = {}  # objective, -number, handle
        self._niches: list[Niche] = []

    def _default_axes(self) -> tuple[str, ...]:
        """The computed facts; where nothing is computed, the knobs with most values."""
        if self._facts.computed:
            return COMPUTED
        widest = sorted(self._knobs.values(), key=lambda knob: -len(knob.values))
        return tuple(knob.name for knob in widest[:AXES_OF_KNOBS])

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self.demand.unmet or self._pool.stopped

    @property
    def axes(self) -> tuple[str, ...]:
        """What niches are told apart by."""
        return self._axes

    @property
    def elites(self) -> dict[Niche, str]:
        """The key of the fastest candidate of every niche."""
        return {niche: self._pool.candidate(e[2]).key for niche, e in self._elites.items()}

    def ask(self, n: int) -> list[Proposal]:
        """Random configurations first, then children of elites."""
        out: list[Proposal] = []
        while len(out) < n and not self.stopped:
            handle: int | None = None
            parents: tuple[int, ...] = ()
            if self._proposed >= self._initial and self._niches:
                handle, parents = fresh_child(
                    self._pool, self._pick, crossover=self._crossover, two_knobs=self._two_knobs
                )
            if handle is None:
                handle, parents = self._pool.draw(), ()
            if handle is None:
                break
            self._proposed += 1
            out.append(proposal(self._pool, handle, "map_elites", parents))
        return out

    def _pick(self) -> int:
        draw, count = self._pool.uniform, len(self._niches)
        drawn = [self._niches[int(draw() * count)] for _ in range(self._tournament)]
        return max(self._elites[niche] for niche in drawn)[2]

    def niche(self, trial: Trial) -> Niche:
        """Where a trial belongs: a number for each axis, None where its fact is not known."""
        facts = self._facts.of(trial)
        return tuple(self._place(axis, trial, facts) for axis in self._axes)

    def _place(self, axis: str, trial: Trial, facts: dict[str, float]) -> int | None:
        if axis in self._knobs:
            return self._knobs[axis].values.index(trial.candidate.knobs[axis])
        value = facts.get(axis)
        if value is None:
            return None
        # Facts count things; none of them is below one but by being nothing at all.
        return math.floor(math.log(max(value, 1e-9)) / self._step + 1e-9)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Keep what is the best of its kind."""
        self.demand.learn(trials)
        for trial in trials:
            handle = self._pool.handle(trial.candidate)
            self._pool.remove(handle)
            if trial.objective is None:
                continue
            niche, entry = self.niche(trial), (trial.objective, -trial.number, handle)
            if niche not in self._elites:
                self._niches.append(niche)
            if niche not in self._elites or entry > self._elites[niche]:
                self._elites[niche] = entry
