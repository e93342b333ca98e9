"""The early cut and the race on a purse: what they decide, and what they cost nobody."""

from __future__ import annotations

import math

import numpy as np
import pytest
from toys import c, plan, run

from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Reference, Request, Role, Stage
from kernelwright.evaluators.early import least, taken
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.evaluators.noise import Noise
from kernelwright.search.campaign import Extension
from kernelwright.search.cut import FEWEST, Pace
from kernelwright.search.drivers.random import Random
from kernelwright.search.halving import Halving
from kernelwright.search.plan import Baseline, Budget
from kernelwright.search.store import MemoryStore

PROBLEM = gemm_gpu()
JUDGE = GpuModel(PROBLEM, noise=Noise(lognormal=0.02))
SPACE = KnobSpace(PROBLEM.knobs, JUDGE.constraints, default=PROBLEM.unscheduled)
CUT = {"screen_pairs": 7, "screen_cut": 1.15, "race_extra": 0.25}


LEAST = least(7)


def ask(cut_ns, pairs=7):
    against = (Reference(Role.BASELINE, c(1)),)
    return Request(c(2), Stage.SCREEN, against, pairs=pairs, cut_ns=cut_ns)


@pytest.mark.parametrize(
    ("times", "cut_ns", "count"),
    [
        ([9.0] * 7, (), 7),
        ([9.0] * 7, (8.0, 8.0, 8.0, 8.0), LEAST),
        ([9.0] * 7, (8.0,), LEAST),
        ([9.0] * 7, (10.0, 10.0, 8.0, 8.0), 3),
        ([9.0] * 32, (8.0,) * 29, 3),
        # One fast call is enough to be measured to the end.
        ([7.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0], (8.0, 8.0, 8.0, 8.0), 7),
        ([8.0] * 7, (8.0, 8.0, 8.0, 8.0), 7),
    ],
)
def test_a_screen_ends_when_every_sample_was_above_the_limit(times, cut_ns, count):
    assert taken(ask(cut_ns, len(times)), times.__getitem__) == tuple(times[:count])


@pytest.mark.parametrize(("pairs", "count"), [(2, 1), (5, 1), (8, 2), (12, 3), (100, 3)])
def test_a_short_screen_goes_by_fewer_samples(pairs, count):
    assert least(pairs) == count


def test_nobody_is_cut_before_enough_were_sampled_to_the_end():
    pace = Pace(1.15, 7)
    for _ in range(FEWEST - 1):
        pace.learn([10.0] * 7)
        pace.learn([30.0] * 3)
    assert pace.limits_ns == ()
    pace.learn([10.0] * 7)
    assert pace.limits_ns == pytest.approx((11.5,) * (7 - LEAST))


def test_slow_first_calls_and_scatter_raise_the_limits():
    pace = Pace(1.15, 7)
    for _ in range(FEWEST):
        pace.learn([40.0, 30.0, 20.0, 10.0, 10.0, 10.0, 10.0])
    assert pace.limits_ns == pytest.approx((46.0, 34.5, 23.0, 11.5, 11.5, 11.5))


def test_what_was_cut_is_never_the_best_so_far():
    pace = Pace(1.15, 7)
    for _ in range(FEWEST):
        pace.learn([10.0] * 7)
    pace.learn([5.0] * 3)
    assert pace.limits_ns[0] == pytest.approx(11.5)


@pytest.mark.parametrize("spread", [0.01, 0.05])
def test_candidates_within_the_margin_are_hardly_ever_cut(spread):
    rng, cut = np.random.default_rng(0), 0
    for _ in range(100):
        pace = Pace(1.15, 7)
        for _ in range(20):
            pace.learn((10 * np.exp(spread * rng.standard_normal(7))).tolist())
        times = (10 * np.exp(spread * rng.standard_normal(7))).tolist()
        cut += len(taken(ask(pace.limits_ns), times.__getitem__)) < 7
    assert cut == 0


@pytest.mark.parametrize(("margin", "pairs"), [(1.0, 7), (math.inf, 7), (1.15, 1)])
def test_a_pace_that_could_cut_nothing_or_anything_is_refused(margin, pairs):
    with pytest.raises(ValueError, match=r"margin|pairs"):
        Pace(margin, pairs)
    with pytest.raises(ValueError, match="at least one time"):
        Pace(1.15, 7).learn([])


