"""Scores over many problems: who counts, who cannot gain, and how sure they are."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from kernelwright.env.types import Status
from kernelwright.evaluators.statistics import Interval, t_quantile
from kernelwright.search import scores
from kernelwright.search.scores import (
    Scored,
    fast,
    mean_of_claims,
    mean_of_confirmed,
    scored,
)

FAILED = Scored("failed")


def known(estimate, status=None, half=0.02, name="some", logs=()):
    """A confirmed problem with symmetric limits."""
    low, high = estimate * math.exp(-half), estimate * math.exp(half)
    if status is None:
        status = Status.WIN if low > 1 else Status.LOSS if high < 1 else Status.TIE
    return Scored(name, status, estimate, Interval(low, estimate, high), logs)


SOME = [known(1.5), known(1.2), known(1.01), known(0.8), FAILED, known(2.4), known(1.06)]


def test_only_claims_count():
    found = fast(SOME, 1.0)
    assert (found.claimed.count, found.claimed.total) == (4, 7)
    assert (found.estimated, found.unclaimed) == (5, 1)
    assert found.claimed.low < 4 / 7 < found.claimed.high
    # 1.06 is more than 1.05 by its estimate alone.
    found = fast(SOME, 1.05)
    assert (found.claimed.count, found.estimated) == (3, 4)
    assert fast(SOME, 2.0).claimed.count == 1
    # Correct, and at most twice as slow.
    assert fast(SOME, 0.5).claimed.count == 6


def test_what_is_not_a_win_is_not_fast_whatever_its_interval():
    # At the level of its terms this tie was none.
    tie = known(1.05, Status.TIE)
    assert tie.interval.low > 1
    assert fast([tie], 1.0).claimed.count == 0
    assert fast([tie], 1.0).unclaimed == 1


@pytest.mark.parametrize(
    "unclaimed",
    [
        FAILED,
        Scored("screened", Status.OK, 3.0),
        Scored("noisy", Status.UNSTABLE, 3.0),
        # A win without limits is one of a judge that is not to be believed.
        Scored("naive", Status.WIN, 3.0),
    ],
)
def test_what_is_unconfirmed_or_unknown_counts_as_a_failure(unclaimed):
    assert fast([unclaimed]).claimed.count == 0
    assert mean_of_confirmed([unclaimed]) is None
    found = mean_of_claims([unclaimed])
    assert (found.interval.low, found.interval.estimate, found.interval.high) == (1, 1, math.inf)
    assert mean_of_claims([*SOME, unclaimed]) == mean_of_claims([*SOME, FAILED])


def test_no_score_of_no_problem():
    assert fast([]).claimed.total == 0
    assert mean_of_confirmed([]) is mean_of_claims([]) is None


def test_all_failed():
    none = [FAILED] * 5
    assert fast(none).claimed.count == 0
    assert fast(none).claimed.high < 0.5
    assert mean_of_confirmed(none) is None
    assert mean_of_claims(none).interval.estimate == 1


def test_one_problem_has_its_own_interval():
    one = known(1.3)
    assert mean_of_confirmed([one]).interval == one.interval
    assert mean_of_claims([one]).interval == one.interval


def test_a_failure_in_a_problem_s_place_never_raises_a_score():
    before = mean_of_claims(SOME).interval
    for place in range(len(SOME)):
        changed = [FAILED if i == place else one for i, one in enumerate(SOME)]
        assert mean_of_claims(changed).interval.estimate <= before.estimate
        for p in (0.5, 1.0, 1.1, 2.0):
            assert fast(changed, p).claimed.count <= fast(SOME, p).claimed.count


def test_one_more_failure_never_raises_a_score():
    before, after = mean_of_claims(SOME), mean_of_claims([*SOME, FAILED])
    assert after.interval.estimate < before.interval.estimate
    assert after.count == before.count + 1
    assert fast([*SOME, FAILED]).claimed.share < fast(SOME).claimed.share
    assert mean_of_confirmed([*SOME, FAILED]).left_out == mean_of_confirmed(SOME).left_out + 1


@pytest.mark.parametrize("value", [1e-3, 0.9, 1.0, 1.3, 50.0, 1e6])
def test_no_problem_moves_a_score_beyond_its_own_credit(value):
    others = SOME[:-1]
    before, after = mean_of_claims([*others, FAILED]), mean_of_claims([*others, known(value)])
    moved = math.log(after.interval.estimate / before.interval.estimate)
    credit = math.log(max(value, 1.0)) / len(SOME)
    assert moved == pytest.approx(credit, abs=1e-12)
    counted = fast([*others, known(value)]).claimed.count - fast([*others, FAILED]).claimed.count
    assert counted in (0, 1)


def test_the_order_and_the_names_of_problems_change_nothing():
    rng = random.Random(0)
    shuffled = rng.sample(SOME, len(SOME))
    renamed = [
        Scored(f"{i}", one.status, one.estimate, one.interval, one.logs)
        for i, one in enumerate(shuffled)
    ]
    for score in (fast, mean_of_confirmed, mean_of_claims):
        assert score(shuffled) == score(renamed) == score(SOME)


def test_like_problems_have_the_error_of_their_measurement():
    one = known(1.3, half=0.05)
    found = mean_of_confirmed([one] * 8).interval
    assert found.estimate == pytest.approx(1.3)
    assert 1.3 * math.exp(-0.05) < found.low < 1.3 * math.exp(-0.01)
    assert 1.3 * math.exp(0.01) < found.high < 1.3 * math.exp(0.05)


def test_a_record_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="positive speedup"):
        Scored("x", Status.WIN, 0.0)
    for low, high in ((0.0, 2.0), (1.0, math.inf)):
        with pytest.raises(ValueError, match="no known limits"):
            Scored("x", Status.WIN, 1.5, Interval(low, 1.5, high))
    with pytest.raises(ValueError, match="no known limits"):
        Scored("x", Status.OK, 1.5, Interval(1.0, 1.5, 2.0))
    for p in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="p > 0"):
            fast(SOME, p)
    assert scored("x", None) == Scored("x")


def measured(truth, rng, pairs=10, error=0.03):
    """A problem of this log speedup, measured."""
    logs = rng.normal(truth, error, size=pairs)
    half = t_quantile(0.975, pairs - 1) * logs.std(ddof=1) / math.sqrt(pairs)
    return known(math.exp(logs.mean()), half=half, logs=(tuple(logs.tolist()),))


@pytest.mark.parametrize(("spread", "error"), [(0.5, 0.03), (0.02, 0.06)])
def test_the_interval_of_the_mean_holds_the_truth(monkeypatch, spread, error):
    """Problems drawn around a geometric mean of e^0.3, 20 at a time."""
    monkeypatch.setattr(scores, "RESAMPLES", 1_000)
    monkeypatch.setattr(scores, "REDRAWN", 200)
    rng, truth, runs, held = np.random.default_rng(7), 0.3, 300, 0
    for _ in range(runs):
        problems = [measured(t, rng, error=error) for t in rng.normal(truth, spread, size=20)]
        found = mean_of_confirmed(problems).interval
        held += found.low <= math.exp(truth) <= found.high
    # Three standard errors of 95% of 300 below it, and no wider than half as wide again needs.
    assert held >= 0.95 * runs - 3 * math.sqrt(runs * 0.95 * 0.05)


def test_the_interval_is_no_wider_than_it_must_be():
    """Where problems differ by more than their errors it is Student's, within a tenth."""
    rng = np.random.default_rng(3)
    problems = [measured(t, rng) for t in rng.normal(0.3, 0.5, size=20)]
    logs = np.log([one.estimate for one in problems])
    half = t_quantile(0.975, 19) * logs.std(ddof=1) / math.sqrt(20)
    found = mean_of_confirmed(problems).interval
    assert math.log(found.high / found.low) == pytest.approx(2 * half, rel=0.1)


def test_credits_of_any_mixture_stay_between_1_and_their_best():
    values = (0.5, 1.0, 1.004, 1.3, 4.0)
    for some in itertools.combinations_with_replacement(values, 3):
        found = mean_of_claims([known(v) for v in some]).interval
        assert 1 <= found.estimate <= max(1.0, *some)
        assert found.low <= found.estimate <= found.high
