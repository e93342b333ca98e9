"""The finals: race the best trials on fresh samples, then confirm them one after the other.

The winner is chosen by the race, and the samples of its confirmation are drawn afterwards, so the
claim knows nothing of what chose it. The next finalist is confirmed only if the one before did not
win. All confirmations of a search share one error rate: each may spend three quarters of what those
before it have left (a Bonferroni bound on their sum, so stopping at a win, going on after a tie and
a larger budget later are all paid for; the first gets most, for it is the likeliest winner).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelwright.env.objective import locations, log2_speedup, measurements_against
from kernelwright.env.protocols import Repeats
from kernelwright.env.types import (
    NOISY_HOST,
    REFERENCE_FAILED,
    Candidate,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.search.halving import Halving
from kernelwright.search.incumbent import Incumbent
from kernelwright.search.plan import Contest
from kernelwright.search.race import Race
from kernelwright.search.trial import Event, Trial, event

# The most trials that start in a race: who met interruptions in the screen is not left out by it.
FIELD = 512
# The share of the error rate that is left which the next confirmation may spend.
SPENT = 0.75
RACED, DETHRONED, UNCONFIRMED = "raced", "dethroned_in_race", "unconfirmed"


class Desk(Protocol):
    """What the finals need of a campaign: a judge, a record, and a clock."""

    def judge(self, request: Request) -> Verdict:
        """The verdict on a request."""
        ...

    def keep(self, verdicts: Sequence[tuple[int, Stage, Verdict]], events: Sequence[Event]) -> None:
        """Record these."""
        ...

    def has_time_for(self, requests: Sequence[Request]) -> bool:
        """Whether the budget has room for these requests."""
        ...

    def report(self, phase: str, done: int, total: int, note: str = "") -> None:
        """Say how far it is; of a race, in which round."""
        ...


@dataclass(frozen=True, slots=True)
class Entrants:
    """Who takes part.

    ``trials`` are the best first; ``stored`` are all verdicts by trial that are known from an
    earlier sitting, ``heights`` how many races of a trial's were for its height as incumbent;
    ``served`` are the trials whose screens are another sitting's, which only help to choose who
    starts.
    """

    trials: tuple[Trial, ...]
    stored: Mapping[int, Sequence[tuple[Stage, Verdict]]]
    heights: Mapping[int, int]
    served: frozenset[int] = frozenset()

    def confirmation(self, trial: Trial) -> Verdict | None:
        """The stored confirmation of a trial; one that a noisy host kept from saying anything is to
        be tried again.
        """
        found = (v for stage, v in self.stored.get(trial.number, ()) if stage is Stage.CONFIRM)
        return next((v for v in found if v.code != NOISY_HOST), None)

    def rounds(self, trial: Trial, reference: Candidate) -> list[Verdict]:
        """The stored races of a trial against a reference, and those that it failed."""
        later = [v for stage, v in self.stored.get(trial.number, ()) if stage is Stage.RACE]
        height = height_of(later) if self.heights.get(trial.number) else None
        if height is not None:
            later.remove(height)
        return [
            v
            for v in later
            if not v.measurements or v.measurements[0].reference_key == reference.key
        ]

    @property
    def spent(self) -> int:
        """How many confirmations there have been; a noisy host's have looked at nothing."""
        return sum(
            any(s is Stage.CONFIRM and v.code != NOISY_HOST for s, v in pairs)
            for pairs in self.stored.values()
        )


