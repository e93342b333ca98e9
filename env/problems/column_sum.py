"""Sums of the columns of a row-major matrix: the reduction that runs across the rows.

The error bound is that of a sum of n terms in any order: at most min(n, 4 √n) u Σ|x|.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import fixed_extents, normal_inputs, plain_c
from kernelwright.env.problems.rounding import SUMMATION, floats, growth, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, workload
from kernelwright.env.types import STRESSES, Arrays, ErrorModel, Library, Problem, TensorSpec


def column_sum(
    *,
    rows: Extent = 1024,
    cols: Extent = 1024,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """y[j] = Σ_i x[i, j]."""
    tensors = (
        TensorSpec("x", ("rows", "cols"), dtype, "input"),
        TensorSpec("y", ("cols",), dtype, "output"),
    )

    def body(extents: Mapping[str, int]) -> Stmt:
        x = te.placeholder("x", (extents["rows"], extents["cols"]), dtype)
        i = te.reduce_axis("i", extents["rows"])
        y = te.compute("y", (extents["cols"],), lambda j: te.reduce_sum(x[i.value, j], i), [x])
        return te.lower("column_sum", [y]).body

    return Problem(
        name="column_sum",
        version=1,
        tensors=tensors,
        workloads=(workload(rows=rows, cols=cols),),
        error_model=ErrorModel(unit(dtype), f"{SUMMATION}, times the sum of |x|"),
        reference=lambda arrays: {"y": floats(arrays)["x"].sum(axis=0)},
        inputs=normal_inputs(tensors),
        flops=lambda workload: workload.fixed["rows"] * workload.fixed["cols"],
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("column_sum", tensors, body),
        plain_c=plain_c("column_sum", dtype),
        library=Library("NumPy", "kernelwright.env.problems.library:column_sum"),
        stress=STRESSES,
        exact_on_integers=True,
    )


def _magnitude(arrays: Arrays) -> Arrays:
    x = floats(arrays)["x"]
    return {"y": growth(float(x.shape[0])) * abs(x).sum(axis=0)}
