from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import add, elementwise, f32, matmul, mul, tensor

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    Cast,
    Const,
    For,
    Load,
    LoopKind,
    Procedure,
    Store,
    Unary,
    Var,
    loops,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.machine.affine import Span, affine, flat, interval, span
from kernelwright.env.compiler.machine.cpu import (
    BOUNDS,
    CPUS_DIR,
    CpuMachine,
    estimate,
    load_machine,
    machine_names,
    machine_sha256,
)
from kernelwright.env.compiler.machine.footprint import crossings, footprint
from kernelwright.env.compiler.machine.hierarchy import Cache
from kernelwright.env.compiler.machine.nest import (
    Access,
    Array,
    EstimateError,
    Guards,
    Nest,
    read_nest,
)
from kernelwright.env.compiler.machine.outer import OuterLanes
from kernelwright.env.compiler.machine.peel import Peeling
from kernelwright.env.compiler.machine.recurrence import Update, recurrence
from kernelwright.env.compiler.machine.strides import Strides
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace
from kernelwright.env.options import OptionError
from kernelwright.env.types import Directive

MACHINE = load_machine("cpu-lecture")
IKJ = "reorder('i', 'k', 'j')"
LANES = f"{IKJ}\nsplit('j', 16)\nvectorize('ji')"


def square(n):
    """C = A·B as the tensor front end lowers it."""
    a, b = te.placeholder("A", (n, n)), te.placeholder("B", (n, n))
    k = te.reduce_axis("k", n)
    c = te.compute(
        "C", (n, n), lambda i, j: te.reduce_sum(a[i, k.value] * b[k.value, j], k), [a, b]
    )
    return te.lower("matmul", [c])


def tile(rows, vectors):
    """The register tile of docs/schedules.md."""
    return f"""
split('i', {rows})
split('j', {16 * vectors})
split('ji', 16, 'ju', 'jv')
reorder('jo', 'io', 'k', 'ii', 'ju', 'jv')
unroll('ii')
unroll('ju')
vectorize('jv')
"""


def row_sum(m, n):
    x, k = te.placeholder("x", (m, n)), te.reduce_axis("k", n)
    return te.lower(
        "row_sum", [te.compute("y", (m,), lambda i: te.reduce_sum(x[i, k.value], k), [x])]
    )


def transpose(n):
    x = te.placeholder("x", (n, n))
    return te.lower("transpose", [te.compute("y", (n, n), lambda i, j: x[j, i], [x])])


def copy(n):
    x = te.placeholder("x", (n, n))
    return te.lower("copy", [te.compute("y", (n, n), lambda i, j: x[i, j], [x])])


def columns(rows, pitch):
    """The sums of the first columns of a matrix, each walked down."""
    x, k = te.placeholder("x", (rows, pitch)), te.reduce_axis("k", rows)
    total = te.compute("y", (512,), lambda j: te.reduce_sum(x[k.value, j], k), [x])
    return te.lower("columns", [total])


def gelu(n):
    x = te.placeholder("x", (n,))
    value = lambda i: x[i] * 0.5 * (1.0 + te.erf(x[i] * 0.70710678))  # noqa: E731
    return te.lower("gelu", [te.compute("y", (n,), value, [x])])


def model(procedure, trace="", machine=MACHINE, **options):
    return estimate(lower(procedure, parse_trace(trace)).procedure, machine, **options)


# Orderings that hold on real machines


def test_a_register_tile_beats_lanes_and_lanes_beat_plain_loops():
    plain = replace(MACHINE, auto_vector_bytes=4)  # a compiler that leaves plain loops alone
    naive, lanes, best = (model(square(512), t, plain) for t in ("", LANES, tile(8, 2)))
    assert naive.time_s > 5 * lanes.time_s
    assert lanes.time_s > 1.5 * best.time_s
    assert naive.bound == "chain"
    assert best.bound == "flops"


def test_the_register_tile_is_near_the_peak():
    flops, best = 2 * 512**3, model(square(512), tile(8, 2))
    assert best.flops == pytest.approx(flops, rel=1e-9)
    peak_s = flops / MACHINE.peak_flops()
    assert peak_s <= best.time_s < 2 * peak_s


