"""Index notation: texts and their trees, errors that point into the text, and what a tree says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.env.compiler.sparse.notation import (
    Access,
    Add,
    Assignment,
    Literal,
    Mul,
    Neg,
    NotationError,
    Sub,
    access_text,
    accesses,
    extents,
    indices,
    reduction_variables,
    tensors,
    variables,
)
from kernelwright.env.compiler.sparse.parse import (
    DEPTH,
    assign,
    check,
    parse,
    print_assignment,
    print_expression,
)

Y, S = Access("y", ("i",)), Access("s", ())
A, B = Access("A", ("i", "j")), Access("B", ("i", "j"))
B_I, C_I = Access("b", ("i",)), Access("c", ("i",))
X_I, X = Access("x", ("i",)), Access("x", ("j",))
SCALAR = Access("a", ())

TREES = {
    "y(i) = A(i,j) * x(j)": Assignment(Y, Mul(A, X)),
    "y[i] = A[i, j]*x[j]": Assignment(Y, Mul(A, X)),
    " y ( i )\n  = A(i,j)\n  * x(j) ": Assignment(Y, Mul(A, X)),
    "y(i) = A(j,i) * x(j)": Assignment(Y, Mul(Access("A", ("j", "i")), X)),
    "s = x(i) * x(i)": Assignment(S, Mul(X_I, X_I)),
    "s() = x(i)": Assignment(S, X_I),
    "y(i) = a * x(i)": Assignment(Y, Mul(SCALAR, X_I)),
    "y(i) = 2 * x(i) + .5 * b(i)": Assignment(Y, Add(Mul(Literal(2), X_I), Mul(Literal(0.5), B_I))),
    "y(i) = 1e-3 * x(i)": Assignment(Y, Mul(Literal(0.001), X_I)),
    "y(i) = 2. * x(i) * 1E+2": Assignment(Y, Mul(Mul(Literal(2), X_I), Literal(100))),
    "y(i) = x(i) - b(i) - c(i)": Assignment(Y, Sub(Sub(X_I, B_I), C_I)),
    "y(i) = x(i) - (b(i) - c(i))": Assignment(Y, Sub(X_I, Sub(B_I, C_I))),
    "y(i) = x(i) + b(i) * c(i)": Assignment(Y, Add(X_I, Mul(B_I, C_I))),
    "y(i) = (x(i) + b(i)) * c(i)": Assignment(Y, Mul(Add(X_I, B_I), C_I)),
    "y(i) = -x(i) * b(i)": Assignment(Y, Mul(Neg(X_I), B_I)),
    "y(i) = -(x(i) * b(i))": Assignment(Y, Neg(Mul(X_I, B_I))),
    "y(i) = x(i) * --b(i)": Assignment(Y, Mul(X_I, Neg(Neg(B_I)))),
    "y(i) = (A(i,j) + b(i)) * x(j)": Assignment(Y, Mul(Add(A, B_I), X)),
    "y(i) = (A(i,j) + b(i)) * c(i)": Assignment(Y, Mul(Add(A, B_I), C_I)),
    "y(i) = ((x(i)))": Assignment(Y, X_I),
}


@pytest.mark.parametrize("text", TREES)
def test_a_text_is_its_tree(text):
    assert parse(text) == TREES[text]


# A caret line under the text, then what is expected and found.
ERRORS = [
    ("", "^", "expected an assignment, found the end"),
    ("  ", "  ^", "expected an assignment, found the end"),
    (
        "y(i) = A(i,j) @ x(j)",
        "              ^",
        "expected a name, a number or one of = + - * ( ) [ ] ,, found '@'",
    ),
    ("y(i) = A(i,j * x(j)", "             ^", "expected , or ), found *"),
    ("y(i) = A(i,j] * x(j)", "            ^", "expected , or ), found ]"),
    ("y(i) = x[i)", "          ^", "expected , or ], found )"),
    ("y(i) = (x(i) + b(i)", "                   ^", "expected +, -, * or ), found the end"),
    ("y(i) = x(i))", "           ^", "expected +, -, * or the end, found )"),
    ("y(i) = x(i) b(i)", "            ^", "expected +, -, * or the end, found b"),
    ("y(i) = x(,i)", "         ^", "expected an index or ), found ,"),
    ("y(i) = x(i,)", "           ^", "expected an index, found )"),
    ("y(i) = x(1)", "         ^", "expected an index or ), found 1"),
    ("y(i) x(i)", "     ^", "expected =, found x"),
    ("y(i) = ", "       ^", "expected a tensor, a number, - or (, found the end"),
    ("2 = x(i)", "^", "expected the target, found 2"),
    ("y(i) = x(i) = b(i)", "            ^", "expected +, -, * or the end, found ="),
    (
        "y(i) += x(i)",
        "     ^",
        "expected =, found += (the target is assigned, and sums are Einstein's: write =)",
    ),
    (
        "y(i) = x(i) / 2",
        "            ^",
        "expected +, -, * or the end, found / (division is not in index notation)",
    ),
    (
        "y(i) = x(i)**2",
        "           ^",
        "expected +, -, * or the end, found ** (a power is written as a product)",
    ),
    ("y(i) = 1e999 * x(i)", "       ^", "expected a finite number, found 1e999"),
    ("y(i) = A(i,j) + A(i)", "                ^", "expected 2 indices of A as before, found 1"),
    ("y(i) = x(i) + y(i)", "              ^", "expected an operand, found the target y"),
    (
        "Y(i,k) = A(i,j)",
        "    ^",
        "expected an index of an operand, found k, which no operand has",
    ),
    (
        "y(i) = A(i,i)",
        "           ^",
        "expected another index of A, found i again "
        "(a diagonal is not one loop over stored elements)",
    ),
    (
        "Y(i,i) = x(i)",
        "    ^",
        "expected another index of Y, found i again "
        "(a diagonal is not one loop over stored elements)",
    ),
    ("y(i) = i * x(i)", "  ^", "expected an index, found i, which is a tensor"),
]


@pytest.mark.parametrize(("text", "caret", "message"), ERRORS)
def test_an_error_points_into_the_text(text, caret, message):
    with pytest.raises(NotationError) as caught:
        parse(text)
    assert str(caught.value) == f"{text}\n{caret}\n{message}"


def test_an_error_shows_its_line_and_keeps_tabs():
    with pytest.raises(NotationError) as caught:
        parse("y(i) =\n\tx(i) / 2\n+ 1")
    assert str(caught.value).startswith("\tx(i) / 2\n\t     ^\n")


@pytest.mark.parametrize(
    "text",
    ["y(i) = " + "(" * 5000, "y(i) = " + "-" * 5000 + "x(i)", "y(i) = x(i)" + " + x(i)" * 5000],
)
def test_nesting_is_limited(text):
    with pytest.raises(NotationError, match=f"at most {DEPTH} operations in one another"):
        parse(text)


def test_as_many_operations_as_the_limit():
    text = "y(i) = x(i)" + " + x(i)" * DEPTH
    assert print_assignment(parse(text)) == text
    deep = parse("y(i) = " + "-(" * (DEPTH // 2) + "x(i)" + ")" * (DEPTH // 2))
    assert accesses(deep.expression) == (X_I,)


def names(letters):
    return st.sampled_from(letters)


# Tensors of which the number of indices is their letter's.
LEAVES = st.one_of(
    st.floats(min_value=0, allow_infinity=False).map(lambda value: Literal(abs(value))),
    names("ab").map(lambda name: Access(name, ())),
    st.builds(lambda name, i: Access(name, (i,)), names("xz"), names("ij")),
    st.sampled_from([Access("A", ("i", "j")), Access("A", ("j", "i"))]),
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(Neg),
        st.builds(Add, inner, inner),
        st.builds(Sub, inner, inner),
        st.builds(Mul, inner, inner),
    ),
    max_leaves=20,
)


@given(EXPRESSIONS)
def test_print_then_parse_is_the_identity(expression):
    kept = variables(expression)
    assignment = Assignment(Access("y", kept), expression)
    check(assignment)
    assert parse(print_assignment(assignment)) == assignment


@given(EXPRESSIONS)
def test_parentheses_are_minimal(expression):
    """Without any one pair of them, the text is another tree's or none."""
    text = print_expression(expression)
    target = Access("y", variables(expression))
    stack, pairs = [], []
    for at, sign in enumerate(text):
        if sign == "(":
            stack.append(at)
        elif sign == ")":
            pairs.append((stack.pop(), at))
    for start, end in pairs:
        if start and text[start - 1].isalpha():
            continue
        less = text[:start] + text[start + 1 : end] + text[end + 1 :]
        assert parse(f"{access_text(target)} = {less}") != Assignment(target, expression)


