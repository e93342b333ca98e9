"""``compare``: the same work under several drivers at equal budget, over many seeds.

With s the first file's seed, campaign j takes the seeds s + j·N … s + j·N + N - 1, so that no two
campaigns share one: a driver compared with itself is an honest A/A test, and whether there is a
difference is decided by the same rule for all pairs. Below `MIN_RUNS` nothing is claimed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.configs.build import Built, build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.schema import MAX_SEED
from kernelwright.env.spaces.knobs import is_listed
from kernelwright.evaluators.target import Target
from kernelwright.search.campaign import Campaign
from kernelwright.search.comparing import compared
from kernelwright.search.counting import NOTHING, Runs, Spending, costs_of
from kernelwright.search.efficiency import Trajectory, best_true_ns, trajectory
from kernelwright.search.store import MemoryStore
from kernelwright.search.summary import best_entry, best_trial, claimed
from kernelwright.search.trial import Trial
from kernelwright.search.works import geometric_median, geometric_ratio

# What must be equal for campaigns to do the same work.
SAME = ("problem", "space", "target", "baseline", "budget", "stop", "judge")
WITHIN = 0.05


def compare_configs(
    configs: Sequence[str],
    *,
    seeds: int = 20,
    within: float | Sequence[float] = WITHIN,
    budget: int | None = None,
    overrides: Sequence[str] = (),
) -> dict[str, Any]:
    """Run every campaign ``seeds`` times and compare how many evaluations they need and, where a
    model is asked, how many calls, tokens and USD.

    Args:
        configs: campaign files or shipped names.
        seeds: runs of each.
        within: how near to the best counts as found; of several, the first is the one that
            ``evaluations_to_target`` counts to.
        budget: trials of every run, in place of what the files say.
        overrides: ``a.b=value`` each, over all files.

    Raises:
        ConfigError: if a campaign is refused, or the campaigns do not do the same work at equal
            budget.
    """
    shares = (within,) if isinstance(within, int | float) else tuple(dict.fromkeys(within))
    _refuse(configs, seeds, shares, budget)
    if budget is not None:
        overrides = [*overrides, f"budget={{trials: {budget}}}"]
    first = [read_config(config, overrides) for config in configs]
    built = [build(campaign) for campaign in first]
    _same_work(configs, built)
    start = first[0].file.seed
    if start + len(configs) * seeds >= MAX_SEED:
        raise ConfigError(configs[0], None, "seed", "room for all runs below 2^63", str(start))
    limits = built[0].plan.budget
    if limits.seconds is not None:
        expected = "a budget of trials, calls, tokens or usd, by which every machine ends alike"
        raise ConfigError(configs[0], None, "budget.seconds", expected, f"{limits.seconds:g}")
    for config, other in zip(configs, built, strict=True):
        _refuse_endless(config, other)
    runs = [
        [
            _run(config, overrides, seed)
            for seed in range(start + j * seeds, start + (j + 1) * seeds)
        ]
        for j, config in enumerate(configs)
    ]
    follow = _yardstick(built[0], [run for some in runs for run in some])
    campaigns = [
        Runs(name, tuple(map(follow, some)), tuple(run.spending for run in some))
        for name, some in zip(_names(configs, [c.file.name for c in first]), runs, strict=True)
    ]
    costs = costs_of(limits, campaigns)
    rows = [
        _row(run, dict(zip((cost.name for cost in costs), needed, strict=True)))
        for some, campaign in zip(runs, campaigns, strict=True)
        for run, *needed in zip(
            some, *(campaign.needed(cost, shares[0]) for cost in costs), strict=True
        )
    ]
    return {
        "rows": rows,
        "summary": {"work": _work(built[0]), **compared(campaigns, shares, costs)},
    }


def compare_works(
    configs: Sequence[str],
    works: Mapping[str, Sequence[str]],
    *,
    seeds: int = 20,
    within: float = WITHIN,
    budget: int | None = None,
) -> dict[str, Any]:
    """Compare campaigns on several pieces of work, one after the other, and on all together.

    Args:
        configs: campaign files or shipped names.
        works: by the name of a work, the overrides that make it: its shape, its landscape, …
        seeds: runs of each campaign on each work.
        within: how near to the best counts as found.
        budget: trials of every run, in place of what the files say.

    Returns:
        ``works``: by name, what `compare_configs` gives; ``campaigns``: the geometric mean over
        works of the median evaluations of each (null where the median run of any work got nowhere);
        ``ratios``: of each campaign after the first to the first, the geometric mean of the ratios
        of medians. All with 95% bootstrap intervals, which speak of these works alone.

    Raises:
        ConfigError: as `compare_configs`, or if there is no work.
    """
    if not works:
        raise ConfigError("compare", None, "", "at least one work", "none")
    found = {
        name: compare_configs(
            configs, seeds=seeds, within=within, budget=budget, overrides=overrides
        )
        for name, overrides in works.items()
    }
    rows = [result["summary"]["targets"][0]["campaigns"] for result in found.values()]
    names, columns = [row["config"] for row in rows[0]], range(len(configs))
    means = [geometric_median([work[j]["evaluations"] for work in rows]) for j in columns]
    least = [[work[j]["at_least"] for work in rows] for j in columns]
    ratios = [geometric_ratio(some, least[0]) for some in least[1:]]
    return {
        "works": found,
        "campaigns": [
            {"config": name, "median": _finite(m.value), "low": m.low, "high": _finite(m.high)}
            for name, m in zip(names, means, strict=True)
        ],
        "ratios": [
            {"left": name, "right": names[0], "ratio": r.value, "ci_low": r.low, "ci_high": r.high}
            for name, r in zip(names[1:], ratios, strict=True)
        ],
    }


def plotter(place: str) -> Callable[[Mapping[str, Any]], list[Path]]:
    """What draws a comparison into a folder or one file, and says which files it wrote.

    Raises:
        ConfigError: if what draws is not installed, or the file is of no known kind; at once, not
            when everything has been run.
    """
    try:
        from kernelwright.search.laboratory.curves import KINDS, plots
    except ImportError as error:
        expected = "matplotlib (pip install 'kernelwright[plots]')"
        raise ConfigError("compare", None, "--plot", expected, str(error)) from None
    path = Path(place)
    if path.suffix and path.suffix not in KINDS and not path.is_dir():
        expected = f"a folder, or a file that ends in {' or '.join(KINDS)}"
        raise ConfigError("compare", None, "--plot", expected, place)
    home = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
    if home != path.absolute() and not (home.is_dir() and os.access(home, os.W_OK)):
        expected = "a place that can be written"
        raise ConfigError("compare", None, "--plot", expected, f"{place} under {home}")
    return lambda result: plots(result["summary"], path)


def _refuse(
    configs: Sequence[str], seeds: int, within: Sequence[float], budget: int | None
) -> None:
    if len(configs) < 2:
        raise ConfigError("compare", None, "", "at least two campaigns", str(len(configs)))
    for share in within:
        if not 0 < share <= 1:
            raise ConfigError("compare", None, "--within", "a share above 0, at most 1", str(share))
    if not within:
        raise ConfigError("compare", None, "--within", "at least one share", "none")
    if seeds < 1:
        raise ConfigError("compare", None, "--seeds", "at least 1", str(seeds))
    if budget is not None and budget < 1:
        raise ConfigError("compare", None, "--budget", "at least 1", str(budget))


def _names(configs: Sequence[str], given: Sequence[str]) -> list[str]:
    """What campaigns are called: by the names in their files; where different files have the same
    one, by the files; numbered where one stands twice.
    """
    names = dict(zip(configs, given, strict=True))
    for shared in set(names.values()):
        alike = [config for config, name in names.items() if name == shared]
        if len(alike) > 1:
            names |= dict(zip(alike, _endings(alike), strict=True))
    if len(set(names.values())) < len(names):
        names = {config: config for config in names}
    several = {config for config in names if configs.count(config) > 1}
    return [f"{names[c]} ({i})" if c in several else names[c] for i, c in enumerate(configs, 1)]


def _endings(paths: Sequence[str]) -> list[str]:
    """The least of the paths' ends that tells them apart, without the file's ending."""
    parts = [Path(path).with_suffix("").parts for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        ends = ["/".join(some[-count:]) for some in parts]
        if len(set(ends)) == len(ends):
            return ends
    return list(paths)


def _work(built: Built) -> str:
    """What the campaigns do: the problem with its extents, and the target."""
    target = built.resolved["target"]
    about = [Path(str(target[key])).name for key in ("landscape", "device") if target.get(key)]
    labels = ", ".join(workload.label for workload in built.problem.workloads)
    return " ".join(filter(None, (built.problem.identity, labels, "on", target["name"], *about)))


def _row(run: _Run, needed: Mapping[str, float | None]) -> dict[str, Any]:
    best = best_trial(run.trials)
    entry = best_entry(best) if best else None
    counts = {f"{name}_to_target": count for name, count in needed.items()}
    return {"config": run.config, "seed": run.seed, **counts, "best": entry}


@dataclass(frozen=True)
class _Run:
    """One campaign that was run, with the target that judged it, and what it spent on a model."""

    config: str
    seed: int
    target: Target
    trials: list[Trial]
    spending: Spending = NOTHING


def _run(config: str, overrides: Sequence[str], seed: int) -> _Run:
    built = build(read_config(config, [*overrides, f"seed={seed}"]))
    store = MemoryStore()
    Campaign(built.plan, store).run()
    trials = store.trials()
    return _Run(config, seed, built.target, trials, Spending.of(trials, store.events()))


def _refuse_endless(config: str, built: Built) -> None:
    """See that a budget of calls, tokens or money is one of a model that is asked.

    Raises:
        ConfigError: if none is, for nothing else ends the search.
    """
    if built.hired is None and built.plan.budget.trials is None:
        expected = f"budget.trials, as driver {built.resolved['driver']['name']} asks no model"
        raise ConfigError(config, None, "budget", expected, "none")


def _yardstick(built: Built, runs: Sequence[_Run]) -> Callable[[_Run], Trajectory]:
    """What follows how near a run came to the best.

    The best is the best true time: of a landscape, of all its configurations; of another target
    that knows true times, of everything that was tried. Where times are measured it is the best
    confirmed by any run, and a run's screens are scaled so that its own best agrees with its
    confirmation; times are then multiples of the baseline's.
    """
    space, target = built.space, built.target
    if target.deterministic:
        tried = [t.candidate for run in runs for t in run.trials if t.objective is not None]
        if is_listed(space):
            tried = [space.candidate(i) for i in space.valid.tolist()]
        if not tried:
            return _nowhere
        best_ns = best_true_ns(target, tried)
        return lambda run: trajectory(run.trials, run.target, best_ns)
    confirmed = [ratio for run in runs if (ratio := _confirmed(run)) is not None]
    if not confirmed:
        return _nowhere
    return lambda run: _scaled(run, max(confirmed))


def _nowhere(run: _Run) -> Trajectory:
    """The trajectory of a run that nothing is known of."""
    return Trajectory((math.inf,) * len(run.trials), 1.0)


def _confirmed(run: _Run) -> float | None:
    """The log2 speedup of a run's confirmed best."""
    best = best_trial(run.trials)
    interval = claimed(best) if best else None
    return math.log2(interval.estimate) if interval else None


def _scaled(run: _Run, wanted: float) -> Trajectory:
    """The trajectory of a run whose times were measured, towards a log2 speedup."""
    best, ratio = best_trial(run.trials), _confirmed(run)
    if best is None or best.objective is None or ratio is None:
        return _nowhere(run)
    shift, height, times = ratio - best.objective, -math.inf, []
    for trial in run.trials:
        height = max(height, -math.inf if trial.objective is None else trial.objective)
        times.append(2.0 ** -(height + shift) if math.isfinite(height) else math.inf)
    return Trajectory(tuple(times), 2.0**-wanted)


def _same_work(configs: Sequence[str], built: Sequence[Built]) -> None:
    for config, other in zip(configs[1:], built[1:], strict=True):
        for key in SAME:
            wanted, found = built[0].resolved.get(key), other.resolved.get(key)
            if wanted != found:
                expected = f"the {key} of {configs[0]}: {wanted}"
                raise ConfigError(config, None, key, expected, str(found))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
