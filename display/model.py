"""What a language model said in a run, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def model_lines(summary: Mapping[str, Any]) -> list[str]:
    """What a model said, by class, what that cost, and what became of planted faults."""
    lines = []
    if summary["replies"]:
        kinds = ", ".join(f"{n} {kind}" for kind, n in summary["replies"].items())
        lines.append(f"replies of the model: {kinds}")
    if summary["answered_by"]:
        named = ", ".join(f"{n} {name}" for name, n in summary["answered_by"].items())
        lines.append(f"answers of: {named}")
    lines += [_failures(name, row) for name, row in summary["failures_by"].items()]
    if summary["tokens"]:
        lines.append(f"model: {summary['tokens']} tokens, {_money(summary, summary['usd'])}")
    lost = summary["unanswered"]
    if lost.get("calls"):
        most = f"{lost['tokens']} tokens, {_money(summary, lost['usd'])} at most"
        lines.append(f"calls on their way when the run was killed: {lost['calls']} ({most})")
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
