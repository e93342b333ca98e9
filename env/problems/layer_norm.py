"""Layer normalisation of every row (Ba, Kiros and Hinton 2016), with a scale and a shift.

The error bound, to first order: the mean is a sum (`rounding`), so is the variance, whose
deviations carry the mean's error too (Chan, Golub and LeVeque, The American Statistician 37(3),
1983; Higham 2002, section 1.9). It is written with the mean of x² in place of the variance, so that
the one-pass formula E[x²] - E[x]² passes; where the mean is large, the bound is wide accordingly.
The result carries the error of its deviation and half the relative error of the variance; a few
roundings for the root, the quotient and x·a + b in either form follow.

Rows are of four kinds, in turns: standard normal ones; some thirty times as wide; some with a mean
of 10 or -10; and some that are nearly constant, with a variance around epsilon, so that it counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import (
    fixed_extents,
    kinds_of_rows,
    normal_inputs,
    plain_c,
)
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

TENSORS = (
    TensorSpec("x", ("rows", "cols"), "float32", "input"),
    TensorSpec("gamma", ("cols",), "float32", "input"),
    TensorSpec("beta", ("cols",), "float32", "input"),
    TensorSpec("y", ("rows", "cols"), "float32", "output"),
)
DRAW = normal_inputs(TENSORS)
EPSILON = 1e-5
MEAN = 10
WIDE = 30


def layer_norm(*, rows: Extent = 512, cols: Extent = 1024) -> Problem:
    """y[i, j] = (x[i, j] - mean_i) / √(var_i + 1e-5) · gamma[j] + beta[j]; the variance divides by
    the number of columns.
    """
    return Problem(
        name="layer_norm",
        version=1,
        tensors=TENSORS,
        workloads=(workload(rows=rows, cols=cols),),
        error_model=ErrorModel(
            unit("float32"),
            "mean and variance: Chan, Golub and LeVeque 1983 and Higham 2002, section 1.9, "
            f"with sums to {SUMMATION}",
        ),
        reference=_reference,
        inputs=_inputs,
        flops=_flops,
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("layer_norm", TENSORS, _body),
        plain_c=plain_c("layer_norm"),
        library=Library("NumPy", "kernelwright.env.problems.library:layer_norm"),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    rows, cols = extents["rows"], extents["cols"]
    x = te.placeholder("x", (rows, cols))
    gamma, beta = te.placeholder("gamma", (cols,)), te.placeholder("beta", (cols,))
    js, jv = te.reduce_axis("js", cols), te.reduce_axis("jv", cols)
    total = te.compute("total", (rows,), lambda it: te.reduce_sum(x[it, js.value], js), [x])
    mean = te.compute("mean", (rows,), lambda im: total[im] / float(cols), [total])

    def square(row: te.Value) -> te.Reduction:
        off = x[row, jv.value] - mean[row]
        return te.reduce_sum(off * off, jv)

    squares = te.compute("squares", (rows,), lambda iv: square(iv), [x, mean])
    deviation = te.compute(
        "deviation", (rows,), lambda ir: te.sqrt(squares[ir] / float(cols) + EPSILON), [squares]
    )
    y = te.compute(
        "y",
        (rows, cols),
        lambda i, j: (x[i, j] - mean[i]) / deviation[i] * gamma[j] + beta[j],
        [x, mean, deviation, gamma, beta],
    )
    return te.lower("layer_norm", [y]).body


def _row_means(x: NDArray[np.float64]) -> NDArray[np.float64]:
    out: NDArray[np.float64] = x.mean(axis=1, keepdims=True)
    return out


def _reference(arrays: Arrays) -> Arrays:
    given = floats(arrays)
    off = given["x"] - _row_means(given["x"])
    deviation = np.sqrt(_row_means(off * off) + EPSILON)
    return {"y": off / deviation * given["gamma"] + given["beta"]}


def _magnitude(arrays: Arrays) -> Arrays:
    given = floats(arrays)
    x, gamma, beta = given["x"], abs(given["gamma"]), abs(given["beta"])
    mean = _row_means(x)
    off, variance = abs(x - mean), _row_means((x - mean) ** 2) + EPSILON
    roundings = growth(float(x.shape[1]))
    of_mean = (roundings + 1) * _row_means(abs(x))
    of_variance = (roundings + 4) * _row_means(x * x) + 2 * of_mean * _row_means(abs(x))
    scale = gamma / np.sqrt(variance)
    of_scale = off * scale * (of_variance / variance / 2 + 6)
    return {"y": scale * (of_mean + off + 3 * (abs(x) + abs(mean))) + of_scale + 2 * beta}


def _inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
    arrays = DRAW(workload, rng)
    x = arrays["x"]
    rows = x.shape[0]
    kind = kinds_of_rows(rows, 4, rng)
    scale = np.select([kind == 1, kind == 3], [WIDE, math.sqrt(EPSILON)], 1)
    mean = np.where(kind == 2, MEAN * rng.choice((-1, 1), (rows, 1)), 0)
    return {**arrays, "x": (x * scale + mean).astype(np.float32)}


def _flops(workload: Workload) -> int:
    # The sum; subtract, square and add; subtract, divide, multiply and add.
    return 8 * workload.fixed["rows"] * workload.fixed["cols"]
