"""Where random choices come from: a generator that nothing remembers, or a program's decisions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, permutations
from typing import Protocol, TypeVar, cast

import numpy as np

from kernelwright.env.compiler.schedule.domain import weighted
from kernelwright.env.spaces.schedule.builder import TraceBuilder
from kernelwright.env.types import Scalar

MAX_ORDERS = 24
T = TypeVar("T")
S = TypeVar("S", bound=Scalar)


def pick(rng: np.random.Generator, values: Sequence[T], weights: Sequence[float] = ()) -> T:
    """One of some values, equally likely or by weight."""
    if not weights:
        return values[int(rng.integers(len(values)))]
    return values[weighted(weights, rng)]


class Chance(Protocol):
    """Makes choices; each has a name."""

    def pick(self, name: str, values: Sequence[S], weights: Sequence[float] = ()) -> S:
        """One of some values, equally likely or by weight."""
        ...

    def coin(self, name: str, probability: float) -> bool:
        """Yes with a probability."""
        ...

    def order(self, name: str, items: tuple[str, ...]) -> tuple[str, ...]:
        """Some items in any order."""
        ...


class Drawing:
    """Choices by a generator, in the order in which they are asked for."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def pick(self, name: str, values: Sequence[S], weights: Sequence[float] = ()) -> S:
        """One of some values, equally likely or by weight."""
        del name
        return pick(self._rng, values, weights)

    def coin(self, name: str, probability: float) -> bool:
        """Yes with a probability."""
        del name
        return bool(self._rng.random() < probability)

    def order(self, name: str, items: tuple[str, ...]) -> tuple[str, ...]:
        """Some items in any order."""
        del name
        return tuple(items[i] for i in self._rng.permutation(len(items)).tolist())


class Deciding:
    """Choices that are decisions of a schedule being written; one without an alternative is none.

    Args:
        builder: writes the schedule.
        about: what the choices are about; their names begin with it.
    """

    def __init__(self, builder: TraceBuilder, about: str) -> None:
        self._builder, self._about = builder, about

    def pick(self, name: str, values: Sequence[S], weights: Sequence[float] = ()) -> S:
        """One of some values, equally likely or by weight."""
        if len(values) == 1:
            return values[0]
        found = self._builder.sample_categorical(
            values, weights or None, name=f"{self._about}: {name}"
        )
        return cast(S, found)

    def coin(self, name: str, probability: float) -> bool:
        """Yes with a probability."""
        return self.pick(name, (False, True), (1 - probability, probability))

    def order(self, name: str, items: tuple[str, ...]) -> tuple[str, ...]:
        """Some items in one of at most `MAX_ORDERS` orders."""
        orders = [" ".join(each) for each in islice(permutations(items), MAX_ORDERS)]
        return tuple(self.pick(name, orders).split(" "))
