"""The scores of one query over a cache in pages: a block table says in which page of the memory
each page of the sequence lies. The table is a matrix with one element a row, `padded(1)` below the
rows: its coordinates are the page numbers, its elements a scale for each page, as caches in fewer
bits have. Pages are distinct, as those of one sequence are.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.compiler.sparse.levels.base import Whole
from kernelwright.env.options import OptionError
from kernelwright.env.problems.rounding import SUMMATION, growth
from kernelwright.env.problems.shapes import Count
from kernelwright.env.problems.sparse.build import (
    Float,
    Formats,
    normal,
    smallest,
    sparse_problem,
)
from kernelwright.env.problems.sparse.operand import offered_only, operand
from kernelwright.env.types import STRESSES, Arrays, Problem, TensorSpec, Workload

OF_TABLES = ("ell(1)", "csr", "coo")


def paged_scores(
    *,
    pages: Count = 64,
    memory: Count = 256,
    page: Count = 16,
    depth: Count = 64,
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """s[b, t] = T[b, p] Σ_d K[p, t, d] q[d], p the page of the memory that b is in."""
    if pages > memory:
        raise OptionError("pages", f"at most memory = {memory}", str(pages))
    offered_only(OF_TABLES, formats)

    def draw(rng: np.random.Generator) -> Whole:
        return np.array([np.arange(pages), rng.permutation(memory)[:pages]], np.int64)

    t = operand("T", (pages, memory), dtype, draw, OF_TABLES, formats, varies=False)
    tensors = (
        TensorSpec("K", ("memory", "page", "depth"), dtype, "input"),
        TensorSpec("q", ("depth",), dtype, "input"),
        TensorSpec("s", ("pages", "page"), dtype, "output"),
    )
    extents = {"pages": pages, "memory": memory, "page": page, "depth": depth}
    dense = normal(tensors, extents)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {**t.inputs(draw, rng), **dense(rng)}

    def reference(arrays: Arrays) -> Arrays:
        keys, q = arrays["K"].astype(np.float64), arrays["q"].astype(np.float64)
        scale = arrays["T_ell_vals"].astype(np.float64)
        return {"s": scale[:, None] * (keys[arrays["T_ell2_crd"]] @ q)}

    def magnitude(arrays: Arrays) -> Arrays:
        absolute: Arrays = {name: abs(array) for name, array in arrays.items()}
        found = reference(absolute)["s"].astype(np.float64)
        factors = (arrays[name] for name in ("T_ell_vals", "K", "q"))
        terms = np.full(found.shape, depth + 1.0)
        return {"s": growth(depth + 2.0) * found + smallest(dtype, terms, *factors)}

    return sparse_problem(
        "paged_scores",
        "s(b,t) = T(b,p) * K(p,t,d) * q(d)",
        operands=(t,),
        tensors=tensors,
        extents=extents,
        sizes={"b": pages, "p": memory, "t": page, "d": depth},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1, times |T| (|K||q|)",
        flops=pages * page * (2 * depth + 1),
        stress=STRESSES,
    )
