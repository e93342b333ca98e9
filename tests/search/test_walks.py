"""What annealing and coordinate descent are: walks that go down at times, and walks that cannot."""

from __future__ import annotations

import pytest
from contracts import judged
from playground import drive

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Knob
from kernelwright.search.drivers.annealing import Annealing
from kernelwright.search.drivers.coordinate_descent import CoordinateDescent, line

SQUARE = KnobSpace(
    [Knob("a", tuple(range(8))), Knob("b", tuple(range(8)))], default=(("a", 0), ("b", 0))
)


def ridge(candidate):
    """Highest at (7, 7), on a ridge along the diagonal: both knobs have to move together."""
    a, b = candidate.knobs["a"], candidate.knobs["b"]
    return float(a + b - 10 * abs(a - b))


def bowl(candidate):
    """One top, at (5, 2); each knob can be set by itself."""
    a, b = candidate.knobs["a"], candidate.knobs["b"]
    return float(-((a - 5) ** 2) - (b - 2) ** 2)


# Coordinate descent


def test_a_line_changes_one_knob_only():
    found = [SQUARE.unflat(i) for i in line(SQUARE, SQUARE.flat([3, 4]), 1)]
    assert found == [[3, b] for b in range(8) if b != 4]


def test_independent_knobs_are_set_in_one_pass():
    driver = CoordinateDescent(SQUARE, seed=0, batch=8)
    trials = drive(driver, 15, bowl)
    assert [t.candidate.knobs["b"] for t in trials[:8]] == [0] * 8
    assert [t.candidate.knobs["a"] for t in trials[8:]] == [5] * 7
    assert max(trials, key=lambda t: t.objective).candidate.knobs == {"a": 5, "b": 2}


def test_it_is_stuck_where_knobs_must_move_together_and_says_where():
    events = []

    class Journal:
        def record(self, event):
            events.append(event)

    driver = CoordinateDescent(SQUARE, seed=0, batch=8, journal=Journal())
    trials = drive(driver, 16, ridge)
    first = driver.stuck[0]
    assert SQUARE.candidate(first.index).knobs == {"a": 0, "b": 0}
    assert (first.objective, first.trials) == (0.0, 15)
    assert trials[15].parents == ()
    assert events[0].kind == "stuck"
    assert events[0].data == {"knobs": {"a": 0, "b": 0}, "objective": 0.0, "trials": 15}
    drive(driver, 64, ridge)
    assert max(s.objective for s in driver.stuck) == 14.0


def test_it_starts_from_the_best_that_is_known_unless_told_not_to():
    best = judged(0, SQUARE.candidate(SQUARE.flat([5, 5])), 3.0)
    known = CoordinateDescent(SQUARE, seed=0, batch=8)
    known.tell([judged(1, SQUARE.candidate(0), 0.0), best])
    assert {p.parents for p in known.ask(8)} == {(best.candidate.key,)}
    drawn = CoordinateDescent(SQUARE, seed=0, batch=8, start="random")
    drawn.tell([best])
    assert [p.parents for p in drawn.ask(8)] == [()]


def test_a_seeded_order_differs_from_the_declared_one():
    def second(seed):
        driver = CoordinateDescent(SQUARE, seed=seed, batch=8, order="seeded")
        drive(driver, 1, bowl)
        return driver.ask(8)[0].candidate.knobs["a"] != 0

    assert {second(seed) for seed in range(8)} == {True, False}


# Annealing


def noisy(candidate):
    return float(int(candidate.key[:6], 16) % 997) / 100


def test_it_accepts_what_is_worse_while_it_is_hot_and_hardly_when_cold():
    def moved(told):
        """How often the walk goes to a neighbour that is worse by the typical worsening."""
        count = 0
        for seed in range(200):
            driver = Annealing(SQUARE, seed=seed, batch=1, initial=1, cycle=64)
            (start,) = driver.ask(1)
            driver.tell([judged(0, start.candidate, 0.0)])
            driver._told = told
            worse = driver.ask(1)[0]
            driver.tell([judged(1, worse.candidate, -0.25)])
            after = driver.ask(1)[0]
            count += after.parents == (worse.candidate.key,)
        return count

    # At the start of a cycle half of the typical worsenings are accepted.
    assert 70 <= moved(1) <= 130
    assert moved(60) < 10


def test_the_temperature_follows_the_worsenings_seen_falls_and_rises_again():
    driver = Annealing(SQUARE, seed=0, batch=1, initial=1, cycle=10)
    temperatures = []
    for number in range(21):
        driver.tell([judged(number, SQUARE.candidate(number), 0.0)])
        temperatures.append(driver.temperature)
    assert temperatures[9] == pytest.approx(temperatures[0] / 100)
    assert temperatures[10] == temperatures[0]
    small, large = (Annealing(SQUARE, seed=0, batch=1, initial=1) for _ in range(2))
    for driver, scale in ((small, 0.01), (large, 1.0)):
        for number, objective in enumerate((5.0, 1.0, 3.0)):
            candidate = SQUARE.candidate(number)
            driver.tell([judged(number, candidate, scale * objective)])
    assert small.temperature == pytest.approx(large.temperature / 100)


def test_a_new_cycle_starts_from_the_best():
    driver = Annealing(SQUARE, seed=3, batch=1, initial=4, cycle=8, two_steps=0.0)
    trials = drive(driver, 12, noisy, batch=1)
    best = max(trials, key=lambda t: t.objective)
    assert driver._here == (best.objective, SQUARE.index(best.candidate))
    assert trials[-1].candidate != best.candidate
