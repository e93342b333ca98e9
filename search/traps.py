"""Where a search that changes one knob at a time gets stuck on a landscape whose truth is known.

A configuration is stuck if no value of any single knob makes it faster. From every configuration a
descent follows the declared order of the knobs (all values of one, keep the best, next knob) until
a whole round changes nothing, as `drivers.coordinate_descent` does; what counts is where it ends.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import Scalar

Times = NDArray[np.float64]
Config = tuple[tuple[str, Scalar], ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two knobs that must move together: each alone makes ``config`` slower (or does not run:
    infinity), both make it faster. Times are in units of the landscape's best.
    """

    config: Config
    time: float
    changes: tuple[tuple[str, Scalar], tuple[str, Scalar]]
    alone: tuple[float, float]
    together: float


@dataclass(frozen=True, slots=True)
class Traps:
    """What is known of a landscape: how many configurations run, how many are ``stuck`` (``steps``:
    how many would be, if a knob could only go one step), the times of those that are stuck in units
    of the best, and of all starts the share that ends more than 5% above the best.
    """

    configurations: int
    stuck: int
    steps: int
    ends: tuple[float, ...]
    lost: float
    pair: Pair | None


def find_traps(space: KnobSpace, times: Times, within: float = 0.05) -> Traps:
    """The traps of a landscape.

    Args:
        space: whose configurations the times are of.
        times: one for every combination of knob values; infinite or NaN where nothing runs.
        within: how far above the best an end may be without being a loss.
    """
    grid = np.where(np.isfinite(times), times, np.inf).reshape(space.shape)
    best = float(grid.min())
    runs = np.isfinite(grid)
    stuck = runs & (grid <= _line_minimum(grid))
    ends = grid[stuck] / best
    landed = _descend(grid)
    ended = grid.ravel()[landed[runs.ravel()]] / best
    return Traps(
        configurations=int(runs.sum()),
        stuck=int(stuck.sum()),
        steps=int((runs & (grid <= _step_minimum(grid))).sum()),
        ends=tuple(sorted(ends.tolist())),
        lost=float((ended > 1 + within).mean()),
        pair=_pair(space, grid, landed[runs.ravel()], best, within),
    )


def _line_minimum(grid: Times) -> Times:
    """The least time on any line through a configuration."""
    least = grid
    for axis in range(grid.ndim):
        least = np.minimum(least, grid.min(axis=axis, keepdims=True))
    return least


def _step_minimum(grid: Times) -> Times:
    """The least time one step away."""
    least = np.full(grid.shape, np.inf)
    for axis in range(grid.ndim):
        moved, other = np.moveaxis(least, axis, 0), np.moveaxis(grid, axis, 0)
        moved[1:] = np.minimum(moved[1:], other[:-1])
        moved[:-1] = np.minimum(moved[:-1], other[1:])
    return least


def _descend(grid: Times) -> NDArray[np.int64]:
    """The flat index at which a descent from every configuration ends."""
    flat, here = grid.ravel(), np.arange(grid.size)
    index = np.arange(grid.size).reshape(grid.shape)
    towards = []
    for axis in range(grid.ndim):
        place = np.expand_dims(grid.argmin(axis=axis), axis)
        target = np.take_along_axis(index, place, axis)
        towards.append(np.broadcast_to(target, grid.shape).ravel())
    while True:
        before = here
        for target in towards:
            there = target[here]
            here = np.where(flat[there] < flat[here], there, here)
        if np.array_equal(here, before):
            return here


def _pair(
    space: KnobSpace, grid: Times, landed: NDArray[np.int64], best: float, within: float
) -> Pair | None:
    """Of the traps beyond the limit, the one in which most descents end, with the two knobs that
    lead out of it best; None if no two knobs lead out of one.
    """
    flat = grid.ravel()
    for index, _ in Counter(landed.tolist()).most_common():
        if flat[index] <= (1 + within) * best:
            continue
        found = _way_out(space, grid, index, best)
        if found is not None:
            return found
    return None


def _way_out(space: KnobSpace, grid: Times, index: int, best: float) -> Pair | None:
    levels = tuple(space.unflat(index))
    ways = []
    for i, j in itertools.combinations(range(grid.ndim), 2):
        plane = grid[tuple(slice(None) if k in (i, j) else levels[k] for k in range(grid.ndim))]
        a, b = divmod(int(plane.argmin()), plane.shape[1])
        ways.append((float(plane[a, b]), i, j, a, b))
    together, i, j, a, b = min(ways)
    if together >= grid[levels]:
        return None

    def changed(knob: int, level: int) -> float:
        return float(grid[(*levels[:knob], level, *levels[knob + 1 :])] / best)

    knobs = space.knobs
    return Pair(
        tuple((knob.name, knob.values[level]) for knob, level in zip(knobs, levels, strict=True)),
        float(grid[levels] / best),
        ((knobs[i].name, knobs[i].values[a]), (knobs[j].name, knobs[j].values[b])),
        (changed(i, a), changed(j, b)),
        together / best,
    )