def test_walking_down_columns_is_the_worst_order():
    times = {
        order: model(square(256), f"reorder{order}").time_s
        for order in (("i", "k", "j"), ("i", "j", "k"), ("j", "k", "i"))
    }
    assert times["j", "k", "i"] == max(times.values())
    assert times["i", "k", "j"] == min(times.values())


def test_several_chains_hide_the_latency_of_one():
    single = model(row_sum(256, 256))
    several = model(row_sum(256, 256), "split('i', 4)\nreorder('io', 'k', 'ii')\nunroll('ii')")
    assert single.bound == "chain"
    assert several.chain_s == pytest.approx(single.chain_s / 4, rel=0.01)
    assert several.time_s < single.time_s / 2
    # 256 sums of 256 terms, each waiting for the addition before it.
    assert single.chain_s == pytest.approx(256 * 256 * MACHINE.add_latency / MACHINE.clock_hz)


def test_short_chains_overlap_with_the_next_ones():
    assert model(row_sum(4096, 16)).chain_s < model(row_sum(256, 256)).chain_s / 2


@pytest.mark.parametrize("n", [256, 1000, 2048, 4096])
def test_transposes_beyond_a_cache_are_better_in_tiles(n):
    whole_rows, tiles = model(transpose(n)), model(transpose(n), "tile('i', 'j', 8, 8)")
    assert tiles.time_s < whole_rows.time_s
    assert tiles.l2_bytes < whole_rows.l2_bytes


def test_a_transpose_in_the_first_cache_gains_nothing_from_tiles():
    whole_rows, tiles = model(transpose(48)), model(transpose(48), "tile('i', 'j', 8, 8)")
    assert tiles.l2_bytes == whole_rows.l2_bytes


def test_lanes_never_slow_down_a_function_that_has_none():
    plain = model(gelu(1 << 12))
    for lanes in (4, 8, 16):
        vectorized = model(gelu(1 << 12), f"split('i', {lanes})\nvectorize('ii')")
        assert vectorized.time_s <= plain.time_s


def test_lanes_use_the_pipes():
    n = 1 << 10
    machine = replace(MACHINE, auto_vector_bytes=4)  # a compiler that leaves plain loops alone
    program = elementwise(mul(Load("x", (Var("i"),)), f32(2.0)), n)
    plain = model(program, machine=machine)
    lanes = model(program, "split('i', 16)\nvectorize('ii')", machine)
    assert plain.vector_efficiency == pytest.approx(4 / MACHINE.simd_bytes)
    assert lanes.vector_efficiency == 1
    assert lanes.core_s < plain.core_s / 4


# Units


def test_sums_that_need_more_registers_than_there_are_go_to_the_stack():
    fits, spills = model(square(256), tile(8, 2)), model(square(256), tile(16, 4))
    assert fits.access_s < spills.access_s
    assert fits.core_s < spills.core_s
    assert spills.bound in ("loads", "stores")


def test_unrolling_takes_the_loop_s_own_work_away():
    trace = "split('k', 16)"
    plain, unrolled = (model(square(64), t) for t in (trace, f"{trace}\nunroll('ki')"))
    assert unrolled.overhead_s < plain.overhead_s
    assert unrolled.time_s <= plain.time_s


def test_threads_share_the_work_but_not_the_memory():
    tiles = f"{tile(8, 2)}\nparallel('jo')"
    one, four = model(square(512), tiles), model(square(512), tiles, threads=4)
    assert four.core_s < one.core_s / 3
    assert four.core_s > one.core_s / 4
    stream = elementwise(Load("x", (Var("i"),)), 1 << 22)
    alone = model(stream, "parallel('i')")
    assert model(stream, "parallel('i')", threads=4).time_s == alone.time_s
    assert alone.bound == "dram"


def test_a_short_parallel_loop_is_not_worth_its_threads():
    program = elementwise(Load("x", (Var("i"),)), 256)
    parallel = model(program, "parallel('i')", threads=4)
    assert parallel.time_s > model(program).time_s
    assert parallel.time_s > MACHINE.fork_s


def test_more_threads_than_iterations_do_not_help():
    trace = f"{tile(8, 2)}\nparallel('jo')"
    assert model(square(64), trace, threads=2) == model(square(64), trace, threads=3)


