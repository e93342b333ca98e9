"""Autotuning caches of Triton, ``KERNEL.autotune.json``: the key of the arguments, and for every
configuration the median and the 20% and 80% quantiles of its times in milliseconds, or infinity.

Reading gives one sample a configuration, the median, because quantiles are no samples; the others
are the metrics ``p20`` and ``p80``. Writing gives a file of the same shape.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelwright.env.landscape.record import Entry, Failure, Landscape, LandscapeError
from kernelwright.env.landscape.rows import merged, pairs, payload, thawed
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.units import in_unit

_ENDING = ".autotune.json"
_FIELDS: dict[str, Any] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
    "pre_hook": None,
    "ir_override": None,
}
"""The fields of a configuration beside its own keywords, with Triton's defaults."""

_SHORT = {"warps": "num_warps", "stages": "num_stages"}
_KEY = "key"


def from_triton(source: Source) -> Landscape:
    """Read a cache.

    Raises:
        LandscapeError: naming the file and the place, if it is none of Triton's or holds
            impossible values.
    """
    timings = source.document["configs_timings"]
    if not isinstance(timings, list) or not timings:
        raise source.error(f"configs_timings: expected a list, found {timings!r:.80}")
    configs, entries = [], []
    for place, timing in enumerate(timings):
        try:
            config, times = timing
            given = {**config.get("kwargs", {}), **{k: config.get(k) for k in _FIELDS}}
            configs.append(given)
            entries.append((given, times if isinstance(times, list) else [times]))
        except (ValueError, TypeError, AttributeError) as error:
            raise source.error(str(error), f"configs_timings[{place}]") from None
    names = [n for n in dict.fromkeys(n for c in configs for n in c) if _said(n, configs)]
    try:
        whole, notes = merged(_entry({n: c.get(n) for n in names}, t) for c, t in entries)
        return Landscape(
            kernel=source.path.name.removesuffix(".gz").removesuffix(_ENDING),
            device="",
            extents=(),
            knob_names=tuple(names),
            entries=whole,
            objectives=("time",),
            metadata=pairs({_KEY: source.document.get("key", [])}),
            sha256=source.sha256,
            format="triton",
            notes=(*source.notes, *notes),
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise source.error(str(error)) from None


def _said(name: str, configs: list[dict[str, Any]]) -> bool:
    """Whether a name is a knob: a keyword, or a field that some configuration sets."""
    return name not in _FIELDS or any(config[name] is not None for config in configs)


def _entry(config: dict[str, Any], times: list[Any]) -> Entry:
    knobs = payload({k: "null" if v is None else v for k, v in config.items()})
    median, *quantiles = times
    if not math.isfinite(median):
        # What Triton's tuner catches: too many resources, a failed assertion, a fault in ptxas.
        return Entry(knobs, error="no time", failure=Failure.COMPILE, unit="ms")
    metrics = tuple(zip(("p20", "p80"), quantiles, strict=False))
    return Entry(knobs, (median,), metrics=metrics, unit="ms")


def to_triton(landscape: Landscape) -> tuple[str, tuple[str, ...]]:
    """A landscape as the text of a Triton cache, and what is lost.

    Knobs named ``warps`` and ``stages`` become Triton's own.

    Raises:
        LandscapeError: if two knobs would have one name.
    """
    names = [_SHORT.get(name, name) for name in landscape.knob_names]
    if len(set(names)) < len(names):
        found = ", ".join(landscape.knob_names)
        raise LandscapeError(f"expected knobs of different names in Triton, found {found}")
    metadata = {name: thawed(value) for name, value in landscape.metadata}
    key = metadata.get(_KEY) or [str(extent) for _, extent in landscape.extents]
    timings = [
        [_config(landscape.knob_names, entry), quantiles_ms(entry)] for entry in landscape.entries
    ]
    return json.dumps({"key": key, "configs_timings": timings}) + "\n", tuple(_lost(landscape))


def _lost(landscape: Landscape) -> Iterator[str]:
    """What a cache has no word for."""
    entries, names = landscape.entries, set(landscape.knob_names)
    if landscape.failed:
        yield "what failed, and why: all have the time infinity"
    if any(len(entry.times) > 1 for entry in entries):
        yield "samples, of which the median and the 20% and 80% quantiles are left"
    if any(e.facts or e.costs or e.max_error is not None for e in entries):
        yield "the compiler's facts, costs and relative errors"
    kept = {"p20", "p80"} if all(len(entry.times) < 2 for entry in entries) else set()
    metrics = {name for entry in entries for name, _ in entry.metrics} - kept
    if metrics:
        yield f"metrics: {', '.join(sorted(metrics))}"
    if any(entry.timestamp is not None for entry in entries):
        yield "times of day"
    if landscape.device:
        yield f"the device {landscape.device!r}"
    if landscape.library is not None:
        yield f"the times of the library {landscape.library!r}"
    if landscape.default is not None:
        yield "the default configuration"
    if landscape.extents:
        yield "the names of the extents"
    rest = [name for name, _ in landscape.metadata if name != _KEY]
    if rest:
        yield f"metadata: {', '.join(rest)}"
    occurring = {name: {dict(e.knobs)[name] for e in entries} for name in names}
    unused = [n for n in landscape.knob_names if {*landscape.knob_values(n)} - occurring[n]]
    if unused:
        yield f"values that no configuration has, of {', '.join(unused)}"


def _config(names: tuple[str, ...], entry: Entry) -> dict[str, Any]:
    knobs, fields = dict(entry.knobs), dict(_FIELDS)
    kwargs: dict[str, Any] = {}
    for name in names:
        field = _SHORT.get(name, name)
        value = None if knobs[name] == "null" else knobs[name]
        (fields if field in _FIELDS else kwargs)[field] = value
    return {"kwargs": kwargs, **fields}


def quantiles_ms(entry: Entry) -> list[float]:
    """Median, 20% and 80% quantile of an entry's times in ms, infinity if it failed."""
    if not entry.times:
        return [math.inf] * 3
    times, metrics = in_unit(entry.times, entry.unit, "ms"), dict(entry.metrics)
    if len(times) == 1 and {"p20", "p80"} <= metrics.keys() and entry.unit == "ms":
        return [times[0], thawed(metrics["p20"]), thawed(metrics["p80"])]
    return [float(np.quantile(times, q)) for q in (0.5, 0.2, 0.8)]
