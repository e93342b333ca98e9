"""The configurations of a space that have not been proposed yet: random draws and removals in
constant time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from kernelwright.env.spaces.knobs import KnobSpace

EXHAUSTED = "every valid configuration of the space has been proposed"


def uniforms(rng: np.random.Generator) -> Callable[[], float]:
    """Uniform variates in [0, 1) one at a time, drawn from ``rng`` in blocks.

    A scalar draw from a NumPy generator costs about a microsecond, one from a list a few
    nanoseconds; a driver that draws hundreds of times a proposal feels that.
    """

    def stream() -> Iterator[float]:
        while True:
            yield from rng.random(256).tolist()

    return stream().__next__


class Pool:
    """Unvisited flat indices of a space."""

    def __init__(self, space: KnobSpace) -> None:
        self._items: list[int] = space.valid.tolist()
        self._place = {index: place for place, index in enumerate(self._items)}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, index: int) -> bool:
        return index in self._place

    def remove(self, index: int) -> None:
        """Mark an index as visited; one that is not in the pool is left alone."""
        place = self._place.pop(index, None)
        if place is None:
            return
        last = self._items.pop()
        if last != index:
            self._items[place] = last
            self._place[last] = place

    def draw(self, rng: np.random.Generator) -> int:
        """Take out an index, each equally likely.

        Raises:
            IndexError: if none is left.
        """
        index = self._items[int(rng.integers(len(self._items)))] if self._items else None
        if index is None:
            raise IndexError(EXHAUSTED)
        self.remove(index)
        return index
