from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from contracts import DriverContract, OpenDriverContract, judged, slope, trajectory
from playground import SCHEDULES, SPACE, drive
from programs import tensor

from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler.ir.nodes import Const, Procedure, Store
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.spaces.source import SourceSpace
from kernelwright.search.drivers import DRIVERS
from kernelwright.search.drivers.cost_model import CostModel
from kernelwright.search.drivers.evolution import Evolution
from kernelwright.search.drivers.grid import Grid
from kernelwright.search.drivers.hill_climb import HillClimb
from kernelwright.search.drivers.pool import DRY, MAX_REDRAWS, ListedPool, OpenPool
from kernelwright.search.drivers.random import Random
from kernelwright.search.models.ridge import Ridge

ROOT = Path(__file__).resolve().parents[2]


class KnobDriverContract(DriverContract):
    space = SPACE
    name = ""

    def make(self, seed, batch):
        return resolve(DRIVERS, self.name)(SPACE, seed=seed, batch=batch)


# Drivers that draw from a space; `listed` draws from nothing, and has tests of its own.
# Beam and tree search walk schedules only: tests/search/test_traces.py.
DRAWING = tuple(name for name in DRIVERS if name not in ("listed", "beam", "mcts"))

# One contract test class a row of the table, so that a new driver is tested by being listed.
for _name in DRAWING:
    _title = "Test" + "".join(part.title() for part in _name.split("_"))
    globals()[_title] = type(_title, (KnobDriverContract,), {"name": _name})


LISTED_ONLY = ("grid", "coordinate_descent")
OPEN = tuple(name for name in DRAWING if name not in LISTED_ONLY)


class ScheduleDriverContract(OpenDriverContract):
    space = SCHEDULES
    name = ""

    def make(self, seed, batch):
        return resolve(DRIVERS, self.name)(SCHEDULES, seed=seed, batch=batch)


for _name in OPEN:
    _title = "TestOpen" + "".join(part.title() for part in _name.split("_"))
    globals()[_title] = type(_title, (ScheduleDriverContract,), {"name": _name})


def walked(name):
    """A digest of what a driver proposes, so that processes can be compared."""
    driver = resolve(DRIVERS, name)(SPACE, seed=11, batch=8)
    asked = trajectory(driver, 8, 48, lambda candidate: slope(SPACE, candidate))
    keys = " ".join(p.candidate.key for proposals in asked for p in proposals)
    return hashlib.sha256(keys.encode()).hexdigest()


WALKS = """
import json
from tests.search.test_drivers import DRAWING, walked
print(json.dumps({name: walked(name) for name in DRAWING}))
"""


def test_the_hash_seed_of_the_process_changes_nothing():
    here = {name: walked(name) for name in DRAWING}
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests/env/compiler"), *sys.path]
        code = f"import sys; sys.path[:0] = {paths!r}\n" + WALKS
        command = [sys.executable, "-P", "-c", code]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert json.loads(found.stdout) == here


def test_grid_goes_in_order():
    order = [SPACE.index(t.candidate) for t in drive(Grid(SPACE, seed=0, batch=8), 20)]
    assert order == SPACE.valid[: len(order)].tolist()


def test_random_is_uniform_without_replacement():
    firsts = [
        SPACE.index(Random(SPACE, seed=seed, batch=1).ask(1)[0].candidate) for seed in range(600)
    ]
    counts = np.bincount(firsts, minlength=SPACE.combinations)[SPACE.valid]
    assert counts.min() > 0
    assert counts.max() < 4 * counts.mean()


def test_hill_climbing_goes_up_and_restarts():
    driver = HillClimb(SPACE, seed=1, batch=4)
    trials = drive(driver, 30, batch=4)
    assert max(t.objective for t in trials if t.objective is not None) == 0
    children = [p for _ in range(3) for p in HillClimb(SPACE, seed=1, batch=4).ask(4)]
    assert all(not p.parents for p in children)


