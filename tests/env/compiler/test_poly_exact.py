"""Exact dependences against brute force, what is not affine by name, distances and what they
allow.
"""

from __future__ import annotations

import itertools

import islpy as isl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import add, f32, matmul, mul, tensor
from stencils import gauss_seidel, jacobi_expanded, jacobi_two_rows, one_sweep
from test_schedule import blur, row_sum, transpose, triangular

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    For,
    If,
    Load,
    Procedure,
    Store,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.affine_map import (
    AffineMap,
    identity,
    permutation,
    reversal,
    skew,
    wavefront,
)
from kernelwright.env.compiler.poly.bands import (
    direction_vectors,
    distance_vectors,
    least_skew,
    nest_facts,
    vectors_set,
)
from kernelwright.env.compiler.poly.exact import NotAffineError, exact_dependences
from kernelwright.env.compiler.poly.legality import map_violation, schedule_violation
from kernelwright.env.compiler.poly.nest import Nest, NestError
from kernelwright.env.compiler.poly.points import iteration_points, touched
from kernelwright.env.compiler.poly.unimodular import classify, unimodular_maps

I, J = Var("i"), Var("j")  # noqa: E741
PROGRAMS = {
    "matmul": matmul(3, 2, 3),
    "jacobi": jacobi_expanded(3, 3),
    "two rows": jacobi_two_rows(4, 3),
    "seidel": gauss_seidel(2, 3),
    "blur": blur(2, 3),
    "row_sum": row_sum(3, 3),
    "triangular": triangular(4),
}


def events(procedure):
    """Every instance in program order: name, point, elements read, element written."""
    dependences = exact_dependences(procedure)
    out = []
    for instance in dependences.model.instances:
        points = iteration_points(instance)
        accesses = touched(instance, points)
        for k, point in enumerate(points.tolist()):
            values = dict(zip(instance.variables, point, strict=True))
            time = tuple(values[p] if isinstance(p, str) else p for p in instance.position)
            read = [(a.tensor, *a.indices[k]) for a in accesses if not a.write]
            (written,) = [(a.tensor, *a.indices[k]) for a in accesses if a.write]
            out.append((time, (instance.name, *point), read, written))
    # Tuples of one length, as far as they are compared.
    return dependences, sorted(out, key=lambda event: event[0])


def brute_force(found):
    """Flow from the last write, anti from the reads since, output from the last write."""
    flow, anti, output = set(), set(), set()
    writer, readers = {}, {}
    for _, name, read, written in found:
        for element in read:
            if element in writer:
                flow.add((writer[element], name))
            readers.setdefault(element, []).append(name)
        if written in writer:
            output.add((writer[written], name))
        anti |= {(r, name) for r in readers.get(written, []) if r != name}
        # What an iteration itself overwrites it has read before: its own write hides nothing.
        readers[written] = [name] if written in read else []
        writer[written] = name
    return flow, anti, output


def listed(pairs):
    """The pairs of a union map, one by one."""
    out = set()

    def keep(point):
        values = [
            point.get_coordinate_val(isl.dim_type.set, k).to_python()
            for k in range(point.get_space().dim(isl.dim_type.set))
        ]
        out.add(((ends[0], *values[: counts[0]]), (ends[1], *values[counts[0] :])))

    maps = pairs.get_map_list()
    for place in range(maps.n_map()):
        each = maps.get_map(place)
        sides = (isl.dim_type.in_, isl.dim_type.out)
        ends = [each.get_tuple_name(side) for side in sides]
        counts = [each.dim(side) for side in sides]
        each.wrap().flatten().foreach_point(keep)
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_dependences_are_those_of_brute_force(name):
    dependences, found = events(PROGRAMS[name])
    flow, anti, output = brute_force(found)
    assert listed(dependences.flow) == flow
    assert listed(dependences.output) == output
    assert listed(dependences.anti) == anti


LOOPS = [("jacobi", "ti"), ("two rows", "ti"), ("seidel", "tij"), ("matmul", "ikj")]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(LOOPS),
    st.lists(st.integers(-2, 2), min_size=9, max_size=9),
    st.lists(st.integers(-3, 3), min_size=3, max_size=3),
)
def test_a_map_is_legal_if_and_only_if_no_pair_is_turned_around(case, entries, constants):
    """Any matrix, not only unimodular ones: iterations of one time are a violation too."""
    name, loops = case
    depth = len(loops)
    rows = tuple(tuple(entries[k * depth : (k + 1) * depth]) for k in range(depth))
    map_ = AffineMap(rows, tuple(constants[:depth]))
    dependences, found = events(PROGRAMS[name])
    inside = {i.name for i in dependences.model.instances if i.variables == tuple(loops)}
    memory = {}
    for _, instance, read, written in found:
        for element in {*read, written}:
            memory.setdefault(element, []).append((instance, element == written))

    def time(instance):
        return tuple(map_.times(np.array([instance[1:]], np.int64))[0])

    wrong = any(
        (w or v) and a[0] in inside and b[0] in inside and time(b) <= time(a)
        for touches in memory.values()
        for (a, w), (b, v) in itertools.combinations(touches, 2)
    )
    broken = map_violation(dependences, loops, map_)
    assert (broken is not None) == wrong
    if broken is not None:
        ends = [dict(point) for point in (broken.first, broken.second)]
        points = [tuple(end[v] for v in loops) for end in ends]
        assert points[0] < points[1]
        assert [time(("", *point)) for point in points] == [broken.first_time, broken.second_time]
        name, _, index = broken.element.partition("[")
        element = (name, *map(int, index.removesuffix("]").split(", ")))
        touching = [{a[1:] for a, _ in memory[element]}]
        assert all(point in touching[0] for point in points)


