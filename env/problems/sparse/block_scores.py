"""The scores of block-sparse attention: inner products of queries and keys in the blocks of a mask,
weighed by its elements. Blocks below the diagonal are drawn, those on it are always there, and
nothing else is computed. The result has the mask's blocks, so only its values are written.

A softmax over the blocks of a row is no index notation (a maximum and a quotient), so attention as
a whole is no problem of this family; what it multiplies by V afterwards is `spmm` with blocks.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.compiler.sparse.levels.base import Whole
from kernelwright.env.options import OptionError
from kernelwright.env.problems.rounding import SUMMATION, growth
from kernelwright.env.problems.shapes import Count
from kernelwright.env.problems.sparse.build import Float, normal, smallest, sparse_problem
from kernelwright.env.problems.sparse.operand import operand
from kernelwright.env.types import STRESSES, Arrays, Problem, TensorSpec, Workload


def block_scores(
    *,
    length: Count = 1 << 9,
    depth: Count = 64,
    block: Count = 16,
    per_row: Count = 4,
    dtype: Float = "float32",
) -> Problem:
    """S[i, j] = M[i, j] Σ_d Q[i, d] K[j, d] in the blocks of M: the one on the diagonal and up to
    per_row - 1 of those before it in every row of blocks.
    """
    if length % block:
        raise OptionError("length", f"a multiple of block = {block}", str(length))
    across = length // block
    per_row_blocks = np.minimum(np.arange(across) + 1, per_row)
    blocks = int(per_row_blocks.sum())

    def draw(rng: np.random.Generator) -> Whole:
        row = np.repeat(np.arange(across), per_row_blocks)
        chosen = [
            np.append(np.sort(rng.choice(r, n - 1, replace=False)), r)
            for r, n in enumerate(per_row_blocks.tolist())
        ]
        col = np.concatenate(chosen).astype(np.int64)
        i, j = np.divmod(np.arange(block * block), block)
        places = (row[:, None] * block + i, col[:, None] * block + j)
        return np.array([mode.ravel() for mode in places], np.int64)

    m = operand("M", (length, length), dtype, draw, (f"bcsr({block},{block})",), varies=False)
    tensors = (
        TensorSpec("Q", ("length", "depth"), dtype, "input"),
        TensorSpec("K", ("length", "depth"), dtype, "input"),
        TensorSpec("S_vals", (blocks * block * block,), dtype, "output"),
    )
    extents = {"length": length, "depth": depth, "block": block, "per_row": per_row}
    dense = normal(tensors, extents)

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {**m.inputs(draw, rng), **dense(rng)}

    def reference(arrays: Arrays) -> Arrays:
        q, k = (arrays[name].astype(np.float64).reshape(across, block, depth) for name in "QK")
        pos, col = arrays["M_bcsr2_pos"], arrays["M_bcsr2_crd"]
        row = np.repeat(np.arange(across), np.diff(pos))
        scores = q[row] @ k[col].transpose(0, 2, 1)
        return {"S_vals": arrays["M_bcsr_vals"].astype(np.float64) * scores.ravel()}

    def magnitude(arrays: Arrays) -> Arrays:
        absolute: Arrays = {name: abs(array) for name, array in arrays.items()}
        found = reference(absolute)["S_vals"].astype(np.float64)
        terms = np.full(found.size, depth + 1.0)
        factors = (arrays[name] for name in ("M_bcsr_vals", "Q", "K"))
        return {"S_vals": growth(depth + 2.0) * found + smallest(dtype, terms, *factors)}

    return sparse_problem(
        "block_scores",
        "S(i,j) = M(i,j) * Q(i,d) * K(j,d)",
        operands=(m,),
        tensors=tensors,
        extents=extents,
        sizes={"i": length, "j": length, "d": depth},
        dtype=dtype,
        inputs=inputs,
        reference=reference,
        magnitude=magnitude,
        bound=f"{SUMMATION} and 3.1, times |M| (|Q||K|)",
        flops=blocks * block * block * (2 * depth + 1),
        stress=STRESSES,
        structure="M",
    )
