"""What is known before anything is measured: an analytic model's estimates, and what was recorded
for other shapes or on other devices (`search.transfer`).

An advice is a cost for each valid configuration of a knob space, log2 of a time up to a constant.
Nobody has to believe it: drivers test it on what they measure, and drop it when it misleads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.options import OptionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.prior import predicted_log2
from kernelwright.env.types import Problem

Array = NDArray[np.float64]

# A neighbour slower than this many times counts as this much slower when plateaus are compared: how
# much worse the far side of a cliff is does not matter.
CLIFF = 0.72  # log2
# Costs closer than this are ties, for no model means its seventh digit; so are plateaus whose
# neighbours differ by less than a percent.
TIE, LEVEL = 1e-6, 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """``cost`` has one number a row of ``space.valid``, infinite for what fails or is not known.

    ``distance`` says how far what it was made for is from the problem: the sum of the octaves
    between extents, or one where no extent is known; 0 for a model of the problem itself.
    ``guessed`` marks the rows that were not recorded but predicted from those that were.
    """

    name: str
    cost: Array
    distance: float
    guessed: NDArray[np.bool_] | None = None

    def order(self, space: KnobSpace, rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows by cost, what was guessed behind what was not, leaving out infinite ones; of ties
        first that whose neighbours are fast too, for an optimum on a plateau survives a model's
        errors; what is still equal at random.
        """
        steps, cliffs = np.round(self.cost / TIE), np.round(_cliffs(space, self.cost) / LEVEL)
        later = np.isinf(self.cost) * 2 + (0 if self.guessed is None else self.guessed)
        keys = (rng.random(len(self.cost)), cliffs, steps, later)
        order: NDArray[np.int64] = np.lexsort(keys)
        return order[: int(np.isfinite(self.cost).sum())]


def model_advice(space: KnobSpace, problem: Problem | None, device: str) -> Advice:
    """The analytic GPU model of a device.

    Raises:
        OptionError: if it has no model of this problem or space.
    """
    if problem is None:
        raise OptionError("prior", "a problem with an analytic model", "none")
    try:
        predicted = predicted_log2(problem, device, space)
    except OptionError as error:
        raise OptionError("prior", error.expected, error.found, error.nearest) from None
    except ValueError as error:
        raise OptionError("prior", "a problem with an analytic model", str(error)) from None
    return Advice(f"prior {device}", predicted.log2[space.valid], 0.0)


def _cliffs(space: KnobSpace, cost: Array) -> Array:
    """How much slower, on average, the neighbours of each row are; what is not valid or refused
    counts as a cliff.
    """
    valid = space.valid
    total, count = np.zeros(len(cost)), np.zeros(len(cost))
    levels = space.levels_of(valid)
    own = np.where(np.isfinite(cost), cost, 0.0)
    stride = 1
    for knob in reversed(range(len(space.shape))):
        for step in (-1, 1):
            there = levels[:, knob] + step
            inside = (there >= 0) & (there < space.shape[knob])
            wanted = np.where(inside, valid + step * stride, valid)
            # Looked up among the valid ones: a table of all combinations may not fit anywhere.
            place = np.minimum(np.searchsorted(valid, wanted), len(valid) - 1)
            near = np.where(valid[place] == wanted, cost[place], math.inf)
            total += np.where(inside, np.clip(near - own, 0.0, CLIFF), 0.0)
            count += inside
        stride *= space.shape[knob]
    return total / np.maximum(count, 1)
