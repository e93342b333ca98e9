"""What the command line shows: live progress, and reports as text. It draws; ``cli.py`` prints.

On a terminal a run has one live panel; piped, it prints plain lines at doubling trial counts, so a
log stays short however long the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from kernelwright.env.types import Problem
from kernelwright.evaluators.cpu.text import printable
from kernelwright.evaluators.rates import Rate
from kernelwright.evaluators.statistics import CONFIDENCE
from kernelwright.evaluators.zoo.catalogue import FAMILIES, Priority, catalogue
from kernelwright.evaluators.zoo.page import answered, by_class, how_missed
from kernelwright.search.campaign import Progress
from kernelwright.search.claims import in_figures

Judge = TypeVar("Judge")

# Classes of failure that a summary shows.
MOST_FAILURES = 5


class LiveRun:
    """Shows the progress of a run while it lasts; call it with each `Progress`."""

    def __init__(self, console: Console, name: str) -> None:
        self._console, self._name = console, name
        self._live = Live(console=console, refresh_per_second=8) if console.is_terminal else None
        self._next_line = 1
        self._last: Progress | None = None
        self._printed: Progress | None = None

    @property
    def shown(self) -> bool:
        """Whether there was anything to show."""
        return self._last is not None

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
        if self._live:
            if not self._live.is_started:
                self._live.start()
            self._live.update(self._panel(progress))
        elif progress.phase != "search":
            if self._last is not None and self._last.phase == "search":
                self._print_last()
            is_one = progress.phase == "confirm" and not progress.note
            if is_one or progress.done == progress.total:
                self._print(progress)
        elif progress.trials >= self._next_line:
            self._next_line = 2 * progress.trials
            self._print(progress)
        self._last = progress

    def _print_last(self) -> None:
        if self._last is not None and self._last is not self._printed:
            self._print(self._last)

    def _print(self, progress: Progress) -> None:
        self._printed = progress
        self._console.print(_line(progress), highlight=False, soft_wrap=True)

    def _panel(self, progress: Progress) -> Panel:
        grid = Table.grid(padding=(0, 2))
        total = progress.total or progress.done
        grid.add_row(progress.phase, ProgressBar(total=total, completed=progress.done, width=40))
        grid.add_row("", _line(progress))
        if progress.best is not None:
            grid.add_row("best", str(progress.best.candidate))
        return Panel(grid, title=self._name, title_align="left", expand=False)


def _line(progress: Progress) -> str:
    if progress.phase == "confirm" and progress.note:
        return f"{progress.note}, {progress.seconds:.1f} s"
    if progress.phase == "confirm":
        return f"{progress.done}/{progress.total} finalists confirmed, {progress.seconds:.1f} s"
    if progress.phase == "race":
        return f"{progress.done}/{progress.total} raced, {progress.seconds:.1f} s"
    of = f"/{progress.total}" if progress.total else ""
    best = progress.note or "nothing valid yet"
    if progress.best is not None and progress.best.objective is not None:
        sample = 2**progress.best.objective
        best = f"best so far {sample:.3f}x at trial {progress.best.number}"
    failed = sum(n for status, n in progress.by_status.items() if status != "ok")
    again = " (replayed)" if progress.replayed else ""
    seconds = f"{progress.seconds:.1f} s"
    return f"{progress.done}{of} trials, {failed} failed, {best}, {seconds}{again}"


def summary_text(summary: Mapping[str, Any]) -> str:
    """A run's summary for people: the claim first, then what it stands on."""
    best, lines = summary["best"], []
    base = summary["baseline"]
    if summary.get("warning"):
        lines.append(f"WARNING: {summary['warning']}")
    if best is None:
        lines.append("nothing valid was found")
    else:
        lines.append(f"{summary['claim']} ({best['evidence']})")
        lines += ["  " + line for line in _candidate(best["candidate"], best["language"])]
        lines.append(f"  candidate {best['key']}, trial {best['trial']}")
        known = [
            *best["log"].splitlines(),
            *(f"{k}={_number(v)}" for k, v in _worth_saying(best["facts"]).items()),
        ]
        if known:
            lines.append("  " + " ".join(known))
    lines += _front(summary.get("front"))
    if base is not None:
        given = base.get("candidate", {})
        knobs = " ".join(_candidate(given, base["language"])) if isinstance(given, dict) else ""
        lines.append(f"baseline: {base['name']} {base['key']} {knobs}".rstrip())
    light = summary["speed_of_light"]
    if light["share"] is not None:
        share = f"the best is at {light['share']:.3f} of it"
        lines.append(f"{_light_line(light['bounds'])}; {share}")
    lines += _recording(summary.get("notes", ()))
    if best is not None and best["evidence"] == "measured":
        lines.append(f"on: {best['machine']}")
        lines += _host(best["facts"])
    if best is not None and best["level"] is not None:
        level = f"{min(100 * best['level'], 99.9999):.6g}%"
        beyond = f", {100 * best['least_effect']:.2g}% beyond 1" if best["least_effect"] else ""
        lines.append(f"decided: by the interval at {level}{beyond}, as the error rate is shared")
    counts = ", ".join(f"{n} {status}" for status, n in summary["by_status"].items()) or "none"
    lines.append(f"trials: {summary['trials']} ({counts})")
    lines += [
        f"  {row['count']} {row['status']} {row['code']}, the first (trial {row['trial']}): "
        f"{_first_line(row)}"
        for row in summary["failures"][:MOST_FAILURES]
    ]
    if summary["failures"]:
        lines.append(f"judge one again: kernelwright show {summary['out']} --replay TRIAL")
    lines += _served(summary["served"], [summary.get("cache")])
    unheard = {key: summary[key] for key in ("refused", "duplicates") if summary[key]}
    lines.extend(f"{key}: {count} proposals" for key, count in unheard.items())
    search, confirm = summary["seconds_search"], summary["seconds_confirm"]
    lines.append(
        f"time: {summary['seconds']:.2f} s (search {search:.2f}, confirmation {confirm:.2f})"
    )
    if summary["replies"]:
        kinds = ", ".join(f"{n} {kind}" for kind, n in summary["replies"].items())
        lines.append(f"replies of the model: {kinds}")
    if summary["answered_by"]:
        lines.append(
            "answers of: " + ", ".join(f"{n} {name}" for name, n in summary["answered_by"].items())
        )
    if summary["tokens"]:
        lines.append(f"model: {summary['tokens']} tokens, {summary['usd']:.4f} USD")
    lost = summary["unanswered"]
    if lost["calls"]:
        most = f"{lost['tokens']} tokens, {lost['usd']:.4f} USD at most"
        lines.append(f"calls on their way when the run was killed: {lost['calls']} ({most})")
    lines += _simulated(summary.get("simulated"))
    if summary["stop"]:
        lines.append(f"stopped: {summary['stop']['reason']} ({summary['stop']['rule']})")
    if summary["unconfirmed"]:
        numbers = ", ".join(map(str, summary["unconfirmed"]))
        lines.append(f"not confirmed for lack of time: trials {numbers}")
    if not summary["finished"]:
        lines.append("not finished: the same `run` goes on")
    if summary["by_status"].get("broken"):
        lines.append("WARNING: the judge itself broke on some trials; please report this")
    lines.append(f"run: {summary['out']}")
    return "\n".join(lines)


