"""Where a driver looks for its next candidate: rows of coordinates for a model, with the handles
that they stand for.

A knob space of up to `WHOLE` configurations is looked at whole; of a larger one everything within
`NEAR` knobs of the leaders and a sample of the rest, drawn again whenever the model is fitted. An
open space has no end: what is looked at are samples, mutations and mixtures of the leaders, some
new at every ask, and coordinates are its features, scaled to what has been seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace, is_listed
from kernelwright.search.drivers.pool import Pool
from kernelwright.search.models.coordinates import coordinates, twins
from kernelwright.search.models.gaussian import Table

Handles = NDArray[np.int64]
Mask = NDArray[np.bool_]

WHOLE = 6144
NEAR = 3  # knobs in which a near configuration may differ from a leader
WAITING, FRESH = 64, 8  # candidates of an open space that wait, and new ones at an ask
DESIGN = 8  # draws of an open space for a configuration far from all others
MIRRORS = 4  # pairs of twin knobs that are exchanged
TRIES = 64  # draws after which a design of an open space makes do with what it has


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Candidates with their coordinates; ``number`` changes when they do."""

    handles: Handles
    rows: Table
    number: int


class Field(Protocol):
    """The candidates of a space, as rows."""

    dimension: int

    def rows(self, handles: list[int]) -> Table:
        """Coordinates of some handles, shape (handles, dimension)."""
        ...

    def places(self, handles: Handles | list[int]) -> Handles:
        """The rows of some handles in the list of all valid ones, where there is one."""
        ...

    def visit(self, handle: int) -> None:
        """Leave a handle out from now on."""
        ...

    def draw(self, count: int) -> list[int]:
        """Up to ``count`` handles that are not visited, at random."""
        ...

    def refresh(self) -> None:
        """Look elsewhere from the next view on."""
        ...

    def view(self, leaders: list[int]) -> View:
        """The candidates to choose from, given the best handles so far."""
        ...

    def free(self, view: View) -> Mask:
        """Which of them were not proposed."""
        ...

    def near(self, view: View, leaders: list[int]) -> Mask:
        """Which of them differ from a leader in few knobs."""
        ...

    def mirror(self, view: View, leaders: list[int]) -> Mask:
        """Which of them are a leader with twin knobs exchanged."""
        ...

    def density(self, view: View, good: list[int], rest: list[int]) -> NDArray[np.float64] | None:
        """How much more often the values of each are met among some handles than among the rest,
        log of the ratio, knob by knob; None where candidates have no knobs.
        """
        ...


def make_field(space: Space, pool: Pool, rng: np.random.Generator) -> Field:
    """The field of a space."""
    if is_listed(space):
        return TableField(space, rng)
    return OpenField(pool)


