"""A sparse result in two steps: its levels once, its values as often as operands change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.compiler.sparse.program import SparseError
from kernelwright.env.compiler.sparse.run import assemble, compute, evaluate
from kernelwright.env.compiler.sparse.storage import SparseTensor, from_dense

STATEMENTS = [
    "C(i,j) = A(i,j) + B(i,j)",
    "C(i,j) = A(i,j) * B(i,j)",
    "C(i,j) = A(i,j) - 2 * B(i,j)",
    "C(i,k) = A(i,j) * B(j,k)",
]


def matrix(seed, shape=(7, 7), density=0.3):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(float)
    dense[2] = 0
    return dense


def operands(form, scale=1.0):
    stored = parse_format(form)
    return {name: from_dense(stored, matrix(seed) * scale) for name, seed in (("A", 0), ("B", 1))}


@pytest.mark.parametrize("target", ["csr", "dcsr", "coo"])
@pytest.mark.parametrize("form", ["csr", "dcsr"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_assembled_and_then_computed_is_evaluated(statement, form, target):
    given = operands(form)
    levels = assemble(statement, given, target)
    assert not levels.values.any()
    for scale in (1.0, 3.0):
        scaled = operands(form, scale)
        found = compute(statement, scaled, levels)
        expected = evaluate(statement, scaled, target)
        assert isinstance(expected, SparseTensor)
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(found.to_dense(), expected.to_dense())


def test_blocks_are_computed_where_they_were_assembled():
    given = operands("bcsr(2,2)")
    levels = assemble(STATEMENTS[0], given, "bcsr(2,2)")
    found = compute(STATEMENTS[0], given, levels)
    np.testing.assert_array_equal(found.to_dense(), matrix(0) + matrix(1))


@pytest.mark.parametrize("other", [matrix(5), matrix(5, density=0.9), np.zeros((7, 7))])
def test_operands_of_another_structure_are_refused(other):
    given = operands("csr")
    levels = assemble(STATEMENTS[0], given, "csr")
    changed = {**given, "B": from_dense(parse_format("csr"), other)}
    with pytest.raises(SparseError, match=r"expected operands that give C the levels"):
        compute(STATEMENTS[0], changed, levels)


def test_levels_of_another_shape_or_a_dense_target_are_refused():
    given = operands("csr")
    small = from_dense(parse_format("csr"), np.ones((3, 3)))
    with pytest.raises(SparseError, match=r"expected levels of shape \(7, 7\), found \(3, 3\)"):
        compute(STATEMENTS[0], given, small)
    with pytest.raises(SparseError, match="expected a sparse target, found dense"):
        assemble(STATEMENTS[0], given, "dense")


def test_a_kernel_that_assembles_has_no_values_and_one_that_computes_writes_no_levels():
    made = program(STATEMENTS[0], dict.fromkeys("ABC", "csr"))
    names = {t.name: t.role for t in lower(replace(made, assembly="assemble")).tensors}
    assert "C_vals" not in names
    assert names["C2_crd"] == "output"
    names = {t.name: t.role for t in lower(replace(made, assembly="compute")).tensors}
    assert names["C2_crd"] == "input"
    assert names["C_vals"] == "output"