@given(st.one_of(st.text(), st.text(alphabet="yAx(ij),[]=+-*/ 1.e\n\t", max_size=40)))
def test_any_text_parses_or_is_refused(text):
    try:
        found = parse(text)
    except NotationError:
        return
    assert parse(print_assignment(found)) == found


def test_python_operators_build_the_same_trees():
    a, x, b, c, y, s = tensors("A x b c y a")
    i, j = indices("i j")
    found = assign(y[i], a[i, j] * x[j] + 2 * b[i] - c[i])
    assert found == parse("y(i) = A(i,j) * x(j) + 2 * b(i) - c(i)")
    assert assign(y[i], -(x[i] + 1) * s) == parse("y(i) = -(x(i) + 1) * a")
    assert assign(y[i], 1 - x[i] * -0.5 + (3 + b[i])) == parse(
        "y(i) = 1 - x(i) * -0.5 + (3 + b(i))"
    )
    assert assign(s, x[i] * x[i]) == parse("a = x(i) * x(i)")
    assert assign(y[i], s - x[i]) == parse("y(i) = a - x(i)")
    assert hash(a[i, j]) == hash(Access("A", ("i", "j")))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x, i: x[i] / 2, "found / "),
        (lambda x, i: 2 / x[i], "found / "),
        (lambda x, i: x[i] ** 2, r"found \*\* "),
        (lambda x, i: 2 ** x[i], r"found \*\* "),
        (lambda x, i: x[i] * "z", "expected an element of a tensor or a finite number, found 'z'"),
        (lambda x, i: x[i] * True, "found True"),
        (lambda x, i: x[i] + float("nan"), "found nan"),
        (lambda x, i: x["i"], "expected index variables, found 'i'"),
        (lambda x, i: assign(x[i] + x[i], 1), "expected an element of a tensor to assign to"),
        (lambda x, i: assign(x[i], x[i]), "expected an operand, found the target x"),
    ],
)
def test_operators_refuse_by_name(build, message):
    (x,), (i,) = tensors("x"), indices("i")
    with pytest.raises(NotationError, match=message):
        build(x, i)


