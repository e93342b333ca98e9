"""Several objectives at once: which trials are not beaten in everything by another.

An objective is ``time``, or a fact by name (shared memory, code size, …); less is better in all. A
trial that lacks a fact is infinitely bad in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.search.trial import Trial

Scores = NDArray[np.float64]
TIME = "time"


def told_facts(trial: Trial) -> Mapping[str, float]:
    """What the first verdict of a trial says beside times."""
    return dict(trial.verdicts[0][1].facts)


def score(trial: Trial, objectives: Sequence[str], facts: Mapping[str, float]) -> list[float]:
    """The objectives of a trial that ran; of ``time`` the negative log2 speedup."""
    assert trial.objective is not None
    return [-trial.objective if name == TIME else facts.get(name, math.inf) for name in objectives]


def front(
    trials: Sequence[Trial],
    objectives: Sequence[str],
    facts: Callable[[Trial], Mapping[str, float]] = told_facts,
) -> list[Trial]:
    """The trials that ran and that no other one dominates, the fastest first; of equal ones the
    earliest.
    """
    ran = [trial for trial in trials if trial.objective is not None]
    if not ran:
        return []
    scores = np.array([score(trial, objectives, facts(trial)) for trial in ran])
    _, firsts = np.unique(scores, axis=0, return_index=True)
    kept = sorted(firsts.tolist())
    best = [ran[kept[i]] for i in np.flatnonzero(ranks(scores[kept]) == 0).tolist()]
    return sorted(best, key=lambda trial: (-(trial.objective or 0.0), trial.number))


def ranks(scores: Scores) -> NDArray[np.int64]:
    """The front each row is on: 0 where no other row is as good in everything and better in
    something, 1 where only rows of front 0 are, and so on (Deb et al., NSGA-II, 2002).
    """
    as_good = (scores[:, None, :] <= scores[None, :, :]).all(axis=2)
    better = (scores[:, None, :] < scores[None, :, :]).any(axis=2)
    dominates = np.asarray(as_good & better)
    rank = np.full(len(scores), -1, dtype=np.int64)
    level = 0
    while (rank < 0).any():
        waiting = rank < 0
        beaten = np.asarray(dominates[waiting].any(axis=0))
        rank[waiting & ~beaten] = level
        level += 1
    return rank


def crowding(scores: Scores) -> Scores:
    """How far apart the neighbours of each row of a front are, as shares of the front's extent,
    summed over objectives; infinite at its ends (Deb et al. 2002).
    """
    distance = np.zeros(len(scores))
    for column in scores.T:
        order = np.argsort(column, kind="stable")
        sorted_ = column[order]
        distance[order[[0, -1]]] = math.inf
        extent = sorted_[-1] - sorted_[0]
        if 0 < extent < math.inf:
            distance[order[1:-1]] += (sorted_[2:] - sorted_[:-2]) / extent
    return distance
