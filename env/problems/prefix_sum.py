"""Inclusive prefix sums, of floats or of whole numbers.

Element i is a sum of i + 1 terms, bounded as one: whatever the order, at most min(n, 4 √n) u Σ|x|
over its terms. Whole numbers are drawn so small that no partial sum leaves int32, so every order
gives the same, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from kernelwright.env.compiler.ir.nodes import Binary, Block, For, Load, Stmt, Store, Var
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.problems.definition import fixed_extents, normal_inputs, plain_c
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

EXACT = ErrorModel(0.0, "exact: whole numbers whose sums int32 holds")


def prefix_sum(*, n: Extent = 1 << 20, dtype: Literal["float32", "int32"] = "float32") -> Problem:
    """y[i] = x[0] + … + x[i]."""
    tensors = (
        TensorSpec("x", ("n",), dtype, "input"),
        TensorSpec("y", ("n",), dtype, "output"),
    )
    is_exact = dtype == "int32"
    rounded = ErrorModel(unit("float32"), f"{SUMMATION}, times the prefix sum of |x|")
    return Problem(
        name="prefix_sum",
        version=1,
        tensors=tensors,
        workloads=(workload(n=n),),
        error_model=EXACT if is_exact else rounded,
        reference=_whole_reference if is_exact else _reference,
        inputs=_whole_inputs if is_exact else normal_inputs(tensors),
        flops=lambda workload: workload.fixed["n"],
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=None if is_exact else _magnitude,
        definition=fixed_extents("prefix_sum", tensors, _body),
        plain_c=plain_c("prefix_sum", dtype),
        library=Library("NumPy", "kernelwright.env.problems.library:prefix_sum"),
        stress=STRESSES,
        exact_on_integers=not is_exact,
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    """The first element is a copy; every other adds to the one before it."""
    i, after = Var("i"), Binary("add", Var("i"), whole(1))
    total = Binary("add", Load("y", (i,)), Load("x", (after,)))
    first = Store("y", (whole(0),), Load("x", (whole(0),)))
    return Block((first, For("i", whole(extents["n"] - 1), Store("y", (after,), total))))


def _reference(arrays: Arrays) -> Arrays:
    return {"y": np.cumsum(floats(arrays)["x"])}


def _magnitude(arrays: Arrays) -> Arrays:
    x = floats(arrays)["x"]
    return {"y": growth(np.arange(1.0, x.size + 1)) * np.cumsum(abs(x))}


def _whole_reference(arrays: Arrays) -> Arrays:
    return {"y": np.cumsum(arrays["x"], dtype=np.int64)}


def _whole_inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
    n = workload.fixed["n"]
    largest = min(1000, np.iinfo(np.int32).max // n)
    return {"x": rng.integers(-largest, largest, n, dtype=np.int32, endpoint=True)}
