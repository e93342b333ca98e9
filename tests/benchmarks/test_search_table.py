"""Which rows of the search benchmark pass: none for what was not reached."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def table(monkeypatch):
    """The script, loaded by its path; what it finds beside itself is forgotten again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER / "common"))
    spec = importlib.util.spec_from_file_location("search_table", FOLDER / "search.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in set(sys.modules) - before:
        if str(FOLDER) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("own", "peer", "passes"),
    [
        (math.inf, math.inf, False),
        (math.inf, 100.0, False),
        (200.0, math.inf, True),
        (131.0, 100.0, False),
        (130.0, 100.0, True),
    ],
)
def test_a_space_that_nobody_solves_is_no_pass(table, monkeypatch, own, peer, passes):
    monkeypatch.setattr(table, "_medians", lambda *given, **named: own)
    monkeypatch.setattr(table, "_peers", lambda name, width: {"peer": peer})
    monkeypatch.setattr(table, "runs", lambda name: ())
    rows = table.auto()
    judged = [next(rows) for _ in range(2 * len(table.SPACES))][::2]
    assert {met for *_, met in judged} == {passes}
