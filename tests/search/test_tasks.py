"""Schedulers, seeds, and campaigns of tasks over toy judges."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toys import BASE, SPACE, Script, ToyJudge, c
from toys import plan as toy_plan

from kernelwright.env.types import Status, Verdict
from kernelwright.search.campaign import Campaign, ReplayError
from kernelwright.search.drivers.random import Random
from kernelwright.search.plan import Baseline, Budget, StopRules
from kernelwright.search.seeded import Seed, Seeded
from kernelwright.search.store import MemoryStore
from kernelwright.search.tasks.campaign import Task, TaskCampaign
from kernelwright.search.tasks.decay import Decay
from kernelwright.search.tasks.gradient import Gradient
from kernelwright.search.tasks.round_robin import RoundRobin
from kernelwright.search.tasks.sharing import Top, seeds_for
from kernelwright.search.tasks.standing import FIRST, FLOOR, GAIN, Standing

SCHEDULERS = [RoundRobin, Decay, Gradient]


def standing(name="a", weight=1.0, curve=(), **fields):
    return Standing(name, weight, curve=tuple(curve), **fields)


def play(scheduler, tasks, count, times):
    """Turns in a row, each lowering a task's time as ``times`` says."""
    order = []
    for turn in range(count):
        choice = scheduler.choose(tasks)
        order.append((tasks[choice.task].name, choice.why))
        now = tasks[choice.task]
        tasks[choice.task] = now.after(turn, times(now))
    return order


# Schedulers


@pytest.mark.parametrize("make", SCHEDULERS)
def test_everybody_has_a_first_batch_before_anybody_has_a_second(make):
    tasks = [standing(n, w) for n, w in (("a", 1), ("b", 1000), ("c", 5))]
    order = play(make(), tasks, 3, lambda s: 100.0)
    assert sorted(name for name, _ in order) == ["a", "b", "c"]


@pytest.mark.parametrize("make", SCHEDULERS)
def test_nobody_is_chosen_who_has_stopped(make):
    scheduler = make()
    shut = standing("a", 9.0, [5.0], is_open=False)
    assert scheduler.choose([shut, standing("b", 1.0, [5.0])]).task == 1
    assert scheduler.choose([shut]) is None
    assert scheduler.choose([]) is None


def test_first_batches_begin_where_the_roofline_says_most():
    tasks = [standing("a", 1, floor_ns=10), standing("b", 3, floor_ns=10), standing("c", 1)]
    assert Gradient().choose(tasks).task == 1


def test_the_batch_goes_to_the_greatest_share():
    tasks = [standing("light", 1.0, [100.0]), standing("heavy", 10.0, [100.0])]
    choice = Gradient().choose(tasks)
    assert (choice.task, choice.why) == (1, GAIN)
    tasks = [standing("light", 10.0, [1.0]), standing("heavy", 1.0, [100.0])]
    assert Gradient().choose(tasks).task == 1


def test_the_batch_goes_to_the_steeper_curve_at_equal_shares():
    flat, steep = [50.0] * 4, [400.0, 200.0, 100.0, 50.0]
    far = [(0.0,), (50.0,)]
    tasks = [standing("flat", 1.0, flat, place=far[0]), standing("steep", 1.0, steep, place=far[1])]
    assert Gradient().choose(tasks).task == 1


def test_what_neighbours_gained_by_their_next_batch_counts():
    veteran = standing("veteran", 1e-9, [400.0, 399.0, 100.0, 100.0], place=(0.0,))
    near = standing("near", 1.0, [400.0, 399.0], place=(0.1,))
    far = standing("far", 1.0, [400.0, 399.0], place=(90.0,))
    assert Gradient().choose([far, near, veteran]).task == 1


def test_nothing_is_expected_below_the_roofline():
    done = standing("done", 100.0, [10.0], floor_ns=10.0)
    assert Gradient().choose([done, standing("b", 1.0, [10.0], floor_ns=1.0)]).task == 1


def test_the_floor_goes_round_and_is_no_more_than_its_part():
    tasks = [standing("heavy", 1e6), *(standing(f"light{i}", 1e-6) for i in range(4))]
    order = play(Gradient(floor=0.25), tasks, 5 + 80, lambda s: 100.0)
    later = order[5:]
    assert sum(why == FLOOR for _, why in later) == 20
    served = [name for name, why in later if why == FLOOR]
    assert all(served.count(f"light{i}") >= 4 for i in range(4))
    assert [why for _, why in order[:5]] == [FIRST] * 5


