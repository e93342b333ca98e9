"""What can be said of campaigns that did the same work: medians with intervals, curves, claims.

Every pair of campaigns at every target is a claim, for each of what is counted. They share one
error rate: the chance that a comparison among equals claims any difference at all is at most 5%
(`holm`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from kernelwright.evaluators.rates import Rate
from kernelwright.search.counting import EVALUATIONS, Cost, Runs
from kernelwright.search.efficiency import (
    ALPHA,
    Median,
    holm,
    median_interval,
    median_ratio,
)

# The median of five has no two-sided 95% interval: all are on one side of it once in 16.
MIN_RUNS = 6
# The first number of evaluations at which the best so far is looked at; then twice as many, …
FIRST = 8


def compared(
    campaigns: Sequence[Runs], within: Sequence[float], costs: Sequence[Cost]
) -> dict[str, Any]:
    """The summary of a comparison, as ``compare --json`` prints it.

    ``within``, ``campaigns`` and ``pairs`` are those of the first target; ``targets`` has all of
    them, with what every run needed and the share of runs that were there after so many
    evaluations, and the same of other ``costs``; ``curves`` has the best so far; ``correction``
    says how many claims there are.

    Args:
        campaigns: what is compared.
        within: the targets, as shares of the best.
        costs: what is counted, evaluations first.
    """
    evaluations, *others = costs
    most = max(1, *(spent for runs in campaigns for spent in runs.spent(evaluations)))
    budget = int(evaluations.limit or most)
    targets: list[dict[str, Any]] = [
        {
            "within": share,
            **_counted(campaigns, share, evaluations),
            "costs": [
                {"cost": cost.name, "budget": cost.limit, **_counted(campaigns, share, cost)}
                for cost in others
            ],
        }
        for share in within
    ]
    claims = [
        (f"{cost.words} to within {100 * target['within']:g}%", pair)
        for target in targets
        for cost, found in zip(costs, (target, *target["costs"]), strict=True)
        for pair in found["pairs"]
    ]
    correction = _correct(claims)
    first = targets[0]
    brief = ("config", "runs", "solved", "median", "low", "high")
    for target in targets:
        for runs, row in zip(campaigns, target["campaigns"], strict=True):
            row["reached"] = _reached(runs.needed(evaluations, target["within"]))
    return {
        "within": first["within"],
        "budget": budget,
        "campaigns": [{key: row[key] for key in brief} for row in first["campaigns"]],
        "pairs": first["pairs"],
        "correction": correction,
        "targets": targets,
        "curves": [{"config": r.name, "best_at": _best_at(r, budget)} for r in campaigns],
    }


def _counted(campaigns: Sequence[Runs], within: float, cost: Cost) -> dict[str, Any]:
    """The campaigns and their pairs by one cost to one target."""
    return {
        "campaigns": [_campaign(runs, within, cost) for runs in campaigns],
        "pairs": [_pair(a, b, within, cost) for a, b in itertools.combinations(campaigns, 2)],
    }


def checkpoints(budget: int) -> list[int]:
    """The numbers of evaluations at which runs are looked at: doubling from 8, from 1 where the
    budget is no larger, and the budget.
    """
    first = FIRST if budget > FIRST else 1
    doubled = itertools.takewhile(lambda n: n < budget, (first << i for i in itertools.count()))
    return [*doubled, budget]


def _campaign(runs: Runs, within: float, cost: Cost) -> dict[str, Any]:
    counts = runs.needed(cost, within)
    return {
        "config": runs.name,
        "runs": len(counts),
        "solved": sum(count is not None for count in counts),
        **_shown(median_interval(counts), len(counts)),
        cost.name: counts,
        "at_least": runs.at_least(cost, within),
    }


def _shown(median: Median, runs: int) -> dict[str, float | None]:
    """A median as JSON has it: null where it is infinite, no interval of too few runs."""
    limits = (median.low, median.high) if runs >= MIN_RUNS else (math.inf, math.inf)
    low, high = map(_finite, limits)
    return {"median": _finite(median.value), "low": low, "high": high}


def _reached(counts: Sequence[float | None]) -> list[dict[str, float]]:
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


def _pair(left: Runs, right: Runs, within: float, cost: Cost) -> dict[str, Any]:
    """What is known of two campaigns; ``difference`` is null where nothing can be said, and is
    decided together with all the others'.
    """
    names = {"left": left.name, "right": right.name}
    keys = ("ratio", "ci_low", "ci_high", "p", "p_adjusted", "difference")
    why = _unknown((left, right), within, cost)
    if why is not None:
        says = f"nothing can be said of {left.name} and {right.name}: {why}"
        return {**names, **dict.fromkeys(keys), "says": says}
    ratio = median_ratio(left.at_least(cost, within), right.at_least(cost, within))
    found = (ratio.value, ratio.low, ratio.high, ratio.p, None, None)
    says = _caveat(_unsolved((left, right), within, cost), cost)
    return {**names, **dict(zip(keys, found, strict=True)), "says": says}


def _unknown(sides: Sequence[Runs], within: float, cost: Cost) -> str | None:
    """Why nothing can be said of two campaigns; None if something can."""
    counts = [runs.needed(cost, within) for runs in sides]
    if not any(math.isfinite(median_interval(some).value) for some in counts):
        return f"neither median run comes to within {100 * within:g}%"
    if len(counts[0]) < MIN_RUNS:
        return f"fewer than {MIN_RUNS} runs each"
    if not all(all(runs.at_least(cost, within)) for runs in sides):
        return f"a run came there without {cost.words}"
    unsolved = _unsolved(sides, within, cost)
    # Without a limit they ended at what was left of another one, each elsewhere.
    if unsolved and cost.limit is None:
        limit = "trials" if cost.name == EVALUATIONS else cost.words
        return f"{unsolved} unsolved runs, and no budget of {limit} that all had"
    return None


def _unsolved(sides: Sequence[Runs], within: float, cost: Cost) -> int:
    return sum(need is None for runs in sides for need in runs.needed(cost, within))


def _caveat(unsolved: int, cost: Cost) -> str:
    if not unsolved:
        return ""
    least = "the budget" if cost.name == "usd" else "one more than the budget"
    return f", with {unsolved} unsolved runs counted as {least}"


def _correct(pairs: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Decide all claims (what is counted to which target, and a pair) together, and say in each
    what follows.
    """
    open_ones = [(counted, pair) for counted, pair in pairs if pair["p"] is not None]
    adjusted = holm([pair["p"] for _, pair in open_ones])
    for (counted, pair), p in zip(open_ones, adjusted, strict=True):
        pair["p_adjusted"], pair["difference"] = p, p < ALPHA
        pair["says"] = _says(pair, counted, len(open_ones)) + pair["says"]
    return {"method": "holm", "claims": len(open_ones), "error_rate": ALPHA}


def _says(pair: dict[str, Any], counted: str, claims: int) -> str:
    """What follows for one number, what is counted to a target, and for no other."""
    left, right = pair["left"], pair["right"]
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
