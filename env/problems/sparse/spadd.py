"""The sum of two sparse matrices, assembled: positions, columns and values of the result are
written. An element of both matrices is rounded once, one of a single matrix not at all, and a sum
that happens to be zero is stored like any other.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.problems.rounding import HIGHER_ORDER
from kernelwright.env.problems.shapes import Count
from kernelwright.env.problems.sparse.build import Float, Formats, Kind, sparse_problem
from kernelwright.env.problems.sparse.operand import offered_only
from kernelwright.env.problems.sparse.pairs import MERGED, csr_result, csr_tensors, pair
from kernelwright.env.types import STRESSES, Arrays, Library, Problem, Workload


def spadd(
    *,
    rows: Count = 1 << 12,
    cols: Count = 1 << 12,
    nnz: Count = 1 << 16,
    matrix: Kind = "uniform",
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """C = A + B with nnz elements, a quarter of them of both."""
    offered_only(MERGED, formats)
    both = pair(matrix, rows, cols, nnz, dtype, formats)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return both.inputs(rng)

    def reference(arrays: Arrays) -> Arrays:
        row, col, values, _ = both.joined(arrays)
        return csr_result("C", rows, nnz, row, col, values.sum(axis=0))

    def magnitude(arrays: Arrays) -> Arrays:
        row, col, values, there = both.joined(arrays)
        rounded = HIGHER_ORDER * abs(values.sum(axis=0)) * there.all(axis=0)
        exact = {"C2_pos": np.zeros(rows + 1), "C2_crd": np.zeros(nnz)}
        return {**csr_result("C", rows, nnz, row, col, rounded), **exact}

    return sparse_problem(
        "spadd",
        "C(i,j) = A(i,j) + B(i,j)",
        operands=(both.a, both.b),
        tensors=csr_tensors("C", "nnz", dtype),
        extents={"rows": rows, "cols": cols, "nnz": nnz},
        sizes={"i": rows, "j": cols},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound="u |a + b| where there are both, 0 elsewhere: Higham 2002, section 2.2",
        flops=nnz,
        library=Library("SciPy", "kernelwright.env.problems.sparse.library:spadd", "scipy"),
        stress=STRESSES,
        target="csr",
        counts={"C2": nnz},
        traits={"matrix": matrix},
    )
