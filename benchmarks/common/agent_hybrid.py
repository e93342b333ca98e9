"""Rows of the table of agents: what a model's seeds are worth to the default driver, on recorded
GEMMs of an H200, in configurations, seconds and quality.

A campaign's seconds are the recorded ones of its configurations (compiler and samples) and the
virtual ones of the model, one after the other.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import proposers
from table import Row

from kernelwright.configs import api
from kernelwright.configs.build import Built, build
from kernelwright.configs.load import read_config
from kernelwright.search.campaign import Campaign
from kernelwright.search.efficiency import Trajectory, best_true_ns, trajectory
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import MODEL_CALL, Event, Trial

SHAPES = ("4096x4096x4096", "2048x14336x4096", "16x14336x4096", "512x512x16384")
SEEDS, TRIALS, BATCH = 40, 64, 4
BUDGETS = (16, 32, TRIALS)
WIDTHS = (0.05, 0.02)
WORSE = 1.02
ALONE = "alone"
PERSONA = "frontier"  # whose virtual seconds an answer takes
ANCHOR = "printed; others: 10x fewer at 1.009x"
Agents = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """A search: how good its best was, its model's calls, and seconds spent after each trial."""

    quality: Trajectory
    calls: int
    seconds: tuple[float, ...]

    def seconds_to(self, width: float) -> float:
        """Seconds to within a share of the best, infinite if it was not reached."""
        count = self.quality.evaluations_to(width)
        return math.inf if count is None else self.seconds[count - 1]


def searched(shape: str, seed: int, driver: str, agents: Agents | None) -> Run:
    """A campaign on a recording."""
    overrides = [f"seed={seed}", f"budget.trials={TRIALS}", f"batch={BATCH}"]
    overrides.append(f"driver={{name: {driver}}}")
    if agents is not None:
        overrides.append(f"agents={json.dumps(agents)}")
    built = build(read_config(f"h200_{shape}", overrides))
    store = MemoryStore()
    Campaign(built.plan, store, until=lambda trial: trial.number + 1 >= TRIALS).run()
    trials, events = store.trials(), store.events()
    calls = [event for event in events if event.kind == MODEL_CALL]
    found = trajectory(trials, built.target, least_ns(shape))
    return Run(found, len(calls), _seconds(trials, calls))


def _seconds(trials: list[Trial], calls: list[Event]) -> tuple[float, ...]:
    """Spent after each trial; a call is paid before the trials of its ask are judged."""
    spent, total, left = [], 0.0, list(calls)
    for trial in trials:
        while left and left[0].ask <= trial.ask:
            total += left.pop(0).data["completion"]["seconds"]
        verdict = trial.verdicts[0][1]
        total += dict(verdict.facts).get("compile_s", 0.0)
        total += sum(sum(m.samples.candidate_ns) for m in verdict.measurements) / 1e9
        spent.append(total)
    return tuple(spent)


@lru_cache
def recorded(shape: str) -> Built:
    return build(read_config(f"h200_{shape}"))


@lru_cache
def least_ns(shape: str) -> float:
    built = recorded(shape)
    members = [built.space.candidate(i) for i in built.space.valid.tolist()]
    return best_true_ns(built.target, members)


