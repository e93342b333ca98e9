from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contracts import judged

from kernelwright.env.objective import log2_speedup
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    Arm,
    CacheState,
    Candidate,
    Evidence,
    Knob,
    Measurement,
    ProcessPair,
    Proposal,
    Stage,
    Status,
    Unpaired,
    Verdict,
    knob_candidate,
)
from kernelwright.search.answers import roofline_share
from kernelwright.search.campaign import (
    BARREN_ASKS,
    Campaign,
    DriverError,
    Extension,
    JudgeError,
    ReplayError,
)
from kernelwright.search.drivers.random import Random
from kernelwright.search.executors import Serial, Threads, make_executor
from kernelwright.search.plan import Baseline, Budget, ConfirmPlan, Plan, StopRules
from kernelwright.search.store import MemoryStore, SqliteStore
from kernelwright.search.summary import best_trial, summarise
from kernelwright.search.trial import Event

SPACE = KnobSpace([Knob("a", tuple(range(1, 21))), Knob("b", (1, 2, 3))])
BASE = knob_candidate({"a": 10, "b": 2})


class ToyJudge:
    """A judge of made-up times: 100/a ns; a = 13 fails. Counts what it is asked."""

    deterministic = True
    evidence = Evidence.MODELLED

    def __init__(self):
        self.asked = []

    def floor_ns(self, workload):
        return 1.0

    def true_ns(self, candidates):
        return np.array([100 / c.knobs["a"] for c in candidates])

    def evaluate(self, requests):
        self.asked += [(r.stage, r.trial, r.candidate) for r in requests]
        return [self.judge(r) for r in requests]

    def judge(self, request):
        if request.candidate.knobs["a"] == 13:
            return Verdict(Status.CRASHED, "unlucky")
        measurements = tuple(
            Measurement(
                "w",
                against.role,
                against.candidate.key,
                Unpaired((100 / request.candidate.knobs["a"],), (10.0,)),
                "toy",
                CacheState.COLD,
                Evidence.MODELLED,
                "toy",
            )
            for against in request.against
        )
        status = Status.WIN if request.stage is Stage.CONFIRM else Status.OK
        return Verdict(status, measurements=measurements, floors_ns=(("w", 4.0),))


class Script:
    """A driver that proposes what it was given, and keeps what it is told."""

    def __init__(self, asks, reason="the script ends"):
        self.asks, self.reason = list(asks), reason
        self.told = []

    @property
    def stopped(self):
        return None if self.asks else self.reason

    def ask(self, n):
        return [Proposal(c, "script") for c in (self.asks.pop(0) if self.asks else [])]

    def tell(self, trials):
        self.told += trials


def plan(make_driver=None, judge=None, **fields):
    defaults = {
        "space": SPACE,
        "evaluator": judge or ToyJudge(),
        "make_driver": lambda journal: (
            make_driver() if make_driver else Random(SPACE, seed=0, batch=4)
        ),
        "baseline": Baseline("unscheduled", BASE),
        "budget": Budget(trials=20),
        "batch": 4,
    }
    return Plan(**defaults | fields)


def c(a, b=1):
    return knob_candidate({"a": a, "b": b})


def run(the_plan, store=None, **options):
    store = store or MemoryStore()
    stop = Campaign(the_plan, store, **options).run()
    return stop, store


def test_spends_its_budget_and_confirms_the_best():
    stop, store = run(plan())
    trials = store.trials()
    assert (stop.rule, len(trials)) == ("trials", 20)
    best = sorted((t for t in trials if t.objective is not None), key=lambda t: -t.objective)[:3]
    assert {t.number for t in trials if t.status is Status.WIN} == {t.number for t in best}
    assert [e.kind for e in store.events()] == ["stopped", "finished"]
    assert best_trial(trials).number in {t.number for t in best}