def test_children_name_their_parents():
    driver = Evolution(SPACE, seed=0, batch=8, population=8, crossover=1.0)
    first = driver.ask(8)
    assert all(not p.parents for p in first)
    driver.tell([judged(i, p.candidate, float(i)) for i, p in enumerate(first)])
    children = [p for p in driver.ask(8) if p.parents]
    assert children
    keys = {p.candidate.key for p in first}
    for child in children:
        assert len(set(child.parents)) == 2
        assert set(child.parents) <= keys


def test_evolution_options_change_what_is_proposed():
    def children(**options):
        driver = Evolution(SPACE, seed=0, batch=8, population=8, **options)
        drive(driver, 16)
        return driver.ask(8)

    plain = children()
    changes = [{"parents": 1}, {"crossover": 1.0}, {"two_knobs": 1.0}, {"tournament": 1}]
    assert all(children(**change) != plain for change in changes)


def test_only_the_best_are_parents():
    driver = Evolution(SPACE, seed=0, batch=8, population=8, parents=2, crossover=0.0)
    first = driver.ask(8)
    driver.tell([judged(i, p.candidate, float(i)) for i, p in enumerate(first)])
    best = {p.candidate.key for p in first[-2:]}
    children = [p for p in driver.ask(6) if p.parents]
    assert children
    assert all(set(p.parents) <= best for p in children)


def test_the_cost_model_asks_seven_of_eight_of_the_model():
    driver = CostModel(SPACE, seed=0, batch=8, initial=16)
    trials = drive(driver, 16)
    model = Ridge(0.1)
    passed = [t for t in trials if t.objective is not None]
    rows = [SPACE.index(t.candidate) for t in passed]
    model.add(SPACE.feature_table[rows], np.array([-t.objective for t in passed]))
    seen = {SPACE.index(t.candidate) for t in trials}
    rest = [i for i in SPACE.valid.tolist() if i not in seen]
    time = model.predict(SPACE.feature_table[rest])
    favourites = [rest[i] for i in np.argsort(time, kind="stable")[:7]]
    assert [SPACE.index(p.candidate) for p in driver.ask(8)][:7] == favourites


def test_the_cost_model_learns_nothing_from_failures():
    good, mixed = (CostModel(SPACE, seed=0, batch=8, initial=16) for _ in range(2))
    asked = good.ask(16)
    mixed.ask(16)
    trials = [judged(i, p.candidate, slope(SPACE, p.candidate)) for i, p in enumerate(asked)]
    failed = next(i for i, t in enumerate(trials) if t.objective is not None)
    good.tell([t for i, t in enumerate(trials) if i != failed])
    mixed.tell([t if i != failed else judged(i, t.candidate, None) for i, t in enumerate(trials)])
    assert good.ask(7) == mixed.ask(7)


def test_ridge_equals_the_closed_form():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 5)) * [1, 10, 0.1, 1, 1] + 3, rng.standard_normal(40)
    x[:, 4] = 7.0  # a constant feature carries nothing
    model = Ridge(0.1)
    for i in range(0, 40, 7):
        model.add(x[i : i + 7], y[i : i + 7])
    z = (x[:, :4] - x[:, :4].mean(0)) / x[:, :4].std(0)
    w = np.linalg.solve(z.T @ z + 0.1 * np.eye(4), z.T @ (y - y.mean()))
    np.testing.assert_allclose(model.predict(x), z @ w + y.mean(), atol=1e-9)


def test_ridge_survives_one_sample_and_a_large_offset():
    model = Ridge(0.1)
    model.add(np.array([[1e9, 1.0]]), np.array([4.0]))
    assert model.predict(np.array([[1e9, 5.0]]))[0] == pytest.approx(4.0)
    with pytest.raises(ValueError, match="at least one sample"):
        Ridge(0.1).weights()


