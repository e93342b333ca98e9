"""A judge on a simulated clock: the same requests, verdicts, intervals and terms as on a machine,
with planted speedups for kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernelwright.env.objective import locations
from kernelwright.env.types import (
    NOISY_HOST,
    Arm,
    CacheState,
    Candidate,
    Evidence,
    Measurement,
    ProcessPair,
    Request,
    Stage,
    Status,
    Terms,
    Verdict,
    Workload,
    knob_candidate,
)
from kernelwright.evaluators.cpu.likeness import AA_PAIRS, AA_PROCESS_PAIRS, Likeness
from kernelwright.evaluators.statistics import claimed
from kernelwright.search.laboratory.bench import Bench

BASELINE = knob_candidate({"kernel": -1})


def kernel(number: int) -> Candidate:
    """The candidate that stands for a bench's kernel of that number."""
    return knob_candidate({"kernel": number})


class BenchJudge:
    """Judges a bench's kernels, in pairs with its baseline.

    Args:
        bench: the kernels.
        rng: where the noise of identical kernels comes from.
    """

    deterministic = False
    evidence = Evidence.MODELLED
    repeats = True

    def __init__(self, bench: Bench, rng: np.random.Generator) -> None:
        self._bench, self._rng = bench, rng
        self._alike: Likeness | None = None

    def floor_ns(self, workload: Workload) -> float:
        """0: nothing is known of it."""
        del workload
        return 0.0

    def evaluate(self, requests: Sequence[Request]) -> list[Verdict]:
        """One verdict for each request.

        Raises:
            ValueError: if one asks for another reference than the baseline.
        """
        return [self._judge(request) for request in requests]

    def _judge(self, request: Request) -> Verdict:
        if [against.candidate for against in request.against] != [BASELINE]:
            raise ValueError(f"expected the baseline alone, found {request.against}")
        number = int(request.candidate.knobs["kernel"])
        times = self._bench.pairs(number, request.process_pairs, request.pairs)
        measurement = Measurement(
            workload="bench",
            role=request.against[0].role,
            reference_key=BASELINE.key,
            samples=tuple(map(_process_pair, range(len(times)), times.tolist())),
            clock=self._bench.clock.name,
            cache_state=CacheState.COLD,
            evidence=Evidence.MODELLED,
            machine="laboratory",
        )
        passed = Verdict(Status.OK, measurements=(measurement,))
        if request.stage is not Stage.CONFIRM:
            return passed
        alike = self._likeness()
        if alike.is_noisy:
            return Verdict(Status.UNSTABLE, NOISY_HOST, evidence=str(alike))
        return claimed(passed, Terms(request.alpha, alike.effect))

    def _likeness(self) -> Likeness:
        """How far identical kernels seem apart on this clock, looked at once: a search is short."""
        if self._alike is not None:
            return self._alike
        times = self._bench.clock.pairs(self._rng, AA_PROCESS_PAIRS, AA_PAIRS)
        self._bench.calls += times.size
        logs = np.log(times[:, :, 1] / times[:, :, 0])
        self._alike = Likeness(tuple(locations(logs.tolist())), 0.0)
        return self._alike


def _process_pair(number: int, samples: list[list[float]]) -> ProcessPair:
    order = tuple(Arm)[:: 1 if number % 2 else -1]
    roles = order if number // 2 % 2 else order[::-1]
    assert all(math.isfinite(time) for pair in samples for time in pair)
    return ProcessPair(order[0], (roles[0], roles[1]), tuple((c, r) for c, r in samples))
