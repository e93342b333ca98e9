"""Figures of the polyhedral section come from the machinery: other sizes give other figures."""

from __future__ import annotations

import pytest

from kernelwright.search.figures import polyhedral
from kernelwright.search.figures.stencils import gauss_seidel, recurrence

CHANGED = [
    ("REACH", 1, "_enumeration"),
    ("TILES", (50, 40), "_tiling"),
    ("SWEEP", 32, "_wavefront"),
    ("SWEEP", 32, "_reversal"),
]


@pytest.mark.parametrize(("name", "value", "figure"), CHANGED)
def test_a_changed_size_changes_the_figure(monkeypatch, name, value, figure):
    monkeypatch.setattr(polyhedral, name, value)
    assert not getattr(polyhedral, figure)().ok


def test_a_skew_that_is_no_skew_is_not_the_same(monkeypatch):
    monkeypatch.setattr(polyhedral, "STEPS", 60)
    monkeypatch.setattr(polyhedral, "SKEWED", polyhedral.DIRECT)
    assert polyhedral._tiling().got.endswith("different")


def test_another_stencil_is_another_exercise(monkeypatch):
    monkeypatch.setattr(polyhedral, "recurrence", lambda _: recurrence([(1, -3), (1, 0)]))
    figure = polyhedral._exercises()
    assert figure.got == "illegal swap; not tilable, skewed not tilable; s = 3"
    assert not figure.ok


def test_a_sweep_of_another_shape_has_other_fronts(monkeypatch):
    monkeypatch.setattr(polyhedral, "gauss_seidel", lambda size: gauss_seidel(size + 1))
    assert not polyhedral._steps().ok


def test_all_are_right():
    figures = polyhedral.polyhedral()
    assert [f.id for f in figures] == ["C1", "C4", "C5", "C6", "C7", "H4"]
    assert all(f.ok for f in figures), figures
