"""Points of iteration spaces, the order in which tiled maps run them, illegal orders, pictures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from programs import add, f32, matmul, mul, tensor
from stencils import I, J, jacobi_expanded, jacobi_two_rows, one_sweep
from test_affine_directives import with_temporary
from test_codegen import inputs_of
from test_schedule import PROGRAMS, triangular

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Barrier,
    Binary,
    Block,
    Cast,
    For,
    Load,
    Procedure,
    Select,
    Store,
    Unary,
    Var,
    loops,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.affine_map import (
    AffineMap,
    identity,
    permutation,
    skew,
    wavefront,
)
from kernelwright.env.compiler.poly.exact import Kind, NotAffineError
from kernelwright.env.compiler.poly.forced import ForcedError, ForcedOrder, run_forced
from kernelwright.env.compiler.poly.model import build_model
from kernelwright.env.compiler.poly.nest import NestError
from kernelwright.env.compiler.poly.picture import MAX_POINTS, picture
from kernelwright.env.compiler.poly.points import in_order, iteration_points, nest_points, touched
from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.search.figures.stencils import gauss_seidel, jacobi


def test_points_of_a_triangle_in_program_order():
    instance = build_model(triangular(4)).instances[-1]
    assert iteration_points(instance).tolist() == [[i, j] for i in range(4) for j in range(i + 1)]


def test_points_of_open_extents_and_guards():
    held = Binary("and", Binary("lt", add(I, J), Var("n")), Binary("ne", I, whole(1)))
    from kernelwright.env.compiler.ir.nodes import If

    nest = For("i", Var("n"), For("j", whole(3), If(held, Store("y", (I,), f32(0.0)))))
    procedure = Procedure("f", ("n",), (tensor("y", "n", role="output"),), nest)
    (instance,) = build_model(procedure).instances
    for n in (0, 1, 4):
        wanted = [[i, j] for i in range(n) for j in range(3) if i + j < n and i != 1]
        assert iteration_points(instance, {"n": n}).tolist() == wanted


def test_tiles_run_one_after_the_other():
    points = np.array(list(itertools.product(range(5), range(7))), np.int64)
    map_, tiles = skew(2, 0, 1, 1), (2, 3)
    wanted = sorted(
        points.tolist(), key=lambda p: (p[0] // 2, (p[0] + p[1]) // 3, p[0], p[0] + p[1])
    )
    assert in_order(points, map_, tiles).tolist() == wanted
    with pytest.raises(NestError, match="2 sizes of tiles, found 1"):
        in_order(points, map_, (2,))


def test_what_a_nest_touches_in_order():
    instance, points = nest_points(matmul(2, 2, 2), ("i", "k", "j"), permutation((2, 0, 1)))
    assert points.tolist() == [[i, k, j] for j, i, k in itertools.product(range(2), repeat=3)]
    first, second, old, new = touched(instance, points)
    assert [a.tensor for a in (first, second, old, new)] == ["A", "B", "C", "C"]
    assert [a.write for a in (first, second, old, new)] == [False, False, False, True]
    assert first.indices.tolist() == points[:, [0, 1]].tolist()
    assert second.indices.tolist() == points[:, [1, 2]].tolist()
    assert new.indices.tolist() == points[:, [0, 2]].tolist()
    with pytest.raises(NestError, match="expected one statement in the loops i k"):
        nest_points(matmul(), ("i", "k"), identity(2))


def test_points_that_depend_on_memory_are_refused():
    tensors = (tensor("n", 4, dtype="int64"), tensor("y", 4, 4, role="output"))
    nest = For("i", whole(4), For("j", Load("n", (I,)), Store("y", (I, J), f32(1.0))))
    (instance,) = build_model(Procedure("f", (), tensors, nest)).instances
    with pytest.raises(NotAffineError, match=r"loop variables and extents, found n\[i\]"):
        iteration_points(instance)


def scalars():
    """Operations of every form, whose rounding has to be the interpreter's."""
    x, k = Load("x", (I,)), Var("k")
    value = Select(
        Binary("and", Binary("lt", x, f32(4.0)), Unary("not", Binary("eq", x, f32(2.0)))),
        Binary("div", Unary("sqrt", x), f32(3.0)),
        Binary("max", Unary("neg", x), Cast("float32", add(I, whole(3)))),
    )
    first = For("i", whole(9), Store("y", (I,), value))
    second = For("j", whole(9), Store("y", (J,), Load("x", (J,)), "min"))
    third = For("k", whole(9), Store("y", (k,), Unary("tanh", Load("y", (k,))), "mul"))
    tensors = (tensor("x", 9), tensor("y", 9, role="output"))
    return Procedure("f", (), tensors, Block((first, second, third)))


FORCED = {**PROGRAMS, "scalars": scalars(), "two rows": jacobi_two_rows(), "jacobi": jacobi(11, 4)}


@pytest.mark.parametrize("name", FORCED)
def test_the_order_of_the_program_gives_what_the_interpreter_gives(name):
    procedure = FORCED[name]
    inputs = inputs_of(procedure)
    first = loops(procedure)[0].var
    got = run_forced(procedure, inputs, ForcedOrder((first,), identity(1)))
    for key, wanted in interpret(procedure, inputs).items():
        np.testing.assert_array_equal(got[key], wanted)


