"""The calls of a run, one after the other, as ``show --calls`` lists them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kernelwright.agents.report import classified
from kernelwright.agents.transcript import calls_of
from kernelwright.configs.errors import ConfigError
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.summary import claimed
from kernelwright.search.tasks.summary import TASKS
from kernelwright.search.trial import Event, Trial


def read_calls(folder: str | Path) -> tuple[Path, list[Trial], list[Event]]:
    """The folder of a run itself, its trials and its events.

    Raises:
        StoreError: if there is no run.
        ConfigError: if it is one of tasks, each of which has calls of its own.
    """
    folder = Path(folder)
    if folder.name == DATABASE:
        folder = folder.parent
    with SqliteStore(folder / DATABASE, readonly=True) as store:
        if TASKS in store.meta():
            expected = f"the folder of one of its tasks ({folder}/NAME)"
            raise ConfigError(str(folder), None, "", expected, "a run of tasks")
        return folder, store.trials(), store.events()


def call_rows(folder: str | Path) -> list[dict[str, Any]]:
    """A row a call, in the order in which they were made.

    Returns:
        ``call`` (from 1), ``ask slot model answered_by tokens usd``; ``became``, the class of its
        event, or ``candidate``; ``reason``, where that event has one; and of a candidate that was
        judged ``trial status speedup``, else None.

    Raises:
        StoreError, ConfigError: as `read_calls`.
    """
    _, trials, events = read_calls(folder)
    classes, reasons = classified(events), _reasons(events)
    judged = trials_of(events, trials)
    rows = []
    for number, call in enumerate(calls_of(events), 1):
        place = (call.ask, call.slot)
        answered = call.data["completion"] or call.data["error"]
        trial = judged.get(place)
        rows.append(
            {
                "call": number,
                "ask": call.ask,
                "slot": call.slot,
                "became": classes[place],
                "reason": reasons.get((*place, classes[place])),
                "trial": None if trial is None else trial.number,
                "status": None if trial is None else trial.status.value,
                "speedup": None if trial is None else _speedup(trial),
                "model": call.data["model"],
                "answered_by": answered.get("answered_by") or None,
                "tokens": call.tokens,
                "usd": call.usd,
            }
        )
    return rows


def trials_of(events: Iterable[Event], trials: Iterable[Trial]) -> dict[tuple[int, int], Trial]:
    """The trials that models proposed, by the ask and the slot of the call that wrote them."""
    by_key = {trial.candidate.key: trial for trial in trials}
    keys = {(e.ask, e.slot): str(e.data["key"]) for e in events if e.kind == "proposed"}
    return {place: by_key[key] for place, key in keys.items() if key in by_key}


def call_of(events: Sequence[Event], trials: Iterable[Trial], number: int) -> int | None:
    """The number, from 1, of the call that wrote a trial; None if none did."""
    places = {t.number: place for place, t in trials_of(events, trials).items()}
    calls = [(call.ask, call.slot) for call in calls_of(events)]
    place = places.get(number)
    return calls.index(place) + 1 if place in calls else None


def _reasons(events: Iterable[Event]) -> dict[tuple[int, int, str], str]:
    found = {(e.ask, e.slot, e.kind): e.data.get("reason") for e in events}
    return {place: str(reason) for place, reason in found.items() if reason is not None}


def _speedup(trial: Trial) -> float | None:
    """The confirmed speedup, else that of the screen, which is a single sample."""
    interval = claimed(trial)
    if interval is not None:
        return interval.estimate
    return None if trial.objective is None else 2.0**trial.objective
