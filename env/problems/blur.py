"""A separable 3 x 3 box blur in two stages (Ragan-Kelley et al., Halide, PLDI 2013, section 2):
means of three along x, then of three along y.

Every term passes at most two additions and a division in each stage; a product with a rounded third
has one more rounding, and one sum of nine has eight additions, so ten roundings cover all of them.
The terms are averaged, so the bound is ten u of the blurred |image|.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import bright_inputs, fixed_extents, plain_c
from kernelwright.env.problems.rounding import floats, growth, unit
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
    TensorSpec("image", ("h + 2", "w + 2"), "float32", "input"),
    TensorSpec("out", ("h", "w"), "float32", "output"),
)
ROUNDINGS = 10.0


def blur(*, h: Extent = 1024, w: Extent = 1024) -> Problem:
    """blurx[y, x] = (image[y, x] + image[y, x+1] + image[y, x+2]) / 3, and out likewise along y of
    blurx.
    """
    return Problem(
        name="blur",
        version=1,
        tensors=TENSORS,
        workloads=(workload(h=h, w=w),),
        error_model=ErrorModel(
            unit("float32"),
            "ten roundings a term: Higham 2002, lemma 3.1, times the blur of |image|",
        ),
        reference=lambda arrays: {"out": _blur(floats(arrays)["image"])},
        inputs=bright_inputs(TENSORS),
        flops=_flops,
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("blur", TENSORS, _body),
        plain_c=plain_c("blur"),
        library=Library("NumPy", "kernelwright.env.problems.library:blur"),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    h, w = extents["h"], extents["w"]
    image = te.placeholder("image", (h + 2, w + 2))
    blurx = te.compute(
        "blurx",
        (h + 2, w),
        lambda yb, xb: (image[yb, xb] + image[yb, xb + 1] + image[yb, xb + 2]) / 3.0,
        [image],
    )
    out = te.compute(
        "out",
        (h, w),
        lambda y, x: (blurx[y, x] + blurx[y + 1, x] + blurx[y + 2, x]) / 3.0,
        [blurx],
    )
    return te.lower("blur", [out]).body


def _blur(image: NDArray[np.float64]) -> NDArray[np.float64]:
    blurx = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) / 3
    return (blurx[:-2] + blurx[1:-1] + blurx[2:]) / 3


def _magnitude(arrays: Arrays) -> Arrays:
    return {"out": growth(ROUNDINGS) * _blur(abs(floats(arrays)["image"]))}


def _flops(workload: Workload) -> int:
    # Two additions and a division, for every element of both stages.
    h, w = workload.fixed["h"], workload.fixed["w"]
    return 3 * (h + 2) * w + 3 * h * w
