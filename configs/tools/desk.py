"""The tools as functions: checked arguments in, a JSON object out.

Arguments are strangers' data. Texts are bounded, names are looked up in tables and never opened as
files, and what is refused is refused with what was expected. Each tool is a method whose
keyword-only parameters are its schema and whose docstring is what a client reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field

from kernelwright.agents.brief import Brief
from kernelwright.agents.chat import Malformed
from kernelwright.configs.catalogue import catalogue
from kernelwright.configs.resolve import resolve
from kernelwright.configs.surroundings import explainer_of
from kernelwright.configs.tools.estimating import Estimator
from kernelwright.configs.tools.session import Refused, Session
from kernelwright.configs.tools.views import (
    clipped,
    confirmed_trials,
    leaders,
    plain,
    plan_view,
    problem_view,
    standing,
    trial_view,
)
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.abi import abi
from kernelwright.env.problems.program import ProgramError
from kernelwright.env.types import Candidate, Problem, Proposal
from kernelwright.search.claims import Names
from kernelwright.search.store import SqliteStore
from kernelwright.search.trial import Trial

# Characters of a candidate.
MOST_WRITTEN = 200_000
# Seconds to wait for the judge: clients give a call up after a minute unless they are told to wait.
WAIT_S = 45.0
Wait = Annotated[float, Field(ge=0, le=3600, description="seconds to wait for the judge at most")]
SCREENED = "a screen's estimate claims nothing; finish confirms the best against the baseline"
Written = Annotated[
    str | dict[str, Any],
    Field(
        description="the candidate: text as `campaign` says it is written; knob values may also be "
        "an object"
    ),
]


class Desk:
    """The tools of one session.

    Args:
        session: the campaign.
        client: who hands candidates in, as it stands in the record.
    """

    def __init__(self, session: Session, client: Callable[[], str] = lambda: "client") -> None:
        built = session.built
        self._session, self._client = session, client
        self._brief = Brief(built.space, built.problem)
        self._estimator = Estimator(built)
        self._explain = explainer_of(built.problem, built.target)

    def campaign(self) -> dict[str, Any]:
        """What this campaign is about: the problem, the machine, how a candidate is written, what
        may still be spent, and how it stands. Read this first.
        """
        problem = self._session.built.problem
        return {
            **plan_view(self._session.built),
            "problem": problem_view(problem),
            "c_interface": _interface(problem),
            "how_to_write": plain(self._brief.text),
            "start_from": plain(self._brief.start),
            "standing": self._standing(),
        }

    def problems(self) -> dict[str, Any]:
        """The problems that this program knows, and which of them this campaign is about."""
        return {
            "campaign": self._session.built.problem.identity,
            "problems": plain(catalogue("problems")),
        }

    def problem(
        self,
        *,
        name: Annotated[str, Field(max_length=100, description="a name that `problems` lists")],
    ) -> dict[str, Any]:
        """One problem with its shapes as they are unless a campaign says otherwise: tensors,
        workloads, error bound, and the C interface of its kernels. Only the campaign's own problem
        can be submitted to.
        """
        own = self._session.built.problem
        if name in (own.name, own.identity):
            return {**problem_view(own), "c_interface": _interface(own), "is_campaign": True}
        if name not in PROBLEMS:
            raise Refused(f"name: expected one of {', '.join(PROBLEMS)}, found {name!r:.120}")
        try:
            found = resolve(PROBLEMS, name)()
        except TypeError:
            raise Refused(f"{name}: its shapes are an option that only a campaign says") from None
        return {**problem_view(found), "c_interface": _interface(found), "is_campaign": False}

    def check(self, *, candidate: Written) -> dict[str, Any]:
        """Whether a candidate can be read and is in the campaign's space, and the rules that it
        breaks. Nothing is compiled, run or measured, and nothing is spent.
        """
        found, faults = self._read(candidate)
        if found is None:
            return {"legal": False, "faults": faults}
        known = self._session.known(found)
        return {
            "legal": True,
            "faults": [],
            "key": found.key,
            "candidate": plain(clipped(self._brief.show(found))),
            "known_as_trial": None if known is None else known.number,
        }

    def estimate(self, *, candidate: Written) -> dict[str, Any]:
        """What can be said of a candidate before it is judged: least times by the roofline, facts,
        an analytic model of another machine where there is one, and what the trials so far predict.
        Nothing is spent, and nothing is claimed.
        """
        found, faults = self._read(candidate)
        if found is None:
            raise Refused("; ".join(faults))
        trials, _ = self._trials()
        return {**plain(self._estimator.of(found, trials)), "note": "an estimate is no verdict"}

    def submit(
        self,
        *,
        candidate: Written,
        parent: Annotated[
            int | None, Field(ge=0, description="the trial that it was made from, if any")
        ] = None,
        wait: Wait = WAIT_S,
    ) -> dict[str, Any]:
        """Have a candidate judged: built, checked against a float64 reference, and timed. It costs
        one trial of the budget, whether it passes or fails; one that cannot be read, breaks a rule
        or was judged before costs nothing. The answer comes when the judge is done; if that takes
        longer than `wait`, ask again with the same candidate.
        """
        found, faults = self._read(candidate)
        if found is None:
            text = candidate if isinstance(candidate, str) else json.dumps(candidate)
            with suppress(TimeoutError):  # it is recorded all the same
                self._session.refuse(plain(text), plain(faults)).result(wait)
            reason = "it is no candidate of this campaign"
            refused = {"judged": False, "reason": reason, "faults": faults}
            return {**refused, "standing": self._standing()}
        parents = self._parents(parent)
        waited = self._session.submit(Proposal(found, self._client(), parents))
        try:
            outcome = waited.result(wait)
        except TimeoutError:
            reason = "the judge is still at work on it: submit it again to hear what it found"
            return {"judged": False, "reason": reason, "standing": self._standing()}
        answer: dict[str, Any] = {"judged": outcome.trial is not None and outcome.is_new}
        if outcome.trial is None:
            answer["reason"] = "the search ended before it could be judged"
        else:
            if not outcome.is_new:
                answer["reason"] = f"it was judged before, as trial {outcome.trial.number}"
            _, names = self._trials()
            answer["trial"] = self._shown(outcome.trial, names)
        return {**answer, "note": SCREENED, "standing": self._standing()}

    def verdicts(
        self,
        *,
        trials: Annotated[
            list[int] | None,
            Field(max_length=50, description="trial numbers; the latest unless given"),
        ] = None,
        latest: Annotated[int, Field(ge=1, le=50, description="how many of the latest")] = 5,
    ) -> dict[str, Any]:
        """Trials in full: status, evidence, log, times, facts, what may be claimed of them, and in
        `profile` the share of the roofline and what a model of the machine says limits them.
        """
        stored, names = self._trials()
        if trials is None:
            chosen = stored[-latest:]
        else:
            unknown = [number for number in trials if not 0 <= number < len(stored)]
            if unknown:
                known = f"0 to {len(stored) - 1}" if stored else "none, as nothing was judged"
                raise Refused(f"trials: expected numbers of trials ({known}), found {unknown[0]}")
            chosen = [stored[number] for number in trials]
        shown = [self._shown(trial, names) for trial in chosen]
        return {"trials": shown, "standing": self._standing()}

    def leaderboard(
        self, *, most: Annotated[int, Field(ge=1, le=50, description="rows at most")] = 10
    ) -> dict[str, Any]:
        """The best trials with what each stands on: `confirmed` was measured against the baseline
        and is a claim (win, tie or loss with its interval), `screened` is an estimate and claims
        nothing.
        """
        stored, names = self._trials()
        return {
            "rows": leaders(stored, names, self._brief, most),
            "confirmed": confirmed_trials(stored),
            "note": SCREENED,
            "standing": self._standing(),
        }

    def finish(self, *, wait: Wait = WAIT_S) -> dict[str, Any]:
        """End the search for good and confirm the best candidates against the baseline, which takes
        a while where times are measured. Where it takes longer than `wait`, the state is
        `confirming`: ask again until it is `finished`.
        """
        with suppress(TimeoutError):
            self._session.finish().result(wait)
        return self.leaderboard(most=5)

    # What the tools share

    def _read(self, written: str | dict[str, Any]) -> tuple[Candidate | None, list[str]]:
        """The candidate in its canonical form, or why it is none of this campaign."""
        size = len(written if isinstance(written, str) else json.dumps(written))
        if size > MOST_WRITTEN:
            return None, [f"expected at most {MOST_WRITTEN} characters, found {size}"]
        found = self._brief.read(written)
        if isinstance(found, Malformed):
            return None, [plain(clipped(f"{found.kind}: {found.reason}"))]
        candidate, violations = self._session.check(found)
        faults = [plain(clipped(f"{v.code}: {v.reason}", 1000)) for v in violations[:20]]
        return (None, faults) if faults else (candidate, [])

    def _parents(self, number: int | None) -> tuple[str, ...]:
        if number is None:
            return ()
        stored, _ = self._trials()
        if number >= len(stored):
            known = f"a trial (0 to {len(stored) - 1})" if stored else "none: nothing was judged"
            raise Refused(f"parent: expected {known}, found {number}")
        return (stored[number].candidate.key,)

    def _trials(self) -> tuple[list[Trial], Names]:
        """What is recorded, whatever is being judged meanwhile."""
        with SqliteStore(self._session.path, readonly=True) as store:
            return store.trials(), Names.stored(store.meta())

    def _shown(self, trial: Trial, names: Names) -> dict[str, Any]:
        return trial_view(trial, names, self._brief, explain=self._explain)

    def _standing(self) -> dict[str, Any]:
        session = self._session
        with SqliteStore(session.path, readonly=True) as store:
            found = standing(store)
        budget = session.built.plan.budget
        left = {
            "trials": None if budget.trials is None else max(0, budget.trials - found["trials"]),
            "seconds": None
            if budget.seconds is None
            else max(0.0, budget.seconds - found["judging_seconds"]),
        }
        return {
            "state": session.state,
            "left": {key: value for key, value in left.items() if value is not None},
            **found,
        }


def _interface(problem: Problem) -> str | None:
    """The C header, None where a problem has no C form."""
    try:
        return abi(problem)
    except ProgramError:
        return None