def test_objectives_are_log2_speedups_over_the_baseline():
    _, store = run(plan())
    for trial in store.trials():
        if trial.candidate.knobs["a"] == 13:
            assert trial.objective is None
        else:
            assert trial.objective == pytest.approx(
                np.log2(min(trial.candidate.knobs["a"] / 10, 2.5))
            )


def test_duplicates_are_events_and_cost_nothing():
    script = Script([[c(1), c(2), c(1)], [c(2), c(3)]])
    judge = ToyJudge()
    stop, store = run(plan(lambda: script, judge))
    assert stop.reason == "the script ends"
    assert len([a for a in judge.asked if a[0] is Stage.SCREEN]) == 3
    duplicates = [e for e in store.events() if e.kind == "duplicate"]
    assert [(e.ask, e.slot, e.data["trial"]) for e in duplicates] == [(1, 2, 0), (2, 0, 1)]
    assert [t.number for t in script.told] == [0, 1, 2]


def test_invalid_proposals_are_refused_with_the_reason():
    script = Script([[c(99), c(1)]])
    _, store = run(plan(lambda: script))
    (refused,) = [e for e in store.events() if e.kind == "invalid"]
    assert "a=99: expected one of" in refused.data["reasons"][0]
    assert len(store.trials()) == 1


def test_a_driver_that_only_repeats_itself_is_given_up():
    stop, store = run(plan(lambda: Script([[c(1)]] * 1000)))
    assert stop.rule == "driver"
    assert str(BARREN_ASKS) in stop.reason
    assert len(store.trials()) == 1


def test_the_driver_is_never_told_a_confirmation():
    script = Script([[c(1), c(2)], [c(3)]])
    store = MemoryStore()
    run(plan(lambda: script, budget=Budget(trials=3)), store)
    again = Script([[c(1), c(2)], [c(3)], [c(4)]])
    run(plan(lambda: again, budget=Budget(trials=4)), store)
    assert len(again.told) == 4
    assert all(t.verdict(Stage.CONFIRM) is None for t in again.told)


def test_the_last_batch_is_cut_but_still_asked_whole():
    asked = []

    class Spy(Random):
        def ask(self, n):
            asked.append(n)
            return super().ask(n)

    _, store = run(plan(lambda: Spy(SPACE, seed=0, batch=8), budget=Budget(trials=10), batch=8))
    assert asked == [8, 8]
    assert len(store.trials()) == 10


def test_a_larger_budget_goes_on_as_if_there_had_been_no_stop():
    short = MemoryStore()
    run(plan(budget=Budget(trials=10)), short)
    run(plan(budget=Budget(trials=20)), short)
    _, whole = run(plan(budget=Budget(trials=20)))
    strip = lambda store: [replace(t, verdicts=t.verdicts[:1]) for t in store.trials()]  # noqa: E731
    assert strip(short) == strip(whole)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_workers_change_nothing(workers):
    one, other = MemoryStore(), MemoryStore()
    run(plan(batch=7), one, executor=Serial())
    run(plan(batch=7), other, executor=Threads(workers))
    assert one.trials() == other.trials()
    assert one.events() == other.events()


def test_what_is_stored_is_not_judged_again(tmp_path):
    class Dies(ToyJudge):
        def evaluate(self, requests):
            if len(self.asked) >= 10:
                raise KeyboardInterrupt
            return super().evaluate(requests)

    path = tmp_path / "run.sqlite"
    with SqliteStore(path) as store, pytest.raises(KeyboardInterrupt):
        run(plan(judge=Dies()), store)
    judge = ToyJudge()
    with SqliteStore(path) as store:
        run(plan(judge=judge), store)
        assert len(store.trials()) == 20
        _, unbroken = run(plan())
        assert store.trials() == unbroken.trials()
        assert store.events() == unbroken.events()
    screened = [number for stage, number, _ in judge.asked if stage is Stage.SCREEN]
    assert screened == list(range(12, 20))


