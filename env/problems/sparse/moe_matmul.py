"""A mixture of experts as one block-sparse product: tokens are grouped by expert in blocks of rows,
so that the activations are a matrix with one dense block in each row of blocks, at the columns of
its expert, and the experts' weights lie one below the other. In blocks its values are the
activations as they are, row by row, and its coordinates are the blocks' experts.
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
    sparse_problem,
)
from kernelwright.env.problems.sparse.operand import offered_only, operand
from kernelwright.env.types import STRESSES, Arrays, Library, Problem, TensorSpec, Workload


def moe_matmul(
    *,
    tokens: Count = 1 << 8,
    experts: Count = 8,
    depth: Count = 64,
    width: Count = 64,
    block: Count = 16,
    formats: Formats = None,
    dtype: Float = "float32",
) -> Problem:
    """y[t, f] = Σ_d A[t, e d] W[e d, f], e the expert of the block of rows that t is in."""
    if tokens % block:
        raise OptionError("tokens", f"a multiple of block = {block}", str(tokens))
    offered = (f"bcsr({block},{depth})", "csr")
    offered_only(offered, formats)
    blocks = tokens // block

    def draw(rng: np.random.Generator) -> Whole:
        # Some experts are asked far more often than others.
        liking = rng.dirichlet(np.full(experts, 0.5))
        expert = np.sort(rng.choice(experts, blocks, p=liking))
        row = np.repeat(np.arange(tokens), depth)
        col = np.repeat(expert, block)[:, None] * depth + np.arange(depth)
        return np.array([row, col.ravel()], np.int64)

    shape = (tokens, experts * depth)
    a = operand("A", shape, dtype, draw, offered, formats, varies=False)
    tensors = (
        TensorSpec("W", ("experts * depth", "width"), dtype, "input"),
        TensorSpec("y", ("tokens", "width"), dtype, "output"),
    )
    extents = {
        "tokens": tokens,
        "experts": experts,
        "depth": depth,
        "width": width,
        "block": block,
    }
    dense = normal(tensors, extents)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {**a.inputs(draw, rng), **dense(rng)}

    def reference(arrays: Arrays) -> Arrays:
        x = arrays["A_bcsr_vals"].astype(np.float64).reshape(blocks, block, depth)
        w = arrays["W"].astype(np.float64).reshape(experts, depth, width)
        return {"y": (x @ w[arrays["A_bcsr2_crd"]]).reshape(tokens, width)}

    def magnitude(arrays: Arrays) -> Arrays:
        absolute: Arrays = {name: abs(array) for name, array in arrays.items()}
        found = reference(absolute)["y"].astype(np.float64)
        return {"y": growth(float(depth)) * found}

    return sparse_problem(
        "moe_matmul",
        "y(t,f) = A(t,e) * W(e,f)",
        operands=(a,),
        tensors=tensors,
        extents=extents,
        sizes={"t": tokens, "e": experts * depth, "f": width},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1, times |A||W|",
        flops=2 * tokens * depth * width,
        library=Library("SciPy", "kernelwright.env.problems.sparse.library:moe_matmul", "scipy"),
        stress=STRESSES,
    )
