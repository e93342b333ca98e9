"""Linear equations over whole numbers in ranges, which each equation narrows in turn (bounds
consistency): an empty range proves that they have no common solution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd, inf
from typing import TypeAlias

from kernelwright.env.compiler.ir.nodes import Expr

# Rounds of narrowing, one of which ends it where nothing changes.
ROUNDS = 4

# A loop variable, an extent, or a term that is not linear in them.
Term: TypeAlias = str | Expr
# A variable of a system: the distance between the values of a term of the loops around both
# iterations ("d"), a value in the first ("x") or the second ("y"), what extents alone say ("n"), or
# how far apart times are ("t").
Name: TypeAlias = tuple[str, Term]
Factors: TypeAlias = dict[Name, int]


@dataclass(slots=True)
class System:
    """Equations ``number + sum of factor * variable = 0`` over whole numbers in ranges, and
    variables that are 0 where all of some others are.
    """

    equations: list[tuple[tuple[tuple[Name, int], ...], int]] = field(default_factory=list)
    ranges: dict[Name, tuple[float, float]] = field(default_factory=dict)
    is_empty: bool = False
    functions: dict[Name, tuple[Name, ...]] = field(default_factory=dict)

    def copy(self) -> System:
        """A system of its own with the same equations and ranges."""
        return System(list(self.equations), dict(self.ranges), self.is_empty, dict(self.functions))

    def equal(self, factors: Factors, number: int) -> None:
        """Ask that a sum is 0."""
        terms = tuple((name, factor) for name, factor in factors.items() if factor)
        if not terms:
            self.is_empty = self.is_empty or number != 0
            return
        if number % gcd(*(factor for _, factor in terms)):
            self.is_empty = True
        self.equations.append((terms, number))

    def function(self, value: Name, arguments: tuple[Name, ...]) -> None:
        """Say that a variable is 0 where some others are: the distance between the values of a
        function where those of its arguments are the others.
        """
        self.functions[value] = arguments

    def within(self, name: Name, low: float, high: float) -> None:
        """Ask that a variable is in a range."""
        least, greatest = self.ranges.get(name, (-inf, inf))
        low, high = max(low, least), min(high, greatest)
        self.ranges[name] = (low, high)
        self.is_empty = self.is_empty or low > high

    def holds_nothing(self) -> bool:
        """Whether the equations surely have no common solution; narrows the ranges."""
        for _ in range(ROUNDS):
            if self.is_empty:
                return True
            before = dict(self.ranges)
            for value, arguments in self.functions.items():
                if all(self.ranges.get(name) == (0, 0) for name in arguments):
                    self.within(value, 0, 0)
            for terms, number in self.equations:
                self._narrow(terms, number)
                if self.is_empty:
                    return True
            if self.ranges == before:
                break
        return False

    def _narrow(self, terms: tuple[tuple[Name, int], ...], number: int) -> None:
        parts = []
        for name, factor in terms:
            low, high = self.ranges.get(name, (-inf, inf))
            ends = factor * low, factor * high
            parts.append(ends if factor > 0 else ends[::-1])
        for place, (name, factor) in enumerate(terms):
            others = parts[:place] + parts[place + 1 :]
            least = number + sum(low for low, _ in others)
            greatest = number + sum(high for _, high in others)
            if factor < 0:
                # factor * v = -rest, so that v = rest / |factor|
                low, high = _ceil(least, -factor), _floor(greatest, -factor)
            else:
                low, high = _ceil(-greatest, factor), _floor(-least, factor)
            self.within(name, low, high)


def _floor(value: float, divisor: int) -> float:
    return value // divisor if abs(value) != inf else value


def _ceil(value: float, divisor: int) -> float:
    return -(-value // divisor) if abs(value) != inf else value
