"""JSON lines, the format of the shipped recordings: a header, then one configuration a line.

Header keys that are read: ``kernel``, ``gpu``, ``unit`` (us), the library's samples (``cublas_us``
or ``sdpa_us``), ``default`` (a mapping of knob values), ``knobs`` (the knob names, if they are not
the known ones), and any whole number that names an extent (``m n k``, ``heads seq dim``). A row has
the knobs, and ``us`` (a list of samples) or ``error``; ``err`` is the relative error of the result;
``regs spills shared`` are the compiler's facts. A failed row that lacks a knob holds for all of
that knob's values.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

from kernelwright.env.landscape.record import Entry, Landscape, LandscapeError
from kernelwright.env.types import KnobPayload, Scalar

KNOWN_KNOBS = ("bm", "bn", "bk", "warps", "stages", "group_m")
EXTENTS = ("m", "n", "k", "heads", "seq", "dim")
LIBRARIES = {"cublas_us": "cublas", "sdpa_us": "sdpa"}
FACTS = ("regs", "spills", "shared")


def read_jsonl(path: Path) -> Landscape:
    """Read a recording.

    Raises:
        LandscapeError: naming file and line, if it is truncated, not JSON, lacks a knob or holds
            impossible values.
    """
    raw = path.read_bytes()
    try:
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise LandscapeError(f"{path}: expected JSON lines, found damaged data: {error}") from None
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise LandscapeError(f"{path}: expected a header line, found an empty file")
    header = _row(path, *lines[0])
    rows = [(n, _row(path, n, line)) for n, line in lines[1:]]
    names = header.get("knobs", [k for k in KNOWN_KNOBS if any(k in row for _, row in rows)])
    if not (isinstance(names, list) and names and all(isinstance(n, str) for n in names)):
        raise LandscapeError(f"{path}:1: knobs: expected a list of names, found {names!r}")
    if header.get("unit", "us") != "us":
        raise LandscapeError(f"{path}:1: unit: expected 'us', found {header['unit']!r}")
    seen = {name: _distinct(rows, name) for name in names}
    entries = []
    for n, row in rows:
        for knobs in _expand(path, n, row, seen):
            try:
                entries.append(_entry(row, knobs))
            except (ValueError, TypeError, OverflowError) as error:
                raise LandscapeError(f"{path}:{n}: {error}") from None
    library = next((key for key in LIBRARIES if key in header), None)
    default = header.get("default")
    if not isinstance(default, dict | None):
        raise LandscapeError(f"{path}:1: default: expected a mapping, found {default!r}")
    try:
        return Landscape(
            kernel=str(header.get("kernel", "")),
            device=str(header.get("gpu", "")),
            extents=tuple((k, header[k]) for k in EXTENTS if isinstance(header.get(k), int)),
            knob_names=tuple(names),
            entries=tuple(entries),
            library=LIBRARIES[library] if library else None,
            library_ns=_times(header[library], library) if library else (),
            default=tuple(sorted(default.items())) if isinstance(default, dict) else None,
            sha256=hashlib.sha256(raw).hexdigest(),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise LandscapeError(f"{path}: {error}") from None


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
        json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        found = getattr(error, "msg", None) or str(error)
        raise LandscapeError(f"{path}:{number}: expected a JSON object: {found}") from None
    if not isinstance(row, dict):
        raise LandscapeError(f"{path}:{number}: expected a JSON object, found {type(row).__name__}")
    return row


def _distinct(rows: list[tuple[int, dict[str, Any]]], name: str) -> list[Scalar]:
    values = {row[name] for _, row in rows if isinstance(row.get(name), int | float | str)}
    return sorted(values, key=lambda value: (str(type(value)), value))


def _expand(
    path: Path, number: int, row: dict[str, Any], seen: dict[str, list[Scalar]]
) -> list[KnobPayload]:
    choices: list[list[Scalar]] = []
    for name, values in seen.items():
        if name not in row:
            if "error" not in row:
                raise LandscapeError(
                    f"{path}:{number}: expected a value of knob {name!r}, found none"
                )
            choices.append(values)
        elif not isinstance(row[name], int | float | str):
            raise LandscapeError(
                f"{path}:{number}: {name}: expected a knob value, found {row[name]!r}"
            )
        else:
            choices.append([row[name]])
    return [
        tuple(sorted(zip(seen, combination, strict=True)))
        for combination in itertools.product(*choices)
    ]


def _times(value: Any, name: str) -> tuple[float, ...]:
    """A list of microseconds, in nanoseconds."""
    if not isinstance(value, list) or not value:
        raise TypeError(f"{name}: expected a list of times, found {value!r:.80}")
    for us in value:
        if not isinstance(us, int | float) or isinstance(us, bool):
            raise TypeError(f"{name}: expected a time in microseconds, found {us!r:.80}")
    return tuple(1e3 * float(us) for us in value)


def _entry(row: dict[str, Any], knobs: KnobPayload) -> Entry:
    error = row.get("error")
    return Entry(
        knobs=knobs,
        samples_ns=_times(row["us"], "us") if "us" in row else (),
        error=None if error is None else str(error),
        max_error=None if row.get("err") is None else float(row["err"]),
        facts=tuple((name, float(row[name])) for name in FACTS if name in row),
    )


def write_jsonl(landscape: Landscape, path: Path) -> None:
    """Write a landscape so that `read_jsonl` gives it back (but for the file's hash); gzip if the
    name ends in ``.gz``.
    """
    header: dict[str, Any] = {
        "kernel": landscape.kernel,
        **dict(landscape.extents),
        "gpu": landscape.device,
    }
    header |= {"unit": "us", "knobs": list(landscape.knob_names)}
    if landscape.library:
        key = next(key for key, name in LIBRARIES.items() if name == landscape.library)
        header[key] = [ns / 1e3 for ns in landscape.library_ns]
    if landscape.default is not None:
        header["default"] = dict(landscape.default)
    lines = [json.dumps(header)]
    for entry in landscape.entries:
        row: dict[str, Any] = {**dict(entry.knobs), **dict(entry.facts)}
        if entry.max_error is not None:
            row["err"] = entry.max_error
        row |= (
            {"error": entry.error}
            if entry.error is not None
            else {"us": [t / 1e3 for t in entry.samples_ns]}
        )
        lines.append(json.dumps(row))
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
