"""Sums of multiples of terms."""

from __future__ import annotations

import itertools
import random

import pytest
from test_region import value

from kernelwright.env.compiler.ir.nodes import Binary, Const, Load, Select, Unary, Var
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.poly.sums import Replacing, cancelled, difference, replaced, total

I, J = Var("i"), Var("j")  # noqa: E741


def add(a, b):
    return Binary("add", a, b)


def sub(a, b):
    return Binary("sub", a, b)


def mul(a, b):
    return Binary("mul", a, b)


CASES = [
    (sub(add(mul(I, whole(64)), add(J, whole(1))), mul(I, whole(64))), "j + 1"),
    (sub(whole(34), mul(I, whole(16))), "34 - i * 16"),
    (sub(I, I), "0"),
    (mul(add(I, whole(2)), whole(3)), "i * 3 + 6"),
    (sub(Binary("floordiv", add(I, J), whole(2)), Binary("floordiv", add(I, J), whole(2))), "0"),
    (Binary("max", sub(I, whole(1)), whole(0)), "max(0, i - 1)"),
]


@pytest.mark.parametrize(("node", "text"), CASES)
def test_what_cancels_out_cancels_out(node, text):
    assert print_expr(cancelled(node)) == text


def test_floats_are_left_alone():
    x = Load("x", (sub(add(I, whole(1)), I),))
    node = sub(add(x, Const(1.0, "float32")), x)
    assert print_expr(cancelled(node)) == "x[1] + float32(1.0) - x[1]"
    assert cancelled(Binary("min", x, Const(1.0, "float32"))).left == Load("x", (whole(1),))


def test_sums_and_differences():
    assert print_expr(difference(add(I, J), J)) == "i"
    assert print_expr(total(sub(I, whole(2)), whole(5))) == "i + 3"
    assert replaced(J, {"i": whole(3)}) is J
    assert print_expr(replaced(add(I, J), {"i": sub(whole(4), J)})) == "4"


def random_node(rng, depth):
    if depth == 0:
        return rng.choice((I, J, whole(rng.randrange(5))))
    op = rng.choice(("add", "sub", "mul", "floordiv", "mod", "min", "max", "add", "sub"))
    right = whole(rng.randrange(1, 5)) if op in ("floordiv", "mod") else None
    return Binary(op, random_node(rng, depth - 1), right or random_node(rng, depth - 1))


@pytest.mark.parametrize("seed", range(100))
def test_values_stay(seed):
    node = random_node(random.Random(seed), 4)
    simpler = cancelled(node)
    for i, j in itertools.product(range(-3, 4), repeat=2):
        assert value(simpler, {"i": i, "j": j}) == value(node, {"i": i, "j": j})


def test_replacing_many_times_is_replacing_and_shares_what_is_equal():
    here, next_to_it = Load("x", (I,)), Load("x", (add(I, whole(1)),))
    fixed = Load("x", (add(whole(1), whole(2)),))
    scaled = mul(add(add(here, fixed), Const(-0.0, "float32")), Const(0.0, "float32"))
    node = Select(Binary("lt", here, next_to_it), scaled, Unary("neg", add(scaled, scaled)))
    put = Replacing()
    found = [put.replaced(node, {"i": add(J, whole(n))}) for n in (1, 2, 1)]
    for n, each in zip((1, 2, 1), found, strict=True):
        # As text, in which -0.0 is not 0.0.
        assert repr(each) == repr(replaced(node, {"i": add(J, whole(n))}))
    assert repr(put.replaced(fixed, {"i": J})) == repr(fixed)
    assert found[0] is found[2]
