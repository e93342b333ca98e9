"""An unrolled sum over the lanes of registers is a tree of halves; what is no such sum is written
out.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_codegen import needs_cc

from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.lane_sums import lane_sum_helper
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    For,
    If,
    Load,
    LoopKind,
    Procedure,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache

K = Var("k")


def summed(dtype, lanes, count, guard=None, reassociable=True):
    """s += P[0] + P[1] + …, P a copy of the input in vectors of ``lanes``."""
    at = Binary("add", Binary("mul", Var("o"), whole(lanes)), Var("l"))
    copy = Store("P", (at,), Load("x", (at,)))
    fill = For("o", whole(count // lanes), For("l", whole(lanes), copy, LoopKind.VECTORIZED))
    add = Store("s", (whole(0),), Load("P", (K,)), "add", reassociable=reassociable)
    body = add if guard is None else If(guard, add)
    total = For("k", whole(count), body, LoopKind.UNROLLED)
    unrolled = For(fill.var, fill.extent, fill.body, LoopKind.UNROLLED)
    start = Store("s", (whole(0),), Const(0.0, dtype))
    registers = Tensor("P", (whole(count),), dtype, "temporary", "register")
    tensors = (
        Tensor("x", (whole(count),), dtype, "input"),
        Tensor("s", (whole(1),), dtype, "output"),
    )
    body = Block((start, Allocate(registers, Block((unrolled, total)))))
    return verify(Procedure("total", (), tensors, body))


@needs_cc
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("lanes", "count"), [(2, 2), (4, 4), (8, 8), (8, 16), (16, 16)])
def test_the_sum_is_that_of_the_interpreter(tmp_path, dtype, lanes, count):
    procedure = summed(dtype, lanes, count)
    assert "kw_sum_" in generate(procedure)
    x = np.random.default_rng(0).integers(-50, 50, count).astype(dtype)
    kernel = compile_procedure(procedure, cache=BuildCache(tmp_path))
    np.testing.assert_array_equal(kernel({"x": x})["s"], interpret(procedure, {"x": x})["s"])


@needs_cc
def test_halves_are_added_to_halves(tmp_path):
    """(1 + 2^53) + (1 - 2^53) keeps nothing of either 1 in the order of the loop."""
    x = np.array([1.0, 2.0**53, 1.0, -(2.0**53)])
    kernel = compile_procedure(summed("float64", 4, 4), cache=BuildCache(tmp_path))
    assert kernel({"x": x})["s"][0] == (x[0] + x[2]) + (x[1] + x[3])


def test_a_guard_that_holds_for_all_lanes_stays_around_the_sum():
    text = generate(
        summed("float64", 4, 4, Binary("lt", Load("x", (whole(0),)), Const(3.0, "float64")))
    )
    assert "if (x[0] < 3.0) {" in text
    assert text.count("+= kw_sum_f64x4(") == 1


def test_sums_in_a_fixed_order_and_guards_that_the_sum_changes_are_written_out():
    guard = Binary("lt", Load("s", (whole(0),)), Const(3.0, "float64"))
    lane = Binary("lt", K, whole(2))
    for procedure in (
        summed("float64", 4, 4, reassociable=False),
        summed("float64", 4, 4, guard),
        summed("float64", 4, 4, lane),
    ):
        assert "kw_sum_" not in generate(procedure)


def test_the_helper_has_a_form_for_compilers_without_shuffles():
    assert lane_sum_helper("float64", 4).splitlines() == [
        "static inline double kw_sum_f64x4(f64x4 v) {",
        "#if defined(__clang__) || __GNUC__ >= 12",
        "    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);",
        "    return v[0] + v[1];",
        "#else",
        "    return ((v[0] + v[2]) + (v[1] + v[3]));",
        "#endif",
        "}",
    ]
