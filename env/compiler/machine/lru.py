"""Caches in plain Python: what the simulator in C means. For small streams, some hundred thousand
accesses a second.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.machine.hierarchy import (
    Cache,
    CacheReport,
    Counts,
    LevelReport,
    Stream,
    check_caches,
)


def replay(
    caches: Sequence[Cache],
    addresses: NDArray[np.integer],
    writes: NDArray[np.bool_] | None = None,
    tensors: NDArray[np.integer] | None = None,
    names: Sequence[str] = ("all",),
) -> CacheReport:
    """What caches see of a stream of accesses; arguments and result are those of
    `simulator.simulate`.

    Raises:
        ValueError: if the caches cannot be simulated.
    """
    levels = [_Level(cache, len(names)) for cache in check_caches(caches)]
    count = len(addresses)
    is_write = [False] * count if writes is None else [bool(w) for w in writes]
    of = [0] * count if tensors is None else [int(t) for t in tensors]
    for address, write, tensor in zip(map(int, addresses), is_write, of, strict=True):
        for k, level in enumerate(levels):
            is_there, dirty = level.touch(address, tensor, write)
            if dirty is not None:
                _write_back(levels, k, dirty)
            if is_there:
                break
    return CacheReport(tuple(level.report(names) for level in levels))


def _write_back(levels: Sequence[_Level], from_level: int, line: int) -> None:
    levels[from_level].written_back += 1
    address = line * levels[from_level].cache.line_bytes
    for level in levels[from_level + 1 :]:
        if level.take_back(address // level.cache.line_bytes):
            return


class _Level:
    """One level: its sets and the fully associative cache beside it, oldest line first; the values
    say whether a line was written.
    """

    def __init__(self, cache: Cache, tensors: int) -> None:
        self.cache, self.written_back = cache, 0
        self._sets: list[OrderedDict[int, bool]] = [OrderedDict() for _ in range(cache.sets)]
        self._whole: OrderedDict[int, bool] = OrderedDict()
        self._seen: set[int] = set()
        self._counts = [[Counts(), Counts()] for _ in range(tensors)]

    def touch(self, address: int, tensor: int, write: bool) -> tuple[bool, int | None]:
        """Whether a line is there, and the written line that left for it."""
        line = address // self.cache.line_bytes
        lines = self._sets[line % len(self._sets)]
        is_there, dirty = _bring(lines, line, write, self.cache.ways)
        is_near, _ = _bring(self._whole, line, write, self.cache.ways * self.cache.sets)
        first = line not in self._seen
        self._seen.add(line)
        more = Counts(1, int(not is_there), int(not is_near), int(first))
        self._counts[tensor][write] += more
        return is_there, dirty

    def take_back(self, line: int) -> bool:
        """Whether a written line from the level before is here; it is written here then."""
        lines = self._sets[line % len(self._sets)]
        if line not in lines:
            return False
        lines[line] = True
        return True

    def report(self, names: Sequence[str]) -> LevelReport:
        streams = tuple(
            Stream(name, write, self._counts[number][write])
            for number, name in enumerate(names)
            for write in (False, True)
        )
        return LevelReport(self.cache, streams, self.written_back)


def _bring(
    lines: OrderedDict[int, bool], line: int, write: bool, room: int
) -> tuple[bool, int | None]:
    """Make a line the newest: whether it was there, and the written line that it drove out."""
    is_there = line in lines
    lines[line] = lines.pop(line, False) or write
    if len(lines) <= room:
        return is_there, None
    oldest, was_written = lines.popitem(last=False)
    return is_there, oldest if was_written else None