def test_extents_may_be_open():
    n = Var("n")
    body = Store("y", (add(I, whole(1)),), Load("y", (I,)))
    procedure = Procedure("f", ("n",), (tensor("y", "n", role="output"),), For("i", n, body))
    dependences = exact_dependences(procedure)
    distances = Nest(dependences.model, ("i",)).distances(dependences.all)
    assert distance_vectors(distances) == ((1,),)
    assert str(map_violation(dependences, "i", AffineMap(((-1,),)))) == (
        "flow dependence on y[1]: iteration (i=0) must run before (i=1), but runs at (0) and the "
        "other at (-1)"
    )
    far = Store("y", (I,), Load("y", (whole(0),)))
    everywhere = Procedure("f", ("n",), (tensor("y", "n", role="output"),), For("i", n, far))
    dependences = exact_dependences(everywhere)
    distances = Nest(dependences.model, ("i",)).distances(dependences.all)
    assert distance_vectors(distances) is None
    assert direction_vectors(distances) == (("<",),)


def test_statements_may_have_places_of_their_own():
    """Loop fission by hand: the second statement of a blur after all of the first, or not."""
    procedure = blur(4, 3)
    assert (
        schedule_violation(procedure, {"S0": (0, "i", 0, "j", 0), "S1": (1, "p", 0, "q", 0)})
        is None
    )
    broken = schedule_violation(procedure, {"S0": (1, "i", 0, "j", 0), "S1": (0, "p", 0, "q", 0)})
    assert (broken.kind, broken.element) == ("flow", "t[0, 0]")
    assert "iteration (i=0, j=0) must run before (p=0, q=0)" in str(broken)


UNKNOWN = [
    (Store("y", (Load("at", (I,)),), Load("x", (I,))), r"index 0 of the store to y: .* at\[i\]"),
    (Store("y", (I,), Load("x", (mul(I, I),))), r"index 0 of the load of x in the .* found i \* i"),
    (
        If(Binary("gt", Load("x", (I,)), f32(0.0)), Store("y", (I,), f32(1.0))),
        r"the condition around y\[i\]: .* found x\[i\] > float32",
    ),
    (
        For("j", Load("at", (I,)), Store("y", (J,), f32(1.0))),
        r"the extent of loop j: .* found at\[i\]",
    ),
]


@pytest.mark.parametrize(("body", "message"), UNKNOWN)
def test_what_is_not_affine_is_named(body, message):
    tensors = (tensor("at", 8, dtype="int64"), tensor("x", 8), tensor("y", 8, role="output"))
    with pytest.raises(NotAffineError, match=f"f: {message}"):
        exact_dependences(Procedure("f", (), tensors, For("i", whole(8), body)))


def test_a_procedure_without_stores_has_no_dependences():
    found = exact_dependences(Procedure("f", (), (), Block(())))
    assert found.all.is_empty()


NO_NEST = [
    (transpose(), (), "at least one loop"),
    (transpose(), ("j", "i"), "expected the nest j i, found a statement in loops i j"),
    (transpose(), ("x",), "expected loops of the procedure, found x"),
    (row_sum(), ("i", "j"), "expected the nest i j, found a statement in loops i"),
]


@pytest.mark.parametrize(("procedure", "loops", "message"), NO_NEST)
def test_loops_that_are_no_nest(procedure, loops, message):
    with pytest.raises(NestError, match=message):
        Nest(exact_dependences(procedure).model, loops)


def test_a_nest_inside_another_has_the_distances_of_one_run():
    dependences = exact_dependences(gauss_seidel(3, 4))
    inner = Nest(dependences.model, ("i", "j")).distances(dependences.all)
    assert distance_vectors(inner) == ((0, 1), (1, 0))
    assert nest_facts(inner, wavefront(2)).parallel == (False, True)