def deep_tree():
    node = X_I
    for _ in range(100_000):
        node = Neg(node)
    return node


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (Assignment(Y, Literal(-1.0)), "finite number that is not negative, found -1.0"),
        (Assignment(Y, Mul(X_I, Literal(float("inf")))), "not negative, found inf"),
        (Assignment(Y, Access("x y", ("i",))), "expected a name, found 'x y'"),
        (Assignment(Y, Access("x", ("",))), "expected a name, found ''"),
        (Assignment(Y, Add(X_I, 2)), "expected a node of index notation, found 2"),
        (Assignment(Y, Add(A, Access("A", ("i",)))), "expected 2 indices of A as before, found 1"),
        (Assignment(Access("y", ("k",)), X_I), "found k, which no operand has"),
    ],
)
def test_ill_formed_trees_are_refused(assignment, message):
    with pytest.raises(NotationError, match=message):
        check(assignment)


def test_a_tree_that_is_too_deep_is_refused():
    with pytest.raises(NotationError, match="operations in one another"):
        check(Assignment(Y, deep_tree()))


def test_what_an_assignment_says():
    found = parse("y(i) = A(j,i) * x(j) - -B(i,k) * a + y2(i) * A(j,i)")
    shown = [a.tensor for a in accesses(found.expression)]
    assert shown == ["A", "x", "B", "a", "y2", "A"]
    assert variables(found.expression) == ("j", "i", "k")
    assert reduction_variables(found) == ("j", "k")


def test_extents_are_those_of_the_operands():
    found = parse("y(i) = A(j,i) * x(j) + a")
    assert extents(found, {"A": (3, 0), "x": (3,), "a": ()}) == {"i": 0, "j": 3}
    assert list(extents(found, {"A": (3, 4), "x": (3,), "a": (), "y": (4,)})) == ["i", "j"]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"A": (4, 5), "x": (6,)}, "j: expected 5 as in A(i,j), found 6 in x(j)"),
        ({"A": (4, 5), "x": (5,), "y": (3,)}, "i: expected 4 as in A(i,j), found 3 in y(i)"),
        ({"A": (4, 5)}, "x(j): expected a shape of x, found none"),
        ({"A": (4,), "x": (5,)}, "A(i,j): expected a shape of 2 sizes, found (4,)"),
        ({"A": (4, -1), "x": (5,)}, "A(i,j): expected a size of at least 0 for j, found -1"),
    ],
)
def test_extents_that_disagree_are_refused(shapes, message):
    with pytest.raises(NotationError) as caught:
        extents(parse("y(i) = A(i,j) * x(j)"), shapes)
    assert str(caught.value) == message
