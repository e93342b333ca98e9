"""Rows of the shape → configuration table: what a search ended with, as plain data.

A row holds what a program needs to use the configuration (problem, extents, device, compiler, the
candidate) and what a reader needs to judge it (speedup, interval, evidence, how much was tried,
when). Rows are what ``export --table`` writes, what the tuning cache keeps of each search, and what
`kernelwright.autotune` dispatches from.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pprint import pformat
from typing import Any

from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Candidate, Problem, Status
from kernelwright.search.claims import in_figures
from kernelwright.search.trial import Trial
from kernelwright.search.tuning.identity import identity
from kernelwright.search.tuning.key import canonical, extents_of, spans

TABLE_FORMAT = 1
Row = dict[str, Any]
_RANK = {Status.WIN: 3, Status.TIE: 2, Status.OK: 1}
# What a reader's table shows, and under which name; the others are for programs.
_SHOWN = {
    "problem": "problem",
    "options": "options",
    "extents": "extents",
    "device": "device",
    "toolchain": "compiler",
    "configuration": "configuration",
    "speedup": "speedup",
    "baseline": "over",
    "library": "against the library",
    "evidence": "evidence",
    "evaluations": "tried",
    "when": "when",
}
# Of a target's options those that the columns of device and compiler tell, and those that say what
# passes and not what a time means.
_TOLD = ("name", "flags", "toolchain", "limit_s")


def row_of(
    problem: Problem,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    best: Trial,
    at: float,
) -> Row:
    """The row of a search.

    Args:
        problem: what it was about.
        config: its resolved campaign.
        summary: its summary (`search.summary.summarise`).
        best: its best trial.
        at: when it ended, in s since 1970.
    """
    entry = summary["best"]
    device, _, toolchain = str(entry["machine"]).partition("; ")
    extents = [extents_of(spans(workload)) for workload in problem.workloads]
    target = json.loads(canonical(config["target"]))
    named = {value for value in target.values() if isinstance(value, str)}
    return {
        "problem": problem.identity,
        "options": {
            name: value
            for name, value in sorted(config["problem"].items())
            if name not in ("name", *extents[0])
        },
        "extents": extents[0] if len(extents) == 1 else extents,
        "target": target,
        "files": {n: sha for n, sha in sorted(config["hashes"].items()) if n in named},
        "device": device,
        "toolchain": toolchain or None,
        "space": config["space"]["kind"],
        "candidate": json.loads(dumps(best.candidate)),
        "means": identity(problem, best.candidate),
        "configuration": entry["candidate"],
        "status": entry["status"],
        **{name: entry[name] for name in ("speedup", "ci_low", "ci_high", "evidence")},
        "baseline": summary["baseline"]["name"] if summary["baseline"] else None,
        **{n: summary[n] for n in ("library", "library_ratio", "library_low", "library_high")},
        "evaluations": summary["trials"],
        "served": summary["served"],
        "run": config["name"],
        "when": datetime.fromtimestamp(int(at), UTC).isoformat().replace("+00:00", "Z"),
    }


def place(row: Mapping[str, Any]) -> str:
    """What a row is the choice for: equal for rows that compete. A target's data files count by
    what is in them, wherever they are.
    """
    files = row.get("files", {})
    target = {
        name: files.get(value, value) if isinstance(value, str) else value
        for name, value in row["target"].items()
        if name != "limit_s"
    }
    options = canonical(row["options"]) + canonical(target)
    parts = (row["problem"], canonical(row["extents"]), row["device"], row["toolchain"], options)
    return canonical(parts)


def better(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Sorts rows, the one to use last: losses (and ties whose limits lie below 1), what was only
    screened, ties, wins; then by the lower limit of the speedup, where it has one; then the latest.
    """
    is_slower = row["ci_high"] is not None and row["ci_high"] < 1
    rank = 0 if is_slower else _RANK.get(Status(row["status"]), 0)
    at = datetime.fromisoformat(str(row["when"]).replace("Z", "+00:00")).timestamp()
    return (rank, row["ci_low"] or 0.0 if rank > 1 else row["speedup"], at)


def best_row(rows: Iterable[Row]) -> Row:
    """Of rows of one place the one to use. What a configuration was claimed to be, win or loss,
    goes before what was guessed of it.
    """
    rows = list(rows)
    claimed = {row["means"] for row in rows if Status(row["status"]).is_claim}
    known = [r for r in rows if Status(r["status"]).is_claim or r["means"] not in claimed]
    return max(known, key=lambda row: (better(row), canonical(row)))