def _simulated(found: Mapping[str, Any] | None) -> list[str]:
    """What became of the faults that a simulated model injected."""
    if found is None:
        return []
    from kernelwright.agents.report import matrix_lines

    lines = ["faults that the simulated model injected, by what they were filed as:"]
    lines += [f"  {line}" for line in matrix_lines(found)]
    if any(not row["sound"] for row in found["rows"]):
        lines.append("  ! is no class for such a fault")
    if found["believed"]:
        named = ", ".join(f"{n} {tag}" for tag, n in found["believed"].items())
        lines.append(f"WARNING: the judge believed cheats: {named}")
    if found["seconds"]:
        lines.append(f"  virtual time of its answers: {found['seconds']:.1f} s")
    return lines


MOST_OF_A_FRONT = 12


def _front(front: Mapping[str, Any] | None) -> list[str]:
    """What no other trial beats in everything, the fastest first."""
    if front is None:
        return []
    rows = front["rows"]
    lines = [f"front of {', '.join(front['objectives'])}: {len(rows)} trials, by their screens"]
    for row in rows[:MOST_OF_A_FRONT]:
        facts = [f"{k}={'?' if v is None else _number(v)}" for k, v in row["facts"].items()]
        speedup = f"{row['speedup']:.3f}x"
        lines.append("  " + " ".join([f"trial {row['trial']}", speedup, *facts]))
    if len(rows) > MOST_OF_A_FRONT:
        lines.append(f"  and {len(rows) - MOST_OF_A_FRONT} more (--json has all)")
    return lines