def test_a_scan_waits_for_itself():
    n = 1 << 14
    y, x = Load("y", (Var("i"),)), Load("x", (add(Var("i"), whole(1)),))
    nest = For("i", whole(n - 1), Store("y", (add(Var("i"), whole(1)),), add(y, x)))
    tensors = (tensor("x", n), tensor("y", n, role="output"))
    start = Store("y", (whole(0),), Load("x", (whole(0),)))
    scan = Procedure("scan", (), tensors, Block((start, nest)))
    found = estimate(scan, MACHINE)
    assert found.bound == "chain"
    assert found.chain_s == pytest.approx((n - 1) * MACHINE.add_latency / MACHINE.clock_hz)


@pytest.mark.parametrize(("name", "cost"), [("exp", "exp_cycles"), ("tanh", "tanh_cycles")])
def test_functions_cost_what_the_table_says(name, cost):
    n = 4096
    value = Unary(name, Load("x", (Var("i"),)))
    found = model(elementwise(value, n))
    expected = n * getattr(MACHINE, cost) / MACHINE.clock_hz
    assert found.flop_s == pytest.approx(expected, rel=0.05)


def test_a_fused_loop_pays_for_its_divisions():
    plain, fused = model(copy(24)), model(copy(24), "fuse('i', 'j')")
    assert fused.dram_bytes == plain.dram_bytes
    assert fused.issue_s > plain.issue_s


