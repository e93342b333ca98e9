"""A run of several tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console

from kernelwright.display.model import model_lines
from kernelwright.display.tables import print_table
from kernelwright.display.words import first_line
from kernelwright.env.words import counted


def print_tasks(console: Console, summary: Mapping[str, Any]) -> None:
    """A run of tasks: a line a task, the greatest share of the weighted total first, then all."""
    rows = sorted(summary["tasks"], key=lambda row: -(row["share"] or 0.0))
    headers = ("task", "weight", "share", "time", "speedup", "status", "trials", "batches")
    print_table(console, headers, [_task_row(row) for row in rows])
    total, why = summary["total"], summary["turns"]
    if total["speedup"] is not None:
        before, after = total["baseline_ns"] / 1e6, total["time_ns"] / 1e6
        says = (
            f"{before:.2f} -> {after:.2f} ms, {total['speedup']:.3f}x, baselines kept where faster"
        )
        console.print(f"weighted total: {says}", soft_wrap=True)
    for row in rows:
        if row["best"] is None:
            console.print(f"{row['name']}: {_unsolved(row)}", soft_wrap=True)
    counts = ", ".join(f"{n} {status}" for status, n in summary["by_status"].items()) or "none"
    console.print(f"trials: {summary['trials']} ({counts})", soft_wrap=True)
    for line in served(summary["served"], [row["cache"] for row in rows]):
        console.print(line, soft_wrap=True)
    for line in model_lines(summary):
        console.print(line, soft_wrap=True)
    turns = ", ".join(f"{n} {word}" for word, n in why.items()) or "none"
    shared = "with" if summary["shared"] else "without"
    line = f"batches by {summary['scheduler']}, {shared} sharing: {turns}"
    console.print(line, soft_wrap=True)
    search, confirm = summary["seconds_search"], summary["seconds_confirm"]
    seconds = f"{summary['seconds']:.2f} s (search {search:.2f}, confirmation {confirm:.2f})"
    console.print(f"time: {seconds}", soft_wrap=True)
    if summary["stop"]:
        stop = summary["stop"]
        console.print(f"stopped: {stop['reason']} ({stop['rule']})", soft_wrap=True)
    if not summary["finished"]:
        console.print("not finished: the same `run` goes on")
    console.print(f"run: {summary['out']}; each task's is in a folder of its name", soft_wrap=True)


def served(count: int, caches: Iterable[Mapping[str, Any] | None]) -> list[str]:
    """How many trials the tuning cache served; where it had records and served none, why."""
    if count:
        return [f"served: {count} of them from the tuning cache, not judged again"]
    known = [cache for cache in caches if cache is not None and cache["records"]]
    if not known:
        return []
    records = sum(cache["records"] for cache in known)
    return [
        f"served: none of the tuning cache's {counted(records, 'record')}: {known[0]['reason']}"
    ]


def _task_row(row: Mapping[str, Any]) -> tuple[object, ...]:
    best = row["best"]
    share = "-" if row["share"] is None else f"{100 * row['share']:.1f}%"
    time_us = "-" if row["time_ns"] is None else f"{row['time_ns'] / 1000:.1f} us"
    speedup = "-" if best is None else f"{best['speedup']:.3f}x"
    status = "none" if best is None else best["status"]
    weight = f"{row['weight']:g}"
    return row["name"], weight, share, time_us, speedup, status, row["trials"], row["batches"]


def _unsolved(row: Mapping[str, Any]) -> str:
    """Why a task has no winner."""
    if row["reason"] is not None:
        return f"no candidate: {row['reason']}"
    if not row["failures"]:
        return "nothing was tried"
    first = row["failures"][0]
    where = f"{first['status']} {first['code']}: {first_line(first)}"
    return f"nothing passed in {counted(row['trials'], 'trial')}; {first['count']} {where}"
