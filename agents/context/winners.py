"""What other campaigns found: the best programs of runs' folders and of a tuning cache, as
passages.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from kernelwright.agents.context.library import Passage, passage
from kernelwright.env.types import Candidate, ExtentRange, Problem
from kernelwright.search.store import DATABASE, SqliteStore, StoreError, is_begun
from kernelwright.search.summary import best_trial, shown
from kernelwright.search.tuning.near import near

# Of one key of a cache no more than this.
BEST_OF_A_KEY = 2


def of_runs(
    folders: Iterable[Path], problem: Problem | None = None, *, but: Path | None = None
) -> list[Passage]:
    """The winner of each run in some folders that beat its baseline; a folder that holds no run of
    its own may hold some. What cannot be read is passed over, and so is ``but``.

    Those of ``problem`` come first, the nearest sizes before others; equals in the order of names.
    """
    found: list[tuple[float, Passage]] = []
    for folder in folders:
        inside = [folder] if (folder / DATABASE).is_file() else sorted(folder.glob("*/"))
        for each in inside:
            if but is not None and each.resolve() == but.resolve():
                continue
            found += _winner(each, problem)
    return [told for _, told in sorted(found, key=lambda pair: pair[0])]


def _octaves(name: str, label: str, problem: Problem | None) -> float:
    """How far a workload is from a problem's, in doublings of its extents; infinite of another
    problem.
    """
    if problem is None or name != problem.name:
        return math.inf
    own = [e for _, e in problem.workloads[0].extents if isinstance(e, int)]
    sizes = [int(size) for size in re.findall(r"\d+", label)]
    if len(own) != len(sizes) or min(sizes, default=0) < 1:
        return math.inf
    return sum(abs(math.log2(a / b)) for a, b in zip(sizes, own, strict=True))


def _winner(folder: Path, problem: Problem | None) -> Iterator[tuple[float, Passage]]:
    try:
        if not is_begun(folder / DATABASE):
            return
        with SqliteStore(folder / DATABASE, readonly=True) as store:
            meta, best = store.meta(), best_trial(store.trials())
    except StoreError:
        return
    if best is None or best.measured is None or (best.objective or 0.0) <= 0:
        return  # nothing was gained
    machine = meta.get("machine") or best.measured.measurements[0].machine
    name, label = _problem_of(meta.get("config", "")), best.measured.measurements[0].workload
    told = _passage("run", name, label, machine, (best.candidate, best.objective or 0.0))
    yield _octaves(name, label, problem), told


def _problem_of(config: str) -> str:
    """The name of the problem in a run's configuration; empty if that cannot be read."""
    try:
        found = json.loads(config)["problem"]["name"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return str(found)


def of_cache(problem: Problem, device: str, folder: Path, most: int) -> Iterator[Passage]:
    """The best configurations that a tuning cache holds of this problem at other shapes and on
    other devices, the nearest first.
    """
    workload = problem.workloads[0]
    if len(problem.workloads) > 1 or any(isinstance(e, ExtentRange) for _, e in workload.extents):
        return
    found = 0
    known = near(problem, workload, device, folder=folder)
    for (device_, extents), alike in groupby(known, lambda n: (n.device, tuple(n.extents.items()))):
        for place, each in enumerate(alike):
            if place >= BEST_OF_A_KEY or found >= most or (each.log2_speedup or 0.0) <= 0:
                continue
            found += 1
            shape = ", ".join(f"{name}={extent}" for name, extent in extents)
            pair = Candidate(each.language, each.payload), each.log2_speedup or 0.0
            yield _passage("cache", problem.name, shape, device_, pair)


def _passage(
    source: str, problem: str, shape: str, machine: str, found: tuple[Candidate, float]
) -> Passage:
    candidate, height = found
    seen = shown(candidate)
    text = seen if isinstance(seen, str) else json.dumps(seen)
    speedup = 2.0 ** min(max(height, -60.0), 60.0)
    title = f"{problem} {candidate.language.value} {shape}: {speedup:.4g}x on {machine}"
    return passage(source, title, text or "# no directive: the loops as they are written")