def test_a_measuring_judge_commits_every_verdict_before_the_next():
    class Measures(ToyJudge):
        deterministic = False

        def evaluate(self, requests):
            assert len(requests) == 1
            if requests[0].stage is Stage.SCREEN:
                assert len(store.trials()) == requests[0].trial
            return super().evaluate(requests)

    store = MemoryStore()
    run(plan(judge=Measures()), store)
    assert len(store.trials()) == 20


def test_a_driver_that_is_not_a_function_is_found_out():
    store = MemoryStore()
    run(plan(lambda: Script([[c(1), c(2)]])), store)
    with pytest.raises(
        ReplayError, match="trial 1: the store holds a=2 b=1, the driver now proposes a=3"
    ):
        run(plan(lambda: Script([[c(1), c(3)]])), store)


def test_a_driver_that_stops_earlier_on_resume_is_found_out():
    store = MemoryStore()
    run(plan(lambda: Script([[c(1), c(2)], [c(3)]])), store)
    with pytest.raises(ReplayError, match="holds 3 trials, the driver stopped after 2"):
        run(plan(lambda: Script([[c(1), c(2)]])), store)


class Lies(ToyJudge):
    """Answers with the wrong status for the stage, or with too few verdicts."""

    def __init__(self, screen=Status.OK, confirm=Status.WIN, drop=0):
        super().__init__()
        self.answers, self.drop = {Stage.SCREEN: screen, Stage.CONFIRM: confirm}, drop

    def evaluate(self, requests):
        verdicts = [
            replace(self.judge(r), status=self.answers[r.stage])
            for r in requests
            if r.candidate.knobs["a"] != 13
        ]
        return verdicts[self.drop :]


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (Lies(screen=Status.WIN), "win is no answer to screen"),
        (Lies(confirm=Status.OK), "ok is no answer to confirm"),
        (Lies(drop=1), "expected 2 verdicts, found 1"),
    ],
)
def test_a_judge_that_answers_something_else_is_found_out(judge, message):
    with pytest.raises(JudgeError, match=message):
        run(plan(lambda: Script([[c(1), c(2)]]), judge))


def test_a_default_baseline_is_trial_0():
    script = Script([[c(1)], [BASE]])
    _, store = run(plan(lambda: script, baseline=Baseline("default", BASE, is_trial=True)))
    first = store.trials()[0]
    assert (first.candidate, first.proposer, first.ask) == (BASE, "baseline", 0)
    assert script.told[0] == replace(first, verdicts=first.verdicts[:1])
    assert store.events()[0].kind == "duplicate"


def test_plateau_and_roofline_stop_early():
    order = [[c(5), c(9), c(8), c(7)], [c(6), c(4)], [c(20)]]
    stop, store = run(plan(lambda: Script(order), stop=StopRules(plateau=3)))
    assert (stop.rule, len(store.trials())) == ("plateau", 6)
    order = [[c(5)], [c(20)], [c(9)]]
    stop, store = run(plan(lambda: Script(order), stop=StopRules(roofline=0.75)))
    assert (stop.rule, len(store.trials())) == ("roofline", 2)
    assert roofline_share(store.trials()[1].verdicts[0][1]) == pytest.approx(4 / 5)