# The most of a refusal that a summary shows.
_LINE = 500


def _first_line(failure: Mapping[str, Any]) -> str:
    text = failure["evidence"] or failure["log"] or "nothing more is known"
    line = str(text).splitlines()[0]
    # The judge's own sentences are whole; a compiler's line may be of any length.
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"


def _candidate(given: Mapping[str, Any] | str, language: str) -> list[str]:
    """A candidate on a few lines; a source is only counted."""
    if not isinstance(given, str):
        return [" ".join(f"{k}={v}" for k, v in given.items())]
    if language == "source":
        return [f"{len(given.splitlines())} lines of C"]
    return given.splitlines() or ["no directives"]


def _number(value: float) -> str:
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _recording(notes: Sequence[str]) -> list[str]:
    """What there is to say of the recording that judges."""
    return [f"recording: {'; '.join(notes)}"] if notes else []


def check_text(plan: Mapping[str, Any]) -> str:
    """A campaign's plan for people."""
    space, budget = plan["space"], plan["budget"]
    share = ""
    if space["finite"] and plan["candidates"] is not None:
        share = f" ({100 * plan['candidates'] / space['valid']:.1f}% of the space)"
    outlay = plan["outlay"]
    is_estimate = budget["seconds"] is not None or (outlay and outlay["proposals"] is not None)
    about = "about" if is_estimate else "at most"
    count = "no number of" if plan["candidates"] is None else f"{about} {plan['candidates']:,}"
    size = (
        f"{space['combinations']:,} combinations, {space['valid']:,} valid"
        if space["finite"]
        else f"{space['kind']}, open"
    )
    limits = ", ".join(f"{v:g} {k}" for k, v in budget.items() if v is not None)
    # What has no extents has an empty label.
    work = " ".join([plan["problem"], *filter(None, [", ".join(plan["workloads"])])])
    rows = [
        f"{plan['name']}: {work} on {plan['target']} ({plan['evidence']})",
        *_recording(plan["notes"]),
        f"space: {size}",
        f"budget: {limits}; {count} candidates{share} by {plan['driver']}",
        f"baseline: {plan['baseline']['name']} ({plan['baseline']['key']})",
        _light_line(plan["bounds"]) + _reach(plan),
        f"then up to {plan['finalists']} finalists are confirmed, until one wins",
        "missing on this machine: " + (", ".join(plan["missing"]) or "nothing"),
    ]
    if outlay:
        rows.insert(3, outlay["says"])
    if plan["stop"]:
        rows.insert(-3, f"stops early at: {_stops(plan['stop'])}")
    warnings = [plan["warning"], *plan["beyond"]]
    return "\n".join([*(f"WARNING: {text}" for text in warnings if text), *rows])


def _light_line(bounds: Sequence[Mapping[str, Any]]) -> str:
    """The speed of light of each workload, and what sets it."""
    if not bounds:
        return "speed of light: not known here"
    each = [
        f"{bound['floor_ns'] / 1e3:.4g} us{_by(bound['limit'])}"
        + (f" for {bound['workload']}" if len(bounds) > 1 else "")
        for bound in bounds
    ]
    return f"speed of light: {', '.join(each)}"


def _by(limit: str | None) -> str:
    return f" ({limit})" if limit else ""


def _reach(plan: Mapping[str, Any]) -> str:
    if not plan["bounds"]:
        return ""
    if plan["reach"] is None:
        return "; how near candidates come to it is not known before a run"
    return f"; the best of this space is at {plan['reach']:.3f} of it"


