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


def spmv(inputs: Arrays, outputs: Arrays) -> None:
    """SciPy's CSR matrix, over the given arrays without a copy."""
    csr_array = import_module("scipy.sparse").csr_array
    parts = inputs["vals"], inputs["crd"], inputs["pos"]
    shape = (outputs["y"].size, inputs["x"].size)
    outputs["y"][...] = csr_array(parts, shape=shape, copy=False) @ inputs["x"]
