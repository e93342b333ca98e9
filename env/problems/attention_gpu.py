"""Fused attention as a GPU tuner sees it: softmax(Q Kᵀ / √d) V, head by head, in fp16 with fp32
accumulation, and the tile sizes that a Triton-style kernel with an online softmax offers.

The error bound, in the norm, with u = 2^-11 of fp16, u32 = 2^-24 of fp32, n the sequence and d the
head's dimension, is the sum of these. The result is rounded to fp16: u. The weights exp(s - max),
at most 1, are rounded to fp16 before they are multiplied with V: u each, and as the errors are
independent they add as the terms do, so u in all; weights below 2^-24 lose up to 2^-25 each, which
adds as √n, while the norm is at least that of the term of weight 1: √n 2^-25. Accumulating n
products in fp32: n u32, as in a product of matrices (`gemm_gpu`; Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., section 3.5). The online softmax (Milakov and Gimelshein 2018)
rescales the sums at most n / 16 times, with a rounding of the factor and one of the product: n / 8
u32. A score is a sum of d products of size 1, divided by √d; its absolute error, at most d √d u32
by the same section, is the relative error of its weight.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from kernelwright.env.types import Arrays, ErrorModel, Knob, Problem, TensorSpec, Workload

Doubles: TypeAlias = NDArray[np.float64]
Extent = Annotated[int, Field(ge=1, le=1 << 20)]

KNOBS = (
    Knob("bm", (16, 32, 64, 128, 256), "rows of Q a block keeps"),
    Knob("bn", (16, 32, 64, 128), "rows of K and V in one step"),
    Knob("warps", (1, 2, 4, 8), "warps in a block"),
    Knob("stages", (1, 2, 3, 4), "stages of asynchronous copies"),
)
UNSCHEDULED = (("bm", 128), ("bn", 64), ("warps", 4), ("stages", 3))
TENSORS = ("Q", "K", "V")


def attention_gpu(
    *,
    heads: Extent = 32,
    seq: Extent = 4096,
    dim: Annotated[int, Field(ge=1, le=1024)] = 128,
    causal: Annotated[bool, Field(description="whether a row sees only itself and before")] = True,
    dtype: Literal["float16"] = "float16",
) -> Problem:
    """O[h] = softmax(Q[h] · K[h]ᵀ / √dim) · V[h], fp16 operands and result, fp32 accumulation."""
    itemsize = np.dtype(dtype).itemsize

    def reference(arrays: Arrays) -> Arrays:
        q, k, v = (arrays[name].astype(np.float64) for name in TENSORS)
        return {"O": np.stack([_head(*head, causal) for head in zip(q, k, v, strict=True)])}

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        extents = workload.fixed
        shape = (extents["heads"], extents["seq"], extents["dim"])
        return {name: rng.standard_normal(shape).astype(dtype) for name in TENSORS}

    def flops(workload: Workload) -> int:
        """Of both products; with a causal mask of the pairs that it leaves."""
        extents = workload.fixed
        rows = extents["seq"]
        pairs = rows * (rows + 1) // 2 if causal else rows * rows
        return 4 * extents["heads"] * pairs * extents["dim"]

    def moved_bytes(workload: Workload) -> int:
        extents = workload.fixed
        return 4 * extents["heads"] * extents["seq"] * extents["dim"] * itemsize

    shape = ("heads", "seq", "dim")
    return Problem(
        name="attention_gpu",
        version=1,
        tensors=(
            *(TensorSpec(name, shape, dtype, "input") for name in TENSORS),
            TensorSpec("O", shape, dtype, "output"),
        ),
        workloads=(Workload((("heads", heads), ("seq", seq), ("dim", dim))),),
        error_model=ErrorModel(
            bound=2 * 2.0**-11 + math.sqrt(seq) * 2.0**-25 + (1.125 * seq + dim**1.5) * 2.0**-24,
            source="fp16 rounding of weights and result, fp32 sums: Higham 2002, section 3.5",
        ),
        reference=reference,
        inputs=inputs,
        flops=flops,
        moved_bytes=moved_bytes,
        spaces=("knobs",),
        knobs=KNOBS,
        unscheduled=UNSCHEDULED,
        traits=(("causal", causal),),
    )


def _head(q: Doubles, k: Doubles, v: Doubles, causal: bool) -> Doubles:
    """Attention of one head, of arrays (seq, dim)."""
    scores = q @ k.T / math.sqrt(q.shape[1])
    if causal:
        scores[np.triu_indices(len(scores), 1)] = -math.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    out: Doubles = (weights / weights.sum(axis=1, keepdims=True)) @ v
    return out
