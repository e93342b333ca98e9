"""Scoring runs: what ``kernelwright score`` prints of the folders that it is given.

A folder of many tasks stands for its tasks' folders, each of which is a run; a task that has not
begun, or never had a candidate, is one without a result.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwright.configs.api import show
from kernelwright.configs.errors import ConfigError
from kernelwright.evaluators.naive import NAIVE_PROFILE
from kernelwright.evaluators.rates import Rate
from kernelwright.search.scores import (
    Mean,
    Scored,
    fast,
    mean_of_claims,
    mean_of_confirmed,
    scored,
)
from kernelwright.search.store import DATABASE, NotBegunError, SqliteStore, is_begun
from kernelwright.search.summary import best_trial
from kernelwright.search.tasks.summary import TASKS

THRESHOLDS = (1.0, 1.05, 1.1, 1.5, 2.0)
# What is said of a run.
_KEYS = (
    *("run", "name", "problem", "profile", "status", "confirmed", "claim", "speedup", "library"),
    *("library_speedup", "evidence", "machine", "baseline", "finished", "warning"),
)


def score(
    folders: Sequence[str | Path],
    thresholds: Sequence[float] = THRESHOLDS,
    problems: int | None = None,
) -> dict[str, Any]:
    """What runs show together: the object that ``score --json`` prints. Every run counts as one
    problem, and so does every task of a run of many, whatever its weight.

    Kinds of evidence are not mixed: a share of claims of which some are a clock's and some are a
    model's is a share of nothing. Machines and baselines may be, and ``notes`` say so.

    Args:
        folders: of runs, finished or not.
        thresholds: the p of fast_p, ratios above 0.
        problems: how many there are in all; those without a run count as failures.

    Raises:
        StoreError: if a folder holds no run.
        ConfigError: if one stands twice, there are more than ``problems``, a threshold is no ratio,
            or the runs' evidence is of several kinds.
    """
    runs = [run for folder in folders for run in _runs(folder)]
    _check(runs, thresholds, problems)
    rows, found = [], []
    for folder in runs:
        row, one = _read(folder)
        rows.append(row)
        found.append(one)
    evidence = _one_kind(rows)
    missing = 0 if problems is None else problems - len(rows)
    found += [Scored(f"missing {number}") for number in range(missing)]
    confirmed = sum(one.interval is not None for one in found)
    return {
        "warning": next((row["warning"] for row in rows if row["warning"]), None),
        "runs": rows,
        "missing": missing,
        "evidence": evidence,
        "confirmed": _share(Rate(confirmed, len(found))),
        "wins": sum(one.is_faster(1) for one in found),
        "fast": [_fast(found, p) for p in sorted(set(thresholds))],
        "geometric_mean": _mean(mean_of_claims(found)),
        "geometric_mean_of_confirmed": _mean(mean_of_confirmed(found)),
        "notes": _notes(rows),
    }


def _runs(folder: str | Path) -> list[str | Path]:
    """A run, or those of its tasks, begun or not."""
    place = _place(folder)
    with SqliteStore(place / DATABASE, readonly=True) as store:
        meta = store.meta()
    if not meta:
        raise NotBegunError(place / DATABASE)
    return [place / task for task in json.loads(meta.get(TASKS, "[]"))] or [folder]


def _place(folder: str | Path) -> Path:
    path = Path(folder)
    return path.parent if path.name == DATABASE else path


def _check(
    folders: Sequence[str | Path], thresholds: Sequence[float], problems: int | None
) -> None:
    seen: set[Path] = set()
    for folder in folders:
        place = _place(folder).resolve()
        if place in seen:
            raise ConfigError(str(folder), None, "", "every run once", "it twice")
        seen.add(place)
    for p in thresholds:
        if not 0 < p < math.inf:
            raise ConfigError("score", None, "--p", "a finite ratio above 0", f"{p:g}")
    if problems is not None and problems < len(seen):
        raise ConfigError("score", None, "--of", f"at least the {len(seen)} runs", str(problems))


def _read(folder: str | Path) -> tuple[dict[str, Any], Scored]:
    if not is_begun(_place(folder) / DATABASE):
        nothing = dict.fromkeys(_KEYS) | {"confirmed": False, "finished": False}
        return {**nothing, "run": str(folder)}, Scored(str(folder))
    summary = show(folder)
    with SqliteStore(Path(summary["out"]) / DATABASE, readonly=True) as store:
        best, meta = best_trial(store.trials()), store.meta()
    config = json.loads(meta.get("config", "{}"))
    one = scored(str(folder), best)
    row = {
        "run": str(folder),
        "name": summary["name"],
        "problem": config.get("problem"),
        "profile": config.get("judge", {}).get("profile"),
        "status": one.status.value if one.status else None,
        "confirmed": one.is_claim,
        "claim": summary["claim"],
        "speedup": _speedup(one),
        "library": summary["library"],
        "library_speedup": None,
        "evidence": summary["best"]["evidence"] if summary["best"] else None,
        "machine": summary["best"]["machine"] if summary["best"] else meta.get("machine") or None,
        "baseline": summary["baseline"]["name"] if summary["baseline"] else None,
        "finished": summary["finished"],
        "warning": summary["warning"],
    }
    if summary["library_ratio"] is not None:
        row["library_speedup"] = {
            "estimate": summary["library_ratio"],
            "ci_low": summary["library_low"],
            "ci_high": summary["library_high"],
        }
    return row, one


def _one_kind(rows: Sequence[dict[str, Any]]) -> str | None:
    """The kind of evidence that all runs with a result have; the naive judge's is its own."""
    kinds: dict[str, list[str]] = {}
    for row in rows:
        if row["evidence"] is not None:
            naive = ", naive judge" if row["profile"] == NAIVE_PROFILE else ""
            kinds.setdefault(f"{row['evidence']}{naive}", []).append(row["run"])
    if len(kinds) > 1:
        listed = "; ".join(f"{kind}: {', '.join(runs)}" for kind, runs in kinds.items())
        expected = "runs of one kind of evidence (score each kind by itself)"
        raise ConfigError("score", None, "", expected, listed)
    return next(iter(kinds), None)


