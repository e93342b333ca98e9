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

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    Expr,
    For,
    Load,
    Stmt,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.problems.definition import FLOATS, fixed_extents, plain_c
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

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        extents = workload.fixed
        if extents["t"] != t:
            raise ValueError(f"jacobi2d: expected {t} steps, found {extents['t']}")
        return {"start": rng.standard_normal((extents["h"], extents["w"]), FLOATS[dtype])}

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
        inputs=inputs,
        flops=_flops,
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=magnitude,
        definition=fixed_extents("jacobi2d", tensors, lambda extents: _body(extents, dtype)),
        plain_c=plain_c("jacobi2d", dtype),
        stress=STRESSES,
    )


def star(tensor: str, rows: str, columns: str, dtype: str) -> tuple[tuple[Expr, ...], Expr]:
    """A place one inside the border of two loops, and the mean of it and its four neighbours."""

    def at(down: int, right: int) -> tuple[Expr, ...]:
        places = ((rows, 1 + down), (columns, 1 + right))
        return tuple(Binary("add", Var(v), whole(d)) if d else Var(v) for v, d in places)

    total: Expr = Load(tensor, at(0, 0))
    for down, right in ((-1, 0), (0, -1), (0, 1), (1, 0)):
        total = Binary("add", total, Load(tensor, at(down, right)))
    return at(0, 0), Binary("div", total, Const(5.0, dtype))


def over(rows: tuple[str, int], columns: tuple[str, int], body: Stmt) -> Stmt:
    """Two loops with a body."""
    return For(rows[0], whole(max(rows[1], 0)), For(columns[0], whole(max(columns[1], 0)), body))


def _body(extents: Mapping[str, int], dtype: str) -> Stmt:
    h, w = extents["h"], extents["w"]
    place, mean = star("now", "i", "j", dtype)
    relax = over(("i", h - 2), ("j", w - 2), Store("next", place, mean))
    inside, _ = star("next", "ic", "jc", dtype)
    copy = over(("ic", h - 2), ("jc", w - 2), Store("now", inside, Load("next", inside)))
    first = (Var("ib"), Var("jb"))
    begin = over(("ib", h), ("jb", w), Store("now", first, Load("start", first)))
    steps = For("step", whole(extents["t"]), Block((relax, copy)))
    return Block((begin, Allocate(Tensor("next", (whole(h), whole(w)), dtype), steps)))


def _relaxed(state: NDArray[np.float64], t: int) -> NDArray[np.float64]:
    state = state.copy()
    for _ in range(t):
        total = state[1:-1, 1:-1] + state[:-2, 1:-1] + state[2:, 1:-1]
        state[1:-1, 1:-1] = (total + state[1:-1, :-2] + state[1:-1, 2:]) / 5
    return state


def _flops(workload: Workload) -> int:
    extents = workload.fixed
    return 5 * extents["t"] * max((extents["h"] - 2) * max(extents["w"] - 2, 0), 1)
