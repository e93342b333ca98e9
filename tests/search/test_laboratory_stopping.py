"""The laboratory of stopping: what a rule saves and gives up, on a judge of made-up times."""

from __future__ import annotations

import pytest
from toys import Script, ToyJudge, c, plan

from kernelwright.search.laboratory.stopping import (
    NEAR,
    RULES,
    Case,
    Row,
    StopRule,
    stopping,
    together,
)
from kernelwright.search.plan import StopRules

CASE = Case(
    "toy", lambda seed: plan(lambda: Script([[c(5)], [c(16)], [c(8)], [c(20)]])), ToyJudge(), 0.8
)


def test_what_is_saved_and_kept_is_told_by_pairs_of_runs():
    early = StopRule("early", lambda reach: StopRules(roofline=0.75 * reach))
    never = StopRule("never", lambda reach: StopRules(roofline=2 * reach))
    first, second = stopping([CASE], 2, [early, never])
    # 0.6 of the roofline is what a = 16 has; the best, a = 20, is at 0.8 of it.
    assert (first.evaluations, first.stopped) == ((2, 2), 2)
    assert (first.mean_saved, first.mean_kept) == (0.5, pytest.approx(16 / 20))
    assert (second.evaluations, second.stopped) == ((4, 4), 0)
    assert (second.mean_saved, second.mean_kept) == (0.0, 1.0)


def test_rows_of_a_rule_are_put_together():
    rows = [Row("a", "r", (10,), (0.5,), (0.9,), 1), Row("b", "r", (20, 30), (0.0, 0.4), (1, 1), 1)]
    whole = together(rows)
    assert (whole.case, whole.evaluations, whole.stopped) == ("all 2", (10, 20, 30), 2)
    assert whole.mean_saved == pytest.approx(0.3)
    with pytest.raises(ValueError, match="unpack"):
        together([*rows, Row("c", "other", (1,), (0.0,), (1.0,), 0)])


def test_the_rules_know_what_can_be_reached():
    near = next(rule for rule in RULES if rule.name == f"roofline: {NEAR:g} of the reach")
    assert near.rules(0.5).roofline == NEAR * 0.5
    assert len({rule.name for rule in RULES}) == len(RULES)
