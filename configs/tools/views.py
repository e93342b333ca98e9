"""What a client is shown: JSON objects of bounded size that any parser takes, whatever candidates
and compilers have written into them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from kernelwright.agents.brief import Brief
from kernelwright.agents.context.profile import is_time, profile_sheet
from kernelwright.configs.build import Built
from kernelwright.configs.surroundings import Explain
from kernelwright.env.types import Problem, Stage, Status
from kernelwright.search.answers import candidate_times_ns
from kernelwright.search.claims import Names, claim_of
from kernelwright.search.store import Store
from kernelwright.search.summary import best_trial, claimed, summarise
from kernelwright.search.trial import Trial

T = TypeVar("T")
# Characters of one text, and of a candidate's.
MOST_TEXT, MOST_CANDIDATE = 4000, 64_000
BASES = {True: "confirmed", False: "screened"}


def plain(value: T) -> T:
    """The same as JSON holds it: text without lone surrogates, numbers that are finite (null where
    they are not), lists for tuples.
    """
    made: T = _plain(value)
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def clipped(text: str, most: int = MOST_TEXT) -> str:
    """The two ends of a text that is too long: a compiler's first error and its last."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters …\n{text[-half:]}"


def trial_view(
    trial: Trial,
    names: Names,
    brief: Brief,
    *,
    whole: bool = True,
    explain: Explain | None = None,
) -> dict[str, Any]:
    """A trial: how it fared, on what that stands, and if ``whole`` all that the judge said and that
    a model of the machine (``explain``) says of it.
    """
    interval = claimed(trial)
    is_confirmed = trial.status.is_claim
    speedup = None
    if interval is not None:
        speedup = interval.estimate
    elif trial.objective is not None:
        speedup = 2.0**trial.objective
    row: dict[str, Any] = {
        "trial": trial.number,
        "status": trial.status.value,
        "basis": BASES[is_confirmed],
        "claim": clipped(claim_of(trial, names)),
        "speedup": speedup if trial.status.passed else None,
        "ci_low": interval.low if interval is not None else None,
        "ci_high": interval.high if interval is not None else None,
        "candidate": clipped(brief.show(trial.candidate), MOST_CANDIDATE if whole else MOST_TEXT),
        "key": trial.candidate.key,
    }
    return plain({**row, **_detail(trial, explain)} if whole else row)


def _detail(trial: Trial, explain: Explain | None) -> dict[str, Any]:
    known = None if explain is None else explain(trial.candidate)
    said = () if known is None else known.facts
    last, measured = trial.verdicts[-1][1], trial.measured
    errors = [v.max_error for _, v in trial.verdicts if v.max_error is not None]
    times = {} if measured is None else candidate_times_ns(measured)
    return {
        "code": last.code,
        "evidence": clipped(last.evidence),
        "log": clipped(last.log or ("" if known is None else known.log)),
        "max_error": max(errors, default=None),
        "times_us": {label: ns / 1e3 for label, ns in times.items()},
        "facts": {name: value for name, value in said if not is_time(name)} | dict(last.facts),
        "profile": list(profile_sheet(trial.verdicts[0][1], known).lines),
        "stages": [{"stage": s.value, "status": v.status.value} for s, v in trial.verdicts],
        "proposer": trial.proposer,
        "parents": list(trial.parents),
    }


def leaders(trials: Sequence[Trial], names: Names, brief: Brief, most: int) -> list[dict[str, Any]]:
    """The best trials: the run's best first, then those that were confirmed, then by what screens
    estimate, which claims nothing.
    """
    best = best_trial(list(trials))
    passed = [t for t in trials if t.objective is not None and t.status.passed]
    passed.sort(key=lambda t: (t is not best, t.status is not Status.WIN, *_worth(t), t.number))
    return [trial_view(trial, names, brief, whole=False) for trial in passed[:most]]


def _worth(trial: Trial) -> tuple[bool, float]:
    interval = claimed(trial)
    if interval is not None:
        return False, -interval.estimate
    return True, -(trial.objective or 0.0)


def standing(store: Store) -> dict[str, Any]:
    """How a run stands: its best with what is claimed of it, counts, what was spent."""
    found = summarise(store)
    best = found["best"]
    kept = ("key", "trial", "status", "speedup", "ci_low", "ci_high", "evidence")
    return plain(
        {
            "best": None if best is None else {name: best[name] for name in kept},
            "claim": found["claim"],
            "trials": found["trials"],
            "by_status": found["by_status"],
            "refused": found["refused"],
            "duplicates": found["duplicates"],
            "judging_seconds": found["seconds"],
            "stop": found["stop"],
            "warning": found["warning"],
        }
    )


def problem_view(problem: Problem) -> dict[str, Any]:
    """A problem: tensors, workloads, what is correct."""
    return plain(
        {
            "name": problem.identity,
            "tensors": [
                {"name": t.name, "role": t.role, "dtype": t.dtype, "shape": list(t.shape)}
                for t in problem.tensors
            ],
            "workloads": [w.label for w in problem.workloads],
            "error_bound": problem.error_model.bound,
            "error_bound_source": problem.error_model.source,
            "spaces": list(problem.spaces),
        }
    )


def plan_view(built: Built) -> dict[str, Any]:
    """What a campaign measures, on what, and what may be spent."""
    resolved = built.resolved
    return plain(
        {
            "name": resolved["name"],
            "target": json.loads(json.dumps(resolved["target"], default=str)),
            "evidence": built.target.evidence.value,
            "space": resolved["space"]["kind"],
            "language": built.space.language.value,
            "baseline": built.plan.baseline.name,
            "budget": resolved["budget"],
            "finalists": built.plan.confirm.finalists,
        }
    )


def confirmed_trials(trials: Sequence[Trial]) -> list[int]:
    """Which trials were confirmed, whatever came out."""
    return [t.number for t in trials if t.verdict(Stage.CONFIRM) is not None]
