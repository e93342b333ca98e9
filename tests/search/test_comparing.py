"""What is said of campaigns: no difference among equals, one where there is one, and its curves."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from contracts import judged

from kernelwright.env.types import knob_candidate
from kernelwright.search.comparing import checkpoints, compared
from kernelwright.search.counting import EVALUATIONS, Cost, Runs, Spending, costs_of
from kernelwright.search.efficiency import (
    ALPHA,
    Trajectory,
    holm,
    median_interval,
    median_ratio,
    ratio_of,
)
from kernelwright.search.plan import Budget
from kernelwright.search.spending import Spent
from kernelwright.search.trial import MODEL_CALL, event
from kernelwright.search.works import geometric_median, geometric_ratio

BUDGET = 64
NOTHING_SPENT = Spending((Spent(),) * BUDGET, Spent())
TRIALS = [Cost(EVALUATIONS, BUDGET)]


def reaching(*counts):
    """Runs that come to the best after so many evaluations, and have twice its time before."""
    lengths = [BUDGET if count is None else count - 1 for count in counts]
    return tuple(Trajectory((2.0,) * n + (1.0,) * (BUDGET - n), 1.0) for n in lengths)


def test_the_median_and_its_interval_count_who_did_not_get_there_as_infinite():
    row = compared([Runs("a", reaching(*[10] * 4, *[None] * 4))], [0.05], TRIALS)["campaigns"][0]
    assert row == {"config": "a", "runs": 8, "solved": 4, "median": None, "low": 10, "high": None}
    row = compared([Runs("a", reaching(10, 20, None))], [0.05], TRIALS)["campaigns"][0]
    assert (row["median"], row["low"], row["high"]) == (20, None, None)


def test_curves_say_what_a_user_has_after_so_many_evaluations():
    summary = compared([Runs("a", reaching(*[10] * 6, *[30] * 3))], [0.05], TRIALS)
    (curve,) = summary["curves"]
    assert [row["evaluations"] for row in curve["best_at"]] == [8, 16, 32, 64]
    assert [row["median"] for row in curve["best_at"]] == [2, 1, 1, 1]
    assert curve["best_at"][1]["high"] == 2
    steps = summary["targets"][0]["campaigns"][0]["reached"]
    assert [(s["evaluations"], s["share"]) for s in steps] == [(10, 6 / 9), (30, 1)]
    assert all(s["low"] < s["share"] <= s["high"] for s in steps)


def test_a_run_that_ended_early_keeps_what_it_had():
    run = Trajectory((math.inf, 3.0, 1.5), 1.0)
    assert [run.at(n) for n in (1, 2, 3, 100)] == [math.inf, 3, 1.5, 1.5]
    assert Trajectory((), 1.0).at(5) == math.inf
    assert (run.evaluations_to(0.5), run.evaluations_to(0.4)) == (3, None)


@pytest.mark.parametrize(
    ("budget", "points"),
    [
        (256, [8, 16, 32, 64, 128, 256]),
        (100, [8, 16, 32, 64, 100]),
        (5, [1, 2, 4, 5]),
        (8, [1, 2, 4, 8]),
        (1, [1]),
    ],
)
def test_checkpoints_double_and_end_at_the_budget(budget, points):
    assert checkpoints(budget) == points


def test_intervals_and_p_values_never_disagree():
    rng = np.random.default_rng(0)
    for shift in np.linspace(0, 40, 60):
        ratio = median_ratio(rng.integers(20, 80, 20) + shift, rng.integers(20, 80, 20))
        assert ratio.is_difference == (ratio.p < ALPHA)
        assert ratio.low <= ratio.high
    draws = np.concatenate([np.full(249, 0.5), np.full(9751, 2.0)])
    assert ratio_of(2.0, draws).is_difference
    draws[249] = 1.0
    assert not ratio_of(2.0, draws).is_difference
    assert ratio_of(2.0, draws).p == ALPHA


def test_holm_multiplies_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def claims_among_equals(campaigns, repeats):
    """The p-values of comparisons among equals, of 20 runs each."""
    rng = np.random.default_rng(3)
    for _ in range(repeats):
        counts = rng.geometric(0.03, (campaigns, 20)).clip(max=257).tolist()
        yield [median_ratio(a, b).p for a, b in itertools.combinations(counts, 2)]


def test_equals_differ_at_most_as_often_as_is_allowed():
    false = sum(p < ALPHA for (p,) in claims_among_equals(2, 60))
    # 5% of 60, and two standard deviations.
    assert false <= 6


def test_many_pairs_share_the_error_rate_of_one():
    found = list(claims_among_equals(5, 20))
    raw = sum(min(ps) < ALPHA for ps in found)
    kept = sum(min(holm(ps)) < ALPHA for ps in found)
    assert raw > kept
    assert kept <= 2


def test_a_claim_that_does_not_stand_among_many_says_so():
    rng = np.random.default_rng(6)
    several = [Runs(str(i), reaching(*rng.integers(5, 60, 20).tolist())) for i in range(5)]
    ahead = Runs("ahead", reaching(*rng.integers(5, 36, 20).tolist()))
    alone = compared([several[0], ahead], [0.05], TRIALS)["pairs"][0]
    among = compared([*several, ahead], [0.05], TRIALS)
    again = next(p for p in among["pairs"] if (p["left"], p["right"]) == ("0", "ahead"))
    assert among["correction"]["claims"] == 15
    assert (again["ratio"], again["p"]) == (alone["ratio"], alone["p"])
    assert alone["difference"]
    assert not again["difference"]
    said = "no difference in evaluations to within 5% between 0 and ahead that stands among 15"
    assert said in again["says"]


def test_one_that_needs_twice_as_many_is_found():
    rng = np.random.default_rng(2)
    fast = reaching(*rng.integers(8, 16, 20).tolist())
    slow = reaching(*rng.integers(24, 40, 20).tolist())
    runs = [Runs("fast", fast), Runs("slow", slow)]
    (pair,), (turned,) = (compared(two, [0.05], TRIALS)["pairs"] for two in (runs, runs[::-1]))
    assert pair["difference"]
    # However they stand in the pair, the ratio runs with the sentence.
    assert pair["ratio"] < 1 < turned["ratio"]
    said = "slow needs more evaluations to within 5% than fast: slow / fast = "
    for some in (pair, turned):
        assert some["says"].startswith(said)
        ratio, low, high = map(float, re.findall(r"\d+\.\d+", some["says"].removeprefix(said)))
        assert 1 < low <= ratio <= high


@pytest.mark.parametrize("solved", [0, 8, 12])
def test_who_gives_up_early_is_not_ahead(solved):
    """Runs of five evaluations, of which some get there, beside those that all do in 20."""
    there, not_there = Trajectory((2.0,) * 4 + (1.0,), 1.0), Trajectory((2.0,) * 5, 1.0)
    early = Runs("early", (there,) * solved + (not_there,) * (20 - solved))
    late = Runs("late", reaching(*range(15, 35)))
    summary = compared([early, late], [0.05], TRIALS)
    row, (pair,) = summary["targets"][0]["campaigns"][0], summary["pairs"]
    assert row["at_least"] == [5] * solved + [BUDGET + 1] * (20 - solved)
    # A median of eight or of twelve in twenty may lie on either side.
    expected = "early needs more evaluations to within 5% than late" if not solved else "no diff"
    assert pair["says"].startswith(expected)


def spending(*counts, calls=2, tokens=100):
    """Of runs that make so many calls of so many tokens for each evaluation."""
    trials = [judged(n, knob_candidate({"a": n}), 0.0, ask=n + 1) for n in range(BUDGET)]
    events = [
        replace(event(MODEL_CALL, trial.ask, slot), tokens=tokens)
        for trial in trials
        for slot in range(calls)
    ]
    return (Spending.of(trials, events),) * len(counts)


def test_calls_and_tokens_are_counted_to_the_target_where_a_model_is_asked():
    counts = [*range(10, 21), None]
    fast = Runs("fast", reaching(*counts), spending(*counts))
    slow = Runs("slow", reaching(*counts), spending(*counts, calls=6))
    costs = costs_of(Budget(trials=BUDGET, calls=400), [fast, slow])
    assert [(cost.name, cost.limit) for cost in costs] == [
        ("evaluations", 64),
        ("calls", 400),
        ("tokens", None),
    ]  # and no money, of which none was spent
    target = compared([fast, slow], [0.05], costs)["targets"][0]
    calls, tokens = target["costs"]
    assert calls["campaigns"][0]["calls"] == [*range(20, 41, 2), None]
    assert calls["campaigns"][1]["calls"][:2] == [60, 66]
    assert [row["at_least"][-1] for row in calls["campaigns"]] == [401, 401]
    assert calls["campaigns"][0]["solved"] == 11
    said = "slow needs more calls to within 5% than fast: slow / fast = 3.00"
    assert calls["pairs"][0]["says"].startswith(said)
    assert calls["pairs"][0]["says"].endswith("unsolved runs counted as one more than the budget")
    # Of tokens it is not known how many there would have been.
    assert tokens["pairs"][0]["difference"] is None
    assert "2 unsolved runs, and no budget of tokens" in tokens["pairs"][0]["says"]
    # The claims of all costs share one error rate.
    assert target["pairs"][0]["difference"] is False


def test_calls_of_an_agent_that_counts_its_own_asks_belong_to_those_of_the_campaign():
    """One that asks its model in the campaign's asks 1 and 4, which are its first and second."""
    trials = [judged(n, knob_candidate({"a": n}), 0.0, ask=n + 1) for n in range(5)]
    made = [(1, 0, trials[0]), (2, 0, None), (2, 1, trials[3])]
    events = []
    for ask, slot, trial in made:
        events.append(event(MODEL_CALL, ask, slot))
        if trial is not None:
            events.append(event("proposed", ask, slot, key=trial.candidate.key))
    after = Spending.of(trials, events).after
    assert [spent.calls for spent in after] == [1, 1, 1, 3, 3]


