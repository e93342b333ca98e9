"""Caches by their geometry, and what a stream of accesses does to each: hits, and misses by their
cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cache:
    """One level: its size and associativity. Lines that were least recently used leave first."""

    size_bytes: int
    ways: int
    line_bytes: int

    @property
    def sets(self) -> int:
        """How many sets its lines fall into."""
        return max(1, self.size_bytes // (self.ways * self.line_bytes))

    @classmethod
    def fully_associative(cls, size_bytes: int, line_bytes: int) -> Cache:
        """A cache of one set."""
        return cls(size_bytes, max(1, size_bytes // line_bytes), line_bytes)


MAX_LEVELS = 8


def check_caches(caches: Sequence[Cache]) -> tuple[Cache, ...]:
    """The levels, from the core outwards, if they can be simulated.

    Raises:
        ValueError: if there are none or more than `MAX_LEVELS`, or one is not made of whole sets of
            lines whose size is a power of two.
    """
    if not 1 <= len(caches) <= MAX_LEVELS:
        raise ValueError(f"expected 1 to {MAX_LEVELS} caches, found {len(caches)}")
    for level, cache in enumerate(caches, 1):
        line, ways, size = cache.line_bytes, cache.ways, cache.size_bytes
        if line < 2 or line & (line - 1):
            raise ValueError(f"cache {level}: expected a line of 2^n bytes, found {line}")
        if ways < 1 or size < 1 or size % (ways * line):
            expected = f"whole sets of {ways} lines of {line} bytes"
            raise ValueError(f"cache {level}: expected {expected}, found {size} bytes")
        if size // line >= 1 << 28:
            raise ValueError(f"cache {level}: expected less than 2^28 lines, found {size} bytes")
    return tuple(caches)


@dataclass(frozen=True, slots=True)
class Counts:
    """Accesses and their misses by cause (Hill and Smith, Evaluating associativity in CPU caches,
    IEEE Transactions on Computers 1989).

    ``compulsory`` misses are of lines never touched before. ``associative`` are the misses of a
    fully associative cache of the same size; what it misses beyond the compulsory is for want of
    ``capacity``, and what the cache misses beyond that is for ``conflict``. Now and then a set
    keeps what the whole would have dropped: ``conflict`` may be negative.
    """

    accesses: int = 0
    misses: int = 0
    associative: int = 0
    compulsory: int = 0

    @property
    def hits(self) -> int:
        """Accesses that found their line."""
        return self.accesses - self.misses

    @property
    def capacity(self) -> int:
        """Misses that only a larger cache would avoid."""
        return self.associative - self.compulsory

    @property
    def conflict(self) -> int:
        """Misses that a fully associative cache would avoid."""
        return self.misses - self.associative

    @property
    def ratio(self) -> float:
        """Misses an access; 0 where there is none."""
        return self.misses / self.accesses if self.accesses else 0.0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.accesses + other.accesses,
            self.misses + other.misses,
            self.associative + other.associative,
            self.compulsory + other.compulsory,
        )


@dataclass(frozen=True, slots=True)
class Stream:
    """The accesses of one kind to one tensor, and what became of them."""

    tensor: str
    writes: bool
    counts: Counts


@dataclass(frozen=True, slots=True)
class LevelReport:
    """What one level saw: its counts by tensor and kind of access, and how many of the lines that
    left it had been written and went back to the next one.
    """

    cache: Cache
    streams: tuple[Stream, ...]
    written_back: int

    @property
    def total(self) -> Counts:
        """All accesses."""
        return _total(self.streams)

    @property
    def reads(self) -> Counts:
        """The reads alone."""
        return _total(s for s in self.streams if not s.writes)

    @property
    def writes(self) -> Counts:
        """The writes alone."""
        return _total(s for s in self.streams if s.writes)

    def of(self, tensor: str) -> Counts:
        """The accesses to one tensor.

        Raises:
            KeyError: if there is none of that name; it lists those that there are.
        """
        known = dict.fromkeys(s.tensor for s in self.streams)
        if tensor not in known:
            raise KeyError(f"expected one of {', '.join(known)}, found {tensor!r}")
        return _total(s for s in self.streams if s.tensor == tensor)


def _total(streams: Iterable[Stream]) -> Counts:
    return sum((stream.counts for stream in streams), Counts())


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What every level of a hierarchy saw, from the core outwards: the misses of one are the
    accesses of the next.
    """

    levels: tuple[LevelReport, ...]

    @property
    def first(self) -> LevelReport:
        """The level next to the core."""
        return self.levels[0]
