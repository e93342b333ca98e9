"""Inner products of rows of two dense matrices at the places of a sparse one, which weighs them
(sampled dense-dense matrix multiplication). The result has its places, so only its values are
written; the formats are those that keep values in the order of rows. A term has two roundings more
than an inner product's: that of the weight, and of the sum's first term.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.problems.rounding import SUMMATION, growth
from kernelwright.env.problems.shapes import Count
from kernelwright.env.problems.sparse.build import (
    BY_ROWS,
    Float,
    Formats,
    Kind,
    matrix_draw,
    normal,
    smallest,
    sparse_problem,
)
from kernelwright.env.problems.sparse.operand import offered_only, operand
from kernelwright.env.types import STRESSES, Arrays, Problem, TensorSpec, Workload


def sddmm(
    *,
    rows: Count = 1 << 11,
    cols: Count = 1 << 11,
    depth: Count = 64,
    nnz: Count = 1 << 15,
    matrix: Kind = "uniform",
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """S[i, j] = A[i, j] Σ_k B[i, k] C[j, k] at the stored places of A."""
    offered_only(BY_ROWS, formats)
    draw = matrix_draw(matrix, rows, cols, nnz)
    a = operand("A", (rows, cols), dtype, draw, BY_ROWS, formats)
    tensors = (
        TensorSpec("B", ("rows", "depth"), dtype, "input"),
        TensorSpec("C", ("cols", "depth"), dtype, "input"),
        TensorSpec("S_vals", ("nnz",), dtype, "output"),
    )
    extents = {"rows": rows, "cols": cols, "depth": depth, "nnz": nnz}
    dense = normal(tensors, extents)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {**a.inputs(draw, rng), **dense(rng)}

    def reference(arrays: Arrays) -> Arrays:
        (row, col), values = a.elements(arrays)
        b, c = arrays["B"].astype(np.float64), arrays["C"].astype(np.float64)
        return {"S_vals": values * np.einsum("pk,pk->p", b[row], c[col])}

    def magnitude(arrays: Arrays) -> Arrays:
        absolute: Arrays = {name: abs(array) for name, array in arrays.items()}
        found = reference(absolute)["S_vals"].astype(np.float64)
        terms = np.full(nnz, depth + 1.0)
        values = (arrays[name] for name in (f"{a.first.prefix}_vals", "B", "C"))
        return {"S_vals": growth(depth + 2.0) * found + smallest(dtype, terms, *values)}

    return sparse_problem(
        "sddmm",
        "S(i,j) = A(i,j) * B(i,k) * C(j,k)",
        operands=(a,),
        tensors=tensors,
        extents=extents,
        sizes={"i": rows, "j": cols, "k": depth},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1, times |A| (|B||C|)",
        flops=nnz * (2 * depth + 1),
        stress=STRESSES,
        structure="A",
        traits={"matrix": matrix},
    )
