"""Beam and tree search over directive traces."""

from __future__ import annotations

import numpy as np
import pytest
from contracts import OpenDriverContract, judged
from playground import SCHEDULES, SPACE, drive

from kernelwright.configs import api
from kernelwright.env.options import OptionError
from kernelwright.env.types import Directive
from kernelwright.search.drivers.beam import Beam
from kernelwright.search.drivers.mcts import Mcts
from kernelwright.search.drivers.random import Random
from kernelwright.search.drivers.traces import Traces


@pytest.mark.parametrize("driver", [Beam, Mcts])
def test_a_knob_space_has_no_traces(driver):
    with pytest.raises(
        OptionError, match="expected a space of kind schedule, found KnobSpace"
    ) as e:
        driver(SPACE, seed=0, batch=8)
    assert e.value.option == "name"


class TestBeam(OpenDriverContract):
    space = SCHEDULES

    def make(self, seed, batch):
        return Beam(SCHEDULES, seed=seed, batch=batch)


class TestMcts(OpenDriverContract):
    space = SCHEDULES

    def make(self, seed, batch):
        return Mcts(SCHEDULES, seed=seed, batch=batch)


def test_extensions_are_legal_and_of_every_kind():
    traces = Traces(SCHEDULES, np.random.default_rng(0))
    longer = [traces.trace(traces.extend(traces.root)) for _ in range(60)]
    assert all(len(trace) == 1 for trace in longer)
    assert {trace[0].op for trace in longer} >= {"split", "reorder", "unroll", "parallel"}


def test_what_is_illegal_is_left_out_of_what_is_followed():
    traces = Traces(SCHEDULES, np.random.default_rng(0))
    moves = (
        Directive("split", "j", (8,)),
        Directive("split", "j", (4,)),  # there is no j any more
        Directive("vectorize", "ji"),
    )
    assert traces.trace(traces.follow(traces.root, moves)) == (moves[0], moves[2])


def longest(candidate):
    """A made-up objective: more directives are better, splits are not."""
    return float(sum(-1 if d.op == "split" else 1 for d in candidate.payload))


def test_a_beam_goes_on_from_the_best_of_every_level():
    driver = Beam(SCHEDULES, seed=0, batch=8, width=2, branch=4, depth=3)
    trials = drive(driver, 1, longest)
    assert trials[0].candidate == SCHEDULES.default
    values, levels = {trials[0].candidate.key: 0.0}, []
    number = 1
    for _ in range(3):
        children = []
        while not children or driver._queue:
            children += driver.ask(8)
        told = [
            judged(number + i, p.candidate, longest(p.candidate)) for i, p in enumerate(children)
        ]
        driver.tell(told)
        number += len(told)
        levels.append(children)
        values |= {t.candidate.key: t.objective for t in told}
    for depth, children in enumerate(levels, start=1):
        assert {len(p.candidate.payload) for p in children} == {depth}
    best = sorted((values[p.candidate.key] for p in levels[0]), reverse=True)[:2]
    went_on = {values[key] for p in levels[1] for key in p.parents}
    assert went_on <= set(best)
    # At its depth the descent ends and another one begins.
    assert len(driver.ask(1)[0].candidate.payload) == 1


def test_widening_lets_a_node_have_children_as_it_is_visited():
    def children(widening):
        driver = Mcts(SCHEDULES, seed=0, batch=4, widening=widening, initial=0, rollout=0)
        drive(driver, 48, longest, batch=4)
        assert driver.root.visits >= 40
        return len(driver.root.children)

    assert children(0.3) < children(2.0)


def test_the_tree_goes_where_it_pays():
    """Only what begins with a parallel loop is worth anything."""

    def value(candidate):
        return float(bool(candidate.payload) and candidate.payload[0].op == "parallel")

    driver = Mcts(SCHEDULES, seed=0, batch=4, initial=0)
    drive(driver, 96, value, batch=4)
    visits = {True: [], False: []}
    for handle, node in driver.root.children.items():
        (directive,) = driver._traces.trace(handle)
        visits[directive.op == "parallel"].append(node.visits)
    assert sum(visits[True]) / max(1, len(visits[True])) > 1.5 * np.mean(visits[False])


def test_the_best_trace_joins_the_tree_with_its_prefixes():
    driver = Mcts(SCHEDULES, seed=2, batch=4, initial=0)
    trials = drive(driver, 40, longest, batch=4)
    best = max(trials, key=lambda t: (t.objective, -t.number))
    node = driver.root
    for length in range(1, len(best.candidate.payload) + 1):
        handle = driver._traces.prefix(driver._pool.handle(best.candidate), length)
        node = node.children[handle]
    assert node.best >= best.objective


@pytest.mark.audit
def test_tree_search_beats_chance_on_a_model_of_a_cpu():
    campaign = {
        "name": "small",
        "problem": {"name": "matmul", "m": 32, "n": 32, "k": 32},
        "space": {"kind": "schedule"},
        "target": {"name": "cpu-model"},
        "driver": {"name": "random"},
        "budget": {"trials": 8},
    }
    built = api.plan_of(campaign)

    def best(driver):
        trials = drive(driver, 64, lambda c: -float(np.log2(built.target.true_ns([c])[0])))
        return np.mean(sorted(t.objective for t in trials)[-8:])

    trees = [best(Mcts(built.space, seed=s, batch=8)) for s in range(2)]
    chance = [best(Random(built.space, seed=s, batch=8)) for s in range(2)]
    assert np.mean(trees) > np.mean(chance)