def table(rows: Iterable[Row]) -> list[Row]:
    """One row a place, in the order of problem, extents and device."""
    places: dict[str, list[Row]] = {}
    for row in rows:
        places.setdefault(place(row), []).append(row)
    return sorted(map(best_row, places.values()), key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    first = row["extents"][0] if isinstance(row["extents"], list) else row["extents"]
    sizes = tuple((name, *_ends(size)) for name, size in first.items())
    return (row["problem"], len(sizes), sizes, row["device"], place(row))


def _ends(size: int | str) -> tuple[int, int]:
    low, _, high = str(size).partition("..")
    return int(low), int(high or low)


def candidate_of(row: Mapping[str, Any]) -> Candidate:
    """The candidate of a row.

    Raises:
        ValueError: if it has none.
    """
    return loads(Candidate, json.dumps(row.get("candidate")))


def read_table(text: str) -> list[Row]:
    """The rows of a table in JSON.

    Raises:
        ValueError: if it is none, or of a later format.
    """
    try:
        data = json.loads(text)
        found, rows = data["format"], data["rows"]
        if not isinstance(rows, list):
            raise ValueError(f"expected a list of rows, found {rows!r:.80}")
        for number, row in enumerate(rows if found == TABLE_FORMAT else ()):
            _check(row, f"row {number + 1}")
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        what = (str(error).splitlines() or ["damage"])[0]
        raise ValueError(f"expected a table (export --table), found damage: {what}") from None
    if found != TABLE_FORMAT:
        raise ValueError(f"expected a table of format {TABLE_FORMAT}, found {found!r}")
    return rows


# What a row's entries are, where a program reads them.
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("problem", "device", "means", "status", "when"), ((str,), "text")),
    **dict.fromkeys(("options", "target"), ((dict,), "a mapping")),
    **dict.fromkeys(("toolchain", "baseline"), ((str, type(None)), "text or null")),
    "speedup": ((int, float), "a number"),
    **dict.fromkeys(("ci_low", "library_high"), ((int, float, type(None)), "a number or null")),
}


def _check(row: Mapping[str, Any], where: str) -> None:
    """See that a row is whole: what is wrong with it is said when a table is read, and not by the
    first call that meets it.

    Raises:
        ValueError: naming the entry.
    """
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected a mapping, found {row!r:.80}")
    for name, (kinds, expected) in _KINDS.items():
        value = row.get(name)
        fits = name in row and isinstance(value, kinds) and not isinstance(value, bool)
        if not fits or (isinstance(value, float) and not math.isfinite(value)):
            found = f"{value!r:.80}" if name in row else "nothing"
            raise ValueError(f"{where}: {name}: expected {expected}, found {found}")
    sizes = row.get("extents")
    each = sizes if isinstance(sizes, list) else [sizes]
    if not each or not all(e and isinstance(e, dict) for e in each):
        raise ValueError(f"{where}: extents: expected sizes by name, found {sizes!r:.80}")
    try:
        candidate_of(row)
        place(row), better(row), _order(dict(row))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {(str(error).splitlines() or ['damage'])[0]}") from None


# How tables are written


def _json(rows: Sequence[Row]) -> str:
    return json.dumps({"format": TABLE_FORMAT, "rows": list(rows)}, indent=2) + "\n"


def _csv(rows: Sequence[Row]) -> str:
    """A column an extent, and one a knob where rows have knobs; what is neither is JSON."""
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def _flat(row: Row) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in row.items():
        if name in ("candidate", "means"):
            continue
        if name in ("extents", "configuration") and isinstance(value, dict):
            prefix = "" if name == "extents" else "knob."
            out |= {f"{prefix}{inner}": each for inner, each in value.items()}
        else:
            out[name] = canonical(value) if isinstance(value, dict | list) else value
    return out


def _markdown(rows: Sequence[Row]) -> str:
    lines = [f"| {' | '.join(_SHOWN.values())} |", f"|{' --- |' * len(_SHOWN)}"]
    lines += [f"| {' | '.join(_cell(row, name) for name in _SHOWN)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(row: Row, name: str) -> str:
    value = row[name]
    match name:
        case "speedup":
            value = f"{row['status']}: {_figures(value, row['ci_low'], row['ci_high'])}"
        case "library":
            value = _library(row)
        case "options":
            own = {n: v for n, v in row["target"].items() if n not in _TOLD}
            value = _pairs({**value, **own})
        case "extents" if isinstance(value, list):
            value = "; ".join(map(_pairs, value))
        case "configuration" if not isinstance(value, dict):
            value = f"{row['candidate']['language']}: {' '.join(str(value).split())}"
    if isinstance(value, dict):
        value = _pairs(value)
    return str("-" if value in (None, "") else value).replace("|", "\\|")


def _library(row: Row) -> str | None:
    if row["library_ratio"] is None:
        return None
    ratio = _figures(row["library_ratio"], row["library_low"], row["library_high"])
    return f"{row['library'] or 'the library'} {ratio}"


def _figures(ratio: float, low: float | None, high: float | None) -> str:
    return in_figures(ratio) if low is None else in_figures(ratio, low, high)


def _pairs(value: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={each}" for name, each in value.items())


def _python(rows: Sequence[Row]) -> str:
    return (
        '"""Tuned configurations, by problem and extents; written by kernelwright."""\n\n'
        f"ROWS = {pformat(list(rows), width=100, sort_dicts=False)}\n"
    )


FORMATS: dict[str, Callable[[Sequence[Row]], str]] = {
    "json": _json,
    "csv": _csv,
    "md": _markdown,
    "py": _python,
}