def test_who_asks_no_model_is_compared_by_evaluations_alone():
    counts = [10] * 6
    free = Runs("free", reaching(*counts), (NOTHING_SPENT,) * 6)
    paid = Runs("paid", reaching(*counts), spending(*counts))
    costs = costs_of(Budget(trials=BUDGET), [free, paid])
    target = compared([free, paid], [0.05], costs)["targets"][0]
    assert target["pairs"][0]["difference"] is False
    assert "a run came there without calls" in target["costs"][0]["pairs"][0]["says"]


def test_money_has_no_next_step():
    assert Cost("usd", 2.0).beyond(2.1) == 2.1
    assert Cost("usd", 2.0).beyond(1.0) == 2.0
    assert Cost("calls", 10).beyond(4) == 11
    assert Cost("tokens").beyond(40) == 41


def test_works_are_averaged_by_their_logarithms():
    rng = np.random.default_rng(4)
    easy, hard = rng.integers(5, 15, 20).tolist(), rng.integers(80, 160, 20).tolist()
    mean = geometric_median([easy, hard])
    middles = [median_interval(some).value for some in (easy, hard)]
    assert mean.value == pytest.approx(math.sqrt(math.prod(middles)))
    assert mean.low < mean.value < mean.high
    assert geometric_median([easy, [None] * 20]).value == math.inf
    twice = [[2 * n for n in some] for some in (easy, hard)]
    ratio = geometric_ratio(twice, [easy, hard])
    assert ratio.value == pytest.approx(2)
    assert ratio.is_difference
    assert not geometric_ratio([easy, hard], [easy, hard]).is_difference


@pytest.mark.parametrize("works", [[], [[1, 2], []]])
def test_no_work_has_no_mean(works):
    with pytest.raises(ValueError, match="at least one run"):
        geometric_median(works)
    with pytest.raises(ValueError, match="the same works"):
        geometric_ratio([[1]], [])
