"""A 3 x 3 convolution of one channel, without flipping and without padding: every element of the
result is an inner product of nine terms.

The error bound is that of an inner product: nine u of the convolution of |image| with |weights|, in
any order (Higham 2002, section 3.1). Fast algorithms that transform the image (Winograd) have
another, larger one and do not pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import fixed_extents, normal_inputs, plain_c
from kernelwright.env.problems.rounding import floats, growth, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, workload
from kernelwright.env.problems.tiles import register_tile
from kernelwright.env.types import (
    STRESSES,
    Arrays,
    Directive,
    ErrorModel,
    Knob,
    Library,
    Problem,
    Scalar,
    TensorSpec,
)

TENSORS = (
    TensorSpec("image", ("h + 2", "w + 2"), "float32", "input"),
    TensorSpec("weights", (3, 3), "float32", "input"),
    TensorSpec("out", ("h", "w"), "float32", "output"),
)


def conv3x3(*, h: Extent = 1024, w: Extent = 1024) -> Problem:
    """out[y, x] = Σ_dy Σ_dx image[y + dy, x + dx] weights[dy, dx]."""
    return Problem(
        name="conv3x3",
        version=1,
        tensors=TENSORS,
        workloads=(workload(h=h, w=w),),
        error_model=ErrorModel(
            unit("float32"),
            "an inner product of nine terms: Higham 2002, section 3.1, times the convolution of "
            "|image| with |weights|",
        ),
        reference=_reference,
        inputs=normal_inputs(TENSORS),
        flops=lambda workload: 18 * workload.fixed["h"] * workload.fixed["w"],
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template", "knobs"),
        knobs=(
            Knob("mr", (1, 2, 4, 8), "rows of the result in registers"),
            Knob("nv", (1, 2, 4), "vectors in a row of the register tile"),
            Knob("lanes", (4, 8, 16), "elements of a vector"),
            Knob("taps", ("loop", "unroll"), "whether the nine taps are written out"),
        ),
        unscheduled=(("mr", 1), ("nv", 1), ("lanes", 4), ("taps", "loop")),
        magnitude=_magnitude,
        definition=fixed_extents("conv3x3", TENSORS, _body),
        plain_c=plain_c("conv3x3"),
        library=Library("NumPy", "kernelwright.env.problems.library:conv3x3"),
        stress=STRESSES,
        sketch=_sketch,
        exact_on_integers=True,
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    h, w = extents["h"], extents["w"]
    image, weights = te.placeholder("image", (h + 2, w + 2)), te.placeholder("weights", (3, 3))
    dy, dx = te.reduce_axis("dy", 3), te.reduce_axis("dx", 3)
    out = te.compute(
        "out",
        (h, w),
        lambda y, x: te.reduce_sum(
            image[y + dy.value, x + dx.value] * weights[dy.value, dx.value], (dy, dx)
        ),
        [image, weights],
    )
    return te.lower("conv3x3", [out]).body


def _convolve(image: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    h, w = image.shape[0] - 2, image.shape[1] - 2
    out = np.zeros((h, w))
    for dy, dx in product(range(3), repeat=2):
        out += image[dy : dy + h, dx : dx + w] * weights[dy, dx]
    return out


def _reference(arrays: Arrays) -> Arrays:
    given = floats(arrays)
    return {"out": _convolve(given["image"], given["weights"])}


def _magnitude(arrays: Arrays) -> Arrays:
    given = floats(arrays)
    return {"out": growth(9.0) * _convolve(abs(given["image"]), abs(given["weights"]))}


def _sketch(knobs: Mapping[str, Scalar]) -> tuple[Directive, ...]:
    """A register tile that all nine taps add to, so that the result is stored once."""
    tile = register_tile("y", "x", ("yo", "xo", "dy", "dx"), knobs)
    if knobs["taps"] == "loop":
        return tile
    return (*tile, Directive("unroll", "dy"), Directive("unroll", "dx"))