def test_a_task_without_a_time_gets_its_part_of_the_floor_and_no_more():
    tasks = [standing("broken", 1e9), *(standing(f"t{i}", 1.0) for i in range(3))]
    order = play(Gradient(floor=0.1), tasks, 84, lambda s: None if s.name == "broken" else 50.0)
    broken = sum(name == "broken" for name, _ in order)
    assert 2 <= broken <= 1 + 8


def test_only_tasks_without_a_time_are_served_in_turn():
    tasks = [standing("a"), standing("b")]
    order = play(Gradient(), tasks, 8, lambda s: None)
    assert [name for name, _ in order] == ["a", "b"] * 4


def test_decay_pushes_what_never_passed_to_the_end():
    # The published rule has no floor: this is what it is compared for.
    tasks = [standing("broken", 1e9), standing("b", 1.0)]
    order = play(Decay(), tasks, 40, lambda s: None if s.name == "broken" else 50.0)
    assert [name for name, _ in order].count("broken") == 1


# Seeds


def top(*values):
    out = Top()
    for number, a in enumerate(values):
        out.learn(100.0 / a, number, c(a))
    return out


def test_seeds_are_the_best_of_the_nearest_valid_and_new():
    tasks = [
        standing("me", place=(0.0,)),
        standing("near", 1.0, [1.0], place=(1.0,)),
        standing("far", 1.0, [1.0], place=(5.0,)),
        standing("none", place=(0.0,)),
    ]
    tops = [Top(), top(3, 20), top(7, 18), Top()]
    found = seeds_for(0, tasks, tops, set(), SPACE, 8)
    assert [(s.candidate.knobs["a"], s.source) for s in found] == [
        (20, "near"),
        (18, "far"),
        (3, "near"),
        (7, "far"),
    ]
    tried = {c(20).key}
    assert [s.candidate.knobs["a"] for s in seeds_for(0, tasks, tops, tried, SPACE, 4)] == [18, 3]
    outside = [Top(), top(99), top(7), Top()]
    assert [s.candidate.knobs["a"] for s in seeds_for(0, tasks, outside, set(), SPACE, 8)] == [7]
    tasks[0] = tasks[0].after(0, 50.0)
    assert [s.candidate.knobs["a"] for s in seeds_for(0, tasks, tops, set(), SPACE, 8)] == [20]


class Journal:
    def __init__(self):
        self.events = []

    def record(self, event):
        self.events.append(event)


def test_seeds_come_first_and_the_driver_is_told_of_all():
    script, journal = Script([[c(1), c(2)], [c(3)]]), Journal()
    waiting = [[Seed(c(9), "near"), Seed(c(1), "near")], []]
    driver = Seeded(script, journal, lambda n: waiting.pop(0))
    proposals = driver.ask(4)
    # What the driver proposes itself is no seed.
    assert [p.candidate for p in proposals] == [c(9), c(1), c(2)]
    assert proposals[0].proposer == "seeded by near"
    assert [e.data["seeds"] for e in journal.events] == [[{"key": c(9).key, "source": "near"}]]
    assert [p.candidate for p in driver.ask(4)] == [c(3)]
    assert len(journal.events) == 1


# Campaigns


class Fails(ToyJudge):
    """Nothing passes."""

    def judge(self, request):
        return Verdict(Status.BUILD_ERROR, "never")


def task(name, weight=1.0, seed=0, judge=None, store=None, **fields):
    the_plan = toy_plan(lambda: Random(SPACE, seed=seed, batch=4), judge, seed=seed, **fields)
    store = MemoryStore() if store is None else store
    return Task(name, weight, the_plan, store, (float(seed),), 1.0)


def run(tasks, trials=48, store=None, scheduler=None, **options):
    store = MemoryStore() if store is None else store
    scheduler = scheduler or Gradient()
    campaign = TaskCampaign(tasks, store, scheduler=scheduler, trials=trials, **options)
    return campaign.run(), store


def counts(tasks):
    return [len(t.store.trials()) for t in tasks]


def test_the_budget_is_spent_to_the_trial_and_every_task_is_confirmed():
    tasks = [task(f"t{i}", seed=i) for i in range(3)]
    stop, store = run(tasks, trials=46)
    assert (stop.rule, sum(counts(tasks))) == ("trials", 46)
    assert [e.kind for e in store.events()][-2:] == ["stopped", "finished"]
    for each in tasks:
        assert any(t.status is Status.WIN for t in each.store.trials())
        assert each.store.events()[-1].kind == "finished"


