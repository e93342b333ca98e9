"""Directives of the sparse front end: what they make computes the same, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sparse_nests import (
    MTTKRP,
    SDDMM,
    SPMM,
    SPMV,
    SUM,
    assert_same,
    numbers,
    operands,
    run,
    scheduled,
)

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Block,
    For,
    LoopKind,
    Var,
    loops,
    map_expression,
    map_statements,
)
from kernelwright.env.compiler.ir.printer import print_procedure
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.run import evaluate
from kernelwright.env.compiler.sparse.storage import from_dense

MIXED = "y(i) = (A(i,j) + B(i,j)) * x(j)"
BOTH = {"A": "csr", "B": "csr"}
CSF = {"T": "csf"}
ROWS = {"target": "csr"}
# Statement, formats, options, directives on the statement, directives on the loops.
SAME = [
    (SPMM, {"A": "csr"}, {}, "order('i', 'j', 'k')", ""),
    (SPMM, {"A": "csr"}, {}, "order('j', 'i', 'k')", "parallel('j')"),
    (SPMM, {"A": "csc"}, {}, "order('j', 'k', 'i')", ""),
    (SPMM, {"A": "bcsr(2,2)"}, {}, "order('io', 'ko', 'ii', 'j', 'ki')", ""),
    (SPMM, BOTH, ROWS, "order('i', 'k', 'j')", ""),
    (SUM, BOTH, ROWS, "workspace('j')", ""),
    (SUM, BOTH, {"target": "dcsr"}, "workspace('j')", ""),
    (SUM, {"A": "csr", "B": "coo"}, {"target": "coo"}, "workspace('j')", ""),
    (SUM, BOTH, {}, "workspace('j')", ""),
    (MTTKRP, CSF, {}, "precompute('j', 'T(i,j,k) * D(k,r)', 'r')", ""),
    (MTTKRP, {"T": "coo3"}, {}, "precompute('j', 'D(k,r) * T(i,j,k)', 'r')", ""),
    (MTTKRP, CSF, {}, "precompute('i', 'T(i,j,k) * C(j,r) * D(k,r)', 'r')", ""),
    # A part of a part: the first array is made with the second.
    (
        MTTKRP,
        CSF,
        {},
        "precompute('i', 'T(i,j,k) * C(j,r) * D(k,r)', 'r')\n"
        "precompute('j', 'T(i,j,k) * D(k,r)', 'r')",
        "",
    ),
    # An array that reads an array.
    (MTTKRP, CSF, {}, "precompute('', 'C(j,r)', 'j', 'r')\nprecompute('k', 'w(j,r)', 'r')", ""),
    ("s = x(i) * x(i)", {"x": "sv"}, {}, "precompute('i', 'x(i)')", ""),
    ("y(i) = 2 * A(i,j) * x(j)", {"A": "csr"}, {}, "precompute('i', '2 * A(i,j) * x(j)')", ""),
    ("y(i) = A(i,j) * x(j) + b(i)", {"A": "csr"}, {}, "precompute('j', 'A(i,j)')", ""),
    (MIXED, BOTH, {}, "precompute('i', '(A(i,j) + B(i,j))', 'j')", ""),
    # One array in each case of a merge.
    (MIXED, BOTH, {}, "precompute('j', '(A(i,j) + B(i,j))')", ""),
    (MIXED, {"A": "csr", "B": "dcsr"}, {}, "precompute('i', 'x(j)', 'j')", ""),
    (SDDMM, {"A": "csr"}, {"structure": "A"}, "precompute('j', 'B(i,k) * D(k,j)')", ""),
    (SPMV, {"A": "csr"}, {}, "split_coordinates('j', 2)", ""),
    (SPMV, {"A": "csr"}, {}, "split_coordinates('i', 2)\nsplit_coordinates('j', 100)", ""),
    (SPMV, {"A": "ell"}, {}, "split_coordinates('j', 4)", ""),
    (SPMV, {"A": "dia"}, {}, "split_coordinates('i', 2)", ""),
    (SPMV, {"A": "coo"}, {}, "split_coordinates('j', 3)", ""),
    (SPMV, {"A": "bcsr(2,2)"}, {}, "split_coordinates('jo', 2)", ""),
    (SPMM, BOTH, ROWS, "split_coordinates('k', 3)", ""),
    ("C(i,j) = A(i,j) * b(i)", {"A": "dcsr"}, ROWS, "split_coordinates('j', 3)", ""),
    (SDDMM, {"A": "csr"}, {"structure": "A"}, "split_coordinates('k', 3)", ""),
    (SPMM, {"A": "csr", "B": "csr"}, {}, "split_nonzeros('A', 3)", "parallel('part')"),
    (SPMV, {"A": "csr"}, {}, "split_nonzeros('A', 4)", "parallel('part')"),
    (SPMV, {"A": "csr"}, {}, "split_nonzeros('A', 4)", "unroll('part')"),
    ("y(i) = 2 * A(i,j) * x(j)", {"A": "csr"}, {}, "split_nonzeros('A', 3)", "parallel('part')"),
    ("y(i) = A(i,j) * x(j) - A(i,j) * z(j)", {"A": "csr"}, {}, "split_nonzeros('A', 3)", ""),
    ("y(i) = A(i,j) * A(i,j)", {"A": "csr"}, {}, "split_nonzeros('A', 3)", "parallel('part')"),
    ("y(i) = A(i,j) * b(i)", {"A": "csr"}, {}, "split_nonzeros('A', 3)", ""),
    (SPMM, {"A": "csr"}, {}, "split_nonzeros('A', 3)", "parallel('part')"),
    (SPMM, {"A": "csr"}, {}, "split_nonzeros('A', 3)\nsplit_coordinates('j', 2)", ""),
    (SPMV, {"A": "csr"}, {}, "", "parallel('i')"),
    (SDDMM, {"A": "csr"}, {"structure": "A"}, "", ""),
]
NAMED = [f"{case[0]}: {case[1]} {case[2]} {case[3]!r} {case[4]!r}" for case in SAME]


@pytest.mark.parametrize("case", SAME, ids=NAMED)
@pytest.mark.parametrize("density", [0.4, 0.0])
def test_the_result_is_the_same(case, density):
    statement, formats, options, text, after = case
    given = operands(statement, formats, density=density)
    assert_same(run(statement, given, **options), run(statement, given, text, after, **options))


@pytest.mark.cc
@pytest.mark.parametrize("case", SAME, ids=NAMED)
def test_the_c_code_is_the_same(case, tmp_path):
    statement, formats, options, text, after = case
    given = operands(statement, formats, seed=1)
    expected = run(statement, given, **options)
    assert_same(
        expected, run(statement, given, text, after, runner=BuildCache(tmp_path), **options)
    )


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 8, 64])
@pytest.mark.parametrize(
    "rows",
    [
        [[0, 0, 0], [1, 2, 3], [0, 0, 0], [0, 0, 0], [4, 0, 5]],
        [[1, 1, 1], [0, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0]],
        [[2, 0, 0]],
        np.zeros((0, 3)),
    ],
)
def test_parts_begin_and_end_anywhere(rows, parts):
    matrix, x = np.array(rows, np.float64).reshape(-1, 3), np.array([1.0, 10.0, 100.0])
    given = {"A": from_dense(parse_format("csr"), matrix), "x": x}
    found = run(SPMV, given, f"split_nonzeros('A', {parts})", "parallel('part')")
    np.testing.assert_array_equal(found, matrix @ x)


def in_another_order(procedure, order):
    """The procedure with the iterations of loops that are apart written out in another order."""

    def written(node):
        if not (isinstance(node, For) and node.apart):
            return node
        return Block(tuple(at(node, value) for value in order(int(node.extent.value))))

    def at(node, value):
        def bound(part):
            return whole(value) if part == Var(node.var) else part

        return map_statements(node.body, lambda e: map_expression(e, bound))

    return replace(procedure, body=map_statements(procedure.body, lambda e: e, written))


@pytest.mark.parametrize("parts", [2, 5, 16])
@pytest.mark.parametrize("statement", [SPMV, SPMM])
def test_parts_run_in_any_order(statement, parts):
    given = operands(statement, {"A": "csr"}, seed=parts)
    expected = run(statement, given)
    orders = (
        lambda n: range(n),
        lambda n: range(n - 1, -1, -1),
        lambda n: np.random.default_rng(n).permutation(n).tolist(),
    )
    for order in orders:

        def reordered(procedure, inputs, extents, order=order):
            other = in_another_order(procedure, order)
            assert not any(loop.apart for loop in loops(other))
            return interpret(other, inputs, extents)

        change = scheduled(f"split_nonzeros('A', {parts})")
        assert_same(expected, evaluate(statement, given, change=change, runner=reordered))


def part_of(procedure):
    return next(loop for loop in loops(procedure) if loop.var == "part")


def test_parts_are_vouched_for_and_written_so():
    procedure = apply_trace(
        lower(program(SPMV, {"A": "csr"})), parse_trace("split_nonzeros('A', 4)")
    )
    assert part_of(procedure).apart
    assert "for part in 4:  # apart" in print_procedure(procedure)
    run_at_once = apply_trace(procedure, parse_trace("parallel('part')"))
    assert part_of(run_at_once).kind is LoopKind.PARALLEL


CARRIED = "loop part carries a dependence and cannot be parallel"


@pytest.mark.parametrize(
    "text",
    [
        "peel('part', 1)\nparallel('part')",
        "rename('part', 'block')\nparallel('block')",
        "set_scope('carry', 'stack')\nparallel('part')",
        "split('part', 2)\nparallel('parto')",
        "split('part', 2)\nparallel('parti')",
        "add_unit_loop('part', 'once')\nparallel('part')",
        "parallel('part')\npeel('part', 1)",
        "vectorize('part')",
    ],
)
def test_what_may_bring_iterations_together_ends_it(text):
    procedure = lower(program(SPMV, {"A": "csr"}))
    apart = apply_trace(procedure, parse_trace("split_nonzeros('A', 4)"))
    with pytest.raises(ScheduleError) as caught:
        apply_trace(apart, parse_trace(text))
    assert "carries a dependence" in str(caught.value) or "while" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["cache_read('x')", "cache_write('y')", "rfactor('part', '', True)"]
)
def test_what_moves_storage_leaves_the_bisection_alone(text):
    procedure = lower(program(SPMV, {"A": "csr"}))
    with pytest.raises(ScheduleError, match="expected no while"):
        apply_trace(procedure, parse_trace(f"split_nonzeros('A', 4)\n{text}"))


CSR, SPARSE = {"A": "csr"}, {"A": "csr", "B": "csr", "C": "csr"}
REFUSED = [
    (SPMV, CSR, "storage('B', 'csc')", "storage: expected one of y, A, x, found 'B'"),
    (SPMV, CSR, "storage('A', 'csx')", "storage: .*csx"),
    (SPMV, CSR, "storage('A', 3)", "storage: expected a format as text, found 3"),
    (SPMV, CSR, "storage('A', 'csf(0,1,2)')", "storage: "),
    (SPMM, CSR, "order('j', 'i', 'k')\nstorage('A', 'csc')", "before the loops are changed"),
    (SPMV, CSR, "split_nonzeros('A', 2)\nstorage('A', 'csc')", "before the loops are changed"),
    (SPMV, CSR, "split_coordinates('j', 2)\nstorage('A', 'csc')", "before the loops are changed"),
    (SPMM, SPARSE, "storage('A', 'bcsr(2,2)')", "without zeros filled in .* found dense"),
    (SPMM, BOTH, "storage('A', 'csc')\nstorage('B', 'csc')\norder('i', 'j', 'k')", "A stores k"),
    (SPMM, CSR, "order('i', 'k')", "order: expected an order of i, j, k, found i, k"),
    (SPMM, CSR, "order('i', 'k', 'k')", "order: expected an order of i, j, k, found i, k, k"),
    (SPMM, CSR, "order('i', 'k', 2)", "order: expected loops as text, found 2"),
    (SPMM, CSR, "order('k', 'i', 'j')", "order: A stores i before k, but the order has k first"),
    (MTTKRP, CSF, "precompute('j', 'D(k,r)', 'k', 'r')\norder('i', 'j', 'k', 'r')", "found w"),
    (SPMM, SPARSE | {"B": "dense"}, "order('i', 'j', 'k')", "C would store other elements"),
    (SPMM, SPARSE, "workspace('j')", "expected a result that is not gathered yet, found w"),
    (SPMV, CSR, "workspace('j')", r"the last index by which y\(i\) is stored \(i\)"),
    (SUM, SPARSE, "workspace('i')", r"the last index by which C\(i,j\) is stored \(j\)"),
    ("s = x(i) * x(i)", {}, "workspace('i')", r"by which s is stored \(none\)"),
    (SPMM, CSR, "precompute('q', 'B(k,j)', 'j')", "expected one forall q, found none"),
    (
        MTTKRP,
        CSF,
        "precompute('', 'C(j,r)', 'j', 'r')\nprecompute('j', 'w(j,r)', 'r')",
        "precompute: expected one forall j, found 2",
    ),
    (SPMM, CSR, "precompute('k', 'A(i,j)', 'j')", r"a part of the product A\(i,k\) \* B\(k,j\)"),
    (SPMM, CSR, "precompute('k', 'B(k,j) * B(k,j)', 'j')", "a part of the product"),
    (SPMM, CSR, "precompute('k', 'B(k,j', 'j')", "precompute: "),
    (SPMM, CSR, "precompute('k', 3, 'j')", "expected a part and indices as text, found 3"),
    (SPMM, CSR, "precompute('k', 'A(i,k)', 'j')", r"expected indices of A\(i,k\), found j"),
    (SPMM, CSR, "precompute('k', 'B(k,j)', 'j', 'j')", "every index once, found j again"),
    (SPMM, CSR, "precompute('k', 'B(k,j)', 'k', 'j')", "indices of the workspace, .* k outside"),
    (MTTKRP, CSF, "precompute('j', 'T(i,j,k) * D(k,r)')", "expected r, which is in T"),
    ("y(i) = A(i,j) * x(j) + b(i)", CSR, "precompute('i', 'b(i)')", "one assignment .* several"),
    (
        MTTKRP,
        CSF,
        "precompute('j', 'D(k,r)', 'k', 'r')\nprecompute('i', 'C(j,r)', 'r')",
        "one assignment under the foralls, found a workspace",
    ),
    (
        SPMM,
        SPARSE,
        "precompute('k', 'B(k,j)', 'j')",
        "C is not stored, .* found j",
    ),
    (SPMV, {"A": "dia"}, "precompute('A_diagonal', 'A(i,j) * x(j)', 'i')", "by diagonals, found A"),
    (SPMV, CSR, "split_coordinates('j', 0)", "a size of at least 1, found 0"),
    (SPMV, CSR, "split_coordinates('j', True)", "a size of at least 1, found True"),
    (SPMV, CSR, "split_coordinates('q', 2)", r"not split yet \(i, j\), found q"),
    (SPMV, CSR, "split_coordinates('j', 2)\nsplit_coordinates('j', 2)", r"\(i\), found j"),
    (SUM, BOTH, "split_coordinates('j', 2)", "expected one operand at j, found A, B"),
    (SPMV, {"A": "hash"}, "split_coordinates('j', 2)", "an ordered and unique level at j, .* of A"),
    (SPMV, {"A": "coo"}, "split_coordinates('i', 2)", "an ordered and unique level at i, .* of A"),
    (SPMV, CSR, "split_nonzeros('A', 0)", "expected 1 to 4096 parts, found 0"),
    (SPMV, CSR, "split_nonzeros('A', 5000)", "expected 1 to 4096 parts, found 5000"),
    (SPMV, CSR, "split_nonzeros('A', 2.0)", "expected 1 to 4096 parts, found 2.0"),
    (
        SPMV,
        CSR,
        "split_nonzeros('A', 2)\nsplit_nonzeros('A', 3)",
        "one part, .* of A in 2",
    ),
    (SPMV, CSR, "split_nonzeros('B', 2)", r"an operand that is read once \(A, x\), found B"),
    (SPMV, CSR, "split_nonzeros('x', 2)", "x to be stored by rows .* found dense"),
    (SPMV, {"A": "dcsr"}, "split_nonzeros('A', 2)", "A to be stored by rows"),
    (SPMV, {"A": "coo"}, "split_nonzeros('A', 2)", "A to be stored by rows"),
    (SPMM, SPARSE, "split_nonzeros('A', 2)", "split_nonzeros: "),
    ("y(j) = A(i,j) * x(i)", CSR, "split_nonzeros('A', 2)", "whose first index is i"),
    # Elsewhere than where A has elements there would be z to add.
    (
        "y(i) = A(i,j) * x(j) + z(j)",
        CSR,
        "split_nonzeros('A', 2)",
        "expected A in every product, found one without it",
    ),
    ("y(i) = A(i,j) * x(j) + b(i)", CSR, "split_nonzeros('A', 2)", "j right inside forall i"),
    (SPMV, {"A": "csr", "x": "sv"}, "split_nonzeros('A', 2)", "split_nonzeros: x: "),
    ("C(i,j) = A(i,k) * A(k,j)", CSR, "split_nonzeros('A', 2)", "an operand that is read once"),
    (
        SPMV,
        CSR,
        "split_coordinates('j', 2)\nsplit_nonzeros('A', 2)",
        "forall j whole",
    ),
    (
        SPMV,
        CSR,
        "split_nonzeros('A', 2)\nsplit_coordinates('i', 2)",
        "forall i whole",
    ),
    (SPMV, CSR, "precompute('j', 'A(i,j)')\nsplit_nonzeros('A', 2)", "a sum over j in y alone"),
    (SPMV, CSR, "split('i', 2)\norder('i', 'j')", "before any loop directive"),
]


@pytest.mark.parametrize(("statement", "formats", "text", "expected"), REFUSED)
def test_refusals_say_why(statement, formats, text, expected):
    procedure = lower(program(statement, formats))
    with pytest.raises(ScheduleError, match=expected):
        apply_trace(procedure, parse_trace(text))


def test_the_levels_that_a_result_shares_are_not_chosen_for_it():
    procedure = lower(program(SDDMM, CSR, structure="A"))
    with pytest.raises(ScheduleError, match="C shares the levels of A"):
        apply_trace(procedure, parse_trace("storage('C', 'csr')"))
    both = apply_trace(procedure, parse_trace("storage('A', 'dcsr')"))
    assert both == lower(program(SDDMM, {"A": "dcsr"}, structure="A"))
    # Whoever gives the arguments has the values in the order of the first format.
    given = replace(procedure.origin, interface=procedure.origin.arguments())
    offered = tuple((parse_format(text), "A") for text in ("csr", "csc", "ell", "bcsr(2,2)"))
    given = replace(given, choices=(("A", offered),))
    for form in ("csc", "ell", "bcsr(2,2)"):
        with pytest.raises(ScheduleError, match="its values in the places of dense"):
            apply_trace(lower(given), parse_trace(f"storage('A', '{form}')"))
    with pytest.raises(ScheduleError, match=r"expected a tensor with copies \(A\), found B"):
        apply_trace(lower(given), parse_trace("storage('B', 'csr')"))


@pytest.mark.parametrize("form", ["csc", "coo", "dcsr", "ell(4)", "dia", "bcsr(2,2)", "hash"])
def test_another_format_is_as_if_it_had_been_given(form):
    procedure = lower(program(SPMV, CSR))
    after = apply_trace(procedure, parse_trace(f"storage('A', '{form}')"))
    assert after == lower(program(SPMV, {"A": form}))
    assert after.origin == lower(program(SPMV, {"A": form})).origin
    back = apply_trace(after, parse_trace("storage('A', 'csr')"))
    assert back.origin == procedure.origin


def test_a_format_leaves_known_sizes_and_counts_as_they_are():
    made = program(
        "y(i) = A1(i,j) * A(j,k) * x(k)",
        {"A1": "csr", "A": "csr"},
        sizes={"i": 3},
        counts={"A12": 5, "A2": 7},
    )
    made = replace(made, assembly="guarded")
    after = apply_trace(lower(made), parse_trace("storage('A1', 'dcsr')")).origin
    assert dict(after.counts)["A2"] == whole(7)
    assert "A12_size" in after.extents
    assert dict(after.sizes)["i"] == whole(3)
    assert after.assembly == "guarded"


def test_workspaces_have_names_of_their_own():
    statement = "y(w) = A(w,w2) * w3(w2)"
    given = {
        "A": from_dense(parse_format("csr"), numbers((3, 4), 0.5, np.random.default_rng(0))),
        "w3": np.arange(4.0),
    }
    found = run(statement, given, "precompute('w', 'A(w,w2) * w3(w2)')")
    np.testing.assert_array_equal(found, given["A"].to_dense() @ given["w3"])
    after = apply(
        lower(program(statement, {"A": "csr"})),
        parse_trace("precompute('w', 'A(w,w2) * w3(w2)')")[0],
    )
    assert [space.name for space in after.origin.workspaces] == ["w4"]


def test_the_order_of_a_gathered_product_can_be_asked_for():
    made = program(SPMM, SPARSE)
    after = apply_trace(lower(made), parse_trace("order('i', 'k', 'j')"))
    assert after.origin == made
