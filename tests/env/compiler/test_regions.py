"""Bounds inference: the region of every stage and input, boundary conditions among them."""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_codegen import compiled, needs_cc

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.evaluate import whole_value
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.poly.demand import demand
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.tensor import TensorError

X, Y = te.Var("x"), te.Var("y")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return BuildCache(tmp_path_factory.mktemp("cache"))


def func(name, value, *variables):
    out = te.Func(name)
    out[variables or (X, Y)] = value
    return out


def printed(outputs):
    return {name: str(box) for name, box in te.regions(outputs).items()}


def three_stages():
    source = te.ImageParam("in", 2)
    f = func("f", source[X - 1, Y] + source[X + 2, Y])
    g = func("g", f[X, Y - 1] + f[X, Y + 1])
    return func("h", g[X + 1, Y] * 2.0)


def test_the_regions_of_three_stages():
    assert printed([three_stages().realize(32, 32)]) == {
        "in": "[0, 35) x [-1, 33)",
        "f": "[1, 33) x [-1, 33)",
        "g": "[1, 33) x [0, 32)",
        "h": "[0, 32) x [0, 32)",
    }


def test_regions_by_name_of_extents():
    assert printed([three_stages().realize("n", (2, "m"))]) == {
        "in": "[0, n + 3) x [1, m + 3)",
        "f": "[1, n + 1) x [1, m + 3)",
        "g": "[1, n + 1) x [2, m + 2)",
        "h": "[0, n) x [2, m + 2)",
    }


def test_an_inputs_array_begins_at_the_first_element_that_is_read():
    procedure = te.lower("pipeline", [three_stages().realize(4, 5)])
    (source, _) = procedure.tensors
    assert [size.value for size in source.shape] == [7, 7]
    data = np.random.default_rng(0).random((7, 7), np.float32)
    f = data[:-3] + data[3:]
    g = f[:, :-2] + f[:, 2:]
    np.testing.assert_array_equal(interpret(procedure, {"in": data})["h"], g * 2)


