"""Bytes that cross each boundary of a cache hierarchy, from the footprints of loop sub-nests.

The loop-nest cache model of Wolf and Lam (A data locality optimizing algorithm, PLDI 1991) and
McKinley, Carr and Tseng (Improving data locality with loop transformations, TOPLAS 1996), with
lines as the unit:

1. the footprint of a sub-nest is the number of distinct lines that its accesses touch; strided
accesses touch whole lines;
2. what one iteration of a loop touches is still there in the next one if the footprint of one
iteration fits the cache. So an access misses once for every distinct line under the outermost loop
whose iterations fit, each time that loop is entered;
3. lines at a pitch that is a multiple of a large power of two share few sets; where they need more
ways than the cache has, they do not stay however small they are (Lam, Rothberg and Wolf, The cache
performance and optimizations of blocked algorithms, ASPLOS 1991).

Caches start cold: what is touched comes from memory once. How lines follow one another is told
beside (`strides`): prefetchers fetch neighbours before they are asked for, and nothing else.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelwright.env.compiler.ir.queries import mentions
from kernelwright.env.compiler.machine.affine import Span, Trips, span
from kernelwright.env.compiler.machine.hierarchy import Cache
from kernelwright.env.compiler.machine.nest import Access, Array, Nest
from kernelwright.env.compiler.machine.strides import Strides


@dataclass(frozen=True, slots=True)
class Crossing:
    """Lines that cross a border of the hierarchy, and how many of them no prefetcher expects."""

    lines: float = 0.0
    scattered: float = 0.0

    def and_more(self, lines: float, *, is_scattered: bool) -> Crossing:
        """These and others."""
        scattered = self.scattered + (lines if is_scattered else 0.0)
        return Crossing(self.lines + lines, scattered)


@dataclass(frozen=True, slots=True)
class Footprint:
    """The distinct lines of an array that a sub-nest touches, the sets they fall into, and whether
    the loops reach over the array's end (so that a guard keeps them from it).
    """

    lines: float
    sets: float
    clipped: bool = False

    def crowds(self, cache: Cache) -> bool:
        """Whether the lines fall into few sets only."""
        return self.sets < min(self.lines, cache.sets)


def footprint(array: Array, spans: tuple[Span, ...], cache: Cache) -> Footprint:
    """The footprint of a box of elements, one span an axis."""
    line, sets = cache.line_bytes, cache.sets
    run_bytes = float(array.itemsize)  # of what lies side by side so far
    lines, covered, sets_used = 1.0, 1.0, 1.0
    is_whole, pitch = True, float(array.itemsize)
    for axis in range(len(spans) - 1, -1, -1):
        each, size = spans[axis], array.shape[axis]
        extent = min(each.high - each.low + 1, size)
        count = min(each.count, extent)
        if is_whole:
            inner_bytes, run_bytes = run_bytes, pitch * extent
            lines = max(1.0, min(count * max(1.0, pitch / line), math.ceil(run_bytes / line)))
            covered = min(lines, sets)
            if pitch * each.step > max(line, inner_bytes):
                covered = min(lines, _spread(pitch * each.step, cache))
            is_whole = extent == size and count == extent
        else:
            stretch = math.ceil((pitch * (extent - 1) + run_bytes) / line)
            lines = max(1.0, min(lines * count, stretch))
            sets_used *= min(count, _spread(pitch * each.step, cache))
        pitch *= size
    clipped = any(each.high >= size for each, size in zip(spans, array.shape, strict=True))
    return Footprint(lines, min(lines, float(sets), covered * sets_used), clipped)


def _spread(stride_bytes: float, cache: Cache) -> float:
    """How many sets a walk with this stride visits before it comes back."""
    period = cache.sets * cache.line_bytes
    return period / math.gcd(max(1, round(stride_bytes)), period)


class _Level:
    """One cache level's view of a nest: which sub-nests stay in it."""

    def __init__(self, nest: Nest, cache: Cache) -> None:
        self._nest, self._cache = nest, cache
        self._inside: dict[tuple[str, ...], list[Access]] = defaultdict(list)
        for access in nest.accesses:
            for depth in range(len(access.loops) + 1):
                self._inside[access.loops[:depth]].append(access)
        self._stays = {path: self._what_stays(path) for path in self._inside}

    def _what_stays(self, path: tuple[str, ...]) -> tuple[bool, frozenset[str]]:
        """Whether one iteration of a path's last loop fits, and the arrays that conflict in it."""
        by_array: dict[str, list[Access]] = defaultdict(list)
        for access in self._inside[path]:
            if not self._in_register(access, path):
                by_array[access.array.name].append(access)
        prints = {
            name: self.lines_of(found, len(path), moving_last=False)
            for name, found in by_array.items()
        }
        total = sum(each.lines for each in prints.values()) * self._cache.line_bytes
        crowding = {name: p for name, p in prints.items() if p.crowds(self._cache)}
        needed = sum(p.lines / p.sets for p in crowding.values())
        conflicting = frozenset(crowding) if needed > self._cache.ways else frozenset()
        return total <= self._cache.size_bytes, conflicting

    def _in_register(self, access: Access, path: tuple[str, ...]) -> bool:
        """Whether an access stays in registers while the last loop of a path runs: a sum does."""
        return (
            bool(path)
            and path[-1] not in self._nest.written_out
            and self._nest.written_out.issuperset(access.loops[len(path) :])
            and not any(mentions(index, *path[-1:]) for index in access.indices)
        )

    def lines_of(self, accesses: list[Access], depth: int, *, moving_last: bool) -> Footprint:
        """The footprint of accesses to one array while the loops inside ``depth`` run, and with
        ``moving_last`` the loop at that depth too.
        """
        array, cache = accesses[0].array, self._cache
        hull: tuple[Span, ...] | None = None
        apart = 0.0
        seen: set[tuple[Span, ...]] = set()
        widest = Footprint(0.0, 1.0)
        for access in accesses:
            first = max(0, depth - 1) if moving_last else depth
            moving: Trips = {v: self._nest.trips[v] for v in access.loops[first:]}
            spans = tuple(
                span(index, moving, size, self._nest.ordered)
                for index, size in zip(access.indices, array.shape, strict=True)
            )
            if spans in seen:
                continue
            seen.add(spans)
            mine = footprint(array, spans, cache)
            apart += mine.lines
            widest = max(widest, mine, key=lambda p: p.lines)
            hull = spans if hull is None else tuple(map(Span.hull, hull, spans))
        if hull is None or len(seen) == 1:
            return widest
        whole = footprint(array, hull, cache)
        return whole if whole.lines <= apart else Footprint(apart, widest.sets, whole.clipped)

    def home(self, access: Access) -> tuple[str, ...]:
        """The path of the outermost loop whose iterations keep what this access touches."""
        for depth in range(len(access.loops) + 1):
            fits, conflicting = self._stays[access.loops[:depth]]
            if fits and access.array.name not in conflicting:
                return access.loops[:depth]
        return access.loops

    def touched_lines(self) -> dict[str, float]:
        """Lines that come to the level by array, whether they are read or written."""
        groups: dict[tuple[tuple[str, ...], str], list[Access]] = defaultdict(list)
        for access in self._nest.accesses:
            groups[self.home(access), access.array.name].append(access)
        out: dict[str, float] = defaultdict(float)
        for (path, name), found in groups.items():
            entered = math.prod(self._nest.trips[v] for v in path[:-1])
            touched = self.lines_of(found, len(path), moving_last=True)
            share = 1.0 if touched.clipped else max(a.share for a in found)
            out[name] += touched.lines * entered * share
        return dict(out)

    def missing_lines(self, strides: Strides) -> list[Crossing]:
        """Lines that come from the next level and lines that go there, by phase."""
        groups: dict[tuple[tuple[str, ...], str], list[Access]] = defaultdict(list)
        for access in self._nest.accesses:
            groups[self.home(access), access.array.name].append(access)
        out = [Crossing() for _ in self._nest.phases]
        for (path, _), found in groups.items():
            entered = math.prod(self._nest.trips[v] for v in path[:-1])
            # While everything fits, what the procedure wrote itself need not be fetched.
            own = not path and not found[0].array.is_input
            reads = [a for a in found if not (a.writes or own)]
            for chosen in filter(None, (reads, [a for a in found if a.writes])):
                touched = self.lines_of(chosen, len(path), moving_last=True)
                share = 1.0 if touched.clipped else max(a.share for a in chosen)
                lines = touched.lines * entered * share
                phase = min(a.phase for a in chosen)
                out[phase] = out[phase].and_more(
                    lines, is_scattered=strides.are_scattered(chosen, len(path))
                )
        return out


def lines_by_array(nest: Nest, accesses: Sequence[Access], cache: Cache) -> dict[str, float]:
    """Lines that some accesses miss in a cache, by array: read, written or both, once each."""
    return _Level(replace(nest, accesses=tuple(accesses)), cache).touched_lines()


def crossings(nest: Nest, caches: Sequence[Cache]) -> list[list[Crossing]]:
    """What crosses the border between each cache and the next level, both ways, by phase."""
    strides = Strides(nest)
    return [_Level(nest, cache).missing_lines(strides) for cache in caches]
