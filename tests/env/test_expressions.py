from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.env.spaces.expressions import Constraint, Expression, ExpressionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Knob

VALUES = [
    ("a + b * 2", 7),
    ("(a + b) * 2", 10),
    ("a - b - 1", 0),
    ("7 // b", 3),
    ("7 % b", 1),
    ("a / b", 1.5),
    ("b ** 3", 8),
    ("-a", -3),
    ("a == 3 and b == 2", True),
    ("a == 3 or b == 9", True),
    ("not a == 3", False),
    ("1 < b <= a", True),
    ("1 < b < 2", False),
    ("4 if a > 2 else 9", 4),
    ("max(a, b) - min(a, b)", 1),
    ("ceil(a / b)", 2),
    ("floor(a / b)", 1),
    ("log2(8)", 3),
    ("abs(b - a)", 1),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text, value):
    assert Expression(text)({"a": 3, "b": 2}) == value
    columns = {"a": np.array([3, 3]), "b": np.array([2, 2])}
    np.testing.assert_array_equal(np.broadcast_to(Expression(text)(columns), (2,)), [value, value])


@given(st.integers(1, 99), st.integers(1, 99))
def test_agrees_with_python(a, b):
    text = "a * b - a // b + a % b if a > b else (a - b) ** 2"
    assert Expression(text)({"a": a, "b": b}) == eval(text)


REFUSED = [
    ("a +", "not an expression"),
    ("", "not an expression"),
    ("a.b", "Attribute"),
    ("a[0]", "Subscript"),
    ("__import__('os')", "'__import__'"),
    ("f(a)", "'f'"),
    ("lambda: a", "Lambda"),
    ("[a]", "List"),
    ("a if", "not an expression"),
    ("a @ b", "MatMult"),
    ("~a", "Invert"),
    ("a in b", "In"),
    ("max(a)", "2 argument"),
    ("log2(a, b)", "1 argument"),
    ("max(a, b, key=c)", "Call"),
    ("(a := 3)", "NamedExpr"),
    ("f'{a}'", "JoinedStr"),
    ("None", "None"),
    ("-" * 3000 + "1", "not an expression"),
    ("1" + "+1" * 3000, "not an expression"),
    ("a < " + "9" * 400, "above 2"),
    ("a < " + "9" * 20000, "at most 10000"),
    ("a == '\ud800'", "not an expression"),
    ("a\0b", "not an expression"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refused(text, message):
    with pytest.raises(ExpressionError, match=message):
        Expression(text)


def test_a_constraint_explains_itself_with_values():
    rule = Constraint(
        "shared",
        "bytes <= limit",
        "{bytes} B, at most {limit}",
        (("bytes", "a * b"),),
        (("limit", 10),),
    )
    rule.check_names(frozenset({"a", "b"}))
    holds = rule.holds({"a": np.array([2, 4]), "b": np.array([5, 5])})
    assert holds.tolist() == [True, False]
    assert rule.explain({"a": 4, "b": 5}).reason == "20 B, at most 10"
    assert rule.explain({"a": 4, "b": 5}).code == "shared"


def test_unknown_names_list_the_known():
    with pytest.raises(ExpressionError, match="unknown name 'c'; known: a, b"):
        Constraint("x", "c > 1", "").check_names(frozenset({"a", "b"}))
    with pytest.raises(ExpressionError, match="unknown name 'later'"):
        Constraint("x", "d > 1", "", (("d", "later"), ("later", "a"))).check_names(frozenset("ab"))


def test_a_constant_rule_holds_everywhere_or_nowhere():
    columns = {"a": np.array([1, 2, 3])}
    assert Constraint("x", "1 < 2", "").holds(columns).tolist() == [True] * 3


def test_no_knob_value_makes_a_rule_hang_or_wrap():
    wide = KnobSpace([Knob("x", tuple(range(40_000)))], [Constraint("c", "x < 30000", "r")])
    assert len(wide.valid) == 30_000
    big = Knob("x", (1, 2**52))
    assert len(KnobSpace([big], [Constraint("c", "x * x * x > 0", "r")]).valid) == 2
    assert len(KnobSpace([big], [Constraint("c", "x ** 1000000000 > 0", "r")]).valid) == 2


def test_rules_that_mix_text_and_numbers_are_refused():
    with pytest.raises(ExpressionError, match="cannot be evaluated"):
        KnobSpace([Knob("x", ("a", "b"))], [Constraint("c", "x < 3", "r")])
    text = KnobSpace([Knob("x", ("a", "b"))], [Constraint("c", "x == 'b'", "{x} is not b")])
    assert len(text.valid) == 1
    assert text.violations(0)[0].reason == "a is not b"


@pytest.mark.parametrize("reason", ["{a.__class__}", "{a[0]}", "{a:{b}}", "{}"])
def test_reasons_reach_nothing_but_values(reason):
    with pytest.raises(ExpressionError, match="name:format"):
        Constraint("c", "a > 1", reason)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("a % b", [(1, 2)]),
        ("a % b or a == 2", [(1, 2), (2, 0), (2, 1), (2, 2)]),
        ("a % b and 1", [(1, 2)]),
        ("1 if a % b else 0", [(1, 2)]),
        ("a % b == 0", [(1, 1), (2, 1), (2, 2)]),
    ],
)
def test_what_is_not_a_number_does_not_hold(text, valid):
    space = KnobSpace([Knob("a", (1, 2)), Knob("b", (0, 1, 2))], [Constraint("c", text, "r")])
    found = [tuple(space.candidate(i).knobs.values()) for i in space.valid.tolist()]
    assert found == valid
