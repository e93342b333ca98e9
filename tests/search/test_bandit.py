"""The bandit: who is asked, and what is learned from who succeeded."""

from __future__ import annotations

import numpy as np
import pytest
from contracts import DriverContract, OpenDriverContract, judged
from playground import SCHEDULES, SPACE, drive

from kernelwright.env.options import OptionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Knob
from kernelwright.search.drivers.bandit import Bandit
from kernelwright.search.drivers.credits import Credits
from kernelwright.search.drivers.pool import EXHAUSTED

FOUR = KnobSpace([Knob(name, tuple(range(6))) for name in "abcd"])


def test_the_area_weighs_late_successes_more():
    credits = Credits(["x"], window=4, explore=0.0)
    for success in (False, False, False, True):
        credits.record("x", success=success)
    assert credits.area("x") == 4 / 10
    credits.record("x", success=False)  # the window has moved on
    assert credits.area("x") == 3 / 10
    assert Credits(["x"], window=4, explore=0.0).area("x") == 0


def test_who_succeeds_is_asked_and_who_does_not_is_asked_now_and_then():
    def uses(explore):
        credits = Credits(["good", "bad"], window=20, explore=explore)
        for _ in range(200):
            arm = credits.choose()
            credits.record(arm, success=arm == "good")
        return credits.uses

    assert uses(0.0) == {"good": 199, "bad": 1}
    assert 1 < uses(1.0)["bad"] < 50


def test_strategies_share_one_history():
    driver = Bandit(SPACE, seed=0, batch=8, strategies=("random", "evolution", "grid"))
    trials = drive(driver, 48)
    assert len({t.candidate for t in trials}) == len(trials) == 48
    proposers = {p.proposer for p in driver.ask(1)}
    assert proposers <= {"bandit random", "bandit evolution", "bandit grid"}
    assert sum(driver.credits[""].uses.values()) == 49


def test_a_strategy_that_finds_better_ones_is_asked_more():
    """Grid walks a slope upwards; random does not."""
    space = KnobSpace([Knob("x", tuple(range(400)))])
    driver = Bandit(space, seed=0, batch=4, strategies=("random", "grid"))
    drive(driver, 120, lambda c: float(c.knobs["x"] if c.knobs["x"] < 150 else -1), batch=4)
    uses = driver.credits[""].uses
    assert uses["grid"] > 2 * uses["random"]


@pytest.mark.parametrize("name", ["nothing", "bandit", "listed"])
def test_only_some_drivers_are_strategies(name):
    with pytest.raises(OptionError, match="some of auto, random, grid") as refusal:
        Bandit(SPACE, seed=0, batch=8, strategies=("random", name))
    assert refusal.value.option == "strategies"


def test_strategies_are_different():
    with pytest.raises(OptionError, match="different drivers"):
        Bandit(SPACE, seed=0, batch=8, strategies=("random", "random"))


def test_it_ends_when_all_strategies_have():
    driver = Bandit(SPACE, seed=0, batch=8, strategies=("grid", "random"))
    assert len(drive(driver, 10**6)) == len(SPACE.valid)
    assert driver.stopped == EXHAUSTED


# Groups of knobs


def test_groups_change_their_knobs_only():
    driver = Bandit(FOUR, seed=0, batch=8, level="groups", groups=(("a", "b"), ("c",)), initial=4)
    drive(driver, 8, lambda c: float(c.knobs["a"]))
    for proposal in driver.ask(8):
        _, *arm = proposal.proposer.split()
        if not arm:
            continue
        parent = next(
            i for i in range(FOUR.combinations) if FOUR.candidate(i).key in proposal.parents
        )
        old, new = FOUR.candidate(parent).knobs, proposal.candidate.knobs
        changed = {name for name in old if old[name] != new[name]}
        group, part = arm
        assert changed == (set(group.split("+")) if part == "all" else {part})


@pytest.mark.parametrize("seed", range(3))
def test_it_learns_which_knobs_matter(seed):
    """Only a and d matter: no change of b or c is ever a success."""
    space = KnobSpace([Knob(name, tuple(range(12))) for name in "abcd"])

    def value(candidate):
        a, d = candidate.knobs["a"], candidate.knobs["d"]
        return float(a + d - 3 * abs(a - d))

    driver = Bandit(space, seed=seed, batch=4, level="groups", initial=4)
    drive(driver, 160, value, batch=4)
    assert set(driver.credits) == {"", "a+b", "a+c", "a+d", "b+c", "b+d", "c+d"}
    assert set(driver.credits["a+d"].uses) == {"a", "d", "all"}
    wins = {
        (group, part)
        for group, credits in driver.credits.items()
        for part, outcomes in credits.outcomes.items()
        if group and any(outcomes)
    }
    assert wins
    assert not [part for _, part in wins if part in ("b", "c")]
    uses = driver.credits[""].uses
    assert max(uses, key=uses.get) in {group for group, _ in wins}


@pytest.mark.parametrize("groups", [((),), (("a", "x"),), (("a", "a"),)])
def test_groups_are_of_knobs(groups):
    with pytest.raises(OptionError, match="groups of different knobs among a, b, c, d") as refusal:
        Bandit(FOUR, seed=0, batch=8, level="groups", groups=groups)
    assert refusal.value.option == "groups"


def test_groups_need_knobs():
    with pytest.raises(OptionError, match="can be listed"):
        Bandit(SCHEDULES, seed=0, batch=8, level="groups")


class TestBanditOfGroups(DriverContract):
    space = SPACE

    def make(self, seed, batch):
        return Bandit(SPACE, seed=seed, batch=batch, level="groups")


def test_a_space_of_one_knob_has_one_group():
    space = KnobSpace([Knob("x", (1, 2, 3)), Knob("y", (1,))])
    driver = Bandit(space, seed=0, batch=1, level="groups", initial=1)
    assert len(drive(driver, 9, lambda c: 0.0, batch=1)) == 3
    assert np.isfinite(driver.credits[""].area("x"))


def test_failures_are_no_success():
    driver = Bandit(SPACE, seed=0, batch=4, strategies=("random",))
    proposals = driver.ask(4)
    driver.tell([judged(i, p.candidate, None) for i, p in enumerate(proposals)])
    assert list(driver.credits[""].outcomes["random"]) == [False] * 4


class TestBanditOverSchedules(OpenDriverContract):
    space = SCHEDULES

    def make(self, seed, batch):
        return Bandit(SCHEDULES, seed=seed, batch=batch, strategies=("random", "evolution"))