class Clock:
    """A clock that goes on by a fixed step each time it is read."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def test_a_stop_by_time_leaves_time_to_confirm_and_is_final():
    store = MemoryStore()
    timed = plan(
        budget=Budget(seconds=20.0), confirm=ConfirmPlan(finalists=2, process_pairs=1, pairs=1)
    )
    stop, _ = run(timed, store, clock=Clock(1.0))
    count = len(store.trials())
    assert stop.rule == "seconds"
    assert "2.0 s are for confirming" in stop.reason
    assert 0 < count < 60
    assert sum(t.status is Status.WIN for t in store.trials()) == 2
    # A fast clock changes nothing: the stop was recorded.
    again, _ = run(timed, store, clock=Clock(0.0))
    assert again == stop
    assert len(store.trials()) == count


def test_nothing_valid_is_told():
    stop, store = run(plan(lambda: Script([[c(13), c(13, 2)]])))
    assert stop.rule == "driver"
    assert summarise(store)["best"] is None
    assert summarise(store)["by_status"] == {"crashed": 2}


def test_progress_is_reported_after_every_record():
    seen = []
    run(plan(), observe=seen.append)
    assert [p.trials for p in seen if p.phase == "search"] == [4, 8, 12, 16, 20]
    assert [p.phase for p in seen[-3:]] == ["confirm"] * 3
    assert sum(seen[-1].by_status.values()) == 20


def test_a_summary_counts_each_trial_once_by_its_latest_verdict():
    _, store = run(plan())
    summary = summarise(store)
    assert sum(summary["by_status"].values()) == summary["trials"] == 20
    assert summary["by_status"]["win"] == 3
    assert summary["finished"]
    assert summary["stop"]["rule"] == "trials"


def test_an_unconfirmed_best_has_no_interval():
    store = MemoryStore()
    store.record([judged(0, c(1), 1.0)])
    best = summarise(store)["best"]
    assert (best["status"], best["speedup"], best["ci_low"]) == ("ok", 2.0, None)


def test_the_best_is_the_best_confirmed_not_the_best_sample():
    store = MemoryStore()
    store.record([judged(0, c(1), 3.0), judged(1, c(2), 2.0)])
    for number, claim in [(0, 1.0), (1, 2.0)]:
        verdict = judged(number, c(1), claim).verdicts[0][1]
        store.record(verdicts=[(number, Stage.CONFIRM, replace(verdict, status=Status.WIN))])
    assert best_trial(store.trials()).number == 1
    assert log2_speedup(store.trials()[1].verdicts[-1][1]) == pytest.approx(2.0)


def test_executors_keep_order_and_raise():
    for executor in (Serial(), Threads(3)):
        assert executor.map(lambda x: x * x, list(range(20))) == [x * x for x in range(20)]
        with pytest.raises(ZeroDivisionError):
            executor.map(lambda x: 1 // x, [1, 0])
    assert isinstance(make_executor(1), Serial)
    assert make_executor(4).workers == 4
    with pytest.raises(ValueError, match="workers"):
        Threads(0)


def test_candidates_of_a_space_are_shared():
    assert isinstance(SPACE.candidate(3), Candidate)
    assert SPACE.candidate(3) is SPACE.candidate(3)


class Spy(MemoryStore):
    """Keeps every call of record."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def record(self, trials=(), verdicts=(), events=(), sitting=None, meta=None):
        self.calls.append(([t.number for t in trials], [e.kind for e in events], dict(meta or {})))
        super().record(trials, verdicts, events, sitting, meta)


@pytest.mark.parametrize("repeats", [False, True])
def test_nothing_beyond_the_old_budget_is_stored_without_the_new_one(repeats):
    asks = [[c(1), c(2), c(3), c(1) if repeats else c(4)], [c(5), c(6)]]
    store = Spy()
    run(plan(lambda: Script(asks), budget=Budget(trials=3)), store)
    store.calls.clear()
    extension = Extension({"trials": 6}, {"config": "new"})
    run(plan(lambda: Script(asks), budget=Budget(trials=6)), store, extension=extension)
    numbers, kinds, meta = store.calls[0]
    assert kinds[0] == "extended"
    assert meta == {"config": "new"}
    assert numbers == ([] if repeats else [3])
    assert sum(kind == "extended" for _, kinds, _ in store.calls for kind in kinds) == 1


