"""What a run's store says, as the JSON object that ``run`` and ``show`` print."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from kernelwright.env.compiler.schedule.trace import print_trace
from kernelwright.env.types import (
    Candidate,
    Directive,
    Evidence,
    Language,
    Role,
    Scalar,
    Stage,
    Status,
    Verdict,
)
from kernelwright.evaluators.naive import NAIVE_CLOCK, NAIVE_PROFILE, NAIVE_WARNING
from kernelwright.evaluators.statistics import Interval, speedup
from kernelwright.search.answering import answered_by, failures_by
from kernelwright.search.answers import roofline_share
from kernelwright.search.claims import Names, claim_of
from kernelwright.search.seeded import SEEDED
from kernelwright.search.stopping import LOOKED
from kernelwright.search.store import Store
from kernelwright.search.trial import MODEL_CALL, Event, Trial
from kernelwright.search.tuning.serving import ALL, CACHE, LOST, SERVED
from kernelwright.search.tuning.warm import FOUND, WARM
from kernelwright.search.underway import unanswered

# Events of the campaign itself, which may stand in the same place as a call.
NOT_REPLIES = (
    MODEL_CALL,
    "stopped",
    "finished",
    "extended",
    "invalid",
    "unconfirmed",
    "dethroned",
    "raced",
    LOOKED,
    "dethroned_in_race",
    CACHE,
    SERVED,
    LOST,
    SEEDED,
    FOUND,
    WARM,
    "surroundings",
    "retrieved",
    "parent_examined",
    "context_cut",
)


# What is known of a run whose model was reached otherwise from some call on.
REACHED = "reached"


def best_trial(trials: list[Trial]) -> Trial | None:
    """The confirmed trial, wins before all others and of those the fastest, for a tie is often what
    a stricter level could not tell; while none is confirmed, the screened one of greatest
    objective.

    Of several wins (an extended search confirms again) it is the last, which a race put before the
    others; choosing by their claims would credit the luckiest.
    """
    confirmed = [
        (t.status is Status.WIN, _spent(t), _ratio(t), -t.number, t)
        for t in trials
        if t.status.is_claim
    ]
    if confirmed:
        return max(confirmed)[-1]
    # Where a host was too noisy to say anything it was no fault of the candidate's.
    passed = [
        (t.status is Status.UNSTABLE, t.objective, -t.number, t)
        for t in trials
        if t.objective is not None and (t.status.passed or t.status is Status.UNSTABLE)
    ]
    return max(passed)[-1] if passed else None


def _spent(trial: Trial) -> float:
    """Grows from win to win: each confirmation may spend less than the one before."""
    verdict = trial.verdict(Stage.CONFIRM)
    terms = None if verdict is None else verdict.terms
    return -terms.alpha if terms is not None and trial.status is Status.WIN else 0.0


def _ratio(trial: Trial) -> float:
    interval = claimed(trial)
    return interval.estimate if interval else 0.0


def claimed(trial: Trial, role: Role = Role.BASELINE) -> Interval | None:
    """The confirmed interval of a trial against a reference."""
    verdict = trial.verdict(Stage.CONFIRM)
    return None if verdict is None else speedup(verdict, role)


def shown(candidate: Candidate) -> dict[str, Scalar] | str:
    """A candidate as a reader sees it: knob values by name, a schedule as Python,
    source as text.
    """
    payload = candidate.payload
    if candidate.language is Language.KNOBS:
        return candidate.knobs
    if isinstance(payload, str):
        return payload
    return print_trace(tuple(step for step in payload if isinstance(step, Directive)))


def best_entry(trial: Trial) -> dict[str, Any]:
    """The ``best`` object.

    A limit that could not be told (no confirmation, too few samples) is null; without a
    confirmation the speedup is a single screen's. ``level`` is that of the interval which decided,
    stricter than the 95% of the limits; ``least_effect`` what it had to be beyond.
    """
    interval, confirmed = claimed(trial), trial.verdict(Stage.CONFIRM)
    terms = confirmed.terms if confirmed is not None else None
    measured = trial.measured
    assert measured is not None
    measurement = measured.measurements[0]
    return {
        "key": trial.candidate.key,
        "status": trial.status.value,
        "speedup": interval.estimate if interval else 2.0 ** (trial.objective or 0.0),
        "ci_low": _known(interval.low) if interval else None,
        "ci_high": _known(interval.high) if interval else None,
        "level": 1 - 2 * terms.alpha if terms else None,
        "least_effect": terms.least_effect if terms else None,
        "evidence": Evidence(measurement.evidence).value,
        "machine": measurement.machine,
        "trial": trial.number,
        "language": trial.candidate.language.value,
        "candidate": shown(trial.candidate),
        "facts": dict(trial.verdicts[-1][1].facts),
        "log": trial.verdicts[-1][1].log,
        "warning": NAIVE_WARNING if measurement.clock == NAIVE_CLOCK else None,
    }


def warning(config: Mapping[str, Any]) -> str | None:
    """What every report of a resolved campaign says first; None where there is nothing to say."""
    return NAIVE_WARNING if config.get("judge", {}).get("profile") == NAIVE_PROFILE else None


def summarise(store: Store) -> dict[str, Any]:
    """The state of a run: best, counts by status, what was spent, and how it ended."""
    trials, events, meta, spent = store.trials(), store.events(), store.meta(), store.spent()
    best = best_trial(trials)
    library = claimed(best, Role.LIBRARY) if best else None
    last = events[-1] if events else None
    stops = [e for e in events if e.kind == "stopped"]
    calls = _calls(events)
    counts = Counter(trial.status.value for trial in trials)
    return {
        "warning": warning(json.loads(meta["config"])) if "config" in meta else None,
        "notes": json.loads(meta.get("notes", "[]")),
        "best": best_entry(best) if best else None,
        "claim": claim_of(best, Names.stored(meta)) if best else None,
        "library": meta.get("library"),
        "library_ratio": library.estimate if library else None,
        "library_low": _known(library.low) if library else None,
        "library_high": _known(library.high) if library else None,
        "trials": len(trials),
        "by_status": dict(sorted(counts.items())),
        "failures": _failures(trials),
        "baseline": json.loads(meta["baseline"]) if "baseline" in meta else None,
        "speed_of_light": _light(best, json.loads(meta.get("bounds", "[]"))),
        "seconds": spent.search_s + spent.confirm_s,
        # What a call cost stands in its event; a trial's share of it says who paid.
        "calls": len(calls),
        "tokens": sum(e.tokens for e in events) or sum(t.tokens for t in trials),
        "usd": sum(e.usd for e in events) or sum(t.usd for t in trials),
        "unpriced": json.loads(meta.get("unpriced", "[]")),
        "seconds_search": spent.search_s,
        "seconds_confirm": spent.confirm_s,
        "finished": bool(last and last.kind == "finished"),
        "goes_on_by": _command(meta),
        "stop": stops[-1].data if stops else None,
        "served": sum(e.kind == SERVED for e in events),
        "cache": _cache(events),
        "refused": sum(e.kind == "invalid" for e in events),
        "duplicates": sum(e.kind == "duplicate" and (e.ask, e.slot) not in calls for e in events),
        "replies": _replies(events),
        "last_lost": _last_lost(events),
        "answered_by": answered_by(events),
        "failures_by": failures_by(events),
        "reached": json.loads(meta.get(REACHED, "[]")),
        "unanswered": _unanswered(meta),
        "unconfirmed": [n for e in events if e.kind == "unconfirmed" for n in e.data["trials"]],
    }


def _command(meta: Mapping[str, str]) -> str:
    """The command that goes on with a run: candidates from outside come through ``mcp``."""
    driver = json.loads(meta.get("config", "{}")).get("driver", {})
    return "mcp" if driver.get("name") == "external" else "run"


def _unanswered(meta: Mapping[str, str]) -> dict[str, Any]:
    """The calls whose answers were lost with the process, and what they cost at most."""
    calls = unanswered(meta)
    cost = {"tokens": sum(c.tokens for c in calls), "usd": sum(c.usd for c in calls)}
    return {"calls": len(calls), **cost}


def _cache(events: list[Event]) -> dict[str, Any] | None:
    """What the tuning cache held when the run started and, if it served nothing, why."""
    opening = next((e.data for e in events if e.kind == CACHE), None)
    if opening is None:
        return None
    reason = opening["reason"]
    if any(e.kind == SERVED for e in events):
        reason = None
    elif any(e.kind == LOST for e in events):
        reason = "they are no longer there"
    elif opening["serves"] == ALL:
        reason = "they are of other configurations than were tried"
    return {"records": opening["records"], "reason": reason}


def _light(best: Trial | None, bounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The bounds of the workloads, and the share of them that the best reaches by its latest
    samples: null where no bound or no best is known.
    """
    verdict = best.measured if best else None
    floors = [(bound["workload"], bound["floor_ns"]) for bound in bounds]
    share = roofline_share(verdict, floors) if verdict and floors else 0.0
    return {"bounds": bounds, "share": share or None}


