"""Inputs that tell right from wrong: what a problem draws itself, whole numbers, and what is made
of them to find a fault that ordinary numbers hide.

They are the corpus's own, so that what it says of a kernel does not stand on the inputs of the
judge that is audited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.problems.integers import integer_inputs
from kernelwright.env.types import Arrays, ExtentRange, Problem, Workload

Array = NDArray[Any]
Change = Callable[[Array, np.random.Generator], Array]

ORDINARY = 3
FAR = 1000


@dataclass(frozen=True, slots=True)
class Draw:
    """Inputs with a name; ``is_exact`` where every order of summation gives the same result."""

    name: str
    arrays: Arrays
    is_exact: bool = False


def draws(problem: Problem, workload: Workload, rng: np.random.Generator) -> tuple[Draw, ...]:
    """Inputs of a workload of fixed extents, ordinary ones first; the same number each time."""
    out = [Draw(f"ordinary {i}", problem.inputs(workload, rng)) for i in range(ORDINARY)]
    like = out[0].arrays
    if problem.exact_on_integers:
        out += [Draw(f"whole {i}", integer_inputs(problem, like, rng), True) for i in range(2)]
    floating = [name for name, array in like.items() if array.dtype.kind == "f"]
    changes = dict(_FLOATING if floating else _WHOLE)
    if problem.exact_on_integers and len(floating) == 1:
        # Sums of subnormal numbers are exact; products of them are not, nor what is divided.
        changes["subnormal"] = _subnormal
    for name, change in changes.items():
        changed = {
            key: change(array, rng) if key in floating or not floating else array
            for key, array in like.items()
        }
        out.append(Draw(name, problem.agreed(changed)))
    return tuple(out)


def instances(problem: Problem, rng: np.random.Generator) -> tuple[Workload, ...]:
    """The workloads of fixed extents that stand for a problem's: the least, the greatest and an odd
    one between, where it has ranges.
    """
    out: list[Workload] = []
    for workload in problem.workloads:
        ranged = any(isinstance(extent, ExtentRange) for _, extent in workload.extents)
        for kind in range(3 if ranged else 1):
            extents = [(name, _extent(extent, kind, rng)) for name, extent in workload.extents]
            out.append(Workload(tuple(extents)))
    return tuple(out)


def _extent(extent: int | ExtentRange, kind: int, rng: np.random.Generator) -> int:
    if not isinstance(extent, ExtentRange):
        return extent
    between = min(int(rng.integers(extent.low, extent.high + 1)) | 1, extent.high)
    return (extent.low, extent.high, between)[kind]


def _scaled(factor: float) -> Change:
    return lambda array, rng: array * array.dtype.type(factor)


def _ramp(array: Array, rng: np.random.Generator) -> Array:
    del rng
    return np.linspace(-1, 1, array.size, dtype=array.dtype).reshape(array.shape)


def _one_hot(array: Array, rng: np.random.Generator) -> Array:
    """One element of each row is 1, all others are 0."""
    out = np.zeros_like(array)
    rows = out.reshape(-1, array.shape[-1])
    rows[np.arange(len(rows)), rng.integers(array.shape[-1], size=len(rows))] = 1
    return out


def _peaked(array: Array, rng: np.random.Generator) -> Array:
    """In each row one element is far above all others: the first, the last, or any."""
    out = array.copy()
    rows = out.reshape(-1, array.shape[-1])
    number, last = np.arange(len(rows)), array.shape[-1] - 1
    anywhere = rng.integers(last + 1, size=len(rows))
    rows[number, np.choose(number % 3, [0, last, anywhere])] += FAR
    return out


def _cancelling(array: Array, rng: np.random.Generator) -> Array:
    """Neighbours that nearly cancel."""
    del rng
    signs = np.where(np.arange(array.size) % 2, -FAR, FAR).reshape(array.shape)
    out: Array = (signs + array).astype(array.dtype)
    return out


def _constant(array: Array, rng: np.random.Generator) -> Array:
    """Rows of one number each, of few digits: sums of it hardly round. Equal roundings, all to the
    same side, would exceed a bound that takes them for independent.
    """
    shape = (*array.shape[:-1], 1)
    numbers = rng.integers(4 * FAR, 8 * FAR, shape) / 8
    return np.broadcast_to(numbers, array.shape).astype(array.dtype)


def _with_zeros(array: Array, rng: np.random.Generator) -> Array:
    """Every fourth element or so is a zero, of either sign."""
    zeros = np.copysign(array.dtype.type(0), array)
    return np.where(rng.random(array.shape) < 0.25, zeros, array)


def _permuted(array: Array, rng: np.random.Generator) -> Array:
    return rng.permutation(array.ravel()).reshape(array.shape)


def _subnormal(array: Array, rng: np.random.Generator) -> Array:
    """Numbers below the normal ones, so far that none of their sums is normal."""
    scale = np.finfo(array.dtype).tiny / (8 * max(1, array.size))
    out: Array = np.clip(rng.standard_normal(array.shape), -4, 4) * scale
    return out.astype(array.dtype)


def _sorted(array: Array, rng: np.random.Generator) -> Array:
    del rng
    return np.sort(array.ravel()).reshape(array.shape)


def _descending(array: Array, rng: np.random.Generator) -> Array:
    del rng
    return np.sort(array.ravel())[::-1].reshape(array.shape).copy()


def _greatest(array: Array, rng: np.random.Generator) -> Array:
    del rng
    return np.full_like(array, array.max())


_FLOATING: dict[str, Change] = {
    "small": _scaled(1e-3),
    "large": _scaled(64),
    "ramp": _ramp,
    "one hot": _one_hot,
    "peaked": _peaked,
    "cancelling": _cancelling,
    "constant": _constant,
    "zeros": _with_zeros,
    "permuted": _permuted,
}
_WHOLE: dict[str, Change] = {
    "sorted": _sorted,
    "descending": _descending,
    "greatest": _greatest,
    "permuted": _permuted,
}
