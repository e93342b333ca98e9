"""Whole numbers as inputs: they find what random numbers do not.

A rounding error bound holds for every order of a sum, so it grows with the sum's length and ends up
above what a few lost terms weigh. Whole numbers have no rounding errors: as long as every partial
sum is one that the dtype holds, every order gives the same, and a result is right or it is not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import ProblemError
from kernelwright.env.types import Arrays, Problem

LARGEST = 4
# What half precision (11 digits) or, for float64, float32 (24 digits) rounds: odd numbers just
# above the power of two that it counts to.
_NARROWER = {"float32": 11, "float64": 24}
_SPREAD = 16
_ATTEMPTS = 32


def integer_inputs(problem: Problem, arrays: Arrays, rng: np.random.Generator) -> Arrays:
    """Inputs like the given ones, with whole numbers in place of the elements of floating arrays.

    They are from -4 to 4, none of them 0, but for a few that the next lower precision cannot hold;
    smaller, and then zeros among them, where sums are long. No sum of any of the terms of an output
    leaves what the output counts to, as the results of the absolute values say: outputs are sums of
    products of inputs.

    Args:
        problem: one with ``exact_on_integers``.
        arrays: inputs that the problem drew; their whole numbers are kept.
        rng: where the numbers come from.

    Raises:
        ProblemError: if the problem is not exact on integers, or the results of whole numbers are
            not whole or are too large.
    """
    if not problem.exact_on_integers:
        raise ProblemError(f"{problem.name}: expected a problem that is exact on integers")
    floating = {spec.dtype for spec in problem.tensors if np.dtype(spec.dtype).kind == "f"}
    limit = min((2.0 ** (np.finfo(dtype).nmant + 1) for dtype in floating), default=np.inf)
    for attempt in range(_ATTEMPTS):
        drawn = problem.agreed(
            {
                name: _whole(array, attempt, rng) if array.dtype.kind == "f" else array
                for name, array in arrays.items()
            }
        )
        results = problem.reference({name: abs(array) for name, array in drawn.items()})
        for name, result in results.items():
            if not np.array_equal(result, np.rint(result)):
                expected = "whole results of whole numbers, as it is exact on integers"
                raise ProblemError(f"{problem.name}: {name}: expected {expected}")
        if all(result.max(initial=0) < limit for result in results.values()):
            return drawn
    expected = f"results below {limit:.0f} of few and small whole numbers"
    raise ProblemError(f"{problem.name}: expected {expected}, as it is exact on integers")


def _whole(
    array: NDArray[np.generic], attempt: int, rng: np.random.Generator
) -> NDArray[np.generic]:
    """Whole numbers of an array's shape and dtype: with each attempt smaller, then fewer."""
    largest = max(LARGEST - attempt, 1)
    out = rng.integers(1, largest, array.shape, np.int8, endpoint=True).astype(array.dtype)
    out *= rng.choice(np.array((-1, 1), np.int8), array.shape)
    if attempt >= LARGEST:
        out *= rng.random(array.shape, np.float32) < 2.0 ** (LARGEST - 1 - attempt)
    digits = _NARROWER.get(array.dtype.name)
    if digits is not None:
        wide = np.flatnonzero(rng.random(array.size, np.float32) < 2.0 ** (-8 - 2 * attempt))
        odd = 2**digits + 1 + 2 * rng.integers(_SPREAD, size=wide.size)
        out.flat[wide] = odd * rng.choice((-1, 1), wide.size)
    return out