def _failures(trials: list[Trial]) -> list[dict[str, Any]]:
    """The classes of failure with how often they came and what was seen first, most frequent
    first.
    """
    found: dict[tuple[str, str], list[tuple[int, Verdict]]] = {}
    for trial in trials:
        verdict = trial.verdicts[-1][1]
        if verdict.code is not None:
            place = (verdict.status.value, verdict.code)
            found.setdefault(place, []).append((trial.number, verdict))
    rows = []
    for (status, code), seen in found.items():
        number, first = seen[0]
        row = {"status": status, "code": code, "count": len(seen), "trial": number}
        rows.append({**row, "evidence": first.evidence, "log": first.log})
    return sorted(rows, key=lambda row: -len(found[row["status"], row["code"]]))


def _known(limit: float) -> float | None:
    return limit if 0 < limit < math.inf else None


def _replies(events: list[Event]) -> dict[str, int]:
    """What became of a model's answers, by the kind of event that its driver put beside each."""
    calls = _calls(events)
    beside = (e.kind for e in events if (e.ask, e.slot) in calls and e.kind not in NOT_REPLIES)
    return dict(sorted(Counter(beside).items()))


def _last_lost(events: list[Event]) -> str | None:
    """Why the last call was lost that came to nothing."""
    reasons = [e.data.get("reason") for e in events if e.kind == "lost"]
    return reasons[-1] if reasons else None


def _calls(events: list[Event]) -> set[tuple[int, int]]:
    return {(e.ask, e.slot) for e in events if e.kind == MODEL_CALL}
