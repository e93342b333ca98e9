"""Goals: what a search is done at, a share of the roofline, a speedup or a time.

The best of many noisy screens is lucky, so where times vary a screen alone never ends a search: the
trial is looked at again, on fresh samples that did not choose it, and what these say decides. A
look is an event and no verdict, so nothing that is confirmed later knows of it; a resumed search
reads it back.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.env.objective import log2_speedup
from kernelwright.env.protocols import Evaluator, Repeats
from kernelwright.env.types import REFERENCE_FAILED, Evidence, Request, Stage, Status, Verdict
from kernelwright.search.answers import candidate_times_ns, roofline_share, samples_ns
from kernelwright.search.plan import Plan, StopRules
from kernelwright.search.trial import Event, Trial, event

# The kind of a look's event, how many pairs of samples it has at least, and the first repeat of
# one: beyond those of all races and confirmations.
LOOKED, LOOK_PAIRS, FIRST_LOOK = "looked", 5, 1 << 31


@dataclass(frozen=True, slots=True)
class Standing:
    """How good samples say that a candidate is: share of the roofline (0 where none is known), log2
    speedup over the baseline, and time in us, all of the median sample and over workloads the
    geometric mean.
    """

    share: float
    log2_speedup: float
    time_us: float

    def met(self, rules: StopRules) -> tuple[str, str] | None:
        """The rule that is met, with a sentence; None if none is."""
        if rules.roofline is not None and self.share >= rules.roofline:
            found = f"the best is at {self.share:.3f} of the roofline"
            return "roofline", f"{found}, {rules.roofline:g} is enough"
        if rules.speedup is not None and self.log2_speedup >= math.log2(rules.speedup):
            found = f"the best is at {2**self.log2_speedup:.3f}x"
            return "target", f"{found}, {rules.speedup:g}x is enough"
        if rules.time_us is not None and self.time_us <= rules.time_us:
            found = f"the best takes {self.time_us:.4g} us"
            return "target", f"{found}, {rules.time_us:g} us are enough"
        return None


def standing(plan: Plan, verdict: Verdict, objective: float) -> Standing:
    """What a verdict that passed says."""
    times = candidate_times_ns(verdict)
    time_us = statistics.geometric_mean(times.values()) / 1e3 if times else math.inf
    return Standing(roofline_share(verdict, plan.floors_ns), objective, time_us)


class Goals:
    """The goals of one search.

    Args:
        plan: the campaign's.
        past: events that are recorded already.
    """

    def __init__(self, plan: Plan, past: Sequence[Event] = ()) -> None:
        self._plan, self._rules = plan, plan.stop
        self._exact = is_exact(plan.evaluator)
        self._past = {(e.ask, e.slot): e for e in past if e.kind == LOOKED}
        self._met: dict[int, tuple[Trial, Standing]] = {}

    def learn(self, trial: Trial) -> None:
        """Take up a trial that passed its screen."""
        rules = self._rules
        if rules.roofline is rules.speedup is rules.time_us is None or trial.objective is None:
            return
        found = standing(self._plan, trial.verdicts[0][1], trial.objective)
        if found.met(rules) is not None:
            self._met[trial.number] = (trial, found)

    def forget(self, number: int) -> None:
        """A trial failed later, or was looked at in vain."""
        self._met.pop(number, None)

    @property
    def leaders(self) -> list[Trial]:
        """The trials whose screens meet a goal and that nothing speaks against, the best first."""
        ranked = sorted(self._met.values(), key=lambda one: (-one[1].log2_speedup, one[0].number))
        return [trial for trial, _ in ranked]

    def proved(self, trial: Trial) -> tuple[str, str] | None:
        """The rule that a leader's screen proves to be met, where samples are exact."""
        return self._met[trial.number][1].met(self._rules) if self._exact else None

    def look_request(self, trial: Trial) -> Request:
        """Another look at a leader, against the baseline."""
        plan = self._plan
        pairs = max(LOOK_PAIRS, plan.screen_pairs)
        return Request(
            trial.candidate,
            Stage.RACE,
            plan.against_baseline,
            trial=trial.number,
            pairs=pairs,
            first_repeat=FIRST_LOOK,
            state=plan.state,
        )

    def past_look(self, ask: int, trial: Trial) -> Event | None:
        """What was recorded of this look by an earlier sitting."""
        return self._past.get((ask, trial.number))

    def looked(self, ask: int, trial: Trial, verdict: Verdict) -> Event:
        """A look as an event: how the candidate stands by it, and the samples that say so."""
        if not verdict.status.passed:
            # Neither a noisy host nor a reference that failed says anything of the candidate.
            failed = verdict.status is not Status.UNSTABLE and verdict.code != REFERENCE_FAILED
            return event(LOOKED, ask, trial.number, met=None, failed=failed, code=verdict.code)
        ratio = log2_speedup(verdict)
        assert ratio is not None
        found = standing(self._plan, verdict, ratio)
        return event(
            LOOKED,
            ask,
            trial.number,
            met=found.met(self._rules),
            failed=False,
            share=found.share,
            log2_speedup=found.log2_speedup,
            time_us=found.time_us,
            times_ns=samples_ns(verdict),
        )


def is_exact(evaluator: Evaluator) -> bool:
    """Whether a screen's sample is the true time, so that no look could say anything else."""
    if evaluator.evidence is not Evidence.MODELLED:
        return False
    return not (isinstance(evaluator, Repeats) and evaluator.repeats)
