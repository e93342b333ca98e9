"""Which affine maps keep Jacobi and Gauss-Seidel right: the known answers, from isl's exact
dependences, and the schedules that isl finds itself.
"""

from __future__ import annotations

import pytest
from stencils import gauss_seidel, jacobi_expanded, jacobi_two_rows

from kernelwright.env.compiler.ir.nodes import Block, Procedure
from kernelwright.env.compiler.poly.affine_map import (
    AffineMap,
    identity,
    permutation,
    reversal,
    skew,
)
from kernelwright.env.compiler.poly.bands import distance_vectors, nest_facts
from kernelwright.env.compiler.poly.exact import exact_dependences
from kernelwright.env.compiler.poly.legality import map_violation
from kernelwright.env.compiler.poly.nest import Nest
from kernelwright.env.compiler.poly.scheduler import affine_schedule, schedule_rows

JACOBI = [
    ("identity", identity(2), True, False),
    ("interchange", permutation((1, 0)), False, False),
    ("time reversal", reversal(2, 0), False, False),
    ("skew i + t", skew(2, 0, 1, 1), True, True),
    ("skew, then interchange", permutation((1, 0)).after(skew(2, 0, 1, 1)), True, True),
]
SEIDEL = [
    ("identity", identity(3), True, False),
    ("i/j interchange", permutation((0, 2, 1)), True, False),
    ("t/i interchange", permutation((1, 0, 2)), False, False),
    ("wavefront (t, i + j, j)", AffineMap(((1, 0, 0), (0, 1, 1), (0, 0, 1))), True, False),
    ("(t, t + i, t + j)", AffineMap(((1, 0, 0), (1, 1, 0), (1, 0, 1))), True, True),
    ("skew, then interchange", AffineMap(((1, 1, 0), (1, 0, 0), (1, 0, 1))), True, True),
]
ROWS = [
    *((jacobi_expanded, ("t", "i"), *row) for row in JACOBI),
    *((jacobi_two_rows, ("t", "i"), *row) for row in JACOBI),
    *((gauss_seidel, ("t", "i", "j"), *row) for row in SEIDEL),
]


@pytest.mark.parametrize(("make", "loops", "name", "map_", "legal", "tilable"), ROWS)
def test_the_map_is_legal_or_not(make, loops, name, map_, legal, tilable):
    dependences = exact_dependences(make())
    facts = nest_facts(Nest(dependences.model, loops).distances(dependences.all), map_)
    broken = map_violation(dependences, loops, map_)
    assert (broken is None) == legal, f"{name}: {broken}"
    assert (facts.legal, facts.tilable) == (legal, tilable), f"{name}: {facts}"
    if broken is not None:
        # The pair is a counterexample: in order in the program, and not in the map's times.
        first, second = (tuple(dict(p)[v] for v in loops) for p in (broken.first, broken.second))
        assert first < second
        assert broken.second_time <= broken.first_time


def test_the_counterexample_of_the_interchange_is_the_one_that_one_expects():
    broken = map_violation(jacobi_expanded(), ("t", "i"), permutation((1, 0)))
    assert str(broken) == (
        "flow dependence on A[1, 2]: iteration (t=0, i=1) must run before (t=1, i=0), but runs at "
        "(1, 0) and the other at (0, 1)"
    )


def sweep(procedure):
    """The nest alone, without the one that fills the tensor."""
    assert isinstance(procedure.body, Block)
    return Procedure(procedure.name, (), procedure.tensors, procedure.body.body[1])


SCHEDULES = [
    (jacobi_expanded, ("v_t", "v_t + v_i")),
    (gauss_seidel, ("v_t", "v_t + v_i", "v_t + v_j")),
]


@pytest.mark.parametrize(("make", "rows"), SCHEDULES)
def test_the_automatic_schedule_is_the_one_that_pluto_finds(make, rows):
    (band,) = schedule_rows(affine_schedule(exact_dependences(sweep(make()))))
    assert len(band) == len(rows)
    for got, wanted in zip(band, rows, strict=True):
        assert f"-> [({wanted})]" in got


DISTANCES = [
    (jacobi_expanded, ("t", "i"), "flow", {(1, -1), (1, 0), (1, 1)}),
    (jacobi_expanded, ("t", "i"), "anti", set()),
    (jacobi_expanded, ("t", "i"), "output", set()),
    (jacobi_two_rows, ("t", "i"), "flow", {(1, -1), (1, 0), (1, 1)}),
    (jacobi_two_rows, ("t", "i"), "anti", {(1, -1), (1, 0), (1, 1)}),
    (jacobi_two_rows, ("t", "i"), "output", {(2, 0)}),
    (gauss_seidel, ("t", "i", "j"), "flow", {(0, 0, 1), (0, 1, 0), (1, -1, 0), (1, 0, -1)}),
    (gauss_seidel, ("t", "i", "j"), "anti", {(0, 0, 1), (0, 1, 0), (1, -1, 0), (1, 0, -1)}),
    (gauss_seidel, ("t", "i", "j"), "output", {(1, 0, 0)}),
]


@pytest.mark.parametrize(("make", "loops", "kind", "vectors"), DISTANCES)
def test_distances_by_kind(make, loops, kind, vectors):
    dependences = exact_dependences(make())
    pairs = dict(dependences.by_kind)[kind]
    found = distance_vectors(Nest(dependences.model, loops).distances(pairs))
    assert set(found) == vectors
