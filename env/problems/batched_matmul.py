"""Many matrix products of one size, C[b] = A[b] · B[b], row-major, as attention has them.

The error bound is that of `matmul`: inner products of k terms in any order (Higham and Mary 2019,
theorem 3.1), at most min(k, 4 √k) u |A||B|, elementwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import fixed_extents, normal_inputs, plain_c
from kernelwright.env.problems.rounding import SUMMATION, floats, growth, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, workload
from kernelwright.env.types import (
    STRESSES,
    Arrays,
    ErrorModel,
    Library,
    Problem,
    TensorSpec,
    Workload,
)


def batched_matmul(
    *,
    batch: Extent = 16,
    m: Extent = 128,
    n: Extent = 128,
    k: Extent = 64,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """C[batch, m, n] = A[batch, m, k] · B[batch, k, n]."""
    tensors = (
        TensorSpec("A", ("batch", "m", "k"), dtype, "input"),
        TensorSpec("B", ("batch", "k", "n"), dtype, "input"),
        TensorSpec("C", ("batch", "m", "n"), dtype, "output"),
    )

    def body(extents: Mapping[str, int]) -> Stmt:
        count, em, en, ek = (extents[name] for name in ("batch", "m", "n", "k"))
        a = te.placeholder("A", (count, em, ek), dtype)
        b = te.placeholder("B", (count, ek, en), dtype)
        p = te.reduce_axis("p", ek)
        c = te.compute(
            "C",
            (count, em, en),
            lambda q, i, j: te.reduce_sum(a[q, i, p.value] * b[q, p.value, j], p),
            [a, b],
        )
        return te.lower("batched_matmul", [c]).body

    return Problem(
        name="batched_matmul",
        version=1,
        tensors=tensors,
        workloads=(workload(batch=batch, m=m, n=n, k=k),),
        error_model=ErrorModel(unit(dtype), f"{SUMMATION} and 3.1, times |A||B|"),
        reference=_reference,
        inputs=normal_inputs(tensors),
        flops=_flops,
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("batched_matmul", tensors, body),
        plain_c=plain_c("batched_matmul", dtype),
        library=Library("NumPy (BLAS)", "kernelwright.env.problems.library:matmul"),
        stress=STRESSES,
        exact_on_integers=True,
    )


def _reference(arrays: Arrays) -> Arrays:
    given = floats(arrays)
    return {"C": given["A"] @ given["B"]}


def _magnitude(arrays: Arrays) -> Arrays:
    given = floats(arrays)
    return {"C": growth(float(given["A"].shape[2])) * (abs(given["A"]) @ abs(given["B"]))}


def _flops(workload: Workload) -> int:
    extents = workload.fixed
    return 2 * extents["batch"] * extents["m"] * extents["n"] * extents["k"]
