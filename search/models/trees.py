"""Extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006) on the
features, by scikit-learn: interactions without products, steps without smoothness, and a spread.

They stand for what recorded landscapes have and a linear model has not: cliffs where registers
spill or a block does not fit. The price is time: growing and asking 32 trees takes tens of
milliseconds, whatever the batch.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import OptionError
from kernelwright.env.protocols import Space
from kernelwright.search.models.model import Array

TREES = 32
EXTRA = "trees"


class Trees:
    """An ensemble of trees, grown anew from all samples when it is first asked after learning.

    Raises:
        OptionError: if scikit-learn is not installed.
    """

    def __init__(self, space: Space, *, seed: int) -> None:
        del space
        try:
            self._ensemble: Any = importlib.import_module("sklearn.ensemble")
        except ImportError as error:
            expected = f"scikit-learn (pip install 'kernelwright[{EXTRA}]')"
            raise OptionError("model", expected, f"'trees' without it ({error})") from None
        # scikit-learn takes seeds of 32 bits.
        self._seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
        self._rows: list[NDArray[np.float32]] = []
        self._targets: list[Array] = []
        self._grown: list[Any] = []
        self._count = 0

    @property
    def count(self) -> int:
        """How many samples were learned."""
        return self._count

    def add(self, rows: Array, targets: Array) -> None:
        """Keep samples for the next growth."""
        if len(targets):
            self._rows.append(rows.astype(np.float32))
            self._targets.append(targets)
            self._count += len(targets)
            self._grown = []

    def predict(self, rows: Array) -> Array:
        """The mean over trees."""
        mean: Array = self._each(rows).mean(axis=0)
        return mean

    def spread(self, rows: Array) -> Array:
        """The standard deviation over trees."""
        deviation: Array = self._each(rows).std(axis=0)
        return deviation

    def _each(self, rows: Array) -> Array:
        """Every tree's prediction, shape (trees, rows)."""
        if not self._count:
            raise ValueError("expected at least one sample, found none")
        if not self._grown:
            forest = self._ensemble.ExtraTreesRegressor(TREES, random_state=self._seed)
            forest.fit(np.concatenate(self._rows), np.concatenate(self._targets))
            self._grown = forest.estimators_
        asked = np.ascontiguousarray(rows, dtype=np.float32)
        return np.stack([tree.predict(asked, check_input=False) for tree in self._grown])
