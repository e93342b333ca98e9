"""`kernelwright.autotune`: the settings of a function that dispatches by shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.configs.autotuned import Autotuned, Function, OnMiss
from kernelwright.configs.buckets import Rule
from kernelwright.configs.choices import table_of
from kernelwright.configs.errors import ConfigError
from kernelwright.search.campaign import Progress

DEFAULT_BUDGET = {"trials": 64, "seconds": 60}
NEAR = 4  # configurations of other buckets and devices that a search tries first


def autotune(
    *,
    key: Sequence[str],
    problem: str | Mapping[str, Any] | None = None,
    buckets: Rule | Mapping[str, Rule] = "powers",
    budget: Mapping[str, float] | None = None,
    on_miss: OnMiss | None = None,
    space: str | Mapping[str, Any] = "knobs",
    target: str | Mapping[str, Any] = "cpu",
    driver: str | Mapping[str, Any] = "auto",
    baseline: str = "unscheduled",
    judge: Mapping[str, Any] | None = None,
    seed: int = 0,
    cache: str | Path | None = None,
    table: str | Path | None = None,
    frozen: bool = False,
    observe: Callable[[Progress], None] | None = None,
) -> Any:
    """A function that dispatches by shape to tuned kernels (`Autotuned`); without a problem's name,
    and also with one, a decorator that makes it out of a function of NumPy arrays that computes the
    same.

    Args:
        key: the extents that a choice is made for; the problem's others are among its options.
        problem: a problem's name, or a mapping with its options, as in a campaign; the decorated
            function's name unless given.
        buckets: how extents are rounded up: ``powers`` of two, ``exact``, a list of sizes, or one
            of these by extent.
        budget: of a search, as in a campaign.
        on_miss: what happens where nothing is chosen: ``tune``, ``baseline`` (the plain function
            answers) or ``error``. ``tune`` unless choices are frozen.
        space: the candidates' language, as in a campaign; a name or a mapping, as the next two.
        target: where candidates are judged.
        driver: who proposes.
        baseline: what speedups are measured against.
        judge: how candidates are judged.
        seed: of a search.
        cache: the tuning cache's folder, this user's own unless given.
        table: a table that ``export --table`` wrote as JSON; it goes before the cache.
        frozen: only the table decides, so that every run that has it makes the same choices.
        observe: called with the progress of a search, as that of `run`. Without it `logging` tells
            when a search begins and ends, and so does stderr if it takes longer than 5 s.

    Raises:
        ConfigError: if a setting is refused, or a frozen table has no row of this device.
    """
    if frozen and (table is None or on_miss == "tune"):
        expected, found = ("a table", "none") if table is None else ("baseline or error", "'tune'")
        path = "table" if table is None else "on_miss"
        raise ConfigError("autotune", None, path, f"{expected} where choices are frozen", found)
    missed: OnMiss = on_miss or ("baseline" if frozen else "tune")
    if missed not in ("tune", "baseline", "error"):
        raise ConfigError("autotune", None, "on_miss", "tune, baseline or error", repr(on_miss))

    def made(named: str | Mapping[str, Any], function: Function | None = None) -> Autotuned:
        chosen = _named(named)
        campaign: dict[str, Any] = {
            "name": "autotune",
            "problem": chosen,
            "space": {"kind": space} if isinstance(space, str) else dict(space),
            "target": _named(target),
            "driver": _named(driver),
            "baseline": baseline,
            "judge": dict(judge or {}),
            "budget": dict(DEFAULT_BUDGET if budget is None else budget),
            "seed": seed,
            "cache": {"write": missed == "tune", "near": NEAR},
        }
        if cache is not None:
            campaign["cache"]["folder"] = str(Path(cache).absolute())
        rows = [] if table is None else table_of(table)
        return Autotuned(
            campaign,
            key,
            buckets,
            missed,
            function=function,
            rows=rows,
            frozen=frozen,
            observe=observe,
        )

    if problem is not None:
        return made(problem)
    return lambda function: made(function.__name__, function)


def _named(choice: str | Mapping[str, Any]) -> dict[str, Any]:
    return {"name": choice} if isinstance(choice, str) else dict(choice)
