"""How far two rankings agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def spearman(left: Vector, right: Vector) -> float:
    """Rank correlation with average ranks for ties (Spearman, 1904)."""
    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])


def _ranks(values: Vector) -> Vector:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Vector = ((ends - counts + ends - 1) / 2)[inverse]
    return ranks
