"""From the verdicts on a configuration to its entry in a landscape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelwright.env.landscape.record import COSTS, Entry, Failure
from kernelwright.env.landscape.rows import FACTS
from kernelwright.env.types import (
    Candidate,
    KnobPayload,
    Measurement,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.search.campaign import JudgeError

_FAILURES = {
    Status.BUILD_ERROR: Failure.COMPILE,
    Status.CRASHED: Failure.RUNTIME,
    Status.OVER_LIMIT: Failure.RUNTIME,
    Status.WRONG: Failure.CORRECTNESS,
    Status.TOO_FAST: Failure.CORRECTNESS,
    Status.TIMEOUT: Failure.TIMEOUT,
    Status.REJECTED: Failure.CONSTRAINTS,
}


def entry_of(candidate: Candidate, verdicts: Sequence[Verdict]) -> Entry | None:
    """The entry of a candidate's verdicts; one that failed once has failed.

    Raises:
        JudgeError: if the judge is at fault.
    """
    knobs: KnobPayload = candidate.payload  # type: ignore[assignment]
    failed = next((v for v in verdicts if not v.status.passed), None)
    said = failed or verdicts[0]
    if said.status is Status.BROKEN:
        raise JudgeError(f"{candidate}: {said.code}: {said.evidence}")
    if said.status is Status.UNSTABLE:
        return None
    known = {f"{cost}_s": cost for cost in COSTS}
    facts = dict(said.facts)
    entry = Entry(
        knobs,
        (1.0,),
        max_error=said.max_error,
        facts=tuple((name, facts[name]) for name in FACTS if name in facts),
        costs=tuple((cost, facts[name]) for name, cost in known.items() if name in facts),
        metrics=tuple(sorted((n, v) for n, v in facts.items() if n not in {*FACTS, *known})),
        unit="ns",
    )
    if failed is not None:
        text = said.evidence.removeprefix("recorded: ") or str(said.code)
        return replace(entry, times=(), error=text, failure=_FAILURES[said.status])
    times = tuple(time for v in verdicts for time in _times(v.measurements[0]))
    return replace(entry, times=times)


def _times(measurement: Measurement) -> tuple[float, ...]:
    samples = measurement.samples
    if isinstance(samples, Unpaired):
        return samples.candidate_ns
    return tuple(pair[0] for pairs in samples for pair in pairs.samples_ns)
