"""Searches charged by what each configuration cost its tuner: seconds of the compiler, of the
comparison of results and of the kernel itself.
"""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from functools import lru_cache

from recordings import BUDGET, DATA, SPACES, load
from replay import Make, recording

from kernelwright.env.types import Verdict
from kernelwright.search.trial import Stage, Trial

COSTS = {
    "compile_time": "compile_s",
    "verification_time": "verify_s",
    "benchmark_time": "benchmark_s",
}


@lru_cache(maxsize=8)
def charged(name: str) -> dict[int, tuple[Verdict, float]]:
    """By flat index the verdict with what was spent among its facts, and their sum in s."""
    space, knobs, found = recording(name), tuple(load(name).knobs), {}
    with gzip.open(DATA / SPACES[name], "rt") as file:
        entries = json.load(file)["cache"].values()
    for entry in entries:
        index = space.space.index_of({knob: entry[knob] for knob in knobs})
        facts = tuple((fact, 1e-3 * (entry.get(key) or 0.0)) for key, fact in COSTS.items())
        verdict, _ = space.verdicts[index]
        found[index] = replace(verdict, facts=facts), sum(cost for _, cost in facts)
    return found


def seconds_to(name: str, make: Make, seed: int, width: float) -> tuple[float, int]:
    """Seconds and evaluations until the best is within a width of the optimum; infinite seconds
    where the budget ended first.
    """
    replayed, prices = recording(name), charged(name)
    driver = make(replayed.space, seed, 1)
    spent = 0.0
    for count in range(BUDGET):
        proposals = driver.ask(1)
        if not proposals:
            break
        candidate = proposals[0].candidate
        index = replayed.space.index(candidate)
        verdict, cost = prices[index]
        spent += cost
        if replayed.ratios[index] <= 1 + width:
            return spent, count + 1
        objective = replayed.verdicts[index][1]
        screens = ((Stage.SCREEN, verdict),)
        driver.tell([Trial(count, candidate, screens, objective, "replay", (), 0, count + 1)])
    return math.inf, BUDGET
