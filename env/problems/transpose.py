"""Transposition of a matrix: nothing is computed, so the result is exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import fixed_extents, normal_inputs, plain_c
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, workload
from kernelwright.env.types import (
    STRESSES,
    Directive,
    ErrorModel,
    Knob,
    Library,
    Problem,
    Scalar,
    TensorSpec,
    Workload,
)


def transpose(
    *,
    rows: Extent = 1024,
    cols: Extent = 1024,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """y[j, i] = x[i, j]."""
    tensors = (
        TensorSpec("x", ("rows", "cols"), dtype, "input"),
        TensorSpec("y", ("cols", "rows"), dtype, "output"),
    )

    def body(extents: Mapping[str, int]) -> Stmt:
        x = te.placeholder("x", (extents["rows"], extents["cols"]), dtype)
        y = te.compute("y", (extents["cols"], extents["rows"]), lambda j, i: x[i, j], [x])
        return te.lower("transpose", [y]).body

    return Problem(
        name="transpose",
        version=1,
        tensors=tensors,
        workloads=(workload(rows=rows, cols=cols),),
        error_model=ErrorModel(0.0, "exact: elements are moved, not computed"),
        reference=lambda arrays: {"y": arrays["x"].T.copy()},
        inputs=normal_inputs(tensors),
        flops=_moves,
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template", "knobs"),
        knobs=(
            Knob("ti", (16, 32, 64, 128), "rows of x in a tile"),
            Knob("tj", (16, 32, 64, 128), "columns of x in a tile"),
            Knob("lanes", (1, 4, 8, 16), "elements of a column of x that are stored together"),
        ),
        unscheduled=(("ti", 16), ("tj", 16), ("lanes", 1)),
        definition=fixed_extents("transpose", tensors, body),
        plain_c=plain_c("transpose", dtype),
        library=Library("NumPy", "kernelwright.env.problems.library:transpose"),
        stress=STRESSES,
        sketch=_sketch,
        exact_on_integers=True,
    )


def _moves(workload: Workload) -> int:
    # No arithmetic: one operation is one element moved.
    return workload.fixed["rows"] * workload.fixed["cols"]


def _sketch(knobs: Mapping[str, Scalar]) -> tuple[Directive, ...]:
    """Tiles of which both sides stay in the cache; a row of one is stored in vectors."""
    tiles = Directive("tile", "j", ("i", knobs["tj"], knobs["ti"]))
    if knobs["lanes"] == 1:
        return (tiles,)
    split = Directive("split", "ii", (knobs["lanes"], "iu", "iv"))
    return tiles, split, Directive("vectorize", "iv")