@pytest.mark.parametrize("make", SCHEDULERS)
def test_where_nothing_passes_the_others_are_tuned_all_the_same(make):
    tasks = [task("broken", 1e9, judge=Fails()), *(task(f"t{i}", seed=i) for i in range(3))]
    run(tasks, 64, scheduler=make())
    found = counts(tasks)
    assert sum(found) == 64
    assert 4 <= found[0] <= 16
    assert all(n >= 8 for n in found[1:])
    assert tasks[0].store.events()[-1].kind == "finished"


def test_a_task_that_stops_leaves_the_budget_to_the_others():
    short = replace(task("short", 1e6), plan=toy_plan(lambda: Script([[c(1)], [c(2)]])))
    tasks = [short, task("t", seed=1)]
    stop, _ = run(tasks, 30)
    assert counts(tasks) == [2, 28]
    assert stop.rule == "trials"
    stopped = [e for e in short.store.events() if e.kind == "stopped"]
    assert stopped[0].data["reason"] == "the script ends"


def test_when_all_have_stopped_it_ends():
    tasks = [
        replace(task("a"), plan=toy_plan(stop=StopRules(plateau=1), batch=1)),
        replace(task("b"), plan=toy_plan(lambda: Script([[c(1)]]))),
    ]
    stop, _ = run(tasks, 1000)
    assert stop.rule == "tasks"
    assert sum(counts(tasks)) < 100


def test_a_baseline_that_is_a_trial_counts():
    tasks = [task("a", baseline=Baseline("default", BASE, is_trial=True)), task("b", seed=1)]
    run(tasks, 20)
    assert sum(counts(tasks)) == 20
    assert tasks[0].store.trials()[0].candidate == BASE


def recorded(tasks, store):
    return [(s.trials(), s.events()) for s in [*(each.store for each in tasks), store]]


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("at", [1, 13, 30, 47, 49])
def test_interrupted_anywhere_it_ends_the_same(at, share):
    class Dies(ToyJudge):
        left = at

        def evaluate(self, requests):
            for _ in requests:
                Dies.left -= 1
                if Dies.left == 0:
                    raise KeyboardInterrupt
            return super().evaluate(requests)

    unbroken = [task(f"t{i}", seed=i, weight=i + 1) for i in range(3)]
    _, whole = run(unbroken, share=share)
    store = MemoryStore()
    tasks = [task(f"t{i}", seed=i, weight=i + 1, judge=Dies()) for i in range(3)]
    with pytest.raises(KeyboardInterrupt):
        run(tasks, store=store, share=share)
    again = [task(t.name, t.weight, i, store=t.store) for i, t in enumerate(tasks)]
    run(again, store=store, share=share)
    assert recorded(again, store) == recorded(unbroken, whole)


def test_what_is_stored_is_not_judged_again():
    tasks = [task(f"t{i}", seed=i) for i in range(3)]
    _, store = run(tasks)
    judges = [ToyJudge() for _ in tasks]
    again = [task(t.name, t.weight, i, judges[i], store=t.store) for i, t in enumerate(tasks)]
    run(again, store=store)
    assert [judge.asked for judge in judges] == [[], [], []]


def test_a_scheduler_that_changes_its_mind_is_noticed():
    tasks = [task(f"t{i}", seed=i, weight=10.0**i) for i in range(3)]
    _, store = run(tasks)
    again = [task(t.name, t.weight, i, store=t.store) for i, t in enumerate(tasks)]
    with pytest.raises(ReplayError, match="turn 0"):
        run(again, store=store, scheduler=RoundRobin())


def test_sharing_tells_what_did_well_next_door():
    first, second = task("first", seed=1), task("second", seed=2)
    run([first, second], 16, share=True)
    seeded = [e for e in second.store.events() if e.kind == "seeded"]
    best = max((t for t in first.store.trials()[:4]), key=lambda t: t.objective)
    assert seeded[0].data["seeds"][0] == {"key": best.candidate.key, "source": "first"}
    assert second.store.trials()[0].candidate == best.candidate
    alone = [task("first", seed=1), task("second", seed=2)]
    run(alone, 16)
    assert not any(e.kind == "seeded" for t in alone for e in t.store.events())


def test_a_campaign_goes_step_by_step_as_at_once():
    the_plan, store, whole = toy_plan(budget=Budget(trials=18)), MemoryStore(), MemoryStore()
    Campaign(the_plan, whole).run()
    campaign = Campaign(the_plan, store)
    campaign.start()
    stop = None
    while stop is None:
        stop = campaign.step()
    campaign.finish(stop)
    campaign.close()
    assert (store.trials(), store.events()) == (whole.trials(), whole.events())


def test_a_step_may_be_cut():
    campaign = Campaign(toy_plan(), MemoryStore())
    campaign.start()
    campaign.step(3)
    assert (campaign.count, campaign.room) == (3, 17)
