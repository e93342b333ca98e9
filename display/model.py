"""What a language model said in a run, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.env.words import counted
from kernelwright.evaluators.cpu.text import printable


def model_lines(summary: Mapping[str, Any]) -> list[str]:
    """What a model said, by class, what that cost, and what became of planted faults."""
    lines = []
    if summary["replies"]:
        kinds = ", ".join(f"{n} {kind}" for kind, n in summary["replies"].items())
        lines.append(f"replies of the model: {kinds}")
    if summary.get("last_lost"):
        lines.append(f"the last call that was lost: {printable(summary['last_lost'])}")
    if summary["answered_by"]:
        named = ", ".join(f"{n} {name}" for name, n in summary["answered_by"].items())
        lines.append(f"answers of: {named}")
    lines += [_failures(name, row) for name, row in summary["failures_by"].items()]
    if summary["calls"] or summary["tokens"]:
        made = f"{counted(summary['calls'], 'call')}, " if summary["calls"] else ""
        spent = f"{summary['tokens']:,} tokens, {_money(summary, summary['usd'])}"
        lines.append(f"model: {made}{spent}")
    lost = summary["unanswered"]
    if lost.get("calls"):
        most = f"{lost['tokens']:,} tokens, {_money(summary, lost['usd'])} at most"
        lines.append(f"calls on their way when the run was killed: {lost['calls']} ({most})")
    lines += [
        f"reached otherwise from call {change['calls'] + 1} on: {change['key']} "
        f"{change['now']!r}, before {change['was']!r}"
        for change in summary.get("reached", ())
    ]
    return lines + _simulated(summary.get("simulated"))


def _money(summary: Mapping[str, Any], usd: float) -> str:
    """An amount, and which models' share of it nobody knows."""
    models = " and ".join(summary["unpriced"])
    if not models:
        return f"{usd:.4f} USD"
    return f"{usd:.4f} USD without {models}" if usd else f"money not counted (no price of {models})"


def _failures(name: str, row: Mapping[str, Any]) -> str:
    """What became of the calls that one of several backends did not answer."""
    calls = "1 call" if row["calls"] == 1 else f"{row['calls']} calls"
    return f"{name}: {calls} failed" + (f": {row['first']}" if row["first"] else "")


def _simulated(found: Mapping[str, Any] | None) -> list[str]:
    """What became of the faults that a simulated model injected."""
    if found is None:
        return []
    from kernelwright.agents.report import matrix_lines

    lines = ["faults that the simulated model injected -> what they were filed as:"]
    lines += [f"  {line}" for line in matrix_lines(found)]
    if any(not row["sound"] for row in found["rows"]):
        lines.append("  ! is no class for such a fault")
    if any(row["filed_as"] == "candidate" for row in found["rows"]):
        lines.append("  candidate: proposed, and not judged")
    if found["believed"]:
        named = ", ".join(f"{n} {tag}" for tag, n in found["believed"].items())
        lines.append(f"WARNING: the judge believed cheats: {named}")
    if found["seconds"]:
        lines.append(f"  virtual time of its answers: {found['seconds']:.1f} s")
    return lines
