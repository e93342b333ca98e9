"""What a configuration will cost, and what `auto` makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contracts import judged
from playground import SPACE

from kernelwright.env.types import Status, Verdict
from kernelwright.search.drivers.auto import Auto
from kernelwright.search.models.costs import FEWEST, Costs, seconds


def verdict(**facts):
    return Verdict(Status.CRASHED, "x", facts=tuple(facts.items()))


def test_seconds_are_the_sum_of_what_was_spent_on_a_candidate():
    spent = verdict(compile_s=2.0, verify_s=0.5, benchmark_s=1.0, framework_s=9.0, registers=64.0)
    assert seconds(spent) == 3.5
    assert seconds(verdict(registers=64.0)) is None
    assert seconds(verdict(compile_s=0.0)) is None


def test_costs_are_learned_on_a_logarithmic_scale_and_stay_within_what_was_seen():
    rng, costs = np.random.default_rng(0), Costs()
    rows = rng.random((200, 3)).astype(np.float32)
    true = np.exp(3 * rows[:, 0] - rows[:, 1])
    assert costs.predicted(rows).tolist() == [1.0] * 200
    for row, spent in zip(rows[:150], true[:150], strict=True):
        costs.learn(row[None], verdict(compile_s=float(spent)))
    assert np.abs(np.log(costs.predicted(rows[150:]) / true[150:])).max() < 0.1
    far = costs.predicted(np.array([[9.0, 0.0, 0.0]], dtype=np.float32))
    assert far == pytest.approx(true[:150].max(), rel=1e-5)


def test_unknown_costs_leave_all_alike():
    costs = Costs()
    for _ in range(FEWEST):
        costs.learn(np.ones((1, 2), dtype=np.float32), verdict())
    assert costs.predicted(np.zeros((3, 2), dtype=np.float32)).tolist() == [1.0] * 3


def spent_by(cost, price):
    """What twenty candidates of `auto` cost, and their keys."""
    driver, total, keys = Auto(SPACE, seed=0, batch=1, cost=cost), 0.0, []
    for number in range(20):
        (proposal,) = driver.ask(1)
        trial = judged(number, proposal.candidate, 7 * SPACE.index(proposal.candidate) % 5)
        paid = price(proposal.candidate)
        facts = (("compile_s", paid),) if paid else ()
        screens = ((trial.verdicts[0][0], replace(trial.verdicts[0][1], facts=facts)),)
        driver.tell([replace(trial, verdicts=screens)])
        total, keys = total + paid, [*keys, proposal.candidate.key]
    return total, keys


def test_auto_prefers_what_is_cheap_among_equals():
    knob = SPACE.knobs[0]

    def price(candidate):
        return 100.0 ** (knob.values.index(candidate.knobs[knob.name]) / (len(knob.values) - 1))

    assert spent_by("seconds", price)[0] < 0.8 * spent_by("evaluations", price)[0]


def test_auto_without_known_costs_goes_the_same_way():
    assert spent_by("seconds", lambda _: 0.0) == spent_by("evaluations", lambda _: 0.0)
