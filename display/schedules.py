"""A schedule step by step, as text: what a directive does to the loops, to what is touched, and to
work, memory and parallelism.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

from kernelwright.display.words import number

# Of a longer nest only what changes is shown, with so many lines around.
LONG = 48
CONTEXT = 3
# So many tensors that are computed again are named.
NAMED = 6


def steps_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Steps as `configs.steps.step_rows` gives them. Regions and counts are told where they differ
    from the step before; of a nest of more than `LONG` lines what is between the first and the last
    step is told by what changes.
    """
    parts = []
    for place, row in enumerate(rows):
        before = rows[place - 1] if place else None
        is_last = place == len(rows) - 1
        head = "unscheduled" if row["directive"] is None else row["directive"]
        lines = [f"# {head}", _nest(row, None if is_last else before), ""]
        regions = list(_regions(row, before))
        if regions:
            lines += ["regions:", *(f"  {line}" for line in regions)]
        is_same = before is not None and before["counts"] == row["counts"] is not None
        lines += ["counts: as before"] if is_same else _counts(row)
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _nest(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    nest: str = row["nest"].rstrip("\n")
    lines = nest.splitlines()
    if before is None or len(lines) <= LONG:
        return nest
    old = before["nest"].splitlines()
    changes = [
        line
        for line in unified_diff(old, lines, n=CONTEXT, lineterm="")
        if not line.startswith(("---", "+++"))
    ]
    return "\n".join([f"({len(lines)} lines, of which change)", *changes])


def _regions(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[str]:
    """What is touched of each tensor, where that is new."""
    known = [] if before is None else before["regions"]
    for each in row["regions"]:
        if each not in known:
            told = [f"{verb} {each[verb]}" for verb in ("reads", "writes") if each[verb]]
            where = f" in one {each['within']}" if each["within"] else ""
            yield f"{each['tensor']}{where}: {', '.join(told) or 'untouched'}"


def _counts(row: Mapping[str, Any]) -> Iterator[str]:
    counts = row["counts"]
    if counts is None:
        yield f"counts: none ({row['uncounted']})"
        return
    about = "" if counts["is_exact"] else "about "
    kinds = ", ".join(f"{op} {count:,}" for op, count in counts["operations"].items())
    point = number(float(counts["operations_per_point"]))
    total = f"{about}{counts['total_operations']:,}, {point} a point of {counts['points']:,}"
    yield f"operations: {total}" + (f" ({kinds})" if kinds else "")
    yield f"recompute: {_recompute(counts['stages'])}"
    scopes = ", ".join(f"{scope} {n:,}" for scope, n in counts["peak_bytes_by_scope"].items())
    peak = f"{counts['peak_bytes']:,} bytes of temporaries" + (f" ({scopes})" if scopes else "")
    yield f"memory: {peak}, {counts['footprint_bytes']:,} bytes touched"
    yield f"at once: {number(float(counts['parallelism']))} iterations"


def _recompute(stages: Sequence[Mapping[str, Any]]) -> str:
    """How often values are computed, of the stages where that is not once."""
    again = [s for s in stages if s["recompute"] is not None and s["recompute"] != 1.0]
    if not again:
        return "every value once"
    again.sort(key=lambda stage: -float(stage["recompute"]))
    named = [f"{stage['tensor']} {number(float(stage['recompute']))}x" for stage in again[:NAMED]]
    more = len(again) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
