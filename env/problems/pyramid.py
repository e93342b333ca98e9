"""Details of an image raised by a Laplacian pyramid of four levels and 24 stages, in the manner of
local Laplacian filters (Paris, Hasinoff and Kautz, SIGGRAPH 2011), with one remapping for all
pixels: the deep pipeline of the schedule languages (Ragan-Kelley et al., Halide, PLDI 2013).

Level by level the image is blurred by (1 3 3 1) / 8 along each axis and every second element kept;
what the next level, spread out again by (1 3) / 4, leaves of a level is its detail d, which becomes
d (1 + 1 / (1 + d²)); the levels are then added up again from the coarsest. Edges are repeated.

The error bound follows every stage: a pass of the blur has five roundings, one of the spreading
three, a difference or a sum one, and the remapping, whose slope is between -1/8 and 2, eight of its
result (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002, section 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
from kernelwright.env.problems.definition import bright_inputs, fixed_extents, plain_c
from kernelwright.env.problems.library import shrink, spread
from kernelwright.env.problems.rounding import HIGHER_ORDER, floats, unit
from kernelwright.env.problems.shapes import Extent, compulsory_bytes, workload
from kernelwright.env.types import (
    STRESSES,
    ErrorModel,
    Library,
    Problem,
    TensorSpec,
    Workload,
)

TENSORS = (
    TensorSpec("image", ("h", "w"), "float32", "input"),
    TensorSpec("out", ("h", "w"), "float32", "output"),
)
LEVELS = 4
SLOPE, BLUR, SPREAD, REMAP = 2.0, 5.0, 3.0, 8.0
Array = NDArray[np.float64]
Read = te.Placeholder | te.Stage


def pyramid(*, h: Extent = 1024, w: Extent = 1024) -> Problem:
    """The image with its details of four scales raised."""
    return Problem(
        name="pyramid",
        version=1,
        tensors=TENSORS,
        workloads=(workload(h=h, w=w),),
        error_model=ErrorModel(
            unit("float32"), "the roundings of every stage, carried on: Higham 2002, section 3.1"
        ),
        reference=lambda arrays: {"out": _raised(floats(arrays)["image"])[0]},
        # On both sides of where the remapping bends.
        inputs=bright_inputs(TENSORS, 4),
        flops=_flops,
        moved_bytes=compulsory_bytes(TENSORS),
        spaces=("schedule", "source", "template"),
        magnitude=lambda arrays: {"out": HIGHER_ORDER * _raised(floats(arrays)["image"])[1]},
        definition=fixed_extents("pyramid", TENSORS, _body),
        plain_c=plain_c("pyramid"),
        library=Library("NumPy", "kernelwright.env.problems.library:pyramid"),
        stress=STRESSES,
    )


def _sizes(size: int) -> list[int]:
    """The size of every level: half of the one before, rounded up."""
    sizes = [size]
    for _ in range(LEVELS - 1):
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


def _body(extents: Mapping[str, int]) -> Stmt:
    heights, widths = _sizes(extents["h"]), _sizes(extents["w"])
    levels: list[Read] = [te.placeholder("image", (heights[0], widths[0]))]
    for n in range(1, LEVELS):
        narrow = _shrunk_x(f"narrow{n}", levels[-1], heights[n - 1], widths[n - 1], widths[n])
        levels.append(_shrunk_y(f"level{n}", narrow, heights[n - 1], heights[n], widths[n]))
    details: list[te.Stage] = []
    for n in range(LEVELS - 1):
        h, w = heights[n], widths[n]
        spread = _spread(f"coarse{n}", levels[n + 1], heights[n + 1], widths[n + 1], h, w)
        details.append(_remapped(f"detail{n}", levels[n], spread, h, w))
    sum_: Read = levels[-1]
    for n in reversed(range(LEVELS - 1)):
        h, w = heights[n], widths[n]
        wide = _spread(f"sum{n}", sum_, heights[n + 1], widths[n + 1], h, w)
        sum_ = _added("out" if n == 0 else f"raised{n}", details[n], wide, h, w)
    assert isinstance(sum_, te.Stage)
    return te.lower("pyramid", [sum_]).body


def _inside(index: te.Value, size: int) -> te.Value:
    """An index kept within an axis: edges are repeated."""
    return te.minimum(te.maximum(index, 0), size - 1)


def _binomial(parts: list[te.Value]) -> te.Value:
    return (parts[0] + parts[3] + (parts[1] + parts[2]) * 3.0) * 0.125


def _shrunk_x(name: str, f: Read, h: int, w: int, half: int) -> te.Stage:
    return te.compute(
        name,
        (h, half),
        lambda y, x: _binomial([f[y, _inside(2 * x + d, w)] for d in (-1, 0, 1, 2)]),
        [f],
    )


def _shrunk_y(name: str, f: Read, h: int, half: int, w: int) -> te.Stage:
    return te.compute(
        name,
        (half, w),
        lambda y, x: _binomial([f[_inside(2 * y + d, h), x] for d in (-1, 0, 1, 2)]),
        [f],
    )


def _other(index: te.Value, size: int) -> te.Value:
    """The farther of the two elements between which a place of the next finer level lies."""
    return _inside(index // 2 - 1 + 2 * (index % 2), size)


def _spread(name: str, f: Read, below: int, left: int, h: int, w: int) -> te.Stage:
    """A level at twice its size: along x, then along y."""
    wide = te.compute(
        f"{name}x",
        (below, w),
        lambda y, x: f[y, _inside(x // 2, left)] * 0.75 + f[y, _other(x, left)] * 0.25,
        [f],
    )
    return te.compute(
        name,
        (h, w),
        lambda y, x: wide[_inside(y // 2, below), x] * 0.75 + wide[_other(y, below), x] * 0.25,
        [wide],
    )


def _remapped(name: str, level: Read, coarse: te.Stage, h: int, w: int) -> te.Stage:
    def remap(y: te.Value, x: te.Value) -> te.Value:
        d = level[y, x] - coarse[y, x]
        return d * (1.0 + 1.0 / (1.0 + d * d))

    return te.compute(name, (h, w), lambda y, x: remap(y, x), [level, coarse])


def _added(name: str, detail: te.Stage, coarse: te.Stage, h: int, w: int) -> te.Stage:
    return te.compute(name, (h, w), lambda y, x: detail[y, x] + coarse[y, x], [detail, coarse])


def _raised(image: Array) -> tuple[Array, Array]:
    """The result, and how far each element may be off, in u."""
    levels = [(image, np.zeros_like(image))]
    for _ in range(1, LEVELS):
        level = levels[-1]
        for axis in (1, 0):
            blurred = shrink(abs(level[0]), axis)
            level = shrink(level[0], axis), shrink(level[1], axis) + BLUR * blurred
        levels.append(level)
    total = levels[-1]
    for n in reversed(range(LEVELS - 1)):
        fine = levels[n]
        coarse, wide = (
            _spread_both(levels[n + 1], fine[0].shape),
            _spread_both(total, fine[0].shape),
        )
        d = fine[0] - coarse[0]
        remapped = d * (1 + 1 / (1 + d * d))
        error = SLOPE * (fine[1] + coarse[1] + abs(d)) + REMAP * abs(remapped)
        value = remapped + wide[0]
        total = value, error + wide[1] + abs(value)
    return total


def _spread_both(level: tuple[Array, Array], shape: tuple[int, ...]) -> tuple[Array, Array]:
    value, error = level
    for axis in (1, 0):
        error = spread(error, shape[axis], axis) + SPREAD * spread(abs(value), shape[axis], axis)
        value = spread(value, shape[axis], axis)
    return value, error


def _flops(workload: Workload) -> int:
    # Six a blurred element, three a spread one, six a remapped and one an added one.
    heights, widths = _sizes(workload.fixed["h"]), _sizes(workload.fixed["w"])
    count = 0
    for n in range(LEVELS - 1):
        size = heights[n] * widths[n]
        count += 6 * (heights[n] * widths[n + 1] + heights[n + 1] * widths[n + 1])
        count += 2 * 3 * (heights[n + 1] * widths[n] + size) + 7 * size
    return count
