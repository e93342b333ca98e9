from __future__ import annotations

import pytest
from programs import add, f32, matmul, mul, tensor

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
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
from kernelwright.env.compiler.poly.dependence import Dependences
from kernelwright.env.compiler.poly.model import affine_text, build_model, condition_text

I, J, T = Var("i"), Var("j"), Var("t")  # noqa: E741


def jacobi(steps=6, size=10):
    """A[t + 1, i] from its three neighbours at t."""
    before = [Load("A", (T, add(I, whole(d)))) for d in (0, 1, 2)]
    store = Store("A", (add(T, whole(1)), add(I, whole(1))), add(*before))
    nest = For("t", whole(steps), For("i", whole(size), store))
    return Procedure("jacobi", (), (tensor("A", steps + 1, size + 2, role="output"),), nest)


def seidel(steps=4, size=6):
    """A two-dimensional Gauss-Seidel sweep, in place."""
    i1, j1 = add(I, whole(1)), add(J, whole(1))
    around = [
        Load("A", p) for p in ((I, j1), (i1, J), (i1, add(J, whole(2))), (add(I, whole(2)), j1))
    ]
    nest = For(
        "t",
        whole(steps),
        For("i", whole(size), For("j", whole(size), Store("A", (i1, j1), add(*around)))),
    )
    return Procedure("seidel", (), (tensor("A", size + 2, size + 2, role="output"),), nest)


def test_what_the_loops_of_a_matmul_carry():
    found = Dependences(matmul())
    assert [v for v in ("i0", "j0", "i", "j") if found.carried_by(v)] == []
    conflict = found.carried_by("k")
    assert conflict.element == "C[i, j]"
    first, second = dict(conflict.first), dict(conflict.second)
    assert (first["i"], first["j"]) == (second["i"], second["j"])
    assert first["k"] < second["k"]
    assert "must run before" in str(conflict)


# Legality in the (t, i) space of Jacobi and the (t, i, j) space of Gauss-Seidel: the known answers.
ORDERS = [
    (jacobi, ("t", "i"), True),
    (jacobi, ("i", "t"), False),
    (seidel, ("t", "i", "j"), True),
    (seidel, ("t", "j", "i"), True),
    (seidel, ("i", "t", "j"), False),
    (seidel, ("j", "i", "t"), False),
]


@pytest.mark.parametrize(("make", "order", "legal"), ORDERS)
def test_interchange(make, order, legal):
    found = Dependences(make())
    (instance,) = found.model.instances
    names = iter(order)
    position = tuple(next(names) if isinstance(p, str) else p for p in instance.position)
    assert (found.turned_around({instance.name: position}) is None) == legal


def test_a_time_loop_is_carried_and_space_is_not():
    found = Dependences(jacobi())
    assert found.carried_by("t")
    assert found.carried_by("i") is None
    assert all(Dependences(seidel()).carried_by(v) for v in "tij")


def test_a_temporary_is_private_to_its_iteration():
    t = tensor("t", 1, role="temporary")
    inner = Block(
        (Store("t", (whole(0),), Load("x", (I,))), Store("y", (I,), Load("t", (whole(0),))))
    )
    tensors = (tensor("x", 4), tensor("y", 4, role="output"))
    inside = Procedure("f", (), tensors, For("i", whole(4), Allocate(t, inner)))
    outside = Procedure("f", (), tensors, Allocate(t, For("i", whole(4), inner)))
    assert Dependences(inside).carried_by("i") is None
    assert Dependences(outside).carried_by("i")


def test_what_is_not_affine_may_touch_anything():
    tensors = (tensor("at", 8, dtype="int64"), tensor("x", 8), tensor("y", 8, role="output"))
    scatter = Store("y", (Load("at", (I,)),), Load("x", (I,)))
    assert Dependences(Procedure("f", (), tensors, For("i", whole(8), scatter))).carried_by("i")
    gather = Store("y", (I,), Load("x", (Load("at", (I,)),)))
    assert (
        Dependences(Procedure("f", (), tensors, For("i", whole(8), gather))).carried_by("i") is None
    )


