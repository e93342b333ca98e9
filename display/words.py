"""What several reports say in the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def number(value: float) -> str:
    """A number: whole, or to four figures."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def first_line(failure: Mapping[str, Any]) -> str:
    """The first line of why something failed."""
    text = failure["evidence"] or failure["log"] or "nothing more is known"
    line = str(text).splitlines()[0]
    # The judge's own sentences are whole; a compiler's line may be of any length.
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"


# The most of a refusal that a summary shows.
_LINE = 500


def recording(notes: Sequence[str]) -> list[str]:
    """What there is to say of the recording that judges."""
    return [f"recording: {'; '.join(notes)}"] if notes else []


def light_line(bounds: Sequence[Mapping[str, Any]]) -> str:
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
