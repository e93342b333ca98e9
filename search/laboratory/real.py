"""Real kernels with planted speedups, and what a judge on this machine says of them.

Every candidate is judged by calling the evaluator itself, which starts fresh processes at fresh
places in memory for each pair; identical candidates are judged as often as is asked.

The planted kernel works on 64 KiB and then runs a chain of dependent multiply-adds of a given
length, so a baseline with a longer chain is slower by a known amount. The chain's step and
everything else (the arrays, the harness) are calibrated in the same judge from two lengths, again
and again.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelwright.env.protocols import Evaluator
from kernelwright.env.types import (
    Candidate,
    Language,
    Problem,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.evaluators.cpu.congruence import STEP, congruence
from kernelwright.evaluators.statistics import Interval, speedup
from kernelwright.search.laboratory.bout import Bout, bout
from kernelwright.search.plan import ConfirmPlan

# The steps of the chain in the faster kernel: about 100 us.
STEPS = 100_000
_CALIBRATING = 8


def planted_problem() -> Problem:
    """A step of a linear congruence on 64 KiB; what a kernel does besides is its own affair."""
    return congruence("planted", 1, planted(STEPS).payload)  # type: ignore[arg-type]


def planted(steps: int) -> Candidate:
    """The kernel with a chain of so many steps."""
    return Candidate(
        Language.SOURCE,
        f"""#include <stdint.h>
void planted(const int32_t *restrict x, int32_t *restrict y, int64_t n)
{{
    for (int64_t i = 0; i < n; i++) {{
        uint32_t v = (uint32_t)x[i];
        y[i] = (int32_t)({STEP});
    }}
    uint64_t w = (uint64_t)x[0];
    for (int64_t i = 0; i < {steps}; i++) {{
        w = w * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(w));
    }}
}}
""",
    )


@dataclass(frozen=True, slots=True)
class Calibration:
    """Times in ns of a step of the chain and of everything else."""

    step_ns: float
    rest_ns: float

    def speedup(self, steps: int, of: int) -> float:
        """The true speedup of a kernel with fewer steps over one with more."""
        return (self.step_ns * of + self.rest_ns) / (self.step_ns * steps + self.rest_ns)

    def steps(self, ratio: float) -> int:
        """The chain of the baseline that makes the kernel of `STEPS` so many times faster."""
        longer = (ratio * (self.step_ns * STEPS + self.rest_ns) - self.rest_ns) / self.step_ns
        return round(longer)


def calibrated(evaluator: Evaluator) -> Calibration:
    """Measure the chain's step and the rest: a kernel without a chain beside one with the whole.

    Raises:
        ValueError: if the judge refuses them.
    """
    rests, wholes = [], []
    for _ in range(_CALIBRATING):
        verdict = judged(evaluator, planted(0), planted(STEPS), Stage.RACE, 1, 8)
        times = [pair for process in _processes(verdict) for pair in process]
        rests.append(statistics.median(c for c, _ in times))
        wholes.append(statistics.median(r for _, r in times))
    rest, whole = statistics.median(rests), statistics.median(wholes)
    return Calibration((whole - rest) / STEPS, rest)


def judged(
    evaluator: Evaluator,
    candidate: Candidate,
    baseline: Candidate,
    stage: Stage,
    process_pairs: int,
    pairs: int,
    alpha: float = 0.0075,
) -> Verdict:
    """One verdict of the judge."""
    against = (Reference(Role.BASELINE, baseline),)
    request = Request(
        candidate, stage, against, process_pairs=process_pairs, pairs=pairs, alpha=alpha
    )
    (verdict,) = evaluator.evaluate([request])
    if not verdict.status.passed and verdict.status is not Status.UNSTABLE:
        raise ValueError(f"expected a verdict, found {verdict.status}: {verdict.evidence}")
    return verdict


def _processes(verdict: Verdict) -> list[list[tuple[float, float]]]:
    """The samples of a verdict, process pair by process pair."""
    return [
        list(pair.samples_ns)
        for m in verdict.measurements
        if not isinstance(m.samples, Unpaired)
        for pair in m.samples
    ]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A confirmation whose truth is known: status, interval (None where the host was too noisy to
    say) and true speedup.
    """

    status: Status
    interval: Interval | None
    truth: float

    @property
    def covers(self) -> bool:
        """Whether the 95% interval holds the truth."""
        return self.interval is not None and (self.interval.low <= self.truth <= self.interval.high)

    @property
    def bias(self) -> float:
        """The estimate over the truth, less 1."""
        return self.interval.estimate / self.truth - 1 if self.interval else 0.0


def compared(
    evaluator: Evaluator,
    candidate: Candidate,
    baseline: Candidate,
    truth: float,
    confirm: ConfirmPlan = ConfirmPlan(),  # noqa: B008 - frozen
) -> Comparison:
    """Confirm a candidate whose speedup is known."""
    verdict = judged(
        evaluator, candidate, baseline, Stage.CONFIRM, confirm.process_pairs, confirm.pairs
    )
    return Comparison(verdict.status, speedup(verdict), truth)


def faster(
    evaluator: Evaluator, planted_speedup: float, count: int
) -> tuple[list[Comparison], float]:
    """Confirmations of a kernel that is so much faster than its baseline, and how far off their
    truth may be, relatively. It is calibrated before and after them: the part of a kernel's time
    that is memory's does not stay what it is.
    """
    before = calibrated(evaluator)
    longer = before.steps(planted_speedup)
    found = [compared(evaluator, planted(STEPS), planted(longer), 1.0) for _ in range(count)]
    truths = [c.speedup(STEPS, longer) for c in (before, calibrated(evaluator))]
    truth = statistics.geometric_mean(truths)
    return [replace(one, truth=truth) for one in found], max(truths) / truth - 1


def recorded(
    evaluator: Evaluator, process_pairs: int, pairs: int
) -> list[list[tuple[float, float]]]:
    """Traces of identical kernels: (candidate, reference) times in ns, process pair by process
    pair.
    """
    same = planted(STEPS)
    return _processes(judged(evaluator, same, same, Stage.RACE, process_pairs, pairs))


def identical_search(evaluator: Evaluator, candidates: int, race_rounds: int = 5) -> Bout:
    """A search among identical kernels."""
    same = planted(STEPS)
    return bout(evaluator, same, [same] * candidates, race_rounds=race_rounds)


def regrets(evaluator: Evaluator, truths: Sequence[float], calibration: Calibration) -> float:
    """A search among kernels of known speeds: how much faster the best of them is than the one that
    the race puts first.
    """
    base = planted(calibration.steps(1.0))
    chosen = [planted(round(STEPS / truth)) for truth in truths]
    true = [calibration.speedup(round(STEPS / truth), STEPS) for truth in truths]
    found = bout(evaluator, base, chosen)
    return max(true) / true[found.finalists[0]]
