"""The laboratory of schedulers, on the six tasks of the small service."""

from __future__ import annotations

import pytest

from kernelwright.configs.load import read_document
from kernelwright.configs.tasks import read_tasks
from kernelwright.search.laboratory.tasks import Played, Truth, play, with_hopeless
from kernelwright.search.store import MemoryStore
from kernelwright.search.tasks.campaign import Task
from kernelwright.search.tasks.gradient import Gradient
from kernelwright.search.tasks.round_robin import RoundRobin


def tasks(seed):
    found = read_tasks(*read_document("serving_small", [f"seed={seed}"]))
    out = []
    for member in found.members:
        built = member.built
        floor_ns = built.target.floor_ns(built.problem.workloads[0])
        plan = built.plan
        out.append(Task(member.name, member.weight, plan, MemoryStore(), member.place, floor_ns))
    return out


@pytest.fixture(scope="module")
def truth():
    return Truth.of(tasks(0))


def test_the_truth_is_the_least_of_all(truth):
    assert all(0 < a <= b for a, b in zip(truth.best_ns, truth.baseline_ns, strict=True))
    # The lecture's decode product, whose optimum reads its operands once: 14.1 us.
    assert truth.best_ns[0] == pytest.approx(14_070, rel=0.01)


def test_a_play_is_scored_after_every_trial(truth):
    run = play(tasks(0), truth, scheduler=Gradient(), trials=48, share=True)
    assert len(run.excess) == sum(run.counts) == 48
    assert run.excess[0] > run.excess[-1] >= 1
    again = play(tasks(0), truth, scheduler=Gradient(), trials=48, share=True)
    assert again == run


def test_the_scheduler_is_no_worse_than_an_even_split(truth):
    # 10 seeds, half of the shipped budget; the full table is a benchmark.
    excess = {"gradient": 0.0, "even": 0.0}
    for seed in range(10):
        mine = tasks(seed)
        for name, scheduler in (("gradient", Gradient()), ("even", RoundRobin())):
            run = play(mine, truth, scheduler=scheduler, trials=60, share=True)
            excess[name] += run.excess[-1]
    assert excess["gradient"] <= excess["even"]


def test_a_hopeless_task_eats_little(truth):
    given = with_hopeless(tasks(0), 2)
    run = play(given, truth, scheduler=Gradient(), trials=96, share=True)
    assert 4 <= run.counts[2] <= 12
    assert min(run.counts) >= 4
    assert run.excess[-1] < 1.25


def test_trials_to_a_share_counts_from_where_it_stays():
    run = Played((2.0, 1.04, 1.2, 1.05, 1.01), (2, None), (3, 2))
    assert run.trials_to(0.05) == 4
    assert run.trials_to(0.001) is None
    assert run.trials_to(2.0) == 1
    assert run.trials_to_all is None
    assert Played((1.0,), (2, 7), (1, 0)).trials_to_all == 7
