"""Convolutions of many channels with 3 x 3 windows, without flipping and without padding: of two
layouts, and depthwise, where every channel has a window of its own.

The error bound is that of an inner product of so many terms as a window and the channels have:
min(n, 4 √n) u of the convolution of |image| with |weights|, in any order (Higham 2002, section 3.1;
Higham and Mary 2019, theorem 3.1). Fast algorithms that transform the image (Winograd) have
another, larger one and do not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.nodes import Stmt
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

NCHW = (
    TensorSpec("image", ("images", "channels", "h + 2", "w + 2"), "float32", "input"),
    TensorSpec("weights", ("filters", "channels", 3, 3), "float32", "input"),
    TensorSpec("out", ("images", "filters", "h", "w"), "float32", "output"),
)
NHWC = (
    TensorSpec("image", ("images", "h + 2", "w + 2", "channels"), "float32", "input"),
    TensorSpec("weights", (3, 3, "channels", "filters"), "float32", "input"),
    TensorSpec("out", ("images", "h", "w", "filters"), "float32", "output"),
)
DEPTHWISE = (
    TensorSpec("image", ("channels", "h + 2", "w + 2"), "float32", "input"),
    TensorSpec("weights", ("channels", 3, 3), "float32", "input"),
    TensorSpec("out", ("channels", "h", "w"), "float32", "output"),
)
Convolve = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def conv2d_nchw(
    *,
    images: Extent = 1,
    channels: Extent = 32,
    filters: Extent = 32,
    h: Extent = 56,
    w: Extent = 56,
) -> Problem:
    """out[b, f, y, x] = Σ_c Σ_dy Σ_dx image[b, c, y + dy, x + dx] weights[f, c, dy, dx]."""
    extents = {"images": images, "channels": channels, "filters": filters, "h": h, "w": w}
    return _problem("conv2d_nchw", NCHW, extents, _nchw_body, _nchw)


def conv2d_nhwc(
    *,
    images: Extent = 1,
    channels: Extent = 32,
    filters: Extent = 32,
    h: Extent = 56,
    w: Extent = 56,
) -> Problem:
    """out[b, y, x, f] = Σ_dy Σ_dx Σ_c image[b, y + dy, x + dx, c] weights[dy, dx, c, f]."""
    extents = {"images": images, "channels": channels, "filters": filters, "h": h, "w": w}
    return _problem("conv2d_nhwc", NHWC, extents, _nhwc_body, _nhwc)


def depthwise(*, channels: Extent = 64, h: Extent = 112, w: Extent = 112) -> Problem:
    """out[c, y, x] = Σ_dy Σ_dx image[c, y + dy, x + dx] weights[c, dy, dx]."""
    extents = {"channels": channels, "h": h, "w": w}
    return _problem("depthwise", DEPTHWISE, extents, _depthwise_body, _depthwise)


def _problem(
    name: str,
    tensors: tuple[TensorSpec, ...],
    extents: Mapping[str, Extent],
    body: Callable[[Mapping[str, int]], Stmt],
    convolve: Convolve,
) -> Problem:
    def reference(arrays: Arrays) -> Arrays:
        given = floats(arrays)
        return {"out": convolve(given["image"], given["weights"])}

    def magnitude(arrays: Arrays) -> Arrays:
        given = floats(arrays)
        channels = given["weights"].size // 9 // _filters(name, given["weights"])
        terms = growth(9.0 * channels)
        return {"out": terms * convolve(abs(given["image"]), abs(given["weights"]))}

    return Problem(
        name=name,
        version=1,
        tensors=tensors,
        workloads=(workload(**extents),),
        error_model=ErrorModel(
            unit("float32"), f"{SUMMATION} and 3.1, times the convolution of |image| with |weights|"
        ),
        reference=reference,
        inputs=normal_inputs(tensors),
        flops=_flops,
        moved_bytes=compulsory_bytes(tensors),
        spaces=("schedule", "source", "template"),
        magnitude=magnitude,
        definition=fixed_extents(name, tensors, body),
        plain_c=plain_c(name),
        library=Library("NumPy", f"kernelwright.env.problems.library:{name}"),
        stress=STRESSES,
        exact_on_integers=True,
    )


def _filters(name: str, weights: NDArray[np.float64]) -> int:
    """How many windows there are: of the other axes each term of a sum has another element."""
    return int(weights.shape[-1 if name == "conv2d_nhwc" else 0])


def _flops(workload: Workload) -> int:
    extents = workload.fixed
    count = 18 * extents["h"] * extents["w"] * extents["channels"]
    return count * extents.get("images", 1) * extents.get("filters", 1)


def _nchw_body(extents: Mapping[str, int]) -> Stmt:
    images, channels, filters, h, w = extents.values()
    image = te.placeholder("image", (images, channels, h + 2, w + 2))
    weights = te.placeholder("weights", (filters, channels, 3, 3))
    c, dy, dx = te.reduce_axis("c", channels), te.reduce_axis("dy", 3), te.reduce_axis("dx", 3)
    out = te.compute(
        "out",
        (images, filters, h, w),
        lambda b, f, y, x: te.reduce_sum(
            image[b, c.value, y + dy.value, x + dx.value] * weights[f, c.value, dy.value, dx.value],
            (c, dy, dx),
        ),
        [image, weights],
    )
    return te.lower("conv2d_nchw", [out]).body


def _nhwc_body(extents: Mapping[str, int]) -> Stmt:
    images, channels, filters, h, w = extents.values()
    image = te.placeholder("image", (images, h + 2, w + 2, channels))
    weights = te.placeholder("weights", (3, 3, channels, filters))
    dy, dx, c = te.reduce_axis("dy", 3), te.reduce_axis("dx", 3), te.reduce_axis("c", channels)
    out = te.compute(
        "out",
        (images, h, w, filters),
        lambda b, y, x, f: te.reduce_sum(
            image[b, y + dy.value, x + dx.value, c.value] * weights[dy.value, dx.value, c.value, f],
            (dy, dx, c),
        ),
        [image, weights],
    )
    return te.lower("conv2d_nhwc", [out]).body


def _depthwise_body(extents: Mapping[str, int]) -> Stmt:
    channels, h, w = extents.values()
    image = te.placeholder("image", (channels, h + 2, w + 2))
    weights = te.placeholder("weights", (channels, 3, 3))
    dy, dx = te.reduce_axis("dy", 3), te.reduce_axis("dx", 3)
    out = te.compute(
        "out",
        (channels, h, w),
        lambda c, y, x: te.reduce_sum(
            image[c, y + dy.value, x + dx.value] * weights[c, dy.value, dx.value], (dy, dx)
        ),
        [image, weights],
    )
    return te.lower("depthwise", [out]).body


def _nchw(image: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    images, _, h, w = (size - 2 * (axis > 1) for axis, size in enumerate(image.shape))
    out = np.zeros((images, weights.shape[0], h, w))
    for dy, dx in product(range(3), repeat=2):
        view = image[:, :, dy : dy + h, dx : dx + w]
        out += np.einsum("bcyx,fc->bfyx", view, weights[:, :, dy, dx], optimize=True)
    return out


def _nhwc(image: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    images, h, w = image.shape[0], image.shape[1] - 2, image.shape[2] - 2
    out = np.zeros((images, h, w, weights.shape[3]))
    for dy, dx in product(range(3), repeat=2):
        out += image[:, dy : dy + h, dx : dx + w] @ weights[dy, dx]
    return out


def _depthwise(image: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    channels, h, w = image.shape[0], image.shape[1] - 2, image.shape[2] - 2
    out = np.zeros((channels, h, w))
    for dy, dx in product(range(3), repeat=2):
        out += image[:, dy : dy + h, dx : dx + w] * weights[:, dy, dx, None, None]
    return out
