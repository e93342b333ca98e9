"""A sparse tensor of order three times the Khatri-Rao product of two matrices (MTTKRP), what a
decomposition of it spends its time on. A term has two roundings of products and those of the sum.
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
    smallest,
    sparse_problem,
    sums,
)
from kernelwright.env.problems.sparse.operand import operand
from kernelwright.env.problems.sparse.tensors import OF_TENSORS, tensor_draw
from kernelwright.env.types import STRESSES, Arrays, Problem, TensorSpec, Workload


def mttkrp(
    *,
    rows: Count = 1 << 7,
    cols: Count = 1 << 7,
    depth: Count = 1 << 7,
    rank: Count = 32,
    nnz: Count = 1 << 15,
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """M[i, r] = Σ_jk T[i, j, k] B[j, r] C[k, r] over the stored elements of T."""
    draw = tensor_draw((rows, cols, depth), nnz)
    t = operand("T", (rows, cols, depth), dtype, draw, OF_TENSORS, formats)
    tensors = (
        TensorSpec("B", ("cols", "rank"), dtype, "input"),
        TensorSpec("C", ("depth", "rank"), dtype, "input"),
        TensorSpec("M", ("rows", "rank"), dtype, "output"),
    )
    extents = {"rows": rows, "cols": cols, "depth": depth, "rank": rank, "nnz": nnz}
    dense = normal(tensors, extents)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {**t.inputs(draw, rng), **dense(rng)}

    def terms(arrays: Arrays) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        (i, j, k), values = t.elements(arrays)
        b, c = arrays["B"].astype(np.float64), arrays["C"].astype(np.float64)
        return i, values[:, None] * b[j] * c[k]

    def reference(arrays: Arrays) -> Arrays:
        i, found = terms(arrays)
        return {"M": sums(i, found, rows)}

    def magnitude(arrays: Arrays) -> Arrays:
        i, found = terms(arrays)
        many = counted(i, rows)[:, None]
        factors = (arrays[name] for name in (f"{t.first.prefix}_vals", "B", "C"))
        # With no term, nothing is rounded.
        roundings = growth(many + 1) * (many > 0)
        return {"M": roundings * sums(i, abs(found), rows) + smallest(dtype, many, *factors)}

    return sparse_problem(
        "mttkrp",
        "M(i,r) = T(i,j,k) * B(j,r) * C(k,r)",
        operands=(t,),
        tensors=tensors,
        extents=extents,
        sizes={"i": rows, "j": cols, "k": depth, "r": rank},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1 by row, times |T||B||C|",
        flops=3 * nnz * rank,
        stress=STRESSES,
    )
