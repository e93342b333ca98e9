"""Jacobi relaxation in one dimension: ``t`` times, every point but the two at the ends becomes the
mean of itself and its neighbours. Two buffers; the output holds the state between steps.

The number of steps cannot be read off the arrays, so it is a number, never a range.

A step averages and therefore enlarges no error. It adds three roundings, and where it multiplies by
a third in place of dividing, the third's own, which is the same in every step and so grows with t,
not its root: after t steps the bound is t + min(3t, 4 √(3t)) u of the relaxed |start|.

A step more or less changes a smooth state by the share 1/t or less, and the bound grows with t. So
loud stretches (standard normal) take turns with quiet ones (1e-20 times that): where a loud one
begins to be heard in a quiet one, a step counts for a share of up to 20/t, which the bound of
float32 hides from about 15,000 steps on. Nothing is small enough to underflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler.ir.nodes import (
    Allocate,
    Binary,
    Block,
    Const,
    For,
    Load,
    Stmt,
    Store,
    Tensor,
    Var,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.problems.definition import (
    FLOATS,
    fixed_extents,
    plain_c,
    with_hidden_extent,
)
from kernelwright.env.problems.rounding import SUMMATION, floats, growth, unit
from kernelwright.env.problems.shapes import Count, Extent, compulsory_bytes, workload
from kernelwright.env.types import STRESSES, Arrays, ErrorModel, Problem, TensorSpec, Workload

QUIET = 1e-20
# In roots of t: as far as a loud stretch is heard in a quiet one from either side.
STRETCH = 16


def jacobi1d(
    *,
    n: Extent = 1 << 16,
    t: Count = 64,
    dtype: Literal["float32", "float64"] = "float32",
) -> Problem:
    """From ``start``, t times and all at once: now[i] = (now[i-1] + now[i] + now[i+1]) / 3 for
    0 < i < n - 1.
    """
    tensors = (
        TensorSpec("start", ("n",), dtype, "input"),
        TensorSpec("now", ("n",), dtype, "output"),
    )

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        n = workload.fixed["n"]
        stretch = max(min(math.ceil(STRETCH * math.sqrt(t)), n // 4), 1)
        first = rng.integers(2 * stretch)
        quiet = (np.arange(n) + first) // stretch % 2 == 1
        start = rng.standard_normal(n, FLOATS[dtype])
        start[quiet] *= QUIET
        return {"start": start}

    def reference(arrays: Arrays) -> Arrays:
        return {"now": _relaxed(floats(arrays)["start"], t)}

    def magnitude(arrays: Arrays) -> Arrays:
        return {"now": (t + growth(3.0 * t)) * _relaxed(abs(floats(arrays)["start"]), t)}

    def body(extents: Mapping[str, int]) -> Stmt:
        return _body(extents, dtype)

    return Problem(
        name="jacobi1d",
        version=1,
        tensors=tensors,
        workloads=(workload(n=n, t=t),),
        error_model=ErrorModel(
            unit(dtype),
            f"{SUMMATION}, three a step, and a third's in each, times the relaxed |start|",
        ),
        reference=reference,
        inputs=with_hidden_extent("jacobi1d", "t", t, "steps", inputs),
        flops=lambda workload: 3 * workload.fixed["t"] * max(workload.fixed["n"] - 2, 1),
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=magnitude,
        definition=fixed_extents("jacobi1d", tensors, body),
        plain_c=plain_c("jacobi1d", dtype),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int], dtype: str) -> Stmt:
    n, inner = whole(extents["n"]), whole(max(extents["n"] - 2, 0))

    def after(var: str, offset: int) -> Binary:
        return Binary("add", Var(var), whole(offset))

    left, middle, right = (Load("now", (after("i", offset),)) for offset in range(3))
    total = Binary("add", Binary("add", left, middle), right)
    mean = Binary("div", total, Const(3.0, dtype))
    relax = For("i", inner, Store("next", (after("i", 1),), mean))
    copy = For("j", inner, Store("now", (after("j", 1),), Load("next", (after("j", 1),))))
    begin = For("c", n, Store("now", (Var("c"),), Load("start", (Var("c"),))))
    steps = For("step", whole(extents["t"]), Block((relax, copy)))
    return Block((begin, Allocate(Tensor("next", (n,), dtype), steps)))


def _relaxed(state: NDArray[np.float64], t: int) -> NDArray[np.float64]:
    state = state.copy()
    for _ in range(t):
        state[1:-1] = (state[:-2] + state[1:-1] + state[2:]) / 3
    return state