def test_an_illegal_order_computes_from_what_is_not_there():
    program = jacobi(40, 12)
    start = {"start": np.random.default_rng(0).random(40)}
    wanted = interpret(program, start)["A"]

    def run(map_, tiles=()):
        return run_forced(program, start, ForcedOrder(("t", "i"), map_, tiles))["A"]

    assert np.isnan(run(identity(2), (4, 8))).sum() > 0
    assert np.isnan(run(permutation((1, 0)))).sum() > 0
    assert np.array_equal(run(skew(2, 0, 1, 1), (4, 8)), wanted)
    assert np.array_equal(run(wavefront(2).after(skew(2, 0, 1, 1))), wanted)
    # What is right is right: rows that need no missing value are not touched.
    direct = run(identity(2), (4, 8))
    assert np.array_equal(direct[~np.isnan(direct)], wanted[~np.isnan(direct)])


def test_an_illegal_order_in_place_is_wrong_without_nan():
    program = gauss_seidel(6)
    start = {"start": np.random.default_rng(0).random((8, 8))}
    wanted = interpret(program, start)["A"]
    turned = run_forced(program, start, ForcedOrder(("i", "j"), AffineMap(((1, 0), (0, -1)))))["A"]
    assert not np.isnan(turned).any()
    assert np.abs(turned - wanted).max() > 0.01


def test_a_forced_order_is_no_directive():
    assert not [name for name, path in DIRECTIVES.items() if "forced" in path]


def with_barrier():
    nest = For("i", whole(4), Block((Store("y", (I,), f32(0.0)), Barrier())))
    return Procedure("f", (), (tensor("y", 4, role="output"),), nest)


def outside():
    nest = For("i", whole(4), Store("y", (add(I, whole(1)),), f32(0.0)))
    return Procedure("f", (), (tensor("y", 4, role="output"),), nest)


def integers():
    nest = For("i", whole(4), Store("y", (I,), I))
    return Procedure("f", (), (tensor("y", 4, dtype="int64", role="output"),), nest)


def with_erf():
    nest = For("i", whole(4), Store("y", (I,), Unary("erf", Load("x", (I,)))))
    return Procedure("f", (), (tensor("x", 4), tensor("y", 4, role="output")), nest)


NOT_FORCED = [
    (with_temporary(), ForcedError, "temporary t outside all loops"),
    (with_barrier(), ForcedError, "found a barrier"),
    (integers(), ForcedError, "y: expected a dtype with NaN, found int64"),
    (with_erf(), ForcedError, "an operation of NumPy, found erf"),
    (outside(), IndexError, r"y\[4\]: expected an element of \[4\]"),
]


@pytest.mark.parametrize(("procedure", "error", "message"), NOT_FORCED)
def test_what_cannot_be_forced(procedure, error, message):
    order = ForcedOrder(("i",), identity(1))
    with pytest.raises(error, match=message):
        run_forced(procedure, inputs_of(procedure), order)


def test_inputs_of_a_forced_order_are_checked():
    order = ForcedOrder(("t", "i"), identity(2))
    with pytest.raises(ForcedError, match=r"start: expected float64\[8\], found none"):
        run_forced(jacobi(8, 2), {}, order)
    with pytest.raises(ForcedError, match=r"start: expected float64\[8\], found float32\[8\]"):
        run_forced(jacobi(8, 2), {"start": np.zeros(8, np.float32)}, order)


def test_temporaries_outside_loops_are_forced_too():
    t = tensor("t", 6, role="temporary")
    first = For("i", whole(6), Store("t", (I,), mul(Load("x", (I,)), f32(2.0))))
    second = For("j", whole(6), Store("y", (J,), Load("t", (J,))))
    tensors = (tensor("x", 6), tensor("y", 6, role="output"))
    procedure = Procedure("f", (), tensors, Allocate(t, Block((first, second))))
    inputs = inputs_of(procedure)
    got = run_forced(procedure, inputs, ForcedOrder(("i",), AffineMap(((-1,),))))
    np.testing.assert_array_equal(got["y"], inputs["x"] * 2)


def test_a_picture_before_and_after_a_map():
    shown = picture(jacobi_expanded(3, 4), ("t", "i"), permutation((1, 0)))
    assert shown.points.tolist() == [[t, i] for t in range(3) for i in range(4)]
    assert shown.moved.tolist() == [[i, t] for t in range(3) for i in range(4)]
    flow, anti, output = shown.arrows
    assert (flow.kind, anti.kind, output.kind) == (Kind.FLOW, Kind.ANTI, Kind.OUTPUT)
    distances = shown.points[flow.ends[:, 1]] - shown.points[flow.ends[:, 0]]
    assert {tuple(d) for d in distances.tolist()} == {(1, -1), (1, 0), (1, 1)}
    # Two gaps between rows of four points: 4 + 3 + 3 arrows each.
    assert len(flow.ends) == 20
    assert [tuple(d) == (1, -1) for d in distances.tolist()] == flow.broken.tolist()
    assert len(anti.ends) == len(output.ends) == 0
    assert not picture(jacobi_expanded(3, 4), ("t", "i")).arrows[0].broken.any()


def test_a_picture_of_one_sweep_and_its_wavefront():
    shown = picture(one_sweep(3, 4), ("i", "j"), wavefront(2))
    assert not any(arrows.broken.any() for arrows in shown.arrows)
    flow = shown.arrows[0]
    steps = shown.moved[flow.ends[:, 1], 0] - shown.moved[flow.ends[:, 0], 0]
    assert set(steps.tolist()) == {1}


def test_pictures_are_small():
    assert MAX_POINTS < 65 * 65
    with pytest.raises(NestError, match="at most 4096 points, found 4225"):
        picture(gauss_seidel(65), ("i", "j"))
    with pytest.raises(NestError, match="a map of 2 loops, found 3"):
        picture(one_sweep(), ("i", "j"), identity(3))
    with pytest.raises(NestError, match="expected outermost loops, found j inside"):
        picture(one_sweep(), ("j",))
