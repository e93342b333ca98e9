"""Statements × formats of every operand × formats of the target, by the interpreter and against
dense arithmetic; and which of them are refused, by reason.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sparse_statements import REASONS, outcome, random_array, stored

from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.sparse import notation
from kernelwright.env.compiler.sparse.notation import accesses
from kernelwright.env.compiler.sparse.parse import parse, print_assignment
from kernelwright.env.compiler.sparse.program import SparseError
from kernelwright.env.compiler.sparse.run import evaluate

MATRICES = (
    "dense",
    "csr",
    "csc",
    "dcsr",
    "coo",
    "bcsr(2,3)",
    "ell",
    "dia",
    "hash",
    "nm(2,4)",
    "compressed(i) dense(j)",
)
FEW = ("dense", "csr", "csc", "coo", "ell", "hash")
VECTORS = ("dense", "sv:int64", "hash")
CUBES = (
    "dense",
    "csf",
    "csf(2,0,1)",
    "coo3",
    "dense(i) compressed(j) compressed(k)",
    "compressed(i) dense(j) compressed(k)",
    "dense(i) compressed(nonunique)(j) singleton(k)",
)
TARGETS = ("dense", "csr", "csc", "dcsr", "coo", "bcsr(2,3)", "compressed(i) dense(j)")
SCALAR = ("dense",)
GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "sparse" / "combinations.txt"
SHAPES = (
    {"i": 5, "j": 6, "k": 4},
    {"i": 1, "j": 0, "k": 3},
    {"i": 0, "j": 1, "k": 2},
    {"i": 3, "j": 3, "k": 1},
)

# A statement, the formats of its operands, and those of its target.
STATEMENTS = {
    "y(i) = A(i,j) * x(j)": ({"A": MATRICES, "x": VECTORS}, VECTORS),
    "y(j) = A(i,j) * x(i)": ({"A": MATRICES, "x": VECTORS}, VECTORS),
    "y(i) = A(i,j) * x(j) + b(i)": (
        {"A": MATRICES, "x": ("dense", "sv"), "b": VECTORS},
        ("dense", "sv"),
    ),
    "y(i) = 2 * A(i,j) * x(j) - c * b(i)": (
        {"A": FEW, "x": VECTORS, "b": VECTORS, "c": SCALAR},
        ("dense",),
    ),
    "s = A(i,j) * B(i,j)": ({"A": MATRICES, "B": MATRICES}, SCALAR),
    "s = x(i) * z(i)": ({"x": VECTORS, "z": VECTORS}, SCALAR),
    "s = x(i) - z(j) + 3": ({"x": VECTORS, "z": VECTORS}, SCALAR),
    "s = A(i,j)": ({"A": MATRICES}, SCALAR),
    "C(i,j) = A(i,j)": ({"A": MATRICES}, MATRICES),
    "C(i,j) = A(j,i)": ({"A": MATRICES}, MATRICES),
    "C(i,j) = A(i,j) + B(i,j)": ({"A": MATRICES, "B": MATRICES}, TARGETS),
    "C(i,j) = A(i,j) * B(i,j)": ({"A": MATRICES, "B": MATRICES}, TARGETS),
    "C(i,j) = A(i,j) - B(j,i)": ({"A": FEW, "B": FEW}, TARGETS),
    "C(i,k) = A(i,j) * B(j,k)": ({"A": MATRICES, "B": MATRICES}, TARGETS),
    "C(i,k) = A(i,j) * A(j,k)": ({"A": MATRICES}, TARGETS),
    "C(i,k) = A(i,j) * A(k,j)": ({"A": MATRICES}, TARGETS),
    "C(i,j) = A(i,j) * X(i,k) * Y(k,j)": (
        {"A": MATRICES, "X": ("dense", "csr"), "Y": ("dense", "csc")},
        TARGETS,
    ),
    "C(i,j) = A(i,j) + B(i,j) + D(i,j)": ({"A": FEW, "B": FEW, "D": FEW}, ("dense", "csr", "coo")),
    "C(i,j) = A(i,j) * B(i,j) * D(i,j)": ({"A": FEW, "B": FEW, "D": FEW}, ("dense", "csr", "dcsr")),
    "C(i,j) = (A(i,j) + B(i,j)) * D(i,j) - 2 * A(i,j)": (
        {"A": FEW, "B": FEW, "D": FEW},
        ("dense", "csr", "csc"),
    ),
    "C(i,j) = A(i,j) * x(j) + B(i,j) * z(i)": (
        {"A": FEW, "B": FEW, "x": ("dense", "sv"), "z": VECTORS},
        ("dense", "dcsr"),
    ),
    "C(i,j) = A(i,j) + b(i)": ({"A": MATRICES, "b": VECTORS}, TARGETS),
    "C(i,j) = x(i) * z(j)": ({"x": VECTORS, "z": VECTORS}, TARGETS),
    "C(i,j) = -(A(i,j) - (B(i,j) - 1))": ({"A": FEW, "B": FEW}, TARGETS),
    "C(i,j) = 0 * A(i,j)": ({"A": MATRICES}, TARGETS),
    "C(i,j) = A(i,k) * B(k,j) + D(i,j)": ({"A": FEW, "B": FEW, "D": FEW}, ("dense", "csr", "dcsr")),
    "s = c * T(i,j,k)": ({"T": CUBES, "c": SCALAR}, SCALAR),
    "C(i,j) = T(i,j,k) * x(k)": ({"T": CUBES, "x": VECTORS}, TARGETS),
    "C(j,k) = T(i,j,k) * x(i)": ({"T": CUBES, "x": VECTORS}, ("dense", "csr", "coo")),
    "U(i,j,r) = T(i,j,k) * X(k,r)": (
        {"T": CUBES, "X": ("dense", "csr", "csc")},
        ("dense", "csf", "coo3", "compressed(i) dense(j) compressed(k)"),
    ),
    "C(i,r) = T(i,j,k) * X(j,r) * Y(k,r)": (
        {"T": CUBES, "X": ("dense", "csr", "coo"), "Y": ("dense", "csr")},
        ("dense", "csr"),
    ),
    "U(i,j,k) = T(i,j,k) + V(i,j,k)": (
        {"T": CUBES, "V": CUBES},
        ("dense", "csf", "coo3", "compressed(i) dense(j) compressed(k)"),
    ),
    "U(k,i,j) = T(i,j,k)": ({"T": CUBES}, CUBES),
}


def cases(statement):
    """Operands in all formats, with the format of the target and a way to size it."""
    formats, targets = STATEMENTS[statement]
    for chosen in product(*formats.values()):
        for target in targets:
            yield dict(zip(formats, chosen, strict=True)), target


def make(statement, formats, seed, shapes=SHAPES):
    """Arrays of the operands, and the operands in their formats."""
    rng = np.random.default_rng(seed)
    sizes = {**shapes[seed % len(shapes)], "r": 2}
    assignment = parse(statement)
    if len({a.tensor for a in accesses(assignment.expression)}) < len(
        set(accesses(assignment.expression))
    ):
        sizes = dict.fromkeys(sizes, (4, 0, 1)[seed % 3])
    arrays, operands = {}, {}
    for access in dict.fromkeys(accesses(assignment.expression)):
        form = formats[access.tensor]
        shape = tuple(sizes[index] for index in access.indices)
        if access.tensor in arrays:
            continue
        density = (0.4, 0.9, 0.0, 0.2)[(seed // 7) % 4]
        arrays[access.tensor] = random_array(rng, shape, form, density)
        operands[access.tensor] = stored(form, arrays[access.tensor], zeros=seed % 2, rng=rng)
    return arrays, operands


def tally(statement, rounds=1, part=None):
    """How many combinations are right, and how many are refused for each reason."""
    found = Counter()
    rng = np.random.default_rng(0)
    every = list(cases(statement))
    if part is not None and len(every) > part:
        every = [every[at] for at in sorted(rng.choice(len(every), part, replace=False))]
    for seed in range(rounds):
        for at, (formats, target) in enumerate(every):
            arrays, operands = make(statement, formats, seed + at % 29)
            way = ("count", "grow")[(seed + at) % 2]
            why, _ = outcome(statement, operands, arrays, target, way=way, guess=(seed + at) % 3)
            found[why or "right"] += 1
    return dict(sorted(found.items()))


def test_combinations_are_right_or_refused_for_a_known_reason(request):
    """A part of all, the same each time; a new refusal changes a count."""
    lines = []
    for statement in STATEMENTS:
        found = tally(statement, part=60)
        assert set(found) <= {"right", *REASONS.values()}, statement
        lines.append(f"{statement}\n" + "".join(f"    {n:4} {why}\n" for why, n in found.items()))
    text = "".join(lines)
    if request.config.getoption("--update-golden"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), (
        f"{GOLDEN} differs; look at it, then run with --update-golden"
    )


@pytest.mark.audit
@pytest.mark.parametrize("statement", STATEMENTS)
def test_all_combinations(statement):
    found = tally(statement, rounds=4)
    assert set(found) <= {"right", *REASONS.values()}
    assert found["right"] >= sum(found.values()) / 8


def in_orders(statement, formats, target, **options):
    """Whether each order of the loops is right ("") or why it is refused."""
    assignment = parse(statement)
    variables = dict.fromkeys(
        (*assignment.target.indices, *notation.variables(assignment.expression))
    )
    found = {}
    for order in permutations(variables):
        for seed in range(4):
            arrays, operands = make(statement, formats, seed)
            why, _ = outcome(statement, operands, arrays, target, order=order, **options)
            assert found.setdefault("".join(order), why) == why
    return found


def test_every_order_of_a_product_is_right_or_refused():
    """Which orders are allowed follows from the formats: the others are refused for their order."""
    statement = "C(i,k) = A(i,j) * B(j,k)"
    appended = "appended in a summed loop"
    for first, second, target, expected in (
        ("csr", "csr", "dense", {"ijk": ""}),
        ("csr", "csr", "csr", {"ijk": appended}),
        ("csr", "csc", "csr", {"ikj": ""}),
        ("csc", "csr", "dense", {"jik": "", "jki": ""}),
        ("dense", "dense", "csr", {"ikj": "", "ijk": appended, "jik": appended}),
    ):
        found = in_orders(statement, {"A": first, "B": second}, target)
        others = dict.fromkeys(map("".join, permutations("ijk")), "order")
        assert found == {**others, **expected}


def test_a_sampled_product_is_never_appended_to_in_a_summed_loop():
    """In the order i, k, j every k would append row i of C again: TACO did so, past the end of its
    arrays. With a dense target, or one that has A's structure, all orders that A allows are right.
    """
    statement = "C(i,j) = A(i,j) * X(i,k) * Y(k,j)"
    formats = {"A": "csr", "X": "dense", "Y": "dense"}
    others = {"jik": "order", "jki": "order", "kji": "order"}
    allowed = {**others, "ijk": "", "ikj": "", "kij": ""}
    assert in_orders(statement, formats, "dense") == allowed
    assert in_orders(statement, formats, None, structure="A") == allowed
    refused = "appended in a summed loop"
    for target in ("csr", "dcsr", "coo"):
        for way in ("count", "grow"):
            found = in_orders(statement, formats, target, way=way)
            assert found == {**allowed, "ikj": refused, "kij": refused}
    _, operands = make(statement, formats, 0)
    with pytest.raises(SparseError, match=r"k, which is summed over, is outside of it.*workspace"):
        evaluate(statement, operands, "csr", order=("i", "k", "j"))


@pytest.mark.parametrize("form", [*MATRICES[1:], "ellslots", "csr:int64", "dcsc", "coo:int64"])
@pytest.mark.parametrize(
    "statement",
    [
        "C(i,j) = A(i,j)",
        "C(i,j) = -2 * A(i,j)",
        "C(i,j) = A(i,j) * x(j)",
        "C(i,j) = x(i) * A(i,j)",
        "C(i,j) = A(i,j) * B(i,j)",
        "C(i,j) = A(i,j) * X(i,k) * X(j,k)",
        "C(i,j) = (x(i) + x(j)) * A(i,j) - A(i,j)",
        "C(i,j) = 0 * A(i,j)",
    ],
)
def test_a_target_has_the_structure_of_an_operand(form, statement):
    for seed in range(8):
        for vector in VECTORS:
            other = ("csr", "dense", "hash")[seed % 3]
            formats = {"A": form, "B": other, "X": "dense", "x": vector}
            arrays, operands = make(statement, formats, 3 if "X" in statement else seed)
            why, found = outcome(statement, operands, arrays, structure="A")
            if why:
                assert why in ("orders", "blocks and single coordinates", "unordered merged")
                continue
            assert found.arrays is operands["A"].arrays
            assert found.values.shape == operands["A"].values.shape


@pytest.mark.parametrize(
    ("statement", "structure", "words"),
    [
        ("C(i,j) = A(i,j) + B(i,j)", "A", r"a term without A\(i,j\)"),
        ("C(i,j) = A(i,j) - 1", "A", r"a term without A\(i,j\)"),
        ("C(i,j) = A(j,i)", "A", r"expected A\(i,j\) as an operand"),
        ("C(i,j) = A(i,j) * D(i,j)", "D", "expected a sparse operand"),
        ("C(i,j) = A(i,j)", "B", "expected a sparse operand"),
    ],
)
def test_a_structure_that_cannot_hold_the_result_is_refused(statement, structure, words):
    _arrays, operands = make(statement, {"A": "csr", "B": "csr", "D": "dense"}, 3)
    with pytest.raises(SparseError, match=words):
        evaluate(statement, operands, structure=structure)


def test_operands_that_do_not_fit_are_refused():
    matrix, other = stored("csr", np.eye(3)), np.ones(3)
    statement = "y(i) = A(i,j) * x(j)"
    with pytest.raises(SparseError, match="expected A, x, found no x"):
        evaluate(statement, {"A": matrix})
    with pytest.raises(SparseError, match="expected A, x, found z, too"):
        evaluate(statement, {"A": matrix, "x": other, "z": other})
    with pytest.raises(SparseError, match="found y, too"):
        evaluate(statement, {"A": matrix, "x": other, "y": other})
    with pytest.raises(notation.NotationError, match=r"expected 3 as in A\(i,j\), found 4"):
        evaluate(statement, {"A": matrix, "x": np.ones(4)})
    with pytest.raises(notation.NotationError, match="expected a shape of 2 sizes"):
        evaluate(statement, {"A": other, "x": other})
    with pytest.raises(SparseError, match=r"one dtype, found float64 \(A\), float32 \(x\)"):
        evaluate(statement, {"A": matrix, "x": other.astype(np.float32)})
    with pytest.raises(SparseError, match=r"expected operands of float32 or float64, found int64"):
        evaluate("y(i) = x(i)", {"x": np.arange(3)})
    with pytest.raises(SparseError, match="x: expected an array or a SparseTensor, found float"):
        evaluate(statement, {"A": matrix, "x": 1.0})
    with pytest.raises(SparseError, match="way: expected count or grow, found 'once'"):
        evaluate(statement, {"A": matrix, "x": other}, way="once")
    with pytest.raises(SparseError, match="guess: expected a number of at least 0, found -1"):
        evaluate(statement, {"A": matrix, "x": other}, "sv", way="grow", guess=-1)


def test_float32_is_computed_in_float32():
    rng = np.random.default_rng(0)
    for target in TARGETS:
        arrays = {n: random_array(rng, (4, 4), None, dtype=np.float32) for n in "AB"}
        operands = {name: stored("csr", array) for name, array in arrays.items()}
        found = evaluate("C(i,j) = A(i,j) * B(i,j)", operands, "csr")
        assert found.values.dtype == np.float32
        assert np.array_equal(found.to_dense(), arrays["A"] * arrays["B"]), target


def test_more_positions_than_the_dtype_of_indices_numbers_are_refused_before_they_are_written():
    limit = 2**31 - 1
    runs = []

    def claims(procedure, arguments, extents):
        runs.append(dict(extents))
        outputs = [t.name for t in procedure.tensors if t.role == "output"]
        return {name: np.array([0, limit + 1]) for name in outputs}

    operands = {"A": stored("csr", np.eye(3))}
    for way in ("count", "grow"):
        with pytest.raises(
            SparseError, match=f"at most {limit} positions in int32, found {limit + 1} of C2"
        ):
            evaluate("C(i,j) = A(i,j)", operands, "csr", way=way, runner=claims)
    assert [each.get("C2_size", 0) for each in runs] in ([0, 16], [0, 0, 16])
    with pytest.raises(SparseError, match="take a format of int64"):
        evaluate("C(i,j) = A(i,j)", operands, "csr", way="grow", guess=limit + 1, runner=claims)
    assert len(runs) == 2


def test_a_guess_grows_up_to_what_the_dtype_of_indices_numbers():
    limit = 2**31 - 1
    tried = []

    def claims(procedure, arguments, extents):
        tried.append(extents["C2_size"])
        if len(tried) == 2:
            raise KeyboardInterrupt
        return {"C_counts": np.array([0, limit - 1])}

    with pytest.raises(KeyboardInterrupt):
        evaluate(
            "C(i,j) = A(i,j)",
            {"A": stored("csr", np.eye(3))},
            "csr",
            way="grow",
            guess=limit - 2,
            runner=claims,
        )
    assert tried == [limit - 2, limit]


def test_names_that_end_in_digits_are_kept_apart():
    """The levels of A1 are not those of A."""
    array = np.arange(6.0).reshape(2, 3)
    for way in ("count", "grow"):
        found = evaluate("A(i,j) = A1(i,j)", {"A1": stored("dcsr", array)}, "csr", way=way)
        assert np.array_equal(found.to_dense(), array)


UNUSUAL = (
    "hashed(i) hashed(j)",
    "hashed(i) compressed(j)",
    "padded(nonunique)(i) singleton(j)",
    "padded(slots,nonunique)(i) singleton(j)",
    "compressed(unordered)(i) compressed(j)",
    "compressed(i) padded(slots)(j)",
    "compressed(i/2) dense(i%2) compressed(j)",
    "dense(i/2) dense(i%2) compressed(j)",
    "compressed(i/2) compressed(j/2) compressed(i%2) compressed(j%2)",
    "compressed(i-j) dense(j) offset(i)",
    "dense(i) compressed(j/2) padded(2)(j%2)",
)


@pytest.mark.parametrize("form", UNUSUAL)
def test_formats_without_a_name_are_read_and_written(form):
    statements = (
        "C(i,j) = A(i,j)",
        "C(i,j) = A(i,j) + A(j,i)",
        "C(i,j) = A(i,j) + B(i,j)",
        "C(i,j) = A(i,j) * B(i,j) - x(i)",
        "C(i,k) = 2 * x(i) * (A(i,j) * A(j,k))",
        "s = A(i,j) * x(j)",
    )
    found = Counter()
    for seed, statement, other, target in product(
        range(4), statements, ("csr", "dense"), ("dense", form)
    ):
        arrays, operands = make(statement, {"A": form, "B": other, "x": "sv"}, seed)
        form_of_target = "dense" if statement.startswith("s") else target
        why, _ = outcome(statement, operands, arrays, form_of_target, guess=seed % 2, way="grow")
        assert why in ("", *REASONS.values()), why
        found[why or "right"] += 1
    assert found["right"] >= 4


@pytest.mark.parametrize(
    ("statement", "form", "words"),
    [
        ("C(i,j) = A(i,j) * A_vals(i,j)", "csr", "A_vals is named like an array of A"),
        ("C(i,j) = A(i,j) * A2_crd(i,j)", "csr", "A2_crd is named like an array of A"),
        ("C(i,j) = A(i,j) * C_vals(i,j)", "csr", "C_vals is named like an array of C"),
        ("C(i,j) = A(i,j) * j_size(i,j)", "csr", "j_size is named like a size"),
        ("C(i,j) = A(i,j) * B(i,io)", "bcsr(2,3)", "the loop over blocks of i has"),
        ("C(ji,j) = A(ji,j)", "bcsr(2,3)", "the loop over blocks of j has"),
        ("C(A_diagonal,j) = A(A_diagonal,j)", "dia", "the loop over diagonals of A has"),
    ],
)
def test_names_that_would_be_those_of_arrays_or_loops_are_refused(statement, form, words):
    names = dict.fromkeys(access.tensor for access in accesses(parse(statement).expression))
    operands = {name: stored(form if name == "A" else "dense", np.eye(4)) for name in names}
    with pytest.raises(SparseError, match=words):
        evaluate(statement, operands, "csr" if "io" not in statement else "dense")


@st.composite
def statements(draw):
    """A statement over up to three variables, formats, and a seed of its operands' elements."""
    variables = "ijk"[: draw(st.integers(1, 3))]
    tensors = {"A": 2, "B": 2, "x": 1, "z": 1, "c": 0}
    if len(variables) == 3:
        tensors["T"] = 3
    tensors = {name: order for name, order in tensors.items() if order <= len(variables)}

    def access(name):
        return notation.Access(name, tuple(draw(st.permutations(variables))[: tensors[name]]))

    def expression(depth):
        kind = draw(st.sampled_from("aaalnmmmpps")) if depth else "a"
        match kind:
            case "a":
                return access(draw(st.sampled_from(sorted(tensors))))
            case "l":
                return notation.Literal(float(draw(st.integers(0, 3))))
            case "n":
                return notation.Neg(expression(depth - 1))
        node = {"m": notation.Mul, "p": notation.Add, "s": notation.Sub}[kind]
        return node(expression(depth - 1), expression(depth - 1))

    found = expression(draw(st.integers(1, 3)))
    used = notation.variables(found)
    kept = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
    statement = notation.Assignment(notation.Access("R", tuple(kept)), found)
    choices = {0: SCALAR, 1: VECTORS, 2: (*MATRICES, "ellslots", "dcsc"), 3: CUBES}
    formats = {name: draw(st.sampled_from(choices[order])) for name, order in tensors.items()}
    target = draw(st.sampled_from(choices[len(kept)]))
    size = draw(st.integers(0, 5))
    return statement, formats, target, size, draw(st.integers(0, 2**16))


def check(case, runner=interpret):
    """The statement of a case is right or refused."""
    statement, formats, target, size, seed = case
    assume(accesses(statement.expression))
    shapes = [dict.fromkeys("ijk", size)]
    arrays, operands = make(print_assignment(statement), formats, seed, shapes)
    way = ("count", "grow")[seed % 2]
    why, _ = outcome(statement, operands, arrays, target, way=way, guess=seed % 3, runner=runner)
    assert why in ("", *REASONS.values()), why


@given(statements())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_statement_is_right_or_refused(case):
    check(case)


@pytest.mark.audit
@given(statements())
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_very_many_statements_are_right_or_refused(case):
    check(case)
