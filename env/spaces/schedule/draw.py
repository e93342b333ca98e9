"""Random decisions for a nest, and random changes of one of them.

Drawn around what fits: factors that divide, accumulators that a register file holds. The space does
not know the machine; 32 registers of 64 bytes are the most that any has, and smaller tiles, which
16 registers of 32 bytes hold, are drawn as often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelwright.env.spaces.schedule.chance import Chance, pick
from kernelwright.env.spaces.schedule.nest import Axis, Nest
from kernelwright.env.spaces.schedule.sketch import PLACEMENTS, Placement, Plan, Tiling, plain

ACCUMULATORS = 28  # of 32 registers; the rest hold what is multiplied
REGISTER_BYTES = 64
MAX_COPIES = 64  # statements written out for one place of the loops
ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28)
VECTORS = (1, 2, 3, 4, 6, 8)
STEPS = (1, 2, 4, 8)
BLOCKS = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a space draws from: numbers of lanes, and whether there are threads."""

    lanes: tuple[int, ...]
    threaded: bool


def fitting(extent: int | None, values: Sequence[int]) -> list[int]:
    """Those values that divide an extent; where only 1 does, those that are smaller (their tails
    are guarded).
    """
    if extent is None:
        return [1]
    dividing = [value for value in values if extent % value == 0]
    if any(value > 1 for value in dividing):
        return dividing
    return [value for value in values if value == 1 or value < extent]


def draw_plan(nest: Nest, chance: Chance, limits: Limits) -> Plan:
    """Random decisions."""
    plan = plain(nest)
    if not nest.has_loads and chance.coin("leave", 0.5):
        return plan
    tilings = {tiling.loop: tiling for tiling in plan.tilings}
    dense = next((axis for axis in nest.axes if axis.loop == nest.dense), None)
    if dense is not None and chance.coin("vectorize", 0.9 if nest.is_streamed else 0.4):
        lanes = chance.pick("lanes", _lanes(dense, limits))
        rest = _rest(dense.extent, lanes)
        budget = ACCUMULATORS // _registers(nest, lanes)
        fits = [v for v in fitting(rest, VECTORS) if v <= min(budget, 4)] or [1]
        tilings[dense.loop] = Tiling(dense.loop, lanes, chance.pick("vectors", fits))
    rows = _draw_rows(nest, chance, tilings)
    if rows is not None:
        tilings[rows.loop] = rows
    if nest.reduction:
        _draw_steps(nest, chance, tilings)
    for axis in nest.spatial:
        if len(nest.axes) > 1 and chance.coin(f"{axis.loop} blocked", 0.2):
            tiling = tilings[axis.loop]
            block = chance.pick(f"{axis.loop} block", _blocks(axis, tiling))
            tilings[axis.loop] = replace(tiling, cache=block)
    order = tuple(axis.loop for axis in nest.spatial)
    if chance.coin("reorder", 0.5):
        order = chance.order("order", order)
    placement: Placement = "between"
    if nest.reduction:
        placement = chance.pick("reduction", PLACEMENTS, (0.8, 0.07, 0.05, 0.08))
    parallel = limits.threaded and chance.coin("parallel", 0.9)
    return Plan(tuple(tilings[name] for name in nest.names), order, placement, parallel)


def _lanes(dense: Axis, limits: Limits) -> list[int]:
    return [n for n in fitting(dense.extent, limits.lanes) if n <= (dense.extent or 0)] or [1]


