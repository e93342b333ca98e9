"""Decisions in traces: what they may be, how they are written, and that they change nothing."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from programs import matmul

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.schedule.decision import (
    DECISIONS,
    Decision,
    decisions_of,
    nearest_entry,
    read_decision,
    without_decisions,
)
from kernelwright.env.compiler.schedule.domain import Choice, Tile, divisors, primes
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace, print_trace
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Candidate, Directive, Language

TEXT = """\
sample_perfect_tile('i_tile', 64, 16, 4, 2, 8)
sample_partitioned_tile('j_tile', 64, 1, 16, 2, 2, 16)
sample_categorical('lanes', 8, 4, 8, 16)
sample_categorical('name', 'a', 'a', 'b')
sample_categorical('yes', True, False, True)
sample_compute_location('t', 'root', 'root', 'io')
split('i', 8)
"""


def one(text):
    (entry,) = parse_trace(text)
    return entry


def test_decisions_are_written_and_read_exactly():
    trace = parse_trace(TEXT)
    assert print_trace(trace) == TEXT
    assert without_decisions(trace) == (Directive("split", "i", (8,)),)
    found = decisions_of(trace)
    assert [d.entry for d in found.values()] == list(trace[:-1])
    assert found["i_tile"].value == (4, 2, 8)
    assert found["yes"].value == (True,)
    assert {each.op for each in trace[:-1]} == set(DECISIONS)
    candidate = Candidate(Language.SCHEDULE, trace)
    assert loads(Candidate, dumps(candidate)).payload == trace


def test_a_program_is_a_function_of_its_directives_alone():
    procedure, trace = matmul(64, 64, 64), parse_trace(TEXT)
    assert apply_trace(procedure, trace) == apply_trace(procedure, trace[-1:])
    assert Schedules(procedure).after(trace) == Schedules(procedure).after(trace[-1:])
    assert apply(procedure, trace[0]) is procedure


def test_decisions_are_no_part_of_a_key():
    trace = parse_trace(TEXT)
    with_them, without = (Candidate(Language.SCHEDULE, t) for t in (trace, trace[-1:]))
    assert with_them == without
    assert with_them.payload != without.payload
    other = Candidate(Language.SCHEDULE, (Directive("split", "i", (4,)),))
    assert other != without


def test_keys_of_schedules_are_what_they_always_were():
    trace = parse_trace("split('i', 8)\nsplit('j', 16, 'a', 'b')\nvectorize('b')")
    assert Candidate(Language.SCHEDULE, trace).key == "c5c2abd5600489c2907107599023e5c0"
    assert Candidate(Language.SCHEDULE, ()).key == "03296b4c944d32eb534ab140b9381f49"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sample_categorical('a', 5, 4, 8)", "a: expected one of 4, 8, found 5"),
        ("sample_categorical('a', 4.0, 4, 8)", "a: expected one of 4, 8, found 4.0"),
        ("sample_categorical('a', True, 0, 1)", "a: expected one of 0, 1, found True"),
        ("sample_categorical('a', 4, 4, 4)", "expected different options"),
        ("sample_categorical('a', 4)", "expected different options"),
        ("sample_categorical('a')", "expected a value and its domain"),
        ("sample_compute_location('t', 'x', 'root')", "expected one of 'root', found 'x'"),
        ("sample_perfect_tile('a', 64, 8, 2, 2, 8)", "found 2 * 2 * 8 = 32"),
        ("sample_perfect_tile('a', 64, 8, 2, 2, 16)", "at most 8 for the innermost, found 16"),
        ("sample_perfect_tile('a', 64, 8, -8, -8)", "expected 2 factors of 64"),
        ("sample_perfect_tile('a', 64, 8)", "1 to 16 factors"),
        ("sample_perfect_tile('a', 'x', 8, 8)", "expected a whole number, found 'x'"),
        ("sample_perfect_tile('a', 64, 0, 8, 8)", "found none of 64"),
        ("sample_partitioned_tile('a', 64, 1, 16, 8, 8)", "16 to divide the inner part, found 8"),
        ("sample_partitioned_tile('a', 64, 3, 16, 8, 8)", "a place from 0 to 2"),
        ("sample_partitioned_tile('a', 64, 1, 0, 8, 8)", "a factor of at least 1"),
        ("sample_partitioned_tile('a', 64, 1, 48, 8, 8)", "found none of 64"),
        ("sample_partitioned_tile('a', 64)", "expected a value and its domain"),
        ("sample_dice('a', 6)", "expected one of sample_perfect_tile, "),
    ],
)
def test_what_is_not_in_its_domain_is_refused(text, reason):
    entry = one(text)
    with pytest.raises(ScheduleError) as error:
        read_decision(entry)
    assert reason in str(error.value)
    assert error.value.op == entry.op
    with pytest.raises(ScheduleError):
        apply_trace(matmul(8, 8, 8), (entry,))
    with pytest.raises(ScheduleError):
        Schedules(matmul(8, 8, 8)).after((entry,))


def test_a_decision_is_made_once():
    text = "sample_categorical('a', 4, 4, 8)\n"
    with pytest.raises(ScheduleError, match="expected one decision a, found two"):
        decisions_of(parse_trace(2 * text))


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("sample_categorical('a', 7, 4, 8, 16)", "sample_categorical('a', 8, 4, 8, 16)"),
        (
            "sample_categorical('a', 'row', 'rows', 'q')",
            "sample_categorical('a', 'rows', 'rows', 'q')",
        ),
        ("sample_perfect_tile('a', 64, 8, 2, 2, 8)", "sample_perfect_tile('a', 64, 8, 4, 2, 8)"),
        ("sample_perfect_tile('a', 64, 8, 2, 3)", None),
        ("sample_categorical('a', 4, 4, 4)", None),
        ("sample_dice('a', 6)", None),
    ],
)
def test_the_nearest_value_of_a_domain(text, near):
    found = nearest_entry(one(text))
    assert found == (None if near is None else one(near))


# Drawing

TILES = [
    Tile(64, 3, max_inner=16),
    Tile(60, 2, max_inner=60),
    Tile(1, 4, max_inner=1),
    Tile(97, 2, max_inner=8),
    Tile(360, 4, position=2, inner_factor=12),
    Tile(64, 3, position=0, inner_factor=1),
    Tile(64, 2, position=2, inner_factor=1),
]


def all_ways(number, parts):
    if parts == 0:
        return [()] if number == 1 else []
    return [(d, *rest) for d in divisors(number) for rest in all_ways(number // d, parts - 1)]


@pytest.mark.parametrize("tile", TILES)
def test_tiles_are_uniform_over_all_that_fit(tile):
    fitting = [way for way in all_ways(tile.extent, tile.parts) if tile.fault(way) is None]
    rng = np.random.default_rng(0)
    count = 25 * len(fitting)
    counts = Counter(tile.draw(rng) for _ in range(count))
    assert set(counts) == set(fitting)
    # The statistic of the chi-square test; five standard deviations above its mean.
    statistic = sum((counts[way] - 25) ** 2 / 25 for way in fitting)
    freedom = len(fitting) - 1
    assert statistic <= freedom + 5 * math.sqrt(2 * freedom) + 1e-9


@pytest.mark.parametrize("tile", TILES)
def test_near_tiles_are_in_the_domain_and_reach_it_all(tile):
    fitting = {way for way in all_ways(tile.extent, tile.parts) if tile.fault(way) is None}
    start = tile.draw(np.random.default_rng(0))
    reached, waiting = {start}, [start]
    while waiting:
        for near in tile.near(waiting.pop()):
            assert tile.fault(near) is None
            if near not in reached:
                reached.add(near)
                waiting.append(near)
    assert reached == fitting
    assert all(0 <= tile.place(way) <= 1 for way in fitting)


def test_a_choice_keeps_to_its_probabilities():
    choice = Choice((1, 2, 4), (0.0, 0.25, 0.75))
    rng = np.random.default_rng(0)
    counts = Counter(choice.draw(rng)[0] for _ in range(4000))
    assert set(counts) == {2, 4}
    assert 0.72 < counts[4] / 4000 < 0.78
    assert choice.near((2,)) == ((4,),)  # 1 is never drawn
    assert choice.near((4,)) == ((2,),)
    words = Choice(("a", "b", "c"))
    assert words.near(("b",)) == (("a",), ("c",))
    assert [words.place((w,)) for w in "abc"] == [0, 0.5, 1]
    assert Choice((5,)).near((5,)) == ()
    assert Choice((5,)).place((5,)) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Choice(()),
        lambda: Choice((1, 2), (1.0,)),
        lambda: Choice((1, 2), (0.0, 0.0)),
        lambda: Choice((1, 2), (1.0, -1.0)),
        lambda: Choice((1, 2), (1.0, math.nan)),
        lambda: Choice((np.int64(1),)),
        lambda: Tile(0, 2, max_inner=4),
        lambda: Tile(8, 17, max_inner=4),
        lambda: Tile(9, 1, max_inner=4),
        lambda: Tile(8, 2, position=1, inner_factor=3),
    ],
)
def test_domains_without_a_value_are_refused(make):
    with pytest.raises(ValueError, match="expected"):
        make()


def test_true_and_one_are_different_options():
    choice = Choice((True, 1, 1.0))
    entry = Decision("a", choice, (1,)).entry
    assert read_decision(entry).value == (1,)
    assert [type(v) for v in entry.args] == [int, bool, int, float]
    assert choice.place((1,)) == 0.5


def test_divisors_and_primes():
    assert divisors(60) == (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)
    assert primes(60) == (2, 2, 3, 5)
    assert primes(1) == ()
