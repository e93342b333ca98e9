"""The problem that mykernel.c solves: squared distances between the rows of two matrices.

Replace it by your own: tensors, a reference in NumPy, and how far from it a result may be.
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.types import STRESSES, Arrays, ErrorModel, Problem, TensorSpec, Workload

# The plain loops: what `baseline: unscheduled` compares with.
PLAIN = """
#include <stdint.h>
void mykernel(const float *restrict X, const float *restrict Y, float *restrict D,
          int64_t m, int64_t n, int64_t d) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < d; k++)
                sum += (X[i * d + k] - Y[j * d + k]) * (X[i * d + k] - Y[j * d + k]);
            D[i * n + j] = sum;
        }
}
"""


def reference(arrays: Arrays) -> Arrays:
    """The outputs for these inputs, in float64."""
    x, y = (arrays[name].astype(np.float64) for name in ("X", "Y"))
    return {"D": np.stack([((row - y) ** 2).sum(axis=1) for row in x])}


def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
    """Random inputs; every test of a candidate draws others."""
    e = workload.fixed
    shapes = {"X": (e["m"], e["d"]), "Y": (e["n"], e["d"])}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def make(*, m: int = 128, n: int = 128, d: int = 256) -> Problem:
    """The problem; its keyword arguments are the options of `problem` in mykernel.yaml."""
    return Problem(
        name="mykernel",
        version=1,
        tensors=(
            TensorSpec("X", ("m", "d"), "float32", "input"),
            TensorSpec("Y", ("n", "d"), "float32", "input"),
            TensorSpec("D", ("m", "n"), "float32", "output"),
        ),
        workloads=(Workload((("m", m), ("n", n), ("d", d))),),
        # Nothing negative is added, so each result is within (d + 2) roundings of its true value,
        # in whatever order it is summed.
        error_model=ErrorModel((d + 3) * 2.0**-24, "a sum of d squares of one sign"),
        magnitude=reference,
        reference=reference,
        inputs=inputs,
        flops=lambda workload: 3 * m * n * d,
        moved_bytes=lambda workload: 4 * (m * d + n * d + m * n),
        spaces=("template", "source"),
        plain_c=PLAIN,
        # Other scales, ramps, subnormal numbers: any will do here, so all kinds are drawn, too.
        stress=STRESSES,
    )
