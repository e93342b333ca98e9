"""T4 1.0.0, the results format of the auto-tuning community: one JSON object with ``metadata``
and a list ``results``, each with its ``configuration``, ``times`` (the compiler's, the framework's,
the search's, the validation's, and every run's), ``invalidity``, ``measurements`` and
``objectives``.

The schema calls the compiler's time ``compilation_time`` and files ``compilation``; older files
spell the unit ``miliseconds``. All are read, and the schema's unit and the files' key written. What
T4 has no word for is in ``metadata``: the lists of values as ``tune_params``, the rest under
``kernelwright``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kernelwright.env.landscape.block import BLOCK, block_of, in_block, rounded, units_in
from kernelwright.env.landscape.kernel_tuner import mean_of, time_in
from kernelwright.env.landscape.record import Entry, Failure, Landscape, LandscapeError
from kernelwright.env.landscape.rows import (
    FACTS,
    errors_alike,
    facts_of,
    frozen,
    is_number,
    merged,
    pairs,
    payload,
    thawed,
    value_lists,
)
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.units import NAMES, in_unit, unit_of
from kernelwright.env.types import Scalar

_COSTS = {
    "compilation": "compile",
    "compilation_time": "compile",
    "validation": "verify",
    "benchmark": "benchmark",
    "framework": "framework",
    "search_algorithm": "strategy",
}
_TIMES = {*_COSTS, "runtimes"}
_KEYS = {cost: key for key, cost in _COSTS.items() if key != "compilation_time"}
_COMPILED = {"registers": "regs", "local_memory_size": "shared"}
_RELATIVE = "relative_error"
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")
_DEVICE = ("device_name", "device")
_METADATA = {*_DEVICE, "kernel_name", "timeunit", "tune_params", BLOCK}


def from_t4(source: Source) -> Landscape:
    """Read results.

    Raises:
        LandscapeError: naming the file and the result, if it is no T4 or holds impossible values.
    """
    results = source.document.get("results")
    metadata = source.document.get("metadata") or {}
    if not isinstance(results, list) or not isinstance(metadata, dict):
        raise source.error(f"expected T4's results and metadata, found {results!r:.80}")
    if not source.whole and "metadata" not in source.document:
        expected = "metadata before the results of a file that breaks off"
        raise source.error(f"expected {expected}, found none: the unit of times is not known")
    dropped, entries = 0, []
    objectives: tuple[str, ...] = ()
    units: dict[str, str] = {}
    try:
        unit = unit_of(metadata.get("timeunit", "milliseconds"))
        own = units_in(metadata.get(BLOCK), unit)
    except ValueError as error:
        raise source.error(str(error), "metadata") from None
    for place, result in enumerate(results):
        try:
            if metadata.get("autotuner") == "KTT":
                numbers = {k: _number(v) for k, v in result["configuration"].items()}
                result = {**result, "configuration": numbers}
            objectives = objectives or tuple(map(str, result.get("objectives") or ()))
            entry, ignored = _entry(result, unit, own, units)
            entries.append(entry)
            dropped += ignored
        except (ValueError, TypeError, OverflowError, AttributeError) as error:
            raise source.error(str(error), f"results[{place}]") from None
        except KeyError as error:
            expected = f"expected the key {error.args[0]!r}, found none"
            raise source.error(expected, f"results[{place}]") from None
    notes = [f"the run times of {dropped} failed configurations are not kept"] if dropped else []
    return _landscape(source, metadata, results, (*entries,), objectives, units, notes)


def _landscape(
    source: Source,
    metadata: Mapping[str, Any],
    results: list[Any],
    entries: tuple[Entry, ...],
    objectives: tuple[str, ...],
    units: Mapping[str, str],
    notes: list[str],
) -> Landscape:
    try:
        entries, repeated = merged(entries)
        declared = metadata.get("tune_params", {})
        first = results[0]["configuration"] if results else {}
        names = list(declared if set(declared) == set(first) else first)
        values, undeclared = value_lists(names, declared, entries)
        rest = {k: v for k, v in metadata.items() if k not in _METADATA}
        if set(units.values()) - {""}:
            rest["metric_units"] = {name: unit for name, unit in units.items() if unit}
        return Landscape(
            kernel=str(metadata.get("kernel_name") or ""),
            device=next((str(metadata[k]) for k in _DEVICE if metadata.get(k)), ""),
            knob_names=tuple(names),
            entries=entries,
            values=values,
            objectives=objectives,
            metadata=pairs(rest),
            sha256=source.sha256,
            format="t4",
            notes=(*source.notes, *repeated, *undeclared, *notes),
            **({"extents": ()} | in_block(metadata.get(BLOCK))),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise source.error(str(error)) from None


def _entry(
    result: Mapping[str, Any], unit: str, own: tuple[str, str], units: dict[str, str]
) -> tuple[Entry, bool]:
    """The entry of a result, and whether run times of a failure were left out."""
    times, found, objectives = result["times"], {}, result.get("objectives") or ["time"]
    for one in result.get("measurements") or ():
        found[one["name"]] = one.get("value")
        if one["name"] not in (*FACTS, _RELATIVE, "time"):
            units.setdefault(one["name"], one.get("unit") or "")
    kind = result["invalidity"]
    runtimes = times.get("runtimes")
    error = None
    if kind != "correct":
        words = [found.pop(n) for n in objectives if isinstance(found.get(n), str)]
        error = words[0] if words else str(kind)
    elif not runtimes:
        runtimes = [found.pop("time", None)]
    given = runtimes if error is None else []
    mean = found.pop("time", None) if error is None else None
    timed = error is not None and bool(runtimes or is_number(found.pop("time", None)))
    facts = facts_of(found | _compiled(result))
    relative = found.pop(_RELATIVE, None)
    metrics = [(n, frozen(v)) for n, v in found.items() if n not in FACTS]
    if mean is not None and not (given and mean == mean_of(given)):
        metrics.append(("time", time_in(mean, unit, own[0])))
    metrics += [(f"times.{key}", frozen(times[key])) for key in times.keys() - _TIMES]
    metrics.sort()
    costs = {_COSTS[key]: times[key] for key in _COSTS.keys() & times.keys()}
    entry = Entry(
        knobs=payload(result["configuration"]),
        times=in_unit(given, unit, own[0]),
        error=error,
        max_error=relative,
        facts=facts,
        failure=None if error is None else Failure(kind),
        costs=_costs(costs, unit, own[1]),
        timestamp=result.get("timestamp"),
        metrics=tuple(metrics),
        unit=own[0],
        cost_unit=own[1],
    )
    return entry, timed


def _compiled(result: Mapping[str, Any]) -> dict[str, Any]:
    """The compiler's facts as KTT writes them beside T4's own keys."""
    given = result.get("compilation_data") or {}
    return {fact: given[key] for key, fact in _COMPILED.items() if is_number(given.get(key))}


def _number(value: Any) -> Any:
    """A whole number that is written as text, as KTT does, as a number."""
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def _costs(costs: Mapping[str, Any], unit: str, own: str) -> tuple[tuple[str, float], ...]:
    given = [(cost, costs[cost]) for cost in _KEYS if cost in costs and is_number(costs[cost])]
    if unit == own:
        return tuple(given)
    moved = in_unit([value for _, value in given], unit, own)
    return tuple(zip([cost for cost, _ in given], moved, strict=True))


def to_t4(landscape: Landscape) -> tuple[str, tuple[str, ...]]:
    """A landscape as the text of T4 results, and what is lost.

    Raises:
        LandscapeError: if a metric has a name that is given to something else.
    """
    metrics = {name for entry in landscape.entries for name, _ in entry.metrics}
    metadata = {name: thawed(value) for name, value in landscape.metadata}
    failed = {name for e in landscape.entries if e.error is not None for name, _ in e.metrics}
    error = {*(landscape.objectives[:1] or ("time",))}
    taken = sorted(
        (metrics & {*FACTS, _RELATIVE})
        | (metadata.keys() & _METADATA)
        | (failed & error)
        | errors_alike(landscape, failed=True)
    )
    if taken:
        raise LandscapeError(f"expected other names than {', '.join(taken)} in T4")
    unit = landscape.entries[0].unit
    units = metadata.pop("metric_units", {})
    head: dict[str, Any] = {"timeunit": NAMES[unit]}
    if landscape.device:
        head["device_name"] = landscape.device
    if landscape.kernel:
        head["kernel_name"] = landscape.kernel
    head["tune_params"] = dict(zip(landscape.knob_names, map(list, landscape.values), strict=True))
    head |= metadata
    block = block_of(landscape, unit, named=bool(landscape.extents))
    head |= {BLOCK: block} if block else {}
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    results = [encode(_result(entry, landscape, unit, units)) for entry in landscape.entries]
    lines = ",\n".join(results)
    text = (
        f'{{"metadata": {encode(head)},\n"schema_version": "1.0.0",\n"results": [\n{lines}\n]}}\n'
    )
    return text, rounded(landscape, unit)


def _result(
    entry: Entry, landscape: Landscape, unit: str, units: Mapping[str, str]
) -> dict[str, Any]:
    knobs = dict(entry.knobs)
    moved = in_unit([value for _, value in entry.costs], entry.cost_unit, unit)
    times: dict[str, Any] = {
        _KEYS[cost]: value for (cost, _), value in zip(entry.costs, moved, strict=True)
    }
    runtimes = list(in_unit(entry.times, entry.unit, unit))
    if runtimes:
        times["runtimes"] = runtimes
    result: dict[str, Any] = {"timestamp": entry.timestamp} if entry.timestamp is not None else {}
    result |= {
        "configuration": {name: knobs[name] for name in landscape.knob_names},
        "times": times,
        "invalidity": "correct" if entry.failure is None else entry.failure.value,
        "correctness": int(entry.error is None),
        "measurements": list(_measurements(entry, landscape, runtimes, unit, units)),
    }
    if landscape.objectives:
        result["objectives"] = list(landscape.objectives)
    return result


def _measurements(
    entry: Entry,
    landscape: Landscape,
    runtimes: list[float],
    unit: str,
    units: Mapping[str, str],
) -> Iterable[dict[str, Scalar]]:
    found: dict[str, Any] = {name: thawed(value) for name, value in entry.metrics}
    if entry.error is not None:
        found[landscape.objectives[0] if landscape.objectives else "time"] = entry.error
    else:
        moved = thawed(time_in(found["time"], entry.unit, unit)) if "time" in found else None
        found = {"time": None} | found
        found["time"] = mean_of(runtimes) if moved is None else moved
    found |= dict(entry.facts)
    if entry.max_error is not None:
        found[_RELATIVE] = entry.max_error
    for name, value in found.items():
        yield {"name": name, "value": value, "unit": units.get(name, "")}
