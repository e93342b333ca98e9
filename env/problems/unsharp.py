"""Unsharp masking: an image plus what a 5 x 5 binomial blur takes from it, half as much again.

A term passes at most five roundings in each of the two passes of the blur and three where it is
combined: fourteen with that of a constant, of 2.5 |image| plus 1.5 times the blurred |image|.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import bright_inputs, fixed_extents, plain_c
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
    TensorSpec("image", ("h + 4", "w + 4"), "float32", "input"),
    TensorSpec("out", ("h", "w"), "float32", "output"),
)
AMOUNT = 1.5
ROUNDINGS = 14.0


def unsharp(*, h: Extent = 1024, w: Extent = 1024) -> Problem:
    """Out = 2.5 image - 1.5 blur(image), the blur by (1 4 6 4 1) / 16 along x, then along y."""
    return Problem(
        name="unsharp",
        version=1,
        tensors=TENSORS,
        workloads=(workload(h=h, w=w),),
        error_model=ErrorModel(
            unit("float32"), f"{SUMMATION}, of fourteen, times 2.5 |image| + 1.5 blur(|image|)"
        ),
        reference=lambda arrays: {"out": _combine(floats(arrays)["image"], -AMOUNT)},
        inputs=bright_inputs(TENSORS),
        flops=_flops,
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("unsharp", TENSORS, _body),
        plain_c=plain_c("unsharp"),
        library=Library("NumPy", "kernelwright.env.problems.library:unsharp"),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    h, w = extents["h"], extents["w"]
    image = te.placeholder("image", (h + 4, w + 4))
    blurx = te.compute(
        "blurx",
        (h + 4, w),
        lambda yb, xb: _binomial(*(image[yb, xb + d] for d in range(5))),
        [image],
    )
    blury = te.compute(
        "blury", (h, w), lambda ys, xs: _binomial(*(blurx[ys + d, xs] for d in range(5))), [blurx]
    )
    out = te.compute(
        "out",
        (h, w),
        lambda y, x: image[y + 2, x + 2] * (1 + AMOUNT) - blury[y, x] * AMOUNT,
        [image, blury],
    )
    return te.lower("unsharp", [out]).body


def _binomial(a: te.Value, b: te.Value, c: te.Value, d: te.Value, e: te.Value) -> te.Value:
    return (a + e + (b + d) * 4.0 + c * 6.0) * 0.0625


def _combine(image: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """2.5 image + share · blur."""
    h, w = image.shape[0] - 4, image.shape[1] - 4
    blurx, blury = np.zeros((h + 4, w)), np.zeros((h, w))
    for d, weight in enumerate((1, 4, 6, 4, 1)):
        blurx += weight / 16 * image[:, d : d + w]
    for d, weight in enumerate((1, 4, 6, 4, 1)):
        blury += weight / 16 * blurx[d : d + h]
    out: NDArray[np.float64] = (1 + AMOUNT) * image[2:-2, 2:-2] + share * blury
    return out


def _magnitude(arrays: Arrays) -> Arrays:
    return {"out": growth(ROUNDINGS) * _combine(abs(floats(arrays)["image"]), AMOUNT)}


def _flops(workload: Workload) -> int:
    # Seven for every element of a blur (four additions, three products), three to combine.
    h, w = workload.fixed["h"], workload.fixed["w"]
    return 7 * (h + 4) * w + 10 * h * w
