"""Who else computes the problems: each function takes input and output arrays by name and writes
the outputs, as one would write it with NumPy or SciPy.

Measured in a process of its own that imports little, so this module imports NumPy alone and SciPy
where it is called. Whole-array expressions reuse the output for what comes in between.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def matmul(inputs: Arrays, outputs: Arrays) -> None:
    """NumPy's BLAS."""
    np.matmul(inputs["A"], inputs["B"], out=outputs["C"])


def softmax(inputs: Arrays, outputs: Arrays) -> None:
    """Five passes over the matrix."""
    x, y = inputs["x"], outputs["y"]
    np.subtract(x, x.max(axis=1, keepdims=True), out=y)
    np.exp(y, out=y)
    np.divide(y, y.sum(axis=1, keepdims=True), out=y)


def row_sum(inputs: Arrays, outputs: Arrays) -> None:
    """NumPy's pairwise summation."""
    np.sum(inputs["x"], axis=1, out=outputs["y"])


def column_sum(inputs: Arrays, outputs: Arrays) -> None:
    """NumPy's sum of rows."""
    np.sum(inputs["x"], axis=0, out=outputs["y"])


def transpose(inputs: Arrays, outputs: Arrays) -> None:
    """A strided copy."""
    np.copyto(outputs["y"], inputs["x"].T)


def prefix_sum(inputs: Arrays, outputs: Arrays) -> None:
    """NumPy's running sum."""
    y = outputs["y"]
    np.cumsum(inputs["x"], dtype=y.dtype, out=y)


def histogram(inputs: Arrays, outputs: Arrays) -> None:
    """NumPy's counts, which are of 64 bits."""
    counts = outputs["counts"]
    counts[...] = np.bincount(inputs["data"], minlength=counts.size)


def blur(inputs: Arrays, outputs: Arrays) -> None:
    """Sums of shifted views, one temporary."""
    image, out = inputs["image"], outputs["out"]
    blurx = image[:, :-2] + image[:, 1:-1]
    blurx += image[:, 2:]
    blurx /= 3
    np.add(blurx[:-2], blurx[1:-1], out=out)
    out += blurx[2:]
    out /= 3


def gelu(inputs: Arrays, outputs: Arrays) -> None:
    """SciPy's erf."""
    erf = import_module("scipy.special").erf
    x, y = inputs["x"], outputs["y"]
    np.multiply(x, np.float32(np.sqrt(0.5)), out=y)
    erf(y, out=y)
    y += 1
    y *= x
    y *= np.float32(0.5)


def layer_norm(inputs: Arrays, outputs: Arrays) -> None:
    """Means over rows, and whole-array arithmetic."""
    x, y = inputs["x"], outputs["y"]
    np.subtract(x, x.mean(axis=1, keepdims=True), out=y)
    variance = np.square(y).mean(axis=1, keepdims=True)
    y /= np.sqrt(variance + np.float32(1e-5))
    y *= inputs["gamma"]
    y += inputs["beta"]


def conv3x3(inputs: Arrays, outputs: Arrays) -> None:
    """Nine shifted views, multiplied and added."""
    image, weights, out = inputs["image"], inputs["weights"], outputs["out"]
    h, w = out.shape
    term = np.empty_like(out)
    out[...] = 0
    for dy in range(3):
        for dx in range(3):
            np.multiply(image[dy : dy + h, dx : dx + w], weights[dy, dx], out=term)
            out += term


def conv2d_nchw(inputs: Arrays, outputs: Arrays) -> None:
    """Nine shifted views, each a matrix product over the channels."""
    image, weights, out = inputs["image"], inputs["weights"], outputs["out"]
    images, filters, h, w = out.shape
    flat = out.reshape(images, filters, h * w)
    flat[...] = 0
    for dy in range(3):
        for dx in range(3):
            view = image[:, :, dy : dy + h, dx : dx + w].reshape(images, -1, h * w)
            flat += np.ascontiguousarray(weights[:, :, dy, dx]) @ view


