"""Traps of landscapes whose truth is known, and the page that shows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Knob
from kernelwright.search.drivers.coordinate_descent import CoordinateDescent
from kernelwright.search.traps import find_traps
from kernelwright.search.trial import Trial

ROOT = Path(__file__).resolve().parents[2]
SPACE = KnobSpace([Knob("a", (1, 2, 3)), Knob("b", (1, 2, 3))])


def test_a_landscape_with_one_trap():
    nan = float("nan")
    times = np.array([[2.0, 5.0, nan], [5.0, 5.5, 6.0], [nan, 6.0, 1.0]])
    found = find_traps(SPACE, times.ravel())
    assert (found.configurations, found.stuck, found.ends) == (7, 2, (1.0, 2.0))
    # The first knob decides: only (2, 3) goes where (3, 3) is.
    assert found.lost == pytest.approx(5 / 7)
    assert found.pair.config == (("a", 1), ("b", 1))
    assert found.pair.changes == (("a", 3), ("b", 3))
    assert found.pair.alone == (float("inf"), float("inf"))
    assert (found.pair.time, found.pair.together) == (2.0, 1.0)


def test_a_bowl_has_none():
    a, b = np.meshgrid(range(3), range(3), indexing="ij")
    found = find_traps(SPACE, (1.0 + a + b).ravel())
    assert (found.stuck, found.steps, found.lost, found.pair) == (1, 1, 0.0, None)


def test_one_step_is_stuck_where_a_line_is_not():
    found = find_traps(KnobSpace([Knob("a", (1, 2, 3))]), np.array([2.0, 3.0, 1.0]))
    assert (found.stuck, found.steps) == (1, 2)


def test_the_driver_ends_where_the_analysis_says():
    from contracts import judged

    rng = np.random.default_rng(0)
    space = KnobSpace(
        [Knob(n, (0, 1, 2, 3)) for n in "abc"], default=(("a", 0), ("b", 0), ("c", 0))
    )
    times = rng.random(space.combinations)
    traps = find_traps(space, times)
    driver, told = CoordinateDescent(space, seed=0, batch=8), []
    while proposals := driver.ask(8):
        fresh: list[Trial] = [
            judged(len(told) + i, p.candidate, -times[space.index(p.candidate)])
            for i, p in enumerate(proposals)
        ]
        driver.tell(fresh)
        told += fresh
    ends = sorted({-s.objective / times.min() for s in driver.stuck})
    assert len(ends) > 1
    assert set(np.round(ends, 9)) <= set(np.round(traps.ends, 9))


def test_the_page_says_what_the_script_computes():
    command = [sys.executable, str(ROOT / "benchmarks/traps.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = (ROOT / "docs/coordinate-descent.md").read_text()
    rows = printed.splitlines()
    assert len(rows) == 9
    assert [row for row in rows if row not in page] == []
