"""What has not been proposed yet, for spaces that can be listed and for open ones.

A driver knows a configuration by its handle, a number: in a knob space the flat index, in an open
space the place in the order in which candidates were first seen. So one driver walks both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.env.spaces.knobs import KnobSpace, is_listed
from kernelwright.env.types import Candidate

EXHAUSTED = "every valid configuration of the space has been proposed"
# Draws in a row that give nothing new, after which an open space counts as used up.
MAX_REDRAWS = 1000
# How many one-step mutations stand for the neighbours of a candidate in an open space.
NEIGHBOURS = 16
# Numbers in a table of what models read of all configurations, a gigabyte of them.
MOST_FEATURES = 2**27
DRY = f"{MAX_REDRAWS} draws in a row gave no candidate that had not been proposed"


def uniforms(rng: np.random.Generator) -> Callable[[], float]:
    """Uniform variates in [0, 1) one at a time, drawn from ``rng`` in blocks.

    A scalar draw from a NumPy generator costs about a microsecond, one from a list a few
    nanoseconds; a driver that draws hundreds of times a proposal feels that.
    """

    def stream() -> Iterator[float]:
        while True:
            yield from rng.random(256).tolist()

    return stream().__next__


class Pool(Protocol):
    """Unvisited handles of a space, and the space's moves on handles.

    All randomness is drawn from one generator, ``uniform`` in blocks.
    """

    uniform: Callable[[], float]

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to draw; None while there is, as far as is known."""
        ...

    def at_most(self, count: int) -> int:
        """How many of some draws may succeed, as far as is known."""
        ...

    def __contains__(self, handle: int) -> bool:
        """Whether a handle is unvisited."""
        ...

    def handle(self, candidate: Candidate) -> int:
        """The handle of a candidate."""
        ...

    def candidate(self, handle: int) -> Candidate:
        """The candidate of a handle."""
        ...

    def remove(self, handle: int) -> None:
        """Mark a handle as visited; one that is already is left alone."""
        ...

    def draw(self) -> int | None:
        """Take out an unvisited handle at random, None if none is found."""
        ...

    def look(self) -> int:
        """A random handle, visited or not, that is not taken out."""
        ...

    def mutate(self, handle: int, steps: int) -> int | None:
        """A handle some steps away, visited or not; None if this draw gave none."""
        ...

    def crossover(self, left: int, right: int) -> int | None:
        """A mixture of two, visited or not; None if this draw gave none."""
        ...

    def neighbours(self, handle: int) -> list[int]:
        """Handles one step away, visited or not, each once."""
        ...

    def features(self, handles: list[int]) -> NDArray[np.float64]:
        """A row of numbers a handle."""
        ...


def make_pool(space: Space, rng: np.random.Generator) -> Pool:
    """The pool of a space.

    Raises:
        OptionError: if the space has nothing to draw from.
    """
    if is_listed(space):
        return ListedPool(space, rng)
    if not getattr(space, "can_sample", True):
        raise OptionError("name", "a space to draw candidates from", type(space).__name__)
    return OpenPool(space, rng)


def listed(space: Space) -> KnobSpace:
    """A space whose configurations can be listed.

    Raises:
        OptionError: if it is open.
    """
    if not is_listed(space):
        found = f"{type(space).__name__}, which is open"
        if isinstance(space, KnobSpace):
            found = f"one of {space.combinations:,} combinations, too many to list"
        raise OptionError("name", "a space whose configurations can be listed", found)
    return space


