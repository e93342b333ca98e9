"""What a campaign reads from verdicts: whether one answers its request, and how near to the
roofline it is.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from kernelwright.env.objective import log2_speedup
from kernelwright.env.types import Request, Stage, Unpaired, Verdict


def no_answer(request: Request, verdict: object) -> str | None:
    """Why a verdict does not answer a request, None if it does."""
    if not isinstance(verdict, Verdict):
        return f"expected a verdict, found {type(verdict).__name__}"
    status = verdict.status
    if status.passed and status.is_claim != (request.stage is Stage.CONFIRM):
        return f"{status} is no answer to {request.stage}"
    role = request.against[0].role
    if status.passed and log2_speedup(verdict, role) is None:
        return f"{status} without a measurement against the {role}"
    return None


def samples_ns(verdict: Verdict) -> dict[str, list[float]]:
    """The candidate's times by workload, whatever it was paired with; of several references the
    first.
    """
    found: dict[str, list[float]] = {}
    for m in verdict.measurements:
        samples = m.samples
        times = (
            list(samples.candidate_ns)
            if isinstance(samples, Unpaired)
            else [c for pair in samples for c, _ in pair.samples_ns]
        )
        found.setdefault(m.workload, times)
    return found


def candidate_times_ns(verdict: Verdict) -> dict[str, float]:
    """The candidate's median time by workload."""
    return {label: statistics.median(times) for label, times in samples_ns(verdict).items()}


def roofline_share(verdict: Verdict, floors_ns: Sequence[tuple[str, float]] = ()) -> float:
    """The geometric mean over workloads of floor / candidate time; 0 without floors.

    ``floors_ns`` are by workload; those that the verdict brings with it unless given.
    """
    floors = dict(floors_ns or verdict.floors_ns)
    times = candidate_times_ns(verdict)
    shares = [floors[label] / time for label, time in times.items() if floors.get(label)]
    return statistics.geometric_mean(shares) if shares else 0.0
