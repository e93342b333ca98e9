"""The finals: a race on fresh samples, then claims at one error rate until one wins."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from toys import BASE, Script, ToyJudge, c, plan, run

from kernelwright.env.types import (
    Arm,
    CacheState,
    Evidence,
    Measurement,
    ProcessPair,
    Role,
    Stage,
    Status,
    Terms,
    Unpaired,
    Verdict,
)
from kernelwright.evaluators.statistics import claimed
from kernelwright.search.campaign import Extension, JudgeError
from kernelwright.search.finals import spend
from kernelwright.search.plan import Budget, ConfirmPlan
from kernelwright.search.store import MemoryStore, SqliteStore
from kernelwright.search.summary import best_trial, summarise
from kernelwright.search.trial import Trial

ORDER = [3, 7, 12, 19, 11, 5, 18, 16, 4, 10]


class Varies(ToyJudge):
    """Measures 100/a ns in pairs, and errs by a percent as a function of the request."""

    deterministic = False
    evidence = Evidence.MEASURED
    repeats = True

    def __init__(self, noise=0.01, unstable=(), broken=(), dies_after=None):
        super().__init__()
        self.noise, self.unstable, self.broken = noise, unstable, broken
        self.dies_after, self.requests = dies_after, []

    def judge(self, request):
        if self.dies_after is not None and len(self.requests) >= self.dies_after:
            raise OSError("the end")
        self.requests.append(request)
        number, role = request.candidate.knobs["a"], request.against[0].role
        reference = request.against[0].candidate.knobs["a"]
        if role == "incumbent" and reference in self.broken and request.stage is Stage.RACE:
            return Verdict(Status.BROKEN, "reference_failed", evidence="it was wrong")
        seed = [request.trial, request.first_repeat, list(Stage).index(request.stage)]
        rng = np.random.default_rng(seed)
        shape = (request.process_pairs, request.pairs, 2)
        times = np.array([100 / number, 100 / reference]) * np.exp(
            self.noise * rng.standard_normal(shape)
        )
        pairs = tuple(
            ProcessPair(Arm.CANDIDATE, tuple(Arm), tuple(map(tuple, each)))
            for each in times.tolist()
        )
        key = request.against[0].candidate.key
        measurement = Measurement(
            "w", role, key, pairs, "toy", CacheState.COLD, Evidence.MEASURED, "toy"
        )
        passed = Verdict(Status.OK, measurements=(measurement,))
        if request.stage is not Stage.CONFIRM:
            return passed
        if number in self.unstable:
            return Verdict(Status.UNSTABLE, "noisy_host", evidence="too noisy")
        return claimed(passed, Terms(request.alpha))


def contest(judge=None, order=ORDER, **fields):
    judge = judge or Varies()
    asks = [order[:5], order[5:]]
    fields = {"batch": 5, "screen_pairs": 5, "race_rounds": 3, **fields}
    return judge, plan(lambda: Script([[c(a) for a in ask] for ask in asks]), judge, **fields)


def test_the_winner_is_chosen_by_the_race_and_confirmed_on_samples_that_come_after():
    judge, the_plan = contest()
    _, store = run(the_plan)
    best = best_trial(store.trials())
    assert (best.candidate.knobs["a"], best.status) == (19, Status.WIN)
    stages = [request.stage for request in judge.requests]
    assert stages[-1] is Stage.CONFIRM
    assert stages.count(Stage.CONFIRM) == 1
    (raced,) = [e for e in store.events() if e.kind == "raced"]
    assert raced.data["ranking"][0] == best.number
    rounds = [v for stage, v in best.verdicts if stage is Stage.RACE]
    assert len(rounds) == 1 + 3  # its height as an incumbent, and the race
    # No sample is drawn twice.
    drawn = [(r.candidate.key, r.stage, r.first_repeat) for r in judge.requests]
    heights = [r for r in judge.requests if r.stage is Stage.RACE and r.first_repeat == 0]
    assert len(set(drawn)) == len(drawn)
    assert heights


def test_the_next_finalist_is_confirmed_only_if_the_one_before_did_not_win():
    judge, the_plan = contest(Varies(noise=0.2), order=list(range(10, 0, -1)))
    _, store = run(the_plan)
    confirmed = [r for r in judge.requests if r.stage is Stage.CONFIRM]
    assert [r.alpha for r in confirmed] == [spend(0.01, place) for place in range(3)]
    claims = [t.verdict(Stage.CONFIRM) for t in store.trials() if t.verdict(Stage.CONFIRM)]
    assert {v.status for v in claims} <= {Status.TIE, Status.LOSS}


def test_a_search_never_spends_more_than_its_error_rate():
    assert sum(spend(0.01, place) for place in range(200)) <= 0.01
    assert spend(0.01, 0) == pytest.approx(0.0075)
    assert spend(0.01, 10**6) > 0


class Fails(Varies):
    """Some candidates crash in the race, once."""

    def __init__(self, crash, **options):
        super().__init__(**options)
        self.crash = list(crash)

    def judge(self, request):
        number = request.candidate.knobs["a"]
        if request.stage is Stage.RACE and request.first_repeat and number in self.crash:
            self.requests.append(request)
            return Verdict(Status.CRASHED, "segmentation_fault", evidence="it crashed")
        return super().judge(request)


def test_what_fails_in_a_race_is_out_for_good_however_often_it_starts_again(tmp_path):
    ended, asked = [], 0
    for dies_after in (0, *range(12, 30, 2)):
        with SqliteStore(tmp_path / f"{dies_after}.sqlite") as store:
            if 0 < dies_after < asked:
                _, first = contest(Fails([18], broken=(19,), dies_after=dies_after))
                with pytest.raises(JudgeError, match="the end"):
                    run(first, store)
            judge, the_plan = contest(Fails([18], broken=(19,)))
            run(the_plan, store)
            ended.append(store.trials())
            asked = asked or len(judge.requests)
        best = best_trial(ended[-1])
        assert (best.candidate.knobs["a"], best.status) == (16, Status.WIN)
        assert ended[-1][ORDER.index(18)].status is Status.CRASHED
    assert asked > 16
    assert all(trials == ended[0] for trials in ended)


def test_a_win_that_is_wrong_later_is_none():
    _, the_plan = contest(budget=Budget(trials=5))
    store = MemoryStore()
    run(the_plan, store)
    winner = best_trial(store.trials()).number
    store.record(verdicts=[(winner, Stage.RACE, Verdict(Status.WRONG, "wrong_value"))])
    trial = store.trials()[winner]
    assert trial.verdict(Stage.CONFIRM).status is Status.WIN
    assert trial.status is Status.WRONG
    assert best_trial(store.trials()).number != winner


def test_on_a_calmer_host_the_same_run_goes_on_and_claims():
    judge, the_plan = contest(Varies(unstable=range(99)))
    store = MemoryStore()
    run(the_plan, store)
    assert not summarise(store)["finished"]
    calm, again = contest()
    run(again, store)
    assert [r.stage for r in calm.requests] == [Stage.CONFIRM]
    assert calm.requests[0].alpha == spend(0.01, 0)  # nothing had been looked at
    best = best_trial(store.trials())
    assert (best.candidate.knobs["a"], best.status) == (19, Status.WIN)
    assert summarise(store)["finished"]
    assert judge.requests[-1].stage is Stage.CONFIRM


def test_a_race_of_finals_is_no_height_later():
    _, the_plan = contest(order=[15, 9, 8, 7, 6, 20, 5, 4, 3, 2], budget=Budget(trials=5))
    store = MemoryStore()
    run(the_plan, store)
    second, more = contest(order=[15, 9, 8, 7, 6, 20, 5, 4, 3, 2], budget=Budget(trials=10))
    run(more, store, extension=Extension({"trials": 10}, {}))
    assert best_trial(store.trials()).candidate.knobs["a"] == 20
    heights = [
        v
        for t in store.trials()
        for stage, v in t.verdicts
        if stage is Stage.RACE and v.measurements[0].role == "baseline"
    ]
    assert len(heights) == 2  # of 15, and of 20
    assert second.requests


def test_where_nothing_won_the_fastest_is_the_best_whatever_could_be_claimed_of_it():
    def confirmed(number, status, ratio):
        screen = Verdict(Status.OK, measurements=(unpaired(ratio),))
        claim = Verdict(status, measurements=(unpaired(ratio),), terms=Terms(0.005))
        verdicts = ((Stage.SCREEN, screen), (Stage.CONFIRM, claim))
        return Trial(number, c(number), verdicts, math.log2(ratio), "p", (), 0, 1)

    trials = [confirmed(1, Status.LOSS, 0.53), confirmed(4, Status.TIE, 0.25)]
    assert best_trial(trials).number == 1
    assert best_trial([*trials, confirmed(5, Status.TIE, 0.99)]).number == 5
    assert best_trial([*trials, confirmed(6, Status.WIN, 1.01)]).number == 6


def unpaired(ratio):
    times = tuple(10 / ratio * (1 + 0.001 * i) for i in range(5))
    samples = Unpaired(times, tuple(10 * (1 + 0.001 * i) for i in range(5)))
    named = ("w", Role.BASELINE, "b", samples, "clock", CacheState.COLD, Evidence.RECORDED, "m")
    return Measurement(*named)


def test_a_host_that_is_too_noisy_ends_the_claims_and_leaves_the_best():
    judge, the_plan = contest(Varies(unstable=(19, 18, 16)))
    _, store = run(the_plan)
    assert [r.stage for r in judge.requests].count(Stage.CONFIRM) == 1
    best = best_trial(store.trials())
    assert (best.candidate.knobs["a"], best.status) == (19, Status.UNSTABLE)
    entry = summarise(store)["best"]
    assert (entry["status"], entry["ci_low"]) == ("unstable", None)
    assert entry["speedup"] == pytest.approx(1.9, rel=0.05)


def test_an_incumbent_that_fails_in_the_race_gives_way_to_the_baseline():
    judge, the_plan = contest(Varies(broken=(19,)))
    _, store = run(the_plan)
    (fallen,) = [e for e in store.events() if e.kind == "dethroned_in_race"]
    assert fallen.data["key"] == c(19).key
    best = best_trial(store.trials())
    assert (best.candidate.knobs["a"], best.status) == (18, Status.WIN)
    # It is not raced again, and the others are raced against the baseline.
    after = judge.requests[-4:]
    assert all(r.against[0].candidate == BASE for r in after)
    assert store.trials()[ORDER.index(19)].verdict(Stage.CONFIRM) is None


@pytest.mark.parametrize("broken", [(), (19,)])
@pytest.mark.parametrize("dies_after", range(8, 34, 3))
def test_a_race_that_is_interrupted_goes_on_where_it_was(tmp_path, dies_after, broken):
    judge, the_plan = contest(Varies(broken=broken))
    _, whole = run(the_plan)
    with SqliteStore(tmp_path / "run.sqlite") as store:
        first, its_plan = contest(Varies(broken=broken, dies_after=dies_after))
        if dies_after < len(judge.requests):
            with pytest.raises(JudgeError, match="the end"):
                run(its_plan, store)
        second, its_plan = contest(Varies(broken=broken))
        run(its_plan, store)
        kept = store.trials()
        assert kept == whole.trials()
        assert [e.kind for e in store.events()] == [e.kind for e in whole.events()]
    # What broke as a reference has no verdict of its own, so it may be asked about once more.
    asked = len(first.requests) + len(second.requests)
    assert asked - len(judge.requests) in (0, 1 if broken else 0)


def test_a_larger_budget_races_again_and_spends_what_is_left():
    _, the_plan = contest(budget=Budget(trials=5))
    store = MemoryStore()
    run(the_plan, store)
    assert best_trial(store.trials()).candidate.knobs["a"] == 19
    first = best_trial(store.trials()).verdict(Stage.CONFIRM).terms.alpha
    order = [*ORDER[:5], 20, 18, 16, 4, 10]
    second, more = contest(order=order, budget=Budget(trials=10))
    run(more, store, extension=Extension({"trials": 10}, {}))
    best = best_trial(store.trials())
    assert best.candidate.knobs["a"] == 20
    assert best.verdict(Stage.CONFIRM).terms.alpha < first
    assert [r.stage for r in second.requests].count(Stage.CONFIRM) == 1


def test_without_rounds_or_where_nothing_varies_there_is_no_race():
    judge, the_plan = contest(race_rounds=0)
    _, store = run(the_plan)
    assert [r.first_repeat for r in judge.requests if r.stage is Stage.RACE] == [0] * len(
        [t for t in store.trials() if t.verdict(Stage.RACE)]
    )
    judge, the_plan = contest(confirm=ConfirmPlan(finalists=1))
    judge.repeats = False
    _, store = run(replace(the_plan, evaluator=judge))
    assert not [e for e in store.events() if e.kind == "raced"]


def test_a_race_ends_when_only_the_confirmation_has_time_left():
    class Slow(Varies):
        now = 0.0

        def estimate_s(self, request):
            return 5.0 if request.stage is Stage.CONFIRM else 1.0

        def judge(self, request):
            self.now += self.estimate_s(request)
            return super().judge(request)

    judge = Slow()
    limit = 10 + 3 * 5 + 8.0
    _, the_plan = contest(judge, budget=Budget(seconds=limit), race_rounds=9)
    _, store = run(the_plan, clock=lambda: judge.now)
    (raced,) = [e for e in store.events() if e.kind == "raced"]
    assert raced.data["reason"] == "seconds"
    assert judge.now <= limit
    assert best_trial(store.trials()).status is Status.WIN
