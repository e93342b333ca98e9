"""What can be said of campaigns that did the same work: medians with intervals, curves, claims.

Every pair of campaigns at every target is a claim. They share one error rate: the chance that a
comparison among equals claims any difference at all is at most 5% (`holm`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.evaluators.rates import Rate
from kernelwright.search.efficiency import (
    ALPHA,
    Median,
    Trajectory,
    holm,
    median_interval,
    median_ratio,
)

# The median of five has no two-sided 95% interval: all are on one side of it once in 16.
MIN_RUNS = 6
# The first number of evaluations at which the best so far is looked at; then twice as many, …
FIRST = 8


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one campaign: its name, and how each run went (a trajectory, None where nothing
    is known of how good its candidates are).
    """

    name: str
    trajectories: tuple[Trajectory, ...]

    def evaluations_to(self, within: float) -> list[int | None]:
        """What each run needed to within a share of the best; None where it was not reached."""
        return [run.evaluations_to(within) for run in self.trajectories]

    def least_to(self, within: float, budget: int) -> list[int]:
        """The same, a run that did not get there counted as one more than the budget; also one that
        ended before, or giving up early would look like being fast.
        """
        return [budget + 1 if count is None else count for count in self.evaluations_to(within)]


def compared(campaigns: Sequence[Runs], within: Sequence[float], budget: int) -> dict[str, Any]:
    """The summary of a comparison, as ``compare --json`` prints it.

    ``within``, ``campaigns`` and ``pairs`` are those of the first target; ``targets`` has all of
    them, with what every run needed and the share of runs that were there after so many
    evaluations; ``curves`` has the best so far; ``correction`` says how many claims there are.
    """
    targets: list[dict[str, Any]] = [
        {
            "within": share,
            "campaigns": [_campaign(runs, share, budget) for runs in campaigns],
            "pairs": [_pair(a, b, share, budget) for a, b in itertools.combinations(campaigns, 2)],
        }
        for share in within
    ]
    correction = _correct([(t["within"], pair) for t in targets for pair in t["pairs"]])
    first = targets[0]
    brief = ("config", "runs", "solved", "median", "low", "high")
    return {
        "within": first["within"],
        "budget": budget,
        "campaigns": [{key: row[key] for key in brief} for row in first["campaigns"]],
        "pairs": first["pairs"],
        "correction": correction,
        "targets": targets,
        "curves": [{"config": r.name, "best_at": _best_at(r, budget)} for r in campaigns],
    }


def checkpoints(budget: int) -> list[int]:
    """The numbers of evaluations at which runs are looked at: doubling from 8, from 1 where the
    budget is no larger, and the budget.
    """
    first = FIRST if budget > FIRST else 1
    doubled = itertools.takewhile(lambda n: n < budget, (first << i for i in itertools.count()))
    return [*doubled, budget]


def _campaign(runs: Runs, within: float, budget: int) -> dict[str, Any]:
    counts = runs.evaluations_to(within)
    return {
        "config": runs.name,
        "runs": len(counts),
        "solved": sum(count is not None for count in counts),
        **_shown(median_interval(counts), len(counts)),
        "evaluations": counts,
        "at_least": runs.least_to(within, budget),
        "reached": _reached(counts),
    }


def _shown(median: Median, runs: int) -> dict[str, float | None]:
    """A median as JSON has it: null where it is infinite, no interval of too few runs."""
    limits = (median.low, median.high) if runs >= MIN_RUNS else (math.inf, math.inf)
    low, high = map(_finite, limits)
    return {"median": _finite(median.value), "low": low, "high": high}


def _reached(counts: Sequence[int | None]) -> list[dict[str, float]]:
    """The share of runs that had reached the target after so many evaluations, at every number
    where it rises, with pointwise 95% limits (Wilson).
    """
    steps = sorted({count for count in counts if count is not None})
    shares = [Rate(sum(c is not None and c <= n for c in counts), len(counts)) for n in steps]
    return [
        {"evaluations": n, "share": rate.share, "low": rate.low, "high": rate.high}
        for n, rate in zip(steps, shares, strict=True)
    ]


def _best_at(runs: Runs, budget: int) -> list[dict[str, float | None]]:
    """The median of the best true time so far over the best known one, at the checkpoints."""
    rows: list[dict[str, float | None]] = []
    for n in checkpoints(budget):
        best = [run.at(n) for run in runs.trajectories]
        rows.append({"evaluations": n, **_shown(median_interval(best), len(best))})
    return rows


def _pair(left: Runs, right: Runs, within: float, budget: int) -> dict[str, Any]:
    """What is known of two campaigns; ``difference`` is null where nothing can be said, and is
    decided together with all the others'.
    """
    sides = (left, right)
    counts = [runs.evaluations_to(within) for runs in sides]
    solved = [math.isfinite(median_interval(some).value) for some in counts]
    names = {"left": left.name, "right": right.name}
    keys = ("ratio", "ci_low", "ci_high", "p", "p_adjusted", "difference")
    if len(counts[0]) < MIN_RUNS or not any(solved):
        why = f"neither median run comes to within {100 * within:g}%"
        if any(solved):
            why = f"fewer than {MIN_RUNS} runs each"
        says = f"nothing can be said of {left.name} and {right.name}: {why}"
        return {**names, **dict.fromkeys(keys), "says": says}
    ratio = median_ratio(left.least_to(within, budget), right.least_to(within, budget))
    found = (ratio.value, ratio.low, ratio.high, ratio.p, None, None)
    unsolved = sum(count is None for some in counts for count in some)
    return {**names, **dict(zip(keys, found, strict=True)), "says": _caveat(unsolved)}


def _caveat(unsolved: int) -> str:
    if not unsolved:
        return ""
    return f", with {unsolved} unsolved runs counted as one more than the budget"


def _correct(pairs: Sequence[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """Decide all claims (a target and a pair each) together, and say in each what follows."""
    open_ones = [(within, pair) for within, pair in pairs if pair["p"] is not None]
    adjusted = holm([pair["p"] for _, pair in open_ones])
    for (within, pair), p in zip(open_ones, adjusted, strict=True):
        pair["p_adjusted"], pair["difference"] = p, p < ALPHA
        pair["says"] = _says(pair, within, len(open_ones)) + pair["says"]
    return {"method": "holm", "claims": len(open_ones), "error_rate": ALPHA}


def _says(pair: dict[str, Any], within: float, claims: int) -> str:
    """What follows for one number, evaluations to a target, and for no other."""
    left, right, counted = pair["left"], pair["right"], f"evaluations to within {100 * within:g}%"
    limits = (pair["ratio"], pair["ci_low"], pair["ci_high"])
    if pair["difference"]:
        # The ratio is printed the way round that the sentence has.
        if pair["ratio"] < 1:
            left, right = right, left
            limits = (1 / pair["ratio"], 1 / pair["ci_high"], 1 / pair["ci_low"])
        said = f"{left} needs more {counted} than {right}: {left} / {right} ="
    else:
        said = f"no difference in {counted} between {left} and {right}"
        if pair["p"] < ALPHA:
            said += f" that stands among {claims} claims (Holm: p = {pair['p_adjusted']:.2g})"
        said += ": ratio of medians"
    ratio, low, high = limits
    return f"{said} {ratio:.2f} (95% {low:.2f} to {high:.2f})"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