def conv2d_nhwc(inputs: Arrays, outputs: Arrays) -> None:
    """Nine shifted views, each a matrix product over the channels."""
    image, weights, out = inputs["image"], inputs["weights"], outputs["out"]
    h, w = out.shape[1:3]
    out[...] = 0
    for dy in range(3):
        for dx in range(3):
            out += image[:, dy : dy + h, dx : dx + w] @ weights[dy, dx]


def depthwise(inputs: Arrays, outputs: Arrays) -> None:
    """Nine shifted views, multiplied and added."""
    image, weights, out = inputs["image"], inputs["weights"], outputs["out"]
    h, w = out.shape[1:]
    term = np.empty_like(out)
    out[...] = 0
    for dy in range(3):
        for dx in range(3):
            view = image[:, dy : dy + h, dx : dx + w]
            np.multiply(view, weights[:, dy, dx, None, None], out=term)
            out += term


def box4(inputs: Arrays, outputs: Arrays) -> None:
    """Four times sums of shifted views, along x and then along y."""
    image = inputs["image"]
    for _ in range(4):
        rows = image[:, :-2] + image[:, 1:-1]
        rows += image[:, 2:]
        image = rows[:-2] + rows[1:-1]
        image += rows[2:]
        image /= 9
    outputs["out"][...] = image


def unsharp(inputs: Arrays, outputs: Arrays) -> None:
    """Weighted sums of shifted views."""
    image, out = inputs["image"], outputs["out"]
    blurx = image[:, :-4] + image[:, 4:]
    blurx += 4 * (image[:, 1:-3] + image[:, 3:-1])
    blurx += 6 * image[:, 2:-2]
    blurx /= 16
    np.add(blurx[:-4], blurx[4:], out=out)
    out += 4 * (blurx[1:-3] + blurx[3:-1])
    out += 6 * blurx[2:-2]
    out *= np.float32(-1.5 / 16)
    out += np.float32(2.5) * image[2:-2, 2:-2]


def shrink(f: NDArray[Any], axis: int) -> NDArray[Any]:
    """Every second element of an axis after the blur by (1 3 3 1) / 8, in the array's dtype."""
    size = f.shape[axis]
    middle = 2 * np.arange((size + 1) // 2)
    a, b, c, d = (f.take(np.clip(middle + k, 0, size - 1), axis) for k in (-1, 0, 1, 2))
    out: NDArray[Any] = (a + d + (b + c) * f.dtype.type(3)) * f.dtype.type(0.125)
    return out


def spread(f: NDArray[Any], size: int, axis: int) -> NDArray[Any]:
    """An axis at twice its length, between the elements by (1 3) / 4, in the array's dtype."""
    at, last = np.arange(size), f.shape[axis] - 1
    near = f.take(np.clip(at // 2, 0, last), axis)
    far = f.take(np.clip(at // 2 - 1 + 2 * (at % 2), 0, last), axis)
    out: NDArray[Any] = near * f.dtype.type(0.75) + far * f.dtype.type(0.25)
    return out


def pyramid(inputs: Arrays, outputs: Arrays) -> None:
    """Whole levels at a time, gathered at clamped indices."""
    levels = [inputs["image"]]
    for _ in range(1, 4):
        levels.append(shrink(shrink(levels[-1], 1), 0))
    total = levels[-1]
    for fine, coarse in zip(levels[-2::-1], levels[:0:-1], strict=True):
        h, w = fine.shape
        d = fine - spread(spread(coarse, w, 1), h, 0)
        d *= 1 + 1 / (1 + d * d)
        total = d + spread(spread(total, w, 1), h, 0)
    outputs["out"][...] = total


def spmv(inputs: Arrays, outputs: Arrays) -> None:
    """SciPy's CSR matrix, over the given arrays without a copy."""
    csr_array = import_module("scipy.sparse").csr_array
    parts = inputs["vals"], inputs["crd"], inputs["pos"]
    shape = (outputs["y"].size, inputs["x"].size)
    outputs["y"][...] = csr_array(parts, shape=shape, copy=False) @ inputs["x"]
