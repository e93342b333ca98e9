"""How fast a campaign's candidates can be at most, as far as that is known before a run: what
``check`` prints, and measures the goals of ``stop`` by.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from kernelwright.configs.build import Built
from kernelwright.env.spaces.knobs import is_listed
from kernelwright.env.types import Language
from kernelwright.evaluators.target import speed_of_light

# The most candidates whose true times are looked at.
MAX_TABLED = 50_000


def reach_of(built: Built) -> dict[str, Any]:
    """``bounds``, the speed of light of each workload; ``reach``, the share of it that the best
    candidate of the space reaches, where a table or a formula knows every candidate's time, else
    None; ``beyond``, a sentence for each goal that no candidate can meet.
    """
    bounds = speed_of_light(built.target, built.problem, built.plan.state)
    floor = statistics.geometric_mean(bound.floor_ns for bound in bounds) if bounds else None
    best = _best_ns(built)
    reach = floor / best if floor and best else None
    goals = built.resolved.get("stop", {})
    beyond = _beyond(goals, reach, floor, best, _baseline_ns(built))
    return {"bounds": [asdict(bound) for bound in bounds], "reach": reach, "beyond": beyond}


def _best_ns(built: Built) -> float | None:
    """The least true time of the space."""
    target, space = built.target, built.space
    tabled = target.deterministic and target.languages == {Language.KNOBS}
    if not tabled or not is_listed(space) or len(space.valid) > MAX_TABLED:
        return None
    times = target.true_ns([space.candidate(i) for i in space.valid.tolist()])
    return None if np.isnan(times).all() else float(np.nanmin(times))


def _baseline_ns(built: Built) -> float | None:
    """The true time of the baseline, where no measurement is needed to know it."""
    baseline = built.plan.baseline.candidate
    if not built.target.deterministic or baseline.language is Language.LIBRARY:
        return None
    time = float(built.target.true_ns([baseline])[0])
    return time if math.isfinite(time) else None


def _beyond(
    goals: Mapping[str, Any],
    reach: float | None,
    floor: float | None,
    best: float | None,
    baseline: float | None,
) -> list[str]:
    """What is wrong with goals that are faster than the best of the space or, where that is not
    known, than the speed of light; times in ns.
    """
    found = []
    share, goal = goals.get("roofline"), goals.get("target")
    if share is not None and reach is not None and share > reach:
        best_of = f"the best of this space is at {reach:.3f}"
        found.append(f"stop.roofline {share:g} is out of reach: {best_of}")
    least, what = (best, "the best of this space") if best else (floor, "the speed of light")
    if goal is None or least is None:
        return found
    if isinstance(goal, Mapping):
        if 1e3 * goal["us"] < least:
            found.append(
                f"stop.target {goal['us']:g} us is out of reach: {what} is {least / 1e3:.4g} us"
            )
    elif baseline is not None and goal > baseline / least:
        found.append(
            f"stop.target {goal:g} is out of reach: {what} is at {baseline / least:.4g}x, "
            f"{least / 1e3:.4g} us against {baseline / 1e3:.4g} us"
        )
    return found
