"""A sparse matrix times a vector, the matrix in any of several formats: what `spmv` computes, with
the format a choice. The first is CSR, and the bound is that of `spmv`.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.problems.rounding import SUMMATION, floats, growth
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


def spmv_formats(
    *,
    rows: Count = 1 << 12,
    cols: Count = 1 << 12,
    nnz: Count = 1 << 16,
    matrix: Kind = "uniform",
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """y[i] = Σ_j A[i, j] x[j] over the stored elements of A."""
    draw = matrix_draw(matrix, rows, cols, nnz)
    a = operand("A", (rows, cols), dtype, draw, OF_MATRICES, formats)
    tensors = (
        TensorSpec("x", ("cols",), dtype, "input"),
        TensorSpec("y", ("rows",), dtype, "output"),
    )
    extents = {"rows": rows, "cols": cols, "nnz": nnz}
    dense = normal(tensors, extents)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {**a.inputs(draw, rng), **dense(rng)}

    def reference(arrays: Arrays) -> Arrays:
        (row, col), values = a.elements(arrays)
        return {"y": sums(row, values * floats({"x": arrays["x"]})["x"][col], rows)}

    def magnitude(arrays: Arrays) -> Arrays:
        (row, col), values = a.elements(arrays)
        x = floats({"x": arrays["x"]})["x"]
        terms = counted(row, rows)
        rounded = growth(terms) * sums(row, abs(values * x[col]), rows)
        return {"y": rounded}

    return sparse_problem(
        "spmv_formats",
        "y(i) = A(i,j) * x(j)",
        operands=(a,),
        tensors=tensors,
        extents=extents,
        sizes={"i": rows, "j": cols},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1 by row, times |A||x|",
        flops=2 * nnz,
        library=Library("SciPy", "kernelwright.env.problems.sparse.library:spmv", "scipy"),
        stress=STRESSES,
        traits={"matrix": matrix},
    )
