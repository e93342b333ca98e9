"""What a decision may be: one of some options, or the factors of an extent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np

from kernelwright.env.types import Scalar

Value: TypeAlias = tuple[Scalar, ...]
MAX_PARTS = 16


class Domain(Protocol):
    """What a decision may be; a value is a tuple, of one element where one thing is chosen."""

    @property
    def op(self) -> str:
        """The name of the entry."""
        ...

    def arguments(self, value: Value) -> tuple[Scalar, ...]:
        """The entry's arguments behind the decision's name."""
        ...

    def fault(self, value: Value) -> str | None:
        """Why a value is not in the domain; None if it is."""
        ...

    def draw(self, rng: np.random.Generator) -> Value:
        """A value by the program's probabilities."""
        ...

    def near(self, value: Value) -> tuple[Value, ...]:
        """The values one step away, in a fixed order."""
        ...

    def place(self, value: Value) -> float:
        """Where in the domain a value is, from 0 to 1; for models to learn from."""
        ...


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some different options; ``op`` tells what is chosen.

    Raises:
        ValueError: if there is no option, one stands twice, or a probability is none.
    """

    options: tuple[Scalar, ...]
    probabilities: tuple[float, ...] = ()
    op: str = "sample_categorical"

    def __post_init__(self) -> None:
        scalars = all(isinstance(option, bool | int | float | str) for option in self.options)
        if (
            not self.options
            or not scalars
            or len(set(map(_typed, self.options))) != len(self.options)
        ):
            expected = "different options, each a number or text"
            raise ValueError(f"{self.op}: expected {expected}, found {self.options}")
        given = self.probabilities
        if given and (
            len(given) != len(self.options)
            or not all(math.isfinite(p) and p >= 0 for p in given)
            or not sum(given) > 0
        ):
            expected = f"{len(self.options)} weights of at least 0, not all of them 0"
            raise ValueError(f"{self.op}: expected {expected}, found {given}")

    def arguments(self, value: Value) -> tuple[Scalar, ...]:
        """The chosen one, then all options."""
        return (*value, *self.options)

    def fault(self, value: Value) -> str | None:
        """Why this is not one of the options."""
        if len(value) == 1 and _typed(value[0]) in map(_typed, self.options):
            return None
        listed = ", ".join(map(repr, self.options))
        return f"expected one of {listed}, found {', '.join(map(repr, value))}"

    def draw(self, rng: np.random.Generator) -> Value:
        """One option, by its probability if there are any."""
        if not self.probabilities:
            return (self.options[int(rng.integers(len(self.options)))],)
        return (self.options[weighted(self.probabilities, rng)],)

    def near(self, value: Value) -> tuple[Value, ...]:
        """Of numbers the one before and the one after; of anything else all others. None that the
        program never draws.
        """
        here = self._index(value)
        numbers = all(isinstance(o, int | float) and not isinstance(o, bool) for o in self.options)
        drawn = [
            i for i in range(len(self.options)) if not self.probabilities or self.probabilities[i]
        ]
        below, above = [i for i in drawn if i < here], [i for i in drawn if i > here]
        places = (*below[-1:], *above[:1]) if numbers else (*below, *above)
        return tuple((self.options[i],) for i in places)

    def place(self, value: Value) -> float:
        """The option's place among all."""
        return self._index(value) / max(1, len(self.options) - 1)

    def _index(self, value: Value) -> int:
        return [_typed(o) for o in self.options].index(_typed(value[0]))


