"""Progress while something lasts: one live panel on a terminal; piped, plain lines at doubling
counts, so a log stays short however long the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from kernelwright.env.types import Problem
from kernelwright.env.words import counted
from kernelwright.search.progress import Calls, Progress

Judge = TypeVar("Judge")


class LiveRun:
    """Shows the progress of a run while it lasts; call it with each `Progress`.

    Args:
        console: where to.
        name: of the run.
        clock: monotonic seconds, by which the wait for a model is told.
    """

    def __init__(
        self, console: Console, name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._name, self._clock = console, name, clock
        self._next_line = self._next_call = self._next_attempt = 1
        self._since: float | None = None
        self._last: Progress | None = None
        self._printed: Progress | None = None
        # The panel is drawn again all the time, as a model may be waited for.
        self._live = (
            Live(console=console, refresh_per_second=8, get_renderable=self.panel)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()
        else:
            self._print_last()

    def __call__(self, progress: Progress) -> None:
        """Take up a new state."""
        self._wait_for(progress.calls)
        before, self._last = self._last, progress
        if self._live:
            if not self._live.is_started:
                self._live.start()
            self._live.refresh()
        elif progress.phase != "search":
            if before is not None and before.phase == "search" and before is not self._printed:
                self._print(before)
            is_one = progress.phase == "confirm" and not progress.note
            if is_one or progress.done == progress.total:
                self._print(progress)
        elif progress.trials >= self._next_line:
            self._next_line = 2 * progress.trials
            self._print(progress)
        elif progress.calls is not None and progress.calls.is_waiting:
            self._print_call(progress.calls)

    def _wait_for(self, calls: Calls | None) -> None:
        """Note since when a model has been thinking."""
        if calls is None or not calls.is_waiting:
            self._since = None
        elif self._since is None:
            self._since = self._clock()

    def _waited_s(self) -> float:
        return 0.0 if self._since is None else self._clock() - self._since

    def _print_call(self, calls: Calls) -> None:
        """A line for a call that begins, or begins again."""
        if calls.again == 0:
            self._next_attempt = 1
            if calls.spent.calls + 1 < self._next_call:
                return
            self._next_call = 2 * (calls.spent.calls + 1)
        elif calls.again < self._next_attempt:
            return
        else:
            self._next_attempt = 2 * calls.again
        self._console.print(calls_line(calls, self._waited_s()), highlight=False, soft_wrap=True)

    def _print_last(self) -> None:
        if self._last is not None and self._last is not self._printed:
            self._print(self._last)

    def _print(self, progress: Progress) -> None:
        self._printed = progress
        self._console.print(_line(progress), highlight=False, soft_wrap=True)

    def panel(self) -> Panel | str:
        """What stands on a terminal now."""
        progress = self._last
        if progress is None:
            return ""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        total = progress.total or progress.done
        bar = ProgressBar(total=total, completed=progress.done, width=40)
        grid.add_row(progress.phase, bar)
        grid.add_row("", _line(progress))
        if progress.calls is not None:
            grid.add_row("model", calls_line(progress.calls, self._waited_s()))
        if progress.best is not None:
            grid.add_row("best", str(progress.best.candidate))
        return Panel(grid, title=self._name, title_align="left", expand=False)


# What nobody notices to wait.
_NOTICED_S = 1.0


def calls_line(calls: Calls, waited_s: float) -> str:
    """How many calls of models were made, what that cost, and how the one on its way is doing."""
    budget, spent = calls.budget, calls.spent
    of = f" of {budget.calls:,}" if budget.calls is not None else ""
    made = f"{counted(spent.calls, 'call')}{of}"
    if calls.is_waiting:
        made = f"call {spent.calls + 1:,}{of}"
    tokens = f"{spent.tokens:,}{f' of {budget.tokens:,}' if budget.tokens is not None else ''}"
    parts = [made, f"{tokens} tokens"]
    if spent.picos or budget.usd is not None:
        limit = f" of {budget.usd:g}" if budget.usd is not None else ""
        parts.append(f"{spent.usd:.4g}{limit} USD")
    if waited_s >= _NOTICED_S:
        parts.append(f"waiting {waited_s:.0f} s")
    if calls.again:
        parts.append(f"tried again {counted(calls.again, 'time')} ({calls.reason:.120})")
    return ", ".join(parts)


def _line(progress: Progress) -> str:
    if progress.phase == "confirm" and progress.note:
        return f"{progress.note}, {progress.seconds:.1f} s"
    if progress.phase == "confirm":
        return f"{progress.done}/{progress.total} finalists confirmed, {progress.seconds:.1f} s"
    if progress.phase == "race":
        done = f"{progress.done}/{progress.total} timed"
        return f"race, {progress.note}: {done}, {progress.seconds:.1f} s"
    of = f"/{progress.total}" if progress.total else ""
    best = progress.note or "nothing valid yet"
    if progress.best is not None and progress.best.objective is not None:
        sample = 2**progress.best.objective
        best = f"best so far {sample:.3f}x at trial {progress.best.number}"
    failed = sum(n for status, n in progress.by_status.items() if status != "ok")
    again = " (replayed)" if progress.replayed else ""
    seconds = f"{progress.seconds:.1f} s"
    return f"{progress.done}{of} trials, {failed} failed, {best}, {seconds}{again}"


class LiveAudit:
    """Shows how far an audit has come, program by program.

    Args:
        console: where to.
        total: how many programs there are, where that is known.
        noun: what they are called.
    """

    def __init__(self, console: Console, total: int | None, noun: str = "program") -> None:
        self._console, self._total, self._noun = console, total, noun
        self._live = Live(console=console, refresh_per_second=8) if console.is_terminal else None
        self._begun, self._count, self._next_line = time.monotonic(), 0, 1

    def __enter__(self) -> LiveAudit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def step(self, what: str) -> None:
        """Take up the next program."""
        self._count += 1
        of = f" of {self._total}" if self._total else ""
        seconds = time.monotonic() - self._begun
        line = f"{self._noun} {self._count}{of}, {what}, {seconds:.1f} s"
        if self._live:
            if not self._live.is_started:
                self._live.start()
            grid = Table.grid()
            grid.add_row(ProgressBar(total=self._total, completed=self._count, width=40))
            grid.add_row(line)
            title = "audit" if self._noun == "program" else "record"
            self._live.update(Panel(grid, title=title, title_align="left", expand=False))
        elif self._count in (self._next_line, self._total):
            self._next_line *= 2
            self._console.print(line, soft_wrap=True)

    def at(self, count: int, total: int, what: str) -> None:
        """The latest of ``total``, of which ``count`` are done."""
        self._count, self._total = count - 1, total
        self._next_line = max(self._next_line, 1 << (count - 1).bit_length())
        self.step(what)

    def watching(self, make: Callable[..., Judge]) -> Callable[..., Judge]:
        """The maker of a judge, each call of which is a step."""

        def watched(problem: Problem, **options: Any) -> Judge:
            self.step(problem.name)
            return make(problem, **options)

        return watched
