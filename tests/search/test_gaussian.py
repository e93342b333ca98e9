from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.env.types import Knob
from kernelwright.search.models import gaussian
from kernelwright.search.models.coordinates import coordinates, knob_coordinates, twins
from kernelwright.search.models.gaussian import Gaussian

RNG = np.random.default_rng(0)
TABLE = RNG.random((200, 3)).astype(np.float32)


def values(rows):
    return np.sin(4 * rows[:, 0]) + 2 * (rows[:, 1] - 0.3) ** 2


def textbook(seen, table, targets, scales, noise):
    """Mean and variance by the formulas, without anything kept."""

    def kernel(left, right):
        distance = np.sqrt((((left[:, None] - right[None]) / scales) ** 2).sum(2))
        root = np.sqrt(5) * distance
        return (1 + root + root**2 / 3) * np.exp(-root)

    inverse = np.linalg.inv(kernel(seen, seen) + noise * np.eye(len(seen)))
    ones = np.ones(len(seen))
    level = ones @ inverse @ targets / (ones @ inverse @ ones)
    cross = kernel(seen, table)
    variance = (targets - level) @ inverse @ (targets - level) / len(seen)
    mean = level + cross.T @ inverse @ (targets - level)
    return mean, variance * (1 - np.einsum("ij,ik,kj->j", cross, inverse, cross))


def test_the_posterior_is_the_textbooks():
    model = Gaussian(3)
    model.look_at(TABLE)
    targets = values(TABLE[:30].astype(float))
    for row in TABLE[:30]:
        model.observe(row[None])
    mean, variance = model.mean(targets)
    wanted = textbook(
        TABLE[:30].astype(float), TABLE.astype(float), targets, model.length_scales, 1e-3
    )
    np.testing.assert_allclose(mean, wanted[0], atol=2e-4)
    np.testing.assert_allclose(model.spread(variance) ** 2, wanted[1], atol=2e-4)


@given(st.lists(st.integers(0, 199), min_size=3, max_size=25, unique=True), st.integers(1, 24))
def test_one_row_at_a_time_is_the_same_as_all_at_once(rows, cut):
    one, all_ = Gaussian(3), Gaussian(3)
    targets = values(TABLE[rows].astype(float))
    one.look_at(TABLE)
    one.agree(TABLE[rows[:cut]])
    one.mean(targets[:cut])
    for row in rows[cut:]:
        one.observe(TABLE[[row]])
    all_.agree(TABLE[rows])
    all_.look_at(TABLE)
    left, right = one.mean(targets), all_.mean(targets)
    np.testing.assert_allclose(left[0], right[0], atol=1e-3)
    np.testing.assert_allclose(one.spread(1.0), all_.spread(1.0), atol=1e-3)


def test_the_fit_finds_what_matters_and_its_gradient_is_right():
    model = Gaussian(3)
    rows = TABLE[:60]
    targets = values(rows.astype(float))
    model.agree(rows)
    model.fit((targets - targets.mean()) / targets.std())
    assert model.length_scales[2] > 2 * max(model.length_scales[:2])
    theta = np.array([-0.3, 0.2, 0.5, -5.0])
    standard = (targets - targets.mean()) / targets.std()
    slope = gaussian._cost(theta, rows.astype(float), standard)[1]
    for i, step in enumerate(np.eye(4) * 1e-5):
        up = gaussian._cost(theta + step, rows.astype(float), standard)[0]
        down = gaussian._cost(theta - step, rows.astype(float), standard)[0]
        assert slope[i] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-3)


def test_rows_that_were_not_told_are_forgotten():
    model = Gaussian(3)
    model.look_at(TABLE)
    model.agree(TABLE[:10])
    before = model.mean(values(TABLE[:10].astype(float)))[0]
    model.observe(TABLE[50:53])
    assert model.count == 13
    model.agree(TABLE[:10])
    assert model.count == 10
    np.testing.assert_array_equal(before, model.mean(values(TABLE[:10].astype(float)))[0])


def test_sizes_codes_and_odd_parts_have_coordinates_of_their_own():
    sizes = knob_coordinates(Knob("size", (16, 32, 48, 64)))
    assert sizes.shape == (4, 2)
    assert sizes[:, 0].tolist() == sorted(sizes[:, 0])
    assert sizes[:, 1].tolist() == [0, 0, 1, 0]
    assert knob_coordinates(Knob("power", (1, 2, 4, 8))).shape == (4, 1)
    assert knob_coordinates(Knob("switch", (0, 1))).shape == (2, 1)
    assert knob_coordinates(Knob("fixed", (3,))).shape == (1, 0)
    for knob in (Knob("code", (0, 1, 2, 3)), Knob("name", ("a", "b", "c"))):
        rows = knob_coordinates(knob)
        apart = np.linalg.norm(rows[:, None] - rows[None], axis=2)
        np.testing.assert_allclose(apart, 1 - np.eye(len(rows)))


def test_two_sides_of_a_tile_have_an_area():
    sides = (Knob("m", (16, 32, 64)), Knob("k", (8, 16)), Knob("n", (16, 32, 64)))
    assert twins(sides) == ((0, 2),)
    rows = coordinates(sides, np.array([[0, 0, 2], [2, 0, 0], [1, 1, 1], [2, 0, 2]]))
    assert rows.shape == (4, 4)
    np.testing.assert_allclose(rows[:, 3], [0.5, 0.5, 0.5, 1.0])