def test_guards_restrict_the_domain():
    tensors = (tensor("y", 9, role="output"),)
    shift = Store("y", (add(I, whole(4)),), Load("y", (I,)))
    free = Procedure("f", (), tensors, For("i", whole(5), shift))
    assert Dependences(free).carried_by("i")
    guarded = Procedure("f", (), tensors, For("i", whole(5), If(Binary("lt", I, whole(4)), shift)))
    assert Dependences(guarded).carried_by("i") is None


def test_extents_are_parameters():
    nest = For("i", Var("n"), Store("y", (add(I, Var("n")),), Load("y", (I,))))
    procedure = Procedure("f", ("n",), (tensor("y", "n", role="output"),), nest)
    assert Dependences(procedure).carried_by("i") is None
    assert build_model(procedure).parameters == "[v_n] -> "


TEXTS = [
    (add(mul(whole(4), I), J), "((4 * v_i) + v_j)"),
    (Binary("floordiv", I, whole(8)), "floor((v_i) / 8)"),
    (Binary("mod", Binary("sub", I, whole(1)), whole(8)), "(((v_i - 1)) mod 8)"),
    (mul(I, J), None),
    (Load("x", (I,)), None),
    (Binary("floordiv", I, J), None),
]


@pytest.mark.parametrize(("node", "text"), TEXTS)
def test_affine_expressions(node, text):
    assert affine_text(node) == text


def test_affine_conditions():
    assert condition_text(Binary("lt", I, whole(4))) == "v_i < 4"
    both = Binary("and", Binary("ge", I, J), Binary("ne", I, whole(0)))
    assert condition_text(both) == "((v_i >= v_j) and (v_i != 0))"
    assert condition_text(Binary("lt", mul(I, J), whole(4))) is None
    assert condition_text(Binary("lt", f32(1.0), f32(2.0))) is None


def test_a_procedure_without_statements_depends_on_nothing():
    empty = Dependences(Procedure("f", (), (), Block(())))
    assert empty.carried_by("i") is None
    assert empty.turned_around({}) is None


@pytest.mark.parametrize("name", ["floor", "mod", "and", "exists", "infty", "S0", "max"])
def test_names_that_mean_something_to_isl(name):
    store = Store("y", (Var(name),), Load("x", (Var(name),)))
    tensors = (tensor("x", 4), tensor("y", 4, role="output"))
    assert (
        Dependences(Procedure("f", (), tensors, For(name, whole(4), store))).carried_by(name)
        is None
    )


def test_extents_that_are_loaded_are_read():
    tensors = (
        tensor("x", 4),
        tensor("n", 5, dtype="int64", role="output"),
        tensor("y", 4, role="output"),
    )
    inner = For("j", Load("n", (I,)), Store("y", (I,), Load("x", (J,))))
    step = Store("n", (add(I, whole(1)),), whole(1))
    body = For("i", whole(4), Block((inner, step)))
    assert Dependences(Procedure("f", (), tensors, body)).carried_by("i")


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "blur", "jacobi1d", "matmul", "spmv"])
def test_what_a_loop_carries_is_told_by_the_outermost_statement_around_it(name):
    from kernelwright.configs.resolve import resolve
    from kernelwright.env.compiler.ir.nodes import loops
    from kernelwright.env.compiler.schedule.edit import carried, parts
    from kernelwright.env.problems import PROBLEMS

    problem = resolve(PROBLEMS, name)()
    procedure = problem.definition(problem.workloads[0])
    whole_procedure = Dependences(procedure)
    seen = 0
    for part in parts(procedure):
        for loop in loops(part):
            seen += 1
            alone, together = carried(part, loop.var), whole_procedure.carried_by(loop.var)
            assert (alone is None) == (together is None), loop.var
    assert seen == len(loops(procedure))
