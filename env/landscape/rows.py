"""What readers share: values as immutable ones, knob values, and configurations that stand more
than once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelwright.env.landscape.record import Entry, JsonText, Landscape, ascending
from kernelwright.env.types import KnobPayload, Scalar

FACTS = ("regs", "spills", "shared")
"""The compiler's facts about a kernel: registers a thread, spilled ones, bytes of shared memory."""

Values = tuple[tuple[Scalar, ...], ...]


def frozen(value: Any) -> Scalar:
    """A JSON value as an immutable one: scalars as they are, anything else as its text."""
    plain = isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value))
    return value if plain else JsonText(json.dumps(value))


def thawed(value: Scalar) -> Any:
    """The JSON value that `frozen` was given."""
    return json.loads(value) if isinstance(value, JsonText) else value


def pairs(mapping: Mapping[str, Any]) -> tuple[tuple[str, Scalar], ...]:
    """A mapping as immutable pairs in the order of their names."""
    return tuple((str(name), frozen(mapping[name])) for name in sorted(mapping))


def knob_value(name: str, value: Any) -> Scalar:
    """A knob's value: a scalar as it is, a list or an object as its JSON text.

    Raises:
        TypeError: if it is nothing or not a finite number.
    """
    if isinstance(value, int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | dict):
        return json.dumps(value)
    raise TypeError(f"{name}: expected a knob value, found {value!r:.80}")


def payload(row: Mapping[str, Any]) -> KnobPayload:
    """Knob values by name as a configuration."""
    if set(map(type, row.values())) <= {int, str, bool}:
        return tuple(sorted(row.items()))
    return tuple((name, knob_value(name, row[name])) for name in sorted(row))


def numbers(name: str, value: Any, unit: str) -> tuple[float, ...]:
    """A list of times as a tuple.

    Raises:
        TypeError: if it is not a list of numbers.
    """
    if not isinstance(value, list) or not value:
        raise TypeError(f"{name}: expected a list of times, found {value!r:.80}")
    if set(map(type, value)) <= {int, float}:
        return tuple(value)
    for each in value:
        if not isinstance(each, int | float) or isinstance(each, bool):
            raise TypeError(f"{name}: expected a time in {unit}, found {each!r:.80}")
    return tuple(value)


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def errors_alike(landscape: Landscape, *, failed: bool) -> set[str]:
    """Names of metrics that formats would take for an error's text: an objective that is text, of a
    configuration that failed, or of one that ran.
    """
    places = {"time", *landscape.objectives}
    return {
        name
        for entry in landscape.entries
        if (entry.error is not None) is failed
        for name, value in entry.metrics
        if name in places and isinstance(thawed(value), str)
    }


def facts_of(row: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The compiler's facts in a row."""
    return tuple([(name, float(row[name])) for name in FACTS if name in row])


def value_lists(
    names: Sequence[str], declared: Mapping[str, Any], entries: Iterable[Entry]
) -> tuple[Values, list[str]]:
    """The full list of values of each knob: as declared, then what occurs besides.

    Returns:
        The lists in the order of ``names``, and notes on what was not declared.
    """
    seen: dict[str, set[Scalar]] = {name: set() for name in names}
    for place, name in enumerate(sorted(names)):
        seen[name] = {entry.knobs[place][1] for entry in entries}
    lists, notes = [], []
    for name in names:
        given = declared.get(name)
        known = [knob_value(name, v) for v in given] if isinstance(given, list) else []
        known = list(dict.fromkeys(known))
        besides = ascending(seen[name] - set(known))
        if known and besides:
            notes.append(f"{name} has values that are not declared: {', '.join(map(str, besides))}")
        lists.append((*known, *besides))
    return tuple(lists), notes


def merged(entries: Iterable[Entry]) -> tuple[tuple[Entry, ...], list[str]]:
    """Configurations that were measured more than once as one each: all their times, or else the
    last failure.

    Returns:
        The entries in the order of their first measurement, and a note if some were merged.
    """
    table: dict[KnobPayload, list[Entry]] = {}
    count = 0
    for entry in entries:
        table.setdefault(entry.knobs, []).append(entry)
        count += 1
    notes = (
        [f"{count - len(table)} repeated measurements were merged"] if len(table) < count else []
    )
    return tuple(_together(group) for group in table.values()), notes


def _together(group: list[Entry]) -> Entry:
    if len(group) == 1:
        return group[0]
    ran = [entry for entry in group if entry.times]
    if not ran:
        return group[-1]
    return replace(ran[-1], times=tuple(time for entry in ran for time in entry.times))
