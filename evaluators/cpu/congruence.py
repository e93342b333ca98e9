"""The judge's own kernels: steps of a linear congruence on whole numbers, exact in any order."""

from __future__ import annotations

import numpy as np

from kernelwright.env.types import Arrays, ErrorModel, Problem, TensorSpec, Workload

_MULTIPLIER, _INCREMENT = 1664525, 1013904223
# A step in C, of a uint32_t v.
STEP = f"v * {_MULTIPLIER}u + {_INCREMENT}u"
# Elements of the input and of the output: 64 KiB each.
_WORKLOAD = Workload((("n", 16384),))


def congruence(name: str, steps: int, plain_c: str | None = None) -> Problem:
    """So many steps, element by element; what a kernel does besides is its own affair."""
    multiplier, increment = 1, 0
    for _ in range(steps):
        multiplier = multiplier * _MULTIPLIER % 2**32
        increment = (increment * _MULTIPLIER + _INCREMENT) % 2**32

    def reference(arrays: Arrays) -> Arrays:
        x = (arrays["x"].astype(np.int64) % 2**32).astype(np.uint64)
        y = (x * np.uint64(multiplier) + np.uint64(increment)) % 2**32
        return {"y": y.astype(np.uint32).view(np.int32)}

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        return {"x": rng.integers(-(2**31), 2**31, workload.fixed["n"], dtype=np.int32)}

    return Problem(
        name=name,
        version=1,
        tensors=(
            TensorSpec("x", ("n",), "int32", "input"),
            TensorSpec("y", ("n",), "int32", "output"),
        ),
        workloads=(_WORKLOAD,),
        error_model=ErrorModel(0.0, "whole numbers modulo 2^32 are exact"),
        reference=reference,
        inputs=inputs,
        flops=lambda workload: 2 * steps * workload.fixed["n"],
        moved_bytes=lambda workload: 8 * workload.fixed["n"],
        spaces=("source",),
        plain_c=plain_c,
    )