def _rest(extent: int | None, *factors: int) -> int | None:
    for factor in factors:
        extent = None if extent is None else -(-extent // factor)
    return extent


def _registers(nest: Nest, lanes: int) -> int:
    """How many registers one accumulator takes."""
    return max(1, lanes * nest.itemsize // REGISTER_BYTES)


def copies(plan: Plan) -> int:
    """How many statements are written out."""
    return math.prod(tiling.register for tiling in plan.tilings)


def _draw_rows(nest: Nest, chance: Chance, tilings: dict[str, Tiling]) -> Tiling | None:
    """Copies along another loop than the lanes': they share what the dense loop loads, and in a
    reduction their chains overlap.
    """
    others = [a for a in nest.spatial if tilings[a.loop].lanes == 1 and a.extent is not None]
    if not others or chance.coin("one row", 0.1 if nest.reduction else 0.7):
        return None
    loop = chance.pick("rows along", [axis.loop for axis in others])
    axis = next(axis for axis in others if axis.loop == loop)
    used = math.prod(t.register * _registers(nest, t.lanes) for t in tilings.values())
    allowed = [rows for rows in fitting(axis.extent, ROWS) if rows * used <= ACCUMULATORS]
    if not allowed:
        return None
    # In a reduction more rows mean more loads saved and more chains.
    weights = [math.sqrt(rows) if nest.reduction else 1.0 for rows in allowed]
    return replace(tilings[axis.loop], register=chance.pick("rows", allowed, weights))


def _draw_steps(nest: Nest, chance: Chance, tilings: dict[str, Tiling]) -> None:
    """Steps of the innermost reductions written out, and the outermost one in blocks; other parts
    would change the order in which values are combined.
    """
    first, last = nest.reduction[0], nest.reduction[-1]
    for axis in reversed(nest.reduction):
        room = MAX_COPIES // math.prod(t.register for t in tilings.values())
        whole = axis.extent is not None and axis.extent <= min(8, room)
        if whole and axis.extent != 1 and chance.coin(f"{axis.loop} written out", 0.5):
            assert axis.extent is not None
            tilings[axis.loop] = replace(tilings[axis.loop], register=axis.extent)
            continue
        if axis == last:
            steps = [n for n in fitting(axis.extent, STEPS) if n <= room] or [1]
            weights = [1.0 / n for n in steps]
            chosen = chance.pick(f"{axis.loop} steps", steps, weights)
            tilings[axis.loop] = replace(tilings[axis.loop], register=chosen)
        break
    if chance.coin(f"{first.loop} blocked", 0.25):
        tiling = tilings[first.loop]
        large = [n for n in _blocks(first, tiling) if n == 1 or n >= 16]
        chosen = chance.pick(f"{first.loop} block", large)
        tilings[first.loop] = replace(tiling, cache=chosen)


def _blocks(axis: Axis, tiling: Tiling) -> list[int]:
    """Block sizes, no block among them."""
    rest = _rest(axis.extent, tiling.lanes, tiling.register)
    if rest is None or rest < 4:
        return [1]
    return [n for n in fitting(rest, (1, *BLOCKS)) if n < rest]


def change_plan(nest: Nest, plan: Plan, rng: np.random.Generator, limits: Limits) -> Plan | None:
    """One decision changed, None if the drawn one has no other value."""
    choices = ["tiling"] * 6
    choices += ["order"] if len(nest.spatial) > 1 else []
    choices += ["placement"] if nest.reduction else []
    choices += ["parallel"] if limits.threaded else []
    match pick(rng, choices):
        case "order":
            order = list(plan.order)
            i = int(rng.integers(len(order) - 1))
            order[i], order[i + 1] = order[i + 1], order[i]
            return replace(plan, order=tuple(order))
        case "placement":
            return replace(
                plan, placement=pick(rng, [p for p in PLACEMENTS if p != plan.placement])
            )
        case "parallel":
            return replace(plan, parallel=not plan.parallel)
    return _change_tiling(nest, plan, rng, limits)


def _change_tiling(nest: Nest, plan: Plan, rng: np.random.Generator, limits: Limits) -> Plan | None:
    place = int(rng.integers(len(nest.axes)))
    axis, tiling = nest.axes[place], plan.tilings[place]
    parts = ["register", "cache"]
    parts += ["lanes", "lanes"] if axis.loop == nest.dense else []
    match pick(rng, parts):
        case "lanes":
            lanes = _another(rng, sorted({1, *_lanes(axis, limits)}), tiling.lanes)
            new = None if lanes is None else replace(tiling, lanes=lanes)
        case "register":
            others = copies(plan) // tiling.register
            known = {*ROWS, *VECTORS, *STEPS}
            known |= {axis.extent} if axis.extent is not None and axis.extent <= 8 else set()
            values = fitting(_rest(axis.extent, tiling.lanes), sorted(known))
            small = [n for n in values if n * others <= MAX_COPIES]
            register = _another(rng, small, tiling.register)
            new = None if register is None else replace(tiling, register=register)
        case _:
            cache = _another(rng, _blocks(axis, tiling), tiling.cache)
            new = None if cache is None else replace(tiling, cache=cache)
    if new is None:
        return None
    tilings = (*plan.tilings[:place], new, *plan.tilings[place + 1 :])
    return replace(plan, tilings=tilings)


def _another(rng: np.random.Generator, values: Sequence[int], now: int) -> int | None:
    """Another value: mostly the next smaller or larger one, at times any."""
    others = [value for value in values if value != now]
    if not others:
        return None
    if rng.random() < 0.3:
        return pick(rng, others)
    below = [value for value in others if value < now][-1:]
    above = [value for value in others if value > now][:1]
    return pick(rng, below + above)


def mix_plans(nest: Nest, left: Plan, right: Plan, rng: np.random.Generator) -> Plan:
    """Every decision from either of two, a loop's tiling as one."""
    bits = rng.random(len(nest.axes) + 3) < 0.5
    tilings = tuple(
        a if bit else b
        for a, b, bit in zip(left.tilings, right.tilings, bits[3:].tolist(), strict=True)
    )
    order, placement, parallel = (left if bit else right for bit in bits[:3].tolist())
    return Plan(tilings, order.order, placement.placement, parallel.parallel)
