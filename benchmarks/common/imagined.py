"""A target for C that compiles and runs nothing: what becomes of a program, and how long it takes,
is drawn from its text. For tables that ask about records and not about kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.protocols import Space
from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.types import (
    CacheState,
    Candidate,
    Evidence,
    Language,
    Measurement,
    Problem,
    Request,
    Scalar,
    Stage,
    Status,
    Unpaired,
    Verdict,
    Workload,
)
from kernelwright.evaluators.target import MODELLED_JUDGE_KEYS, Roofline

BASELINE_NS = 1000.0
# What becomes of programs, in sixteenths: most run.
FATES = (
    (Status.WRONG, "wrong_value"),
    (Status.BUILD_ERROR, "compiler"),
    (Status.CRASHED, "signal"),
)


class Imagined:
    """A judge of made-up times between a quarter and four times the baseline's, which is the only
    reference of a target without noise.
    """

    languages = frozenset({Language.SOURCE})
    deterministic, evidence = True, Evidence.MODELLED
    missing: tuple[str, ...] = ()
    library: Candidate | None = None
    device: Roofline | None = None
    constraints: tuple[Constraint, ...] = ()
    members_reason, judge_keys = "", MODELLED_JUDGE_KEYS
    files: dict[str, str] = {}  # noqa: RUF012 - a target without files

    def __init__(self, problem: Problem, *, seed: int = 0) -> None:
        self.problem, self._seed = problem, seed

    def members(self, problem: Problem) -> NDArray[np.int64] | None:
        """No list of programs."""
        return None

    def unscheduled(self, problem: Problem) -> tuple[tuple[str, Scalar], ...]:
        """C has no knobs."""
        return ()

    def baseline(self, space: Space) -> Candidate:
        """The plain loops."""
        assert space.default is not None
        return space.default

    def floor_ns(self, workload: Workload) -> float:
        """Nothing is known of physics."""
        return 0.0

    def true_ns(self, candidates: Sequence[Candidate]) -> NDArray[np.float64]:
        """The times, NaN where a program fails."""
        return np.array([self._time_ns(candidate) or math.nan for candidate in candidates])

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict for each request."""
        return [self._judge(request) for request in requests]

    def _time_ns(self, candidate: Candidate) -> float | None:
        fate, number = int(candidate.key[:1], 16), int(candidate.key[1:9], 16)
        return None if fate < len(FATES) else BASELINE_NS * 4.0 ** (number / 2**31 - 1)

    def _judge(self, request: Request) -> Verdict:
        time_ns = self._time_ns(request.candidate)
        if time_ns is None:
            return Verdict(*FATES[int(request.candidate.key[:1], 16)])
        measurements = tuple(
            Measurement(
                workload.label,
                against.role,
                against.candidate.key,
                Unpaired((time_ns,), (BASELINE_NS,)),
                "imagined",
                CacheState.COLD,
                Evidence.MODELLED,
                "imagined",
            )
            for workload in self.problem.workloads
            for against in request.against
        )
        status = Status.WIN if request.stage is Stage.CONFIRM else Status.OK
        return Verdict(status, measurements=measurements)
