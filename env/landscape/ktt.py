"""Results of KTT, the Kernel Tuning Toolkit: one JSON object with ``Metadata`` and a list
``Results`` of configurations with the durations of their kernels, registers, memory, profiling
counters and what each cost, all in the unit of the metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.env.landscape.record import Entry, Failure, Landscape
from kernelwright.env.landscape.rows import frozen, is_number, merged, pairs, payload
from kernelwright.env.landscape.source import Source
from kernelwright.env.landscape.units import unit_of
from kernelwright.env.types import Scalar

_FAILURES = {
    "CompilationFailed": Failure.COMPILE,
    "ComputationFailed": Failure.RUNTIME,
    "ValidationFailed": Failure.CORRECTNESS,
    "DeviceLimitsExceeded": Failure.CONSTRAINTS,
}
_COSTS = {
    "CompilationOverhead": "compile",
    "ValidationOverhead": "verify",
    "DataMovementOverhead": "framework",
    "SearcherOverhead": "strategy",
}
_FACTS = {"RegistersCount": "regs", "LocalMemorySize": "shared"}
_METRICS = ("ExtraDuration", "ExtraOverhead", "ProfilingOverhead", "TotalOverhead")
_READ = ("Device", "TimeUnit")


def from_ktt(source: Source) -> Landscape:
    """Read results.

    Raises:
        LandscapeError: naming the file and the result, if it is none of KTT's or holds impossible
            values.
    """
    about, results = source.document["Metadata"], source.document["Results"]
    if not isinstance(about, dict) or not isinstance(results, list) or not results:
        raise source.error("expected KTT's Metadata and a list of Results")
    entries = []
    for place, result in enumerate(results):
        try:
            entries.append(_entry(result, unit_of(about.get("TimeUnit", "Milliseconds"))))
        except KeyError as error:
            expected = f"expected the key {error.args[0]!r}, found none"
            raise source.error(expected, f"Results[{place}]") from None
        except (ValueError, TypeError, OverflowError, AttributeError) as error:
            raise source.error(str(error), f"Results[{place}]") from None
    whole, notes = merged(entries)
    try:
        return Landscape(
            kernel=str(results[0].get("KernelName", "")),
            device=str(about.get("Device", "")),
            extents=(),
            knob_names=tuple(pair["Name"] for pair in results[0]["Configuration"]),
            entries=whole,
            objectives=("time",),
            metadata=pairs({k: v for k, v in about.items() if k not in _READ}),
            sha256=source.sha256,
            format="ktt",
            notes=(*source.notes, *notes),
        )
    except (ValueError, TypeError) as error:
        raise source.error(str(error)) from None


def _entry(result: Mapping[str, Any], unit: str) -> Entry:
    status = result["Status"]
    kernels = result.get("ComputationResults") or []
    if status == "Ok":
        total = result.get("TotalDuration", sum(kernel["Duration"] for kernel in kernels))
    compiled = [kernel["CompilationData"] for kernel in kernels if kernel.get("CompilationData")]
    facts = [
        (fact, float(max(data[key] for data in compiled)))
        for key, fact in _FACTS.items()
        if compiled and all(is_number(data.get(key)) for data in compiled)
    ]
    return Entry(
        knobs=payload({pair["Name"]: pair["Value"] for pair in result["Configuration"]}),
        times=(total,) if status == "Ok" else (),
        error=None if status == "Ok" else str(status),
        facts=tuple(facts),
        failure=None if status == "Ok" else _FAILURES.get(status, Failure.RUNTIME),
        costs=tuple((c, result[k]) for k, c in _COSTS.items() if is_number(result.get(k))),
        timestamp=result.get("Timestamp"),
        metrics=tuple(sorted(_metrics(result, kernels))),
        unit=unit,
        cost_unit=unit,
    )


def _metrics(
    result: Mapping[str, Any], kernels: list[Mapping[str, Any]]
) -> list[tuple[str, Scalar]]:
    metrics = {name: frozen(result[name]) for name in _METRICS if name in result}
    for number, kernel in enumerate(kernels):
        start = f"{kernel.get('KernelFunction', number)}." if len(kernels) > 1 else ""
        for counter in (kernel.get("ProfilingData") or {}).get("Counters") or ():
            metrics[f"{start}{counter['Name']}"] = frozen(counter["Value"])
    return list(metrics.items())