def test_a_measuring_judge_is_stopped_by_time_inside_a_batch_and_resumes_there():
    class Measures(ToyJudge):
        deterministic = False

    def timed():
        return plan(
            judge=Measures(),
            batch=40,
            make_driver=lambda: Random(SPACE, seed=0, batch=40),
            budget=Budget(seconds=30.0),
            confirm=ConfirmPlan(finalists=1, process_pairs=1, pairs=1),
        )

    store = MemoryStore()
    stop, _ = run(timed(), store, clock=Clock(1.0))
    count = len(store.trials())
    assert stop.rule == "seconds"
    assert count < 30
    again, _ = run(timed(), store, clock=Clock(0.0))
    assert again == stop
    assert len(store.trials()) == count


class Leaves(ToyJudge):
    def evaluate(self, requests):
        raise SystemExit(0)


class Nothing(ToyJudge):
    def evaluate(self, requests):
        return [None for _ in requests]


class Elsewhere(ToyJudge):
    """Measures against something else than the baseline."""

    def judge(self, request):
        verdict = super().judge(request)
        other = tuple(replace(m, role="library") for m in verdict.measurements)
        return replace(verdict, measurements=other)


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (Leaves(), "SystemExit"),
        (Nothing(), "expected a verdict, found NoneType"),
        (Elsewhere(), "ok without a measurement against the baseline"),
    ],
)
def test_whatever_a_judge_does_is_told(judge, message):
    with pytest.raises(JudgeError, match=message):
        run(plan(lambda: Script([[c(1)]]), judge))


def test_a_driver_that_leaves_is_blamed():
    class Leaver(Script):
        def ask(self, n):
            raise SystemExit(0)

    def fails():
        raise ValueError("boom")

    with pytest.raises(DriverError, match="ask 1: SystemExit"):
        run(plan(lambda: Leaver([])))
    with pytest.raises(DriverError, match="making it: ValueError: boom"):
        run(plan(fails))


class PairedJudge(ToyJudge):
    """Measures 100/a ns in pairs against whatever it is asked to; keeps what that was."""

    deterministic = False
    evidence = Evidence.MEASURED

    def __init__(self):
        super().__init__()
        self.pairings = []
        self.built = []

    def prepare(self, candidate):
        self.built.append(candidate)

    def judge(self, request):
        self.pairings += [(r.role, r.candidate.knobs["a"], request.pairs) for r in request.against]
        if request.candidate.knobs["a"] == 13:
            return Verdict(Status.CRASHED, "unlucky")
        time = 100 / request.candidate.knobs["a"]
        measurements = tuple(
            Measurement(
                "w",
                against.role,
                against.candidate.key,
                (
                    ProcessPair(
                        Arm.CANDIDATE,
                        (Arm.CANDIDATE, Arm.REFERENCE),
                        ((time, 100 / against.candidate.knobs["a"]),),
                    ),
                ),
                "toy",
                CacheState.COLD,
                Evidence.MEASURED,
                "toy",
            )
            for against in request.against
        )
        status = Status.WIN if request.stage is Stage.CONFIRM else Status.OK
        return Verdict(status, measurements=measurements)


def paired(asks, **fields):
    judge = PairedJudge()
    return judge, plan(lambda: Script([[c(a) for a in ask] for ask in asks]), judge, **fields)


def test_measured_screens_are_paired_with_the_incumbent_of_their_batch():
    judge, the_plan = paired([[12, 18], [20, 5], [19]], confirm=ConfirmPlan(1, 1, 1))
    _, store = run(replace(the_plan, screen_pairs=3))
    assert judge.pairings == [
        ("baseline", 10, 3),
        ("baseline", 10, 3),
        ("baseline", 10, 3),  # 18 takes the place: its height is measured afresh
        ("incumbent", 18, 3),
        ("incumbent", 18, 3),
        ("baseline", 10, 3),  # 20
        ("incumbent", 20, 3),
        ("baseline", 10, 1),  # the confirmation
    ]
    raced = [t.candidate.knobs["a"] for t in store.trials() if t.verdict(Stage.RACE)]
    assert raced == [18, 20]
    # By whatever way it was measured, an objective is over the baseline.
    expected = [np.log2(a / 10) for a in (12, 18, 20, 5, 19)]
    assert [t.objective for t in store.trials()] == pytest.approx(expected)


