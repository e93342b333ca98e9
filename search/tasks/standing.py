"""What a scheduler knows of a task, and what it says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

FIRST, FLOOR, GAIN, EVEN = "first", "floor", "gain", "even"


@dataclass(frozen=True, slots=True)
class Standing:
    """A task as far as it has come.

    Attributes:
        name: the task's.
        weight: how often its kernel is called in a unit of traffic.
        place: where it lies among the others (log2 of the numbers in which tasks differ).
        floor_ns: the least time physics allows, 0 where it is not known.
        curve: the best time so far in ns after each of its batches; None while nothing passed.
        last_turn: the number of the turn that it had last, -1 before the first.
        is_open: whether it takes another batch.
    """

    name: str
    weight: float
    place: tuple[float, ...] = ()
    floor_ns: float = 0.0
    curve: tuple[float | None, ...] = ()
    last_turn: int = -1
    is_open: bool = True

    @property
    def batches(self) -> int:
        """How many batches it had."""
        return len(self.curve)

    @property
    def best_ns(self) -> float | None:
        """Its best time, None while nothing passed."""
        return self.curve[-1] if self.curve else None

    @property
    def share(self) -> float:
        """Its part of the weighted total time, not normalised; 0 while it has no time."""
        return self.weight * (self.best_ns or 0.0)

    def after(self, turn: int, best_ns: float | None) -> Standing:
        """The standing after one more batch, with the best time of all its trials."""
        return replace(self, curve=(*self.curve, best_ns), last_turn=turn)


@dataclass(frozen=True, slots=True)
class Turn:
    """Which task gets the next batch, and why: it is its first (``first``), nobody waited longer
    (``floor``), most is expected of it (``gain``, with the expected fall of the weighted total in
    ns), or everybody gets as much (``even``).
    """

    task: int
    why: str
    gain_ns: float | None = None


class Scheduler(Protocol):
    """Gives out batches. A pure function of the standings: it keeps nothing of its own."""

    def choose(self, standings: Sequence[Standing]) -> Turn | None:
        """Who is next; None if no task is open."""
        ...


def open_tasks(standings: Sequence[Standing]) -> list[int]:
    """The numbers of the tasks that take another batch."""
    return [i for i, standing in enumerate(standings) if standing.is_open]


def newcomer(standings: Sequence[Standing]) -> int | None:
    """The open task without a batch that the roofline says most of (its weight times its least
    time), the first of equals; None if all had one.
    """
    fresh = [i for i in open_tasks(standings) if not standings[i].batches]
    if not fresh:
        return None
    return min(fresh, key=lambda i: (-standings[i].weight * standings[i].floor_ns, i))


def longest_waiting(standings: Sequence[Standing]) -> int:
    """The open task whose last turn is longest ago."""
    return min(open_tasks(standings), key=lambda i: (standings[i].last_turn, i))


def distance(left: Standing, right: Standing) -> float:
    """How far apart two tasks lie, in doublings."""
    return math.dist(left.place, right.place)
