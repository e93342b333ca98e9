"""Four 3 x 3 box blurs one after the other: the pipeline whose stages need ever larger regions.

Every term passes at most eight additions and a division in each stage, and one rounding more where
it is multiplied by a rounded ninth: forty roundings, of the blurred |image|. They are independent,
so the bound is 4 √40 u of it (Higham and Mary, SISC 41(5), 2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

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
    TensorSpec("image", ("h + 8", "w + 8"), "float32", "input"),
    TensorSpec("out", ("h", "w"), "float32", "output"),
)
STAGES = ("box1", "box2", "box3", "out")
ROUNDINGS = 40.0


def box4(*, h: Extent = 1024, w: Extent = 1024) -> Problem:
    """Four times: box[y, x] = the mean of the nine elements from [y, x] to [y+2, x+2] before."""
    return Problem(
        name="box4",
        version=1,
        tensors=TENSORS,
        workloads=(workload(h=h, w=w),),
        error_model=ErrorModel(
            unit("float32"), f"{SUMMATION}, of forty roundings, times the blur of |image|"
        ),
        reference=lambda arrays: {"out": _boxes(floats(arrays)["image"])},
        inputs=bright_inputs(TENSORS),
        flops=_flops,
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        magnitude=_magnitude,
        definition=fixed_extents("box4", TENSORS, _body),
        plain_c=plain_c("box4"),
        library=Library("NumPy", "kernelwright.env.problems.library:box4"),
        stress=STRESSES,
    )


def _body(extents: Mapping[str, int]) -> Stmt:
    h, w = extents["h"], extents["w"]
    before: te.Placeholder | te.Stage = te.placeholder("image", (h + 8, w + 8))
    for number, name in enumerate(STAGES):
        border = 2 * (len(STAGES) - 1 - number)
        before = _box(name, before, h + border, w + border)
    assert isinstance(before, te.Stage)
    return te.lower("box4", [before]).body


def _box(name: str, before: te.Placeholder | te.Stage, h: int, w: int) -> te.Stage:
    def mean(y: te.Value, x: te.Value) -> te.Value:
        places = list(product(range(3), repeat=2))
        total = before[y, x]
        for dy, dx in places[1:]:
            total = total + before[y + dy, x + dx]
        return total / 9.0

    return te.compute(name, (h, w), lambda y, x: mean(y, x), [before])


def _boxes(image: NDArray[np.float64]) -> NDArray[np.float64]:
    for _ in STAGES:
        h, w = image.shape[0] - 2, image.shape[1] - 2
        nine = [image[dy : dy + h, dx : dx + w] for dy, dx in product(range(3), repeat=2)]
        image = np.sum(nine, axis=0) / 9
    return image


def _magnitude(arrays: Arrays) -> Arrays:
    return {"out": growth(ROUNDINGS) * _boxes(abs(floats(arrays)["image"]))}


def _flops(workload: Workload) -> int:
    # Eight additions and a division, for every element of all stages.
    h, w = workload.fixed["h"], workload.fixed["w"]
    return sum(9 * (h + border) * (w + border) for border in (6, 4, 2, 0))
