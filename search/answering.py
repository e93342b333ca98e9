"""Who of several backends answered the calls of a campaign, and who failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kernelwright.search.trial import MODEL_CALL, Event


def answered_by(events: Iterable[Event]) -> dict[str, int]:
    """Answers by the backend that gave them, where there are several."""
    answers = (e.data.get("completion") or {} for e in events if e.kind == MODEL_CALL)
    names = (answer.get("answered_by") for answer in answers)
    return dict(sorted(Counter(name for name in names if name).items()))


def failures_by(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """Of several backends those that failed, by name: ``calls``, how many calls they did not
    answer, and ``first``, the first failure's message (empty in older records).
    """
    found = (failure for event in events for failure in _failures(event))
    return failures_together({name: {"calls": 1, "first": reason}} for name, reason in found)


def failures_together(
    parts: Iterable[Mapping[str, Mapping[str, Any]]],
) -> dict[str, dict[str, Any]]:
    """What `failures_by` says of several runs, added up."""
    out: dict[str, dict[str, Any]] = {}
    for part in parts:
        for name, row in part.items():
            out.setdefault(name, {"calls": 0, "first": row["first"]})["calls"] += row["calls"]
    return dict(sorted(out.items()))


def _failures(event: Event) -> Iterator[tuple[str, str]]:
    """The backends that failed before or in place of an answer, each with its message."""
    if event.kind != MODEL_CALL:
        return
    completion, error = event.data.get("completion") or {}, event.data.get("error") or {}
    down = completion.get("down", ())
    yield from zip(down, completion.get("reasons") or [""] * len(down), strict=True)
    if error.get("answered_by"):
        name = error["answered_by"]
        yield name, error["message"].removeprefix(f"{name}: ")
