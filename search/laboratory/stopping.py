"""What stopping early costs: searches that stop by a rule, beside the same searches run to the end
of their budget.

A run that stops is, trial by trial, the beginning of the one that does not, so what the rule saved
and what it gave up are told by pairs of runs. Looks at a candidate (`search.stopping`) are counted
as evaluations, each of its samples as one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from kernelwright.env.protocols import Oracle
from kernelwright.search.campaign import Campaign
from kernelwright.search.plan import Plan, StopRules
from kernelwright.search.stopping import LOOK_PAIRS, LOOKED
from kernelwright.search.store import MemoryStore
from kernelwright.search.summary import best_trial


@dataclass(frozen=True, slots=True)
class Case:
    """A search to be stopped: the plan of a seed, what knows true times, and the share of the
    roofline that the best candidate of the space reaches.
    """

    name: str
    plan: Callable[[int], Plan]
    oracle: Oracle
    reach: float


@dataclass(frozen=True, slots=True)
class StopRule:
    """A rule by name, made for a case of this reach."""

    name: str
    rules: Callable[[float], StopRules]


# What is recommended (see `docs/stopping.md`): a share of what can be reached where that is known;
# else a share of the roofline, and a plateau for where nothing comes near to it.
NEAR, SHARE, PLATEAU = 0.95, 0.8, 64
RULES = (
    StopRule(f"roofline: {NEAR:g} of the reach", lambda reach: StopRules(roofline=NEAR * reach)),
    StopRule(f"roofline: {SHARE:g}", lambda reach: StopRules(roofline=SHARE)),
    StopRule(f"plateau: {PLATEAU}", lambda reach: StopRules(plateau=PLATEAU)),
    StopRule(
        f"roofline: {SHARE:g}, plateau: {PLATEAU}",
        lambda reach: StopRules(roofline=SHARE, plateau=PLATEAU),
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What a rule did to a case's runs, one entry a seed.

    ``saved`` are shares of the evaluations of the full runs; ``kept`` what the winner's speedup is
    of the full run's, by true times.
    """

    case: str
    rule: str
    evaluations: tuple[int, ...]
    saved: tuple[float, ...]
    kept: tuple[float, ...]
    stopped: int

    @property
    def mean_saved(self) -> float:
        """The share of all evaluations that was saved, on average."""
        return statistics.fmean(self.saved)

    @property
    def mean_kept(self) -> float:
        """The geometric mean of what was kept of the speedup."""
        return statistics.geometric_mean(self.kept)


def stopping(cases: Sequence[Case], seeds: int, rules: Sequence[StopRule] = RULES) -> Iterator[Row]:
    """Run every case with every rule and without one, over so many seeds; a row a case and rule."""
    for case in cases:
        full = [_run(case, seed, StopRules()) for seed in range(seeds)]
        for rule in rules:
            runs = [_run(case, seed, rule.rules(case.reach)) for seed in range(seeds)]
            pairs = list(zip(runs, full, strict=True))
            yield Row(
                case.name,
                rule.name,
                tuple(run.evaluations for run in runs),
                tuple(1 - run.evaluations / whole.evaluations for run, whole in pairs),
                tuple(whole.winner_ns / run.winner_ns for run, whole in pairs),
                sum(run.by_rule for run in runs),
            )


def together(rows: Sequence[Row]) -> Row:
    """The rows of one rule over several cases, as one."""
    (rule,) = {row.rule for row in rows}
    return Row(
        f"all {len(rows)}",
        rule,
        tuple(n for row in rows for n in row.evaluations),
        tuple(share for row in rows for share in row.saved),
        tuple(share for row in rows for share in row.kept),
        sum(row.stopped for row in rows),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    evaluations: int
    winner_ns: float
    by_rule: bool


def _run(case: Case, seed: int, rules: StopRules) -> _Run:
    """One search: what it took, and how fast the kernel truly is that its user is given."""
    store = MemoryStore()
    stop = Campaign(replace(case.plan(seed), stop=rules), store).run()
    trials = store.trials()
    looks = sum(event.kind == LOOKED for event in store.events())
    best = best_trial(trials)
    time = float(case.oracle.true_ns([best.candidate])[0]) if best else math.inf
    by_rule = stop.rule in ("roofline", "plateau", "target")
    return _Run(len(trials) + LOOK_PAIRS * looks, time, by_rule)
