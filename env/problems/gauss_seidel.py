"""Gauss-Seidel relaxation in two dimensions, in place: ``t`` sweeps in which every point inside
becomes the mean of itself and its four neighbours, two of which the sweep has changed already.

The number of sweeps cannot be read off the arrays, so it is a number, never a range. Every point is
a chain of all points before it, so its error is too: each mean adds six roundings (five, and that
of a constant fifth) of its own absolute value to the mean of the errors of its parts, and the bound
is that recurrence itself, run beside the sweeps on |start| (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., 2002, section 3.1, applied step by step).

Points of one antidiagonal depend on no other of it: the reference computes these at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import (
    fixed_extents,
    normal_inputs,
    plain_c,
    with_hidden_extent,
)
from kernelwright.env.problems.rounding import HIGHER_ORDER, floats, unit
from kernelwright.env.problems.shapes import Count, Extent, compulsory_bytes, workload
from kernelwright.env.types import STRESSES, ErrorModel, Problem, TensorSpec, Workload

ROUNDINGS = 6.0


def gauss_seidel(
    *,
    h: Extent = 256,
    w: Extent = 256,
    t: Count = 4,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """From ``start``, t sweeps row by row: now[i, j] = (now[i, j] + now[i-1, j] + now[i, j-1] +
    now[i, j+1] + now[i+1, j]) / 5 inside the border.
    """
    tensors = (
        TensorSpec("start", ("h", "w"), dtype, "input"),
        TensorSpec("now", ("h", "w"), dtype, "output"),
    )

    return Problem(
        name="gauss_seidel",
        version=1,
        tensors=tensors,
        workloads=(workload(h=h, w=w, t=t),),
        error_model=ErrorModel(
            unit(dtype),
            "six roundings a mean, carried through all sweeps: Higham 2002, section 3.1",
        ),
        reference=lambda arrays: {"now": _swept(floats(arrays)["start"], t)[0]},
        inputs=with_hidden_extent("gauss_seidel", "t", t, "sweeps", normal_inputs(tensors)),
        flops=_flops,
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=lambda arrays: {"now": _swept(abs(floats(arrays)["start"]), t)[1]},
        definition=fixed_extents("gauss_seidel", tensors, lambda extents: _body(extents, dtype)),
        plain_c=plain_c("gauss_seidel", dtype),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int], dtype: str) -> Stmt:
    h, w = extents["h"], extents["w"]
    start, now = te.placeholder("start", (h, w), dtype), te.Func("now", dtype)
    row, column = te.Var("ib"), te.Var("jb")
    now[row, column] = start[row, column]
    if min(h, w) > 2:
        r = te.RDom("r", step=(0, extents["t"]), i=(1, h - 2), j=(1, w - 2))
        total = now[r.i, r.j] + now[r.i - 1, r.j] + now[r.i, r.j - 1]
        now[r.i, r.j] = (total + now[r.i, r.j + 1] + now[r.i + 1, r.j]) / 5.0
    return te.lower("gauss_seidel", [now.realize(h, w)]).body


def _swept(start: NDArray[np.float64], t: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The state after t sweeps, and the error that each element then has, in u."""
    (h, w), state = start.shape, start.copy()
    error = np.zeros_like(state)
    flat, errors = state.reshape(-1), error.reshape(-1)
    for _ in range(t):
        for diagonal in range(2, h + w - 3):
            rows = np.arange(max(1, diagonal - w + 2), min(h - 2, diagonal - 1) + 1)
            at = rows * w + diagonal - rows
            around = (at, at - w, at - 1, at + 1, at + w)
            flat[at] = sum(flat[place] for place in around) / 5
            spread = sum(errors[place] for place in around) / 5
            errors[at] = spread + HIGHER_ORDER * ROUNDINGS * abs(flat[at])
    return state, error


def _flops(workload: Workload) -> int:
    extents = workload.fixed
    return 5 * extents["t"] * max((extents["h"] - 2) * max(extents["w"] - 2, 0), 1)