class Finals:
    """The finals of one search.

    Args:
        contest: how they are played.
        desk: judge, record and clock.
        incumbent: what races are against.
        entrants: who takes part.
        past: events that are recorded already.
        place: where events of these finals stand: the ask and the epoch.
    """

    def __init__(
        self,
        contest: Contest,
        desk: Desk,
        incumbent: Incumbent,
        entrants: Entrants,
        past: Sequence[Event] = (),
        place: tuple[int, int] = (0, 0),
    ) -> None:
        self._contest, self._desk, self._entrants, self._place = contest, desk, entrants, place
        self._past = {e.kind: e for e in past if (e.ask, e.slot) == place}
        self._incumbent = incumbent
        self._failed: list[int] = []
        self.host_was_noisy = False
        if DETHRONED in self._past:
            self._incumbent = Incumbent.of_baseline(contest.baseline)

    def run(self) -> list[Trial]:
        """Race and confirm; the finalists in the order of the race. ``host_was_noisy`` then says
        whether claims are still to be made, on a calmer host.
        """
        finalists = self.raced()[: self._contest.confirm.finalists]
        self._confirm(finalists)
        return finalists

    # The race

    def raced(self) -> list[Trial]:
        """The entrants that are left, the best first."""
        trials = {trial.number: trial for trial in self._entrants.trials}
        if RACED in self._past:
            ranking: list[int] = self._past[RACED].data["ranking"]
            return [trials[number] for number in ranking if number in trials]
        evaluator = self._contest.evaluator
        repeats = isinstance(evaluator, Repeats) and evaluator.repeats
        wanted = self._contest.race_rounds or self._contest.race_extra
        if not (repeats and wanted and len(trials) > 1):
            return list(trials.values())
        while True:
            try:
                found, reason = self._race()
            except _ReferenceFailedError as failure:
                key, failed = self._incumbent.reference.candidate.key, list(self._failed)
                fallen = event(
                    DETHRONED, *self._place, key=key, failed=failed, evidence=failure.evidence
                )
                self._past[DETHRONED] = fallen
                self._desk.keep([], [fallen])
                self._incumbent = Incumbent.of_baseline(self._contest.baseline)
            else:
                break
        ranking = [trial.number for trial in found]
        self._desk.keep([], [event(RACED, *self._place, ranking=ranking, reason=reason)])
        return found

    def _race(self) -> tuple[list[Trial], str]:
        """The entrants that are left, the best first, and why the race ended."""
        reference = self._incumbent.reference
        trials = [t for t in self._entrants.trials if not self._is_fallen(t)]
        race = self._make_race(trials, reference)
        known = [self._entrants.rounds(trial, reference.candidate) for trial in trials]
        # Not the repeats of a screen, nor of a confirmation.
        first_repeat = 1 + self._contest.confirm.process_pairs * self._contest.confirm.pairs
        number = 0
        while (heat := race.heat()) is not None:
            # Rounds that are cut short are not told.
            requests = {
                entrant: self._race_request(trials[entrant], heat.pairs, first_repeat)
                for entrant in heat.entrants
            }
            unknown = [r for e, r in requests.items() if len(known[e]) <= number]
            if unknown and not self._desk.has_time_for(unknown):
                return [trials[entrant] for entrant in race.ranking], "seconds"
            logs: dict[int, list[float]] = {}
            for done, (entrant, request) in enumerate(requests.items(), 1):
                found = known[entrant][number] if number < len(known[entrant]) else None
                if found is None:
                    if not self._desk.has_time_for([request]):
                        return [trials[entrant] for entrant in race.ranking], "seconds"
                    found = self._judged(request)
                    self._desk.keep([(request.trial, Stage.RACE, found)], [])
                logs[entrant] = self._logs(found)
                if not found.status.passed:
                    self._failed.append(request.trial)
                self._desk.report("race", done, len(requests), f"round {number + 1}")
            race.tell(logs)
            first_repeat += heat.pairs
            number += 1
        return [trials[entrant] for entrant in race.ranking], "rounds"

    def _make_race(self, trials: Sequence[Trial], reference: Reference) -> Race | Halving:
        screened, extra = [_screened(trial) for trial in trials], self._contest.race_extra
        if extra is not None:
            return Halving(screened, math.floor(extra * sum(map(len, screened))))
        return Race(
            screened,
            comparable=[
                _reference_key(trial) == reference.candidate.key
                and trial.number not in self._entrants.served
                for trial in trials
            ],
            keep=self._contest.confirm.finalists,
            rounds=self._contest.race_rounds,
        )

    def _is_fallen(self, trial: Trial) -> bool:
        """Whether it failed before the race was started again, as reference or as entrant."""
        fallen = self._past.get(DETHRONED)
        if fallen is None:
            return False
        return trial.candidate.key == fallen.data["key"] or trial.number in fallen.data["failed"]

    def _judged(self, request: Request) -> Verdict:
        verdict = self._desk.judge(request)
        if verdict.code == REFERENCE_FAILED and self._incumbent.is_a_candidate:
            raise _ReferenceFailedError(verdict.evidence)
        return verdict

    def _race_request(self, trial: Trial, pairs: int, first_repeat: int) -> Request:
        return Request(
            trial.candidate,
            Stage.RACE,
            (self._incumbent.reference,),
            trial=trial.number,
            pairs=pairs,
            first_repeat=first_repeat,
            state=self._contest.state,
        )

    def _logs(self, verdict: Verdict) -> list[float]:
        """Log ratios on the scale of the objective; none if it failed."""
        if not verdict.status.passed:
            return []
        role, height = self._incumbent.reference.role, self._incumbent.height
        return _on_the_scale(verdict, role, height)

    # The claims

    def _confirm(self, finalists: Sequence[Trial]) -> None:
        """Confirm the finalists until one wins; beyond the first, as many as there is time for."""
        spent = self._entrants.spent
        for place, trial in enumerate(finalists, 1):
            verdict = self._entrants.confirmation(trial)
            if verdict is None:
                request = confirm_request(self._contest, trial, spent)
                if place > 1 and not self._desk.has_time_for([request]):
                    left = [t.number for t in finalists[place - 1 :]]
                    self._desk.keep([], [event(UNCONFIRMED, *self._place, trials=left)])
                    return
                verdict = self._desk.judge(request)
                spent += 1
                self._desk.keep([(trial.number, Stage.CONFIRM, verdict)], [])
            self._desk.report("confirm", place, len(finalists))
            # On a host where nothing can be claimed the next one would fare no better.
            self.host_was_noisy = verdict.code == NOISY_HOST
            if verdict.status is Status.WIN or self.host_was_noisy:
                return


