"""Campaigns where times are measured: incumbents, races, paid calls, shared seconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from toys import Script, ToyJudge, c, plan, run

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    Arm,
    CacheState,
    Evidence,
    Knob,
    Measurement,
    ProcessPair,
    Proposal,
    Stage,
    Status,
    Verdict,
    knob_candidate,
)
from kernelwright.search.campaign import (
    Extension,
    JudgeError,
)
from kernelwright.search.drivers.random import Random
from kernelwright.search.executors import make_executor
from kernelwright.search.plan import Baseline, Budget, ConfirmPlan, StopRules
from kernelwright.search.store import MemoryStore
from kernelwright.search.summary import best_trial, summarise
from kernelwright.search.trial import Event


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

    def __init__(self, confirmation, claim=Status.TIE):
        super().__init__()
        self.now, self.confirmation, self.claim = 0.0, confirmation, claim

    def estimate_s(self, request):
        return self.confirmation

    def judge(self, request):
        took = {Stage.SCREEN: 1.0, Stage.RACE: 0.0, Stage.CONFIRM: self.confirmation}
        self.now += took[request.stage]
        found = super().judge(request)
        return replace(found, status=self.claim) if request.stage is Stage.CONFIRM else found


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
    assert sum(t.status is Status.TIE for t in store.trials()) == confirmed
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
