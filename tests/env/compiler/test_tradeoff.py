"""Schedules in numbers: counted by what the interpreter does, and the figures of blurs."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import elementwise, f32, mul
from test_schedule import random_trace

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.evaluate import whole_value
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    For,
    If,
    Load,
    LoopKind,
    Select,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.machine.domains import LIMIT, Domain, Points, count, evaluate
from kernelwright.env.compiler.machine.nest import EstimateError
from kernelwright.env.compiler.machine.tradeoff import measure, potential_parallelism, table
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.env.problems import PROBLEMS

X, Y = te.Var("x"), te.Var("y")


def brute_force(domain, grid=None):
    """The points of a domain, one by one."""
    grid = grid or {}
    if len(grid) < len(domain.loops):
        var, extent = domain.loops[len(grid)]
        size = whole_value(extent, grid)
        return sum(brute_force(domain, {**grid, var: i}) for i in range(size))
    return int(all(whole_value(condition, grid) for condition in domain.conditions))


def expressions(names):
    """Whole-number arithmetic on variables."""
    leaves = st.one_of(
        st.integers(-3, 7).map(whole), *([st.sampled_from(names).map(Var)] if names else [])
    )

    def larger(inner):
        divisors = st.integers(1, 4).map(whole)
        return st.one_of(
            st.builds(Binary, st.sampled_from(["add", "sub", "min", "max"]), inner, inner),
            st.builds(Binary, st.just("mul"), inner, st.integers(-2, 3).map(whole)),
            st.builds(Binary, st.sampled_from(["floordiv", "mod"]), inner, divisors),
        )

    return st.recursive(leaves, larger, max_leaves=4)


@st.composite
def domains(draw):
    names = [f"v{i}" for i in range(draw(st.integers(1, 3)))]
    loops = []
    for depth, name in enumerate(names):
        constant = st.integers(0, 5).map(whole)
        extent = draw(st.one_of(constant, expressions(names[:depth])))
        loops.append((name, extent))
    comparisons = st.builds(
        Binary,
        st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"]),
        expressions(names),
        expressions(names),
    )
    joined = st.builds(Binary, st.sampled_from(["and", "or"]), comparisons, comparisons)
    conditions = draw(st.lists(st.one_of(comparisons, joined), max_size=3))
    return Domain(tuple(loops), tuple(conditions))


@settings(max_examples=60, deadline=None)
@given(domain=domains())
def test_points_are_counted_as_one_by_one(domain):
    assert count(domain, {}) == Points(brute_force(domain))


def loop_of(*sizes):
    return tuple((f"v{i}", whole(size)) for i, size in enumerate(sizes))


def test_large_domains_are_counted_in_closed_form():
    v = [Var(f"v{i}") for i in range(4)]
    tail = Binary("lt", Binary("add", Binary("mul", v[0], whole(24)), v[2]), whole(2048))
    other = Binary("lt", Binary("add", Binary("mul", v[1], whole(100)), v[3]), whole(2048))
    start = time.perf_counter()
    assert count(Domain(loop_of(86, 21, 24, 100), (tail, other)), {}).number == 2048**2
    triangle = Domain(loop_of(100_000, 100_000), (Binary("le", v[0], v[1]),))
    assert count(triangle, {}).number == 100_000 * 100_001 // 2
    assert time.perf_counter() - start < 0.5


def test_what_is_too_large_or_read_from_memory_is_counted_from_above():
    size = int(LIMIT**0.5) + 1
    odd = Binary("ne", Binary("mod", Binary("add", Var("v0"), Var("v1")), whole(2)), whole(0))
    assert count(Domain(loop_of(size, size), (odd,)), {}) == Points(size * size, is_exact=False)
    loaded = Binary("lt", Load("x", (Var("v0"),)), f32(0.0))
    assert count(Domain(loop_of(8), (loaded,)), {}) == Points(8, is_exact=False)
    row = Cast("int64", Load("pos", (whole(0),)))
    with pytest.raises(EstimateError, match="expected loops of known extents, found p"):
        count(Domain((("p", row),)), {})


def executed(node, grid=None):
    """How often the stores of each tensor run, one by one."""
    grid = grid or {}
    match node:
        case Store(tensor, _, _, _):
            return {tensor: 1}
        case For(var, extent, body, _):
            return summed(
                executed(body, {**grid, var: np.asarray(i)})
                for i in range(int(evaluate(extent, grid)))
            )
        case If(condition, then):
            return executed(then, grid) if evaluate(condition, grid) else {}
        case Block(items):
            return summed(executed(item, grid) for item in items)
        case Allocate(_, body):
            return executed(body, grid)
    raise AssertionError(node)


def summed(parts):
    out = {}
    for part in parts:
        for key, value in part.items():
            out[key] = out.get(key, 0) + value
    return out


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_stores_of_any_schedule_are_counted_as_one_by_one(seed):
    procedure = blur(11, 7)
    _, scheduled = random_trace(procedure, seed)
    found = measure(scheduled, procedure)
    assert {s.tensor: s.computed for s in found.stages} == executed(scheduled.body)
    assert found.is_exact


def blur(height, width):
    source = te.ImageParam("in", 2)
    blurx, blury = te.Func("blurx"), te.Func("blury")
    blurx[Y, X] = (source[Y, X - 1] + source[Y, X] + source[Y, X + 1]) / 3.0
    blury[Y, X] = (blurx[Y - 1, X] + blurx[Y, X] + blurx[Y + 1, X]) / 3.0
    return te.lower("blur", [blury.realize(height, width)])


def scheduled(procedure, text):
    return apply_trace(procedure, parse_trace(text))


def test_the_trade_off_of_a_blur():
    procedure = blur(4096, 4096)
    root = measure(procedure)
    assert dict(root.operations) == {"add": 2 * (4096 * 8194), "div": 4096 * 8194}
    assert f"{root.operations_per_point:.3f}" == "6.001"
    assert root.peak_bytes == 4098 * 4096 * 4
    assert root.footprint_bytes == 4 * (4098 * 4098 + 4098 * 4096 + 4096 * 4096)
    assert [s.recompute for s in root.stages] == [1, 1]
    assert root.parallelism == 1
    start = time.perf_counter()
    strips = scheduled(procedure, "split('blury_y', 32)\nparallel('blury_yo')")
    found = measure(strips, procedure)
    assert time.perf_counter() - start < 1
    # One half of the work runs on 128 threads, the other on one.
    assert found.parallelism == pytest.approx(2 / (1 + 1 / 128), rel=1e-3)


@pytest.mark.parametrize("size", [8, 64, 256])
def test_the_halo_of_a_tile_is_computed_twice(size):
    procedure = blur(1024, 1024)
    tiles = scheduled(
        procedure,
        f"tile('blury_y', 'blury_x', {size}, {size})\ncompute_at('blurx', 'blury_xo')",
    )
    found = measure(tiles, procedure)
    (blurx, blury) = found.stages
    assert blurx.computed == (size + 2) * 1024 * (1024 // size)
    assert blurx.distinct == 1026 * 1024
    assert blury.recompute == 1
    assert found.peak_bytes == (size + 2) * size * 4


def test_a_stage_inside_its_reader_is_computed_at_every_read():
    procedure = blur(64, 64)
    inline = measure(scheduled(procedure, "compute_inline('blurx')"), procedure)
    assert inline.operations_per_point == 12
    blurx = inline.stages[0]
    assert blurx.computed == 3 * 64 * 64
    assert blurx.recompute == pytest.approx(3 * 64 / 66)
    assert inline.peak_bytes == 0


def boxes(size):
    previous = te.ImageParam("in", 2)
    for number in range(1, 5):
        near = [previous[Y + dy, X + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
        box = te.Func(f"box{number}")
        box[Y, X] = sum(near[1:], near[0]) * (1 / 9)
        previous = box
    return te.lower("box4", [previous.realize(size, size)])


def test_the_operations_of_four_boxes_in_tiles():
    procedure = boxes(2048)
    stages = "\n".join(f"compute_at('box{number}', 'box4_xo')" for number in (3, 2, 1))
    found = []
    for size in (16, 32, 64, 128, 256):
        tiles = scheduled(procedure, f"tile('box4_y', 'box4_x', {size}, {size})\n{stages}")
        found.append(f"{measure(tiles, procedure).operations_per_point:.1f}")
    assert found == ["51.5", "43.2", "39.5", "37.7", "36.9"]


def test_a_sliding_window_computes_everything_once_and_keeps_three_rows():
    procedure = blur(4096, 4096)
    slide = "compute_at('blurx', 'blury_y')\nstore_root('blurx')\nfold_storage('blurx', 0, 3)"
    found = measure(scheduled(procedure, slide), procedure)
    assert f"{found.operations_per_point:.3f}" == "6.001"
    assert [stage.recompute for stage in found.stages] == [1, 1]
    assert found.peak_bytes == 3 * 4096 * 4


def test_only_the_chosen_side_counts():
    value = Select(Binary("lt", Var("i"), whole(5)), mul(Load("x", (Var("i"),)), f32(2)), f32(0))
    found = measure(elementwise(value))
    assert dict(found.operations) == {"lt": 16, "mul": 5}
    assert found.is_exact
    loaded = Binary("lt", Load("x", (Var("i"),)), f32(5))
    above = measure(elementwise(replace(value, condition=loaded)))
    assert dict(above.operations) == {"lt": 16, "mul": 16}
    assert not above.is_exact
    assert "~" in table({"loaded": above})


def test_storage_lives_as_long_as_its_statement():
    def temporary(name, size, scope="auto"):
        store = Store(name, (whole(0),), f32(0.0))
        return Allocate(Tensor(name, (whole(size),), "float32", scope=scope), store)

    inner = temporary("c", 5, "register")
    nested = Allocate(Tensor("b", (whole(7),), "float64"), Block((inner, temporary("d", 3))))
    procedure = elementwise(f32(0.0))
    body = Block((temporary("a", 10), For("j", whole(4), nested), procedure.body))
    found = measure(replace(procedure, body=body))
    assert found.peak_bytes == 7 * 8 + 5 * 4
    assert found.peak_scopes == (("auto", 56), ("register", 20))


def test_iterations_that_run_at_once():
    vector = elementwise(f32(0.0), kind=LoopKind.VECTORIZED)
    assert measure(vector).parallelism == 16
    assert potential_parallelism(elementwise(f32(0.0))) == 16
    scan = Binary("add", Load("y", (Binary("sub", Var("i"), whole(1)),)), f32(1.0))
    held = If(Binary("ge", Var("i"), whole(1)), Store("y", (Var("i"),), scan))
    procedure = elementwise(f32(0.0))
    carried = replace(procedure, body=For("i", whole(16), held))
    assert potential_parallelism(carried) == 1


def test_a_wavefront_is_measured_by_its_mean_width():
    n = 64
    size = Binary(
        "min", Binary("add", Var("t"), whole(1)), Binary("sub", whole(2 * n - 1), Var("t"))
    )
    place = Binary("mod", Binary("add", Var("t"), Var("p")), whole(16))
    inner = For("p", size, Store("y", (place,), f32(0.0)), LoopKind.PARALLEL)
    procedure = replace(elementwise(f32(0.0)), body=For("t", whole(2 * n - 1), inner))
    assert measure(procedure).parallelism == pytest.approx(n * n / (2 * n - 1))


def test_extents_by_name_need_values():
    x = te.placeholder("x", ("n",))
    procedure = te.lower("f", [te.compute("y", ("n",), lambda i: x[i] * 2.0)])
    assert measure(procedure, extents={"n": 9}).total_operations == 9
    with pytest.raises(EstimateError, match="expected values for the extents n, found none"):
        measure(procedure)


COUNTED = ("batched_matmul", "blur", "box4", "conv3x3", "depthwise", "gauss_seidel", "jacobi2d")
COUNTED += ("matmul", "softmax", "unsharp", "histogram")


@pytest.mark.parametrize("name", COUNTED)
def test_the_operations_of_a_problem_are_those_that_its_author_counted(name):
    module, _, function = PROBLEMS[name].partition(":")
    problem = getattr(import_module(module), function)()
    procedure = problem.definition(problem.workloads[0])
    assert measure(procedure).total_operations == problem.flops(problem.workloads[0])


def test_schedules_side_by_side():
    procedure = blur(64, 64)
    rows = {
        "root": measure(procedure),
        "inline": measure(scheduled(procedure, "compute_inline('blurx')"), procedure),
    }
    assert table(rows).splitlines() == [
        "| schedule | operations/point | recompute | peak bytes | touched bytes | at once |",
        "| --- | --- | --- | --- | --- | --- |",
        "| root | 6.094 | 1 | 16,896 | 50,704 | 1 |",
        "| inline | 12 | 2.909 | 0 | 33,808 | 1 |",
    ]
