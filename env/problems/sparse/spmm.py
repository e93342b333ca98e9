"""A sparse matrix times a dense one of few columns, the sparse one in any of several formats. The
error bound is that of an inner product of a row's terms.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.problems.rounding import SUMMATION, growth
from kernelwright.env.problems.shapes import Count
from kernelwright.env.problems.sparse.build import (
    OF_MATRICES,
    Float,
    Formats,
    Kind,
    counted,
    matrix_draw,
    normal,
    sparse_problem,
    sums,
)
from kernelwright.env.problems.sparse.operand import operand
from kernelwright.env.types import STRESSES, Arrays, Library, Problem, TensorSpec, Workload


def spmm(
    *,
    rows: Count = 1 << 11,
    cols: Count = 1 << 11,
    width: Count = 32,
    nnz: Count = 1 << 15,
    matrix: Kind = "uniform",
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """C[i, k] = Σ_j A[i, j] B[j, k] over the stored elements of A."""
    draw = matrix_draw(matrix, rows, cols, nnz)
    a = operand("A", (rows, cols), dtype, draw, OF_MATRICES, formats)
    tensors = (
        TensorSpec("B", ("cols", "width"), dtype, "input"),
        TensorSpec("C", ("rows", "width"), dtype, "output"),
    )
    extents = {"rows": rows, "cols": cols, "width": width, "nnz": nnz}
    dense = normal(tensors, extents)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {**a.inputs(draw, rng), **dense(rng)}

    def reference(arrays: Arrays) -> Arrays:
        (row, col), values = a.elements(arrays)
        return {"C": sums(row, values[:, None] * arrays["B"].astype(np.float64)[col], rows)}

    def magnitude(arrays: Arrays) -> Arrays:
        (row, col), values = a.elements(arrays)
        terms = counted(row, rows)[:, None]
        products = abs(values[:, None] * arrays["B"].astype(np.float64)[col])
        return {"C": growth(terms) * sums(row, products, rows)}

    return sparse_problem(
        "spmm",
        "C(i,k) = A(i,j) * B(j,k)",
        operands=(a,),
        tensors=tensors,
        extents=extents,
        sizes={"i": rows, "j": cols, "k": width},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1 by row, times |A||B|",
        flops=2 * nnz * width,
        library=Library("SciPy", "kernelwright.env.problems.sparse.library:spmm", "scipy"),
        stress=STRESSES,
        traits={"matrix": matrix},
    )
