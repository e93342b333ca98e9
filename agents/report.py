"""What became of a model's answers, counted from the events of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from kernelwright.agents.programmer.faults import FILED_AS
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
    "too_long",
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
    where ``trials`` hold the candidate its status (``ok`` for all that passed). ``variants`` keeps
    the part of a ground truth after its colon (``wrong_code:endless_loop``).
    """
    events = list(events)
    classes = classified(events)
    keys = {(e.ask, e.slot): e.data.get("key") for e in events if e.kind == "proposed"}
    statuses = {t.candidate.key: _filed(t) for t in trials}
    out: Counter[tuple[str, str]] = Counter()
    for e in events:
        if e.kind != "model_call":
            continue
        place = (e.ask, e.slot)
        injected = ((e.data.get("completion") or {}).get("injected")) or OK
        if not variants:
            injected = injected.partition(":")[0]
        found = classes[place]
        if found == "candidate":
            found = statuses.get(keys.get(place) or "", found)
        out[injected, found] += 1
    return dict(sorted(out.items()))


def _filed(trial: Trial) -> str:
    return "ok" if trial.status.passed else trial.status.value


def simulated(events: Iterable[Event], trials: Iterable[Trial]) -> dict[str, Any] | None:
    """What a campaign made of the faults that a simulated model injected; None if none was.

    Returns:
        ``injected`` and ``filed_as`` with their ``count``, and whether it is ``sound`` to file the
        one as the other; ``seconds`` is the virtual time of all answers, ``believed`` how many
        cheats passed, by their tags.
    """
    events, trials = list(events), list(trials)
    calls = [e.data.get("completion") or {} for e in events if e.kind == "model_call"]
    if not any(call.get("injected") for call in calls):
        return None
    cells = confusion(events, trials)
    rows = [_row(truth, found, n) for (truth, found), n in cells.items()]
    believed = {
        truth: n
        for (truth, found), n in confusion(events, trials, variants=True).items()
        if found == "ok" and truth.startswith("cheating")
    }
    seconds = sum(call.get("seconds", 0.0) for call in calls)
    return {"rows": rows, "seconds": seconds, "believed": believed}


def together(parts: Iterable[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """What `simulated` says of several runs, added up; None if it says nothing of any."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    cells, believed = Counter[tuple[str, str]](), Counter[str]()
    for part in known:
        believed.update(part["believed"])
        cells.update({(row["injected"], row["filed_as"]): row["count"] for row in part["rows"]})
    return {
        "rows": [_row(truth, found, n) for (truth, found), n in sorted(cells.items())],
        "seconds": sum(part["seconds"] for part in known),
        "believed": dict(believed),
    }


def _row(injected: str, filed_as: str, count: int) -> dict[str, Any]:
    sound = is_sound(injected, filed_as)
    return {"injected": injected, "filed_as": filed_as, "count": count, "sound": sound}


def is_sound(injected: str, filed_as: str) -> bool:
    """Whether a fault of a class may be filed so. One that is not judged yet may, and so may any
    that failed in passing on the way.
    """
    allowed = FILED_AS.get(injected)
    return not allowed or filed_as in allowed or filed_as in ("candidate", "lost")


def matrix_lines(found: Mapping[str, Any]) -> list[str]:
    """`simulated` as a table for people: a row for what was injected, a column for what it was
    filed as; a cell that should be empty has a mark.
    """
    rows = found["rows"]
    named = [*FILED_AS, OK]
    truths = sorted({row["injected"] for row in rows}, key=lambda t: (t == OK, named.index(t)))
    columns = list(dict.fromkeys(row["filed_as"] for row in rows))
    columns.sort(key=lambda name: (name not in CLASSES, name == "ok", name))
    cells = {(row["injected"], row["filed_as"]): row for row in rows}
    width = max(len("injected"), *map(len, truths))
    lines = ["  ".join(["injected".ljust(width), *columns, "all"])]
    for truth in truths:
        parts, total = [truth.ljust(width)], 0
        for name in columns:
            cell = cells.get((truth, name))
            total += cell["count"] if cell else 0
            text = "." if cell is None else f"{cell['count']}{'' if cell['sound'] else '!'}"
            parts.append(text.rjust(len(name)))
        lines.append("  ".join([*parts, str(total).rjust(3)]))
    return lines
