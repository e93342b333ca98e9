"""Directives on the loops of sparse statements: what is accepted computes the same, interpreted and
in C; what is refused has its reason.
"""

from __future__ import annotations

import pytest
from sparse_nests import MTTKRP, SDDMM, SPMM, SPMV, assert_same, operands, run

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower

STATEMENTS = {
    "spmv": (SPMV, {"A": "csr"}, {}),
    "spmm": (SPMM, {"A": "csr"}, {}),
    "sddmm": (SDDMM, {"A": "csr"}, {"structure": "A"}),
    "mttkrp": (MTTKRP, {"T": "csf"}, {}),
}
ACCEPTED = {
    "spmv": [
        "parallel('i')",
        "split('i', 2)\nparallel('io')",
        "split('j', 4)\nunroll('ji')",
        "unroll('j', 4)",
        "split('j', 4)\nrfactor('ji', 'P', True)\nvectorize('ji')",
        "scalar_replacement('y', 'j')",
        "cache_write('y', 'i')",
        "cache_read('x', 'i')",
        "prefetch('x', 'j', 4)",
        "fission('i', 1)",
    ],
    "spmm": [
        "parallel('i')",
        "parallel('j')",
        "vectorize('j', 4)",
        "reorder('k', 'j')",
        "split('j', 2)\nreorder('jo', 'k', 'ji')",
        "split('k', 4)\nunroll('ki')",
        "split('j', 4)\nvectorize('ji')\nsplit('k', 2)\nunroll('ki')",
        "cache_write('C', 'i')",
        "cache_write('C', 'k')",
    ],
    "sddmm": [
        "parallel('i')",
        "parallel('j')",
        "split('j', 4)\nunroll('ji')",
        "cache_write('C_vals', 'j')",
    ],
    "mttkrp": [
        "parallel('r')",
        "vectorize('r', 4)",
        "reorder('k', 'r')",
        "split('k', 2)\nunroll('ki')",
        "cache_write('M', 'i')",
    ],
}
CARRIES = "carries a dependence and cannot be"
REFUSED = {
    "spmv": [
        ("parallel('j')", rf"loop j {CARRIES} parallel \(y\[i\]"),
        ("split('j', 4)\nvectorize('ji')", f"loop ji {CARRIES} vectorized"),
        ("reassociate('y')\nvectorize('j', 8)", f"loop ji {CARRIES} vectorized"),
        ("vectorize('j')", "expected an extent of 2, 4, 8, 16, 32, 64, found no number in loop j"),
        ("reorder('j', 'i')", "expected one nest, found other statements between i and j"),
        ("fuse('i', 'j')", "expected loop j directly inside loop i"),
        ("scalar_replacement('y', 'i')", "expected a number of elements, found i_size of y"),
        ("reverse('j')", "the extent of j reads A2_pos, and would be read at another time"),
        ("unroll_and_jam('i', 2)", "the extent of j reads A2_pos"),
    ],
    "spmm": [
        ("parallel('k')", rf"loop k {CARRIES} parallel \(C\[i, j\]"),
        ("tile('k', 'j', 2, 8)", "a guard between the loops reads A2_pos"),
        ("unroll_and_jam('k', 2)", "the extent of k reads A2_pos"),
    ],
    "sddmm": [
        ("parallel('k')", rf"loop k {CARRIES} parallel \(C_vals\[i, j\]"),
        ("reorder('j', 'k')", "the extent of j reads A2_pos, and would be read at another time"),
        ("split('k', 4)\nrfactor('ki', 'P', True)", "no shape: the extent of j varies"),
    ],
    "mttkrp": [
        # Nobody says that the coordinates of a level are distinct.
        ("parallel('i')", rf"loop i {CARRIES} parallel \(M"),
        ("parallel('j')", rf"loop j {CARRIES} parallel \(M"),
    ],
}


def pairs(table):
    return [(name, entry) for name, entries in table.items() for entry in entries]


@pytest.mark.cc
@pytest.mark.parametrize(("name", "text"), pairs(ACCEPTED))
def test_what_is_accepted_computes_the_same(name, text, tmp_path):
    statement, formats, options = STATEMENTS[name]
    given = operands(statement, formats, seed=2)
    expected = run(statement, given, **options)
    assert_same(expected, run(statement, given, "", text, **options))
    assert_same(expected, run(statement, given, "", text, runner=BuildCache(tmp_path), **options))


@pytest.mark.parametrize(("name", "entry"), pairs(REFUSED))
def test_what_is_refused_has_its_reason(name, entry):
    statement, formats, options = STATEMENTS[name]
    text, expected = entry
    with pytest.raises(ScheduleError, match=expected):
        apply_trace(lower(program(statement, formats, **options)), parse_trace(text))


@pytest.mark.parametrize(
    ("form", "accepted"), [("csr", True), ("dcsr", False), ("csc", False), ("ell", True)]
)
def test_rows_that_are_located_are_no_others(form, accepted):
    procedure = lower(program(SPMV, {"A": form}))
    outer = "j" if form == "csc" else "i"
    trace = parse_trace(f"parallel('{outer}')")
    if accepted:
        apply_trace(procedure, trace)
    else:
        with pytest.raises(ScheduleError, match=f"loop {outer} {CARRIES} parallel"):
            apply_trace(procedure, trace)
