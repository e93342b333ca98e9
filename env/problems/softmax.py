"""Softmax of every row, with the greatest element subtracted first.

The error bound follows Blanchard, D. J. Higham and N. J. Higham, Accurately computing the
log-sum-exp and softmax functions, IMA J. Numer. Anal. 41(4), 2021: rounding x - max moves the
exponential by |x - max| u relatively, the function adds its own few u, the sum the roundings of its
terms (weighted by softmax) and of its n additions, and the division one. An exponential or a
quotient that underflows errs by no more than the least normal number.

Of five rows, two are standard normal, one is six times as wide, and one each lies around 100 and
-100, where no normal float32 holds the exponentials. In one of thirty, one element, at either end
or anywhere, is 120 above the others, so that the greatest of a part of the row is not enough: in
few, because an exponential that underflows takes longer than others. Exponentials are normal
numbers or zero: subnormal ones are slow, which would be measured.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import fixed_extents, kinds_of_rows, plain_c
from kernelwright.env.problems.rounding import FUNCTION, SUMMATION, floats, growth, underflow, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, shape_of, workload
from kernelwright.env.types import (
    STRESSES,
    Arrays,
    ErrorModel,
    Library,
    Problem,
    TensorSpec,
    Workload,
)

TENSORS = (
    TensorSpec("x", ("rows", "cols"), "float32", "input"),
    TensorSpec("y", ("rows", "cols"), "float32", "output"),
)
FAR, PEAK, WIDE = np.float32(100), np.float32(120), np.float32(6)


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
        inputs=_inputs,
        flops=_flops,
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("softmax", TENSORS, _body),
        plain_c=plain_c("softmax"),
        library=Library("NumPy", "kernelwright.env.problems.library:softmax"),
        stress=STRESSES,
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
    return {"y": y * (of_term + of_sum + 2) + 2 * underflow("float32")}


def _inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
    shape = rows, cols = shape_of(TENSORS[0], workload.fixed)
    x = rng.standard_normal(shape, np.float32)
    kind = kinds_of_rows(rows, 5, rng)
    x *= np.where(kind == 1, WIDE, np.float32(1))
    x += np.select([kind == 2, kind == 3], [FAR, -FAR], np.float32(0))
    # Every sixth of its kind, from the first on: five rows have one.
    number = np.cumsum(kind == 4)[:, None] - 1
    peaked = (kind == 4) & (number % 6 == 0)
    anywhere, side = rng.integers(cols, size=(rows, 1)), (number // 6 + rng.integers(3)) % 3
    place = np.select([side == 0, side == 1], [0, cols - 1], anywhere)
    rest = x.max(axis=1, keepdims=True)
    return {"x": np.where(peaked & (np.arange(cols) == place), rest + PEAK, x)}


def _flops(workload: Workload) -> int:
    # Compare, subtract, exponential, add and divide, each counted once.
    return 5 * workload.fixed["rows"] * workload.fixed["cols"]
