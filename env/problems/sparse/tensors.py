"""Tensors of order three: where their elements are, and the formats that they are there in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelwright.env.compiler.sparse.levels.base import Whole
from kernelwright.env.options import OptionError
from kernelwright.env.problems.matrices import uniform_tensor

# The order of modes in a tree decides which loop is outermost.
OF_TENSORS = ("csf", "csf(1,0,2)", "csf(2,0,1)", "coo")


def tensor_draw(shape: tuple[int, int, int], nnz: int) -> Callable[[np.random.Generator], Whole]:
    """Draws ``nnz`` places, every set of which is equally likely.

    Raises:
        OptionError: if there are not so many.
    """
    room = shape[0] * shape[1] * shape[2]
    if nnz > room:
        raise OptionError("nnz", f"at most rows x cols x depth = {room}", str(nnz))
    return lambda rng: np.array(uniform_tensor(shape, nnz, rng), np.int64)
