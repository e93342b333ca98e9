"""Sums with ranges, layouts and what is read before it is written, against brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import add, f32, mul, tensor

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import InterpretError, interpret
from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    For,
    If,
    Load,
    Procedure,
    Select,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.printer import print_expr
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.poly.definedness import undefined_read
from kernelwright.env.compiler.schedule.layout import parse_layout
from kernelwright.env.compiler.schedule.ranges import bounds, divided, extremes, linear, tidy

RANGES = {"i": 5, "j": 4, "k": 16, "one": 1}
KNOWN = {name: whole(size) for name, size in RANGES.items()}
N = 7
OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
}


def value(node, variables):
    match node:
        case Const(number, _):
            return number
        case Var(name):
            return variables[name]
        case Binary(op, left, right):
            return OPERATIONS[op](value(left, variables), value(right, variables))


def points():
    for values in product(*(range(size) for size in RANGES.values())):
        yield {"n": N, **dict(zip(RANGES, values, strict=True))}


LEAVES = st.one_of(
    st.sampled_from([Var(name) for name in (*RANGES, "n")]), st.integers(-6, 20).map(whole)
)
INDICES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(["add", "sub", "min", "max"]), inner, inner),
        st.builds(Binary, st.just("mul"), inner, st.integers(-4, 16).map(whole)),
        st.builds(
            Binary, st.sampled_from(["floordiv", "mod"]), inner, st.integers(1, 16).map(whole)
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(INDICES)
def test_a_tidy_index_has_the_same_value_everywhere(node):
    again = tidy(node, KNOWN)
    for variables in points():
        assert value(again, variables) == value(node, variables), print_expr(again)


@settings(max_examples=200, deadline=None)
@given(INDICES)
def test_no_value_is_out_of_bounds(node):
    form = linear(node, KNOWN)
    values = [value(node, variables) for variables in points()]
    low, high = extremes(form, KNOWN)
    assert low is None or low <= min(values)
    assert high is None or max(values) <= high
    found = bounds(form, KNOWN)
    if found is not None:
        assert value(found[0].expression(), {"n": N}) <= min(values)
        assert max(values) <= value(found[1].expression(), {"n": N})


@settings(max_examples=200, deadline=None)
@given(INDICES, st.integers(1, 16))
def test_quotient_and_remainder_are_those_of_division(node, divisor):
    quotient, remainder = (
        each.expression() for each in divided(linear(node, KNOWN), divisor, KNOWN)
    )
    for variables in points():
        wanted = divmod(value(node, variables), divisor)
        assert (value(quotient, variables), value(remainder, variables)) == wanted


READS = [
    ("i * 16 + k", "(i * 16 + k) // 16", "i"),
    ("rest", "(i * 16 + k) % 16", "k"),
    ("in halves", "(i * 32 + j * 8 + 3) // 8", "i * 4 + j"),
    ("not decided", "(i + k) // 16", "(i + k) // 16"),
    ("cancels", "i * 8 + j - i * 8", "j"),
    ("extent", "n + i - n", "i"),
    ("negative", "(i * 16 - 1) // 16", "i - 1"),
]


@pytest.mark.parametrize(("_what", "text", "wanted"), READS)
def test_indices_read_well(_what, text, wanted):
    names = {"i": Var("i"), "j": Var("j"), "k": Var("k"), "n": Var("n")}
    assert print_expr(tidy(parsed(text, names), KNOWN)) == wanted


def parsed(text, names):
    """An index in Python's words."""

    class Index:
        def __init__(self, node):
            self.node = node

        def __add__(self, other):
            return Index(Binary("add", self.node, node_of(other)))

        def __sub__(self, other):
            return Index(Binary("sub", self.node, node_of(other)))

        def __mul__(self, other):
            return Index(Binary("mul", self.node, node_of(other)))

        def __floordiv__(self, other):
            return Index(Binary("floordiv", self.node, node_of(other)))

        def __mod__(self, other):
            return Index(Binary("mod", self.node, node_of(other)))

    def node_of(item):
        return item.node if isinstance(item, Index) else whole(item)

    return eval(text, {name: Index(node) for name, node in names.items()}).node


LAYOUTS = [
    "a b -> a b",
    "a b -> b a",
    "a b -> b/4 a b%4",
    "a, b -> b/6 a b%6/2 b%2",
    "a b -> a/2 b/3 a%2 b%3",
    "a b -> b%4 a b/4",
    "a b -> a/4%2 a/8 b a%4",
]


