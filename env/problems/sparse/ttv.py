"""A sparse tensor of order three times a vector along its last mode. The error bound is that of an
inner product of a fibre's terms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.problems.rounding import SUMMATION, growth
from kernelwright.env.problems.shapes import Count
from kernelwright.env.problems.sparse.build import (
    Float,
    Formats,
    counted,
    normal,
    sparse_problem,
    sums,
)
from kernelwright.env.problems.sparse.operand import operand
from kernelwright.env.problems.sparse.tensors import OF_TENSORS, tensor_draw
from kernelwright.env.types import STRESSES, Arrays, Problem, TensorSpec, Workload


def ttv(
    *,
    rows: Count = 1 << 7,
    cols: Count = 1 << 7,
    depth: Count = 1 << 7,
    nnz: Count = 1 << 16,
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """y[i, j] = Σ_k T[i, j, k] x[k] over the stored elements of T."""
    draw = tensor_draw((rows, cols, depth), nnz)
    t = operand("T", (rows, cols, depth), dtype, draw, OF_TENSORS, formats)
    tensors = (
        TensorSpec("x", ("depth",), dtype, "input"),
        TensorSpec("y", ("rows", "cols"), dtype, "output"),
    )
    extents = {"rows": rows, "cols": cols, "depth": depth, "nnz": nnz}
    dense = normal(tensors, extents)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {**t.inputs(draw, rng), **dense(rng)}

    def terms(arrays: Arrays) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        (i, j, k), values = t.elements(arrays)
        return i * cols + j, values * arrays["x"].astype(np.float64)[k]

    def reference(arrays: Arrays) -> Arrays:
        place, found = terms(arrays)
        return {"y": sums(place, found, rows * cols).reshape(rows, cols)}

    def magnitude(arrays: Arrays) -> Arrays:
        place, found = terms(arrays)
        many = counted(place, rows * cols)
        out = growth(many) * sums(place, abs(found), rows * cols)
        return {"y": out.reshape(rows, cols)}

    return sparse_problem(
        "ttv",
        "y(i,j) = T(i,j,k) * x(k)",
        operands=(t,),
        tensors=tensors,
        extents=extents,
        sizes={"i": rows, "j": cols, "k": depth},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1 by fibre, times |T||x|",
        flops=2 * nnz,
        stress=STRESSES,
    )
