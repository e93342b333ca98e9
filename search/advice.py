"""What is known before anything is measured: an analytic model's estimates, and times recorded for
other shapes or on other devices.

An advice is a cost for each valid configuration of a knob space, log2 of a time up to a constant.
Nobody has to believe it: drivers test it on what they measure, and drop it when it misleads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.landscape.record import Landscape, LandscapeError, NoLandscapeError
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
# A recording without extents is as far as a shape with one extent twice as large.
UNKNOWN = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """``cost`` has one number a row of ``space.valid``, infinite for what fails or is not known.

    ``distance`` says how far what it was made for is from the problem: the sum of the octaves
    between extents, or one where no extent is known; 0 for a model of the problem itself.
    """

    name: str
    cost: Array
    distance: float

    def order(self, space: KnobSpace, rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows by cost, leaving out infinite ones; of ties first that whose neighbours are fast
        too, for an optimum on a plateau survives a model's errors; what is still equal at random.
        """
        steps, cliffs = np.round(self.cost / TIE), np.round(_cliffs(space, self.cost) / LEVEL)
        keys = (rng.random(len(self.cost)), cliffs, steps)
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


def recorded_advice(space: KnobSpace, problem: Problem | None, name: str) -> Advice:
    """A landscape recorded for another shape or on another device.

    Raises:
        OptionError: if there is none, or it shares no configuration with the space.
    """
    try:
        landscape = open_landscape(locate(name))
    except NoLandscapeError as error:
        raise OptionError("transfer", error.expected, error.found, error.nearest) from None
    except LandscapeError as error:
        raise OptionError("transfer", "a readable recording", str(error)) from None
    cost = np.full(len(space.valid), math.inf)
    row = {index: place for place, index in enumerate(space.valid.tolist())}
    for entry in landscape.entries:
        place = _place(space, row, dict(entry.knobs))
        if place is not None and entry.samples_ns:
            cost[place] = math.log2(entry.true_ns)
    if not np.isfinite(cost).any():
        found = f"{name!r}, which has none of its configurations"
        raise OptionError("transfer", f"a recording of the knobs {' '.join(space.names)}", found)
    return Advice(f"transfer {name}", cost, _distance(landscape, problem))


def _place(space: KnobSpace, row: Mapping[int, int], knobs: dict[str, object]) -> int | None:
    """The row of a recorded configuration; None if the space has it not."""
    try:
        return row.get(space.index_of(knobs))  # type: ignore[arg-type]
    except ValueError:
        return None


def _distance(landscape: Landscape, problem: Problem | None) -> float:
    """Octaves between the extents of a recording and those of a problem; `UNKNOWN` if they share
    none.
    """
    here = problem.workloads[0].fixed if problem is not None else {}
    there = dict(landscape.extents)
    shared = sorted(set(here) & set(there))
    if not shared:
        return UNKNOWN
    return sum(abs(math.log2(here[name] / there[name])) for name in shared)


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