@pytest.mark.parametrize("text", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 9), (8, 12), (1, 1)])
def test_a_layout_keeps_elements_apart_and_inside(text, shape):
    layout = parse_layout("pack", text, 2)
    stored = tuple(int(size.value) for size in layout.shape([whole(size) for size in shape]))
    found = {}
    for a, b in product(*map(range, shape)):
        place = layout.place([linear(whole(a)), linear(whole(b))], {})
        place = tuple(int(index.value) for index in place)
        assert all(0 <= index < size for index, size in zip(place, stored, strict=True))
        assert found.setdefault(place, (a, b)) == (a, b)
        back = [layout.coordinate(axis, [linear(whole(x)) for x in place]) for axis in (0, 1)]
        assert tuple(form.constant for form in back) == (a, b)


WRONG = ["a b -> a", "a b -> a b b", "a b -> a b/2", "a b -> a b/2 b%3", "a b -> a b%0 b/0"]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_layout_is_refused(text):
    with pytest.raises(ScheduleError, match="pack: expected"):
        parse_layout("pack", text, 2)


def program(writes, guard, shift, stride, order):
    """A temporary written and read in two nests, or in one."""
    i, j = Var("i"), Var("j")
    write = Store("t", (add(mul(i, whole(stride)), whole(shift)),), Load("x", (i,)))
    write = write if guard is None else If(Binary("lt", i, whole(guard)), write)
    read = Store("y", (j,), Load("t", (j,)))
    first, second = For("i", whole(writes), write), For("j", whole(4), read)
    if order == "together":
        inner = Store("y", (i,), Load("t", (i,)))
        body = For("i", whole(4), Block((If(Binary("lt", i, whole(writes)), write), inner)))
    elif order == "last first":
        body = Block((second, first))
    else:
        body = Block((first, second))
    tensors = (tensor("x", 8), tensor("y", 4, role="output"))
    nest = Allocate(Tensor("t", (whole(16),), "float32"), body)
    return verify(Procedure("f", (), tensors, nest))


@settings(max_examples=150, deadline=None)
@given(
    writes=st.integers(1, 6),
    guard=st.none() | st.integers(0, 6),
    shift=st.integers(0, 2),
    stride=st.integers(1, 2),
    order=st.sampled_from(["first", "last first", "together"]),
)
def test_a_read_is_undefined_where_the_interpreter_says_so(writes, guard, shift, stride, order):
    procedure = program(writes, guard, shift, stride, order)
    found = undefined_read(procedure, ["t"])
    try:
        interpret(procedure, {"x": np.ones(8, np.float32)})
    except InterpretError as error:
        assert "read before it was written" in str(error)  # noqa: PT017 - both ways are right
        assert found is not None
    else:
        assert found is None


def test_the_counterexample_is_an_iteration_that_reads_undefined():
    found = undefined_read(program(3, None, 0, 1, "first"), ["t"])
    assert str(found) == "t[j] is read in iteration (j=3) before it is written"
    procedure = program(4, None, 0, 1, "first")
    assert undefined_read(procedure, ["t"]) is None
    # What is not affine may not be written, and may be read.
    at = Binary("mul", Var("i"), Var("i"))
    write = For("i", whole(3), Store("t", (at,), f32(1.0)))
    read = For("j", whole(1), Store("y", (Var("j"),), Load("t", (Var("j"),))))
    nest = Allocate(Tensor("t", (whole(9),), "float32"), Block((write, read)))
    procedure = verify(Procedure("f", (), (tensor("y", 1, role="output"),), nest))
    assert undefined_read(procedure, ["t"]) is not None


def test_a_place_that_is_not_affine_only_may_be_read_too_early():
    """t[0] and t[1] are written; which of them a choice names is not looked into."""
    i, j = Var("i"), Var("j")
    chosen = Select(Binary("lt", j, whole(1)), whole(0), whole(1))
    write = For("i", whole(2), Store("t", (i,), Const(1.0, "float32")))
    read = For("j", whole(2), Store("y", (j,), Load("t", (chosen,))))
    temporary = Tensor("t", (whole(4),), "float32")
    tensors = (Tensor("y", (whole(2),), "float32", "output"),)
    procedure = Procedure("f", (), tensors, Allocate(temporary, Block((write, read))))
    assert "may be read in iteration (j=" in str(undefined_read(procedure, ["t"]))