STEPS = {
    "down": (lambda p: p[2 * X] + p[2 * X + 1], lambda i: (2 * i, 2 * i + 1)),
    "up": (lambda p: p[X // 2] + p[(X + 1) // 2], lambda i: (i // 2, (i + 1) // 2)),
    "left": (lambda p: p[X - 1], lambda i: (i - 1,)),
    "stencil": (lambda p: p[X - 1] + p[X] + p[X + 2], lambda i: (i - 1, i, i + 2)),
    "clamped": (lambda p: p[te.clamp(X, 3, 11)], lambda i: (min(max(i, 3), 11),)),
    "remainder": (lambda p: p[X % 5], lambda i: (i % 5,)),
    "choice": (
        lambda p: te.select(X > 4, p[X - 4], p[X + 1]),
        lambda i: (i - 4 if i > 4 else i + 1,),
    ),
    "mirrored": (lambda p: p[7 - X], lambda i: (7 - i,)),
}


def chain(steps):
    stages = [te.ImageParam("source", 1, "int64")]
    for number, step in enumerate(steps):
        stages.append(func(f"f{number}", STEPS[step][0](stages[-1]), X))
    return stages


CHAINS = {
    "steps": st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=6),
    "first": st.integers(-5, 9),
    "count": st.integers(1, 12),
}


@settings(max_examples=100, deadline=None)
@given(**CHAINS)
def test_a_region_is_the_least_box_around_what_is_read(steps, first, count):
    stages = chain(steps)
    boxes = te.regions([stages[-1].realize((first, count))])
    # The output's region is given; what an inner stage is computed on is a whole box.
    places = set(range(first, first + count))
    for stage, step in zip(reversed(stages[:-1]), reversed(steps), strict=True):
        places = {place for i in places for place in STEPS[step][1](i)}
        low, high = min(places), max(places)
        places = set(range(low, high + 1))
        assert str(boxes[stage.name]) == f"[{low}, {high + 1})"


@settings(max_examples=80, deadline=None)
@given(**CHAINS, named=st.booleans())
def test_a_pipeline_computes_the_function_that_it_defines(steps, first, count, named):
    """Element by element, over unbounded space, with arrays of all regions in between."""
    output = chain(steps)[-1].realize((first, "n" if named else count))
    extents = {"n": count} if named else {}
    box = te.regions([output])["source"]
    low, size = (whole_value(part[0], extents) for part in (box.low, box.extent))
    data = np.random.default_rng(0).integers(-9, 9, size)

    @functools.cache
    def value(depth, i):
        if depth == 0:
            assert low <= i < low + size
            return int(data[i - low])
        return sum(value(depth - 1, place) for place in STEPS[steps[depth - 1]][1](i))

    procedure = te.lower("chain", [output])
    got = interpret(procedure, {"source": data}, extents)
    assert next(iter(got.values())).tolist() == [
        value(len(steps), i) for i in range(first, first + count)
    ]


def pyramid(source, levels):
    """A Laplacian pyramid, taken apart and put together: four stages a level."""
    down, laplacian = [source], []
    for level in range(levels):
        fine = down[-1]
        half = func(f"half{level}", (fine[2 * X, Y] + fine[2 * X + 1, Y]) * 0.5)
        down.append(func(f"down{level}", (half[X, 2 * Y] + half[X, 2 * Y + 1]) * 0.5))
        laplacian.append(func(f"laplacian{level}", fine[X, Y] - down[-1][X // 2, Y // 2]))
    up = down[-1]
    for level in reversed(range(levels)):
        up = func(f"up{level}", up[X // 2, Y // 2] + laplacian[level][X, Y])
    return up


def test_a_pyramid_of_thirty_stages_is_lowered_quickly_to_exact_regions():
    out = pyramid(te.repeat_edge(te.placeholder("image", (300, 200)), "clamped"), 8)
    start = time.perf_counter()
    procedure = te.lower("pyramid", [out.realize(300, 200)])
    assert time.perf_counter() - start < 1.0
    boxes = printed([out.realize(300, 200)])
    assert len(boxes) == 2 + 8 * 4
    assert procedure.tensors[0].name == "image"
    for level in range(8):
        # What a level's up-sampling asks for, one by one.
        size = [(extent - 1) // 2**level + 1 for extent in (300, 200)]
        half = [(extent - 1) // 2 ** (level + 1) + 1 for extent in (300, 200)]
        assert boxes[f"up{level}"] == f"[0, {size[0]}) x [0, {size[1]})"
        assert boxes[f"laplacian{level}"] == boxes[f"up{level}"]
        assert boxes[f"down{level}"].startswith(f"[0, {_even(half[0], level)})")


def _even(extent, level):
    """How far a level is computed: as far as the next coarser one needs it."""
    for _ in range(level + 1, 8):
        extent = (extent + 1) // 2
    return extent * 2 ** (7 - level)


@needs_cc
def test_a_pyramid_gives_its_image_back(cache):
    out = pyramid(te.repeat_edge(te.placeholder("image", (21, 13)), "clamped"), 4)
    procedure = te.lower("pyramid", [out.realize(21, 13)])
    # Halves of small whole numbers have no rounding.
    image = np.random.default_rng(0).integers(0, 64, (21, 13)).astype(np.float32)
    got = compiled(procedure, cache)({"image": image})["up0"]
    np.testing.assert_array_equal(got, image)
    np.testing.assert_array_equal(interpret(procedure, {"image": image})["up0"], image)


CONDITIONS = {
    "repeat_edge": (te.repeat_edge, "edge", {}),
    "repeat_image": (te.repeat_image, "wrap", {}),
    "mirror_image": (te.mirror_image, "symmetric", {}),
    "mirror_interior": (te.mirror_interior, "reflect", {}),
    "constant_exterior": (
        lambda source, name: te.constant_exterior(source, 7.0, name),
        "constant",
        {"constant_values": 7},
    ),
}


@needs_cc
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("low", [(0, 0), (-2, 5)])
def test_boundary_conditions(cache, condition, low):
    make, mode, options = CONDITIONS[condition]
    source = te.placeholder("image", (4, 3), low=low)
    outside = make(source, "outside")
    out = outside.realize((low[0] - 9, 22), (low[1] - 7, 17))
    image = np.random.default_rng(0).random((4, 3), np.float32)
    wanted = np.pad(image, ((9, 9), (7, 7)), mode, **options)
    procedure = te.lower("padded", [out])
    np.testing.assert_array_equal(interpret(procedure, {"image": image})["outside"], wanted)
    np.testing.assert_array_equal(compiled(procedure, cache)({"image": image})["outside"], wanted)
    assert printed([out])["image"] == str(te.Box(source.low, source.shape))


def test_boundary_conditions_with_extents_by_name():
    source = te.placeholder("image", ("n",))
    for make in (te.repeat_edge, lambda s, name: te.constant_exterior(s, 0.0, name)):
        out = make(source, "outside").realize((-2, te.extent("n") + 4))
        for n in (1, 2, 5):
            image = np.arange(1, n + 1, dtype=np.float32)
            got = interpret(te.lower("padded", [out]), {"image": image}, {"n": n})["outside"]
            assert got[2:-2].tolist() == image.tolist()
    with pytest.raises(TensorError, match="repeat_image: expected a number as the extent"):
        te.repeat_image(source, "outside")
    with pytest.raises(TensorError, match="mirror_interior: expected a number of at least 2"):
        te.mirror_interior(te.placeholder("image", (1,)), "outside")


X4 = te.placeholder("x", (4,))


def test_a_stage_that_reads_past_an_input_is_refused():
    x = te.placeholder("x", (8,))
    wrong = te.compute("y", (8,), lambda i: x[i] + x[i + 1])
    with pytest.raises(TensorError, match=r"x: expected .* inside \[0, 8\), found \[0, 9\)"):
        te.lower("f", [wrong])
    guarded = te.compute("y", (8,), lambda i: te.select(i < 7, x[i + 1], x[i]))
    te.lower("f", [guarded])
    short = te.compute("y", (8,), lambda i: te.select((i < 7) & (x[i + 1] > x[i]), x[i], 0.0))
    te.lower("f", [short])
    either = te.compute("y", (8,), lambda i: te.select((i > 6) | (x[i + 1] > x[i]), x[i], 0.0))
    te.lower("f", [either])
    # What memory says may keep an access from happening.
    loaded = te.compute("y", (8,), lambda i: te.select(x[i] > 0.0, x[i + 1], x[i]))
    te.lower("f", [loaded])


def test_names_of_extents_are_checked_for_all_their_values():
    x = te.placeholder("x", ("n",))
    with pytest.raises(TensorError, match=r"x: expected .* inside \[0, n\), found \[1, n \+ 1\)"):
        te.lower("f", [te.compute("y", ("n",), lambda i: x[i + 1])])


def test_what_never_runs_needs_nothing():
    statement = te.lower("f", [te.compute("y", (4,), lambda i: te.select(i > 9, X4[i + 9], 0.0))])
    assert demand([statement.body], "x", (), {}) is None
