"""The campaign: ask, refuse or deduplicate, judge, record, tell; then confirm the finalists.

A campaign that was interrupted at any instant is run again from the start: the driver is asked
again and told the stored trials, only what is missing is judged. Since a driver is a pure function
of what it is told and deterministic judges of what they are asked, the end is the same, bit for
bit, however often the run was killed and however many workers it had.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelwright.env.protocols import Builds, Discloses, Estimates
from kernelwright.env.types import (
    REFERENCE_FAILED,
    Candidate,
    Evidence,
    Proposal,
    Request,
    Stage,
    Verdict,
)
from kernelwright.env.words import counted
from kernelwright.search.admission import DriverError as DriverError
from kernelwright.search.admission import admit, asked, blame
from kernelwright.search.answers import no_answer, samples_ns
from kernelwright.search.cut import Pace
from kernelwright.search.driver import Notice
from kernelwright.search.executors import Executor, Serial
from kernelwright.search.finals import FIELD, Finals, confirm_request, entrants_of, height_of
from kernelwright.search.incumbent import Incumbent
from kernelwright.search.plan import Plan
from kernelwright.search.progress import Calls, Meter
from kernelwright.search.progress import Progress as Progress
from kernelwright.search.spending import Spent, limit_reached
from kernelwright.search.stopping import Goals
from kernelwright.search.store import Sitting, Store, StoreJournal
from kernelwright.search.trial import MODEL_CALL, Event, Trial, event
from kernelwright.search.tuning.serving import CACHE, LOST, SERVED, Served
from kernelwright.search.underway import Underway

# Trials that wait behind those that are raced, should one of those fail when it is measured again.
SPARE = 8
# Asks in a row without anything new before the campaign gives a driver up.
BARREN_ASKS = 64


class ReplayError(RuntimeError):
    """A resumed driver proposed something else than what is stored: it is not a pure function of
    what it was told.
    """


class JudgeError(RuntimeError):
    """A judge raised, or answered what was not asked: our own bug, or a plug-in's."""


