from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import add, elementwise, f32, matmul, mul, tensor

from kernelwright.env.compiler.errors import VerifyError
from kernelwright.env.compiler.ir.interpret import InterpretError, interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Cast,
    Const,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Select,
    Store,
    Tensor,
    Unary,
    Var,
    loops,
    substitute,
)
from kernelwright.env.compiler.ir.printer import print_expr, print_procedure
from kernelwright.env.compiler.ir.simplify import (
    EMPTY,
    FALSE,
    TRUE,
    simplify,
    simplify_statement,
    whole,
)
from kernelwright.env.compiler.ir.verify import verify

I, J = Var("i"), Var("j")  # noqa: E741
X = Load("x", (I,))

PRINTED = [
    (add(mul(I, whole(4)), J), "i * 4 + j"),
    (mul(add(I, J), whole(4)), "(i + j) * 4"),
    (Binary("sub", I, Binary("sub", J, whole(1))), "i - (j - 1)"),
    (Binary("sub", Binary("sub", I, J), whole(1)), "i - j - 1"),
    (Binary("floordiv", add(I, whole(3)), whole(4)), "(i + 3) // 4"),
    (Binary("min", I, whole(4)), "min(i, 4)"),
    (Binary("lt", add(I, whole(1)), J), "i + 1 < j"),
    (Binary("and", Binary("lt", I, J), Binary("or", TRUE, FALSE)), "i < j and (True or False)"),
    (Unary("exp", Load("x", (I, J))), "exp(x[i, j])"),
    (Cast("float32", I), "float32(i)"),
    (Select(TRUE, f32(1.0), f32(2.5)), "select(True, float32(1.0), float32(2.5))"),
]


@pytest.mark.parametrize(("node", "text"), PRINTED)
def test_expressions_print(node, text):
    assert print_expr(node) == text


def test_procedures_print():
    assert print_procedure(matmul()) == (
        "def matmul(input A: float32[4, 4], input B: float32[4, 8], output C: float32[4, 8]):\n"
        "  for i0 in 4:\n"
        "    for j0 in 8:\n"
        "      C[i0, j0] = float32(0.0)\n"
        "  for i in 4:\n"
        "    for k in 4:\n"
        "      for j in 8:\n"
        "        C[i, j] += A[i, k] * B[k, j]\n"
    )


def test_every_statement_prints():
    temporary = tensor("t", 4, role="temporary")
    body = Allocate(
        temporary,
        Block(
            (
                For(
                    "i",
                    Var("n"),
                    If(Binary("lt", I, whole(4)), Store("t", (I,), X, "max")),
                    LoopKind.PARALLEL,
                ),
                EMPTY,
            )
        ),
    )
    procedure = Procedure("f", ("n",), (tensor("x", "n"),), body)
    assert print_procedure(procedure) == (
        "def f(input x: float32[n], n):\n"
        "  allocate t: float32[4]\n"
        "  for i in n:  # parallel\n"
        "    if i < 4:\n"
        "      t[i] max= x[i]\n"
        "  pass\n"
    )


def test_a_matmul_means_a_matmul():
    rng = np.random.default_rng(0)
    a, b = rng.random((4, 4), np.float32), rng.random((4, 8), np.float32)
    np.testing.assert_allclose(interpret(verify(matmul()), {"A": a, "B": b})["C"], a @ b, rtol=1e-6)


VALUES = [
    (Unary("neg", X), lambda x: -x),
    (Unary("abs", Unary("neg", X)), abs),
    (Unary("sqrt", X), np.sqrt),
    (Unary("exp", X), np.exp),
    (Unary("log", X), np.log),
    (Unary("tanh", X), np.tanh),
    (Unary("floor", mul(X, f32(3.0))), lambda x: np.floor(x * np.float32(3))),
    (Binary("div", X, f32(3.0)), lambda x: x / np.float32(3)),
    (Binary("max", X, f32(0.5)), lambda x: np.maximum(x, np.float32(0.5))),
    (Select(Binary("lt", X, f32(0.5)), f32(1.0), X), lambda x: np.where(x < 0.5, np.float32(1), x)),
    (mul(X, Cast("float32", I)), lambda x: x * np.arange(16, dtype=np.float32)),
]


@pytest.mark.parametrize(("value", "numpy"), VALUES)
def test_expressions_mean_what_numpy_means(value, numpy):
    x = np.random.default_rng(1).random(16, np.float32)
    got = interpret(verify(elementwise(value)), {"x": x})["y"]
    np.testing.assert_array_equal(got, numpy(x))


