"""A histogram: how often each whole number below ``bins`` stands in the data. Counts are exact.

The number of bins cannot be read off the data, so it is a number, never a range. Small values are
more frequent (the value is ``bins`` times a squared uniform number): neighbours often fall into one
bin, and no two counts are alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelwright.env.compiler.ir.nodes import Block, Cast, Const, For, Load, Stmt, Store, Var
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.problems.definition import fixed_extents, plain_c, with_hidden_extent
from kernelwright.env.problems.shapes import Count, Extent, compulsory_bytes, workload
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
    TensorSpec("data", ("n",), "int32", "input"),
    TensorSpec("counts", ("bins",), "int32", "output"),
)


def histogram(*, n: Extent = 1 << 20, bins: Count = 256) -> Problem:
    """counts[b] = how many i have data[i] = b, for 0 ≤ b < bins."""

    def reference(arrays: Arrays) -> Arrays:
        return {"counts": np.bincount(arrays["data"], minlength=bins)}

    def inputs(workload: Workload, rng: np.random.Generator) -> Arrays:
        extents = workload.fixed
        return {"data": (rng.random(extents["n"]) ** 2 * bins).astype(np.int32)}

    return Problem(
        name="histogram",
        version=1,
        tensors=TENSORS,
        workloads=(workload(n=n, bins=bins),),
        error_model=ErrorModel(0.0, "exact: counts"),
        reference=reference,
        inputs=with_hidden_extent("histogram", "bins", bins, "bins", inputs),
        flops=lambda workload: workload.fixed["n"],
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        definition=fixed_extents("histogram", TENSORS, _body),
        plain_c=plain_c("histogram"),
        library=Library("NumPy", "kernelwright.env.problems.library:histogram"),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    bucket = Cast("int64", Load("data", (Var("i"),)))
    one, zero = Const(1, "int32"), Const(0, "int32")
    return Block(
        (
            For("b", whole(extents["bins"]), Store("counts", (Var("b"),), zero)),
            For("i", whole(extents["n"]), Store("counts", (bucket,), one, "add")),
        )
    )
