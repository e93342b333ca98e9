"""When sparse kernels pay, as the model sees it: trip counts, places that are read, and crossovers.
No test here depends on how fast anything is.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from programs import add, mul, tensor

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Cast,
    For,
    Load,
    Procedure,
    Store,
    Var,
    While,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.whiles import written_as_loops
from kernelwright.env.compiler.machine.affine import (
    Span,
    flat,
    flat_from_loads,
    mean,
    moves,
    span,
    steps_along,
)
from kernelwright.env.compiler.machine.cpu import estimate, load_machine
from kernelwright.env.compiler.machine.density import (
    LEAST_DENSITY,
    MOST_DENSITY,
    DenseWork,
    LibraryCosts,
    crossover,
    sparse_estimate,
)
from kernelwright.env.compiler.machine.footprint import lines_by_array
from kernelwright.env.compiler.machine.gathers import gathered_lines, gathering_depth
from kernelwright.env.compiler.machine.memory import MemoryCosts
from kernelwright.env.compiler.machine.merges import read_merges
from kernelwright.env.compiler.machine.nest import EstimateError, read_nest
from kernelwright.env.compiler.pipeline import lower as scheduled
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lengths import expected_counts, segments
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.program import SparseError
from kernelwright.env.compiler.sparse.storage import from_dense

MACHINE = load_machine("cpu-lecture")
NS = 1e-9
MEMORY = MemoryCosts(
    (1 << 14, 1 << 18, 1 << 24), (0.1 * NS, 0.4 * NS, 4 * NS), (0.2 * NS, 0.8 * NS, 8 * NS), NS, NS
)
LANES = """
cache_write("y", "i", "register")
split("j", 8, "", "", "partition")
rfactor("ji", "P", True)
set_scope("P", "register")
vectorize("ji")
vectorize("ji_start")
unroll("ji_final")
"""
ROWS = """
cache_write("C", "i", "register")
vectorize("j", 8)
unroll("jo")
vectorize("jz", 8)
unroll("jzo")
vectorize("C_write_out1", 8)
unroll("C_write_out1o")
"""
FACTORED = """
precompute("j", "T(i,j,k) * D(k,r)", "r")
set_scope("w", "register")
vectorize("r", 8)
unroll("ro")
vectorize("rz2", 8)
unroll("rz2o")
vectorize("r2", 8)
unroll("r2o")
"""


def spmv(n, stored, form="csr"):
    counts = {"A2": stored}
    sizes = {"i": n, "j": n}
    return program("y(i) = A(i,j) * x(j)", {"A": form}, sizes=sizes, counts=counts)


def spmm(n, width, stored):
    sizes = {"i": n, "k": n, "j": width}
    return program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr"}, sizes=sizes, counts={"A2": stored})


def spadd(n, one, other, statement="C(i,j) = A(i,j) + B(i,j)"):
    counts = {"A2": one, "B2": other, "C2": one + other}
    formats = dict.fromkeys("ABC", "csr")
    return program(statement, formats, sizes={"i": n, "j": n}, counts=counts)


def mttkrp(n, rank, counts):
    return program(
        "M(i,r) = T(i,j,k) * C(j,r) * D(k,r)",
        {"T": "csf"},
        sizes={"i": n, "j": n, "k": n, "r": rank},
        counts={f"T{level}": count for level, count in counts.items()},
    )


def nest_of(made, trace=""):
    """The nest of a program after a schedule, with the trips that its counts give."""
    procedure = scheduled(lower(made), parse_trace(trace)).procedure
    looped = written_as_loops(procedure)
    return read_nest(looped, read_merges(looped, segments(made)).numbers)


def estimated(made, trace="", memory=MEMORY, machine=MACHINE):
    procedure = scheduled(lower(made), parse_trace(trace)).procedure
    return sparse_estimate(procedure, machine, memory, segments(made))


def by_array(nest, name):
    return [access for access in nest.accesses if access.array.name == name]


# Lengths


def test_segments_are_as_long_as_counts_say_and_know_their_coordinates():
    assert segments(spmv(64, 640)) == {"A2_pos": (10.0, 64.0)}
    found = segments(mttkrp(16, 8, {1: 12, 2: 48, 3: 240}))
    assert found == {"T1_pos": (12.0, 16.0), "T2_pos": (4.0, 16.0), "T3_pos": (5.0, 16.0)}


def test_segments_of_a_matrix_with_rows_left_out():
    made = program(
        "y(i) = A(i,j) * x(j)",
        {"A": "dcsr"},
        sizes={"i": 100, "j": 50},
        counts={"A1": 20, "A2": 60},
    )
    assert segments(made) == {"A1_pos": (20.0, 100.0), "A2_pos": (3.0, 50.0)}


def test_segments_without_numbers_are_refused():
    made = program("y(i) = A(i,j) * x(j)", {"A": "csr"}, sizes={"i": 8, "j": 8})
    with pytest.raises(SparseError, match="expected sizes and counts in numbers, found"):
        segments(made)


@pytest.mark.parametrize("density", [0.002, 0.05, 0.4])
@pytest.mark.parametrize("words", ["csr", "dcsr", "csf", "csc"])
def test_expected_counts_are_those_of_random_tensors(words, density):
    shape = (24, 30, 36) if words == "csf" else (120, 180)
    form = parse_format(words, len(shape))
    rng = np.random.default_rng(7)
    totals: dict[int, int] = {}
    for _ in range(5):
        dense = np.where(rng.random(shape) < density, 1.0, 0.0)
        for name, array in from_dense(form, dense).arguments("A").items():
            if name.endswith("_crd"):
                totals[int(name[1])] = totals.get(int(name[1]), 0) + array.size
    expected = expected_counts(form, shape, density)
    assert set(expected) == set(totals)
    for level, count in expected.items():
        assert totals[level] / 5 == pytest.approx(count, rel=0.12)


def test_expected_counts_at_the_ends():
    form = parse_format("csf", 3)
    assert expected_counts(form, (4, 5, 6), 1.0) == {1: 4, 2: 20, 3: 120}
    assert expected_counts(form, (4, 5, 6), 0.0) == {1: 0, 2: 0, 3: 0}


# Trips by array


def length(name="A2_pos", row="i"):
    after, before = (Load(name, (add(Var(row), whole(n)),)) for n in (1, 0))
    return Binary("sub", Cast("int64", after), Cast("int64", before))


def test_a_rows_length_is_that_of_its_array_and_its_parts_follow():
    loaded = {"A2_pos": 21.0, "B2_pos": 5.0}
    assert mean(length(), {"i": 4.0}, loaded) == 21
    assert mean(length("B2_pos"), {"i": 4.0}, loaded) == 5
    eights = Binary("mul", Binary("floordiv", length(), whole(8)), whole(8))
    assert mean(eights, {"i": 4.0}, loaded) == 16
    assert mean(Binary("sub", length(), eights), {"i": 4.0}, loaded) == 5


def test_rows_of_different_arrays_have_no_length_together():
    mixed = Binary("sub", Load("A2_pos", (Var("i"),)), Load("B2_pos", (Var("i"),)))
    assert mean(mixed, {"i": 4.0}, {"A2_pos": 21.0, "B2_pos": 5.0}) == 16


def test_an_array_without_a_length_is_named():
    made = spmv(64, 640)
    with pytest.raises(EstimateError, match="found j in 'A2_pos'"):
        sparse_estimate(lower(made), MACHINE, MEMORY, {})
    with pytest.raises(EstimateError, match="found j in 'A2_pos'"):
        estimate(lower(made), MACHINE, loaded_trips={})


def test_a_mapping_says_the_same_as_one_number_where_there_is_one_array():
    procedure = lower(spmv(64, 640))
    assert estimate(procedure, MACHINE, loaded_trips={"A2_pos": 10.0}) == estimate(
        procedure, MACHINE, loaded_trips=10.0
    )


def test_each_level_has_its_own_trips():
    made = mttkrp(16, 8, {1: 12, 2: 48, 3: 240})
    trips = nest_of(made).trips
    assert (trips["i"], trips["j"], trips["k"]) == (12, 4, 5)


# Merges


def counted(n, one, other, seeds=20):
    """How often the loops of a union run for random segments: together, and each by itself."""
    totals = np.zeros(3)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        a, b = (np.sort(rng.choice(n, size, replace=False)) for size in (one, other))
        end = min(a[-1], b[-1])
        totals += (np.union1d(a[a <= end], b[b <= end]).size, (a > end).sum(), (b > end).sum())
    return totals / seeds


@pytest.mark.parametrize(("one", "other"), [(40, 40), (200, 200), (20, 300)])
def test_merges_run_as_often_as_random_segments_have_them(one, other):
    n = 1000
    looped = written_as_loops(lower(spadd(n, n * one, n * other)))
    found = read_merges(looped, segments(spadd(n, n * one, n * other)))
    together, rest, other_rest = (found.trips[f"while{k}'"] for k in range(3))
    seen = counted(n, one, other)
    assert together + rest + other_rest == pytest.approx(seen.sum(), rel=0.05)
    assert rest == pytest.approx(seen[1], rel=0.6, abs=1)
    assert other_rest == pytest.approx(seen[2], rel=0.6, abs=1)
    assert found.steps == pytest.approx(n * together)
    assert found.exits == 3 * n


def test_what_is_counted_in_merges_is_known_after_them():
    n, each = 1000, 100
    made = spadd(n, n * each, n * each)
    looped = written_as_loops(lower(made))
    found = read_merges(looped, segments(made))
    assert found.numbers["C2_next"] == pytest.approx(n * (190 + 2 * 100 / 101))
    # What is left of the arrays of the result is filled with zeros.
    assert found.trips["r"] == pytest.approx(2 * n * each - found.numbers["C2_next"])


def test_choices_in_merges_are_tests_that_memory_decides():
    union = spadd(64, 640, 640)
    product = spadd(64, 640, 640, "C(i,j) = A(i,j) * B(i,j)")
    tests = []
    for made in (union, product):
        looped = written_as_loops(lower(made))
        tests.append(read_merges(looped, segments(made)).tests)
    assert tests[0] == 0
    # One for each step of the merge.
    assert tests[1] == pytest.approx(64 * 64 * (1 - (1 - 10 / 64) ** 2))
    assert estimated(union).branch_s == pytest.approx(64 * 3 * MEMORY.mispredict_s)


def test_a_while_over_something_else_is_refused():
    step = Store("at", (), whole(1), "add")
    loop = While(Binary("lt", Load("at", ()), whole(5)), step)
    tensors = (tensor("at", dtype="int64", role="output"),)
    procedure = Procedure("f", (), tensors, loop)
    with pytest.raises(EstimateError, match="expected a while over positions"):
        read_merges(written_as_loops(procedure), {"A2_pos": (1.0, 2.0)})


# Places that are read


def row(name, place):
    return Cast("int64", Load(name, (place,)))


def test_offsets_keep_what_is_read_beside_their_variables():
    at = add(row("A2_pos", Var("i")), Var("j"))
    offset = flat_from_loads((at, Var("k")), (100, 8))
    assert flat((at, Var("k")), (100, 8)) is None
    assert (offset.factor("j"), offset.factor("k")) == (8, 1)
    assert all(moves(offset, var) for var in "ijk")
    assert not moves(offset, "r")
    plain = (Binary("mul", Var("i"), whole(3)), Var("j"))
    assert flat_from_loads(plain, (9, 5)) == flat(plain, (9, 5))
    assert flat_from_loads((Binary("mul", Var("i"), Var("j")),), (9,)) is None


def test_a_scalar_that_is_read_moves_with_every_loop():
    offset = flat_from_loads((Load("next", ()),), (100,))
    assert moves(offset, "i")


def test_rows_follow_one_another_and_coordinates_may_be_anywhere():
    ordered = frozenset({"A2_pos", "next"})
    stored = add(row("A2_pos", Var("i")), Var("j"))
    assert span(stored, {"j": 10.0}, 1000, ordered) == Span(0, 9, 10.0)
    assert span(stored, {"i": 20.0, "j": 10.0}, 1000, ordered) == Span(0, 199, 200.0)
    coordinate = row("A2_crd", stored)
    assert span(coordinate, {"j": 10.0}, 1000, ordered) == Span(0, 999, 10.0)
    assert span(Load("next", ()), {"i": 20.0, "j": 10.0}, 150, ordered) == Span(0, 149, 150.0)
    assert steps_along(stored, ordered)
    assert not steps_along(coordinate, ordered)


def test_streams_are_walked_once_and_rows_are_found_for_every_element():
    n, width, stored = 256, 64, 256 * 20
    nest = nest_of(spmm(n, width, stored), ROWS)
    found = by_array(nest, "B")
    assert [gathering_depth(access, nest) for access in found] == [2]
    assert gathered_lines(found, nest, 64) == stored * width * 8 / 64
    streams = [a for name in ("A_vals", "A2_crd", "C") for a in by_array(nest, name)]
    assert all(gathering_depth(access, nest) is None for access in streams)
    lines = lines_by_array(nest, streams, MACHINE.caches[0])
    assert lines["A_vals"] == pytest.approx(stored * 8 / 64, rel=0.01)
    assert lines["A2_crd"] == pytest.approx(stored * 4 / 64, rel=0.01)
    assert lines["C"] == pytest.approx(n * width * 8 / 64, rel=0.01)


def test_an_element_that_is_found_alone_is_a_line():
    nest = nest_of(spmv(1 << 14, 1 << 18))
    assert gathered_lines(by_array(nest, "x"), nest, 64) == 1 << 18


def test_lanes_find_theirs_one_by_one():
    nest = nest_of(spmv(1 << 14, 1 << 18), LANES)
    assert gathered_lines(by_array(nest, "x"), nest, 64) == pytest.approx(1 << 18, rel=0.01)


def test_factors_of_a_tree_are_found_by_level():
    counts = {1: 16, 2: 128, 3: 1280}
    nest = nest_of(mttkrp(16, 32, counts), FACTORED)
    assert gathered_lines(by_array(nest, "D"), nest, 64) == 1280 * 4
    assert gathered_lines(by_array(nest, "C"), nest, 64) == 128 * 4


def test_results_that_are_appended_are_streams():
    n = 256
    nest = nest_of(spadd(n, 20 * n, 20 * n))
    for name in ("A_vals", "B2_crd", "C_vals", "C2_crd"):
        assert all(gathering_depth(access, nest) is None for access in by_array(nest, name))


# What the core does


def test_a_sum_that_starts_anew_in_each_iteration_holds_up_no_other():
    def dots(begins):
        start = (Store("s", (), Load("zero", ())),) if begins else ()
        terms = tuple(
            Store("s", (), mul(Load("x", (add(Var("i"), whole(k)),)), Load("z", ())), "add")
            for k in range(4)
        )
        body = Block((*start, *terms, Store("y", (Var("i"),), Load("s", ()))))
        tensors = (
            tensor("x", 1 << 12),
            tensor("z"),
            tensor("zero"),
            tensor("s", role="output"),
            tensor("y", 1 << 11, role="output"),
        )
        return estimate(Procedure("f", (), tensors, For("i", whole(1 << 11), body)), MACHINE)

    anew, carried = dots(True), dots(False)
    assert anew.chain_s < carried.chain_s / 2


def test_lanes_shorten_the_core_time_of_long_rows():
    made = spmv(1024, 1024 * 256)
    assert estimated(made, LANES).core_s < estimated(made).core_s / 3


# Memory


def test_a_curve_is_straight_between_its_points_and_level_beyond_them():
    assert MEMORY.stream(1) == 0.1 * NS
    assert MEMORY.stream(1 << 18) == pytest.approx(0.4 * NS)
    assert MEMORY.stream(1 << 16) == pytest.approx(0.2 * NS)
    assert MEMORY.gathered(1 << 30) == 8 * NS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes_bytes": (4, 4, 8)}, "sizes_bytes: expected at least one, ascending, found"),
        ({"sizes_bytes": ()}, "sizes_bytes: expected at least one"),
        ({"stream_s": (1.0,)}, r"stream_s: expected 3 times > 0, found \(1.0,\)"),
        ({"gathered_s": (1.0, -1.0, 1.0)}, "gathered_s: expected 3 times > 0"),
        ({"merge_step_s": 0.0}, "merge_step_s: expected a time > 0, found 0.0"),
        ({"mispredict_s": math.inf}, "mispredict_s: expected a time > 0, found inf"),
    ],
)
def test_costs_that_none_can_have_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(MEMORY, **change)


# Times


def test_gathers_cost_what_their_arrays_size_says():
    small, large = estimated(spmm(64, 8, 64 * 8)), estimated(spmm(1 << 14, 8, 64 * 8))
    assert small.gathered_s == 0  # it lies in the first cache
    size = (1 << 14) * 8 * 8
    assert large.gathered_s == pytest.approx(64 * 8 * MEMORY.gathered(size))


def test_lines_add_up_and_the_core_works_beside_them():
    slow = replace(MEMORY, stream_s=(NS, NS, NS), gathered_s=(9 * NS, 9 * NS, 9 * NS))
    found = estimated(spmm(4096, 64, 4096 * 40), ROWS, slow)
    assert found.time_s == found.stream_s + found.gathered_s > found.core_s
    found = estimated(spadd(256, 256 * 20, 256 * 20), memory=replace(MEMORY, merge_step_s=9 * NS))
    assert found.time_s == found.merge_s + found.branch_s > found.stream_s


def test_sums_that_wait_for_themselves_also_wait_for_streams():
    made = spmv(4096, 4096 * 200)
    plain, lanes = estimated(made), estimated(made, LANES)
    assert plain.time_s == plain.chain_s + plain.stream_s > plain.core_s
    assert lanes.time_s < plain.time_s / 2


@pytest.mark.parametrize("kind", ["spmv", "spmm", "spadd", "mttkrp"])
def test_time_grows_with_density(kind):
    n, form = 256, parse_format("csf", 3)
    makes = {
        "spmv": lambda d: estimated(spmv(4 * n, round(16 * n * n * d)), LANES),
        "spmm": lambda d: estimated(spmm(n, 64, round(n * n * d)), ROWS),
        "spadd": lambda d: estimated(spadd(n, round(n * n * d), round(n * n * d))),
        "mttkrp": lambda d: estimated(
            mttkrp(32, 32, expected_counts(form, (32, 32, 32), d)), FACTORED
        ),
    }
    times = [makes[kind](density).time_s for density in (0.02, 0.05, 0.1, 0.3, 0.6, 0.9)]
    assert times == sorted(times)


def test_dense_work_is_products_packing_and_lines():
    library = LibraryCosts(1e9, 2e-9)
    product = DenseWork(product_flops=3e9, packed=1e6)
    assert product.time_s(MACHINE, MEMORY, library) == pytest.approx(3 + 2e-3)
    read = DenseWork(moved_bytes=64e6, working_set=1 << 30)
    assert read.time_s(MACHINE, MEMORY, library) == pytest.approx(1e6 * 4 * NS)
    busy = DenseWork(flops=MACHINE.peak_flops(8), moved_bytes=64, working_set=64)
    assert busy.time_s(MACHINE, MEMORY, library) == pytest.approx(1)


def test_times_cross_where_they_are_equal():
    assert crossover(lambda d: d, 0.25) == pytest.approx(0.25, rel=0.03)
    assert crossover(lambda d: d * d, 1e-6) == pytest.approx(1e-3, rel=0.03)
    assert crossover(lambda d: d, 2.0) == MOST_DENSITY
    assert crossover(lambda d: 1 + d, 0.5) == LEAST_DENSITY


def test_a_dense_operand_that_fits_a_cache_is_as_fast_at_a_lower_density():
    """What is read along costs less there, and gathers cost the same."""
    library = LibraryCosts(1e9, 1e-9)

    def pays_until(dense_size):
        work = DenseWork(flops=0, moved_bytes=dense_size, working_set=dense_size)
        dense = work.time_s(MACHINE, MEMORY, library) / dense_size * 2048 * 2048 * 8
        return crossover(
            lambda d: estimated(spmv(2048, round(2048 * 2048 * d)), LANES).time_s, dense
        )

    assert pays_until(1 << 18) < pays_until(1 << 25) / 2
