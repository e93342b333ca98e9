"""Softmax of every row, with the greatest element subtracted first.

The error bound follows Blanchard, D. J. Higham and N. J. Higham, Accurately computing the
log-sum-exp and softmax functions, IMA J. Numer. Anal. 41(4), 2021: rounding x - max moves the
exponential by |x - max| u relatively, the function adds its own few u, the sum the roundings of its
terms (weighted by softmax) and of its n additions, and the division one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import fixed_extents, normal_inputs, plain_c
from kernelwright.env.problems.rounding import FUNCTION, SUMMATION, floats, growth, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, workload
from kernelwright.env.types import Arrays, ErrorModel, Library, Problem, TensorSpec, Workload

TENSORS = (
    TensorSpec("x", ("rows", "cols"), "float32", "input"),
    TensorSpec("y", ("rows", "cols"), "float32", "output"),
)


def softmax(*, rows: Extent = 256, cols: Extent = 1024) -> Problem:
    """y[i, j] = exp(x[i, j] - max_j x[i, j]) / Σ_j exp(x[i, j] - max_j x[i, j])."""
    return Problem(
        name="softmax",
        version=1,
        tensors=TENSORS,
        workloads=(workload(rows=rows, cols=cols),),
        error_model=ErrorModel(
            unit("float32"),
            "Blanchard, Higham and Higham, IMA J. Numer. Anal. 41(4), 2021, with exp to 4 ulp and "
            f"a sum to {SUMMATION}",
        ),
        reference=lambda arrays: {"y": _softmax(floats(arrays)["x"])[0]},
        inputs=normal_inputs(TENSORS),
        flops=_flops,
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("softmax", TENSORS, _body),
        plain_c=plain_c("softmax"),
        library=Library("NumPy", "kernelwright.env.problems.library:softmax"),
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    rows, cols = extents["rows"], extents["cols"]
    x = te.placeholder("x", (rows, cols))
    jm, js = te.reduce_axis("jm", cols), te.reduce_axis("js", cols)
    top = te.compute("top", (rows,), lambda im: te.reduce_max(x[im, jm.value], jm), [x])
    e = te.compute("e", (rows, cols), lambda ie, je: te.exp(x[ie, je] - top[ie]), [x, top])
    total = te.compute("total", (rows,), lambda it: te.reduce_sum(e[it, js.value], js), [e])
    y = te.compute("y", (rows, cols), lambda i, j: e[i, j] / total[i], [e, total])
    return te.lower("softmax", [y]).body


def _softmax(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The result, and by how much each element lies below the greatest of its row."""
    below = x.max(axis=1, keepdims=True) - x
    e = np.exp(-below)
    return e / e.sum(axis=1, keepdims=True), below


def _magnitude(arrays: Arrays) -> Arrays:
    y, below = _softmax(floats(arrays)["x"])
    of_term = below + FUNCTION
    of_sum = (y * of_term).sum(axis=1, keepdims=True) + growth(y.shape[1])
    return {"y": y * (of_term + of_sum + 2)}


def _flops(workload: Workload) -> int:
    # Compare, subtract, exponential, add and divide, each counted once.
    return 5 * workload.fixed["rows"] * workload.fixed["cols"]