def is_ranked_whole(space: Space) -> TypeGuard[KnobSpace]:
    """Whether a model can be asked about all configurations at once: they can be listed, and a
    table of their features fits into memory.
    """
    if not is_listed(space):
        return False
    knobs = len(space.knobs)
    return len(space.valid) * (knobs + knobs * (knobs + 1) // 2) <= MOST_FEATURES


class ListedPool:
    """Unvisited flat indices of a knob space; random draws and removals in constant time.

    The unvisited ones are the first places of an array that is never made: it begins as the list of
    valid indices, and only places where a removal has moved another index are remembered. So a
    search of a few hundred candidates costs the same in a space of any size.
    """

    def __init__(self, space: KnobSpace, rng: np.random.Generator) -> None:
        self._space, self._rng = space, rng
        self.uniform = uniforms(rng)
        self._valid = space.valid
        self._left = len(self._valid)
        self._moved: dict[int, int] = {}  # by place
        self._place: dict[int, int] = {}  # by moved index
        self._gone: set[int] = set()
        self._handles: dict[str, int] = {}
        self.neighbours = space.neighbour_indices

    def handle(self, candidate: Candidate) -> int:
        """The flat index of a candidate; those that were made here are looked up."""
        known = self._handles.get(candidate.key)
        return self._space.index(candidate) if known is None else known

    def candidate(self, handle: int) -> Candidate:
        """The candidate at a flat index."""
        made = self._space.candidate(handle)
        self._handles[made.key] = handle
        return made

    def __len__(self) -> int:
        return self._left

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to draw."""
        return None if self._left else EXHAUSTED

    def at_most(self, count: int) -> int:
        """The smaller of a count and how many are left."""
        return min(count, self._left)

    def __contains__(self, handle: int) -> bool:
        return handle not in self._gone and self._space.contains_index(handle)

    def _at(self, place: int) -> int:
        moved = self._moved.get(place)
        return int(self._valid[place]) if moved is None else moved

    def remove(self, handle: int) -> None:
        """Mark an index as visited; one that is not in the pool is left alone."""
        if handle not in self:
            return
        place = self._place.pop(handle, None)
        self._take(int(np.searchsorted(self._valid, handle)) if place is None else place, handle)

    def _take(self, place: int, handle: int) -> None:
        """Take an index out of its place, into which the last one goes."""
        self._gone.add(handle)
        self._left -= 1
        last = self._at(self._left)
        self._moved.pop(self._left, None)
        if place != self._left:
            self._moved[place] = last
            self._place[last] = place

    def draw(self) -> int | None:
        """Take out an index, each equally likely; None if none is left."""
        if not self._left:
            return None
        place = int(self._rng.integers(self._left))
        handle = self._at(place)
        self._place.pop(handle, None)
        self._take(place, handle)
        return handle

    def look(self) -> int:
        """A valid index, each equally likely."""
        return int(self._space.valid[self._rng.integers(len(self._space.valid))])

    def mutate(self, handle: int, steps: int) -> int | None:
        """`KnobSpace.mutate_index`."""
        return self._space.mutate_index(handle, self.uniform, steps)

    def crossover(self, left: int, right: int) -> int | None:
        """`KnobSpace.crossover_index`."""
        return self._space.crossover_index(left, right, self.uniform)

    def features(self, handles: list[int]) -> NDArray[np.float64]:
        """Rows of the space's table."""
        return self._space.feature_rows(np.array(handles, dtype=np.int64))


class OpenPool:
    """Candidates of a space without an end, by the order in which they were first seen."""

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._space, self._rng = space, rng
        self.uniform = uniforms(rng)
        self._seen: list[Candidate] = []
        self._handle: dict[str, int] = {}
        self._visited: set[int] = set()
        self._features: dict[int, NDArray[np.float64]] = {}
        self._is_dry = False

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to draw."""
        return DRY if self._is_dry else None

    def at_most(self, count: int) -> int:
        """The count itself, until the space is used up."""
        return 0 if self._is_dry else count

    def __contains__(self, handle: int) -> bool:
        return handle not in self._visited

    def handle(self, candidate: Candidate) -> int:
        """The number of a candidate; the next one, if it was not seen before."""
        found = self._handle.setdefault(candidate.key, len(self._seen))
        if found == len(self._seen):
            self._seen.append(candidate)
        return found

    def candidate(self, handle: int) -> Candidate:
        """The candidate of a number."""
        return self._seen[handle]

    def remove(self, handle: int) -> None:
        """Mark a candidate as visited."""
        self._visited.add(handle)

    def draw(self) -> int | None:
        """Take out a sample that was not visited; None after `MAX_REDRAWS` that were."""
        for _ in range(0 if self._is_dry else MAX_REDRAWS):
            handle = self.handle(self._space.sample(self._rng))
            if handle in self:
                self.remove(handle)
                return handle
        self._is_dry = True
        return None

    def look(self) -> int:
        """A sample of the space."""
        return self.handle(self._space.sample(self._rng))

    def mutate(self, handle: int, steps: int) -> int | None:
        """The space's ``mutate``."""
        return self._known(self._space.mutate(self._seen[handle], self._rng, steps))

    def crossover(self, left: int, right: int) -> int | None:
        """The space's ``crossover``."""
        return self._known(self._space.crossover(self._seen[left], self._seen[right], self._rng))

    def _known(self, candidate: Candidate | None) -> int | None:
        return None if candidate is None else self.handle(candidate)

    def neighbours(self, handle: int) -> list[int]:
        """Some mutations: an open space may have hundreds of neighbours, too many to try all."""
        found = [self.mutate(handle, 1) for _ in range(NEIGHBOURS)]
        return list(dict.fromkeys(each for each in found if each is not None))

    def features(self, handles: list[int]) -> NDArray[np.float64]:
        """The space's ``features``, computed once a candidate."""
        for handle in handles:
            if handle not in self._features:
                self._features[handle] = self._space.features(self._seen[handle])
        return np.stack([self._features[handle] for handle in handles])