@dataclass(frozen=True, slots=True)
class Extension:
    """A larger budget than the store's, recorded once the old trials have been replayed."""

    budget: Mapping[str, float]
    meta: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a search ended: the rule's name (``trials seconds calls tokens usd plateau roofline
    target driver until``) and a sentence.
    """

    rule: str
    reason: str


def screened(count: int) -> str:
    """The sentence on a number of trials that is reached."""
    return f"{counted(count, 'candidate')} {'was' if count == 1 else 'were'} screened"


class Campaign:
    """One campaign over a store.

    Args:
        plan: what to do.
        store: where it is recorded; what it already holds is replayed.
        executor: runs builds and deterministic judges side by side.
        observe: called after everything that was recorded, and when a call of a model begins or is
            tried again.
        extension: a budget larger than the store's.
        until: stops the search (no confirmation follows) at the first trial for which it is true;
            for measuring drivers.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        *,
        executor: Executor | None = None,
        observe: Callable[[Progress], None] | None = None,
        extension: Extension | None = None,
        until: Callable[[Trial], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan, self.store = plan, store
        self._executor = executor or Serial()
        self._extension = extension
        self._observe, self._until, self._clock = observe, until, clock
        # The store has the trials; only what decides is kept here, so memory and garbage
        # collection do not grow with a long run.
        self._count = 0
        self._keys: dict[str, int] = {}
        self._ranked: list[tuple[float, int, Trial]] = []
        self._counts: Counter[str] = Counter()
        self._goals = Goals(plan)
        self._meter = Meter(plan.budget, ())
        self._rehearsal_s: float | None = None
        self._confirmed_s: float | None = None
        self._heights: dict[int, int] = {}
        self._until_met = False
        self._cut = False
        self._pace = Pace(plan.screen_cut, plan.screen_pairs) if plan.screen_cut else None
        self._limits_ns: tuple[float, ...] = ()
        self._served: set[int] = set()
        self._waiting: list[Event] = []
        self._incumbent = Incumbent.of_baseline(plan.baseline.candidate)

    def run(self) -> Stop:
        """Search, confirm, and say why the search ended.

        Raises:
            DriverError: if the driver raises or breaks the protocol.
            JudgeError: if the judge does.
            ReplayError: if the store was made by a driver that does not repeat itself.
        """
        self.start()
        try:
            stop = None
            while stop is None:
                stop = self.step()
            return self.finish(stop)
        finally:
            self.close()

    def start(self) -> None:
        """Read what is stored and make the driver; then come steps, and one `finish`.

        Raises:
            DriverError, JudgeError, ReplayError: as `run`.
        """
        self._earlier = self.store.spent(earlier=True)
        self._stored = self.store.trials()
        self._events = self.store.events()
        self._calls = Underway(self.store, self._has_time_to_ask)
        calls = [e for e in self._events if e.kind == MODEL_CALL]
        calls += self._calls.unanswered
        self._paid = deque(sorted(calls, key=lambda call: call.ask))
        self._spent = Spent()
        self._stops = [e for e in self._events if e.kind == "stopped"]
        self._goals = Goals(self.plan, self._events)
        self._meter = Meter(self.plan.budget, self._paid)
        # By the number of the trial at which it came out.
        self._dethroned = {e.slot for e in self._events if e.kind == "dethroned"}
        self._epoch = sum(e.kind == "extended" for e in self._events)
        self._epoch += self._extension is not None
        self._served = {e.slot for e in self._events if e.kind == SERVED}
        self._started = self._clock()
        self._search_s: float | None = None
        self._asked, self._barren = 0, 0
        try:
            self._open_cache()
            with blame("making it"):
                journal = StoreJournal(
                    self._events, self._keep, self._calls, self._left_s, self._notice
                )
                self._driver = self.plan.make_driver(journal)
            if self.plan.baseline.is_trial:
                self._screen(0, [Proposal(self.plan.baseline.candidate, "baseline")], [])
        except BaseException:
            self._disclose()
            raise

    def step(self, most: int | None = None) -> Stop | None:
        """Ask the driver once, judge what is new of at most ``most`` proposals, tell it; or, if
        there is a reason to stop instead, that one. The trials of earlier sittings count as new.

        Raises:
            DriverError, JudgeError, ReplayError: as `run`.
        """
        stop = self._why_stop(self._asked)
        if stop is not None:
            return stop
        self._asked = ask = self._asked + 1
        proposals = asked(self._driver, ask, self.plan.batch)
        if not proposals:
            # The limits of a budget hold inside an ask, too.
            reached = self._spent_on_models(ask) or self._out_of_time(ask)
            if reached is not None:
                return reached
            with blame(f"stopped after ask {ask}"):
                return Stop("driver", str(self._driver.stopped or "the driver proposed nothing"))
        room = self.room if most is None else min(most, self.room or most)
        fresh, events = admit(self.plan.space, ask, proposals, self._keys, self._count, room)
        self._screen(ask, fresh, events)
        self._barren = 0 if fresh else self._barren + 1
        if self._barren == BARREN_ASKS:
            return Stop("driver", f"nothing new in {BARREN_ASKS} asks in a row")
        return None

    def due(self) -> Stop | None:
        """The reason to stop the search now, None while there is none, without asking the driver;
        the next `step` says the same.

        Raises:
            JudgeError: if a trial must be measured again to tell, and the judge fails.
        """
        return self._why_stop(self._asked)

    def finish(self, stop: Stop) -> Stop:
        """Confirm the best trials of a search that ended for this reason, which is recorded.

        Raises:
            JudgeError, ReplayError: as `run`.
        """
        if stop.rule == "until":
            return stop
        if self._count < len(self._stored):
            raise ReplayError(
                f"the store holds {len(self._stored)} trials, "
                f"the driver stopped after {self._count}"
            )
        ask = self._asked
        stopped = event("stopped", ask, self._epoch, rule=stop.rule, reason=stop.reason)
        self._record(events=[stopped], extend=True)
        self._search_s = self._clock() - self._started
        is_done = self._finals(ask)
        self._disclose()
        if is_done:
            self._record(events=[event("finished", ask, self._epoch, trials=self._count)])
        return stop

    def close(self) -> None:
        """End the sitting: what the judge drew from is recorded. Once, after everything else."""
        if self._waiting:
            self._record()
        self._disclose()

    @property
    def count(self) -> int:
        """How many trials there are, those of earlier sittings as far as they were replayed."""
        return self._count

    @property
    def calls(self) -> Calls | None:
        """What was asked of models, None if nothing was."""
        return self._meter.calls

    @property
    def room(self) -> int | None:
        """How many trials are left of the budget; None if it has no number of them."""
        limit = self.plan.budget.trials
        return None if limit is None else limit - self._count

    def _disclose(self) -> None:
        """Record what the judge drew its values from, now that nothing more is judged by it; a
        sitting that was killed takes its secret with it.
        """
        evaluator = self.plan.evaluator
        used = evaluator.disclose() if isinstance(evaluator, Discloses) else None
        if used is not None:
            known = sum(e.kind == "judge_secret" for e in self.store.events())
            self._record(events=[event("judge_secret", 0, known, key=used)])

    def _open_cache(self) -> None:
        """Decide what the tuning cache is trusted with, once in a campaign's life."""
        serving = self.plan.serving
        if serving is None:
            return
        opening = next((e for e in self._events if e.kind == CACHE), None)
        if opening is None:
            probe = serving.probe()
            found = None if probe is None else self._evaluate([probe])[0]
            opening = event(CACHE, 0, 0, **serving.opening(found))
            self._record(events=[opening])
        elif serving.lost is not None:
            self._record(events=[event(LOST, 0, 0, reason=serving.lost)])
        serving.begin(opening.data)

    # Searching

    def _screen(self, ask: int, proposals: list[Proposal], events: list[Event]) -> None:
        """Judge what is not stored, record it, and tell the driver everything."""
        first = self._count
        known = self._stored[first : first + len(proposals)]
        for proposal, trial in zip(proposals, known, strict=False):
            if proposal.candidate.key != trial.candidate.key:
                raise ReplayError(
                    f"trial {trial.number}: the store holds {trial.candidate}, "
                    f"the driver now proposes {proposal.candidate}"
                )
        # Frozen before anything of this batch is learned, so that a batch that was interrupted or
        # extended is cut like a whole one.
        self._limits_ns = self._pace.limits_ns if self._pace else ()
        # A driver is told screens only, and the same ones however often it is told.
        told = [
            replace(t, verdicts=tuple(p for p in t.verdicts if p[0] is Stage.SCREEN)) for t in known
        ]
        for trial in told:
            if trial.number in self._dethroned:
                self._dethrone()
            self._learn(trial)
        missing = [] if self._stopped_by_time(ask) else proposals[len(known) :]
        # What is stored has been replayed; from here on there is something new to record.
        extend = first + len(known) >= len(self._stored)
        one_by_one = not self.plan.evaluator.deterministic
        if one_by_one:
            self._prepare(missing)
        for group in [[p] for p in missing] if one_by_one else [missing]:
            if one_by_one and told and self._is_late():
                self._cut = True
                break
            trials, fallen = self._judge(ask, first + len(told), group) if group else ([], [])
            told += trials
            events = [*fallen, *events]
            if trials or events:
                self._record(trials=trials, events=events, extend=extend)
            for trial in trials:
                self._learn(trial)
            events = []
        if events:
            self._record(events=events, extend=extend)
        # A batch that time has cut is the last.
        if not self._cut:
            self._race(told, known)
        if told:
            total = self.plan.budget.trials
            self._report("search", self._count, total, replayed=not missing)
            with blame(f"tell after ask {ask}"):
                self._driver.tell(told)

    def _race(self, trials: Sequence[Trial], known: Sequence[Trial]) -> None:
        """Give the incumbent's place to a trial of this batch that is clearly ahead of it."""
        if self.plan.evaluator.evidence is not Evidence.MEASURED:
            return
        challenger = self._incumbent.challenger(trials)
        if challenger is None:
            return
        number = challenger.number
        self._heights[number] = 1
        races = [v for t in known if t.number == number for s, v in t.verdicts if s is Stage.RACE]
        verdict = height_of(races)
        if verdict is None:
            request = self._screen_request(challenger.candidate, number, Stage.RACE)
            (verdict,) = self._evaluate([request])
            self._record(verdicts=[(number, Stage.RACE, verdict)])
        self._incumbent = self._incumbent.succeeded_by(challenger, verdict)
        if not verdict.status.passed:
            self._drop(number)

    def _dethrone(self) -> None:
        """The incumbent failed as a reference: it is none any more, and no finalist."""
        candidate = self._incumbent.reference.candidate
        self._drop(self._keys.get(candidate.key, -1))
        self._incumbent = Incumbent.of_baseline(self.plan.baseline.candidate)

    def _prepare(self, proposals: Sequence[Proposal]) -> None:
        """Have candidates built side by side where the judge can; it then times them one by one."""
        evaluator = self.plan.evaluator
        if isinstance(evaluator, Builds) and self._executor.workers > 1:
            unknown = [p.candidate for p in proposals if self._known(p.candidate) is None]
            self._executor.map(evaluator.prepare, unknown)

    def _screen_request(self, candidate: Candidate, number: int, stage: Stage) -> Request:
        """A screen against the incumbent, or a race against the baseline."""
        plan = self.plan
        screen = stage is Stage.SCREEN
        against = (self._incumbent.reference,) if screen else plan.against_baseline
        return Request(
            candidate,
            stage,
            against,
            trial=number,
            pairs=plan.screen_pairs,
            state=plan.state,
            cut_ns=self._limits_ns if screen else (),
        )

    def _judge(
        self, ask: int, first: int, proposals: Sequence[Proposal]
    ) -> tuple[list[Trial], list[Event]]:
        """Trials of these proposals; events of those that the tuning cache served, and one if the
        incumbent failed on the way.
        """
        numbered = list(enumerate(proposals, first))
        served = {n: found for n, p in numbered if (found := self._known(p.candidate)) is not None}
        asked = [(number, p) for number, p in numbered if number not in served]
        verdicts, fallen = self._screened(asked), []
        if any(v.code == REFERENCE_FAILED for v in verdicts) and self._incumbent.is_a_candidate:
            # Not the candidate's fault, so it is screened again, against the baseline.
            key = self._incumbent.reference.candidate.key
            evidence = next(v.evidence for v in verdicts if v.code == REFERENCE_FAILED)
            fallen = [event("dethroned", ask, first, key=key, evidence=evidence)]
            self._dethrone()
            verdicts = self._screened(asked)
        judged = {
            number: (verdict, self._incumbent.objective(verdict))
            for (number, _), verdict in zip(asked, verdicts, strict=True)
        }
        for number, found in served.items():
            judged[number] = found.verdict, found.objective
            fallen.append(event(SERVED, ask, number, run=found.record.run, at=found.record.at))
        self._served |= served.keys()
        trials = [
            Trial(
                number=number,
                candidate=proposal.candidate,
                verdicts=((Stage.SCREEN, judged[number][0]),),
                objective=judged[number][1],
                proposer=proposal.proposer,
                parents=proposal.parents,
                seed=self.plan.seed,
                ask=ask,
                tokens=proposal.tokens,
                usd=proposal.usd,
            )
            for number, proposal in numbered
        ]
        return trials, fallen

    def _known(self, candidate: Candidate) -> Served | None:
        """What the tuning cache has on a candidate that may be served."""
        return None if self.plan.serving is None else self.plan.serving.find(candidate)

    def _screened(self, numbered: Sequence[tuple[int, Proposal]]) -> list[Verdict]:
        requests = [
            self._screen_request(proposal.candidate, number, Stage.SCREEN)
            for number, proposal in numbered
        ]
        if not requests:
            return []
        workers = min(self._executor.workers, len(requests))
        size = -(-len(requests) // workers)
        chunks = [requests[i : i + size] for i in range(0, len(requests), size)]
        return [v for part in self._executor.map(self._evaluate, chunks) for v in part]

    def _evaluate(self, requests: Sequence[Request]) -> Sequence[Verdict]:
        """The judge's verdicts, if they answer the requests.

        Raises:
            JudgeError: if it raises, or answers something else than was asked.
        """
        try:
            verdicts = list(self.plan.evaluator.evaluate(requests))
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {error}"
            raise JudgeError(f"trial {requests[0].trial}: {what}") from error
        if len(verdicts) != len(requests):
            raise JudgeError(f"expected {len(requests)} verdicts, found {len(verdicts)}")
        for request, verdict in zip(requests, verdicts, strict=True):
            wrong = no_answer(request, verdict)
            if wrong:
                raise JudgeError(f"trial {request.trial}: {wrong}")
        return verdicts

    @property
    def _best(self) -> Trial | None:
        """The trial of greatest objective so far that nothing speaks against."""
        return self._ranked[0][2] if self._ranked else None

    @property
    def _finalists(self) -> list[Trial]:
        """The trials that would be confirmed now, the best first."""
        return [trial for _, _, trial in self._ranked[: self.plan.confirm.finalists]]

    def _drop(self, number: int) -> None:
        """Take a trial that failed later from those that may be confirmed."""
        self._ranked = [place for place in self._ranked if place[1] != number]
        self._goals.forget(number)

    def _learn(self, trial: Trial) -> None:
        self._count += 1
        self._keys[trial.candidate.key] = trial.number
        self._until_met = self._until_met or (self._until is not None and self._until(trial))
        self._counts[trial.status] += 1
        if trial.objective is None:
            return
        insort(self._ranked, (-trial.objective, trial.number, trial))
        del self._ranked[max(FIELD, self.plan.confirm.finalists) + SPARE :]
        self._goals.learn(trial)
        if self._pace is not None:
            # Targets that can cut time one workload.
            self._pace.learn(next(iter(samples_ns(trial.verdicts[0][1]).values())))

    def _why_stop(self, ask: int) -> Stop | None:
        budget, rules, count = self.plan.budget, self.plan.stop, self._count
        if self._until_met:
            return Stop("until", "the condition was met")
        if budget.trials is not None and count >= budget.trials:
            return Stop("trials", screened(count))
        reached = self._goal_reached(ask)
        if reached is not None:
            return reached
        if rules.plateau is not None and count:
            since = count - 1 - (self._best.number if self._best else -1)
            if since >= rules.plateau:
                enough = f"{rules.plateau} {'is' if rules.plateau == 1 else 'are'} enough"
                return Stop("plateau", f"{counted(since, 'trial')} without a better one, {enough}")
        return self._spent_on_models(ask) or self._out_of_time(ask)

    def _spent_on_models(self, ask: int) -> Stop | None:
        """The limit of calls, tokens or money that the calls up to an ask have reached."""
        while self._paid and self._paid[0].ask <= ask:
            self._spent += Spent.of(self._paid.popleft())
        reached = limit_reached(self.plan.budget, self._spent)
        return None if reached is None else Stop(*reached)

    def _goal_reached(self, ask: int) -> Stop | None:
        """Whether the search is done, by samples that did not choose the trial that they praise."""
        goals = self._goals
        for trial in goals.leaders:
            met = goals.proved(trial)
            if met is None:
                look = goals.past_look(ask, trial)
                if look is None and (self._stopped_by_time(ask) or self._is_late()):
                    return None
                data = (look or self._look(ask, trial)).data
                met = data["met"]
                if data["failed"]:
                    self._drop(trial.number)
            if met is not None:
                return Stop(*met)
            goals.forget(trial.number)
        return None

    def _look(self, ask: int, trial: Trial) -> Event:
        """Measure a trial again, on fresh samples."""
        (verdict,) = self._evaluate([self._goals.look_request(trial)])
        look = self._goals.looked(ask, trial, verdict)
        failed = [(trial.number, Stage.RACE, verdict)] if look.data["failed"] else []
        extend = self._count >= len(self._stored)
        self._record(verdicts=failed, events=[look], extend=extend)
        return look

    def _stopped_by_time(self, ask: int) -> Event | None:
        """The recorded stop by time at this ask: final, so it is read back, not decided again."""
        return next(
            (
                past
                for past in self._stops
                if (past.slot, past.ask) == (self._epoch, ask) and past.data["rule"] == "seconds"
            ),
            None,
        )

    def _spent_s(self) -> float:
        return self._earlier.search_s + self._earlier.confirm_s + self._clock() - self._started

    def _left_s(self) -> float:
        """What is left of the time for searching; nothing where a stop by time is recorded."""
        limit = self.plan.budget.seconds
        if limit is None:
            return math.inf
        if self._stopped_by_time(self._asked) is not None:
            return 0.0
        return max(0.0, limit - self._spent_s() - self._confirmation_s())

    def _is_late(self) -> bool:
        """Whether what is left is no more than the confirmation needs."""
        limit = self.plan.budget.seconds
        return limit is not None and limit - self._spent_s() <= self._confirmation_s()

    def _has_time_to_ask(self, ask: int) -> bool:
        """Whether a model may be called in this ask; if not, the batch is the last."""
        self._cut = self._cut or self._stopped_by_time(ask) is not None or self._is_late()
        return not self._cut

    def _out_of_time(self, ask: int) -> Stop | None:
        past = self._stopped_by_time(ask)
        if past is not None:
            return Stop("seconds", past.data["reason"])
        limit = self.plan.budget.seconds
        if limit is None or self._count < len(self._stored):
            return None
        if not (self._cut or self._is_late()):
            return None
        spent, needed = self._spent_s(), self._confirmation_s()
        return Stop(
            "seconds", f"{spent:.1f} s of {limit:g} s are spent, {needed:.1f} s are for confirming"
        )

    def _confirmation_s(self) -> float:
        """The wall time kept for confirming: what the finalists are estimated to take.

        Where that is more than half of the budget, half of it, or what one finalist takes; then not
        all of them are confirmed (see `_confirm`).
        """
        limit, each = self.plan.budget.seconds, self._estimates_s()
        needed = sum(each)
        if limit is None or needed <= limit / 2:
            return needed
        return max(limit / 2, max(each))

    def _estimates_s(self) -> list[float]:
        """The estimated wall time of confirming each finalist: the judge's own estimate, or that of
        one confirmation rehearsed.

        What a rehearsal measures is thrown away; until something passed there is nothing to
        rehearse and nothing to confirm.
        """
        evaluator = self.plan.evaluator
        if isinstance(evaluator, Estimates):
            requests = [confirm_request(self.plan.contest, trial, 0) for trial in self._finalists]
            return [evaluator.estimate_s(request) for request in requests] or [0.0]
        if self._rehearsal_s is None:
            if not self._finalists:
                return [0.0]
            began = self._clock()
            self._evaluate([confirm_request(self.plan.contest, self._finalists[0], 0)])
            self._rehearsal_s = self._clock() - began
        return [self._rehearsal_s] * min(self.plan.confirm.finalists, self._count)

    # Racing and confirming

    def _finals(self, ask: int) -> bool:
        """Race the best trials and confirm them until one wins; whether that is done, and not
        left for a calmer host.
        """
        place = (ask, self._epoch)
        trials = [trial for _, _, trial in self._ranked]
        served = frozenset(self._served)
        entrants = entrants_of(trials, self._stored, self._heights, served)
        desk, past = _Desk(self), self._events
        finals = Finals(self.plan.contest, desk, self._incumbent, entrants, past, place)
        finals.run()
        return not finals.host_was_noisy

    def _has_time_for(self, requests: Sequence[Request]) -> bool:
        """Whether the wall time that is left is enough for these, and, if they only race, for a
        confirmation afterwards.
        """
        limit, evaluator = self.plan.budget.seconds, self.plan.evaluator
        if limit is None:
            return True
        if not isinstance(evaluator, Estimates):
            is_race = any(r.stage is Stage.RACE for r in requests)
            return not is_race or self._spent_s() + sum(self._estimates_s()) <= limit
        needed = sum(evaluator.estimate_s(request) for request in requests)
        if all(request.stage is Stage.CONFIRM for request in requests):
            # What the one before took is the better guess.
            needed = self._confirmed_s or needed
        else:
            needed += max(self._estimates_s())
        return self._spent_s() + needed <= limit

    # Recording

    def _keep(self, told: Event) -> None:
        """Record a driver's event, which belongs to an ask beyond what is replayed: what it paid
        for or was told from outside at once, all else with what is recorded next, for a driver that
        is asked again says it again.
        """
        self._waiting.append(told)
        if told.kind == MODEL_CALL:
            self._paid.append(told)
            extend = self._count >= len(self._stored)
            self._record(extend=extend, meta=self._calls.settled(told))
            self._meter.record(told)
            self._report("search", self._count, self.plan.budget.trials, replayed=False)
        elif getattr(getattr(self, "_driver", None), "is_from_outside", False):
            self._record(extend=self._count >= len(self._stored))

    def _notice(self, notice: Notice) -> None:
        """Tell whoever observes the campaign how a call of a model is doing."""
        self._meter.notice(notice)
        self._report("search", self._count, self.plan.budget.trials, replayed=False)

    def _record(
        self,
        trials: Sequence[Trial] = (),
        verdicts: Sequence[tuple[int, Stage, Verdict]] = (),
        events: Sequence[Event] = (),
        *,
        extend: bool = False,
        meta: Mapping[str, str] | None = None,
    ) -> None:
        """Record in one transaction; ``extend`` puts a pending larger budget into it.

        So nothing beyond the old budget is ever stored without the new one.
        """
        meta = meta or {}
        events, self._waiting = [*self._waiting, *events], []
        if extend and self._extension is not None:
            budget, meta = dict(self._extension.budget), {**meta, **self._extension.meta}
            events = [event("extended", 0, self._epoch - 1, budget=budget), *events]
            self._extension = None
        self.store.record(trials, verdicts, events, self._sitting(), meta)

    def _sitting(self) -> Sitting:
        elapsed = self._clock() - self._started
        search = elapsed if self._search_s is None else self._search_s
        return Sitting(search, elapsed - search)

    def _report(
        self, phase: str, done: int, total: int | None, *, replayed: bool, note: str = ""
    ) -> None:
        if self._observe is not None:
            sitting, before = self._sitting(), self._earlier
            seconds = sitting.search_s + sitting.confirm_s + before.search_s + before.confirm_s
            counts, best, calls = dict(self._counts), self._best, self.calls
            self._observe(
                Progress(
                    *(phase, done, total, self._count, counts, best, seconds, replayed, note),
                    calls=calls,
                )
            )


class _Desk:
    """What the finals have of a campaign."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign

    def judge(self, request: Request) -> Verdict:
        """The verdict on a request; of a confirmation it is known afterwards how long it took."""
        campaign = self._campaign
        began = campaign._clock()
        (verdict,) = campaign._evaluate([request])
        if request.stage is Stage.CONFIRM:
            campaign._confirmed_s = campaign._clock() - began
        return verdict

    def keep(self, verdicts: Sequence[tuple[int, Stage, Verdict]], events: Sequence[Event]) -> None:
        """Record these."""
        self._campaign._record(verdicts=verdicts, events=events)

    def has_time_for(self, requests: Sequence[Request]) -> bool:
        """Whether the wall time that is left is enough."""
        return self._campaign._has_time_for(requests)

    def report(self, phase: str, done: int, total: int, note: str = "") -> None:
        """Tell whoever observes the campaign."""
        self._campaign._report(phase, done, total, replayed=False, note=note)
