"""The product of two sparse matrices, assembled. How many elements it has follows from where those
of A and B are: its arrays have room for what one draw gives and an eighth beyond it, others are
drawn until they fit, and what lies behind the last position is zero. The error bound is that of an
inner product of an element's terms.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.sparse.levels.base import Whole
from kernelwright.env.problems.definition import FLOATS
from kernelwright.env.problems.rounding import SUMMATION, growth
from kernelwright.env.problems.shapes import Count
from kernelwright.env.problems.sparse.build import (
    Float,
    Formats,
    Kind,
    counted,
    matrix_draw,
    sparse_problem,
)
from kernelwright.env.problems.sparse.copies import FullError
from kernelwright.env.problems.sparse.operand import (
    ATTEMPTS,
    SEED,
    Elements,
    offered_only,
    operand,
)
from kernelwright.env.problems.sparse.pairs import csr_result, csr_tensors
from kernelwright.env.types import STRESSES, Arrays, Library, Problem, Workload

BY_ROWS = ("csr", "dcsr")


def spgemm(
    *,
    rows: Count = 1 << 10,
    cols: Count = 1 << 10,
    inner: Count = 1 << 10,
    nnz: Count = 1 << 13,
    matrix: Kind = "uniform",
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """C[i, j] = Σ_k A[i, k] B[k, j], with nnz elements in A and in B."""
    offered_only(BY_ROWS, formats)
    draw_a = matrix_draw(matrix, rows, inner, nnz)
    draw_b = matrix_draw(matrix, inner, cols, nnz)
    a = operand("A", (rows, inner), dtype, draw_a, BY_ROWS, formats)
    b = operand("B", (inner, cols), dtype, draw_b, BY_ROWS, formats)
    rng = np.random.default_rng(SEED)
    left, right = draw_a(rng), draw_b(rng)
    ones = np.ones(nnz)
    key, _ = _products((left, ones), (right, ones), inner, cols)
    needed = np.unique(key).size
    room = min(needed + needed // 8 + 8, rows * cols)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        for _ in range(ATTEMPTS):
            places = draw_a(rng), draw_b(rng)
            values = [rng.standard_normal(nnz, FLOATS[dtype]) for _ in places]
            try:
                out = {**a.arrays(places[0], values[0]), **b.arrays(places[1], values[1])}
            except FullError:
                continue
            key, _ = _products((places[0], ones), (places[1], ones), inner, cols)
            if np.unique(key).size <= room:
                return out
        raise ValueError(f"spgemm: expected a product of {room} elements in {ATTEMPTS} draws")

    def result(arrays: Arrays, *, bound: bool) -> Arrays:
        key, terms = _products(a.elements(arrays), b.elements(arrays), inner, cols)
        union, place = np.unique(key, return_inverse=True)
        row, col = np.divmod(union, cols)
        size = union.size
        values = np.bincount(place, abs(terms) if bound else terms, size).astype(np.float64)
        if bound:
            several = counted(place, size)
            values = growth(several) * values
        return csr_result("C", rows, room, row, col, values)

    def reference(arrays: Arrays) -> Arrays:
        return result(arrays, bound=False)

    def magnitude(arrays: Arrays) -> Arrays:
        exact = {"C2_pos": np.zeros(rows + 1), "C2_crd": np.zeros(room)}
        return {**result(arrays, bound=True), **exact}

    return sparse_problem(
        "spgemm",
        "C(i,j) = A(i,k) * B(k,j)",
        operands=(a, b),
        tensors=csr_tensors("C", "room", dtype),
        extents={"rows": rows, "cols": cols, "inner": inner, "nnz": nnz, "room": room},
        sizes={"i": rows, "j": cols, "k": inner},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1 by element, times |A||B|",
        flops=2 * key.size,
        library=Library("SciPy", "kernelwright.env.problems.sparse.library:spgemm", "scipy"),
        stress=STRESSES,
        target="csr",
        counts={"C2": room},
        traits={"matrix": matrix},
    )


def _products(
    left: Elements, right: Elements, inner: int, cols: int
) -> tuple[Whole, NDArray[np.float64]]:
    """All products of elements that meet: the number of their place, row · cols + column, and their
    values.
    """
    (row, k), values = left
    (of, col), others = right
    first = np.concatenate(([0], np.cumsum(np.bincount(of, minlength=inner))))
    lengths = (first[1:] - first[:-1])[k]
    source = np.repeat(np.arange(k.size), lengths)
    within = np.arange(source.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    met = first[k[source]] + within
    return row[source] * cols + col[met], values[source] * others[met]
