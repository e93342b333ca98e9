"""Every dtype and operation: NumPy's scalars, the interpreter and compiled C agree."""

from __future__ import annotations

import numpy as np
import pytest
from programs import elementwise

from kernelwright.env.compiler.ir.dtypes import DTYPES, FLOATS, INTEGERS, whole_range
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import MATH, Binary, Cast, Const, Load, Unary, Var
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.kind import vectorize

X = Load("x", (Var("i"),))
UNUSUAL = (0.0, -0.0, 1.5, -2.5, 0.5, 3.5, -7.25, 1000.0, 1e-6, 0.1, -0.3, 42.0)


def values(dtype, n=16):
    if dtype in FLOATS:
        some = np.resize(np.array(UNUSUAL), n)
        return some.astype(dtype)
    held = whole_range(dtype)
    some = [held.start, held.stop - 1, held.stop // 2, 0, 1, 2, 3, 100, 7, 5]
    return np.resize(np.array(some, np.int64), n).astype(dtype)


def both(procedure, x, tmp_path):
    expected = interpret(procedure, {"x": x})["y"]
    kernel = compile_procedure(procedure, cache=BuildCache(tmp_path))
    return expected, kernel({"x": x})["y"]


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("bool", "int32", "int64")])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "min", "max", "neg", "abs", "chain"])
def test_arithmetic_stays_in_its_dtype(dtype, op, tmp_path):
    other = Const(3.0 if dtype in FLOATS else 3, dtype)
    if op in ("neg", "abs"):
        node = Unary(op, X)
    elif op == "chain":
        node = Binary("mul", Binary("add", Binary("mul", X, X), other), X)
    else:
        node = Binary(op, X, other)
    x = values(dtype)
    procedure = elementwise(node, dtype=dtype)
    with np.errstate(all="ignore"):
        interpreted, compiled = both(procedure, x, tmp_path)
        assert interpreted.dtype == dtype
        np.testing.assert_array_equal(interpreted, compiled)
        _, in_lanes = both(vectorize(procedure, "i"), x, tmp_path)
        np.testing.assert_array_equal(interpreted, in_lanes)


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d not in ("int32", "int64")])
@pytest.mark.parametrize("op", ["floordiv", "mod"])
@pytest.mark.parametrize("divisor", [3, -1, -5])
def test_division_rounds_towards_minus_infinity(dtype, op, divisor, tmp_path):
    if divisor not in whole_range(dtype):
        pytest.skip("no negative numbers")
    x = values(dtype)
    if divisor == -1:
        x = np.maximum(x, -x[1])  # NumPy leaves open what the least number by -1 is
    interpreted, compiled = both(
        elementwise(Binary(op, X, Const(divisor, dtype)), dtype=dtype), x, tmp_path
    )
    np.testing.assert_array_equal(interpreted, compiled)


@pytest.mark.cc
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [*MATH, "pow"])
def test_math_functions(dtype, op, tmp_path):
    x = np.abs(values(dtype)) + np.dtype(dtype).type(0.25) if op in ("log", "sqrt", "pow") else None
    x = np.clip(values(dtype), -10, 10) if x is None else x
    node = Binary("pow", X, Const(1.25, dtype)) if op == "pow" else Unary(op, X)
    interpreted, compiled = both(elementwise(node, dtype=dtype), x, tmp_path)
    if op in ("floor", "ceil", "round", "trunc"):
        np.testing.assert_array_equal(interpreted, compiled)
    np.testing.assert_allclose(interpreted, compiled, rtol=4 * np.finfo(dtype).eps)


def test_a_half_is_rounded_to_the_even_neighbour():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6, 3.0])
    y = interpret(elementwise(Unary("round", X), n=8, dtype="float64"), {"x": x})["y"]
    assert y.tolist() == [0.0, 2.0, 2.0, -0.0, -2.0, 2.0, 3.0, 3.0]


@pytest.mark.cc
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_casts_there_and_back(dtype, op, tmp_path):
    """Through every other dtype: the least and the greatest of all are what they were."""
    small = np.array([0, 1, 2, 3, 5, 100, 7, 64] * 2).astype(dtype)
    there = [Cast(dtype, Cast(between, X)) for between in DTYPES if between != "bool"]
    node = there[0]
    for each in there[1:]:
        node = Binary(op, node, each)
    interpreted, compiled = both(elementwise(node, dtype=dtype), small, tmp_path)
    np.testing.assert_array_equal(interpreted, small)
    np.testing.assert_array_equal(compiled, small)


@pytest.mark.cc
def test_every_float16_operation_rounds(tmp_path):
    """(2048 + 1) - 2048 is 0 in float16, 1 in any wider type."""
    one = Const(1.0, "float16")
    node = Binary("sub", Binary("add", X, one), X)
    x = np.full(16, 2048.0, np.float16)
    interpreted, compiled = both(elementwise(node, dtype="float16"), x, tmp_path)
    assert interpreted.tolist() == compiled.tolist() == [0.0] * 16


def test_the_text_says_dtype_and_operation():
    text = print_procedure(elementwise(Binary("pow", X, Const(2.0, "float16")), dtype="float16"))
    assert "pow(x[i], float16(2.0))" in text
