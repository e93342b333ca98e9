"""JSON lines, the format of the shipped recordings: a header, then one configuration a line.

Header keys that are read: ``kernel``, ``gpu``, ``unit`` (``us`` unless given), the library's
samples (``cublas_us``, ``sdpa_us``, or ``library`` with ``library_ns``), ``default`` (a mapping of
knob values), ``knobs`` (the knob names, if they are not the known ones), ``values`` (the full lists
of their values), ``objectives``, ``cost_unit`` (``s`` unless given), any whole number that names a
known extent (``m n k``, ``heads seq dim``) or a mapping ``extents``. Other keys are metadata, as is
the mapping ``metadata``.

A row has the knobs, and times under the header's unit (a list of samples) or ``error`` (with
``failure``, the kind of it); ``err`` is the relative error of the result; ``regs spills shared``
are the compiler's facts; ``compile_s verify_s benchmark_s framework_s strategy_s`` are costs (``_s
_ms _us _ns`` say in what), ``timestamp`` a time of day, ``metrics`` a mapping of the user's own. A
failed row that lacks a knob holds for all of that knob's values.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kernelwright.env.landscape.record import (
    COSTS,
    Entry,
    Failure,
    Landscape,
    LandscapeError,
    ascending,
)
from kernelwright.env.landscape.rows import FACTS, facts_of, frozen, numbers, pairs, thawed
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.units import SCALES, in_unit
from kernelwright.env.types import KnobPayload, Scalar

KNOWN_KNOBS = ("bm", "bn", "bk", "warps", "stages", "group_m")
EXTENTS = ("m", "n", "k", "heads", "seq", "dim")
LIBRARIES = {"cublas_us": "cublas", "sdpa_us": "sdpa"}
_HEADER = {
    "cost_unit",
    *("kernel", "gpu", "unit", "knobs", "values", "default", "objectives", "extents", "metadata"),
    *("library", "library_ns", *LIBRARIES),
}
MAX_EXPANDED = 1_000_000
_SCALARS = {int, float, str, bool}
_COST_KEYS = {f"{cost}_{unit}": (cost, unit) for unit in SCALES for cost in COSTS}
_ROW = {
    *(*SCALES, "error", "failure", "err", "timestamp", "metrics", *FACTS, *_COST_KEYS),
}


def read_jsonl(path: Path) -> Landscape:
    """Read a recording.

    Raises:
        LandscapeError: naming file and line, if it is not JSON, lacks a knob or holds impossible
            values.
    """
    return from_jsonl(Source(path))


def from_jsonl(source: Source) -> Landscape:
    """`read_jsonl` of a file that is open already."""
    (number, header), *rows = source.rows()
    names = _names(source, header, rows)
    unit, cost_unit = header.get("unit", "us"), header.get("cost_unit", "s")
    for key, found in (("unit", unit), ("cost_unit", cost_unit)):
        if not isinstance(found, str) or found not in SCALES:
            expected = f"one of {', '.join(map(repr, SCALES))}"
            raise source.error(f"{key}: expected {expected}, found {found!r:.80}", number)
    for key, kind in (("default", dict), ("values", dict), ("objectives", list)):
        if not isinstance(header.get(key, kind()), kind):
            what = "mapping" if kind is dict else "list"
            raise source.error(f"{key}: expected a {what}, found {header[key]!r:.80}", number)
    try:
        return Landscape(
            kernel=str(header.get("kernel", "")),
            device=str(header.get("gpu", "")),
            extents=_extents(header),
            knob_names=tuple(names),
            entries=tuple(_entries(source, rows, names, (unit, cost_unit))),
            library=_library(header),
            library_ns=_library_ns(header),
            default=tuple(sorted(header["default"].items())) if "default" in header else None,
            values=tuple(tuple(map(frozen, header["values"][name])) for name in names)
            if header.get("values")
            else (),
            objectives=tuple(map(str, header.get("objectives", ()))),
            metadata=_metadata(header),
            sha256=source.sha256,
            format="jsonl",
            notes=tuple(source.notes),
        )
    except LandscapeError:
        raise
    except (ValueError, TypeError, OverflowError, KeyError, AttributeError) as error:
        raise source.error(str(error)) from None


def _names(source: Source, header: dict[str, Any], rows: Iterable[Any]) -> list[str]:
    names = header.get("knobs")
    if names is None:
        names = [k for k in KNOWN_KNOBS if any(k in row for _, row in rows)]
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise source.error(f"knobs: expected a list of names, found {names!r:.80}", 1)
    if not names:
        known = ", ".join(KNOWN_KNOBS)
        raise source.error(f"knobs: expected a list of names in the header, or some of {known}", 1)
    return names


def _extents(header: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    found = [(k, header[k]) for k in EXTENTS if type(header.get(k)) is int]
    return (*found, *(dict(header.get("extents", {})).items()))


def _library(header: Mapping[str, Any]) -> str | None:
    key = next((key for key in LIBRARIES if key in header), None)
    return LIBRARIES[key] if key else header.get("library")


def _library_ns(header: Mapping[str, Any]) -> tuple[float, ...]:
    key = next((key for key in LIBRARIES if key in header), None)
    if key is None:
        return tuple(header.get("library_ns", ()))
    return tuple(1e3 * float(us) for us in numbers(key, header[key], "microseconds"))


def _metadata(header: Mapping[str, Any]) -> tuple[tuple[str, Scalar], ...]:
    rest = {k: v for k, v in header.items() if k not in _HEADER and not _is_extent(k, v)}
    return pairs(rest | dict(header.get("metadata", {})))


def _is_extent(name: str, value: Any) -> bool:
    return name in EXTENTS and type(value) is int


def _entries(
    source: Source, rows: list[tuple[int, dict[str, Any]]], names: list[str], units: tuple[str, str]
) -> Iterator[Entry]:
    ordered, (unit, cost_unit) = sorted(names), units
    seen: dict[str, tuple[Scalar, ...]] = {}
    for number, row in rows:
        try:
            knobs = tuple([(name, row[name]) for name in ordered])
            if {type(value) for _, value in knobs} <= _SCALARS:
                yield _entry(row, knobs, unit, cost_unit)
                continue
        except KeyError:
            seen = seen or {name: _distinct(rows, name) for name in ordered}
        except (ValueError, TypeError, OverflowError) as error:
            raise source.error(str(error), number) from None
        for knobs in _expand(source, number, row, seen or dict.fromkeys(ordered, ())):
            try:
                yield _entry(row, knobs, unit, cost_unit)
            except (ValueError, TypeError, OverflowError) as error:
                raise source.error(str(error), number) from None


def _distinct(rows: list[tuple[int, dict[str, Any]]], name: str) -> tuple[Scalar, ...]:
    return ascending({row[name] for _, row in rows if isinstance(row.get(name), int | float | str)})


def _expand(
    source: Source, number: int, row: dict[str, Any], seen: dict[str, tuple[Scalar, ...]]
) -> list[KnobPayload]:
    """The configurations that a row without all knobs stands for."""
    choices: list[tuple[Scalar, ...]] = []
    for name, values in seen.items():
        if name not in row:
            if "error" not in row:
                raise source.error(f"expected a value of knob {name!r}, found none", number)
            choices.append(values)
        elif not isinstance(row[name], int | float | str):
            raise source.error(f"{name}: expected a knob value, found {row[name]!r:.80}", number)
        else:
            choices.append((row[name],))
    count = math.prod(map(len, choices))
    if count > MAX_EXPANDED:
        expected = f"at most {MAX_EXPANDED:,} configurations of a row that lacks knobs"
        raise source.error(f"expected {expected}, found {count:,}", number)
    return [
        tuple(zip(seen, combination, strict=True)) for combination in itertools.product(*choices)
    ]


def _entry(row: dict[str, Any], knobs: KnobPayload, unit: str, cost_unit: str) -> Entry:
    error = row.get("error")
    costs, cost_unit = _costs(row, cost_unit)
    return Entry(
        knobs=knobs,
        times=numbers(unit, row[unit], unit) if unit in row else (),
        error=None if error is None else str(error),
        max_error=None if row.get("err") is None else float(row["err"]),
        facts=facts_of(row),
        failure=Failure(row["failure"]) if "failure" in row else None,
        costs=costs,
        timestamp=row.get("timestamp"),
        metrics=pairs(row["metrics"]) if "metrics" in row else (),
        unit=unit,
        cost_unit=cost_unit,
    )


def _costs(row: Mapping[str, Any], unit: str) -> tuple[tuple[tuple[str, float], ...], str]:
    """The costs of a row in their own unit; in that of the header where they have several.

    Raises:
        ValueError: if one stands there twice.
    """
    found = [(*_COST_KEYS[key], row[key]) for key in _COST_KEYS if key in row]
    names = [cost for cost, _, _ in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice}: expected it in one unit, found several")
    units = {own for _, own, _ in found}
    unit = units.pop() if len(units) == 1 else unit
    ordered = sorted(found, key=lambda each: COSTS.index(each[0]))
    return tuple((cost, in_unit([value], own, unit)[0]) for cost, own, value in ordered), unit


def to_jsonl(landscape: Landscape) -> tuple[str, tuple[str, ...]]:
    """A landscape as JSON lines that `from_jsonl` gives back, and what is lost (nothing).

    Raises:
        LandscapeError: if a knob has the name of something else in a row.
    """
    taken = sorted(set(landscape.knob_names) & _ROW)
    if taken:
        raise LandscapeError(f"expected other knob names than {', '.join(taken)} in JSON lines")
    unit = landscape.entries[0].unit
    lines = [json.dumps(header_of(landscape, unit), ensure_ascii=False)]
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    lines += [encode(row_of(entry, unit)) for entry in landscape.entries]
    return "\n".join(lines) + "\n", ()


def header_of(landscape: Landscape, unit: str) -> dict[str, Any]:
    """The header of a landscape's lines."""
    header: dict[str, Any] = {"kernel": landscape.kernel}
    extents = dict(landscape.extents)
    flat = tuple((name, extents[name]) for name in EXTENTS if name in extents)
    header |= extents if flat == landscape.extents else {"extents": extents}
    header |= {"gpu": landscape.device, "unit": unit, "knobs": list(landscape.knob_names)}
    if landscape.entries[0].cost_unit != "s":
        header["cost_unit"] = landscape.entries[0].cost_unit
    occurring = Landscape("", "", (), landscape.knob_names, landscape.entries).values
    if landscape.values != occurring:
        header["values"] = {
            name: list(values)
            for name, values in zip(landscape.knob_names, landscape.values, strict=True)
        }
    if landscape.library:
        key = next((key for key, name in LIBRARIES.items() if name == landscape.library), None)
        times = [ns / 1e3 for ns in landscape.library_ns]
        if key and times and tuple(1e3 * us for us in times) == landscape.library_ns:
            header[key] = times
        else:
            header |= {"library": landscape.library, "library_ns": list(landscape.library_ns)}
    if landscape.default is not None:
        header["default"] = dict(landscape.default)
    if landscape.objectives:
        header["objectives"] = list(landscape.objectives)
    rest = {name: thawed(value) for name, value in landscape.metadata}
    plain = {k: v for k, v in rest.items() if k not in _HEADER and k not in EXTENTS}
    nested = {k: v for k, v in rest.items() if k not in plain}
    return header | plain | ({"metadata": nested} if nested else {})


def row_of(entry: Entry, unit: str) -> dict[str, Any]:
    """The row of an entry."""
    row: dict[str, Any] = {**dict(entry.knobs), **dict(entry.facts)}
    for name, cost in entry.costs:
        row[f"{name}_{entry.cost_unit}"] = cost
    if entry.max_error is not None:
        row["err"] = entry.max_error
    if entry.timestamp is not None:
        row["timestamp"] = entry.timestamp
    if entry.metrics:
        row["metrics"] = {name: thawed(value) for name, value in entry.metrics}
    if entry.error is None:
        row[unit] = list(in_unit(entry.times, entry.unit, unit))
    else:
        row["error"] = entry.error
        if entry.failure is not Failure.COMPILE and entry.failure is not None:
            row["failure"] = entry.failure.value
    return row