def _stops(stop: Mapping[str, Any]) -> str:
    words = []
    if "roofline" in stop:
        words.append(f"{stop['roofline']:g} of the roofline")
    if "target" in stop:
        goal = stop["target"]
        words.append(f"{goal['us']:g} us" if isinstance(goal, Mapping) else f"{goal:g}x")
    if "plateau" in stop:
        words.append(f"{stop['plateau']} trials without a better one")
    return ", ".join(words)


def record_text(summary: dict[str, Any]) -> str:
    """What a recording holds, in lines."""
    best = summary["best"]
    count, failed = summary["configurations"], summary["failed"]
    lines = [
        f"{count:,} of {summary['valid']:,} configurations, {summary['measured']:,} of them "
        f"measured now; {failed:,} failed",
    ]
    if best is not None:
        knobs = " ".join(f"{name}={value}" for name, value in best["knobs"].items())
        lines.append(f"best: {best['ns'] / 1e3:.4g} us, {knobs}")
    if summary["unsettled"]:
        lines.append(
            f"{summary['unsettled']:,} not settled, as the host was too noisy: run it again"
        )
    lines += [f"lost: {lost}" for lost in summary["lost"]]
    lines.append(f"{summary['format']}: {summary['out']}")
    return "\n".join(lines)


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
    for line in _served(summary["served"], [row["cache"] for row in rows]):
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


def _served(count: int, caches: Iterable[Mapping[str, Any] | None]) -> list[str]:
    """How many trials the tuning cache served; where it had records and served none, why."""
    if count:
        return [f"served: {count} of them from the tuning cache, not judged again"]
    known = [cache for cache in caches if cache is not None and cache["records"]]
    if not known:
        return []
    records = sum(cache["records"] for cache in known)
    return [f"served: none of the tuning cache's {records} records: {known[0]['reason']}"]


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
    where = f"{first['status']} {first['code']}: {_first_line(first)}"
    return f"nothing passed in {row['trials']} trials; {first['count']} {where}"


def check_tasks_text(plan: Mapping[str, Any]) -> str:
    """The plan of a campaign of tasks for people."""
    tasks, budget = plan["tasks"], plan["budget"]["trials"]
    kinds = ", ".join(sorted({task["problem"] for task in tasks if task["problem"]}))
    valid = sorted({task["valid"] for task in tasks if task["valid"]})
    size = " to ".join(f"{n:,}" for n in dict.fromkeys((valid[0], valid[-1]))) if valid else "open"
    weight = sum(task["weight"] for task in tasks)
    shared = "try" if plan["shared"] else "do not try"
    rows = [
        f"{plan['name']}: {len(tasks)} tasks of {kinds} on {plan['target']} ({plan['evidence']})",
        f"tasks: {tasks[0]['name']} to {tasks[-1]['name']}, weights add up to {weight:g}",
        f"spaces: {size} valid" if valid else f"spaces: {size}",
        f"budget: {budget} trials in batches of {plan['batch']} by {plan['driver']}, "
        f"{budget / len(tasks):.1f} a task on average",
        f"batches are given out by {plan['scheduler']['name']}; "
        f"tasks {shared} each other's best candidates",
        f"baseline: {plan['baseline']}",
        f"then up to {plan['finalists']} finalists of each task are confirmed, until one wins",
        "missing on this machine: " + (", ".join(plan["missing"]) or "nothing"),
    ]
    rows += [f"recording of {name}: {'; '.join(notes)}" for name, notes in plan["notes"].items()]
    rows += [f"no candidate in {t['name']}: {t['reason']}" for t in tasks if t["reason"]]
    return "\n".join(rows)