def _notes(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What a reader of the scores has to know of the runs."""
    notes = []
    machines = sorted({row["machine"] for row in rows if row["machine"]})
    if len(machines) > 1:
        what = "; ".join(machines)
        notes.append(f"runs of {len(machines)} machines, so the scores are of none of them: {what}")
    baselines = sorted({row["baseline"] for row in rows if row["baseline"]})
    if len(baselines) > 1:
        notes.append(f"speedups over different baselines: {', '.join(baselines)}")
    problems = [row["problem"] for row in rows if row["problem"] is not None]
    again = [row["run"] for row in rows if problems.count(row["problem"]) > 1]
    if again:
        notes.append(f"the same problem more than once, each run counts: {', '.join(again)}")
    unfinished = [row["run"] for row in rows if not row["finished"]]
    if unfinished:
        notes.append(f"not finished: {', '.join(unfinished)}")
    unsure = [row["run"] for row in rows if row["speedup"] and row["speedup"]["ci_low"] is None]
    if unsure:
        listed = ", ".join(unsure)
        notes.append(f"not confirmed, or without limits, so they count as failures: {listed}")
    return notes


def _fast(problems: Sequence[Scored], p: float) -> dict[str, Any]:
    found = fast(problems, p)
    estimated = {"by_estimate": found.estimated, "unclaimed": found.unclaimed}
    return {"p": p, **_share(found.claimed), **estimated}


def _share(rate: Rate) -> dict[str, Any]:
    limits = {"ci_low": rate.low, "ci_high": rate.high}
    return {"count": rate.count, "total": rate.total, "share": rate.share, **limits}


def _speedup(one: Scored) -> dict[str, float | None] | None:
    """A speedup as JSON; without a confirmation that has limits it has an estimate alone."""
    if one.estimate is None:
        return None
    low, high = (one.interval.low, one.interval.high) if one.interval else (None, None)
    return {"estimate": one.estimate, "ci_low": low, "ci_high": high}


def _mean(found: Mean | None) -> dict[str, float | None] | None:
    """A mean as JSON; an upper limit that cannot be told is null."""
    if found is None:
        return None
    low, high = found.interval.low, found.interval.high
    limits = {"ci_low": low, "ci_high": high if math.isfinite(high) else None}
    return {"estimate": found.interval.estimate, **limits}