class _ReferenceFailedError(Exception):
    """The incumbent failed as the reference of a race."""

    def __init__(self, evidence: str) -> None:
        super().__init__(evidence)
        self.evidence = evidence


def confirm_request(contest: Contest, trial: Trial, spent: int) -> Request:
    """What a confirmation asks, after so many others of this search."""
    return Request(
        trial.candidate,
        Stage.CONFIRM,
        contest.confirm_against,
        trial=trial.number,
        process_pairs=contest.confirm.process_pairs,
        pairs=contest.confirm.pairs,
        first_repeat=1,
        state=contest.state,
        alpha=spend(contest.confirm.alpha, spent),
    )


def spend(alpha: float, spent: int) -> float:
    """The share of a search's error rate that the confirmation after ``spent`` others may use; all
    shares sum up to less than the whole.
    """
    return max(alpha * SPENT * (1 - SPENT) ** spent, math.ulp(0.0))


def height_of(races: Sequence[Verdict]) -> Verdict | None:
    """The race that gave a trial its height: the first against the baseline, or that it failed."""
    return next(
        (v for v in races if not v.measurements or v.measurements[0].role is Role.BASELINE), None
    )


def _reference_key(trial: Trial) -> str:
    return trial.verdicts[0][1].measurements[0].reference_key


def _screened(trial: Trial) -> list[float]:
    """The log ratios of a screen, such that their location is the trial's objective."""
    verdict = trial.verdicts[0][1]
    role = verdict.measurements[0].role
    ratio = log2_speedup(verdict, role)
    assert ratio is not None
    assert trial.objective is not None
    return _on_the_scale(verdict, role, trial.objective - ratio)


def _on_the_scale(verdict: Verdict, role: Role, height: float) -> list[float]:
    """The log ratios of a verdict's calls, averaged over workloads, moved so that their location is
    that of the verdict (whose ratio may be capped) above a reference of this height in log2.
    """
    ratio = log2_speedup(verdict, role)
    assert ratio is not None
    each = [
        [math.log(m.samples.reference_ns[0] / c) for c in m.samples.candidate_ns]
        if isinstance(m.samples, Unpaired)
        else [math.log(r / c) for pair in m.samples for c, r in pair.samples_ns]
        for m in measurements_against(verdict, role)
    ]
    logs = [sum(calls) / len(each) for calls in zip(*each, strict=False)]
    shift = (ratio + height) * math.log(2) - locations([logs])[0]
    return [log + shift for log in logs]


def entrants_of(
    trials: Sequence[Trial],
    stored: Sequence[Trial] = (),
    heights: Mapping[int, int] | None = None,
    served: frozenset[int] = frozenset(),
) -> Entrants:
    """Who takes part: the best ``FIELD`` of ranked trials, with what is stored of all."""
    known = {trial.number: trial.verdicts for trial in stored}
    return Entrants(tuple(trials[:FIELD]), known, heights or {}, served)
