"""``compare``: the same work under several drivers at equal budget, over many seeds.

With s the first file's seed, campaign j takes the seeds s + j·N … s + j·N + N - 1, so that no two
campaigns share one: a driver compared with itself is an honest A/A test, and whether there is a
difference is decided by the same interval for all pairs. Below `MIN_RUNS` nothing is claimed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.configs.build import Built, build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.schema import MAX_SEED
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.evaluators.target import Target
from kernelwright.search.campaign import Campaign
from kernelwright.search.efficiency import (
    best_true_ns,
    evaluations_to_target,
    median_interval,
    median_ratio,
)
from kernelwright.search.store import MemoryStore
from kernelwright.search.summary import best_entry, best_trial, claimed
from kernelwright.search.trial import Trial

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
    runs = [
        [
            _Run(config, seed, *_trials(config, overrides, seed))
            for seed in range(first[0].file.seed + j * seeds, first[0].file.seed + (j + 1) * seeds)
        ]
        for j, config in enumerate(configs)
    ]
    evaluations = _yardstick(built[0], [run for some in runs for run in some], within)
    rows, counts, least = [], [], []
    for some in runs:
        reached = [evaluations(run) for run in some]
        for run, count in zip(some, reached, strict=True):
            best = best_trial(run.trials)
            entry = best_entry(best) if best else None
            row = {"config": run.config, "seed": run.seed, "evaluations_to_target": count}
            rows.append({**row, "best": entry})
        counts.append(reached)
        pairs = zip(some, reached, strict=True)
        least.append([len(run.trials) + 1 if n is None else n for run, n in pairs])
    return {"rows": rows, "summary": _summary(list(configs), counts, least, budget, within)}


@dataclass(frozen=True)
class _Run:
    """One campaign that was run, with the target that judged it."""

    config: str
    seed: int
    target: Target
    trials: list[Trial]


def _trials(config: str, overrides: Sequence[str], seed: int) -> tuple[Target, list[Trial]]:
    built = build(read_config(config, [*overrides, f"seed={seed}"]))
    store = MemoryStore()
    Campaign(built.plan, store).run()
    return built.target, store.trials()


def _yardstick(built: Built, runs: Sequence[_Run], within: float) -> Callable[[_Run], int | None]:
    """What counts the evaluations that a run needed to come within a share of the best.

    The best is the best true time: of a landscape, of all its configurations; of another target
    that knows true times, of everything that was tried. Where times are measured it is the best
    confirmed by any run, and a run's screens are scaled so that its own best agrees with its
    confirmation.
    """
    space, target = built.space, built.target
    if target.deterministic:
        tried = [t.candidate for run in runs for t in run.trials if t.objective is not None]
        if isinstance(space, KnobSpace):
            tried = [space.candidate(i) for i in space.valid.tolist()]
        if not tried:
            return lambda run: None
        best_ns = best_true_ns(target, tried)
        return lambda run: evaluations_to_target(run.trials, run.target, best_ns, within)
    confirmed = [ratio for run in runs if (ratio := _confirmed(run)) is not None]
    if not confirmed:
        return lambda run: None
    wanted = max(confirmed) - math.log2(1 + within)
    return lambda run: _evaluations_to(run, wanted)


def _confirmed(run: _Run) -> float | None:
    """The log2 speedup of a run's confirmed best."""
    best = best_trial(run.trials)
    interval = claimed(best) if best else None
    return math.log2(interval.estimate) if interval else None


def _evaluations_to(run: _Run, wanted: float) -> int | None:
    best, ratio = best_trial(run.trials), _confirmed(run)
    if best is None or best.objective is None or ratio is None:
        return None
    shift = ratio - best.objective
    reached = (t for t in run.trials if t.objective is not None and t.objective + shift >= wanted)
    return next((t.number + 1 for t in reached), None)


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
