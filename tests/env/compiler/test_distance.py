"""Interval arithmetic proves no more than isl does, and proves what schedules are made of."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest
from programs import add, matmul, mul

from kernelwright.env.compiler.ir.nodes import (
    Binary,
    Block,
    For,
    Load,
    Procedure,
    Store,
    Tensor,
    Var,
    loops,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.poly.affine_map import AffineMap
from kernelwright.env.compiler.poly.dependence import Dependences, counterexample
from kernelwright.env.compiler.poly.distance import (
    carries_nothing,
    keeps_order,
    meets_within,
    touched_only_after,
)
from kernelwright.env.compiler.poly.model import build_model, isl_name
from kernelwright.env.compiler.poly.nest import Nest
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace

SIZE = 64
PROGRAMS = 60


def random_program(rng):
    """Two nests of two or three loops with affine, quotient and remainder indices."""

    def index(names):
        out = whole(int(rng.integers(0, 4)) + SIZE // 2)
        for name in names:
            factor = int(rng.choice((-2, -1, 0, 0, 1, 1, 2, 4)))
            if factor:
                term = Var(name)
                if rng.random() < 0.2:
                    op = str(rng.choice(("floordiv", "mod")))
                    term = Binary(op, term, whole(int(rng.integers(2, 4))))
                out = Binary("add", out, Binary("mul", term, whole(factor)))
        return out

    def nest(number):
        names = [f"{letter}{number}" for letter in "ijk"[: int(rng.integers(2, 4))]]
        stores = []
        for _ in range(int(rng.integers(1, 3))):
            value = Load(str(rng.choice(("p", "q"))), (index(names), index(names)))
            place = (index(names), index(names))
            reduce = "add" if rng.random() < 0.3 else None
            stores.append(Store(str(rng.choice(("p", "q"))), place, value, reduce))
        body = stores[0] if len(stores) == 1 else Block(tuple(stores))
        for name in reversed(names):
            body = For(name, whole(int(rng.integers(2, 5))), body)
        return body

    tensors = tuple(Tensor(n, (whole(SIZE),) * 2, "float64", "output") for n in "pq")
    return verify(Procedure("random", (), tensors, Block((nest(0), nest(1)))))


def equal(model, instances, names):
    """Pairs of iterations of instances that agree in the values of some loops."""
    parts = [f"{i.tuple_text} -> [{', '.join(map(isl_name, names(i)))}]" for i in instances]
    mapping = isl.UnionMap("{ " + "; ".join(parts) + " }")
    return mapping.apply_range(mapping.reverse())


@pytest.fixture(scope="module")
def programs():
    rng = np.random.default_rng(11)
    return [random_program(rng) for _ in range(PROGRAMS)]


def test_a_loop_that_carries_nothing_carries_nothing(programs):
    proved = carrying = 0
    for program in programs:
        dependences = Dependences(program)
        model, pairs = dependences.model, dependences.pairs
        for loop in (each.var for each in loops(program)):
            inside = [i for i in model.instances if loop in i.variables]
            outer = equal(model, inside, lambda i: i.variables[: i.variables.index(loop)])  # noqa: B023
            here = equal(model, inside, lambda i: (loop,))  # noqa: B023
            carried = not pairs.intersect(outer).subtract(here).is_empty()
            carrying += carried
            if carries_nothing(model, loop):
                assert not carried, (program, loop)
                proved += 1
    assert proved > 50
    assert carrying > 50


def test_an_order_that_is_kept_is_kept(programs):
    proved = broken = 0
    for program in programs:
        dependences = Dependences(program)
        model = dependences.model
        for first in (i.variables[0] for i in model.instances if i.name in ("S0", "S3")):
            second = first.replace("i", "j")
            nest = Nest(model, (first, second))
            for rows in (((0, 1), (1, 0)), ((1, 1), (0, 1)), ((-1, 0), (0, 1))):
                map_ = AffineMap(rows, (0, 0))
                for tiles in ((), (2, 3)):
                    order = nest.order(map_, tiles)
                    found = dependences.pairs.intersect(order.lex_ge_union_map(order))
                    wrong = counterexample(model, found)
                    broken += wrong is not None
                    if keeps_order(model, nest.positions(map_, tiles), {}):
                        assert wrong is None, (program, rows, tiles)
                        proved += 1
    assert proved > 25
    assert broken > 25


def test_iterations_that_meet_at_one_place_meet_there(programs):
    proved = 0
    for program in programs:
        model = build_model(program)
        for tensor in "pq":
            writes = model.writes(tensor)
            touches = writes.union(model.reads(tensor))
            pairs = writes.apply_range(touches.reverse())
            for depth in (1, 2):
                places = {i.name: i.variables[:depth] for i in model.instances}
                one = equal(model, model.instances, lambda i: places[i.name])  # noqa: B023
                if meets_within(model, tensor, places):
                    assert pairs.subtract(one).is_empty(), (program, tensor)
                    proved += not pairs.is_empty()
    assert proved > 10


def test_what_is_touched_only_after_is(programs):
    proved = 0
    for program in programs:
        model = build_model(program)
        order = model.order()
        writes = model.writes()
        for instance in model.instances:
            own = isl.UnionSet("{ " + instance.tuple_text + " }")
            begin = writes.intersect_domain(own)
            others = writes.subtract(begin).union(model.reads())
            early = others.apply_range(begin.reverse()).intersect(order.lex_le_union_map(order))
            if touched_only_after(model, instance, ()):
                assert early.is_empty(), (program, instance.name)
                proved += 1
    assert proved > 10


TILED = """
split('i', 8)
split('j', 32)
split('ji', 16, 'ju', 'jv')
reorder('io', 'jo', 'k', 'ii', 'ju', 'jv')
"""


@pytest.mark.parametrize("loop", ["io", "jo", "ii", "ju", "jv"])
def test_loops_of_a_tiled_product_need_no_isl(loop):
    procedure = apply_trace(matmul(64, 64, 8), parse_trace(TILED))
    assert carries_nothing(build_model(procedure), loop)


@pytest.mark.parametrize("loop", ["io", "ii"])
def test_a_tail_needs_no_isl(loop):
    procedure = apply_trace(matmul(13, 7, 5), parse_trace("split('i', 4)"))
    assert carries_nothing(build_model(procedure), loop)


def test_the_loop_of_the_sum_is_not_proved():
    assert not carries_nothing(build_model(matmul()), "k")


def test_a_fused_loop_needs_no_isl():
    at = (Binary("floordiv", Var("f"), whole(5)), Binary("mod", Var("f"), whole(5)))
    store = Store("y", at, mul(Load("y", at), Load("y", at)))
    y = Tensor("y", (whole(4), whole(5)), "float32", "output")
    assert carries_nothing(build_model(Procedure("f", (), (y,), For("f", whole(20), store))), "f")


def test_neighbours_of_even_and_odd_elements_do_not_meet():
    even = Binary("mul", Var("i"), whole(2))
    store = Store("y", (even,), Load("y", (add(even, whole(1)),)))
    y = Tensor("y", (whole(20),), "float32", "output")
    assert carries_nothing(build_model(Procedure("f", (), (y,), For("i", whole(10), store))), "i")


def test_what_every_iteration_of_a_loop_has_of_its_own_is_its_own():
    procedure = apply_trace(matmul(8, 8, 4), parse_trace("cache_write('C', 'i')"))
    assert carries_nothing(build_model(procedure), "i")
