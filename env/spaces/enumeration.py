"""Which configurations of a product of knobs satisfy its constraints, without looking at the whole
product.

Knobs that no constraint connects are independent, so the valid set is the product of the valid sets
of connected components, and a uniform sample is a sample of each. A component is enumerated by
joining one knob after the other to the partial configurations so far and dropping what breaks a
constraint as soon as all knobs it reads are there (the chain of trees of Rasch, Schulze, Steuwer
and Gorlatch, ATF, ACM TACO 18(1), 2021, as one table instead of a tree).

A product of more than `WHOLE` combinations whose tables grow beyond `MAX_ROWS` on the way is not
enumerated. Its components are sampled in the same order: a crowd of partial configurations gets a
random value of the next knob, those that break a constraint are replaced by copies of the others
(sequential importance resampling, Gordon, Salmond and Smith, IEE Proc. F 140(2), 1993). With a
large crowd that tends to a uniform sample; rejection alone would not find rare ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelwright.env.spaces.expressions import Constraint
from kernelwright.env.types import Knob

Levels: TypeAlias = NDArray[np.int32]

WHOLE = 10_000_000
MAX_ROWS = 100_000
# Sizes of the crowds that a sample is drawn with, the next one where the one before died out.
CROWDS = (256, 4096, 65_536)


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """Connected knobs (places in the space's order) with the constraints between them.

    ``levels`` are the valid ones, shape (configurations, knobs), None if there are too many.
    """

    places: tuple[int, ...]
    rules: tuple[Constraint, ...]
    levels: Levels | None


def reads(rule: Constraint, names: Iterable[str]) -> frozenset[str]:
    """The knobs on which a constraint depends, its own definitions followed."""
    knobs = frozenset(names)
    expression, where = rule.parsed
    means: dict[str, frozenset[str]] = {}
    for name, definition in where:
        means[name] = _followed(definition.names, means) & knobs
    return _followed(expression.names, means) & knobs


def _followed(names: frozenset[str], means: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*(means.get(name, frozenset({name})) for name in names))


def components(knobs: Sequence[Knob], rules: Sequence[Constraint]) -> list[Component]:
    """The connected components of a space, in the order of their first knobs."""
    names = [knob.name for knob in knobs]
    limit = WHOLE if math.prod(len(knob.values) for knob in knobs) <= WHOLE else MAX_ROWS
    group = {name: {name} for name in names}
    read = [reads(rule, names) for rule in rules]
    for some in read:
        joined = set[str]().union(*(group[name] for name in some))
        for name in joined:
            group[name] = joined
    found: list[Component] = []
    done: set[str] = set()
    for name in names:
        if name in done:
            continue
        done |= group[name]
        places = tuple(i for i, other in enumerate(names) if other in group[name])
        own = tuple(
            rule for rule, some in zip(rules, read, strict=True) if some and some <= group[name]
        )
        found.append(Component(places, own, _join(knobs, places, own, limit)))
    return found


def constants_hold(knobs: Sequence[Knob], rules: Sequence[Constraint]) -> bool:
    """Whether the constraints that read no knob hold."""
    names = [knob.name for knob in knobs]
    row = {knob.name: np.array([knob.values[0]]) for knob in knobs}
    return all(bool(rule.holds(row)[0]) for rule in rules if not reads(rule, names))


def _join(
    knobs: Sequence[Knob], places: tuple[int, ...], rules: tuple[Constraint, ...], limit: int
) -> Levels | None:
    """The valid levels of a component, in row-major order of its knobs; None if a table on the way
    has more rows than ``limit``.
    """
    table = np.zeros((1, 0), dtype=np.int32)
    order: list[int] = []
    for place, ready in steps(knobs, places, rules):
        size = len(knobs[place].values)
        if len(table) * size > limit:
            return None
        fresh = np.tile(np.arange(size, dtype=np.int32), len(table))
        table = np.column_stack([np.repeat(table, size, axis=0), fresh])
        order.append(place)
        table = table[satisfied(knobs, order, table, ready)] if ready else table
    table = table[:, np.argsort(order)]
    return table[np.lexsort(table.T[::-1])] if len(table) else table


def steps(
    knobs: Sequence[Knob], places: tuple[int, ...], rules: tuple[Constraint, ...]
) -> list[tuple[int, list[Constraint]]]:
    """The order in which knobs are joined, each with the constraints that can be checked then."""
    waiting = [(rule, reads(rule, [knobs[i].name for i in places])) for rule in rules]
    found: list[tuple[int, list[Constraint]]] = []
    bound: set[str] = set()
    left = set(places)
    while left:
        place = _next_knob(knobs, bound, left, [some for _, some in waiting])
        left.discard(place)
        bound.add(knobs[place].name)
        found.append((place, [rule for rule, some in waiting if some <= bound]))
        waiting = [(rule, some) for rule, some in waiting if not some <= bound]
    return found


def _next_knob(
    knobs: Sequence[Knob], bound: set[str], left: set[int], waiting: list[frozenset[str]]
) -> int:
    """The smallest knob of the constraint that lacks the fewest combinations."""
    by_name = {knobs[i].name: i for i in left}
    lacking = [[by_name[name] for name in some - bound] for some in waiting]
    if not lacking:
        return min(left)
    fewest = min(lacking, key=lambda some: (math.prod(len(knobs[i].values) for i in some), some))
    return min(fewest, key=lambda i: (len(knobs[i].values), i))


def columns_of(
    knobs: Sequence[Knob], places: Sequence[int], levels: NDArray[np.integer]
) -> dict[str, NDArray[np.generic]]:
    """Knob values by name, for levels of shape (configurations, places)."""
    return {
        knobs[place].name: np.array(knobs[place].values)[levels[:, i]]
        for i, place in enumerate(places)
    }


def satisfied(
    knobs: Sequence[Knob],
    places: Sequence[int],
    levels: NDArray[np.integer],
    rules: Sequence[Constraint],
) -> NDArray[np.bool_]:
    """Where all of some constraints hold."""
    columns = columns_of(knobs, places, levels)
    out = np.ones(len(levels), dtype=bool)
    for rule in rules:
        out &= rule.holds(columns)
    return out


def drawn(knobs: Sequence[Knob], component: Component, rng: np.random.Generator) -> Levels:
    """The levels of one valid configuration of a component, in the order of its places; each
    equally likely if the component was enumerated.

    Raises:
        ValueError: if none is found.
    """
    if component.levels is not None:
        listed: Levels = component.levels[int(rng.integers(len(component.levels)))]
        return listed
    path = steps(knobs, component.places, component.rules)
    for size in CROWDS:
        crowd = np.zeros((size, 0), dtype=np.int32)
        order: list[int] = []
        for place, ready in path:
            fresh = rng.integers(len(knobs[place].values), size=size, dtype=np.int32)
            crowd = np.column_stack([crowd, fresh])
            order.append(place)
            if ready:
                kept = np.flatnonzero(satisfied(knobs, order, crowd, ready))
                if not len(kept):
                    break
                crowd = crowd[kept[rng.integers(len(kept), size=size)]]
        else:
            first: Levels = crowd[0, np.argsort(order)]
            return first
    names = ", ".join(knobs[place].name for place in component.places)
    raise ValueError(
        f"expected a configuration that satisfies the constraints between {names}, "
        f"found none with {CROWDS[-1]:,} tried at a time"
    )
