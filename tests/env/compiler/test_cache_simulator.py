from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.env.compiler.machine import lru, simulator
from kernelwright.env.compiler.machine.hierarchy import Cache, Counts, LevelReport, Stream
from kernelwright.env.compiler.machine.simulator import MAX_ADDRESS, SimulationError, simulate

pytestmark = pytest.mark.cc
L1 = Cache(32 * 1024, 8, 64)
NAMES = ("a", "b", "c")


@st.composite
def caches(draw):
    line = draw(st.sampled_from((4, 16, 64)))
    ways = draw(st.integers(1, 9))
    return Cache(line * ways * draw(st.integers(1, 9)), ways, line)


@st.composite
def streams(draw):
    """Addresses that come back: steps back and forth within a few kilobytes, some far away."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count, reach = draw(st.integers(0, 600)), draw(st.sampled_from((64, 512, 4096, 1 << 40)))
    kind = draw(st.sampled_from(("random", "walk", "strided")))
    if kind == "random":
        addresses = rng.integers(0, reach, count)
    elif kind == "walk":
        addresses = np.abs(np.cumsum(rng.integers(-80, 81, count)))
    else:
        addresses = np.arange(count) * draw(st.sampled_from((4, 60, 64, 4096))) % reach
    return addresses, rng.random(count) < 0.3, rng.integers(0, len(NAMES), count)


@settings(max_examples=150, deadline=None)
@given(st.lists(caches(), min_size=1, max_size=3), streams())
def test_c_does_what_the_plain_simulator_says(levels, stream):
    assert simulate(levels, *stream, NAMES) == lru.replay(levels, *stream, NAMES)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_stream_through_three_levels(seed):
    rng = np.random.default_rng(seed)
    levels = [Cache(1024, 2, 32), Cache(6144, 3, 64), Cache.fully_associative(1 << 14, 64)]
    addresses = rng.integers(0, 1 << 15, 20_000, dtype=np.int64)
    writes = rng.random(20_000) < 0.5
    found = simulate(levels, addresses, writes)
    assert found == lru.replay(levels, addresses, writes)
    assert all(level.written_back > 0 for level in found.levels)


@settings(max_examples=40, deadline=None)
@given(st.lists(caches(), min_size=2, max_size=3), streams())
def test_the_misses_of_one_level_are_the_accesses_of_the_next(levels, stream):
    addresses, writes, tensors = stream
    found = simulate(levels, addresses, writes, tensors, NAMES).levels
    for near, far in pairwise(found):
        for one, other in zip(near.streams, far.streams, strict=True):
            assert one.counts.misses == other.counts.accesses
    for level in found:
        total = level.total
        assert total.misses == total.compulsory + total.capacity + total.conflict
        assert level.reads + level.writes == total
        assert sum((level.of(name) for name in NAMES), Counts()) == total
    distinct = len(np.unique(addresses // levels[0].line_bytes))
    assert found[0].total.compulsory == distinct


def test_two_lines_of_one_set_conflict():
    cache = Cache(256, 1, 64)  # four sets of one line
    addresses = np.array([0, 256, 0, 256, 64, 64])
    total = simulate([cache], addresses).first.total
    assert total == Counts(accesses=6, misses=5, associative=3, compulsory=3)
    assert (total.conflict, total.capacity, total.hits) == (2, 0, 1)


def test_a_loop_larger_than_the_cache_lacks_capacity():
    cache = Cache.fully_associative(256, 64)
    addresses = np.tile(np.arange(5) * 64, 3)
    total = simulate([cache], addresses).first.total
    assert total == Counts(15, 15, 15, 5)
    assert (total.conflict, total.capacity) == (0, 10)
    # A set keeps what the whole would have dropped.
    assert simulate([Cache(256, 1, 64)], addresses).first.total.conflict < 0


def test_what_is_written_goes_back_once():
    cache, far = Cache(128, 2, 64), Cache.fully_associative(128, 64)
    addresses = np.array([0, 0, 64, 128, 192])
    writes = np.array([True, True, False, False, False])
    near, next_level = simulate([cache, far], addresses, writes).levels
    assert near.written_back == 1
    assert next_level.written_back == 1
    assert (near.writes, near.reads.accesses) == (Counts(2, 1, 1, 1), 3)


def test_addresses_may_be_unsigned_and_strided():
    addresses = np.arange(0, 64 * 200, 64, dtype=np.uint64)[::2]
    assert simulate([L1], addresses) == simulate([L1], addresses.astype(np.int64).copy())
    highest = np.array([MAX_ADDRESS - 1], np.uint64)
    assert simulate([L1], highest).first.total.misses == 1


def test_an_empty_stream():
    report = simulate([L1, L1], np.array([], np.int64))
    assert report.first.total == Counts()
    assert report.first.total.ratio == 0.0


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([], "expected 1 to 8 caches, found 0"),
        ([L1] * 9, "expected 1 to 8 caches, found 9"),
        ([Cache(1024, 2, 48)], r"cache 1: expected a line of 2\^n bytes, found 48"),
        ([L1, Cache(1000, 2, 64)], "cache 2: expected whole sets of 2 lines of 64 bytes"),
        ([Cache(1024, 0, 64)], "cache 1: expected whole sets of 0 lines"),
        ([Cache(1 << 40, 8, 64)], r"less than 2\^28 lines"),
    ],
)
def test_caches_that_there_are_none_of_are_refused(levels, message):
    with pytest.raises(ValueError, match=message):
        simulate(levels, np.array([0]))


def test_streams_that_are_none_are_refused():
    one = np.array([0])
    with pytest.raises(ValueError, match=r"expected int64\[n\] or uint64\[n\], found float64\[1\]"):
        simulate([L1], np.array([0.0]))
    with pytest.raises(ValueError, match=r"writes: expected the addresses' shape \[1\]"):
        simulate([L1], one, np.array([True, False]))
    with pytest.raises(ValueError, match="names: expected at least one"):
        simulate([L1], one, names=())
    with pytest.raises(SimulationError, match=r"an address of 0 to \d+, found -4"):
        simulate([L1], np.array([8, -4]))
    with pytest.raises(SimulationError, match="a tensor's place of 0 to 0, found 1"):
        simulate([L1], one, tensors=np.array([1]))


def test_counts_of_an_unknown_tensor():
    level = LevelReport(L1, (Stream("a", False, Counts(1)), Stream("a", True, Counts(2))), 0)
    assert level.of("a").accesses == 3
    with pytest.raises(KeyError, match="expected one of a, found 'b'"):
        level.of("b")


def test_the_library_is_built_once():
    simulator._load.cache_clear()
    for _ in range(3):
        simulate([L1], np.array([0]))
    assert simulator._load.cache_info().misses == 1
