"""How far rounding may move a result: the parts that error models are made of.

Every bound here is elementwise and to first order: an error model's ``bound`` is the unit roundoff
u of the dtype, and its problem's ``magnitude`` says how many u an element may be off. A product of
n factors (1 + δ) with |δ| ≤ u differs from 1 by at most γ_n ≈ n u (Higham, Accuracy and Stability
of Numerical Algorithms, 2nd ed., 2002, lemma 3.1), and if the roundings are independent and of mean
zero by at most λ √n u with probability 1 - 2 exp(-λ²/2) (Higham and Mary, A new approach to
probabilistic rounding error analysis, SIAM J. Sci. Comput. 41(5), 2019, theorem 2.4). Neither
depends on the order of a sum, so every order passes, and blocked ones easily.

Equal or evenly spaced terms are rounded the same way time and again: their roundings are not
independent, and only the first bound holds (`worst_case`; Higham and Mary 2019, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.types import Arrays

T = TypeVar("T", float, NDArray[Any])
_WORST_CASE = ContextVar("worst_case", default=False)
Floats = dict[str, NDArray[np.float64]]

# λ of the probabilistic bound. The partial sums of real data stay so far below the sums of absolute
# values that the bound is tens of standard deviations away, not four.
CONFIDENCE = 4.0
# What the first order leaves out: n u is far below a hundredth wherever n u is the bound.
HIGHER_ORDER = 1.01
# The relative error of exp, erf and their like in u: 4 ulp, to which glibc's vector functions are
# tested (sourceware.org/glibc/wiki/libmvec), where one ulp is at most 2 u.
FUNCTION = 8.0
SUMMATION = (
    "min(n, 4 sqrt n) u through n roundings: Higham 2002, lemma 3.1; "
    "Higham and Mary, SISC 41(5), 2019, theorem 2.4"
)


def unit(dtype: str) -> float:
    """The bound of an error model for outputs of a dtype: u; of float64 2 u, because the reference
    is rounded as well.
    """
    return float(np.finfo(np.dtype(dtype)).eps) / 2 * (2 if dtype == "float64" else 1)


def underflow(dtype: str) -> float:
    """The absolute error, in ``unit(dtype)``, of an operation whose result lies below the normal
    numbers: at most the least of these, even where it is flushed to zero (Higham 2002, section
    2.1).
    """
    return float(np.finfo(np.dtype(dtype)).tiny) / unit(dtype)


def growth(roundings: T) -> T:
    """How many u a value is off, relatively, after so many roundings one after the other."""
    if _WORST_CASE.get():
        return HIGHER_ORDER * roundings
    out: T = HIGHER_ORDER * np.minimum(roundings, CONFIDENCE * np.sqrt(roundings))
    return out


@contextmanager
def worst_case() -> Iterator[None]:
    """Within it, `growth` does not count on roundings that cancel: for inputs with a structure."""
    token = _WORST_CASE.set(True)
    try:
        yield
    finally:
        _WORST_CASE.reset(token)


def floats(arrays: Arrays) -> Floats:
    """The arrays in float64."""
    return {name: array.astype(np.float64) for name, array in arrays.items()}