def test_integer_division_rounds_down():
    x = np.arange(-8, 8)
    body = Binary(
        "add", mul(Binary("floordiv", X, whole(3)), whole(10)), Binary("mod", X, whole(3))
    )
    got = interpret(verify(elementwise(body, dtype="int64")), {"x": x})["y"]
    np.testing.assert_array_equal(got, x // 3 * 10 + x % 3)


def test_extents_are_given_when_called():
    nest = For("i", Var("n"), Store("y", (I,), X))
    procedure = verify(
        Procedure("f", ("n",), (tensor("x", "n"), tensor("y", "n", role="output")), nest)
    )
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(interpret(procedure, {"x": x}, {"n": 5})["y"], x)
    with pytest.raises(InterpretError, match=r"x: expected float32\[6\], found float32\[5\]"):
        interpret(procedure, {"x": x}, {"n": 6})
    with pytest.raises(InterpretError, match="expected extents"):
        interpret(procedure, {"x": x})


WRONG = [
    (Store("y", (I,), Cast("float32", mul(whole(2**62), whole(4)))), "int64 cannot hold"),
    (Store("y", (Cast("int64", Binary("div", f32(0.0), f32(0.0))),), X), "int64 cannot hold nan"),
    (Store("y", (I,), Cast("float32", Cast("int32", f32(1e20)))), "int32 cannot hold"),
    (Store("y", (add(I, whole(1)),), X), r"y\[4\]: expected 0 <= index < 4 on axis 0"),
    (Store("y", (I,), X, "add"), r"y\[0\]: read before it was written"),
    (If(Binary("lt", I, whole(3)), Store("y", (I,), X)), r"output y\[3\] was never written"),
    (Store("y", (Binary("floordiv", I, whole(0)),), X), "floordiv by zero"),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_programs_that_go_wrong_say_where(body, message):
    procedure = Procedure(
        "f", (), (tensor("x", 4), tensor("y", 4, role="output")), For("i", whole(4), body)
    )
    with pytest.raises(InterpretError, match=message):
        interpret(verify(procedure), {"x": np.ones(4, np.float32)})


def test_a_temporary_is_new_in_every_iteration():
    t = tensor("t", 1, role="temporary")
    body = For("i", whole(2), Allocate(t, Store("y", (I,), Load("t", (whole(0),)))))
    with pytest.raises(InterpretError, match="read before it was written"):
        interpret(verify(Procedure("f", (), (tensor("y", 2, role="output"),), body)), {})


def proc(body, *tensors, extents=()):
    return Procedure("f", extents, tensors or (tensor("x", 4), tensor("y", 4, role="output")), body)


ILL_FORMED = [
    (proc(Store("z", (whole(0),), f32(1.0))), "one of the tensors x, y, found 'z'"),
    (proc(Store("x", (whole(0),), f32(1.0))), "an output or a temporary, found input x"),
    (proc(Store("y", (), f32(1.0))), "1 indices of y, found 0"),
    (proc(Store("y", (f32(0.0),), f32(1.0))), "a whole number .int64., found float32"),
    (proc(Store("y", (I,), f32(1.0))), "one of the variables none, found 'i'"),
    (proc(Store("y", (whole(0),), whole(1))), "a value of float32, found int64"),
    (proc(Store("y", (whole(0),), f32(1.0), "xor")), "a reduction of numbers"),
    (proc(For("i", whole(2), For("i", whole(2), EMPTY))), "a loop variable of its own, found 'i'"),
    (proc(For("x", whole(2), EMPTY)), "a loop variable of its own, found 'x'"),
    (proc(For("i", f32(2.0), EMPTY)), "a whole number"),
    (
        proc(For("i", Var("n"), EMPTY, LoopKind.VECTORIZED), extents=("n",)),
        "a constant number of lanes",
    ),
    (proc(If(whole(1), EMPTY)), "a condition, found int64"),
    (proc(Allocate(tensor("x", 4, role="temporary"), EMPTY)), "a new name, found tensor 'x'"),
    (proc(EMPTY, tensor("x", 4), tensor("x", 4)), "a new name, found tensor 'x'"),
    (proc(EMPTY, tensor("x", 4, dtype="float8")), "x: float8"),
    (proc(EMPTY, tensor("x", 4, role="temporary")), "an input or output"),
    (
        proc(Store("y", (whole(0),), add(f32(1.0), Const(1.0, "float64")))),
        "two operands of one dtype",
    ),
    (proc(Store("y", (Binary("div", whole(1), whole(2)),), f32(1.0))), "div and pow on floats"),
    (proc(Store("y", (whole(0),), Unary("not", f32(1.0)))), "an operation that exists"),
    (proc(Store("y", (whole(0),), Unary("sinh", f32(1.0)))), "an operation that exists"),
    (proc(Store("y", (whole(0),), Const(1.5, "int64"))), "a whole constant"),
    (proc(Store("y", (whole(0),), Select(TRUE, f32(1.0), whole(1)))), "select.bool, T, T."),
    (proc(EMPTY, extents=("n", "n")), "distinct extents"),
    (proc(EMPTY, tensor("β", 4)), "a new name"),
    (proc(For("β", whole(2), EMPTY)), "a loop variable of its own"),
    (Procedure("f g", (), (), EMPTY), "ASCII identifiers"),
    (
        proc(For("i", whole(2), Allocate(Tensor("t", (I,), "float32"), EMPTY))),
        "one of the variables none",
    ),
    (
        proc(
            Allocate(Tensor("t", (Load("k", (whole(0),)),), "float32"), EMPTY),
            tensor("k", 1, dtype="int64"),
        ),
        "without reading memory",
    ),
    (
        proc(Store("y", (whole(0),), Cast("float32", Const(2**40, "int32")))),
        "a constant that int32 holds",
    ),
]


@pytest.mark.parametrize(("procedure", "message"), ILL_FORMED)
def test_what_is_not_well_formed_is_refused_with_its_place(procedure, message):
    with pytest.raises(VerifyError, match=message) as caught:
        verify(procedure)
    assert caught.value.where.startswith("f")


def test_the_place_is_the_path_of_nodes():
    body = For("i", whole(2), Block((EMPTY, Store("y", (J,), f32(1.0)))))
    with pytest.raises(
        VerifyError, match="f > for i > 1 > store y: expected one of the variables i"
    ):
        verify(proc(body))


SIMPLER = [
    (add(I, whole(0)), I),
    (add(whole(0), I), I),
    (mul(I, whole(1)), I),
    (mul(whole(0), I), whole(0)),
    (Binary("floordiv", I, whole(1)), I),
    (Binary("mod", I, whole(1)), whole(0)),
    (add(add(I, whole(2)), whole(3)), add(I, whole(5))),
    (mul(mul(I, whole(2)), whole(3)), mul(I, whole(6))),
    (Binary("lt", whole(2), whole(3)), TRUE),
    (Binary("and", TRUE, Binary("lt", I, J)), Binary("lt", I, J)),
    (Binary("or", TRUE, Binary("lt", I, J)), TRUE),
    (Binary("or", Binary("lt", I, J), FALSE), Binary("lt", I, J)),
    (Unary("not", FALSE), TRUE),
    (Select(FALSE, I, J), J),
    (Binary("min", I, I), I),
    (Binary("floordiv", whole(-7), whole(2)), whole(-4)),
    (Binary("floordiv", whole(1), whole(0)), Binary("floordiv", whole(1), whole(0))),
    (add(whole(2**62), whole(2**62)), add(whole(2**62), whole(2**62))),
    (add(f32(0.0), X), add(f32(0.0), X)),
    (add(I, add(J, whole(2))), add(add(I, J), whole(2))),
    # Sums of floats keep their order: regrouped they round differently.
    (Binary("add", X, Binary("add", X, X)), Binary("add", X, Binary("add", X, X))),
]


@pytest.mark.parametrize(("node", "simpler"), SIMPLER)
def test_rules(node, simpler):
    assert simplify(node) == simpler


def test_what_never_runs_goes_away():
    store = Store("y", (I,), f32(1.0))
    assert simplify_statement(If(TRUE, store)) == store
    assert simplify_statement(If(FALSE, store)) == EMPTY
    assert simplify_statement(For("i", whole(0), store)) == EMPTY
    assert simplify_statement(Block((EMPTY, Block((store,))))) == store
    assert simplify_statement(For("i", Var("n"), If(FALSE, store))) == EMPTY


leaves = st.one_of(st.integers(-9, 9).map(whole), st.sampled_from([I, J]))
wholes = st.recursive(
    leaves,
    lambda inner: st.builds(
        Binary,
        st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "min", "max"]),
        inner,
        inner,
    ),
    max_leaves=12,
)


def value_of(node, i, j):
    store = Store("y", (whole(0),), substitute(node, {"i": whole(i), "j": whole(j)}))
    procedure = Procedure("f", (), (Tensor("y", (whole(1),), "int64", "output"),), store)
    try:
        return int(interpret(procedure, {})["y"][0])
    except (InterpretError, OverflowError):
        return None


@given(wholes, st.integers(-20, 20), st.integers(-20, 20))
def test_simplifying_keeps_the_value(node, i, j):
    wanted = value_of(node, i, j)
    # A rule may remove a failing part that is multiplied by 0; where there is a value, it is the
    # same.
    if wanted is not None:
        assert value_of(simplify(node), i, j) == wanted


def test_loops_are_listed_in_program_order():
    assert [loop.var for loop in loops(matmul())] == ["i0", "j0", "i", "k", "j"]
