"""How far identical kernels seem apart on a host (A/A): what it adds to a comparison whatever the
samples say. Less than that is never claimed.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelwright.env.objective import common_scale, locations
from kernelwright.env.types import (
    Arm,
    CacheState,
    Candidate,
    Language,
    Problem,
    ProcessPair,
    Status,
    Verdict,
)
from kernelwright.evaluators.cpu.build import Builder, BuildFailureError, Loadable
from kernelwright.evaluators.cpu.congruence import STEP, congruence
from kernelwright.evaluators.cpu.draws import Draws
from kernelwright.evaluators.cpu.memory import Arena
from kernelwright.evaluators.cpu.pair import ArmFailedError, Asked, Pair, Sitting, shape_for
from kernelwright.evaluators.cpu.worker import Worker

# How many process pairs of how many pairs. A host on which identical kernels seem further apart
# than this can say nothing; one on which they seem closer is not believed to be that good.
AA_PROCESS_PAIRS, AA_PAIRS = 10, 8
NOISY, QUIET = 0.02, 0.001
# For how many s that holds.
AA_HOLDS_S = 60.0
# Who is started first, in turns.
ORDERS = ((Arm.CANDIDATE, Arm.REFERENCE), (Arm.REFERENCE, Arm.CANDIDATE))
# The kernel that is compared with itself: some arithmetic.
_STEPS = 64
PROBE = Candidate(
    Language.SOURCE,
    f"""#include <stdint.h>
void host_probe(const int32_t *restrict x, int32_t *restrict y, int64_t n)
{{
    for (int64_t i = 0; i < n; i++) {{
        uint32_t v = (uint32_t)x[i];
        for (int s = 0; s < {_STEPS}; s++)
            v = {STEP};
        y[i] = (int32_t)v;
    }}
}}
""",
)


def probe_problem() -> Problem:
    """What it computes."""
    return congruence("host_probe", _STEPS)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How far identical kernels seem apart on this host: the log ratios of process pairs; how long
    it took to find out, in s, and when that was, by the monotonic clock.
    """

    log_ratios: tuple[float, ...]
    seconds: float
    at: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether it is not too old to stand for the host as it is now."""
        return time.monotonic() - self.at < AA_HOLDS_S

    @property
    def effect(self) -> float:
        """The ratio less 1 that identical kernels differ by: where the middle of their log ratios
        is, or its standard error where that is greater, whatever one disturbed process says.
        """
        (middle,) = locations([self.log_ratios])
        error = common_scale([self.log_ratios]) / math.sqrt(len(self.log_ratios))
        return max(QUIET, math.expm1(max(abs(middle), error)))

    @property
    def is_noisy(self) -> bool:
        """Whether nothing can be claimed on this host."""
        return self.effect > NOISY

    def __str__(self) -> str:
        spread = 100 * statistics.stdev(self.log_ratios)
        return (
            f"identical kernels differ by {100 * self.effect:.2f}% here "
            f"({len(self.log_ratios)} pairs of processes, spread {spread:.2f}%)"
        )


def likeness(pair: Callable[[int], ProcessPair]) -> Likeness:
    """Compare identical kernels in fresh processes; ``pair`` measures one pair of a number. What is
    noisy once is looked at again: a disturbance may be over.
    """
    for attempt in range(2):
        began = time.perf_counter()
        numbers = range(attempt * AA_PROCESS_PAIRS, (attempt + 1) * AA_PROCESS_PAIRS)
        logs = [[math.log(r / c) for c, r in pair(number).samples_ns] for number in numbers]
        took = time.perf_counter() - began
        found = Likeness(tuple(locations(logs)), took, time.monotonic())
        if not found.is_noisy:
            break
    return found


class Twins:
    """Compares the judge's own kernel with itself.

    Args:
        builder: how kernels are built in this judge.
        start: starts a worker of a library on an arena.
    """

    def __init__(self, builder: Builder, start: Callable[[Arena, Loadable], Worker]) -> None:
        self._builder, self._start = builder, start
        self._loadable: Loadable | None = None
        self._least_ns: float | None = None

    def measured(self, sitting: Sitting, state: CacheState) -> Likeness:
        """How far they seem apart now.

        Raises:
            ArmFailedError: if the kernel fails, which is no candidate's fault.
        """
        try:
            return self._measured(sitting, state)
        except (ArmFailedError, BuildFailureError) as failure:
            found = failure.verdict
        what = f"the judge's own kernel is {found.status} ({found.code}): {found.evidence}"
        verdict = Verdict(Status.BROKEN, "host_probe", evidence=what)
        raise ArmFailedError(Arm.REFERENCE, verdict)

    def _measured(self, sitting: Sitting, state: CacheState) -> Likeness:
        problem = probe_problem()
        if self._loadable is None:
            self._loadable = self._builder.of(problem).build(PROBE, problem.workloads[0])
        loadable, draws = self._loadable, Draws(problem, problem.workloads[0])

        def start(arena: Arena, arm: Arm) -> Worker:
            del arm
            return self._start(arena, loadable)

        def pair_for(least_ns: float, slot_bytes: int) -> Pair:
            return Pair(sitting, draws, shape_for(least_ns, sitting.floor, slot_bytes), start)

        if self._least_ns is None:
            self._least_ns = pair_for(np.inf, 1).probe(state)
        least_ns = self._least_ns

        def pair(number: int) -> ProcessPair:
            order = ORDERS[number % 2]
            roles = order if number // 2 % 2 else order[::-1]
            asked = Asked(AA_PAIRS, state, ())
            return pair_for(least_ns, draws.slot_bytes).measure(asked, order, roles)

        return likeness(pair)