def print_table(console: Console, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table: folded to a terminal's width, one line a row where it is piped."""
    cells = [[_cell(value) for value in row] for row in rows]
    if console.is_terminal:
        out = Table(box=None, pad_edge=False, header_style="bold")
        for i, header in enumerate(headers):
            out.add_column(header, justify="right" if _is_numeric(rows, i) else "left")
        for row in cells:
            out.add_row(*row)
        console.print(out)
        return
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    for row in (list(headers), *cells):
        parts = [
            cell.rjust(width) if _is_numeric(rows, i) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        console.print("  ".join(parts).rstrip(), soft_wrap=True)


# What the figures of a machine are called, and what they are counted in.
_ROOFLINE = {
    "fma_flops_per_s": ("multiply-adds", "Gflop/s"),
    "peak_flops_per_s": ("with adds beside them", "Gflop/s"),
    "integer_adds_per_s": ("integer adds", "Gop/s"),
    "bandwidth_bytes_per_s": ("traffic", "GB/s"),
}


def print_machine(console: Console, facts: Mapping[str, Any]) -> None:
    """What a machine can do at most: its roofline, and what its CPUs are like."""
    rows = [
        (f"{words}, {name}", rate["one"] / 1e9, rate["all"] / 1e9, unit)
        for key, (words, unit) in _ROOFLINE.items()
        for name, rate in facts["roofline"][key].items()
    ]
    cpus = facts["cpus"]
    console.print(f"{facts['name']}, {cpus} CPU{'s' if cpus > 1 else ''}\n", soft_wrap=True)
    print_table(console, ("roofline", "one CPU", f"all {cpus}", "unit"), rows)
    print_notes(console, "CPU", _cpu_notes(facts))


def _cpu_notes(facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        ("clock", f"{facts['clock_hz'] / 1e9:.2f} GHz", "dependent adds, one a cycle"),
        ("vectors", f"{facts['vector_bytes']} bytes", "the widest that the compiler has here"),
        ("timer", f"{facts['timer_resolution_s'] * 1e9:.0f} ns", "least step"),
        *(
            (f"{c['level']} cache", f"{c['bytes'] / 1024:g} KiB", f"{c['count']} of them")
            for c in facts["caches"]
        ),
    ]


def _host(facts: Mapping[str, float]) -> list[str]:
    """What the host did while a kernel was timed; nothing where it was not watched."""
    if "host.clock_hz" not in facts:
        return []
    parts = [
        f"clock {facts['host.clock_hz'] / 1e9:.2f} GHz, moved by "
        f"{100 * (facts['host.clock_drift'] - 1):+.1f}% since the sitting began",
        f"identical kernels seem {100 * facts['host.likeness']:.2g}% apart",
        f"{facts['host.discarded']:.0f} disturbed pairs of calls taken again",
    ]
    if facts["host.disturbed"]:
        parts.append(f"{facts['host.disturbed']:.0f} kept for want of better ones")
    return [f"host: {', '.join(parts)}"]


def _worth_saying(facts: Mapping[str, float]) -> dict[str, float]:
    """Facts without those of a binary that has nothing special and of an isolation that lacks
    nothing.
    """
    usual = {"elf.": 0.0, "isolation.": 1.0}
    return {
        name: value
        for name, value in facts.items()
        if name != "elf.undefined"
        and not name.startswith("host.")
        and not any(name.startswith(start) and value == u for start, u in usual.items())
    }


def replay_text(found: Mapping[str, Any]) -> str:
    """What a judge said of a trial and what it says now, as `configs.api.judged_again` gives it."""
    lines = [f"trial {found['trial']}, {found['stage']}", str(found["candidate"]).rstrip()]
    lines += [f"{when}: {found[when]['claim']}" for when in ("then", "now")]
    facts = found["now"]["facts"]
    lines += [f"  {name} = {value:g}" for name, value in facts.items()]
    if found["now"]["log"]:
        lines += ["compiler:", found["now"]["log"]]
    return "\n".join(lines)


def prompt_text(found: Mapping[str, Any]) -> str:
    """A call's question and its answer, as `configs.transcript.prompt_of` gives them; what an
    answer says is made fit for a terminal.
    """
    head = f"call {found['call']} of {found['of']}: ask {found['ask']}, slot {found['slot']}"
    lines = [f"{head}, {found['model']}, template {found['template'] or 'unknown'}"]
    for message in found["messages"]:
        lines += [f"\n[{message['role']}]", message["content"].rstrip()]
    answer, error = found["answer"], found["error"]
    if error is not None:
        lines += [f"\n[no answer: {error['kind']}]", error["message"]]
    else:
        told = f"{answer['prompt_tokens']} + {answer['completion_tokens']} tokens"
        lines += [f"\n[answer: {answer['finish_reason']}, {told}]"]
        lines += [str(answer["text"] if answer["refusal"] is None else answer["refusal"]).rstrip()]
    for each in found["events"]:
        rest = ", ".join(f"{name} {value}" for name, value in each.items() if name != "kind")
        lines += [f"\n[{each['kind']}] {rest}"]
    return printable("\n".join(lines)) + "\n"


def print_comparison(console: Console, summary: Mapping[str, Any]) -> None:
    """A comparison's summary, as `search.comparing.compared` gives it: evaluations to each target,
    the best so far at the checkpoints, and what can be claimed.
    """
    console.print(f"{summary['work']}\n", soft_wrap=True)
    for target in summary["targets"]:
        headers = ("campaign", "runs", "solved", f"median to {100 * target['within']:g}%", *_LIMITS)
        rows = [
            (s["config"], s["runs"], s["solved"], s["median"], s["low"], s["high"])
            for s in target["campaigns"]
        ]
        print_table(console, headers, rows)
        for pair in target["pairs"]:
            console.print(pair["says"], soft_wrap=True)
        console.print()
    points = [row["evaluations"] for row in summary["curves"][0]["best_at"]]
    rows = [
        (curve["config"], *(_ratio_text(row) for row in curve["best_at"]))
        for curve in summary["curves"]
    ]
    print_table(console, ("best so far / best known, after", *map(str, points)), rows)
    claims = summary["correction"]["claims"]
    if claims > 1:
        rate = summary["correction"]["error_rate"]
        console.print(
            f"\n{claims} claims share an error rate of {rate:.0%} (Holm's correction); intervals "
            "are each at 95%",
            soft_wrap=True,
        )


_LIMITS = ("95% low", "95% high")


def _ratio_text(row: Mapping[str, float | None]) -> str:
    if row["median"] is None:
        return "none"
    if row["low"] is None or row["high"] is None:
        return f"{row['median']:.3f}"
    return f"{row['median']:.3f} ({row['low']:.3f}-{row['high']:.3f})"


def print_score(console: Console, scores: Mapping[str, Any]) -> None:
    """What runs show together, as `configs.scoring.score` gives it: run by run, then the scores."""
    if scores["warning"]:
        console.print(f"WARNING: {scores['warning']}", soft_wrap=True)
    rows = [
        (row["run"], row["status"] or "none", _speedup(row), _library(row))
        for row in scores["runs"]
    ]
    headers = ("run", "status", f"speedup ({CONFIDENCE:.0%} limits)", "against the library")
    print_table(console, headers, rows)
    if scores["missing"]:
        console.print(f"problems without a run: {scores['missing']}")
    console.print("\nfast_p, correct and more than p times as fast:")
    for row in scores["fast"]:
        console.print(_fast(row), soft_wrap=True)
    for line in _means(scores):
        console.print(line, soft_wrap=True)
    for note in scores["notes"]:
        console.print(f"NOTE: {note}", soft_wrap=True)


def _speedup(row: Mapping[str, Any]) -> str:
    found = row["speedup"]
    if found is None:
        return "-"
    if not row["confirmed"]:
        return f"{in_figures(found['estimate'])} in a screen"
    return _figures(found)


def _library(row: Mapping[str, Any]) -> str:
    if row["library_speedup"] is None:
        return "-"
    return f"{row['library'] or 'the library'} {_figures(row['library_speedup'])}"


def _figures(found: Mapping[str, Any]) -> str:
    return in_figures(found["estimate"], found["ci_low"], found["ci_high"])


def _fast(row: Mapping[str, Any]) -> str:
    """fast_p as claimed, and as published."""
    said = f"  p = {row['p']:g}: {Rate(row['count'], row['total'])} by claims"
    extra = f", {row['unclaimed']} of them no claim" if row["unclaimed"] else ""
    return f"{said}; {row['by_estimate']} by point estimates{extra}"


def _means(scores: Mapping[str, Any]) -> list[str]:
    """The geometric mean of all problems, and that of the confirmed ones beside what it leaves
    out.
    """
    count, total = scores["confirmed"]["count"], scores["confirmed"]["total"]
    mean, wins = scores["geometric_mean"], scores["wins"]
    at = f" at {CONFIDENCE:.0%}"
    figures = in_figures(mean["estimate"], mean["ci_low"], mean["ci_high"], at=at)
    lines = [f"geometric mean of all {total}: {figures}; wins ({wins}) as measured, the rest as 1x"]
    if count:
        mean = scores["geometric_mean_of_confirmed"]
        figures = in_figures(mean["estimate"], mean["ci_low"], mean["ci_high"], at=at)
        left_out = f"; leaves out {total - count} that failed" if count < total else ""
        lines.append(f"geometric mean of the {count} confirmed, as measured: {figures}{left_out}")
    return [*lines, f"evidence: {scores['evidence'] or 'none'}"]


def print_notes(console: Console, title: str, notes: Sequence[tuple[str, str, str]]) -> None:
    """A section of facts: name, value, and what is to be said of it."""
    console.print()
    print_table(console, (title, "value", "note"), notes)


def _is_numeric(rows: Sequence[Sequence[object]], column: int) -> bool:
    return all(isinstance(row[column], int | float | None) for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "ok" if value else "FAIL"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


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


def print_cheats(console: Console, report: Mapping[str, Any]) -> None:
    """The audit of exploits: how many variants of each class the naive judge believed and ours did
    not catch, family by family, and the rates.
    """
    ran = by_class(report["classes"])
    out = _audit_table(console, ("", "class", "naive", "ours", "what ours said"))
    for letter, title in FAMILIES.items():
        out.add_row(letter, title, style="bold")
        for name, rows in ran.items():
            if rows and name.startswith(letter):
                out.add_row(name, catalogue()[name].name, *_past(rows))
    console.print("Variants that the naive judge believed, and that ours did not catch:")
    console.print(out)
    for row in report["classes"]:
        if not row["detected"]:
            what = f"{how_missed(row)}: {row['id']} {row['variant']}, {answered(row)}"
            console.print(f"{what}: {row['evidence']}".removesuffix(": "))
    for row in report["honest"]:
        if row["rejected"]:
            what = f"honest and refused: {row['name']}, {answered(row)}"
            console.print(f"{what}: {row['evidence']}")
    for name, variant, reason in report["skipped"]:
        console.print(f"not run: {name} {variant}: {reason}")
    console.print(f"deceived the naive judge: {Rate(report['live'], report['total'])}")
    console.print(f"caught by ours: {Rate(report['detected'], report['total'])}")
    hardest = [row["detected"] for row in report["classes"] if row["priority"] == Priority.P0]
    console.print(f"  of priority P0: {Rate(sum(hardest), len(hardest))}")
    honest = Rate(report["honest_rejected"], report["honest_total"])
    console.print(f"honest kernels refused: {honest}")


def print_noise(console: Console, report: Mapping[str, Any]) -> None:
    """The audit of noise: what each rule claims on each clock, then what our own keeps."""
    count = report["candidates"]
    headers = (
        "rule",
        "clock",
        "false, one",
        f"false, of {count}",
        "1.03x",
        "1.05x",
        "bias",
        "calls",
    )
    rows = [
        (
            row["rule"],
            row["clock"],
            _share(row["aa_false_win"]),
            _share(row["search_false_win"]),
            _share(row["found_1.03"]),
            _share(row["found_1.05"]),
            "-" if row["bias"] is None else f"{100 * row['bias']:+.2f} %",
            row["calls"],
        )
        for row in report["rules"]
        if row["error"] is None
    ]
    console.print(
        "False claims of identical kernels, one by one and in a search; how often a faster kernel "
        f"among {count} is found; how far claims are off on average:",
        soft_wrap=True,
    )
    print_table(console, headers, rows)
    for failed in report["failed_rules"]:
        console.print(f"no figures: {failed}", soft_wrap=True)
    print_notes(console, "our rule", _noise_notes(report))
    for shortfall in report["shortfalls"]:
        console.print(f"short of what is promised: {shortfall}", soft_wrap=True)


def _noise_notes(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    aa, search = report["aa"], report["search"]
    notes = [
        ("false wins, one by one", f"{aa['count']} of {aa['total']}", _limits(aa)),
        (
            "false wins, searches",
            f"{search['count']} of {search['total']}",
            f"{_limits(search)}; on {report['search_clock']}",
        ),
        *(
            (
                f"finds {speedup}x",
                _share(share),
                f"{report['calls'][speedup]['most']} calls at most",
            )
            for speedup, share in report["power"].items()
        ),
        ("coverage of 95%", _share(report["coverage"]), "planted speedups, simulated"),
        ("mean bias", f"{100 * report['bias']:+.3f} %", "of all confirmed measurements"),
    ]
    if "aa_real" in report:
        real, searched = report["aa_real"], report["search_real"]
        processes = f"{report['aa_process_pairs']} pairs of processes"
        notes += [
            ("this machine, one by one", f"{real['wins']} of {real['comparisons']}", processes),
            ("this machine, searches", f"{searched['wins']} of {searched['searches']}", ""),
            *(
                (f"this machine, {speedup}x", _share(share), "confirmed alone")
                for speedup, share in report["power_real"].items()
            ),
            ("coverage here", _share(report["coverage_real"]), ""),
            ("mean bias here", f"{100 * report['bias_real']:+.3f} %", ""),
            ("too noisy to say", str(report["unstable_real"]), "confirmations"),
        ]
    return notes


def _share(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _limits(rate: Mapping[str, Any]) -> str:
    return f"95% interval {_share(rate['low'])} to {_share(rate['high'])}"


def print_judges(console: Console, report: Mapping[str, Any]) -> None:
    """What two judges made of one campaign: what each believed, and of whom."""
    rows = report["candidates"]
    around = " beside a process that takes their core in bursts" if report["noisy"] else ""
    console.print(f"{report['problem']}, {len(rows)} candidates{around}\n", soft_wrap=True)
    for tally in report["judges"]:
        console.print(_believed_best(tally), soft_wrap=True)
    console.print()
    counts = [
        (
            tally["profile"],
            f"{tally['exploits_believed']} of {tally['exploits']}",
            f"{tally['twins_faster']} of {tally['twins']}",
            f"{tally['twins_slower']} of {tally['twins']}",
            f"{tally['honest_refused']} of {tally['honest']}",
            f"{tally['seconds']:.1f} s",
        )
        for tally in report["judges"]
    ]
    headers = ("judge", "exploits believed", "twins faster", "slower", "honest refused", "time")
    print_table(console, headers, counts)
    console.print()
    judges = [tally["profile"] for tally in report["judges"]]
    print_table(
        console,
        ("candidate", "is", "truth or strict", *judges),
        [
            (r["name"], r["kind"], _times(r["truth"]), *(_belief(r["beliefs"][j]) for j in judges))
            for r in rows
        ],
    )


def _believed_best(tally: Mapping[str, Any]) -> str:
    best = tally["best"]
    if best is None:
        return f"{tally['profile']}: nothing valid"
    said = f"{best['status']}, {_times(best['claimed'])}"
    truth = f"in truth {_times(best['truth'])}"
    return f"{tally['profile']}: {said}, by {best['name']} ({best['kind']}, {truth})"


def _belief(belief: Mapping[str, Any]) -> str:
    if belief["speedup"] is None:
        return f"{belief['status']} {belief['code']}"
    return f"{belief['status']} {_times(belief['speedup'])}"


def _times(speedup: float | None) -> str:
    return "unknown" if speedup is None else f"{speedup:.3f}x"


def _past(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    naive = sum(row["naive_passed"] for row in rows)
    ours = sum(not row["detected"] for row in rows)
    words = (row["code"] or ("no gain" if row["detected"] else row["verdict"]) for row in rows)
    return f"{naive}/{len(rows)}", f"{ours}/{len(rows)}", ", ".join(dict.fromkeys(words))


def _audit_table(console: Console, headers: Sequence[str]) -> Table:
    """A table that fits the terminal, or 80 columns where there is none, with room for words."""
    out = Table(box=None, pad_edge=False, header_style="bold", width=min(console.width, 120))
    for header in headers:
        numeric = header in ("naive", "ours")
        out.add_column(header, justify="right" if numeric else "left", no_wrap=numeric)
    return out
