"""How far two rankings agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def spearman(left: Vector, right: Vector) -> float:
    """Rank correlation with average ranks for ties (Spearman, 1904); 0 where one side is all ties
    and ranks nothing.
    """
    ranks = _ranks(left), _ranks(right)
    if any(np.ptp(each) == 0 for each in ranks):
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: Vector) -> Vector:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Vector = ((ends - counts + ends - 1) / 2)[inverse]
    return ranks