def slow(shape: str) -> list[str]:
    """Configurations of the slowest quarter of those that run, as a model writes them."""
    built = recorded(shape)
    members = [built.space.candidate(i) for i in built.space.valid.tolist()]
    times = built.target.true_ns(members)
    order = [int(i) for i in np.argsort(times) if math.isfinite(times[i])]
    picked = order[3 * len(order) // 4 :: 16]
    return [json.dumps(dict(members[i].payload)) for i in picked]


def earlier(folder: Path) -> None:
    """What the default driver found on each shape, as folders of runs."""
    for shape in SHAPES:
        m, n, k = map(int, shape.split("x"))
        api.run(
            {
                "name": shape,
                "problem": {"name": "gemm_gpu", "m": m, "n": n, "k": k},
                "target": {"name": "recorded", "landscape": f"h200_gemm_{shape}"},
                "budget": {"trials": TRIALS},
                "batch": BATCH,
            },
            folder / shape,
        )


def models(shape: str, folder: Path) -> Iterator[tuple[str, Agents]]:
    """Who proposes seeds, by name."""
    for skill in (0.7, 0):
        backend = {"name": "mock", "persona": PERSONA, "skill": skill, "faults": 0}
        yield f"mock of skill {skill}", {"backend": backend}
    others = [str(folder / other) for other in SHAPES if other != shape]
    reader = proposers.backend("Reader", persona=PERSONA, skill=0.7, faults=0)
    yield "reader of other shapes' finds", {"backend": reader, "retrieval": {"runs": others}}
    yield (
        "model that names slow ones",
        {"backend": proposers.backend("Misled", answers=slow(shape))},
    )


def hybrid() -> Iterator[Row]:
    found: dict[str, dict[str, list[Run]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        earlier(Path(folder))
        for shape in SHAPES:
            alone = found.setdefault(ALONE, {})[shape] = _runs(shape, "auto", None)
            for name, agents in models(shape, Path(folder)):
                seeded = found.setdefault(name, {})[shape] = _runs(shape, "hybrid", agents)
                yield _no_worse(f"{shape}, auto with seeds of {name}", seeded, alone)
    alone_ = found.pop(ALONE)
    for name, seeded_ in found.items():
        yield from _gains(f"hybrid, {name}, four GEMMs", seeded_, alone_)


def _runs(shape: str, driver: str, agents: Agents | None) -> list[Run]:
    return [searched(shape, seed, driver, agents) for seed in range(SEEDS)]


def _no_worse(what: str, seeded: list[Run], alone: list[Run]) -> Row:
    """The best after so many evaluations, beside that of the driver alone."""
    both = [[_quality(runs, count) for count in BUDGETS] for runs in (seeded, alone)]
    ratio = both[0][-1] / both[1][-1]
    worst = [max(run.quality.at(TRIALS) for run in runs) for runs in (seeded, alone)]
    pairs = ", ".join(f"{one:.3f} ({other:.3f})" for one, other in zip(*both, strict=True))
    said = f"{pairs}; {ratio:.3f}; worst seed {worst[0]:.3f} ({worst[1]:.3f})"
    row = f"{what}: median best after {', '.join(map(str, BUDGETS))} (unseeded)"
    return row, f"<= {WORSE}x unseeded after {TRIALS}", said, ratio <= WORSE


def _gains(
    what: str, seeded: Mapping[str, list[Run]], alone: Mapping[str, list[Run]]
) -> Iterator[Row]:
    """Configurations, seconds and quality over all shapes, beside those of the driver alone."""
    for width in WIDTHS:
        counts = [
            _mean(_median_count(runs, width) for runs in by.values()) for by in (seeded, alone)
        ]
        said = f"{counts[0]:.1f} (unseeded {counts[1]:.1f}), {counts[0] / counts[1]:.2f}x"
        yield f"{what}: configurations to {width:.0%}", ANCHOR, said, None
        spent = [
            _mean(_median_seconds(runs, width) for runs in by.values()) for by in (seeded, alone)
        ]
        said = f"{spent[0]:.0f} s (unseeded {spent[1]:.0f} s), {spent[0] / spent[1]:.2f}x"
        yield f"{what}: wall time to {width:.0%}, recorded and virtual", "printed", said, None
    ratios = [_quality(seeded[s], TRIALS) / _quality(alone[s], TRIALS) for s in SHAPES]
    calls = statistics.median(run.calls for runs in seeded.values() for run in runs)
    said = f"{_mean(ratios):.3f}x unseeded, {calls:g} calls"
    yield f"{what}: quality after {TRIALS}", ANCHOR, said, None


def _quality(runs: list[Run], evaluations: int) -> float:
    return statistics.median(run.quality.at(evaluations) for run in runs)


def _median_count(runs: list[Run], width: float) -> float:
    """Evaluations to within a share of the best; a median that is none counts as twice the
    budget.
    """
    found = statistics.median(run.quality.evaluations_to(width) or math.inf for run in runs)
    return found if math.isfinite(found) else 2 * TRIALS


def _median_seconds(runs: list[Run], width: float) -> float:
    """The same in seconds."""
    found = statistics.median(run.seconds_to(width) for run in runs)
    whole = statistics.median(run.seconds[-1] for run in runs)
    return found if math.isfinite(found) else 2 * whole


def _mean(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {"hybrid": hybrid}