def test_a_driver_is_told_no_more_than_screens():
    told = []

    class Listens(Script):
        def tell(self, trials):
            told.extend(trials)

    asks = [[c(12), c(18)], [c(20)]]
    store = MemoryStore()
    for _ in range(2):
        run(plan(lambda: Listens(asks), PairedJudge()), store)
    assert all([stage for stage, _ in t.verdicts] == [Stage.SCREEN] for t in told)
    assert told[:3] == told[3:]


def test_nothing_slower_than_the_baseline_becomes_the_incumbent():
    judge, the_plan = paired([[5], [9], [8]])
    run(the_plan)
    assert {role for role, _, _ in judge.pairings} == {"baseline"}


def test_a_resumed_campaign_pairs_the_rest_of_a_batch_with_the_same_incumbent():
    asks = [[12], [18, 20, 19, 16], [17]]

    class Dies(PairedJudge):
        def judge(self, request):
            if len(self.asked) > 4:
                raise OSError("no more")
            return super().judge(request)

    store, broken = MemoryStore(), Dies()
    script = lambda: Script([[c(a) for a in ask] for ask in asks])  # noqa: E731 - one a plan
    with pytest.raises(JudgeError):
        run(plan(script, broken), store)
    assert len(store.trials()) == 3
    judge, the_plan = paired(asks)
    run(the_plan, store)
    assert judge.pairings[:4] == [
        ("incumbent", 12, 1),
        ("incumbent", 12, 1),
        ("baseline", 10, 1),
        ("incumbent", 20, 1),
    ]
    whole_judge, whole = paired(asks)
    _, unbroken = run(whole)
    assert [t.objective for t in store.trials()] == [t.objective for t in unbroken.trials()]
    del whole_judge


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_build_ahead_and_measure_one_by_one(workers):
    judge, the_plan = paired([[12, 18], [20]])
    run(the_plan, executor=make_executor(workers))
    assert len(judge.built) == (0 if workers == 1 else 3)


class Pays:
    """A driver that pays for every proposal and reads back what it paid for."""

    def __init__(self, journal, calls):
        self.journal, self.calls, self.asks = journal, calls, 0

    stopped = None

    def ask(self, n):
        self.asks += 1
        out = []
        for slot in range(n):
            if self.journal.past("model_call", self.asks, slot) is None:
                self.calls.append((self.asks, slot))
                payload = '{"answer":1}'
                self.journal.record(Event("model_call", self.asks, slot, payload, 10, 0.0))
            out.append(Proposal(c(1 + (4 * self.asks + slot) % 12, 1 + self.asks % 3), "pays"))
        return out

    def tell(self, trials):
        pass


def paying(made, judge=None, **budget):
    limits = Budget(**budget)
    the_plan = plan(judge=judge, budget=limits)
    return replace(the_plan, make_driver=lambda journal: Pays(journal, made))


@pytest.mark.parametrize(("budget", "rule"), [({"calls": 6}, "calls"), ({"tokens": 75}, "tokens")])
def test_calls_and_tokens_are_budgets(budget, rule):
    calls = []
    stop, store = run(paying(calls, **budget))
    assert stop.rule == rule
    assert len(calls) == 8
    assert sum(e.tokens for e in store.events()) == 80
    assert run(paying([], **budget), store)[0] == stop


def test_what_was_paid_is_read_back_and_never_paid_again():
    class Dies(ToyJudge):
        def evaluate(self, requests):
            if len(self.asked) >= 4:
                raise OSError("no more")
            return super().evaluate(requests)

    store, first = MemoryStore(), []
    with pytest.raises(JudgeError):
        run(paying(first, Dies(), calls=12), store)
    assert len(first) == 8
    second = []
    run(paying(second, calls=12), store)
    assert second == [(3, slot) for slot in range(4)]
    _, unbroken = run(paying([], calls=12))
    assert store.trials() == unbroken.trials()
    assert store.events() == unbroken.events()


