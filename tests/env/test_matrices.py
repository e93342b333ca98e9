"""Generated matrices: exactly so many places, where they may be, sorted, distinct, by seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.env.problems.matrices import (
    KINDS,
    banded,
    block,
    dense_rows,
    empty_rows,
    power_law,
    uniform,
    uniform_rows,
    uniform_tensor,
)

kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def rng(seed=0):
    return np.random.default_rng(seed)


def check(rows, cols, nnz, found):
    row, col = found
    assert row.dtype == col.dtype == np.int64
    assert row.shape == col.shape == (nnz,)
    if nnz:
        assert row.min() >= 0
        assert row.max() < rows
        assert col.min() >= 0
        assert col.max() < cols
        assert (np.diff(row * cols + col) > 0).all()


def lengths(rows, found):
    return np.bincount(found[0], minlength=rows)


@kinds
@given(
    rows=st.integers(0, 40),
    cols=st.integers(0, 40),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
def test_exactly_so_many_distinct_places_in_order(kind, rows, cols, share, seed):
    nnz = round(share * rows * cols)
    check(rows, cols, nnz, kind(rows, cols, nnz, rng(seed)))


@kinds
@pytest.mark.parametrize(("rows", "cols"), [(0, 0), (0, 5), (5, 0), (1, 1), (1, 30), (30, 1)])
def test_no_places_and_all_places(kind, rows, cols):
    check(rows, cols, 0, kind(rows, cols, 0, rng()))
    check(rows, cols, rows * cols, kind(rows, cols, rows * cols, rng()))


@kinds
@pytest.mark.parametrize(("rows", "cols", "nnz"), [(300, 200, 900), (30, 20, 300)])
def test_a_seed_decides(kind, rows, cols, nnz):
    """Both where all places are looked at and where few are drawn."""
    one, again, other = (kind(rows, cols, nnz, rng(seed)) for seed in (1, 1, 2))
    check(rows, cols, nnz, one)
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@kinds
def test_a_large_matrix(kind):
    check(65536, 65536, 10**6, kind(65536, 65536, 10**6, rng()))


@kinds
@pytest.mark.parametrize(
    ("rows", "cols", "nnz", "message"),
    [
        (3, 4, 13, "nnz: expected 0 to 12 places, found 13"),
        (3, 4, -1, "nnz: expected 0 to 12 places, found -1"),
        (-3, -4, 2, r"shape: expected sizes of at least 0, found \(-3, -4\)"),
        (2**40, 2**40, 2, r"shape: expected at most 2\^63 - 1 places"),
    ],
)
def test_sizes_that_cannot_be(kind, rows, cols, nnz, message):
    with pytest.raises(ValueError, match=message):
        kind(rows, cols, nnz, rng())


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: power_law(5, 5, 2, rng(), exponent=1.5), "exponent: expected 0 to 1, found 1.5"),
        (lambda: banded(5, 5, 2, rng(), half_bandwidth=-1), "half_bandwidth: expected at least 0"),
        (lambda: banded(5, 5, 14, rng(), half_bandwidth=1), "the 13 places of the band, found 14"),
        (lambda: block(5, 5, 2, rng(), size=0), "size: expected at least 1, found 0"),
        (lambda: empty_rows(5, 5, 2, rng(), holding=2.0), "expected a fraction from 0 to 1"),
        (lambda: dense_rows(5, 5, 2, rng(), full=-1), "full: expected at least 0, found -1"),
    ],
)
def test_parameters_that_cannot_be(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


# (rows, columns, nnz): few places of many, which are drawn; and many, which are all looked at.
SMALL = [(2, 40, 2), (2, 3, 3)]


@pytest.mark.parametrize("kind", [uniform, uniform_rows])
@pytest.mark.parametrize(("rows", "cols", "nnz"), SMALL)
def test_uniform_is_as_often_in_every_place(kind, rows, cols, nnz):
    draws, source = 4000, rng(3)
    counts = np.zeros((rows, cols))
    for _ in range(draws):
        counts[kind(rows, cols, nnz, source)] += 1
    share = nnz / (rows * cols)
    assert abs(counts - draws * share).max() < 5 * np.sqrt(draws * share * (1 - share))


@pytest.mark.parametrize(("rows", "cols", "nnz"), [(40, 400, 130), (40, 20, 130), (7, 9, 0)])
def test_uniform_rows_differ_by_one_at_most(rows, cols, nnz):
    found = lengths(rows, uniform_rows(rows, cols, nnz, rng()))
    assert set(found) <= {nnz // rows, nnz // rows + 1}


@pytest.mark.parametrize(("rows", "cols", "nnz"), [(3, 3, 1), (8, 8, 1), (3, 3, 4), (12, 12, 4)])
def test_power_law_draws_by_weight_without_replacement(rows, cols, nnz):
    """Against draws one after another, with places in the order of their weights."""
    draws, source = 3000, rng(5)
    weights = np.sort(np.outer(1 / np.arange(1, rows + 1), 1 / np.arange(1, cols + 1)).ravel())
    wanted = np.zeros(rows * cols)
    found = np.zeros(rows * cols)
    for _ in range(draws):
        left = weights.copy()
        for _ in range(nnz):
            at = source.choice(left.size, p=left / left.sum())
            wanted[at] += 1
            left[at] = 0
        # A generator whose permutations leave the order as it is.
        row, col = power_law(rows, cols, nnz, Unpermuted(source.bit_generator))
        order = np.argsort(np.outer(1 / np.arange(1, rows + 1), 1 / np.arange(1, cols + 1)).ravel())
        found[np.argsort(order)[row * cols + col]] += 1
    spread = np.sqrt(wanted + found + 1)
    assert (abs(wanted - found) / spread).max() < 5


class Unpermuted(np.random.Generator):
    """Draws as ever, but permutes nothing."""

    def permutation(self, x, axis=0):
        return x


def test_power_law_has_long_and_empty_rows_and_columns():
    found = power_law(4096, 4096, 20_000, rng())
    for counts in (lengths(4096, found), lengths(4096, found[::-1])):
        assert counts.max() > 1000
        assert (counts == 0).sum() > 400
    even = power_law(4096, 4096, 20_000, rng(), exponent=0.0)
    assert lengths(4096, even).max() < 25


@pytest.mark.parametrize(("rows", "cols"), [(50, 50), (20, 60), (60, 20)])
def test_banded_keeps_within_the_band_and_fills_it(rows, cols):
    inside = abs(np.subtract.outer(np.arange(rows), np.arange(cols))) <= 3
    found = banded(rows, cols, int(inside.sum()), rng(), half_bandwidth=3)
    dense = np.zeros((rows, cols), bool)
    dense[found] = True
    assert np.array_equal(dense, inside)
    row, col = banded(rows, cols, 30, rng(), half_bandwidth=2)
    assert abs(row - col).max() <= 2


def test_banded_is_half_full_where_no_width_is_given():
    row, col = banded(200, 200, 1000, rng())
    # 200 + 2 (199 + … + (200 - h)) places: 1,791 with h = 4 and 2,170 with h = 5.
    assert abs(row - col).max() == 5


@pytest.mark.parametrize(("rows", "cols", "nnz"), [(64, 64, 640), (61, 35, 640), (61, 35, 61 * 35)])
def test_blocks_are_dense_but_the_last(rows, cols, nnz):
    row, col = block(rows, cols, nnz, rng(2), size=8)
    held = np.zeros((8, 8), int)
    np.add.at(held, (row // 8, col // 8), 1)
    heights, widths = (np.clip(size - 8 * np.arange(8), 0, 8) for size in (rows, cols))
    partial = (held > 0) & (held < np.outer(heights, widths))
    assert partial.sum() <= 1
    if partial.any():
        last = np.flatnonzero(held)[-1]
        assert np.flatnonzero(partial) == [last]


def test_a_few_rows_hold_everything():
    found = lengths(160, empty_rows(160, 50, 300, rng()))
    assert 0 < (found > 0).sum() <= 10
    found = lengths(160, empty_rows(160, 50, 300, rng(), holding=0.0))
    assert sorted(found)[-6:] == [50] * 6


@pytest.mark.parametrize(
    ("nnz", "full"), [(1000, 4), (399, 3), (199, 1), (100, 1), (50, 1), (49, 0)]
)
def test_a_few_rows_are_full(nnz, full):
    """Rows of 50 places; the others of 100 rows are far from full."""
    found = lengths(100, dense_rows(100, 50, nnz, rng()))
    assert (found == 50).sum() == full
    assert sorted(found)[-full - 1] < 30


def test_a_tensor_of_third_order():
    shape = (30, 1, 20)
    found = uniform_tensor(shape, 250, rng())
    keys = np.ravel_multi_index(found, shape)
    assert all(mode.dtype == np.int64 for mode in found)
    assert keys.size == 250
    assert (np.diff(keys) > 0).all()
    full = uniform_tensor(shape, 600, rng())
    assert np.array_equal(np.ravel_multi_index(full, shape), np.arange(600))
    assert [mode.size for mode in uniform_tensor((4, 0, 3), 0, rng())] == [0, 0, 0]
    with pytest.raises(ValueError, match="nnz: expected 0 to 600 places, found 601"):
        uniform_tensor(shape, 601, rng())
