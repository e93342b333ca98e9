"""What the command line shows: live progress, and reports as text. It draws; ``cli.py`` prints.

On a terminal a run has one live panel; piped, it prints plain lines at doubling trial counts, so a
log stays short however long the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from kernelwright.search.campaign import Progress


class LiveRun:
    """Shows the progress of a run while it lasts; call it with each `Progress`."""

    def __init__(self, console: Console, name: str, budget: int | None) -> None:
        self._console, self._name, self._budget = console, name, budget
        self._live = Live(console=console, refresh_per_second=8) if console.is_terminal else None
        self._next_line = 1
        self._phase = ""

    def __enter__(self) -> LiveRun:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Take up a new state."""
        if self._live:
            self._live.update(self._panel(progress))
            return
        if progress.phase != self._phase:
            self._phase, self._next_line = progress.phase, 1
        if progress.phase == "search" and progress.trials >= self._next_line:
            self._next_line = 2 * progress.trials
            self._console.print(_line(progress, self._budget), highlight=False, soft_wrap=True)

    def _panel(self, progress: Progress) -> Panel:
        grid = Table.grid(padding=(0, 2))
        total = self._budget or progress.trials
        grid.add_row(progress.phase, ProgressBar(total=total, completed=progress.trials, width=40))
        grid.add_row("", _line(progress, self._budget))
        if progress.best is not None:
            grid.add_row("best", str(progress.best.candidate))
        return Panel(grid, title=self._name, title_align="left", expand=False)


def _line(progress: Progress, budget: int | None) -> str:
    of = f"/{budget}" if budget else ""
    best = "nothing valid yet"
    if progress.best is not None and progress.best.objective is not None:
        best = f"best sample {2**progress.best.objective:.3f}x at trial {progress.best.number}"
    failed = sum(n for status, n in progress.by_status.items() if status != "ok")
    again = " (replayed)" if progress.replayed else ""
    return f"{progress.trials}{of} trials, {failed} failed, {best}, {progress.seconds:.1f} s{again}"


def summary_text(summary: Mapping[str, Any]) -> str:
    """A run's summary for people: the claim first, then what it stands on."""
    best, lines = summary["best"], []
    base = summary["baseline"]
    if best is None:
        lines.append("nothing valid was found")
    else:
        interval = "one screen sample, not confirmed"
        if best["ci_low"] is not None:
            interval = f"95% interval {best['ci_low']:.3f} to {best['ci_high']:.3f}"
        claim = f"{best['status']}: {best['speedup']:.3f}x the {base['name']} baseline"
        lines.append(f"{claim} ({interval}, {best['evidence']})")
        lines.append("  " + " ".join(f"{k}={v}" for k, v in best["candidate"].items()))
        lines.append(f"  candidate {best['key']}, trial {best['trial']}")
    if summary["library_ratio"] is not None:
        lines.append(f"library: {summary['library_ratio']:.3f} of its speed")
    counts = ", ".join(f"{n} {status}" for status, n in summary["by_status"].items()) or "none"
    lines.append(f"trials: {summary['trials']} ({counts})")
    unheard = {key: summary[key] for key in ("refused", "duplicates") if summary[key]}
    lines.extend(f"{key}: {count} proposals" for key, count in unheard.items())
    search, confirm = summary["seconds_search"], summary["seconds_confirm"]
    lines.append(
        f"time: {summary['seconds']:.2f} s (search {search:.2f}, confirmation {confirm:.2f})"
    )
    if summary["tokens"]:
        lines.append(f"model: {summary['tokens']} tokens, {summary['usd']:.4f} USD")
    if summary["stop"]:
        lines.append(f"stopped: {summary['stop']['reason']} ({summary['stop']['rule']})")
    if not summary["finished"]:
        lines.append("not finished: the same `run` goes on")
    if summary["by_status"].get("broken"):
        lines.append("WARNING: the judge itself broke on some trials; please report this")
    lines.append(f"run: {summary['out']}")
    return "\n".join(lines)


def check_text(plan: Mapping[str, Any]) -> str:
    """A campaign's plan for people."""
    space, budget = plan["space"], plan["budget"]
    share = 100 * plan["candidates"] / space["valid"]
    limits = ", ".join(f"{v:g} {k}" for k, v in budget.items() if v is not None)
    work = f"{plan['problem']} {', '.join(plan['workloads'])}"
    rows = [
        f"{plan['name']}: {work} on {plan['target']} ({plan['evidence']})",
        f"space: {space['combinations']:,} combinations, {space['valid']:,} valid",
        f"budget: {limits}; at most {plan['candidates']:,} candidates "
        f"({share:.1f}% of the space) by {plan['driver']}",
        f"baseline: {plan['baseline']['name']} ({plan['baseline']['key'][:12]})",
        f"then {plan['finalists']} finalists are confirmed",
        "missing on this machine: " + (", ".join(plan["missing"]) or "nothing"),
    ]
    return "\n".join(rows)


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A plain table; numbers are right-aligned."""
    out = Table(box=None, pad_edge=False, header_style="bold")
    for i, header in enumerate(headers):
        numeric = bool(rows) and all(isinstance(row[i], int | float | None) for row in rows)
        out.add_column(header, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        out.add_row(*(_cell(value) for value in row))
    return out


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "ok" if value else "FAIL"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
