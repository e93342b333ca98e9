"""The product of two sparse matrices element by element, assembled: it is where both have an
element. Every value is rounded once.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.problems.rounding import HIGHER_ORDER
from kernelwright.env.problems.shapes import Count
from kernelwright.env.problems.sparse.build import (
    Float,
    Formats,
    Kind,
    sparse_problem,
)
from kernelwright.env.problems.sparse.operand import offered_only
from kernelwright.env.problems.sparse.pairs import MERGED, csr_result, csr_tensors, pair
from kernelwright.env.types import STRESSES, Arrays, Library, Problem, Workload


def sparse_mul(
    *,
    rows: Count = 1 << 12,
    cols: Count = 1 << 12,
    nnz: Count = 1 << 16,
    matrix: Kind = "uniform",
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """C[i, j] = A[i, j] B[i, j]; A and B have nnz places between them, a quarter of them both."""
    offered_only(MERGED, formats)
    both = pair(matrix, rows, cols, nnz, dtype, formats)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return both.inputs(rng)

    def reference(arrays: Arrays) -> Arrays:
        row, col, values, there = both.joined(arrays)
        kept = there.all(axis=0)
        return csr_result("C", rows, both.shared, row[kept], col[kept], values.prod(axis=0)[kept])

    def magnitude(arrays: Arrays) -> Arrays:
        found = HIGHER_ORDER * abs(reference(arrays)["C_vals"])
        return {
            "C2_pos": np.zeros(rows + 1),
            "C2_crd": np.zeros(both.shared),
            "C_vals": found,
        }

    return sparse_problem(
        "sparse_mul",
        "C(i,j) = A(i,j) * B(i,j)",
        operands=(both.a, both.b),
        tensors=csr_tensors("C", both.shared, dtype),
        extents={"rows": rows, "cols": cols, "nnz": nnz},
        sizes={"i": rows, "j": cols},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound="u |a b|: Higham 2002, section 2.2",
        flops=both.shared,
        library=Library("SciPy", "kernelwright.env.problems.sparse.library:sparse_mul", "scipy"),
        stress=STRESSES,
        target="csr",
        counts={"C2": both.shared},
        traits={"matrix": matrix},
    )
