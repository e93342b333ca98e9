"""What other campaigns found: the best programs of runs' folders and of a tuning cache, as
passages.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from kernelwright.agents.context.library import MOST_TITLE, Passage, bounded
from kernelwright.agents.context.safe import one_line
from kernelwright.env.types import Candidate, ExtentRange, Language, Problem
from kernelwright.search.store import DATABASE, SqliteStore, StoreError
from kernelwright.search.summary import best_trial, claimed, shown
from kernelwright.search.tuning.key import split_machine
from kernelwright.search.tuning.near import OTHER_DEVICE, near

# Of one key of a cache no more than this.
BEST_OF_A_KEY = 2
# Trials of a run that are read besides those confirmed.
LEADING = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What winners are wanted for; ``language`` None for any."""

    problem: Problem
    device: str
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class Winner:
    """What a search found: ``shape`` as it names its workload; ``speedup`` is over its own
    baseline, confirmed where it was; ``apart`` as a passage has it.
    """

    source: str
    problem: str
    shape: str
    device: str
    candidate: Candidate
    speedup: float
    apart: float | None

    @property
    def order(self) -> tuple[bool, float, float]:
        """By nearness in whole doublings, then by speedup."""
        far = self.apart is None
        return far, 0.0 if self.apart is None else math.ceil(self.apart), -self.speedup

    def passage(self) -> Passage:
        """It as it is shown."""
        title = (
            f"{self.problem} {self.candidate.language.value} {self.shape}: "
            f"{self.speedup:.4g}x on {self.device}"
        )
        return Passage(
            self.source, one_line(title, MOST_TITLE), program_text(self.candidate), self.apart
        )


def by_worth(winners: Iterable[Winner]) -> list[Passage]:
    """Winners as passages, the nearest and of equally near the fastest first; equals stay in
    order.
    """
    return [winner.passage() for winner in sorted(winners, key=lambda winner: winner.order)]


@lru_cache(maxsize=4096)
def program_text(candidate: Candidate) -> str:
    """A program as a passage has it."""
    seen = shown(candidate)
    text = seen if isinstance(seen, str) else json.dumps(seen)
    return bounded(text or "# no directive: the loops as they are written")


def of_runs(
    folders: Iterable[Path], wanted: Wanted | None = None, *, but: Path | None = None
) -> Iterator[Winner]:
    """The winner of each run in some folders that beat its baseline, in the order of names; a
    folder that holds no run of its own may hold some. What cannot be read is passed over, and so is
    ``but``.
    """
    for folder in folders:
        inside = [folder] if (folder / DATABASE).is_file() else sorted(folder.glob("*/"))
        for each in inside:
            if but is None or each.resolve() != but.resolve():
                yield from _winner(each, wanted)


def _apart(
    wanted: Wanted | None, name: str, label: str, device: str, language: Language
) -> float | None:
    """How far a winner is from what is wanted, in doublings of its extents."""
    if wanted is None or name != wanted.problem.name:
        return None
    if wanted.language not in (None, language):
        return None
    own = [e for _, e in wanted.problem.workloads[0].extents if isinstance(e, int)]
    sizes = [int(size) for size in re.findall(r"\d+", label)]
    if len(own) != len(sizes) or min(sizes, default=0) < 1:
        return None
    octaves = sum(abs(math.log2(a / b)) for a, b in zip(sizes, own, strict=True))
    return octaves + (0.0 if device == wanted.device else OTHER_DEVICE)


def _winner(folder: Path, wanted: Wanted | None) -> Iterator[Winner]:
    try:
        with SqliteStore(folder / DATABASE, readonly=True) as store:
            meta, best = store.meta(), best_trial(store.leading(LEADING))
            if best is None:  # of the fastest none held its ground
                best = best_trial(store.trials())
    except StoreError:
        return
    if best is None or best.measured is None:
        return
    interval = claimed(best)
    speedup = interval.estimate if interval else _speedup(best.objective)
    if speedup <= 1:
        return  # nothing was gained
    measurement = best.measured.measurements[0]
    device, _ = split_machine(meta.get("machine") or measurement.machine)
    name, label = _problem_of(meta.get("config", "")), measurement.workload
    apart = _apart(wanted, name, label, device, best.candidate.language)
    yield Winner("run", name, label, device, best.candidate, speedup, apart)


def _speedup(height: float | None) -> float:
    return float(2.0 ** min(max(height or 0.0, -60.0), 60.0))


def _problem_of(config: str) -> str:
    """The name of the problem in a run's configuration; empty if that cannot be read."""
    try:
        found = json.loads(config)["problem"]["name"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return str(found)


def of_cache(wanted: Wanted, folder: Path, most: int) -> Iterator[Winner]:
    """The best configurations that a tuning cache holds of a problem at other shapes and on other
    devices, the nearest first. Those of the same shape on the same device are none of them: a
    search starts from these, where it is to (`cache.near`).
    """
    problem, device = wanted.problem, wanted.device
    workload = problem.workloads[0]
    if len(problem.workloads) > 1 or any(isinstance(e, ExtentRange) for _, e in workload.extents):
        return
    found, own = 0, dict(workload.extents)
    known = near(problem, workload, device, folder=folder)
    for (device_, extents), alike in groupby(known, lambda n: (n.device, tuple(n.extents.items()))):
        if device_ == device and dict(extents) == own:
            continue
        shape = ", ".join(f"{name}={extent}" for name, extent in extents)
        for place, each in enumerate(alike):
            speedup = _speedup(each.log2_speedup)
            if place >= BEST_OF_A_KEY or found >= most or speedup <= 1:
                continue
            found += 1
            candidate = Candidate(each.language, each.payload)
            is_ours = wanted.language in (None, each.language)
            apart = each.distance if is_ours else None
            yield Winner("cache", problem.name, shape, device_, candidate, speedup, apart)
