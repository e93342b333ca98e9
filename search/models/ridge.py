"""Ridge regression on standardised features, learned one sample at a time.

Only sums are kept (Σx, Σxxᵀ, Σy, Σxy), so adding a sample and fitting cost the same however many
were added. Minimises Σ(y − b − wᵀz)² + λ|w|² over standardised features z; the intercept is not
penalised (Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, section 3.4.1).
"""

from __future__ import annotations

import numpy as np

from kernelwright.env.protocols import Space
from kernelwright.search.models.model import Array


def ridge(space: Space, *, penalty: float = 0.1) -> Ridge:
    """The model as drivers make it; it takes any space."""
    del space
    return Ridge(penalty)


class Ridge:
    """A linear model with penalty ``penalty`` (λ); the first rows say of how many features."""

    def __init__(self, penalty: float) -> None:
        self._penalty = penalty
        self.count = 0
        self._shift = self._x = self._xy = np.zeros(0)
        self._xx: Array = np.zeros((0, 0))
        self._y = 0.0

    def add(self, features: Array, targets: Array) -> None:
        """Learn rows of features, shape (samples, dimension), with their targets."""
        if not len(targets):
            return
        if not self.count:
            # Sums around the first sample lose no digits to a large common offset.
            self._shift = features[0].copy()
            self._x, self._xy = np.zeros_like(self._shift), np.zeros_like(self._shift)
            self._xx = np.zeros((len(self._shift), len(self._shift)))
        centred = features - self._shift
        self.count += len(targets)
        self._x += centred.sum(axis=0)
        self._xx += centred.T @ centred
        self._y += float(targets.sum())
        self._xy += centred.T @ targets

    def weights(self) -> tuple[Array, float]:
        """Weights on the raw features, and the intercept.

        Raises:
            ValueError: if nothing was learned.
        """
        n = self.count
        if not n:
            raise ValueError("expected at least one sample, found none")
        mean, target = self._x / n, self._y / n
        covariance = self._xx / n - np.outer(mean, mean)
        variance = np.diag(covariance)
        scale = np.sqrt(np.where(variance > 1e-12, variance, 1.0))
        gram = n * covariance / np.outer(scale, scale)
        right = (self._xy - n * mean * target) / scale
        gram[np.diag_indices_from(gram)] += self._penalty
        try:
            weights: Array = np.linalg.solve(gram, right)
        except np.linalg.LinAlgError:
            # The penalty is lost in rounding: of all weights that fit the smallest.
            weights = np.linalg.lstsq(gram, right, rcond=None)[0]
        weights = weights / scale
        return weights, float(target - weights @ (mean + self._shift))

    def predict(self, features: Array) -> Array:
        """Predicted targets for rows of features."""
        weights, intercept = self.weights()
        predicted: Array = features @ weights + intercept
        return predicted
