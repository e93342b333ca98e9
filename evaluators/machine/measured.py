"""A machine's figures, and the least time that they allow.

They are upper bounds: a kernel faster than they allow is called impossible, so wherever there is
doubt, the figure that allows more is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernelwright.env.types import CacheState

MEMORY = "memory"
# How much more than was measured all CPUs together may reach. Where a host puts a virtual machine's
# CPUs, and who else is there, moved the memory's total by a factor of 1.7, for minutes at a time.
UNSEEN = 2.0


def _refuse(condition: bool, message: str) -> None:
    if condition:
        raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Throughput:
    """How much a second of one kind: one CPU alone, and all of them at once."""

    name: str
    one: float
    all: float

    def __post_init__(self) -> None:
        for value in (self.one, self.all):
            _refuse(not 0 < value < math.inf, f"{self.name}: expected a rate > 0, found {value}")

    def of(self, threads: int) -> float:
        """The most that so many threads do together: that many times one, and no more than `UNSEEN`
        times all.
        """
        return min(threads * self.one, UNSEEN * max(self.one, self.all))


@dataclass(frozen=True, slots=True)
class Cache:
    """A level of data cache: bytes of one, and how many of them the CPUs have."""

    level: str
    size_bytes: int
    count: int

    def __post_init__(self) -> None:
        for value in (self.size_bytes, self.count):
            _refuse(value < 1, f"{self.level}: expected a whole number > 0, found {value}")


@dataclass(frozen=True, slots=True)
class Machine:
    """A CPU as measured; rates are what nothing on it exceeds.

    Attributes:
        name: the CPU's model.
        cpus: how many this process may use, which is how many `Throughput.all` is about.
        vector_bytes: the widest vector that the compiler had.
        clock_hz: dependent adds a second, one a cycle.
        timer_resolution_s: the least step of the monotonic clock.
        caches: data caches, the nearest first; none if the system does not tell.
        fma_flops_per_s: by dtype, multiply-adds alone, each two operations.
        peak_flops_per_s: by dtype, with adds beside them, for which some cores have pipes.
        integer_adds_per_s: by the dtype of the lanes.
        bandwidth_bytes_per_s: by level, the nearest first and `MEMORY` last: bytes read and
            written, in whichever mix of them is fastest.
    """

    name: str
    cpus: int
    vector_bytes: int
    clock_hz: float
    timer_resolution_s: float
    caches: tuple[Cache, ...]
    fma_flops_per_s: tuple[Throughput, ...]
    peak_flops_per_s: tuple[Throughput, ...]
    integer_adds_per_s: tuple[Throughput, ...]
    bandwidth_bytes_per_s: tuple[Throughput, ...]

    def __post_init__(self) -> None:
        figures = ("cpus", "vector_bytes", "clock_hz", "timer_resolution_s")
        for name in figures:
            value = getattr(self, name)
            _refuse(not 0 < value < math.inf, f"{name}: expected a number > 0, found {value}")
        levels = tuple(rate.name for rate in self.bandwidth_bytes_per_s)
        # A nearest level has a rate even where nobody knows how large it is.
        near = tuple(cache.level for cache in self.caches) or levels[:1]
        _refuse(
            len(levels) < 2 or levels != (*near, MEMORY),
            f"bandwidth_bytes_per_s: expected {', '.join((*near, MEMORY))}, found {levels}",
        )
        for name in ("fma_flops_per_s", "peak_flops_per_s", "integer_adds_per_s"):
            _refuse(not getattr(self, name), f"{name}: expected at least one dtype")

    def operations_per_s(self, dtype: str, threads: int = 1) -> float:
        """The most operations a second on values of a NumPy dtype; infinite for one that was not
        measured.

        Whole numbers count as the narrowest ones: a kernel that knows their range may pack them.
        """
        if np.dtype(dtype).kind in "iub":
            return max(rate.of(threads) for rate in self.integer_adds_per_s)
        found = (rate.of(threads) for rate in self.peak_flops_per_s if rate.name == dtype)
        return next(found, math.inf)

    def floor_s(
        self,
        flops: float,
        moved_bytes: float,
        *,
        dtype: str = "float32",
        state: CacheState = CacheState.WARM,
        threads: int = 1,
        working_set: float | None = None,
    ) -> float:
        """The least time in s for so many operations and bytes: a roofline with a roof for each
        level of memory (Williams, Waterman and Patterson, CACM 52(4), 2009, section 3; Ilic, Pratas
        and Sousa, IEEE Computer Architecture Letters 13(1), 2014).

        Args:
            flops: operations.
            moved_bytes: bytes read and written; all of them pass the nearest cache.
            dtype: of the operations.
            state: where the data are at the start. Cold: all different bytes come from memory.
                Warm: each cache holds as many of them as it has room for, and only the others come
                from farther off. So data that do not fit a cache by a little are not held to the
                next one's bandwidth as a whole: half of them may be found there.
            threads: how many compute.
            working_set: different bytes, if fewer than ``moved_bytes``.
        """
        threads = max(1, min(threads, self.cpus))
        least = flops / self.operations_per_s(dtype, threads)
        nearest, *_, memory = self.bandwidth_bytes_per_s
        least = max(least, moved_bytes / nearest.of(threads))
        outside = moved_bytes if working_set is None else min(moved_bytes, working_set)
        if state is CacheState.COLD:
            return max(least, outside / memory.of(threads))
        if not self.caches:
            return least
        for cache, rate in zip(self.caches, self.bandwidth_bytes_per_s[1:], strict=True):
            outside -= cache.size_bytes * min(threads, cache.count)
            least = max(least, outside / rate.of(threads))
        return least

    def to_json(self) -> dict[str, Any]:
        """The figures as ``kernelwright machine --json`` prints them; `docs/machine.md` has the
        keys.
        """

        def by_name(rates: tuple[Throughput, ...]) -> dict[str, dict[str, float]]:
            return {rate.name: {"one": rate.one, "all": rate.all} for rate in rates}

        return {
            "name": self.name,
            "cpus": self.cpus,
            "vector_bytes": self.vector_bytes,
            "clock_hz": self.clock_hz,
            "timer_resolution_s": self.timer_resolution_s,
            "caches": [
                {"level": c.level, "bytes": c.size_bytes, "count": c.count} for c in self.caches
            ],
            "roofline": {
                "fma_flops_per_s": by_name(self.fma_flops_per_s),
                "peak_flops_per_s": by_name(self.peak_flops_per_s),
                "integer_adds_per_s": by_name(self.integer_adds_per_s),
                "bandwidth_bytes_per_s": by_name(self.bandwidth_bytes_per_s),
            },
        }

    def merged(self, other: Machine) -> Machine:
        """The greatest of each rate of two measurements of one machine."""
        return replace(
            self,
            clock_hz=max(self.clock_hz, other.clock_hz),
            timer_resolution_s=min(self.timer_resolution_s, other.timer_resolution_s),
            fma_flops_per_s=greatest((*self.fma_flops_per_s, *other.fma_flops_per_s)),
            peak_flops_per_s=greatest((*self.peak_flops_per_s, *other.peak_flops_per_s)),
            integer_adds_per_s=greatest((*self.integer_adds_per_s, *other.integer_adds_per_s)),
            bandwidth_bytes_per_s=greatest(
                (*self.bandwidth_bytes_per_s, *other.bandwidth_bytes_per_s)
            ),
        )


def greatest(rates: Iterable[Throughput]) -> tuple[Throughput, ...]:
    """One rate for each name, in the order of their first, with the greatest of each figure."""
    out: dict[str, Throughput] = {}
    for rate in rates:
        known = out.setdefault(rate.name, rate)
        out[rate.name] = Throughput(rate.name, max(known.one, rate.one), max(known.all, rate.all))
    return tuple(out.values())