class Timed(PairedJudge):
    """Takes 1 s a screen and ``confirmation`` s a confirmation, and says so."""

    def __init__(self, confirmation):
        super().__init__()
        self.now, self.confirmation = 0.0, confirmation

    def estimate_s(self, request):
        return self.confirmation

    def judge(self, request):
        took = {Stage.SCREEN: 1.0, Stage.RACE: 0.0, Stage.CONFIRM: self.confirmation}
        self.now += took[request.stage]
        return super().judge(request)


@pytest.mark.parametrize(
    ("confirmation", "screened", "confirmed"),
    [(5.0, 45, 3), (20.0, 30, 1), (40.0, 20, 1), (100.0, 1, 1)],
)
def test_seconds_are_shared_between_search_and_confirmation(confirmation, screened, confirmed):
    judge = Timed(confirmation)
    space = KnobSpace([Knob("a", tuple(range(20, 400))), Knob("b", (1,))])
    the_plan = plan(
        lambda: Random(space, seed=0, batch=4), judge, space=space, budget=Budget(seconds=60.0)
    )
    stop, store = run(the_plan, clock=lambda: judge.now)
    assert stop.rule == "seconds"
    assert len(store.trials()) == screened
    assert sum(t.status is Status.WIN for t in store.trials()) == confirmed
    left = [e.data["trials"] for e in store.events() if e.kind == "unconfirmed"]
    assert [len(numbers) for numbers in left] == ([] if confirmed == 3 or screened == 1 else [2])
    # The best is confirmed first.
    best = max(store.trials(), key=lambda t: t.objective)
    assert best.verdict(Stage.CONFIRM) is not None


class Noisy(PairedJudge):
    """Everything takes equally long, and every pair errs by some percent."""

    def __init__(self, noise=0.05):
        super().__init__()
        self.rng, self.noise = np.random.default_rng(0), noise

    def judge(self, request):
        (against,) = request.against
        errors = np.exp(self.rng.normal(0, self.noise, (request.pairs, 2)))
        pair = ProcessPair(
            Arm.CANDIDATE, (Arm.CANDIDATE, Arm.REFERENCE), tuple(map(tuple, errors.tolist()))
        )
        state, evidence = CacheState.COLD, Evidence.MEASURED
        key = against.candidate.key
        m = Measurement("w", against.role, key, (pair,), "toy", state, evidence, "toy")
        status = Status.TIE if request.stage is Stage.CONFIRM else Status.OK
        return Verdict(status, measurements=(m,))


def test_equal_candidates_do_not_climb_by_luck():
    space = KnobSpace([Knob("a", tuple(range(1, 301)))])
    limits = {"budget": Budget(trials=300), "screen_pairs": 5, "batch": 8}
    limits["baseline"] = Baseline("unscheduled", knob_candidate({"a": 1}))
    the_plan = plan(lambda: Random(space, seed=0, batch=8), Noisy(), space=space, **limits)
    _, store = run(the_plan)
    objectives = [t.objective for t in store.trials()]
    # Of 300 medians of five the greatest is about 3 standard errors out.
    assert max(objectives) < np.log2(1.2)
    assert abs(np.mean(objectives[200:])) < 0.1
    stop, _ = run(replace(the_plan, stop=StopRules(plateau=64)))
    assert stop.rule == "plateau"


class Fickle(PairedJudge):
    """Some candidates fail when they are looked at again: in a race, or as a reference."""

    def __init__(self, races=(), references=(), dies_after=10**6):
        super().__init__()
        self.races, self.references, self.dies_after = races, references, dies_after

    def judge(self, request):
        if len(self.asked) > self.dies_after:
            raise OSError("no more")
        (against,) = request.against
        if request.stage is Stage.RACE and request.candidate.knobs["a"] in self.races:
            return Verdict(Status.WRONG, "wrong_value", evidence="this time it was wrong")
        if against.role == "incumbent" and against.candidate.knobs["a"] in self.references:
            return Verdict(Status.BROKEN, "reference_failed", evidence="it was wrong")
        return super().judge(request)


