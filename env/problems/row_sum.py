"""Sums of the rows of a matrix.

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
from kernelwright.env.types import (
    STRESSES,
    Arrays,
    Directive,
    ErrorModel,
    Knob,
    Library,
    Problem,
    Scalar,
    TensorSpec,
    Workload,
)


def row_sum(
    *,
    rows: Extent = 1024,
    cols: Extent = 1024,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """y[i] = Σ_j x[i, j]."""
    tensors = (
        TensorSpec("x", ("rows", "cols"), dtype, "input"),
        TensorSpec("y", ("rows",), dtype, "output"),
    )

    def body(extents: Mapping[str, int]) -> Stmt:
        x = te.placeholder("x", (extents["rows"], extents["cols"]), dtype)
        j = te.reduce_axis("j", extents["cols"])
        y = te.compute("y", (extents["rows"],), lambda i: te.reduce_sum(x[i, j.value], j), [x])
        return te.lower("row_sum", [y]).body

    return Problem(
        name="row_sum",
        version=1,
        tensors=tensors,
        workloads=(workload(rows=rows, cols=cols),),
        error_model=ErrorModel(unit(dtype), f"{SUMMATION}, times the sum of |x|"),
        reference=lambda arrays: {"y": floats(arrays)["x"].sum(axis=1)},
        inputs=normal_inputs(tensors),
        flops=_flops,
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template", "knobs"),
        knobs=(
            Knob("together", (1, 2, 4, 8, 16, 32), "rows that are summed side by side"),
            Knob("how", ("unroll", "vectorize"), "whether they are scalars or lanes of a vector"),
        ),
        unscheduled=(("together", 1), ("how", "unroll")),
        magnitude=_magnitude,
        definition=fixed_extents("row_sum", tensors, body),
        plain_c=plain_c("row_sum", dtype),
        library=Library("NumPy", "kernelwright.env.problems.library:row_sum"),
        stress=STRESSES,
        sketch=_sketch,
        exact_on_integers=True,
    )


def _magnitude(arrays: Arrays) -> Arrays:
    x = floats(arrays)["x"]
    return {"y": growth(x.shape[1]) * abs(x).sum(axis=1)}


def _flops(workload: Workload) -> int:
    return workload.fixed["rows"] * workload.fixed["cols"]


def _sketch(knobs: Mapping[str, Scalar]) -> tuple[Directive, ...]:
    """Several sums at once: their additions do not wait for each other."""
    if knobs["together"] == 1:
        return ()
    return (
        Directive("split", "i", (knobs["together"],)),
        Directive("reorder", "io", ("j", "ii")),
        Directive(str(knobs["how"]), "ii"),
    )
