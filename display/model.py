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
    if summary["tokens"]:
        lines.append(f"model: {summary['tokens']} tokens, {summary['usd']:.4f} USD")
    lost = summary["unanswered"]
    if lost.get("calls"):
        most = f"{lost['tokens']} tokens, {lost['usd']:.4f} USD at most"
        lines.append(f"calls on their way when the run was killed: {lost['calls']} ({most})")
    lines += [
        f"reached otherwise from call {change['calls'] + 1} on: {change['key']} "
        f"{change['now']!r}, before {change['was']!r}"
        for change in summary.get("reached", ())
    ]
    return lines + _simulated(summary.get("simulated"))


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
