"""A run's summary, a trial judged again, and a recording, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.display.model import model_lines
from kernelwright.display.tasks import served
from kernelwright.display.words import first_line, light_line, number, recording
from kernelwright.env.words import counted

# Classes of failure that a summary shows.
MOST_FAILURES = 5


def summary_text(summary: Mapping[str, Any]) -> str:
    """A run's summary for people: the claim first, then what it stands on."""
    lines = [f"WARNING: {summary['warning']}"] if summary.get("warning") else []
    lines += _best(summary["best"], summary["claim"])
    lines += _front(summary.get("front"))
    lines += _stands_on(summary)
    lines += _trials(summary)
    search, confirm = summary["seconds_search"], summary["seconds_confirm"]
    lines.append(
        f"time: {summary['seconds']:.2f} s (search {search:.2f}, confirmation {confirm:.2f})"
    )
    lines += model_lines(summary)
    if summary["calls"]:
        lines.append(f"each call: kernelwright show {summary['out']} --calls")
    lines += _end(summary)
    return "\n".join([*lines, f"run: {summary['out']}"])


def _best(best: Mapping[str, Any] | None, claim: str) -> list[str]:
    """The claim, and the candidate that it is about."""
    if best is None:
        return ["nothing valid was found"]
    known = [
        *best["log"].splitlines(),
        *(f"{k}={number(v)}" for k, v in _worth_saying(best["facts"]).items()),
    ]
    return [
        f"{claim} ({best['evidence']})",
        *("  " + line for line in _candidate(best["candidate"], best["language"])),
        f"  candidate {best['key']}, trial {best['trial']}",
        *(["  " + " ".join(known)] if known else []),
    ]


def _stands_on(summary: Mapping[str, Any]) -> list[str]:
    """What the claim is relative to, and how it was come by."""
    best, base, lines = summary["best"], summary["baseline"], []
    if base is not None:
        given = base.get("candidate", {})
        knobs = " ".join(_candidate(given, base["language"])) if isinstance(given, dict) else ""
        lines.append(f"baseline: {base['name']} {base['key']} {knobs}".rstrip())
    light = summary["speed_of_light"]
    if light["share"] is not None:
        share = f"the best is at {light['share']:.3f} of it"
        lines.append(f"{light_line(light['bounds'])}; {share}")
    lines += recording(summary.get("notes", ()))
    if best is not None and best["evidence"] == "measured":
        lines.append(f"on: {best['machine']}")
        lines += _host(best["facts"])
    if best is not None and best["level"] is not None:
        level = f"{min(100 * best['level'], 99.9999):.6g}%"
        beyond = f", {100 * best['least_effect']:.2g}% beyond 1" if best["least_effect"] else ""
        lines.append(f"decided: by the interval at {level}{beyond}, as the error rate is shared")
    return lines


def _trials(summary: Mapping[str, Any]) -> list[str]:
    """What became of the candidates."""
    counts = ", ".join(f"{n} {status}" for status, n in summary["by_status"].items()) or "none"
    lines = [f"trials: {summary['trials']} ({counts})"]
    lines += [
        f"  {row['count']} {row['status']} {row['code']}, the first (trial {row['trial']}): "
        f"{first_line(row)}"
        for row in summary["failures"][:MOST_FAILURES]
    ]
    if len(summary["failures"]) > MOST_FAILURES:
        more = counted(len(summary["failures"]) - MOST_FAILURES, "more kind")
        lines.append(f"  and {more} (--json has all)")
    if summary["failures"]:
        lines.append(f"judge one again: kernelwright show {summary['out']} --replay TRIAL")
    lines += served(summary["served"], [summary.get("cache")])
    unheard = {key: summary[key] for key in ("refused", "duplicates") if summary[key]}
    return [*lines, *(f"{key}: {counted(count, 'proposal')}" for key, count in unheard.items())]


def _end(summary: Mapping[str, Any]) -> list[str]:
    """Why the run ended, and what it left undone."""
    lines = []
    if summary["stop"]:
        lines.append(f"stopped: {summary['stop']['reason']} ({summary['stop']['rule']})")
    if summary["unconfirmed"]:
        numbers = ", ".join(map(str, summary["unconfirmed"]))
        lines.append(f"not confirmed for lack of time: trials {numbers}")
    if not summary["finished"]:
        lines.append(f"not finished: the same `{summary['goes_on_by']}` goes on")
    if summary["by_status"].get("broken"):
        lines.append("WARNING: the judge itself broke on some trials; please report this")
    return lines


MOST_OF_A_FRONT = 12


def _front(front: Mapping[str, Any] | None) -> list[str]:
    """What no other trial beats in everything, the fastest first."""
    if front is None:
        return []
    rows = front["rows"]
    trials = counted(len(rows), "trial")
    lines = [f"front of {', '.join(front['objectives'])}: {trials}, by their screens"]
    for row in rows[:MOST_OF_A_FRONT]:
        facts = [f"{k}={'?' if v is None else number(v)}" for k, v in row["facts"].items()]
        speedup = f"{row['speedup']:.3f}x"
        lines.append("  " + " ".join([f"trial {row['trial']}", speedup, *facts]))
    if len(rows) > MOST_OF_A_FRONT:
        lines.append(f"  and {len(rows) - MOST_OF_A_FRONT} more (--json has all)")
    return lines


def _candidate(given: Mapping[str, Any] | str, language: str) -> list[str]:
    """A candidate on a few lines; a source is only counted."""
    if not isinstance(given, str):
        return [" ".join(f"{k}={v}" for k, v in given.items())]
    if language == "source":
        return [f"{len(given.splitlines())} lines of C"]
    return given.splitlines() or ["no directives"]


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
