"""A part of the combinations in C: bit for bit what the interpreter finds, and within bounds."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from in_c import SANITIZED, in_c, needs_cc, under_sanitizers
from sparse_statements import as_array, outcome, random_array, stored

from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.toolchain import DEFAULT_FLAGS
from kernelwright.env.compiler.sparse.notation import accesses
from kernelwright.env.compiler.sparse.parse import parse
from kernelwright.env.compiler.sparse.storage import SparseTensor

# A statement, the formats of its operands, and of its target: unions, intersections, carried
# iterators, tables, padding, diagonals, blocks, runs of one coordinate, workspaces, three modes.
BETWEEN = "compressed(i) dense(j) compressed(k)"
CASES = [
    ("y(i) = A(i,j) * x(j)", {"A": "csr", "x": "dense"}, "dense"),
    ("y(i) = A(i,j) * x(j) + b(i)", {"A": "ell", "x": "dense", "b": "sv"}, "dense"),
    ("y(i) = A(i,j) * x(j)", {"A": "dia", "x": "hash"}, "dense"),
    ("y(i) = A(i,j) * x(j)", {"A": "bcsr(2,3)", "x": "dense"}, "dense"),
    ("y(i) = A(i,j) * x(j)", {"A": "nm(2,4)", "x": "dense"}, "dense"),
    ("s = A(i,j) * B(i,j)", {"A": "coo", "B": "dcsr"}, "dense"),
    ("s = x(i) * z(j) - 2", {"x": "sv", "z": "hash"}, "dense"),
    ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr"}, "csr"),
    ("C(i,j) = A(i,j) - B(i,j)", {"A": "coo", "B": "ell"}, "coo"),
    ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "dense"}, "csr"),
    ("C(i,j) = A(i,j) * B(i,j)", {"A": "dcsr", "B": "hash"}, "dcsr"),
    ("C(i,j) = A(i,j)", {"A": "dense"}, "bcsr(2,3)"),
    ("C(i,k) = A(i,j) * B(j,k)", {"A": "csr", "B": "csr"}, "csr"),
    ("C(i,k) = A(i,j) * B(j,k)", {"A": "dcsr", "B": "hash"}, "csr"),
    ("C(i,k) = A(i,j) * B(j,k)", {"A": "csc", "B": "csc"}, "csc"),
    ("C(i,k) = A(i,j) * A(j,k) + B(i,k)", {"A": "csr", "B": "coo"}, "dcsr"),
    ("C(i,j) = A(i,j) * X(i,k) * Y(k,j)", {"A": "csr", "X": "dense", "Y": "csc"}, "csr"),
    ("U(i,j,k) = T(i,j,k) + V(i,j,k)", {"T": "csf", "V": "coo3"}, "csf"),
    (
        "U(i,j,k) = T(i,j,k) * x(k)",
        {"T": "coo3", "x": "sv"},
        "compressed(i) dense(j) compressed(k)",
    ),
    ("C(i,k) = T(i,j,l) * X(j,k) * Y(l,k)", {"T": "csf", "X": "csr", "Y": "dense"}, "csr"),
    ("C(i,j) = T(i,j,k) * x(k)", {"T": "csf(0,1,2):int64", "x": "dense"}, "csr:int64"),
]
SIZES = ((5, 6, 4, 3), (0, 3, 1, 2), (7, 1, 5, 0), (4, 4, 4, 4))


def operands_of(statement, formats, seed):
    rng = np.random.default_rng(seed)
    sizes = dict(zip("ijkl", SIZES[seed % len(SIZES)], strict=True))
    if statement.count("A(") > 1:
        sizes = dict.fromkeys("ijkl", 5)
    arrays = {}
    for access in accesses(parse(statement).expression):
        shape = tuple(sizes[index] for index in access.indices)
        density = (0.4, 0.9, 0.1)[seed % 3]
        arrays.setdefault(access.tensor, random_array(rng, shape, formats[access.tensor], density))
    operands = {n: stored(formats[n], a, zeros=1, rng=rng) for n, a in arrays.items()}
    return arrays, operands


def check(case, seeds, cache, flags=DEFAULT_FLAGS):
    statement, formats, target = case
    for seed in seeds:
        arrays, operands = operands_of(statement, formats, seed)
        for way in ("count", "grow") if target != "dense" else ("count",):
            why, found = outcome(
                statement, operands, arrays, target, way=way, guess=1, runner=in_c(cache, flags)
            )
            assert not why
            assert isinstance(found, SparseTensor) == (target != "dense")
            assert as_array(found).dtype == np.float64


@needs_cc
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}, {case[2]}")
def test_c_finds_what_the_interpreter_finds(case, tmp_path):
    check(case, range(4), BuildCache(tmp_path))


@needs_cc
def test_no_access_is_out_of_bounds(tmp_path):
    done = under_sanitizers(__file__, tmp_path, "all")
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{len(CASES)} cases\n"


@needs_cc
def test_the_sanitizers_see_a_result_that_was_counted_too_small(tmp_path):
    done = under_sanitizers(__file__, tmp_path, "too small")
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


def too_small(cache):
    """Write 1600 elements where there is room for one."""

    def run(procedure, arguments, extents):
        kernel = compile_procedure(procedure, cache=cache, flags=SANITIZED)
        return kernel(arguments, {**extents, "C2_size": 1} if "C2_size" in extents else extents)

    outcome(
        "C(i,j) = A(i,j)", {"A": np.ones((40, 40))}, {"A": np.ones((40, 40))}, "csr", runner=run
    )


if __name__ == "__main__":
    builds = BuildCache(Path(sys.argv[1]))
    if sys.argv[2] == "all":
        for each in CASES:
            check(each, range(2), builds, SANITIZED)
        print(f"{len(CASES)} cases")
    else:
        too_small(builds)
