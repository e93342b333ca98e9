"""The front of a search of several objectives, as ``run`` and ``show`` print it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.configs.build import Built
from kernelwright.configs.errors import ConfigError
from kernelwright.search.drivers.facts import Facts
from kernelwright.search.drivers.pareto import OBJECTIVES
from kernelwright.search.fronts import TIME, front, told_facts
from kernelwright.search.summary import shown
from kernelwright.search.trial import Trial


def front_of(
    config: Mapping[str, Any], trials: Sequence[Trial], built: Callable[[], Built]
) -> dict[str, Any] | None:
    """``objectives`` and ``rows`` (a trial each: ``trial``, ``key``, ``candidate``, ``speedup`` by
    its screen and ``facts``), the fastest first; None for other drivers.

    Args:
        config: the resolved campaign.
        trials: what was judged.
        built: makes the campaign's space and problem, which some facts are computed from; where
            that is refused by now, only facts that verdicts tell count.
    """
    driver = config.get("driver", {})
    if driver.get("name") != "pareto":
        return None
    objectives = tuple(driver.get("objectives", OBJECTIVES))
    try:
        made = built()
        facts: Callable[[Trial], Mapping[str, float]] = Facts(made.space, made.problem).of
    except ConfigError:
        facts = told_facts
    rows = [
        {
            "trial": trial.number,
            "key": trial.candidate.key,
            "candidate": shown(trial.candidate),
            "speedup": 2.0 ** (trial.objective or 0.0),
            "facts": {n: facts(trial).get(n) for n in objectives if n != TIME},
        }
        for trial in front(trials, objectives, facts)
    ]
    return {"objectives": list(objectives), "rows": rows}
