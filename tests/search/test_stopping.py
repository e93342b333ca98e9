"""Goals: when a search is done, and that luck does not end it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toys import BASE, Script, ToyJudge, c, plan, run

from kernelwright.configs.api import plan_of
from kernelwright.env.types import (
    Arm,
    CacheState,
    Evidence,
    Measurement,
    ProcessPair,
    Role,
    Stage,
    Status,
    Unpaired,
    Verdict,
)
from kernelwright.search.answers import roofline_share
from kernelwright.search.campaign import Campaign
from kernelwright.search.plan import Budget, StopRules
from kernelwright.search.stopping import FIRST_LOOK, LOOK_PAIRS, LOOKED
from kernelwright.search.store import MemoryStore
from kernelwright.search.summary import best_trial

ORDER = [[c(5)], [c(12)], [c(20)], [c(9)]]


class Lucky(ToyJudge):
    """A judge whose times vary: the screen of a = 12 is lucky, later looks are true."""

    repeats = True

    def __init__(self, later=None):
        super().__init__()
        self.later, self.looks = later, []

    def judge(self, request):
        a = request.candidate.knobs["a"]
        if request.stage is not Stage.SCREEN and self.later is not None:
            return self.later
        found = super().judge(request)
        if request.first_repeat == FIRST_LOOK:
            self.looks.append((a, request.pairs))
        if a != 12 or request.stage is not Stage.SCREEN:
            return found
        (m,) = found.measurements
        lucky = replace(m, samples=Unpaired((100 / 24,), (10.0,)))
        return replace(found, measurements=(lucky,))


@pytest.mark.parametrize(
    ("rules", "count", "says"),
    [
        (StopRules(speedup=1.19), 2, "the best is at 1.200x, 1.19x is enough"),
        (StopRules(speedup=1.5), 3, "the best is at 2.000x, 1.5x is enough"),
        (StopRules(time_us=0.006), 3, "the best takes 0.005 us, 0.006 us are enough"),
    ],
)
def test_a_target_ends_a_search(rules, count, says):
    stop, store = run(plan(lambda: Script(ORDER), stop=rules))
    assert (stop.rule, stop.reason, len(store.trials())) == ("target", says, count)
    # On exact samples there is nothing to look at again.
    assert not [e for e in store.events() if e.kind == LOOKED]
    assert store.events()[0].data == {"rule": "target", "reason": says}


def test_a_target_that_is_not_reached_ends_nothing():
    stop, store = run(plan(lambda: Script(ORDER), stop=StopRules(speedup=2.5)))
    assert (stop.rule, len(store.trials())) == ("driver", 4)


@pytest.mark.parametrize(
    "rules", [StopRules(roofline=0.75), StopRules(speedup=1.8), StopRules(time_us=0.0052)]
)
def test_one_lucky_sample_does_not_end_a_search(rules):
    judge = Lucky()
    stop, store = run(plan(lambda: Script(ORDER), judge, stop=rules))
    assert len(store.trials()) == 3
    assert stop.rule in ("roofline", "target")
    assert judge.looks == [(12, LOOK_PAIRS), (20, LOOK_PAIRS)]
    looks = [e for e in store.events() if e.kind == LOOKED]
    assert [(e.slot, e.data["met"] is None) for e in looks] == [(1, True), (2, False)]
    assert looks[0].data["times_ns"] == {"w": [100 / 12]}


def test_a_look_is_remembered_by_whoever_goes_on():
    rules = StopRules(speedup=1.8)
    whole = run(plan(lambda: Script(ORDER), Lucky(), stop=rules))[1]
    store, judge = MemoryStore(), Lucky()
    budget = Budget(trials=2)
    run(plan(lambda: Script(ORDER), judge, stop=rules, budget=budget), store)
    assert judge.looks == []
    fresh = Lucky()
    run(plan(lambda: Script(ORDER), fresh, stop=rules), store)
    assert fresh.looks == [(12, LOOK_PAIRS), (20, LOOK_PAIRS)]
    again = Lucky()
    stop, _ = run(plan(lambda: Script(ORDER), again, stop=rules), store)
    assert (stop.rule, again.looks, again.asked) == ("target", [], [])
    looks = [[e for e in s.events() if e.kind == LOOKED] for s in (store, whole)]
    assert looks[0] == looks[1]


def test_who_fails_when_it_is_looked_at_is_no_finalist():
    judge = Lucky(later=Verdict(Status.WRONG, "wrong_value"))
    store = run(plan(lambda: Script([[c(12)]]), judge, stop=StopRules(speedup=1.8)))[1]
    (trial,) = store.trials()
    assert trial.status is Status.WRONG
    assert best_trial(store.trials()) is None
    again = Lucky(later=Verdict(Status.WRONG, "wrong_value"))
    run(plan(lambda: Script([[c(12)]]), again, stop=StopRules(speedup=1.8)), store)
    assert again.asked == []


def test_a_noisy_host_says_nothing_against_who_is_looked_at():
    judge = Lucky(later=Verdict(Status.UNSTABLE, "noisy_host"))
    asks = [[c(12)], [c(5)]]
    stop, store = run(plan(lambda: Script(asks), judge, stop=StopRules(speedup=1.8)))
    assert stop.rule == "driver"
    (look,) = [e for e in store.events() if e.kind == LOOKED]
    assert look.data == {"met": None, "failed": False, "code": "noisy_host"}
    assert store.trials()[0].verdicts[0][1].status is Status.OK


def paired(role, time):
    pair = ProcessPair(Arm.CANDIDATE, (Arm.CANDIDATE, Arm.REFERENCE), ((time, 8.0),) * 3)
    state, evidence = CacheState.COLD, Evidence.MEASURED
    return Measurement("w", role, BASE.key, (pair,), "clock", state, evidence, "m")


def test_the_share_of_the_roofline_needs_no_baseline():
    # Once there is an incumbent, screens are paired with that.
    verdict = Verdict(
        Status.OK, measurements=(paired(Role.INCUMBENT, 5.0),), floors_ns=(("w", 4.0),)
    )
    assert roofline_share(verdict) == pytest.approx(0.8)
    assert roofline_share(verdict, (("w", 2.5),)) == pytest.approx(0.5)
    assert roofline_share(replace(verdict, floors_ns=())) == 0.0


def stops(config, rules, seeds):
    found = []
    for seed in range(seeds):
        built = plan_of(config, [f"seed={seed}", "budget.trials=96"])
        store = MemoryStore()
        stop = Campaign(replace(built.plan, stop=rules), store).run()
        looks = sum(event.kind == LOOKED for event in store.events())
        found.append((stop.rule, looks))
    return found


def test_noise_alone_does_not_reach_beyond_what_there_is():
    # The best is at 0.907, and samples vary by 2%.
    found = stops("gemm_model_evolution", StopRules(roofline=0.93), 4)
    assert sum(looks for _, looks in found) > 0
    assert sum(rule == "roofline" for rule, _ in found) <= 1
    near = stops("gemm_model_evolution", StopRules(roofline=0.83), 4)
    assert sum(rule == "roofline" for rule, _ in near) >= 3


def test_a_look_at_a_recording_draws_among_its_samples():
    built = plan_of("gemm_h200_evolution", ["stop.roofline=0.6"])
    stop, store = run(built.plan)
    assert stop.rule == "roofline"
    look = [e for e in store.events() if e.kind == LOOKED][-1]
    (times,) = look.data["times_ns"].values()
    entry = built.target.landscape.by_knobs[store.trials()[look.slot].candidate.payload]
    assert len(times) == LOOK_PAIRS
    assert 1 < len(set(times)) <= len(set(entry.samples_ns))
    assert set(times) <= set(entry.samples_ns)


SMALL = {
    "name": "small",
    "problem": {"name": "matmul", "m": 16, "n": 16, "k": 16},
    "space": {"kind": "schedule"},
    "driver": {"name": "random"},
    "budget": {"trials": 6},
    "batch": 1,
}


def test_a_search_on_the_cpu_model_is_done_at_its_first_exact_time():
    at = {"target": {"name": "cpu-model"}, "stop": {"roofline": 1e-6}}
    stop, store = run(plan_of({**SMALL, **at}).plan)
    assert (stop.rule, len(store.trials())) == ("roofline", 1)
    assert not [e for e in store.events() if e.kind == LOOKED]


@pytest.mark.cc
def test_a_search_on_the_cpu_is_done_after_another_look():
    judge = {"screen": {"pairs": 1}, "confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1}}
    at = {"target": {"name": "cpu", "flags": ["-O1"]}, "judge": judge, "stop": {"roofline": 1e-9}}
    stop, store = run(plan_of({**SMALL, **at}).plan)
    assert (stop.rule, len(store.trials())) == ("roofline", 1)
    (look,) = [e for e in store.events() if e.kind == LOOKED]
    assert len(look.data["times_ns"]["16x16x16"]) == LOOK_PAIRS
    assert 0 < look.data["share"] < 1