def fickle(asks, **options):
    judge = Fickle(**options)
    return judge, plan(lambda: Script([[c(a) for a in ask] for ask in asks]), judge)


def test_a_trial_that_fails_its_race_is_no_finalist_and_stays_failed():
    _, the_plan = fickle([[12, 18], [15]], races=(18,))
    _, store = run(the_plan)
    found = {t.candidate.knobs["a"]: t for t in store.trials()}
    assert found[18].status is Status.WRONG
    assert found[18].verdict(Stage.CONFIRM) is None
    assert best_trial(store.trials()).candidate.knobs["a"] == 15
    summary = summarise(store)
    assert summary["by_status"]["wrong"] == 1
    assert summary["failures"][0]["evidence"] == "this time it was wrong"
    again, _ = fickle([[12, 18], [15]], races=(18,))
    trials = store.trials()
    run(plan(lambda: Script([[c(12), c(18)], [c(15)]]), again), store)
    assert (again.asked, store.trials()) == ([], trials)


ASKS = [[12, 18], [15, 16], [17]]


def test_an_incumbent_that_fails_as_a_reference_is_dethroned():
    judge, the_plan = fickle(ASKS, references=(18,))
    _, store = run(the_plan)
    found = {t.candidate.knobs["a"]: t for t in store.trials()}
    assert all(found[a].status.passed for a in (12, 15, 16, 17))
    assert found[18].verdict(Stage.CONFIRM) is None
    (fallen,) = [e for e in store.events() if e.kind == "dethroned"]
    assert (fallen.data["key"], fallen.slot) == (c(18).key, found[15].number)
    # From there on it is the baseline again, until somebody is clearly ahead.
    screens = [p[:2] for p in judge.pairings]
    assert screens[3:6] == [("baseline", 10), ("baseline", 10), ("baseline", 10)]
    expected = [np.log2(a / 10) for a in (12, 18, 15, 16, 17)]
    assert [t.objective for t in store.trials()] == pytest.approx(expected)


@pytest.mark.parametrize("dies_after", range(2, 12))
def test_a_dethronement_is_replayed(dies_after):
    _, whole = fickle(ASKS, references=(18,))
    _, unbroken = run(whole)
    store = MemoryStore()
    try:
        run(fickle(ASKS, references=(18,), dies_after=dies_after)[1], store)
    except JudgeError:
        run(fickle(ASKS, references=(18,))[1], store)
    assert store.trials() == unbroken.trials()
    assert store.events() == unbroken.events()


def test_a_batch_that_time_has_cut_is_the_last():
    class Fast(Timed):
        """Thinks at first that confirming takes long, and knows better after a race."""

        def estimate_s(self, request):
            return 30.0 if self.now < 100 and not self.raced else 1.0

        raced = False

        def judge(self, request):
            self.raced = self.raced or request.stage is Stage.RACE
            return super().judge(request)

    judge = Fast(1.0)
    space = KnobSpace([Knob("a", tuple(range(20, 400))), Knob("b", (1,))])
    fields = {"space": space, "batch": 64, "budget": Budget(seconds=36.0)}
    the_plan = plan(lambda: Random(space, seed=0, batch=64), judge, **fields)
    stop, store = run(the_plan, clock=lambda: judge.now)
    count = len(store.trials())
    assert (stop.rule, count < 64) == ("seconds", True)
    assert {t.ask for t in store.trials()} == {1}
    extension = Extension({"seconds": 200.0}, {})
    longer = replace(the_plan, budget=Budget(seconds=200.0))
    run(longer, store, clock=lambda: judge.now, extension=extension)
    assert len(store.trials()) > count
