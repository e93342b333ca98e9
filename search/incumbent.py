"""The incumbent: what screens are paired with where times are measured.

A pair cancels what both arms share, so the best candidate so far is a sharper reference than a
baseline that is many times slower. An objective is then the log2 ratio to the incumbent plus the
incumbent's own *height*. Two rules keep that chain from climbing by luck alone, as the greatest of
many noisy screens does: a challenger takes the place only if its pairs put it clearly ahead, and
its height is measured afresh against the baseline, by samples that did not choose it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.env.objective import log2_speedup, measurements_against
from kernelwright.env.types import Candidate, Reference, Role, Unpaired, Verdict
from kernelwright.evaluators.statistics import CONFIDENCE, t_quantile
from kernelwright.search.trial import Trial

# With fewer pairs their spread is unknown, and a lead must be this large (a ratio).
FEW_PAIRS, LARGE_LEAD = 3, 1.05


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A reference, and its estimated log2 speedup over the baseline."""

    reference: Reference
    height: float = 0.0

    @classmethod
    def of_baseline(cls, baseline: Candidate) -> Incumbent:
        """The first incumbent."""
        return cls(Reference(Role.BASELINE, baseline))

    @property
    def is_a_candidate(self) -> bool:
        """Whether this is a trial's, not the baseline."""
        return self.reference.role is Role.INCUMBENT

    def objective(self, verdict: Verdict) -> float | None:
        """The objective of a candidate that was paired with this incumbent; None if it failed."""
        if not verdict.status.passed:
            return None
        ratio = log2_speedup(verdict, self.reference.role)
        assert ratio is not None
        return ratio + self.height

    def challenger(self, trials: Sequence[Trial]) -> Trial | None:
        """The best of the trials that were paired with this incumbent and are clearly ahead."""
        ahead = [
            (trial.objective, -trial.number, trial)
            for trial in trials
            if trial.objective is not None
            and trial.objective > self.height
            # A screen from the tuning cache may have been against an incumbent of another search.
            and self._was_met_by(trial)
            and is_clearly_faster(trial.verdicts[0][1], self.reference.role)
        ]
        return max(ahead)[2] if ahead else None

    def _was_met_by(self, trial: Trial) -> bool:
        met = trial.verdicts[0][1].measurements
        return all(m.reference_key == self.reference.candidate.key for m in met)

    def succeeded_by(self, trial: Trial, race: Verdict) -> Incumbent:
        """The next incumbent: the challenger with its fresh height, or this one if it failed."""
        height = log2_speedup(race) if race.status.passed else None
        if height is None or height <= 0:
            return self
        return Incumbent(Reference(Role.INCUMBENT, trial.candidate), height)


def is_clearly_faster(verdict: Verdict, role: Role) -> bool:
    """Whether the pairs of a screen put a candidate ahead: the lower end of Student's interval of
    the mean log ratio of its calls is above 0.
    """
    means: list[float] = []
    variance, fewest = 0.0, 0
    for m in measurements_against(verdict, role):
        if isinstance(m.samples, Unpaired):
            return False
        logs = [math.log(r / c) for pair in m.samples for c, r in pair.samples_ns]
        fewest = len(logs) if not means else min(fewest, len(logs))
        means.append(statistics.fmean(logs))
        if len(logs) >= FEW_PAIRS:
            variance += statistics.variance(logs) / len(logs)
    if not means:
        return False
    mean = statistics.fmean(means)
    if fewest < FEW_PAIRS:
        return mean > math.log(LARGE_LEAD)
    half = t_quantile(0.5 + CONFIDENCE / 2, fewest - 1) * math.sqrt(variance) / len(means)
    return mean > half
