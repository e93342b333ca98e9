"""Tuning logs of TVM's first two tuners, AutoTVM and Ansor (auto_scheduler): one JSON object a
line, with the input, and the seconds of each run, the number of an error, the cost of the
measurement and its time of day. A failure's time is 1e9 seconds.

AutoTVM's knobs are the entities of its template. Ansor has none: where all programs have one
structure, what differs between their steps are the knobs, else the list of steps is the only one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kernelwright.env.landscape.record import Entry, Failure, Landscape
from kernelwright.env.landscape.rows import is_number, merged, pairs, payload
from kernelwright.env.landscape.source import Source

_ERRORS = (
    *((None, "no error"), (Failure.CONSTRAINTS, "instantiation error")),
    *((Failure.COMPILE, "compile host"), (Failure.COMPILE, "compile device")),
    *((Failure.RUNTIME, "runtime device"), (Failure.CORRECTNESS, "wrong answer")),
    *((Failure.TIMEOUT, "build timeout"), (Failure.TIMEOUT, "run timeout")),
    (Failure.RUNTIME, "unknown error"),
)
"""What the numbers of errors mean, from 0."""

_FAILED_S = 1e9


class _Record(NamedTuple):
    workload: str
    target: str
    knobs: dict[str, Any]
    result: list[Any]


def from_autotvm(source: Source) -> Landscape:
    """Read a log.

    Raises:
        LandscapeError: naming file and line, if it is no log or holds more than one workload.
    """
    rows, records = source.rows(), []
    for number, row in rows:
        try:
            records.append(_record(row))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            found = f"{type(error).__name__}: {error}"
            raise source.error(f"expected a record of AutoTVM or Ansor: {found}", number) from None
    workloads = list(dict.fromkeys(record.workload for record in records))
    if len(workloads) > 1:
        listed = "; ".join(name[:60] for name in workloads[:5])
        raise source.error(f"expected one workload, found {len(workloads)} ({listed}): split it")
    if "steps" in records[0].knobs:
        records = _by_difference(records)
    try:
        whole, notes = merged(_entry(record) for record in records)
        names = tuple(dict.fromkeys(name for record in records for name in record.knobs))
        return Landscape(
            kernel=workloads[0],
            device=records[0].target,
            extents=(),
            knob_names=names,
            entries=whole,
            objectives=("time",),
            metadata=pairs({k: rows[0][1][k] for k in ("tvm_version",) if k in rows[0][1]}),
            sha256=source.sha256,
            format="autotvm",
            notes=(*source.notes, *notes),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise source.error(str(error)) from None


def _record(row: dict[str, Any]) -> _Record:
    given, result = row.get("input", row.get("i")), row.get("result", row.get("r"))
    if not isinstance(given, list) or not isinstance(result, list) or len(result) < 4:
        raise TypeError("an input and a result of four")
    if isinstance(given[0], list):  # Ansor: [workload key, target, …], [[], steps]
        return _Record(str(given[0][0]), str(given[0][1]), {"steps": given[1][1]}, result)
    config = row["config"] if "config" in row else given[5]
    entities = config["entity"] if "entity" in config else config["e"]
    knobs = {entity[0]: entity[2] for entity in entities}
    arguments = json.dumps(given[2], separators=(",", ":"))
    return _Record(f"{given[1]}{arguments}", str(given[0]), knobs, result)


def _by_difference(records: list[_Record]) -> list[_Record]:
    """Ansor's records with the places in which their steps differ as knobs, where they are alike in
    structure.
    """
    leaves = [dict(_leaves(record.knobs["steps"], "s")) for record in records]
    same = len({tuple(found) for found in leaves}) == 1
    varying = (
        [n for n in leaves[0] if len({json.dumps(found[n]) for found in leaves}) > 1]
        if same
        else []
    )
    if not varying:
        return records
    return [
        record._replace(knobs={name: found[name] for name in varying})
        for record, found in zip(records, leaves, strict=True)
    ]


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for place, each in enumerate(value):
            yield from _leaves(each, f"{name}_{place}" if name != "s" else f"s{place}")
    else:
        yield name, "null" if value is None else value


def _entry(record: _Record) -> Entry:
    costs, number, total, stamp = record.result[:4]
    error = _ERRORS[number] if 0 <= number < len(_ERRORS) else _ERRORS[-1]
    failed = number != 0 or any(not is_number(c) or c >= _FAILED_S for c in costs)
    text = error[1] if error[0] else _ERRORS[-1][1]
    when = datetime.fromtimestamp(stamp, UTC).isoformat(" ") if is_number(stamp) and stamp else None
    return Entry(
        knobs=payload(record.knobs),
        times=() if failed else tuple(costs),
        error=text if failed else None,
        failure=(error[0] or Failure.RUNTIME) if failed else None,
        costs=(("benchmark", total),) if is_number(total) else (),
        timestamp=when,
        unit="s",
    )