def test_the_pool_draws_each_once():
    pool = ListedPool(SPACE, np.random.default_rng(0))
    pool.remove(int(SPACE.valid[3]))
    pool.remove(int(SPACE.valid[3]))
    drawn = [pool.draw() for _ in range(len(pool))]
    assert sorted(drawn) == [i for i in SPACE.valid.tolist() if i != SPACE.valid[3]]
    assert pool.draw() is None
    assert "has been proposed" in pool.stopped


def test_an_open_pool_knows_candidates_by_the_order_in_which_it_saw_them():
    pool = OpenPool(SCHEDULES, np.random.default_rng(0))
    first = pool.draw()
    assert first == 0
    assert first not in pool
    other = SCHEDULES.default
    assert pool.handle(other) == pool.handle(other) == 1
    assert 1 in pool
    assert pool.candidate(1) == other
    assert pool.handle(pool.candidate(first)) == first


class Counted:
    """A space of two candidates that counts how often it is drawn from."""

    def __init__(self):
        self.draws = 0
        rng = np.random.default_rng(0)
        self.members = [SCHEDULES.sample(rng), SCHEDULES.default]

    def sample(self, rng):
        self.draws += 1
        return self.members[int(rng.integers(2))]


def test_an_open_pool_gives_up_after_a_thousand_draws_of_nothing_new():
    space = Counted()
    driver = Random(space, seed=0, batch=8)
    proposals = driver.ask(8)
    assert {p.candidate for p in proposals} == set(space.members)
    assert driver.stopped == DRY
    assert MAX_REDRAWS < space.draws < MAX_REDRAWS + 20
    spent = space.draws
    assert driver.ask(8) == []
    assert space.draws == spent


@pytest.mark.parametrize("name", OPEN)
def test_a_space_with_one_schedule_is_used_up(name):
    """Nothing can be said about a procedure without loops but nothing."""
    y = tensor("y", 1, role="output")
    single = Procedure("one", (), (y,), Store("y", (Const(0, "int64"),), Const(1.0, "float32")))
    driver = resolve(DRIVERS, name)(ScheduleSpace(single), seed=0, batch=4)
    (only,) = driver.ask(4)
    assert only.candidate.payload == ()
    driver.tell([judged(0, only.candidate, 0.0)])
    assert driver.ask(4) == []
    assert driver.stopped == DRY


@pytest.mark.parametrize("name", DRAWING)
def test_no_driver_takes_a_space_that_cannot_be_drawn_from(name):
    space = SourceSpace("void f(float *y) { *y = 0; }\n", entry="f")
    with pytest.raises(OptionError, match="SourceSpace") as refusal:
        resolve(DRIVERS, name)(space, seed=0, batch=8)
    assert refusal.value.option == "name"


@pytest.mark.parametrize("name", LISTED_ONLY)
def test_some_refuse_a_space_without_an_end(name):
    with pytest.raises(OptionError, match="expected a space whose configurations can be listed"):
        resolve(DRIVERS, name)(SCHEDULES, seed=0, batch=8)


@pytest.mark.parametrize("name", ["evolution", "hill_climb", "annealing", "cost_model"])
def test_what_learns_beats_chance_on_an_open_space(name):
    """The made-up objective is the number of directives."""

    def best(driver):
        found, number = [], 0
        while number < 48:
            proposals = driver.ask(8)
            trials = [
                judged(number + i, p.candidate, float(len(p.candidate.payload)))
                for i, p in enumerate(proposals)
            ]
            driver.tell(trials)
            found += [t.objective for t in trials]
            number += len(trials)
        return sum(sorted(found)[-16:])

    learned, chance = [], []
    for seed in range(2):
        learned.append(best(resolve(DRIVERS, name)(SCHEDULES, seed=seed, batch=8)))
        chance.append(best(Random(SCHEDULES, seed=seed, batch=8)))
    assert sum(learned) > sum(chance)
