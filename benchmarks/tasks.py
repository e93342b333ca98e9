"""Many shapes at once: the 96 products of a service under one budget, by scheduler, with and
without sharing, beside an even split by the same driver.

Prints a table with targets; exits with 1 if one falls short. ``--only GROUP`` prints a part. All on
the analytic model with 2% noise, where the truth is known; a measurement counts as 3 s.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one: statistics.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import statistics
from collections.abc import Iterator
from functools import cache

from table import Row, print_groups

from kernelwright.configs.load import read_document
from kernelwright.configs.tasks import read_tasks
from kernelwright.search.efficiency import median_interval
from kernelwright.search.laboratory.tasks import Played, Truth, play, with_hopeless
from kernelwright.search.store import MemoryStore
from kernelwright.search.tasks.campaign import Task
from kernelwright.search.tasks.decay import Decay
from kernelwright.search.tasks.gradient import Gradient
from kernelwright.search.tasks.round_robin import RoundRobin
from kernelwright.search.tasks.standing import Scheduler

CONFIG, SEEDS, TRIALS, SECONDS = "serving_96", 10, 96 * 32, 3
MARKS = (576, 1152, 1536, 3072)
# So near to the best, a tenth of the noise, there is nothing left to give out.
FOUND = 0.002
# The lecture's arithmetic: 96 shapes x 256 measurements at random, x 48 guided.
RANDOM_H, GUIDED_H = 96 * 256 * SECONDS / 3600, 96 * 48 * SECONDS / 3600
SCHEDULERS: dict[str, Scheduler] = {
    "even split": RoundRobin(),
    "decay": Decay(),
    "gradient": Gradient(),
}


@cache
def tasks(seed: int) -> list[Task]:
    """The tasks of the shipped campaign with another seed."""
    found = read_tasks(*read_document(CONFIG, [f"seed={seed}"]))
    out = []
    for member in found.members:
        assert member.built is not None
        workload, target = member.built.problem.workloads[0], member.built.target
        place, floor_ns = member.place, target.floor_ns(workload)
        plan = member.built.plan
        out.append(Task(member.name, member.weight, plan, MemoryStore(), place, floor_ns))
    return out


@cache
def truth() -> Truth:
    """The best true times, which no seed moves."""
    return Truth.of(tasks(0))


@cache
def played(name: str, share: bool) -> list[Played]:
    """A campaign a seed."""
    print(f"{name}, {'with' if share else 'without'} sharing", file=sys.stderr)
    scheduler = SCHEDULERS[name]
    return [
        play(tasks(seed), truth(), scheduler=scheduler, trials=TRIALS, share=share)
        for seed in range(SEEDS)
    ]


def excess(runs: list[Played], trials: int) -> float:
    """The geometric mean over seeds of the weighted total over the best, after so many trials."""
    return statistics.geometric_mean(run.excess[trials - 1] for run in runs)


def totals() -> Iterator[Row]:
    """The weighted total against trials spent."""
    for share in (False, True):
        even = [excess(played("even split", share), n) for n in MARKS]
        for name in SCHEDULERS:
            found = [excess(played(name, share), n) for n in MARKS]
            what = f"weighted total / best after {MARKS} trials, {name}, "
            what += "sharing" if share else "no sharing"
            met = all(a <= max(b, 1 + FOUND) for a, b in zip(found, even, strict=True))
            better = [
                sum(a.excess[n - 1] <= b.excess[n - 1] for a, b in _pairs(name, share))
                for n in MARKS
            ]
            got = ", ".join(f"{value:.3f}" for value in found)
            if name == "even split":
                yield what, "-", got, None
            else:
                yield (
                    what,
                    f"at most the even split's, or {1 + FOUND}",
                    f"{got}; no worse in {better} of {SEEDS}",
                    (met if name == "gradient" else None),
                )


def _pairs(name: str, share: bool) -> Iterator[tuple[Played, Played]]:
    return zip(played(name, share), played("even split", share), strict=True)


def hours() -> Iterator[Row]:
    """Trials until within 5%, and what they would take."""
    for share in (False, True):
        for name in SCHEDULERS:
            runs = played(name, share)
            kind = f"{name}, {'sharing' if share else 'no sharing'}"
            met = name == "gradient" and share
            total = _hours([run.trials_to(0.05) for run in runs])
            target = f"below {GUIDED_H:.2f} h (guided, a shape each); random {RANDOM_H:.1f} h"
            hours_, text = total
            yield (
                f"weighted total stays within 5%, {kind}",
                target,
                text,
                (hours_ < GUIDED_H if met else None),
            )
            yield (
                f"every task was within 5% once, {kind}",
                "-",
                _hours([run.trials_to_all for run in runs])[1],
                None,
            )


def _hours(counts: list[int | None]) -> tuple[float, str]:
    median = median_interval(counts)
    missing = sum(count is None for count in counts)
    if missing > len(counts) / 2:
        return float("inf"), f"beyond {TRIALS:,} trials in {missing} of {len(counts)}"
    hours_ = median.value * SECONDS / 3600
    text = (
        f"{median.value:,.0f} trials (95% {median.low:,.0f} to {median.high:,.0f}), {hours_:.2f} h"
    )
    return hours_, text + (f"; {missing} of {len(counts)} never" if missing else "")


def hopeless() -> Iterator[Row]:
    """One heavy task in which nothing ever passes."""
    number = max(range(96), key=lambda i: tasks(0)[i].weight * truth().best_ns[i])
    trials = 1152
    for name in SCHEDULERS:
        eaten, others, least = [], [], []
        for seed in range(SEEDS):
            given = with_hopeless(tasks(seed), number)
            scheduler = SCHEDULERS[name]
            run = play(given, truth(), scheduler=scheduler, trials=trials, share=True)
            eaten.append(run.counts[number])
            others.append(run.excess[-1])
            least.append(min(run.counts))
        what = f"{tasks(0)[number].name} hopeless, {trials} trials, {name}"
        got = f"it had {statistics.mean(eaten):.1f} trials ({max(eaten)} at most)"
        got += f", the others are at {statistics.geometric_mean(others):.3f}"
        got += f", nobody had fewer than {min(least)}"
        met = max(eaten) <= 2 * trials / 96 and min(least) >= 4
        yield what, "at most twice its even part", got, met if name == "gradient" else None


GROUPS = {"totals": totals, "hours": hours, "hopeless": hopeless}

if __name__ == "__main__":
    print_groups(GROUPS, __doc__ or "")
