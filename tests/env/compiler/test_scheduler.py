"""The automatic affine schedule, and the loops that are generated from schedules."""

from __future__ import annotations

import islpy as isl
import pytest
from programs import matmul
from stencils import gauss_seidel, jacobi_expanded, jacobi_two_rows
from test_affine_directives import pairs
from test_schedule import blur, row_sum, triangular

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Binary, Const, If, Store, Var, loops, statements
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.poly.dependence import Dependences
from kernelwright.env.compiler.poly.exact import exact_dependences
from kernelwright.env.compiler.poly.generate import GenerateError, generate
from kernelwright.env.compiler.poly.legality import violation
from kernelwright.env.compiler.poly.limits import LimitError, limited
from kernelwright.env.compiler.poly.normal import difference, minimum, normalized
from kernelwright.env.compiler.poly.scheduler import FUSE, affine_schedule, schedule_rows
from kernelwright.env.compiler.schedule import affine
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace

PROGRAMS = {
    "matmul": matmul(5, 6, 4),
    "jacobi": jacobi_expanded(),
    "two rows": jacobi_two_rows(),
    "seidel": gauss_seidel(),
    "blur": blur(),
    "row_sum": row_sum(),
    "triangular": triangular(),
    "pairs": pairs(),
}


@pytest.mark.parametrize("fuse", FUSE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_schedule_keeps_every_dependence(name, fuse):
    """By the exact dependences that it is made from, and by all pairs that share an element."""
    procedure = PROGRAMS[name]
    dependences = exact_dependences(procedure)
    order = affine_schedule(dependences, fuse).get_map()
    assert violation(dependences, order) is None
    pairs = Dependences(procedure).pairs
    assert pairs.intersect(order.lex_ge_union_map(order)).is_empty()


def test_fusion_is_what_was_asked_for():
    dependences = exact_dependences(blur())
    apart = schedule_rows(affine_schedule(dependences, "nofuse"))
    together = schedule_rows(affine_schedule(dependences, "maxfuse"))
    assert len(apart) == 2
    assert len(together) == 1
    with pytest.raises(ValueError, match="one of nofuse, smartfuse, maxfuse, found 'all'"):
        affine_schedule(dependences, "all")


def test_the_options_of_isl_stay_as_they_were():
    context = isl.DEFAULT_CONTEXT
    names = ("schedule_serialize_sccs", "schedule_whole_component", "tile_scale_tile_loops")
    before = [getattr(context, f"get_{name}")() for name in names]
    apply_trace(verify(blur()), parse_trace("affine('i', 4, 'maxfuse', True)"))
    apply_trace(verify(matmul()), parse_trace("affine('i', 4, 'nofuse')"))
    assert [getattr(context, f"get_{name}")() for name in names] == before


def test_full_tiles_have_numbers_for_extents_and_no_guards():
    """Of 12 x 20 points and skewed tiles of 4 x 4, the full ones stand apart."""
    after = apply_trace(
        verify(jacobi_expanded(12, 20)), parse_trace("affine('t', 4, 'smartfuse', True)")
    )
    stores = [s for s in statements(after.body) if isinstance(s, Store)]
    assert len(stores) > 2
    full = [
        loop
        for loop in loops(after)
        if loop.extent == Const(4, "int64") and isinstance(loop.body, Store)
    ]
    assert len(full) >= 1
    for loop in full:
        unrolled = apply_trace(after, parse_trace(f"unroll({loop.var!r})"))
        assert unrolled != after
    together = apply_trace(verify(jacobi_expanded(12, 20)), parse_trace("affine('t', 4)"))
    assert len([s for s in statements(together.body) if isinstance(s, Store)]) == 2
    assert any(isinstance(s, If) for s in statements(together.body))


def test_loops_without_names_are_refused():
    schedule = isl.Schedule.from_domain(isl.UnionSet("{ S[i] : 0 <= i < 4 }"))
    node = schedule.get_root().child(0)
    band = node.insert_partial_schedule(isl.MultiUnionPwAff("[{ S[i] -> [(i)] }]"))
    with pytest.raises(GenerateError, match="expected a named loop"):
        generate(band.get_schedule(), isl.Set("{ : }"), lambda *_: Store("y", (), whole(0)), str)


I, J = Var("i"), Var("j")  # noqa: E741


def add(a, b):
    return Binary("add", a, b)


def sub(a, b):
    return Binary("sub", a, b)


def mul(a, b):
    return Binary("mul", a, b)


NORMAL = [
    (sub(add(I, J), I), "j"),
    (add(sub(whole(3), I), whole(4)), "7 - i"),
    (mul(add(I, whole(2)), whole(3)), "i * 3 + 6"),
    (mul(whole(-1), I), "i * -1"),
    (sub(sub(J, I), mul(J, whole(2))), "j * -1 - i"),
    (Binary("min", add(I, whole(3)), add(I, whole(1))), "i + 1"),
    (Binary("max", add(I, whole(3)), Binary("max", J, add(I, whole(5)))), "max(i + 5, j)"),
    (Binary("floordiv", sub(add(I, whole(8)), I), whole(2)), "4"),
    (add(Binary("mod", I, whole(4)), Binary("mod", I, whole(4))), "i % 4 * 2"),
    (mul(I, add(J, sub(I, I))), "i * j"),
    (sub(I, I), "0"),
]


@pytest.mark.parametrize(("node", "text"), NORMAL)
def test_normal_forms(node, text):
    assert print_expr(normalized(node)) == text


def test_least_of_differences():
    assert print_expr(minimum([add(I, whole(2)), J, I])) == "min(i, j)"
    assert print_expr(difference(add(I, J), J, 1)) == "i + 1"


def test_a_question_without_an_end_is_refused():
    refusal = pytest.raises(LimitError, match="dependences: expected an answer in 10 steps of isl")
    with refusal, limited("dependences", 10):
        exact_dependences(blur())
    # Other faults of isl stay what they are, and nothing of the limit is left.
    with pytest.raises(isl.Error), limited("a set", 1000):
        isl.Set("no set")
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0
    assert schedule_rows(affine_schedule(exact_dependences(blur())))


def test_a_directive_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(affine, "MAX_DEPENDENCE_OPERATIONS", 100)
    with pytest.raises(ScheduleError, match="affine: exact dependences: expected an answer in 100"):
        apply_trace(verify(blur(9, 8)), parse_trace("affine('i', 0, 'maxfuse')"))


def test_a_schedule_does_not_depend_on_what_was_asked_before():
    """A nest on which the solver does not end if equalities are only implied."""
    split = apply_trace(verify(jacobi_two_rows(4, 5)), parse_trace("split('p1', 4)"))
    dependences = exact_dependences(split)
    first = schedule_rows(affine_schedule(dependences, "maxfuse"))
    assert first == schedule_rows(affine_schedule(dependences, "maxfuse"))
    assert first == schedule_rows(affine_schedule(exact_dependences(split), "maxfuse"))
