"""GEMM as a GPU tuner sees it: C = A·B in fp16 with fp32 accumulation, and the tile sizes a
Triton-style kernel offers.

The error bound: rounding the fp32 result to fp16 moves each element by at most u = 2^-11
relatively, and accumulating k products in fp32 adds at most γ_k = k u32 / (1 - k u32) with u32 =
2^-24 times |A||B| (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.5).
In the norm, for random signs, |A||B| exceeds |AB| by about √k and the errors add like √k, so the
second term is k u32.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from kernelwright.env.types import Arrays, ErrorModel, Knob, Problem, TensorSpec, Workload

Extent = Annotated[int, Field(ge=1, le=1 << 20)]

KNOBS = (
    Knob("bm", (16, 32, 64, 128, 256), "rows of C a block computes"),
    Knob("bn", (16, 32, 64, 128, 256), "columns of C a block computes"),
    Knob("bk", (16, 32, 64, 128), "length of one K step"),
    Knob("warps", (1, 2, 4, 8), "warps in a block"),
    Knob("stages", (1, 2, 3, 4, 5), "stages of asynchronous copies"),
    Knob("group_m", (1, 4, 8), "tile rows that are launched together"),
)
# One more, where a problem offers it: a tile's K steps on several blocks, and a pass that adds up.
SPLIT_K = Knob("split_k", (1, 2, 4, 8, 16), "blocks that share a tile's K steps")
UNSCHEDULED = (("bm", 128), ("bn", 128), ("bk", 32), ("warps", 4), ("stages", 3), ("group_m", 8))


def gemm_gpu(
    *,
    m: Extent = 4096,
    n: Extent = 4096,
    k: Extent = 4096,
    dtype: Literal["float16"] = "float16",
    split_k: Annotated[bool, Field(description="offer the knob split_k")] = False,
) -> Problem:
    """C[m, n] = A[m, k] · B[k, n], row-major, ``dtype`` operands and result, fp32 accumulation."""
    itemsize = np.dtype(dtype).itemsize

    def reference(arrays: Arrays) -> Arrays:
        return {"C": arrays["A"].astype(np.float64) @ arrays["B"].astype(np.float64)}

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        extents = workload.fixed
        shapes = {"A": (extents["m"], extents["k"]), "B": (extents["k"], extents["n"])}
        return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}

    def flops(workload: Workload) -> int:
        extents = workload.fixed
        return 2 * extents["m"] * extents["n"] * extents["k"]

    def moved_bytes(workload: Workload) -> int:
        extents = workload.fixed
        em, en, ek = extents["m"], extents["n"], extents["k"]
        return (em * ek + ek * en + em * en) * itemsize

    return Problem(
        name="gemm_gpu",
        version=1,
        tensors=(
            TensorSpec("A", ("m", "k"), dtype, "input"),
            TensorSpec("B", ("k", "n"), dtype, "input"),
            TensorSpec("C", ("m", "n"), dtype, "output"),
        ),
        workloads=(Workload((("m", m), ("n", n), ("k", k))),),
        error_model=ErrorModel(
            bound=2.0**-11 + k * 2.0**-24,
            source="fp16 rounding of the result plus fp32 accumulation: Higham 2002, section 3.5",
        ),
        reference=reference,
        inputs=inputs,
        flops=flops,
        moved_bytes=moved_bytes,
        spaces=("knobs",),
        knobs=(*KNOBS, SPLIT_K) if split_k else KNOBS,
        unscheduled=(*UNSCHEDULED, (SPLIT_K.name, 1)) if split_k else UNSCHEDULED,
    )