def test_bands_parallel_loops_and_why_not_tilable():
    dependences = exact_dependences(gauss_seidel(3, 4))
    distances = Nest(dependences.model, "tij").distances(dependences.all)
    plain = nest_facts(distances)
    assert (plain.legal, plain.bands, plain.parallel) == (True, (1, 2), (False, False, False))
    assert plain.reason == "distance (1, -1, 0) is negative in loop 2 of 3"
    front = nest_facts(distances, AffineMap(((2, 1, 1), (1, 0, 0), (0, 1, 0))))
    assert front.parallel == (False, True, True)
    assert nest_facts(distances, reversal(3, 0)).reason.startswith("distance (-1, ")
    with pytest.raises(NestError, match="expected a map of 3 loops, found 2"):
        nest_facts(distances, identity(2))
    free = nest_facts(vectors_set([(0, 0, 1)]))
    assert (free.bands, free.parallel, free.reason) == ((3,), (True, True, False), "")


def test_direction_vectors():
    dependences = exact_dependences(jacobi_two_rows())
    distances = Nest(dependences.model, "ti").distances(dependences.all)
    assert direction_vectors(distances) == (("<", "<"), ("<", "="), ("<", ">"))


LEAST = [
    ([(1, -2), (1, 0), (1, 2)], 2),
    ([(1, -1), (0, 1)], 1),
    ([(2, -3), (1, 0)], 2),
    ([(0, 1), (1, 0)], 0),
    ([(0, -1), (1, 0)], None),
    ([(3, -7)], 3),
]


@pytest.mark.parametrize(("vectors", "factor"), LEAST)
def test_the_least_factor_to_skew_by(vectors, factor):
    distances = vectors_set(vectors)
    assert least_skew(distances) == factor
    if factor:
        assert nest_facts(distances, skew(2, 0, 1, factor)).tilable
        assert not nest_facts(distances, skew(2, 0, 1, factor - 1)).tilable


def test_all_matrices_of_the_lecture():
    found = classify([(1, -1), (1, 0), (1, 1)], 2)
    counts = [len(part) for part in (found.all, found.legal, found.tilable, found.inner_parallel)]
    assert counts == [104, 26, 12, 18]
    distances = vectors_set([(1, -1), (1, 0), (1, 1)])
    for map_ in found.all:
        facts = nest_facts(distances, map_)
        assert facts.legal == (map_ in found.legal)
        assert facts.tilable == (map_ in found.tilable)
        if facts.legal:
            assert facts.parallel[1] == (map_ in found.inner_parallel)


def test_unimodular_matrices_are_all_there():
    entries = range(-1, 2)
    wanted = [
        rows
        for a, b, c, d in itertools.product(entries, repeat=4)
        if abs(AffineMap(rows := ((a, b), (c, d))).determinant) == 1
    ]
    assert [map_.rows for map_ in unimodular_maps(2, 1)] == wanted
    assert all(map_.is_unimodular for map_ in unimodular_maps(3, 1))
    with pytest.raises(ValueError, match="at most 1953125 matrices, found 43046721"):
        unimodular_maps(4, 1)
    with pytest.raises(NestError, match="of one length"):
        classify([(1, 0), (1,)], 1)


@given(st.integers(0, 10**6), st.lists(st.integers(-5, 5), min_size=3, max_size=3))
def test_maps_are_undone_and_composed(number, constants):
    maps = unimodular_maps(3, 1)
    map_ = AffineMap(maps[number % len(maps)].rows, tuple(constants))
    assert map_.after(map_.inverse()) == map_.inverse().after(map_) == identity(3)
    points = np.array(list(itertools.product(range(-2, 3), repeat=3)), np.int64)
    assert (map_.inverse().times(map_.times(points)) == points).all()
    assert len(np.unique(map_.times(points), axis=0)) == len(points)


NO_MAP = [
    (lambda: AffineMap(()), "at least one row"),
    (lambda: AffineMap(((1, 0), (1,))), "rows of one length"),
    (lambda: AffineMap(((1,),), (1, 2)), "a constant for each of 1 rows, found 2"),
    (lambda: AffineMap(((1.5,),)), "whole entries, found 1.5"),
    (lambda: permutation((0, 0)), "every loop once"),
    (lambda: AffineMap(((2,),)).inverse(), "a unimodular map, found determinant 2"),
    (lambda: identity(2).after(identity(3)), "a map of 2 rows, found 3"),
]


@pytest.mark.parametrize(("make", "message"), NO_MAP)
def test_what_is_no_map(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_elements_of_a_private_temporary_are_its_own():
    from test_affine_directives import with_temporary

    dependences = exact_dependences(with_temporary())
    distances = Nest(dependences.model, ("i", "j")).distances(dependences.all)
    assert distance_vectors(distances) == ()
    broken = schedule_violation(
        dependences,
        {"S0": ("i", "j", 1, "k"), "S1": ("i", "j", 0, "m")},
    )
    assert (broken.kind, broken.element) == ("flow", "t[0]")


def test_one_sweep_is_tilable_and_its_wavefront_parallel():
    dependences = exact_dependences(one_sweep())
    distances = Nest(dependences.model, "ij").distances(dependences.all)
    assert nest_facts(distances).tilable
    assert nest_facts(distances).parallel == (False, False)
