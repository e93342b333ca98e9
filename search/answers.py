"""What a campaign reads from verdicts: whether one answers its request, and how near to the
roofline it is.
"""

from __future__ import annotations

import statistics

from kernelwright.env.objective import log2_speedup
from kernelwright.env.types import Request, Role, Stage, Unpaired, Verdict


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


def roofline_share(verdict: Verdict) -> float:
    """The geometric mean over workloads of floor / candidate time, from the samples against the
    baseline; 0 without floors.
    """
    floors, shares = dict(verdict.floors_ns), []
    for m in verdict.measurements:
        if m.role is Role.BASELINE and m.workload in floors:
            samples = m.samples
            times = (
                samples.candidate_ns
                if isinstance(samples, Unpaired)
                else [c for pair in samples for c, _ in pair.samples_ns]
            )
            shares.append(floors[m.workload] / statistics.median(times))
    return statistics.geometric_mean(shares) if shares else 0.0