def seidel(n, rows):
    """A sweep of a five-point Gauss-Seidel iteration, ``rows`` rows abreast, each a column behind
    the one before.
    """
    row = add(mul(Var("block"), whole(rows)), Var("r"))
    column = add(Binary("sub", Var("j"), Var("r")), whole(rows))

    def at(down, right):
        return add(row, whole(1 + down)), add(column, whole(right))

    near = [Load("u", at(*place)) for place in ((0, -1), (0, 1), (0, 0), (-1, 0), (1, 0))]
    store = Store("u", at(0, 0), mul(add(*near), Const(0.2, "float64")))
    jam = For("r", whole(rows), store, LoopKind.UNROLLED)
    nest = For("block", whole(n // rows), For("j", whole(n), jam))
    u = tensor("u", n + 2, n + 2 * rows + 1, dtype="float64", role="output")
    return Procedure("seidel", (), (u,), nest)


def test_a_sweep_waits_for_its_chain_and_rows_abreast_share_the_wait():
    """COMPILERS.md, section 5: 4.2 ns an update, 1.75 with four rows jammed."""
    n = 240
    each = {rows: estimate(seidel(n, rows), MACHINE) for rows in (1, 2, 4)}
    ns = {rows: 1e9 * found.core_s / n**2 for rows, found in each.items()}
    assert each[1].bound == "chain"
    assert ns[1] == pytest.approx(4.2, rel=0.05)
    # From the left neighbour to the new value: four additions and a product.
    assert each[1].chain_s == pytest.approx(n**2 * 5 * MACHINE.add_latency / MACHINE.clock_hz)
    assert ns[2] == pytest.approx(ns[1] / 2, rel=0.05)
    assert ns[1] / 4.5 < ns[4] < ns[1] / 2.3


def waits(store, copies=(), width=1, size=64):
    shape = (size, size)
    arrays = {"u": Array("u", shape, 4, False)}
    nest = Nest({"i": 8.0, "j": 8.0, "r": 4.0}, frozenset(), arrays, (), ())
    return recurrence([Update(store, copies, width)], "i", nest)


def test_a_recurrence_is_its_slowest_circle():
    i, j = Var("i"), Var("j")

    def relax(*shifts, row=i):
        near = [Load("u", (add(row, whole(a)), add(j, whole(b)))) for a, b in shifts]
        return Store("u", (row, j), add(f32(1.0), *near))

    assert waits(relax((-1, 0))) == 1
    assert waits(relax((-2, 0))) == 0.5
    assert waits(relax((-1, 0), (-2, 0))) == 2  # added first, so two additions from the end
    assert waits(relax((0, 0), (1, 0), (0, -1))) == 0  # itself, later rows, another column
    # Eight columns at once: the neighbour of the row before is among them.
    assert waits(relax((-1, 3))) == 0
    assert waits(relax((-1, 3)), width=8) == 1
    # Four rows in an iteration, each after the one before: a chain through all of them.
    rows = relax((-1, 0), row=add(mul(i, whole(4)), Var("r")))
    assert waits(rows, (("r", 4),)) == 4
    apart = relax((-4, 0), row=add(mul(i, whole(4)), Var("r")))
    assert waits(apart, (("r", 4),)) == 1
    gathered = Store("u", (i, j), Load("u", (Load("k", (i,)), j)))
    assert waits(gathered) == 0


# What a compiler does by itself


def test_neighbouring_sums_run_in_lanes():
    """COMPILERS.md, section 2: 10.8 GFLOP/s of plain loops in order i, j, k at 1024."""
    found = model(square(1024))
    assert found.flops == 2 * 1024**3
    assert 2 * 1024**3 / found.time_s == pytest.approx(10.8e9, rel=0.25)
    alone = model(square(1024), machine=replace(MACHINE, auto_vector_bytes=4))
    assert alone.time_s > 4 * found.time_s


@pytest.mark.parametrize("columns", [8, 11, 19, 7])
def test_sums_in_lanes_keep_their_meaning(columns):
    rng = np.random.default_rng(0)
    inputs = {"A": rng.random((3, 4), np.float32), "B": rng.random((4, columns), np.float32)}
    nest = apply_trace(matmul(3, columns, 4), parse_trace("reorder('i', 'j', 'k')"))
    in_lanes = OuterLanes(32).apply(nest)
    kinds = [loop.kind for loop in loops(in_lanes)]
    assert (LoopKind.VECTORIZED in kinds) == (columns >= 8)
    want, got = (interpret(p, inputs)["C"] for p in (nest, in_lanes))
    assert np.array_equal(want, got)


def test_what_is_no_sum_of_neighbours_is_left_alone():
    traces = ["", "unroll('j')", "reorder('i', 'j', 'k')\nparallel('j')"]
    for trace in traces:
        nest = apply_trace(matmul(3, 16, 4), parse_trace(trace))
        assert OuterLanes(32).apply(nest) == nest
    assert OuterLanes(32).apply(row_sum(16, 16)) == row_sum(16, 16)  # x moves by a row
    extreme = te.placeholder("x", (16, 16))
    k = te.reduce_axis("k", 16)
    most = te.compute("y", (16,), lambda i: te.reduce_max(extreme[k.value, i], k), [extreme])
    assert OuterLanes(32).apply(te.lower("most", [most])) == te.lower("most", [most])


def test_a_vector_wider_than_a_register_goes_through_memory():
    trace = "split('i', 4)\nsplit('j', {})\nreorder('jo', 'io', 'k', 'ii', 'ji')\nunroll('ii')\n"
    fits, wide = (model(square(256), f"{trace.format(lanes)}vectorize('ji')") for lanes in (16, 32))
    assert wide.core_s > 3 * fits.core_s
    assert wide.access_s > 3 * fits.access_s


def test_lines_that_jump_are_waited_for():
    expecting = replace(MACHINE, l3_scattered_s=1e-12, dram_scattered_s=1e-12)
    for procedure, slower in ((transpose(2048), True), (copy(2048), False)):
        found, fast = model(procedure), model(procedure, machine=expecting)
        assert (found.time_s > 1.2 * fast.time_s) == slower


@pytest.mark.parametrize(
    ("pitch", "order", "depth", "scattered"),
    [
        (1024, "ij", 0, False),  # along the rows
        (1024, "ji", 0, True),  # down the columns, 4096 bytes at a time
        (512, "ji", 0, False),  # 2048 bytes at a time
        (1024, "ji", 2, True),
        (1024, "ij", 2, False),
    ],
)
def test_what_a_prefetcher_expects(pitch, order, depth, scattered):
    array = Array("x", (512, pitch), 4, True)
    access = Access(array, (Var("i"), Var("j")), tuple(order), 0, 1.0, False)
    nest = Nest({"i": 512.0, "j": float(pitch)}, frozenset(), {"x": array}, (), (access,))
    assert Strides(nest).are_scattered([access], depth) is scattered


def test_a_few_rows_that_go_along_are_streams():
    array = Array("x", (512, 1024), 4, True)
    for rows, along, scattered in ((16, 1024, False), (64, 1024, True), (16, 8, True)):
        access = Access(array, (Var("r"), Var("j")), ("j", "r"), 0, 1.0, False)
        nest = Nest({"j": along, "r": rows}, frozenset(), {"x": array}, (), (access,))
        assert Strides(nest).are_scattered([access], 1) is scattered
    loaded = Access(array, (Load("k", (Var("j"),)), Var("j")), ("j",), 0, 1.0, False)
    assert Strides(nest).are_scattered([loaded], 1)


# What a compiler does by itself: peeling


def test_short_innermost_loops_are_written_out():
    trace = tile(8, 2).replace("unroll('ii')", "").replace("unroll('ju')", "")
    assert model(square(256), trace) == model(square(256), tile(8, 2))
    long = "split('i', 16)\nsplit('j', 16)\nreorder('jo', 'io', 'k', 'ii', 'ji')\nvectorize('ji')"
    assert model(square(256), long).time_s > model(square(256), f"{long}\nunroll('ii')").time_s


def unrolled_by(peeling, procedure):
    return [loop.var for loop in loops(peeling.apply(procedure)) if loop.kind == "unrolled"]


def test_peeling_goes_from_the_inside_out_up_to_its_limits():
    nest = matmul(2, 4, 8)  # i, k and j run 2, 8 and 4 times; before them i0 and j0
    assert unrolled_by(Peeling(8, 64), nest) == ["i0", "j0", "i", "k", "j"]
    assert unrolled_by(Peeling(8, 32), nest) == ["i0", "j0", "k", "j"]
    assert unrolled_by(Peeling(4, 64), nest) == ["i0", "j0", "j"]
    assert unrolled_by(Peeling(1, 64), nest) == []


def test_peeling_leaves_what_a_directive_decided():
    trace = "parallel('i')\nvectorize('j')"
    kinds = {
        loop.var: loop.kind for loop in loops(apply_trace(matmul(2, 4, 8), parse_trace(trace)))
    }
    peeled = Peeling(8, 64).apply(apply_trace(matmul(2, 4, 8), parse_trace(trace)))
    found = {loop.var: loop.kind for loop in loops(peeled)}
    assert (found["i"], found["j"]) == (kinds["i"], kinds["j"]) == ("parallel", "vectorized")
    assert found["k"] == "unrolled"


def test_guards_over_the_same_loops_hold_one_another():
    trips = {"a": 8, "b": 3, "c": 10}
    outer = Binary("lt", Var("a"), whole(7))
    inner = Binary("lt", add(mul(Var("a"), whole(3)), Var("b")), whole(20))
    other = Binary("lt", Var("c"), whole(5))
    guards = Guards().inside(outer, trips).inside(inner, trips)
    assert guards.share == pytest.approx(20 / 24)
    assert guards.inside(other, trips).share == pytest.approx(20 / 24 / 2)
    assert Guards().inside(Binary("and", outer, other), trips).share == pytest.approx(7 / 16)
    loaded = Binary("lt", Load("x", (Var("a"),)), whole(1))
    assert Guards().inside(loaded, trips).share == 1


# Bytes


def test_streams_move_every_byte_once():
    n = 1 << 20
    found = model(elementwise(Load("x", (Var("i"),)), n))
    assert found.dram_bytes == found.l3_bytes == found.l2_bytes == 8 * n
    assert found.time_s == pytest.approx(8 * n / MACHINE.dram_bytes_per_s)


def test_what_fits_the_cache_comes_from_memory_once():
    n = 128
    for trace in ("", IKJ, tile(8, 2)):
        assert model(square(n), trace).dram_bytes == 3 * 4 * n * n


def test_strided_accesses_take_whole_lines():
    rows, columns = 1 << 12, 1 << 12
    x, y = tensor("x", rows, columns), tensor("y", rows, role="output")
    column = For("i", whole(rows), Store("y", (Var("i"),), Load("x", (Var("i"), whole(7)))))
    found = estimate(Procedure("f", (), (x, y), column), MACHINE)
    assert found.dram_bytes == rows * 64 + rows * 4


def test_rows_at_a_power_of_two_evict_each_other():
    """COMPILERS.md, section 2: sixteen rows of A at a pitch of 4096 bytes share one set of eight
    ways.
    """
    rate = {
        (n, rows): 2 * n**3 / model(square(n), tile(rows, 1)).time_s
        for n, rows in product((960, 1024), (8, 16))
    }
    assert rate[1024, 16] < 0.6 * rate[960, 16]
    assert rate[1024, 8] == pytest.approx(rate[960, 8], rel=0.05)


def test_a_guarded_tail_moves_no_less_than_the_data():
    for n, factor in product((33, 100), (16, 32)):
        trace = f"tile('i', 'j', {factor}, {factor})"
        assert model(transpose(n), trace).dram_bytes >= model(transpose(n)).dram_bytes * 0.99


def simulated(n, order, cache):
    """Lines that miss in an LRU cache of this geometry during a matmul's update."""
    sets = [OrderedDict() for _ in range(cache.sets)]
    base = {"A": 0, "B": 4 * n * n, "C": 8 * n * n}
    misses = 0
    for place in product(range(n), repeat=3):
        at = dict(zip(order, place, strict=True))
        elements = (("A", at["i"], at["k"]), ("B", at["k"], at["j"]), ("C", at["i"], at["j"]))
        for name, row, column in elements:
            line = (base[name] + 4 * (row * n + column)) // cache.line_bytes
            ways = sets[line % cache.sets]
            if line in ways:
                ways.move_to_end(line)
                continue
            misses += 1
            ways[line] = None
            if len(ways) > cache.ways:
                ways.popitem(last=False)
    return misses


@pytest.mark.parametrize("order", [("i", "j", "k"), ("i", "k", "j"), ("j", "k", "i")])
@pytest.mark.parametrize("size", [1024, 4096])
def test_traffic_is_what_a_simulated_cache_sees(order, size):
    n, cache = 36, Cache(size, 8, 64)
    update = [
        Store(
            "C",
            (Var("i"), Var("j")),
            mul(Load("A", (Var("i"), Var("k"))), Load("B", (Var("k"), Var("j")))),
            "add",
        )
    ]
    for var in reversed(order):
        update.append(For(var, whole(n), update[-1]))
    tensors = (tensor("A", n, n), tensor("B", n, n), tensor("C", n, n, role="output"))
    nest = read_nest(Procedure("f", (), tensors, update[-1]), 1)
    reads = replace(nest, accesses=tuple(a for a in nest.accesses if not a.writes))
    ((found,),) = crossings(reads, [cache])
    real = simulated(n, order, cache)
    assert real / 2 <= found.lines <= 2 * real


# Bounds that hold whatever the schedule

MOVES = st.tuples(
    st.sampled_from(("split", "unroll", "vectorize", "parallel", "reorder", "fuse")),
    st.integers(0, 7),
    st.sampled_from((2, 3, 4, 8, 16)),
)


def scheduled(procedure, moves):
    """The procedure after those moves that are legal."""
    for op, place, factor in moves:
        found = loops(procedure)
        loop, inner = found[place % len(found)], found[(place + 1) % len(found)]
        args = {"split": (factor,), "reorder": (loop.var,), "fuse": (inner.var,)}.get(op, ())
        target = inner.var if op == "reorder" else loop.var
        try:
            procedure = apply(procedure, Directive(op, target, args))
        except ScheduleError:
            continue
    return procedure


@settings(max_examples=60, deadline=None)
@given(st.lists(MOVES, max_size=8), st.integers(1, 4))
def test_no_schedule_is_faster_than_the_roofline(moves, threads):
    m, n, k = 20, 32, 24
    found = estimate(scheduled(matmul(m, n, k), moves), MACHINE, threads=threads)
    compulsory = 4 * (m * k + k * n + m * n)
    floor = MACHINE.floor_s(2 * m * n * k, compulsory, threads=threads)
    assert found.time_s >= 0.999 * floor
    assert found.bound in BOUNDS
    assert all(math.isfinite(value) and value >= 0 for _, value in found.facts())
    assert 0 < found.vector_efficiency <= 1 + 1e-9
    assert found.flops >= 0.999 * 2 * m * n * k


@settings(max_examples=30, deadline=None)
@given(st.lists(MOVES, max_size=6))
def test_an_estimate_is_a_function_of_the_procedure(moves):
    procedure = scheduled(matmul(8, 16, 8), moves)
    assert estimate(procedure, MACHINE) == estimate(procedure, MACHINE)


# Extents


def test_loops_over_loaded_extents_run_as_often_as_the_caller_says():
    rows, stored = 256, 4096
    position = Load("pos", (Var("i"),))
    length = Binary(
        "sub", Cast("int64", Load("pos", (add(Var("i"), whole(1)),))), Cast("int64", position)
    )
    place = add(Cast("int64", position), Var("q"))
    column = Cast("int64", Load("crd", (place,)))
    value = mul(Load("vals", (place,)), Load("x", (column,)))
    nest = For("i", whole(rows), For("q", length, Store("y", (Var("i"),), value, "add")))
    tensors = (
        tensor("pos", rows + 1, dtype="int32"),
        tensor("crd", stored, dtype="int32"),
        tensor("vals", stored),
        tensor("x", rows),
        tensor("y", rows, role="output"),
    )
    spmv = Procedure("spmv", (), tensors, nest)
    short, long = (estimate(spmv, MACHINE, loaded_trips=trips) for trips in (4, 64))
    assert short.flops == 2 * rows * 4
    assert long.flops == 2 * rows * 64
    assert long.core_s > 8 * short.core_s


def test_extents_without_a_number_are_refused():
    nest = For("i", Var("n"), Store("y", (Var("i"),), f32(0.0)))
    with pytest.raises(EstimateError, match="expected loops of known extents, found i in 'n'"):
        estimate(Procedure("f", ("n",), (tensor("y", 4, role="output"),), nest), MACHINE)
    free = Procedure("f", ("n",), (tensor("y", "n", role="output"),), Block(()))
    with pytest.raises(EstimateError, match="y: expected a shape in numbers"):
        estimate(free, MACHINE)


def test_nothing_takes_no_time():
    assert estimate(Procedure("f", (), (), Block(())), MACHINE).time_s == 0


# Index arithmetic


@st.composite
def indices(draw):
    """An index over i, j and k, and how often each of them runs."""
    parts = [mul(Var(name), whole(draw(st.integers(-5, 9)))) for name in ("i", "j", "k")]
    index = add(*parts, whole(draw(st.integers(0, 9))))
    if draw(st.booleans()):
        index = Binary(draw(st.sampled_from(("floordiv", "mod"))), index, whole(7))
    return index, {name: draw(st.integers(1, 5)) for name in ("i", "j", "k")}


def value_of(node, values):
    match node:
        case Var(name):
            return values[name]
        case Binary(op, left, right):
            a, b = value_of(left, values), value_of(right, values)
            ops = {"add": a + b, "mul": a * b}
            return ops[op] if op in ops else (a // b if op == "floordiv" else a % b)
    return node.value


@given(indices())
def test_intervals_hold_every_value_and_counts_are_no_less(found):
    index, trips = found
    names = list(trips)
    values = {
        value_of(index, dict(zip(names, place, strict=True)))
        for place in product(*(range(trips[name]) for name in names))
    }
    low, high = interval(index, trips)
    assert low <= min(values)
    assert max(values) <= high
    assert len(values) <= span(index, trips, 1000).count
    form = affine(index)
    if form is not None:
        assert (low, high) == (min(values), max(values))


def test_offsets_are_row_major():
    form = flat((Var("i"), add(Var("j"), whole(3))), (10, 20))
    assert (form.constant, form.terms) == (3, ((Var("i"), 20), (Var("j"), 1)))
    assert flat((Load("p", (Var("i"),)),), (4,)) is None


@given(
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from((4, 8)),
)
def test_lines_of_a_box_are_close_to_a_count(rows, columns, row_step, column_step, itemsize):
    shape = (rows * row_step + 3, columns * column_step + 5)
    cache = Cache(32768, 8, 64)
    array = Array("x", shape, itemsize, True)
    spans = (
        Span(0, (rows - 1) * row_step, rows),
        Span(0, (columns - 1) * column_step, columns),
    )
    counted = {
        (r * row_step * shape[1] + c * column_step) * itemsize // 64
        for r in range(rows)
        for c in range(columns)
    }
    found = footprint(array, spans, cache)
    assert 0.5 * len(counted) <= found.lines <= 2 * len(counted) + 1
    assert 1 <= found.sets <= min(cache.sets, found.lines)


# Tables


def test_the_lecture_s_machine_has_the_lecture_s_numbers():
    assert machine_names() == ("cpu-lecture",)
    assert MACHINE.peak_flops() == pytest.approx(112e9, rel=0.01)
    assert MACHINE.peak_flops(8) == MACHINE.peak_flops() / 2
    assert (MACHINE.l1_bytes, MACHINE.l2_bytes, MACHINE.l3_bytes) == (2**15, 2**20, 2**25)
    assert MACHINE.floor_s(0, 20e9) == 1
    assert MACHINE.floor_s(112.07e9, 0, threads=2) == pytest.approx(0.5, rel=1e-3)
    assert len(machine_sha256("cpu-lecture")) == 64


def test_tables_are_refused_with_what_is_wrong(tmp_path):
    with pytest.raises(OptionError, match=r"machine: expected .*cpu-lecture") as refusal:
        load_machine("cpu-lectur")
    assert refusal.value.nearest == "cpu-lecture"
    text = (CPUS_DIR / "cpu-lecture.yaml").read_text()
    for change, message in (
        (("pipe_efficiency: 0.957", "pipe_efficiency: 1.5"), "pipe_efficiency: expected at most 1"),
        (("cores: 8", "cores: 0"), "cores: expected a finite number > 0"),
        (("cores: 8", "cors: 2"), "unknown key 'cors'"),
        ((text[text.index("cores:") : text.index("clock_hz:")], ""), "missing key 'cores'"),
        (("cores: 8", "cores: many"), "cores: expected int, found 'many'"),
    ):
        (tmp_path / "mine.yaml").write_text(text.replace(*change))
        with pytest.raises(OptionError, match=message):
            load_machine(str(tmp_path / "mine.yaml"))
    (tmp_path / "mine.yaml").write_text(text.replace("clock_hz: 3.66e+9", "clock_hz: 1.83e+9"))
    slow = load_machine(str(tmp_path / "mine.yaml"))
    assert isinstance(slow, CpuMachine)
    assert model(square(64), machine=slow).core_s == pytest.approx(2 * model(square(64)).core_s)


def test_every_number_of_the_table_moves_some_estimate():
    """A number that no estimate depends on would be decoration."""
    programs = [
        (square(256), "", 1),
        (square(256), f"{tile(8, 2)}\nparallel('jo')", 4),
        (square(256), tile(16, 4), 1),
        (square(1024), tile(16, 1), 1),
        (square(700), IKJ, 1),
        (square(4096), IKJ, 1),
        (square(64), "split('k', 8)", 1),
        (row_sum(512, 24), "", 1),
        (transpose(2048), "", 1),
        (transpose(4096), "tile('i', 'j', 16, 16)", 1),
        (elementwise(Load("x", (Var("i"),)), 1 << 10), "", 1),
        (elementwise(Binary("div", Load("x", (Var("i"),)), f32(3.0)), 1 << 12), "", 1),
        (square(60), "split('k', 7)", 1),
        (copy(48), "fuse('i', 'j')", 1),
        (columns(16, 1 << 15), "", 1),
        (columns(16, 1 << 15), "unroll('k')", 1),
    ]
    functions = [Unary(op, Load("x", (Var("i"),))) for op in ("exp", "log", "tanh", "erf")]
    programs += [(elementwise(value, 1 << 10), "", 1) for value in functions]
    lowered = [(lower(p, parse_trace(t)).procedure, threads) for p, t, threads in programs]
    plain = [estimate(p, MACHINE, threads=threads) for p, threads in lowered]
    changed = {"simd_bytes": 16, "register_bytes": 16, "line_bytes": 32, "auto_vector_bytes": 4}
    still = []
    for name in CpuMachine.__slots__:
        value = getattr(MACHINE, name)
        if isinstance(value, str) or name == "cores":  # cores bound the threads of a judge
            continue
        new = changed.get(name, type(value)(value * (0.5 if name == "pipe_efficiency" else 4)))
        other = replace(MACHINE, **{name: new})
        again = [estimate(p, other, threads=threads) for p, threads in lowered]
        if not np.any([a.time_s != b.time_s for a, b in zip(plain, again, strict=True)]):
            still.append(name)
    assert not still, still
