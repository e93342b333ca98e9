from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contracts import judged
from toys import BASE, SPACE, Script, ToyJudge, c, plan, run

from kernelwright.env.objective import log2_speedup
from kernelwright.env.types import (
    Candidate,
    Stage,
    Status,
)
from kernelwright.search.answers import roofline_share
from kernelwright.search.campaign import (
    BARREN_ASKS,
    DriverError,
    Extension,
    JudgeError,
    ReplayError,
)
from kernelwright.search.drivers.random import Random
from kernelwright.search.executors import Serial, Threads, make_executor
from kernelwright.search.plan import Baseline, Budget, ConfirmPlan, StopRules
from kernelwright.search.store import MemoryStore, SqliteStore, StoreError
from kernelwright.search.summary import best_trial, summarise


def test_spends_its_budget_and_confirms_the_best():
    stop, store = run(plan())
    trials = store.trials()
    assert (stop.rule, len(trials)) == ("trials", 20)
    best = sorted((t for t in trials if t.objective is not None), key=lambda t: -t.objective)[:3]
    # A win ends it: the others would only spend more of the error rate.
    assert [t.number for t in trials if t.status is Status.WIN] == [best[0].number]
    assert [e.kind for e in store.events()] == ["stopped", "finished"]
    assert best_trial(trials).number == best[0].number


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
    assert stop.reason == "4 trials without a better one, 3 are enough"
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
    assert sum(t.status is Status.WIN for t in store.trials()) == 1
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
    assert [p.phase for p in seen[-2:]] == ["search", "confirm"]
    assert sum(seen[-1].by_status.values()) == 20


def test_a_summary_counts_each_trial_once_by_its_latest_verdict():
    _, store = run(plan())
    summary = summarise(store)
    assert sum(summary["by_status"].values()) == summary["trials"] == 20
    assert summary["by_status"]["win"] == 1
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


def test_a_full_disk_is_not_the_driver_s_fault():
    class Paying(Script):
        def ask(self, n):
            raise StoreError("run.sqlite: could not write: database or disk is full")

    with pytest.raises(StoreError, match="disk is full"):
        run(plan(lambda: Paying([])))


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