@dataclass(frozen=True, slots=True)
class Tile:
    """Factors of an extent, outermost first, whose product it is: uniformly among all of which the
    last is at most ``max_inner`` (`sample_perfect_tile`), or of which those from ``position`` on
    have a product that ``inner_factor`` divides (`sample_partitioned_tile`).

    Raises:
        ValueError: if there are no such factors.
    """

    extent: int
    parts: int
    max_inner: int = 0  # none, where the tile is partitioned
    position: int = 0
    inner_factor: int = 0

    def __post_init__(self) -> None:
        if self.extent < 1 or not 1 <= self.parts <= MAX_PARTS:
            expected = f"an extent of at least 1 and 1 to {MAX_PARTS} factors"
            raise ValueError(f"{self.op}: expected {expected}, found {self.extent}, {self.parts}")
        if not self._splits():
            expected = "factors that its conditions leave"
            raise ValueError(f"{self.op}: expected {expected}, found none of {self.extent}")

    @property
    def op(self) -> str:
        """The name of the entry."""
        return "sample_partitioned_tile" if self.inner_factor else "sample_perfect_tile"

    def arguments(self, value: Value) -> tuple[Scalar, ...]:
        """The extent, the condition, the factors."""
        own = (self.position, self.inner_factor) if self.inner_factor else (self.max_inner,)
        return (self.extent, *own, *value)

    def fault(self, value: Value) -> str | None:
        """Why these are not such factors."""
        factors = [v for v in value if isinstance(v, int) and not isinstance(v, bool) and v > 0]
        shown = " * ".join(map(str, value))
        if len(factors) != len(value) or len(value) != self.parts:
            return f"expected {self.parts} factors of {self.extent}, found {shown}"
        if math.prod(factors) != self.extent:
            return f"expected factors of {self.extent}, found {shown} = {math.prod(factors)}"
        if self.inner_factor:
            inner = math.prod(factors[self.position :])
            if inner % self.inner_factor:
                return f"expected {self.inner_factor} to divide the inner part, found {inner}"
        elif factors[-1] > self.max_inner:
            return f"expected at most {self.max_inner} for the innermost, found {factors[-1]}"
        return None

    def draw(self, rng: np.random.Generator) -> Value:
        """Factors, each way equally likely."""
        splits = self._splits()
        inner = splits[weighted([ways for _, ways in splits], rng)][0]
        border = self._border
        outside = _uniform(self.extent // inner, border, rng)
        return (*outside, *_uniform(inner, self.parts - border, rng))

    @property
    def _border(self) -> int:
        """Where the factors that the condition is about begin."""
        return self.position if self.inner_factor else self.parts - 1

    def _splits(self) -> tuple[tuple[int, int], ...]:
        """Each product of the factors from the border on, with its number of ways."""
        border, found = self._border, []
        for inner in divisors(self.extent):
            fits = inner % self.inner_factor == 0 if self.inner_factor else inner <= self.max_inner
            ways = _ways(self.extent // inner, border) * _ways(inner, self.parts - border)
            if fits and ways:
                found.append((inner, ways))
        return tuple(found)

    def near(self, value: Value) -> tuple[Value, ...]:
        """A prime moved from one factor to another."""
        numbers, found = [int(v) for v in value], []
        for source in range(self.parts):
            for prime in sorted(set(primes(numbers[source]))):
                for target in range(self.parts):
                    if target == source:
                        continue
                    moved = [*numbers]
                    moved[source] //= prime
                    moved[target] *= prime
                    if self.fault(tuple(moved)) is None:
                        found.append(tuple(moved))
        return tuple(dict.fromkeys(found))

    def place(self, value: Value) -> float:
        """The logarithm of the inner part by that of the extent."""
        inner = math.prod(int(v) for v in value[self._border :])
        return math.log(inner) / math.log(self.extent) if self.extent > 1 else 0.0


def weighted(weights: Sequence[float], rng: np.random.Generator) -> int:
    """A place in a list of weights, as likely as its weight."""
    edges = np.cumsum(weights, dtype=np.float64)
    place = int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))
    return min(place, len(weights) - 1)


def _typed(value: Scalar) -> tuple[type, Scalar]:
    return type(value), value


@lru_cache(maxsize=1024)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, in ascending order."""
    found = {1}
    for prime in primes(number):
        found |= {prime * d for d in found}
    return tuple(sorted(found))


@lru_cache(maxsize=4096)
def primes(number: int) -> tuple[int, ...]:
    """The prime factors in ascending order, each as often as it divides."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return tuple([*found, number] if number > 1 else found)


def _ways(number: int, parts: int) -> int:
    """In how many ways a number is a product of so many factors, their order told apart."""
    if parts == 0:
        return int(number == 1)
    found = primes(number)
    counts = [found.count(prime) for prime in sorted(set(found))]
    return math.prod(math.comb(count + parts - 1, parts - 1) for count in counts)


def _uniform(number: int, parts: int, rng: np.random.Generator) -> tuple[int, ...]:
    """One of those ways, equally likely: the exponents of each prime by bars among stars."""
    factors = [1] * parts
    found = primes(number)
    for prime in sorted(set(found)):
        places = found.count(prime) + parts - 1
        bars = sorted(rng.choice(places, parts - 1, replace=False).tolist())
        edges = [-1, *bars, places]
        for i, (left, right) in enumerate(pairwise(edges)):
            factors[i] *= prime ** (right - left - 1)
    return tuple(factors)
