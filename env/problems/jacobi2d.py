"""Jacobi relaxation in two dimensions: ``t`` times, every point inside becomes the mean of itself
and its four neighbours. Two buffers; the output holds the state between steps.

The number of steps cannot be read off the arrays, so it is a number, never a range. As in
`jacobi1d`, averaging enlarges no error: a step adds five roundings, and where it multiplies by a
fifth in place of dividing, that constant's own, the same in every step. After t steps the bound is
t + min(5t, 4 √(5t)) u of the relaxed |start|.
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
from kernelwright.env.problems.rounding import SUMMATION, floats, growth, unit
from kernelwright.env.problems.shapes import Count, Extent, compulsory_bytes, workload
from kernelwright.env.types import STRESSES, Arrays, ErrorModel, Problem, TensorSpec, Workload


def jacobi2d(
    *,
    h: Extent = 512,
    w: Extent = 512,
    t: Count = 16,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """From ``start``, t times and all at once: now[i, j] = (now[i, j] + now[i-1, j] + now[i, j-1] +
    now[i, j+1] + now[i+1, j]) / 5 inside the border.
    """
    tensors = (
        TensorSpec("start", ("h", "w"), dtype, "input"),
        TensorSpec("now", ("h", "w"), dtype, "output"),
    )

    def magnitude(arrays: Arrays) -> Arrays:
        return {"now": (t + growth(5.0 * t)) * _relaxed(abs(floats(arrays)["start"]), t)}

    return Problem(
        name="jacobi2d",
        version=1,
        tensors=tensors,
        workloads=(workload(h=h, w=w, t=t),),
        error_model=ErrorModel(
            unit(dtype),
            f"{SUMMATION}, five a step, and a fifth's in each, times the relaxed |start|",
        ),
        reference=lambda arrays: {"now": _relaxed(floats(arrays)["start"], t)},
        inputs=with_hidden_extent("jacobi2d", "t", t, "steps", normal_inputs(tensors)),
        flops=_flops,
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=magnitude,
        definition=fixed_extents("jacobi2d", tensors, lambda extents: _body(extents, dtype)),
        plain_c=plain_c("jacobi2d", dtype),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int], dtype: str) -> Stmt:
    """Two states in turn: a step reads the one that its number's remainder by two says."""
    h, w, t = extents["h"], extents["w"], extents["t"]
    start, state = te.placeholder("start", (h, w), dtype), te.Func("state", dtype)
    p, row, column = te.Var("p"), te.Var("ib"), te.Var("jb")
    state[p, row, column] = start[row, column]
    if min(h, w) > 2:
        r = te.RDom("r", step=(0, t), i=(1, h - 2), j=(1, w - 2))
        old, new = r.step % 2, (r.step + 1) % 2
        total = state[old, r.i, r.j] + state[old, r.i - 1, r.j] + state[old, r.i, r.j - 1]
        total = total + state[old, r.i, r.j + 1] + state[old, r.i + 1, r.j]
        state[new, r.i, r.j] = total / 5.0
    now, y, x = te.Func("now", dtype), te.Var("y"), te.Var("x")
    now[y, x] = state[t % 2, y, x]
    return te.lower("jacobi2d", [now.realize(h, w)]).body


def _relaxed(state: NDArray[np.float64], t: int) -> NDArray[np.float64]:
    state = state.copy()
    for _ in range(t):
        total = state[1:-1, 1:-1] + state[:-2, 1:-1] + state[2:, 1:-1]
        state[1:-1, 1:-1] = (total + state[1:-1, :-2] + state[1:-1, 2:]) / 5
    return state


def _flops(workload: Workload) -> int:
    extents = workload.fixed
    return 5 * extents["t"] * max((extents["h"] - 2) * max(extents["w"] - 2, 0), 1)
