"""Recorded repeats, replayed one by one: what an early cut saves and loses, and whom a search would
report that saw single samples.
"""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from recordings import BUDGET, DATA, H200_KNOBS, SPACES, load
from replay import Make, recording

from kernelwright.env.types import Reference, Request, Role, Stage
from kernelwright.evaluators.early import taken
from kernelwright.search.cut import Pace
from kernelwright.search.halving import Halving
from kernelwright.search.trial import Trial

Samples = dict[int, tuple[float, ...]]
MARGIN, PURSE = 1.15, 0.25
FINALISTS, REPEATS = 8, 7  # of the rule that measures the best again, all alike


@lru_cache(maxsize=16)
def raw(name: str) -> Samples:
    """The samples of each configuration that ran, in the order of the recording, by flat index."""
    path, knobs, space = DATA / SPACES[name], tuple(load(name).knobs), recording(name).space
    with gzip.open(path, "rt") as file:
        if path.suffixes[-2] == ".json":
            rows, key = list(json.load(file)["cache"].values()), "times"
        else:
            rows, key = [json.loads(line) for line in file][1:], "us"
    known = {knob for row in rows for knob in row if knob in H200_KNOBS}
    ran = [row for row in rows if key in row and known <= set(row)]
    return {space.index_of({knob: row[knob] for knob in knobs}): tuple(row[key]) for row in ran}


def visited(name: str, make: Make | None, seed: int) -> list[int]:
    """What a search visits: at random, or by a driver that is told true times."""
    replayed, rng = recording(name), random.Random(seed)
    if make is None:
        every = replayed.space.valid.tolist()
        return rng.sample(every, min(BUDGET, len(every)))
    driver, found = make(replayed.space, seed, 1), []
    while len(found) < BUDGET and (proposals := driver.ask(1)):
        candidate = proposals[0].candidate
        index = replayed.space.index(candidate)
        verdict, objective = replayed.verdicts[index]
        screens = ((Stage.SCREEN, verdict),)
        found.append(index)
        driver.tell([Trial(len(found), candidate, screens, objective, "", (), 0, len(found))])
    return found


@dataclass(frozen=True, slots=True)
class Cut:
    """What became of a search whose samples were cut: the share of kernel time saved, whether the
    best configuration visited was given up, and by how much the reported one is slower.
    """

    saved: float
    lost: bool
    regret: float


def cut_short(name: str, order: Sequence[int], seed: int, *, shuffled: bool = True) -> Cut:
    """All repeats of each configuration in an order of its own, until it is given up."""
    samples, rng = raw(name), random.Random(seed)
    pairs = max(map(len, samples.values()))
    pace, full, spent = Pace(MARGIN, pairs), 0.0, 0.0
    whole: dict[int, float] = {}
    true = {index: median(samples[index]) for index in order if index in samples}
    candidate = recording(name).space.candidate(order[0])
    against = (Reference(Role.BASELINE, candidate),)
    for index in true:
        times = list(samples[index])
        if shuffled:
            rng.shuffle(times)
        limits = pace.limits_ns
        request = Request(candidate, Stage.SCREEN, against, pairs=len(times), cut_ns=limits)
        got = taken(request, times.__getitem__)
        pace.learn(got)
        full, spent = full + sum(times), spent + sum(got)
        if len(got) == len(times):
            whole[index] = median(got)
    best, winner = min(true, key=true.__getitem__), min(whole, key=whole.__getitem__)
    return Cut(1 - spent / full, best not in whole, true[winner] / true[best] - 1)


@dataclass(frozen=True, slots=True)
class Pick:
    """By how much the reported configuration is slower than the best one visited, and how many
    more samples than screens that took, as a share.
    """

    regret: float
    extra: float


def picked(name: str, order: Sequence[int], seed: int, rule: str) -> Pick:
    """Screens of one sample each, then a rule: ``none``, ``halving``, or ``all alike``."""
    samples, rng = raw(name), random.Random(seed)
    ran = [index for index in order if index in samples]
    true = {index: median(samples[index]) for index in ran}
    drawn = 0

    def draw(index: int, count: int) -> list[float]:
        nonlocal drawn
        drawn += count
        return [-math.log(rng.choice(samples[index])) for _ in range(count)]

    screens = {index: draw(index, 1) for index in ran}
    winner = _RULES[rule](ran, screens, draw)
    return Pick(true[winner] / min(true.values()) - 1, drawn / len(ran) - 1)


Draw = Callable[[int, int], list[float]]


def _first(ran: list[int], screens: dict[int, list[float]], draw: Draw) -> int:
    del draw
    return max(ran, key=lambda index: screens[index][0])


def _all_alike(ran: list[int], screens: dict[int, list[float]], draw: Draw) -> int:
    best = sorted(ran, key=lambda index: -screens[index][0])[:FINALISTS]
    again = {index: median(draw(index, REPEATS)) for index in best}
    return max(best, key=again.__getitem__)


def _halved(ran: list[int], screens: dict[int, list[float]], draw: Draw) -> int:
    race = Halving([screens[index] for index in ran], math.floor(PURSE * len(ran)))
    while (heat := race.heat()) is not None:
        race.tell({entrant: draw(ran[entrant], heat.pairs) for entrant in heat.entrants})
    return ran[race.ranking[0]]


_RULES = {"none": _first, "halving": _halved, "all alike": _all_alike}
