"""The bookkeeping of the search benchmark: what is a member, what is charged, what chance does."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "common" / "recordings.py"


@pytest.fixture(scope="module")
def recordings():
    """A script beside the package, so loaded by its path."""
    spec = importlib.util.spec_from_file_location("recordings", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_minima_keep_where_the_best_fell(recordings):
    assert recordings.minima([math.inf, 3.0, 3.0, 4.0, 1.04, 1.0]) == [(2, 3.0), (5, 1.04), (6, 1)]


@pytest.mark.parametrize(
    ("steps", "width", "found"),
    [
        ([(2, 3.0), (5, 1.04)], 0.05, 5),
        ([(2, 3.0), (5, 1.04)], 0.02, None),
        ([(256, 1.05)], 0.05, 256),
        ([(257, 1.0)], 0.05, None),
        ([], 0.1, None),
    ],
)
def test_reached_within_the_budget(recordings, steps, width, found):
    assert recordings.reached(steps, width) == found


def test_best_at(recordings):
    assert recordings.best_at([(2, 3.0), (5, 1.04)], 4) == 3.0
    assert recordings.best_at([(2, 3.0)], 1) is None


def test_an_unreached_run_is_infinite_in_the_median_and_512_in_the_mean(recordings):
    assert recordings.middle([8, None, 4]) == 8
    assert recordings.middle([8, None]) == math.inf
    assert recordings.geometric_mean([2, math.inf]) == pytest.approx(32)


def test_a_failed_row_without_group_holds_for_each(recordings):
    lines = [
        '{"unit": "us"}',
        '{"bm": 16, "warps": 1, "group_m": 1, "us": [3, 1, 2]}',
        '{"bm": 16, "warps": 1, "group_m": 4, "us": [5]}',
        '{"bm": 32, "warps": 1, "error": "shared memory"}',
    ]
    assert recordings.from_lines(lines) == [
        ({"bm": 16, "warps": 1, "group_m": 1}, 2),
        ({"bm": 16, "warps": 1, "group_m": 4}, 5),
        ({"bm": 32, "warps": 1, "group_m": 1}, math.inf),
        ({"bm": 32, "warps": 1, "group_m": 4}, math.inf),
    ]


def test_random_search_agrees_with_every_order(recordings):
    ratios = [1.0, 1.04, 1.5, 2.0, 3.0, math.inf]
    found = recordings.random_search(ratios, evaluations=3)
    orders = list(itertools.permutations(ratios))
    first = sorted(min(order.index(1.0), order.index(1.04)) + 1 for order in orders)
    assert found["median"]["0.05"] == first[len(first) // 2 - 1]
    logs = [math.log(min(order[:3])) for order in orders]
    assert found["best_at"] == pytest.approx(math.exp(sum(logs) / len(logs)), abs=1e-4)
    assert found["share"] == dict.fromkeys(found["share"], 1.0)


@pytest.mark.parametrize("name", ["h200_attention-causal", "pnpoly-RTX_3090"])
def test_the_rules_name_the_recorded_members(recordings, name):
    if not recordings.DATA.exists():
        pytest.skip("no recorded spaces beside the checkout, in ../shared/data")
    space = recordings.load(name)
    failing = sum(map(math.isinf, space.times.values()))
    assert (len(space.times), failing) == {"h2": (272, 8), "pn": (4092, 318)}[name[:2]]
    assert space.best == min(space.times.values())
