"""What became of a model's answers, counted from the events of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kernelwright.search.trial import Event, Trial

OK = "none"
CLASSES = (
    "truncated",
    "refused",
    "empty",
    "unparsable",
    "wrong_schema",
    "illegal",
    "duplicate",
    "lost",
    # Of agents that ask for more than programs, and for a review of these.
    *("plan", "review", "action", "declined"),
)


def classified(events: Iterable[Event]) -> dict[tuple[int, int], str]:
    """The class of every call by (ask, slot): one of `CLASSES`, or ``candidate``."""
    events = list(events)
    calls = {(e.ask, e.slot): "candidate" for e in events if e.kind == "model_call"}
    for e in events:
        if e.kind in CLASSES and (e.ask, e.slot) in calls:
            calls[e.ask, e.slot] = e.kind
    # An action may submit a program.
    calls |= {(e.ask, e.slot): "candidate" for e in events if e.kind == "proposed"}
    return calls


def confusion(
    events: Iterable[Event], trials: Iterable[Trial] = (), *, variants: bool = False
) -> dict[tuple[str, str], int]:
    """How often what was injected was filed as what.

    The first word is a simulated model's ground truth (``none`` for an honest answer, and for every
    answer of a real model), the second the class of the reply: one of `CLASSES`, ``candidate``, or
    where ``trials`` hold the candidate its screened status. ``variants`` keeps the part of a ground
    truth after its colon (``wrong_code:endless_loop``).
    """
    events = list(events)
    classes = classified(events)
    keys = {(e.ask, e.slot): e.data["key"] for e in events if e.kind == "proposed"}
    statuses = {t.candidate.key: str(t.verdicts[0][1].status) for t in trials}
    out: Counter[tuple[str, str]] = Counter()
    for e in events:
        if e.kind != "model_call":
            continue
        place = (e.ask, e.slot)
        injected = ((e.data["completion"] or {}).get("injected")) or OK
        if not variants:
            injected = injected.partition(":")[0]
        found = classes[place]
        if found == "candidate":
            found = statuses.get(keys.get(place, ""), found)
        out[injected, found] += 1
    return dict(sorted(out.items()))