# The race on a purse


def halved(race, truths, rng, spread=0.02):
    spent = 0
    while (heat := race.heat()) is not None:
        spent += heat.pairs * len(heat.entrants)
        race.tell(
            {
                e: (truths[e] + spread * rng.standard_normal(heat.pairs)).tolist()
                for e in heat.entrants
            }
        )
    return spent


def test_it_keeps_to_its_purse_and_finds_what_one_sample_does_not():
    found = picked = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truths = np.append(-0.02 * np.ones(255), 0.02)
        first = truths + 0.02 * rng.standard_normal(256)
        race = Halving([[log] for log in first], 64)
        assert 56 <= halved(race, truths, rng) <= 64
        found += race.ranking[0] == 255
        picked += int(np.argmax(first)) == 255
        assert sorted(race.ranking) == list(range(256))
    assert found >= picked + 8


def test_an_entrant_that_fails_is_out_and_a_small_purse_ends_it():
    race = Halving([[0.2], [0.1], [0.0]], 12)
    race.tell({e: [] if e == 0 else [0.1] * 2 for e in race.heat().entrants})
    assert 0 not in race.ranking
    assert Halving([[0.0], [1.0]], 3).heat() is None
    assert Halving([[0.0], [1.0]], 3).ranking == (1, 0)
    assert Halving([], 9).heat() is None
    for wrong in (lambda: Halving([[]], 4), lambda: Halving([[0.0]], -1)):
        with pytest.raises(ValueError, match="expected at least"):
            wrong()


# In campaigns


def searched(trials=48, store=None, **fields):
    the_plan = plan(
        lambda: Random(SPACE, seed=3, batch=5),
        JUDGE,
        space=SPACE,
        baseline=Baseline("unscheduled", SPACE.default),
        budget=Budget(trials=trials),
        batch=5,
        **fields,
    )
    return run(the_plan, store)[1]


def samples(trial):
    verdict = trial.verdicts[0][1]
    return verdict.measurements[0].samples.candidate_ns if verdict.measurements else ()


def test_screens_of_clearly_slow_candidates_end_early():
    cut, full = searched(**CUT), searched(screen_pairs=7)
    counts = {len(samples(t)) for t in cut.trials() if samples(t)}
    assert min(counts) == LEAST
    assert max(counts) == 7
    spent, needed = (sum(map(sum, map(samples, s.trials()))) for s in (cut, full))
    assert spent < 0.7 * needed
    for early, whole in zip(cut.trials(), full.trials(), strict=True):
        assert samples(early) == samples(whole)[: len(samples(early))]
    times = JUDGE.true_ns([t.candidate for t in cut.trials()])
    assert len(samples(cut.trials()[int(np.nanargmin(times))])) == 7


def test_the_race_keeps_to_its_share_and_draws_fresh_samples():
    store = searched(**CUT | {"screen_pairs": 4})
    screens = {t.number: samples(t) for t in store.trials()}
    raced = [
        (t.number, [pair for p in v.measurements[0].samples for pair in p.samples_ns])
        for t in store.trials()
        for stage, v in t.verdicts
        if stage is Stage.RACE
    ]
    assert 0 < sum(len(pairs) for _, pairs in raced) <= 0.25 * sum(map(len, screens.values()))
    assert not any(c in screens[number] for number, pairs in raced for c, _ in pairs)


@pytest.mark.parametrize("first", [1, 17, 33])
def test_a_search_that_was_extended_cuts_the_same_samples(first):
    whole, store = searched(**CUT), MemoryStore()
    searched(first, store, **CUT)
    the_plan = plan(
        lambda: Random(SPACE, seed=3, batch=5),
        JUDGE,
        space=SPACE,
        baseline=Baseline("unscheduled", SPACE.default),
        budget=Budget(trials=48),
        batch=5,
        **CUT,
    )
    run(the_plan, store, extension=Extension({"trials": 48}, {}))
    assert [samples(t) for t in store.trials()] == [samples(t) for t in whole.trials()]


def test_without_a_cut_nothing_changes():
    one = searched()
    assert {len(samples(t)) for t in one.trials()} <= {0, 1}
    first = [samples(t)[:1] for t in searched(screen_pairs=7).trials()]
    assert [samples(t) for t in one.trials()] == first
