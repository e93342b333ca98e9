"""Helion's files: its tuning log (CSV, with ``NAME.meta.jsonl`` beside it) is read, its best
configuration (``HASH.best_config``) is written.

A row of the log is one configuration, written as Python's ``Config(block_sizes=[64, 32], …)``, with
its status, milliseconds and seconds of the compiler. A list is one knob for each of its places, as
``block_sizes_0``.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kernelwright.env.landscape.python_values import UNPARSED
from kernelwright.env.landscape.record import Entry, Failure, Landscape, LandscapeError
from kernelwright.env.landscape.rows import merged, pairs, payload
from kernelwright.env.landscape.source import Source
from kernelwright.env.types import Scalar

_FAILURES = {
    "error": Failure.RUNTIME,
    "timeout": Failure.TIMEOUT,
    "peer_compilation_fail": Failure.COMPILE,
    "accuracy_error": Failure.CORRECTNESS,
}
_LISTS = (
    *("block_sizes", "num_threads", "loop_orders", "flatten_loops", "grid_fissions"),
    *("l2_groupings", "reduction_loops", "range_unroll_factors", "range_warp_specializes"),
    *("range_num_stages", "range_multi_buffers", "range_flattens", "static_ranges"),
    *("load_eviction_policies", "indexing", "atomic_indexing"),
)
_PLACE = re.compile(rf"({'|'.join(_LISTS)})_(\d+)")
_UNSET = "unset"


def from_helion(source: Source) -> Landscape:
    """Read a tuning log.

    Raises:
        LandscapeError: naming file and line, if it is no log or holds more than one kernel or
            shape.
    """
    found, notes = _rows(source)
    runs = list(dict.fromkeys(row.get("run_id") or "" for row, _ in found))
    if len(runs) > 1:
        listed = ", ".join(run[:12] for run in runs)
        raise source.error(f"expected one run_id, found {len(runs)} ({listed}): split the log")
    names = list(dict.fromkeys(name for _, config in found for name in config))
    try:
        entries = [_entry(row, {n: config.get(n, _UNSET) for n in names}) for row, config in found]
        whole, repeated = merged(entries)
        about = _about(source, runs[0] if runs else "")
        hardware = about.pop("hardware_info", None) or about.pop("hardware", None)
        return Landscape(
            kernel=str(about.pop("kernel_name", "")),
            device=_device(hardware),
            extents=(),
            knob_names=tuple(names),
            entries=whole,
            objectives=("time",),
            metadata=pairs(about | ({"hardware": hardware} if isinstance(hardware, dict) else {})),
            sha256=source.sha256,
            format="helion",
            notes=(*source.notes, *notes, *repeated),
        )
    except (ValueError, TypeError) as error:
        raise source.error(str(error)) from None


def _rows(source: Source) -> tuple[list[tuple[dict[str, str], dict[str, Scalar]]], list[str]]:
    """Rows with their configurations, of what ran or failed; and notes on the rest."""
    rows = _lines(source)
    out: list[tuple[dict[str, str], dict[str, Scalar]]] = []
    left: dict[str, int] = {}
    for number, row in rows:
        try:
            config = config_of(row["config"])
            if row["status"] == "ok":
                float(row["perf_ms"])
        except (ValueError, TypeError, KeyError) as error:
            raise source.error(f"expected a row of a Helion log: {error}", number) from None
        if row["status"] == "ok" or row["status"] in _FAILURES:
            out.append((row, config))
        else:
            left[row["status"]] = left.get(row["status"], 0) + 1
    if not out:
        raise source.error("expected at least one configuration, found none")
    done = {json.dumps(config) for _, config in out}
    begun = [row["config"] for _, row in rows if row.get("status") == "started" and row["config"]]
    unfinished = sum(json.dumps(config_of(text)) not in done for text in begun)
    left.pop("started", None)
    notes = [f"{count} rows of status {status!r} are not read" for status, count in left.items()]
    if unfinished:
        notes.append(f"{unfinished} configurations were begun and not finished")
    return out, notes


def _lines(source: Source) -> list[tuple[int, dict[str, str]]]:
    """The rows with the numbers of their lines. A last one without an end of line is lost: half a
    number is a number too.
    """
    reader = csv.DictReader(io.StringIO(source.text, newline=""))
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise source.error(f"expected a row of a Helion log: {error}", reader.line_num) from None
    if rows and (not source.text.endswith("\n") or None in rows[-1][1].values()):
        source.notes.append("the last line breaks off: 1 record is lost")
        rows.pop()
    return rows


def config_of(text: str | None) -> dict[str, Scalar]:
    """The knobs of a configuration's text, ``Config(…)`` or JSON.

    Raises:
        ValueError: if it is neither.
    """
    if text is None:
        raise ValueError("config: expected a configuration, found none")
    if text.lstrip().startswith("{"):
        try:
            given = json.loads(text)
        except RecursionError as error:
            raise ValueError(f"config: {text!r:.80}: {error}") from None
    else:
        given = _called(text)
    knobs: dict[str, Scalar] = {}
    for name, value in given.items():
        listed = isinstance(value, list | tuple)
        for key, one in (
            [(f"{name}_{i}", v) for i, v in enumerate(value)] if listed else [(name, value)]
        ):
            knobs[key] = json.dumps(one) if one is None or isinstance(one, list | tuple) else one
            if not isinstance(knobs[key], int | float | str):
                raise ValueError(f"config: {key}: expected a knob value, found {one!r:.80}")
            str(knobs[key]).encode()
    return knobs


def _called(text: str) -> dict[str, Any]:
    """The keyword arguments of ``Config(…)``.

    Raises:
        ValueError: if it is none.
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Call):
            return {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg}
    except (*UNPARSED, ValueError, TypeError) as error:
        raise ValueError(f"config: {text!r:.80}: {error}") from None
    raise ValueError(f"config: expected Config(...), found {text!r:.80}")