class TableField:
    """All valid configurations of a knob space."""

    def __init__(self, space: KnobSpace, rng: np.random.Generator) -> None:
        self._space, self._rng = space, rng
        self._valid: Handles = space.valid
        self._levels = space.levels_of(self._valid)
        self._rows = coordinates(space.knobs, self._levels)
        self._shape, self._twins = space.shape, twins(space.knobs)[:MIRRORS]
        self.dimension = self._rows.shape[1]
        self._free = np.ones(len(self._valid), dtype=bool)
        self._active: Handles = np.arange(len(self._valid), dtype=np.int64)
        self._view: View | None = None
        self._number = 0

    def places(self, handles: Handles | list[int]) -> Handles:
        """The rows of some handles in the list of all valid ones."""
        return np.searchsorted(self._valid, handles).astype(np.int64)

    def rows(self, handles: list[int]) -> Table:
        """Coordinates of some handles."""
        return self._rows[self.places(handles)]

    def visit(self, handle: int) -> None:
        """Leave a configuration out from now on."""
        place = int(np.searchsorted(self._valid, handle))
        if place < len(self._valid) and self._valid[place] == handle:
            self._free[place] = False

    def draw(self, count: int) -> list[int]:
        """Configurations that are not visited, each equally likely and once."""
        free = np.flatnonzero(self._free)
        chosen = self._rng.choice(free, min(count, len(free)), replace=False)
        handles: list[int] = self._valid[chosen].tolist()
        return handles

    def refresh(self) -> None:
        """Draw anew what of a large space is looked at."""
        if len(self._valid) > WHOLE:
            self._view = None

    def view(self, leaders: list[int]) -> View:
        """The whole space, or the part of it that is looked at."""
        if self._view is None:
            self._number += 1
            if len(self._valid) > WHOLE:
                self._active = self._sample(leaders)
            handles, rows = self._valid[self._active], self._rows[self._active]
            self._view = View(handles, rows, self._number)
        return self._view

    def free(self, view: View) -> Mask:
        """Which candidates were not proposed."""
        del view
        return self._free[self._active]

    def near(self, view: View, leaders: list[int]) -> Mask:
        """Which candidates differ from a leader in at most `NEAR` knobs."""
        del view
        return self._near(self._levels[self._active], leaders, NEAR)

    def mirror(self, view: View, leaders: list[int]) -> Mask:
        """Which candidates are a leader with twin knobs exchanged."""
        found = [self._levels[self.places(leaders)].astype(np.int64)]
        for left, right in self._twins:
            other = np.concatenate(found)
            other[:, [left, right]] = other[:, [right, left]]
            found.append(other)
        handles = self._space.indices_of(np.concatenate(found))
        mask: Mask = np.isin(view.handles, handles)
        return mask

    def density(self, view: View, good: list[int], rest: list[int]) -> NDArray[np.float64] | None:
        """How much more often the values of each candidate are met among the good."""
        del view
        among = self._levels[self._active]
        left, right = self._levels[self.places(good)], self._levels[self.places(rest)]
        total = np.zeros(len(among))
        for knob, size in enumerate(self._shape):
            liked, met = (
                # One more, spread over all values, than was met.
                (np.bincount(some[:, knob], minlength=size) + 1 / size) / (len(some) + 1)
                for some in (left, right)
            )
            total += np.log(liked / met)[among[:, knob]]
        return total

    def _near(self, levels: NDArray[np.int32], leaders: list[int], most: int) -> Mask:
        near = np.zeros(len(levels), dtype=bool)
        for place in self.places(leaders):
            near |= (levels != self._levels[place]).sum(axis=1) <= most
        return near

    def _sample(self, leaders: list[int]) -> Handles:
        """What is near the leaders, filled up with a sample of the rest."""
        near = np.flatnonzero(self._near(self._levels, leaders, NEAR))
        if len(near) > WHOLE // 2:
            near = self._rng.choice(near, WHOLE // 2, replace=False)
        rest = np.ones(len(self._valid), dtype=bool)
        rest[near] = False
        others = self._rng.choice(np.flatnonzero(rest), WHOLE - len(near), replace=False)
        return np.sort(np.concatenate([near, others]))


class OpenField:
    """Candidates of a space that is drawn from."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._low = self._high = np.empty(0)
        self.dimension = pool.features([pool.look()]).shape[1]
        self._low = np.full(self.dimension, np.inf)
        self._high = np.full(self.dimension, -np.inf)
        self._waiting: dict[int, bool] = {}  # candidates, and whether they come from leaders
        self._number = 0

    def rows(self, handles: list[int]) -> Table:
        """Features of some handles, each scaled by the range that was seen."""
        features = self._pool.features(handles)
        self._low = np.minimum(self._low, features.min(axis=0))
        self._high = np.maximum(self._high, features.max(axis=0))
        spread = self._high - self._low
        scaled = (features - self._low) / np.where(spread > 0, spread, 1.0)
        return scaled.astype(np.float32)

    def places(self, handles: Handles | list[int]) -> Handles:
        """Refused: there is no list of all candidates, and advice is refused for that reason."""
        raise NotImplementedError("an open space has no list of its candidates")

    def visit(self, handle: int) -> None:
        """Nothing: the pool knows."""

    def draw(self, count: int) -> list[int]:
        """Samples that are not visited, fewer where the space gives few: each takes its time."""
        found: dict[int, None] = {}
        for _ in range(TRIES):
            handle = self._pool.look()
            if handle in self._pool:
                found[handle] = None
            if len(found) == min(count, DESIGN):
                break
        return list(found)

    def refresh(self) -> None:
        """Nothing: some candidates are new each time."""

    def view(self, leaders: list[int]) -> View:
        """What waits: samples, mutations of the leaders and mixtures of two, the latest."""
        for draw in range(FRESH if self._waiting else WAITING):
            found = self._drawn(leaders, draw % 4)
            if found is not None and found in self._pool:
                self._waiting.pop(found, None)
                self._waiting[found] = draw % 4 > 0
        handles = [handle for handle in self._waiting if handle in self._pool][-WAITING:]
        self._waiting = {handle: self._waiting[handle] for handle in handles}
        rows = self.rows(handles) if handles else np.empty((0, self.dimension), dtype=np.float32)
        self._number += 1
        return View(np.array(handles, dtype=np.int64), rows, self._number)

    def _drawn(self, leaders: list[int], kind: int) -> int | None:
        """A sample (0), a mixture of two leaders (1) or a mutation of one (2, 3)."""
        if kind == 0:
            return self._pool.look()
        uniform = self._pool.uniform
        leader = leaders[int(uniform() * len(leaders))]
        if kind == 1 and len(leaders) > 1:
            return self._pool.crossover(leader, leaders[int(uniform() * len(leaders))])
        return self._pool.mutate(leader, 1 + int(uniform() * NEAR))

    def free(self, view: View) -> Mask:
        """Which candidates were not proposed."""
        return np.array([handle in self._pool for handle in view.handles.tolist()], dtype=bool)

    def near(self, view: View, leaders: list[int]) -> Mask:
        """Which candidates are mutations or mixtures of leaders."""
        del leaders
        waiting = self._waiting
        return np.array([waiting.get(handle, False) for handle in view.handles.tolist()], bool)

    def mirror(self, view: View, leaders: list[int]) -> Mask:
        """None: nothing is known of an open space's sides."""
        del leaders
        return np.zeros(len(view.handles), dtype=bool)

    def density(self, view: View, good: list[int], rest: list[int]) -> NDArray[np.float64] | None:
        """None: what candidates are made of is the space's own."""
        del view, good, rest
        return None
