"""What a run of many tasks says: the object that ``run`` and ``show`` print."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kernelwright.env.types import Measurement, Role, Unpaired
from kernelwright.search.answering import failures_together
from kernelwright.search.store import Store
from kernelwright.search.summary import best_trial, summarise
from kernelwright.search.tasks.campaign import FINISHED, TURN
from kernelwright.search.trial import Trial

# The entry of a run's store that says what tasks there are, by name.
TASKS = "tasks"
# What is said of a task, of all that is known of its run.
_KEYS = ("best", "claim", "cache", "failures", "finished", "stop")
# What is counted in a run and added up over tasks: by itself, and by name.
_SUMS = ("trials", "served", "calls", "tokens", "usd")
_COUNTS = ("by_status", "replies", "answered_by", "unanswered")
# What is merged otherwise.
_MODELS = ("failures_by", "unpriced")


def summarise_tasks(
    store: Store, tasks: Mapping[str, Mapping[str, Any]], stores: Mapping[str, Store]
) -> dict[str, Any]:
    """The state of a run of tasks: a row a task, their weighted total time, what was spent.

    Args:
        store: of the turns.
        tasks: ``weight``, ``problem``, ``workloads`` and ``reason`` (why there is no candidate, or
            None) of each, by name.
        stores: of the tasks that have one already.

    Returns:
        ``tasks``: a row each with ``name weight problem workloads reason batches share`` (its part
        of the weighted total), ``best claim cache failures finished stop`` as of a run, and
        ``time_ns baseline_ns`` (the best candidate's and the baseline's, null where nothing
        passed); of each task and of all ``trials served calls tokens usd by_status replies
        answered_by unanswered failures_by unpriced``; ``total``: the weighted sums over the tasks
        that have a time, with the baseline where it is the faster; ``unsolved``: the names of the
        tasks without a valid candidate; ``turns``: how many batches were given out and why.
    """
    events, spent = store.events(), store.spent()
    turns = [e.data for e in events if e.kind == TURN]
    batches = Counter(turn["task"] for turn in turns)
    rows = [
        {"name": name, **task, "batches": batches[name], **_row(stores.get(name))}
        for name, task in tasks.items()
    ]
    timed = [row for row in rows if row["time_ns"] is not None]
    kept = {row["name"]: min(row["time_ns"], row["baseline_ns"]) for row in timed}
    total = sum(row["weight"] * kept[row["name"]] for row in timed)
    baseline = sum(row["weight"] * row["baseline_ns"] for row in timed)
    for row in rows:
        row["share"] = row["weight"] * kept[row["name"]] / total if row["name"] in kept else None
    stops = [e.data for e in events if e.kind == "stopped"]
    return {
        "tasks": rows,
        "total": {
            "time_ns": total,
            "baseline_ns": baseline,
            "speedup": baseline / total if timed else None,
        },
        "unsolved": [row["name"] for row in rows if row["best"] is None],
        **{key: sum(row[key] for row in rows) for key in _SUMS},
        **{key: _added(row[key] for row in rows) for key in _COUNTS},
        "failures_by": failures_together(row["failures_by"] for row in rows),
        "unpriced": list(dict.fromkeys(model for row in rows for model in row["unpriced"])),
        "turns": dict(sorted(Counter(turn["why"] for turn in turns).items())),
        "seconds": spent.search_s + spent.confirm_s,
        "seconds_search": spent.search_s,
        "seconds_confirm": spent.confirm_s,
        "finished": bool(events) and events[-1].kind == FINISHED,
        "stop": stops[-1] if stops else None,
    }


def _row(store: Store | None) -> dict[str, Any]:
    if store is None:
        nothing: dict[str, Any] = {**dict.fromkeys(_KEYS), "failures": [], "finished": False}
        nothing |= dict.fromkeys(_SUMS, 0) | {key: {} for key in _COUNTS}
        nothing |= {"failures_by": {}, "unpriced": []}
        return {**nothing, "time_ns": None, "baseline_ns": None}
    summary, best = summarise(store), best_trial(store.trials())
    baseline_ns = None if best is None else _baseline_ns(best)
    time_ns = None if baseline_ns is None else baseline_ns / summary["best"]["speedup"]
    return {
        **{key: summary[key] for key in (*_KEYS, *_SUMS, *_COUNTS, *_MODELS)},
        "time_ns": time_ns,
        "baseline_ns": baseline_ns,
    }


def _added(counts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Counts by name, added up."""
    out: dict[str, float] = {}
    for each in counts:
        for name, count in each.items():
            out[name] = out.get(name, 0) + count
    return dict(sorted(out.items()))


def _baseline_ns(best: Trial) -> float | None:
    """The baseline's time beside the best trial: the sum over workloads of the medians."""
    measured = best.measured
    rows = [m for m in measured.measurements if m.role is Role.BASELINE] if measured else []
    return sum(_median_ns(m) for m in rows) or None


def _median_ns(measurement: Measurement) -> float:
    samples = measurement.samples
    if isinstance(samples, Unpaired):
        return statistics.median(samples.reference_ns)
    return statistics.median(r for pair in samples for _, r in pair.samples_ns)
