"""Rows of a store, read: a file is edited, torn and copied half by whoever has it, so every field
is looked at before it is believed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from kernelwright.env.records import loads
from kernelwright.env.types import Candidate, Stage, Verdict
from kernelwright.search.packing import unpacked
from kernelwright.search.trial import MODEL_CALL, Event, Trial

TRIAL_COLUMNS = tuple(
    "number candidate objective proposer parents seed ask tokens usd".split()  # noqa: SIM905
)
EVENT_COLUMNS = ("kind", "ask", "slot", "payload", "tokens", "usd")
# No kernel is 2 ** 1000 times faster than another one.
MOST_LOG2 = 1000.0
# What whoever reads an event counts on, with its class.
_KEPT: dict[str, dict[str, type]] = {
    "stopped": {"rule": str, "reason": str},
    "unconfirmed": {"trials": list},
}
# What the record of a call need not have, and is believed where it does; null is nothing.
_OF_A_CALL = {"key": str, "model": str, "request": dict, "completion": dict, "error": dict}
# What is known of a campaign as JSON, with its class; all else is text.
_ABOUT: dict[str, type] = {
    "config": dict,
    "baseline": dict,
    "bounds": list,
    "notes": list,
    "tasks": dict,
    "reached": list,
}
_STAGES = {stage: place for place, stage in enumerate(Stage)}


def trials_of(
    rows: Sequence[Sequence[Any]],
    verdicts: Sequence[tuple[int, str, str | bytes]],
    *,
    are_all: bool = True,
) -> list[Trial]:
    """Trials from rows of `TRIAL_COLUMNS` and of (trial, stage, verdict), in order; texts are as
    `packing` left them. Unless ``are_all``, there may be others between them.

    Raises:
        ValueError: naming what was expected and found.
    """
    judged: dict[int, list[tuple[Stage, Verdict]]] = {}
    for number, stage, text in verdicts:
        judged.setdefault(number, []).append((Stage(stage), loads(Verdict, unpacked(text))))
    trials = []
    for place, row in enumerate(rows):
        fields = dict(zip(TRIAL_COLUMNS, row, strict=True))
        number = _typed(f"trial {place}", "number", fields["number"], int)
        where = f"trial {number}"
        if are_all and number != place:
            _wrong(f"trial {place}", "number", f"{place}", number)
        for name in ("seed", "ask", "tokens"):
            _typed(where, name, fields[name], int)
        _typed(where, "proposer", fields["proposer"], str)
        _money(where, fields)
        if fields["objective"] is not None:
            _typed(where, "objective", fields["objective"], float, int)
            if not abs(fields["objective"]) <= MOST_LOG2:
                _wrong(where, "objective", f"at most {MOST_LOG2:g}", fields["objective"])
        fields["candidate"] = loads(Candidate, unpacked(fields["candidate"]))
        parents = _json(where, "parents", fields["parents"], list)
        fields["parents"] = tuple(_typed(where, "parent", name, str) for name in parents)
        if number not in judged:
            _wrong(where, "verdicts", "at least one", "none")
        ordered = sorted(judged[number], key=lambda pair: _STAGES[pair[0]])
        trials.append(Trial(verdicts=tuple(ordered), **fields))
    return trials


def event_of(row: Sequence[Any]) -> Event:
    """An event from a row of `EVENT_COLUMNS`.

    Raises:
        ValueError: as `trials_of`.
    """
    fields = dict(zip(EVENT_COLUMNS, row, strict=True))
    kind = _typed("event", "kind", fields["kind"], str)
    where = f"event {kind:.40}"
    for name in ("ask", "slot", "tokens"):
        _typed(where, name, fields[name], int)
    where += f" of ask {fields['ask']}, place {fields['slot']}"
    _money(where, fields)
    fields["payload"] = unpacked(fields["payload"])
    payload = _json(where, "payload", fields["payload"], dict)
    for name, wanted in _KEPT.get(kind, {}).items():
        _typed(where, name, payload.get(name), wanted)
    for name, wanted in _OF_A_CALL.items() if kind == MODEL_CALL else ():
        if payload.get(name) is not None:
            _typed(where, name, payload[name], wanted)
    return Event(**fields)


def about_of(rows: Sequence[tuple[Any, Any]]) -> dict[str, str]:
    """What is known of a campaign, from rows of (name, value).

    Raises:
        ValueError: as `trials_of`.
    """
    for name, value in rows:
        if _typed("meta", "name", name, str) in _ABOUT:
            found = _json("meta", name, value, _ABOUT[name])
            if name == "baseline" and not isinstance(found.get("name"), str):
                _wrong("meta", name, "an object with a name", found)
            for bound in found if name == "bounds" else ():
                if not isinstance(bound, dict) or not {"workload", "floor_ns"} <= bound.keys():
                    _wrong("meta", name, "workloads with their floors", bound)
        else:
            _typed("meta", name, value, str)
    return dict(rows)


def _money(where: str, fields: Mapping[str, Any]) -> None:
    """See that tokens and money are amounts: whoever counts what was spent believes them."""
    if fields["tokens"] < 0:
        _wrong(where, "tokens", "at least 0", fields["tokens"])
    usd = _typed(where, "usd", fields["usd"], float, int)
    if not 0 <= usd < math.inf:
        _wrong(where, "usd", "a finite amount of at least 0", usd)


def _json(where: str, name: str, text: Any, wanted: type) -> Any:
    try:
        found = json.loads(_typed(where, name, text, str))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: {name}: expected JSON: {error}") from None
    return _typed(where, name, found, wanted)


def _typed(where: str, name: str, value: Any, *wanted: type) -> Any:
    if type(value) not in wanted:
        _wrong(where, name, " or ".join(kind.__name__ for kind in wanted), value)
    return value


def _wrong(where: str, name: str, expected: str, found: object) -> NoReturn:
    raise ValueError(f"{where}: {name}: expected {expected}, found {found!r:.80}")