def _entry(row: Mapping[str, str], config: Mapping[str, Scalar]) -> Entry:
    ran, compiled = row["status"] == "ok", row.get("compile_time_s")
    metrics = [(k, row[k]) for k in ("generation", "sample_id", "timestamp_s") if row.get(k)]
    return Entry(
        knobs=payload(config),
        times=(float(row["perf_ms"]),) if ran else (),
        error=None if ran else row["status"],
        failure=None if ran else _FAILURES[row["status"]],
        costs=(("compile", float(compiled)),) if compiled else (),
        metrics=tuple(sorted(metrics)),
        unit="ms",
    )


def _about(source: Source, run: str) -> dict[str, Any]:
    """What the metadata file beside a log says of its run."""
    name = source.path.name.removesuffix(".gz").removesuffix(".csv")
    path = source.path.with_name(f"{name}.meta.jsonl")
    if not path.is_file():
        source.notes.append(f"no {path.name} beside it: kernel and device are not known")
        return {}
    rows = [row for _, row in Source(path).rows()]
    found = [row for row in rows if row.get("run_id", "") == run] or (rows if not run else [])
    return dict(found[-1]) if found else {}


def _device(hardware: Any) -> str:
    if isinstance(hardware, dict):
        keys = ("device_name", "name", "hardware", "gpu_name", "gpu")
        return next((str(hardware[key]) for key in keys if hardware.get(key)), "")
    return str(hardware or "")


def to_helion(landscape: Landscape) -> tuple[str, tuple[str, ...]]:
    """The best configuration as Helion keeps it, and what is lost.

    Raises:
        LandscapeError: if no configuration ran, or two of its knobs stand for one place.
    """
    try:
        best = landscape.best
    except ValueError as error:
        raise LandscapeError(f"a best configuration for Helion: {error}") from None
    knobs = dict(best.knobs)
    config = gathered((name, knobs[name]) for name in landscape.knob_names)
    shape = ", ".join(f"{name}={size}" for name, size in landscape.extents)
    fields = {
        "hardware": landscape.device,
        "runtime_name": "",
        "kernel_source_hash": "",
        "specialization_key": f"{landscape.kernel}({shape})",
        "config_spec_hash": "",
    }
    data = {
        "config": json.dumps(config, indent=2),
        "key": {"type": "LooseAutotuneCacheKey", "fields": fields},
        "flat_config": json.dumps([knobs[name] for name in landscape.knob_names]),
    }
    others = len(landscape.entries) - 1
    lost = [f"{others:,} other configurations"] if others else []
    lost += ["all times", "hashes of the kernel's source and of its space, which are not known"]
    return json.dumps(data, indent=2) + "\n", tuple(lost)


def gathered(pairs_: Iterable[tuple[str, Scalar]]) -> dict[str, Any]:
    """Knobs as a configuration of Helion: places of its lists together, ``warps`` and ``stages``
    under its names.

    Raises:
        LandscapeError: if two knobs stand for one place.
    """
    config: dict[str, Any] = {}
    places: dict[str, dict[int, Any]] = {}
    for name, value in pairs_:
        if value == _UNSET:
            continue
        match = _PLACE.fullmatch(name)
        plain = (
            json.loads(value)
            if isinstance(value, str) and value[:1] in ("[", "n") and _json(value)
            else value
        )
        key = match[1] if match else {"warps": "num_warps", "stages": "num_stages"}.get(name, name)
        if key in config and not (match and key in places and int(match[2]) not in places[key]):
            raise LandscapeError(f"expected one knob for {key} of Helion, found {name} beside it")
        if match:
            places.setdefault(key, {})[int(match[2])] = plain
        config[key] = plain
    for key, found in places.items():
        if sorted(found) != list(range(len(found))):
            listed = ", ".join(map(str, sorted(found)))
            raise LandscapeError(f"{key}: expected places from 0 on in Helion, found {listed}")
        config[key] = [found[place] for place in sorted(found)]
    return config


def _json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
