"""What a line of memory costs one thread, by the size of what it lies in: a memory mountain (Bryant
and O'Hallaron, Computer Systems, section 6.6.1) without the axis of strides.

A level's capacity, how much of a shared cache there is and the share of hits in a cache that is
nearly full are all in the curves, so nothing is to be known of them beforehand.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class MemoryCosts:
    """What one thread waits for, in seconds, measured; curves are by working set in bytes.

    ``stream_s`` is a line of an array that is read along, ``gathered_s`` one of a row at a place
    that was read; ``merge_step_s`` is one step of a merge without branches (load, least, compare,
    count up); ``mispredict_s`` a branch foretold wrongly.
    """

    sizes_bytes: tuple[int, ...]
    stream_s: tuple[float, ...]
    gathered_s: tuple[float, ...]
    merge_step_s: float
    mispredict_s: float

    def __post_init__(self) -> None:
        sizes = self.sizes_bytes
        if not sizes or any(a >= b for a, b in pairwise(sizes)):
            raise ValueError(f"sizes_bytes: expected at least one, ascending, found {sizes}")
        for name in ("stream_s", "gathered_s"):
            curve = getattr(self, name)
            if len(curve) != len(sizes) or not all(0 < each < math.inf for each in curve):
                raise ValueError(f"{name}: expected {len(sizes)} times > 0, found {curve}")
        for name in ("merge_step_s", "mispredict_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name}: expected a time > 0, found {getattr(self, name)}")

    def stream(self, size_bytes: float) -> float:
        """Seconds a line that is read along in so many bytes."""
        return _between(self.sizes_bytes, self.stream_s, size_bytes)

    def gathered(self, size_bytes: float) -> float:
        """Seconds a line of a row that is anywhere in so many bytes."""
        return _between(self.sizes_bytes, self.gathered_s, size_bytes)


def _between(sizes: Sequence[int], costs: Sequence[float], size: float) -> float:
    """A curve at a size: straight between its points with both axes logarithmic."""
    place = bisect_left(sizes, size)
    if place == 0 or place == len(sizes):
        return costs[min(place, len(sizes) - 1)]
    low, high = sizes[place - 1], sizes[place]
    share = math.log(size / low) / math.log(high / low)
    return costs[place - 1] * math.pow(costs[place] / costs[place - 1], share)
