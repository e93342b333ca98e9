"""Trials of like keys, for searches that start from what is known of other shapes and devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelwright.env.types import Language, Payload, Problem, Workload
from kernelwright.search.tuning.cache import TuningCache
from kernelwright.search.tuning.key import TuningKey, extents_of, octaves, spans, tensors_of

# What another device and another compiler are worth in doublings of an extent: configurations are
# carried over from a shape a few doublings away sooner than from another machine.
OTHER_DEVICE, OTHER_TOOLCHAIN = 4.0, 1.0


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A trial of a like key, as plain data.

    ``log2_speedup`` is over the baseline of its own campaign, None for one that failed;
    ``distance`` 0 for the same extents on the same device by the same compiler.
    """

    payload: Payload
    language: Language
    log2_speedup: float | None
    extents: dict[str, int | str]
    device: str
    distance: float


def near(
    problem: Problem,
    workload: Workload,
    device: str,
    *,
    folder: Path,
    toolchain: str | None = None,
    failed: bool = False,
) -> Iterator[Neighbour]:
    """Trials of the same problem at other shapes or on other devices, the nearest key first and
    within a key the fastest first; each configuration of a key once. Keys are read as they are come
    to; one that cannot be read has no trials.

    Args:
        problem: whose trials; another version of it is another problem.
        workload: the shape that they are wanted for.
        device: the device that they are wanted for, as keys name it.
        folder: of the tuning cache.
        toolchain: the compiler that they are wanted for; any is as near unless given.
        failed: whether those that failed are told, too, after those that ran.
    """
    cache, wanted = TuningCache(folder), spans(workload)
    keys: list[tuple[float, str, TuningKey]] = []
    for key in cache.known(problem.identity):
        alike = len(key.workloads) == 1 and key.tensors == tensors_of(problem)
        apart = octaves(wanted, key.workloads[0]) if alike else None
        if apart is not None:
            apart += 0 if key.device == device else OTHER_DEVICE
            apart += 0 if toolchain in (None, key.toolchain) else OTHER_TOOLCHAIN
            keys.append((apart, key.digest, key))
    for distance, _, key in sorted(keys, key=lambda entry: entry[:2]):
        yield from _of(cache, key, distance, failed=failed)


def _of(cache: TuningCache, key: TuningKey, distance: float, *, failed: bool) -> list[Neighbour]:
    try:
        records = cache.read(key).trials
    except OSError:
        return []
    speedups = {
        record.means: (None if record.failure else record.objective, record.candidate)
        for record in records
    }
    chosen = [(s, candidate) for s, candidate in speedups.values() if failed or s is not None]
    chosen.sort(key=lambda pair: (pair[0] is None, -(pair[0] or 0.0), pair[1].key))
    extents = extents_of(key.workloads[0])
    return [
        Neighbour(
            candidate.payload, candidate.language, speedup, dict(extents), key.device, distance
        )
        for speedup, candidate in chosen
    ]
