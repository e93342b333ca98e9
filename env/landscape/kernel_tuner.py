"""Cache files of Kernel Tuner: one JSON object with the whole list of values of each parameter and
a mapping ``cache`` from the joined values to the parameters, ``time`` (the mean), ``times`` and
what each configuration cost, all in milliseconds.

A failure is the name of an error in place of the time, or under ``__error__`` in newer files. What
a cache has no word for (names of extents, a library's samples, a default) is written under
``kernelwright``, which Kernel Tuner does not read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kernelwright.env.landscape.block import BLOCK, block_of, in_block, rounded, units_in
from kernelwright.env.landscape.record import (
    COSTS,
    Entry,
    Failure,
    Landscape,
    LandscapeError,
)
from kernelwright.env.landscape.rows import (
    FACTS,
    errors_alike,
    facts_of,
    frozen,
    is_number,
    knob_value,
    pairs,
    thawed,
    value_lists,
)
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.units import in_unit
from kernelwright.env.types import Scalar

AXES = ("x", "y", "z")
_ERRORS = {
    "CompilationFailedConfig": Failure.COMPILE,
    "RuntimeFailedConfig": Failure.RUNTIME,
    "InvalidConfig": Failure.CONSTRAINTS,
}
# The only names that Kernel Tuner knows; the text of the error stands beside them.
_NAMES = {kind: name for name, kind in _ERRORS.items()} | {
    Failure.CORRECTNESS: "RuntimeFailedConfig",
    Failure.TIMEOUT: "RuntimeFailedConfig",
}
_COSTS = {
    "compile_time": "compile",
    "verification_time": "verify",
    "benchmark_time": "benchmark",
    "framework_time": "framework",
    "strategy_time": "strategy",
}
_KEYS = {cost: key for key, cost in _COSTS.items()}
_ERROR, _FAILURE, _RELATIVE = "error_text", "failure", "relative_error"
_RESERVED = {
    *("time", "times", "timestamp", "__error__", _ERROR, _FAILURE, _RELATIVE, *FACTS, *_COSTS),
}
_TOP = {
    *("device_name", "kernel_name", "problem_size", "tune_params_keys", "tune_params", "objective"),
    *("cache", BLOCK),
}


def from_kernel_tuner(source: Source) -> Landscape:
    """Read a cache.

    Raises:
        LandscapeError: naming the file and the configuration, if it is no cache or holds impossible
            values.
    """
    top = source.document
    for key, kind in (("tune_params_keys", list), ("tune_params", dict), ("cache", dict)):
        if not isinstance(top.get(key), kind):
            found = f"{top[key]!r:.80}" if key in top else f"a file without {key!r}"
            raise source.error(f"expected a {key} of Kernel Tuner, found {found}")
    names, objectives = list(map(str, top["tune_params_keys"])), _objectives(top)
    known = {*_RESERVED, *names}
    strings = {*objectives, "time"}
    units, ordered, entries = units_in(top.get(BLOCK), "ms"), sorted(names), []
    for key, row in top["cache"].items():
        try:
            entries.append(_entry(row, ordered, known, strings, units))
        except (ValueError, TypeError, OverflowError, AttributeError) as error:
            raise source.error(str(error), f"cache {key!r}") from None
        except KeyError as error:
            expected = f"a value of {error.args[0]!r}"
            raise source.error(f"expected {expected}, found none", f"cache {key!r}") from None
    try:
        values, notes = value_lists(names, top["tune_params"], entries)
        size, odd = _extents(top.get("problem_size"))
        rest = {k: v for k, v in top.items() if k not in _TOP}
        return Landscape(
            kernel=str(top.get("kernel_name") or ""),
            device=str(top.get("device_name") or ""),
            knob_names=tuple(names),
            entries=tuple(entries),
            values=values,
            objectives=objectives,
            metadata=pairs(rest | odd),
            sha256=source.sha256,
            format="kernel_tuner",
            notes=(*source.notes, *notes),
            **({"extents": size} | in_block(top.get(BLOCK))),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise source.error(str(error)) from None


def _objectives(top: Mapping[str, Any]) -> tuple[str, ...]:
    given = top.get("objective")
    return tuple(map(str, given if isinstance(given, list) else [] if given is None else [given]))


def _extents(size: Any) -> tuple[tuple[tuple[str, int], ...], dict[str, Any]]:
    """Extents of a problem size, and the size itself where they do not say it all."""
    sizes = size if isinstance(size, list) else [size]
    fits = len(sizes) <= len(AXES) and all(type(s) is int and s > 0 for s in sizes)
    extents = tuple(zip(AXES, sizes, strict=False)) if fits else ()
    given = size is not None and not (fits and isinstance(size, list))
    return extents, {"problem_size": size} if given else {}


def _entry(
    row: Mapping[str, Any],
    names: list[str],
    known: set[str],
    objectives: set[str],
    units: tuple[str, str],
) -> Entry:
    knobs = tuple([(name, knob_value(name, row[name])) for name in names])
    error, (unit, cost_unit) = _error_of(row, objectives), units
    times: tuple[float, ...] = ()
    mean: Any = row.get("time")
    metrics: list[tuple[str, Scalar]] = [
        (name, frozen(row[name]))
        for name in row.keys() - known
        if error is None or not (name in objectives and row[name] == error[0])
    ]
    if error is None:
        given = row.get("times", [mean])
        if not isinstance(given, list) or not given or given == [None]:
            raise TypeError(f"times: expected a list of times, found {given!r:.80}")
        if "time" in row and mean != mean_of(given):
            metrics.append(("time", time_in(mean, "ms", unit)))
        times = in_unit(given, "ms", unit)
    metrics.sort()
    costs = [(cost, row[key]) for key, cost in _COSTS.items() if is_number(row.get(key))]
    if cost_unit != "ms":
        costs = [(cost, in_unit([value], "ms", cost_unit)[0]) for cost, value in costs]
    return Entry(
        knobs,
        times,
        None if error is None else row.get(_ERROR, error[0]),
        row.get(_RELATIVE),
        facts_of(row),
        None if error is None else Failure(row.get(_FAILURE, error[1])),
        tuple(costs),
        row.get("timestamp"),
        tuple(metrics),
        unit,
        cost_unit,
    )


def mean_of(times: Sequence[float]) -> float:
    """The mean of times as this project writes it; a mean that is another one is kept."""
    return sum(times) / len(times)


def time_in(value: Any, unit: str, to: str) -> Scalar:
    """A metric that is a time, in another unit; what is no number stays what it is."""
    return in_unit([value], unit, to)[0] if is_number(value) else frozen(value)


def _error_of(row: Mapping[str, Any], objectives: set[str]) -> tuple[str, Failure] | None:
    """The error that a row names, and its kind."""
    if "__error__" in row:
        word = str(row["__error__"])
    else:
        words = [row[name] for name in objectives if isinstance(row.get(name), str)]
        if not words:
            return None
        word = words[0]
    kind = next((kind for name, kind in _ERRORS.items() if name in word), Failure.RUNTIME)
    return word, kind


def to_kernel_tuner(landscape: Landscape) -> tuple[str, tuple[str, ...]]:
    """A landscape as the text of a cache, and what is lost.

    Raises:
        LandscapeError: if a knob or a metric has a name that a cache gives to something else, or
            two configurations would have one key.
    """
    _check_names(landscape)
    metadata = {name: thawed(value) for name, value in landscape.metadata}
    sizes = [size for _, size in landscape.extents]
    head: dict[str, Any] = {
        "device_name": landscape.device,
        "kernel_name": landscape.kernel,
        "problem_size": metadata.pop("problem_size", sizes),
        "tune_params_keys": list(landscape.knob_names),
        "tune_params": dict(zip(landscape.knob_names, map(list, landscape.values), strict=True)),
    }
    if landscape.objectives:
        one = len(landscape.objectives) == 1
        head["objective"] = landscape.objectives[0] if one else list(landscape.objectives)
    found, odd = _extents(head["problem_size"])
    if ("problem_size" in odd) != any(name == "problem_size" for name, _ in landscape.metadata):
        raise LandscapeError("expected other names than problem_size in a Kernel Tuner cache")
    block = block_of(landscape, "ms", named=landscape.extents != found)
    head |= metadata | ({BLOCK: block} if block else {})
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    objective = landscape.objectives[0] if landscape.objectives else "time"
    rows: dict[str, str] = {}
    for entry in landscape.entries:
        row = _row_of(entry, landscape.knob_names, objective)
        key = ",".join([str(row[name]) for name in landscape.knob_names])
        if key in rows:
            raise LandscapeError(f"two configurations have the key {key!r} in a Kernel Tuner cache")
        rows[key] = encode(row)
    start = json.dumps(head, ensure_ascii=False, indent=0)[:-2]
    lines = ",\n".join(
        [f"{json.dumps(key, ensure_ascii=False)}: {row}" for key, row in rows.items()]
    )
    return f'{start},\n"cache": {{\n{lines}}}\n}}\n', rounded(landscape, "ms")


def _check_names(landscape: Landscape) -> None:
    metrics = {name for entry in landscape.entries for name, _ in entry.metrics}
    knobs = set(landscape.knob_names)
    taken = sorted((knobs | metrics - {"time"}) & _RESERVED) + sorted(knobs & metrics)
    failed = {
        name for entry in landscape.entries if entry.error is not None for name, _ in entry.metrics
    }
    taken += sorted(failed & {*(landscape.objectives[:1] or ("time",))})
    taken += sorted(errors_alike(landscape, failed=True) | errors_alike(landscape, failed=False))
    top = sorted(({name for name, _ in landscape.metadata} - {"problem_size"}) & _TOP)
    if taken or top:
        found = ", ".join(dict.fromkeys(taken + top))
        raise LandscapeError(f"expected other names than {found} in a Kernel Tuner cache")


def _row_of(entry: Entry, names: tuple[str, ...], objective: str) -> dict[str, Any]:
    knobs = dict(entry.knobs)
    row: dict[str, Any] = {name: knobs[name] for name in names}
    metrics = {name: thawed(value) for name, value in entry.metrics}
    if entry.error is None:
        times = in_unit(entry.times, entry.unit, "ms")
        mean = thawed(time_in(metrics.pop("time"), entry.unit, "ms")) if "time" in metrics else None
        row |= {"time": mean_of(times) if mean is None else mean, "times": list(times)}
    else:
        assert entry.failure is not None
        name = entry.error if entry.error in _ERRORS else _NAMES[entry.failure]
        row[objective] = name
        if name != entry.error:
            row[_ERROR] = entry.error
        if _ERRORS[name] is not entry.failure:
            row[_FAILURE] = entry.failure.value
    for cost, value in zip(
        [cost for cost, _ in entry.costs],
        in_unit([value for _, value in entry.costs], entry.cost_unit, "ms"),
        strict=True,
    ):
        row[_KEYS[cost]] = value
    if entry.timestamp is not None:
        row["timestamp"] = entry.timestamp
    if entry.max_error is not None:
        row[_RELATIVE] = entry.max_error
    return row | dict(entry.facts) | metrics


assert set(_KEYS) == set(COSTS)
