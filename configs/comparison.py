"""``compare``: the same work under several drivers at equal budget, over many seeds.

With s the first file's seed, campaign j takes the seeds s + j·N … s + j·N + N - 1, so that no two
campaigns share one: a driver compared with itself is an honest A/A test, and whether there is a
difference is decided by the same interval for all pairs. Below `MIN_RUNS` nothing is claimed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from kernelwright.configs.build import Built, build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.schema import MAX_SEED
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.search.campaign import Campaign
from kernelwright.search.efficiency import (
    best_true_ns,
    evaluations_to_target,
    median_interval,
    median_ratio,
)
from kernelwright.search.store import MemoryStore
from kernelwright.search.summary import best_entry, best_trial

# What must be equal for campaigns to do the same work.
SAME = ("problem", "space", "target", "baseline", "budget", "stop", "judge")
# The median of five has no two-sided 95% interval: all are on one side of it once in 16.
MIN_RUNS = 6


def compare_configs(
    configs: Sequence[str], *, seeds: int = 20, within: float = 0.05, overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """Run every campaign ``seeds`` times and compare how many evaluations they need.

    Raises:
        ConfigError: if a campaign is refused, or the campaigns do not do the same work at equal
            budget.
    """
    if len(configs) < 2:
        raise ConfigError("compare", None, "", "at least two campaigns", str(len(configs)))
    if not 0 < within <= 1:
        raise ConfigError("compare", None, "--within", "a share above 0, at most 1", str(within))
    if seeds < 1:
        raise ConfigError("compare", None, "--seeds", "at least 1", str(seeds))
    first = [read_config(config, overrides) for config in configs]
    built = [build(campaign) for campaign in first]
    _same_work(configs, built)
    if first[0].file.seed + len(configs) * seeds >= MAX_SEED:
        found = str(first[0].file.seed)
        raise ConfigError(configs[0], None, "seed", "room for all runs below 2^63", found)
    budget = built[0].plan.budget.trials
    if budget is None or any(b.plan.budget.seconds is not None for b in built):
        raise ConfigError(configs[0], None, "budget", "a budget of trials alone", "seconds")
    space = built[0].space
    if not isinstance(space, KnobSpace) or not built[0].target.deterministic:
        found = f"{built[0].resolved['space']['kind']} on {built[0].resolved['target']['name']}"
        expected = "a space of knobs on a target that knows every true time"
        raise ConfigError(configs[0], None, "target", expected, found)
    best_ns = best_true_ns(built[0].target, [space.candidate(i) for i in space.valid.tolist()])
    rows, counts, least = [], [], []
    for j, config in enumerate(configs):
        runs, floors = [], []
        for i in range(seeds):
            seed = first[0].file.seed + j * seeds + i
            one = build(read_config(config, [*overrides, f"seed={seed}"]))
            row, trials = _run(one, best_ns, within)
            reached = row["evaluations_to_target"]
            runs.append(reached)
            floors.append(trials + 1 if reached is None else reached)
            rows.append({"config": config, "seed": seed, **row})
        counts.append(runs)
        least.append(floors)
    return {"rows": rows, "summary": _summary(list(configs), counts, least, budget, within)}


def _run(built: Built, best_ns: float, within: float) -> tuple[dict[str, Any], int]:
    """A row of the comparison, and how many trials the run had."""
    store = MemoryStore()
    Campaign(built.plan, store).run()
    trials = store.trials()
    best = best_trial(trials)
    row = {
        "evaluations_to_target": evaluations_to_target(trials, built.target, best_ns, within),
        "best": best_entry(best) if best else None,
    }
    return row, len(trials)


def _same_work(configs: Sequence[str], built: Sequence[Built]) -> None:
    for config, other in zip(configs[1:], built[1:], strict=True):
        for key in SAME:
            wanted, found = built[0].resolved.get(key), other.resolved.get(key)
            if wanted != found:
                expected = f"the {key} of {configs[0]}: {wanted}"
                raise ConfigError(config, None, key, expected, str(found))


def _summary(
    configs: list[str],
    counts: list[list[int | None]],
    least: list[list[int]],
    budget: int,
    within: float,
) -> dict[str, Any]:
    names = [f"{c} ({i + 1})" if configs.count(c) > 1 else c for i, c in enumerate(configs)]
    campaigns = []
    for name, runs in zip(names, counts, strict=True):
        median = median_interval(runs)
        campaigns.append(
            {
                "config": name,
                "runs": len(runs),
                "solved": sum(c is not None for c in runs),
                "median": _finite(median.value),
                "low": _finite(median.low) if len(runs) >= MIN_RUNS else None,
                "high": _finite(median.high) if len(runs) >= MIN_RUNS else None,
            }
        )
    pairs = [
        _pair(left, right, counts[i], counts[j], (least[i], least[j]))
        for (i, left), (j, right) in itertools.combinations(enumerate(names), 2)
    ]
    return {"within": within, "budget": budget, "campaigns": campaigns, "pairs": pairs}


def _pair(
    left: str,
    right: str,
    mine: list[int | None],
    theirs: list[int | None],
    least: tuple[list[int], list[int]],
) -> dict[str, Any]:
    """What can be said of two campaigns; ``difference`` is null where nothing can."""
    unsolved = sum(c is None for c in mine + theirs)
    solved = [math.isfinite(median_interval(runs).value) for runs in (mine, theirs)]
    if len(mine) < MIN_RUNS or not any(solved):
        why = f"fewer than {MIN_RUNS} runs each" if any(solved) else "neither median run gets there"
        says = f"nothing can be said of {left} and {right}: {why}"
        none = dict.fromkeys(("ratio", "ci_low", "ci_high", "difference"))
        return {"left": left, "right": right, **none, "says": says}
    ratio = median_ratio(*least)
    interval = f"{ratio.value:.2f} (95% {ratio.low:.2f} to {ratio.high:.2f})"
    if unsolved:
        interval += f", with {unsolved} unsolved runs counted as one more than their trials"
    says = f"no difference between {left} and {right}: ratio of medians {interval}"
    if ratio.is_difference:
        more, less = (left, right) if ratio.value > 1 else (right, left)
        says = f"{more} needs more evaluations than {less}: {left} / {right} = {interval}"
    return {
        "left": left,
        "right": right,
        "ratio": ratio.value,
        "ci_low": ratio.low,
        "ci_high": ratio.high,
        "difference": ratio.is_difference,
        "says": says,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
