"""What drivers cost: CPU time of ask and tell an evaluation, batches of 8, 256 evaluations, on a
knob space of about 20,000 configurations that nobody has looked at before.

Prints a table with targets; exits with 1 if one falls short. ``--only GROUP`` prints a part.
"""

from __future__ import annotations

import sys
from pathlib import Path

# The scripts' own folder has a module of the name of a standard one: this.
sys.path[0] = str(Path(__file__).resolve().parent / "common")

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from table import Row, print_groups

from kernelwright.configs.resolve import resolve
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    CacheState,
    Candidate,
    Evidence,
    Knob,
    Measurement,
    Role,
    Stage,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.search.drivers import DRIVERS
from kernelwright.search.trial import Trial

BATCH, BUDGET, REPEATS = 8, 256, 5
# Ten knobs of a GEMM: tiles, threads along both sides and when loading, vector widths, staging.
KNOBS = [
    *(Knob(name, (16, 32, 64, 128)) for name in ("mwg", "nwg")),
    Knob("kwg", (16, 32)),
    *(Knob(name, (8, 16, 32)) for name in ("mdimc", "ndimc", "mdima", "ndimb")),
    Knob("vwm", (1, 2, 4, 8)),
    Knob("vwn", (1, 2, 4)),
    Knob("sa", (0, 1)),
]
RULE = "mwg >= mdimc * vwm and nwg >= ndimc * vwn and mwg >= mdima * vwm and nwg >= ndimb * vwn"
# Drivers with their options, and at most how many µs; None is printed only.
ROWS: tuple[tuple[str, dict[str, Any], float | None], ...] = (
    ("random", {}, 15),
    ("grid", {}, None),
    ("hill_climb", {}, None),
    ("coordinate_descent", {}, None),
    ("annealing", {}, None),
    ("evolution", {}, 100),
    ("map_elites", {}, None),
    ("pareto", {}, None),
    ("bandit", {}, 2000),
    ("bandit", {"level": "groups"}, None),
    ("cost_model", {}, 2000),
    ("model_topk", {}, 2000),
    ("cost_model", {"model": "trees"}, None),
)


def trial(number: int, candidate: Candidate, objective: float) -> Trial:
    samples = Unpaired((1.0,), (2.0**objective,), reference_exact=True)
    measured = Measurement(
        "w", Role.BASELINE, "k", samples, "c", CacheState.COLD, Evidence.MODELLED, "m"
    )
    verdict = Verdict(Status.OK, measurements=(measured,))
    return Trial(number, candidate, ((Stage.SCREEN, verdict),), objective, "b", (), 0, 0)


def cost_us(name: str, options: dict[str, Any], seed: int) -> float:
    space = KnobSpace(KNOBS, [Constraint("fits", RULE, "too many threads")])
    _ = space.feature_table, space.levels
    weights = np.random.default_rng(seed).standard_normal(len(KNOBS))
    driver = resolve(DRIVERS, name)(space, seed=seed, batch=BATCH, **options)
    spent, number = 0.0, 0
    while number < BUDGET:
        start = time.process_time()
        proposals = driver.ask(BATCH)
        spent += time.process_time() - start
        trials = [
            trial(number + i, p.candidate, float(weights @ space.levels[space.index(p.candidate)]))
            for i, p in enumerate(proposals)
        ]
        start = time.process_time()
        driver.tell(trials)
        spent += time.process_time() - start
        number += len(trials)
    return 1e6 * spent / number


def costs() -> Iterator[Row]:
    for name, options, most in ROWS:
        what = " ".join([name, *(f"{key}={value}" for key, value in options.items())])
        found = statistics.median(cost_us(name, options, seed) for seed in range(REPEATS))
        target = "printed" if most is None else f"at most {most:g} us"
        yield (
            f"ask and tell an evaluation, {what}",
            target,
            f"{found:.1f} us",
            None if most is None else found <= most,
        )


if __name__ == "__main__":
    print_groups({"cost": costs}, __doc__ or "")
