"""One search among given candidates, by the judge that it is given: screens, race, confirmations.

It is what a campaign does once its driver is done, with the same race and the same spending; but
it asks the judge itself, so that the same program may stand in it any number of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.env.objective import log2_speedup
from kernelwright.env.protocols import Evaluator
from kernelwright.env.types import Candidate, Request, Stage, Verdict
from kernelwright.search.finals import Finals, entrants_of
from kernelwright.search.incumbent import Incumbent
from kernelwright.search.plan import ConfirmPlan, Contest
from kernelwright.search.trial import Event, Trial

SCREEN_PAIRS = 5


@dataclass(frozen=True, slots=True)
class Bout:
    """What came of a search: every trial with all of its verdicts, the finalists by number in the
    order of the race, and how many kernel calls were timed.
    """

    trials: tuple[Trial, ...]
    finalists: tuple[int, ...]
    calls: int

    @property
    def confirmed(self) -> list[Trial]:
        """The finalists that were confirmed, in the order of the race."""
        found = [self.trials[number] for number in self.finalists]
        return [trial for trial in found if trial.verdict(Stage.CONFIRM) is not None]


class _Desk:
    """The judge itself, and what it said by trial."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.verdicts: dict[int, list[tuple[Stage, Verdict]]] = {}

    def judge(self, request: Request) -> Verdict:
        (verdict,) = self._evaluator.evaluate([request])
        return verdict

    def keep(self, verdicts: Sequence[tuple[int, Stage, Verdict]], events: Sequence[Event]) -> None:
        del events
        for number, stage, verdict in verdicts:
            self.verdicts.setdefault(number, []).append((stage, verdict))

    def has_time_for(self, requests: Sequence[Request]) -> bool:
        del requests
        return True

    def report(self, phase: str, done: int, total: int, note: str = "") -> None:
        del phase, done, total, note


def bout(
    evaluator: Evaluator,
    baseline: Candidate,
    candidates: Sequence[Candidate],
    *,
    confirm: ConfirmPlan | None = None,
    race_rounds: int = 5,
) -> Bout:
    """Search among candidates, whose places are the numbers of their trials.

    Raises:
        ValueError: if a candidate fails its screen: the laboratory knows only correct ones.
    """
    contest = Contest(evaluator, baseline, None, confirm or ConfirmPlan(), race_rounds)
    trials = [_screened(contest, number, candidate) for number, candidate in enumerate(candidates)]
    desk = _Desk(evaluator)
    ranked = sorted(trials, key=lambda trial: (-(trial.objective or 0.0), trial.number))
    entrants = entrants_of(ranked)
    finalists = Finals(contest, desk, Incumbent.of_baseline(baseline), entrants).run()
    whole = tuple(
        Trial(
            t.number,
            t.candidate,
            (*t.verdicts, *desk.verdicts.get(t.number, ())),
            t.objective,
            t.proposer,
            t.parents,
            t.seed,
            t.ask,
        )
        for t in trials
    )
    return Bout(whole, tuple(t.number for t in finalists), sum(map(_calls, whole)))


def _screened(contest: Contest, number: int, candidate: Candidate) -> Trial:
    request = Request(
        candidate,
        Stage.SCREEN,
        contest.against_baseline,
        trial=number,
        pairs=SCREEN_PAIRS,
        state=contest.state,
    )
    (verdict,) = contest.evaluator.evaluate([request])
    objective = log2_speedup(verdict)
    if objective is None:
        raise ValueError(f"candidate {number}: expected a correct one, found {verdict.status}")
    return Trial(number, candidate, ((Stage.SCREEN, verdict),), objective, "laboratory", (), 0, 0)


def _calls(trial: Trial) -> int:
    """Timed calls, of both arms."""
    return sum(
        2 * len(pair.samples_ns)
        for _, verdict in trial.verdicts
        for m in verdict.measurements
        if isinstance(m.samples, tuple)
        for pair in m.samples
    )
