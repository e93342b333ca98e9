"""Which of several models to ask: an upper confidence bound on the reward for what a call costs
(Auer, Cesa-Bianchi and Fischer, Machine Learning 47, 2002; costs as in Ding, Qin, Zhang and Liu,
AAAI 2013).

The reward of an answer is between 0 and 1: 0 for what gave no candidate or a candidate that failed,
else the share of all judged trials that it is at least as good as. Ranks need no scale: whether the
best is 2 or 50 times faster than the start, the better model has the higher mean.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelwright.agents.chat import digest

Per = Literal["call", "token", "usd"]
# A model that costs nothing would be infinitely good for its money.
LEAST_COST = 0.02


@dataclass(slots=True)
class Arm:
    """What is known of a model: calls, answers and what they cost, and rewards that have come."""

    calls: int = 0
    answers: int = 0
    tokens: int = 0
    usd: float = 0.0
    rewards: int = 0
    reward: float = 0.0

    def cost(self, per: Per) -> float:
        """The mean cost of an answer in the unit."""
        if per == "call":
            return 1.0
        spent = self.tokens if per == "token" else self.usd
        return spent / self.answers if self.answers else 0.0


class Bandit:
    """Arms by name, and the one to pull next.

    Args:
        names: of the arms.
        seed: decides the order of the first pulls.
        explore: how much an arm is favoured of which little is known; 0 is greedy.
        per: the cost that rewards are divided by.
    """

    def __init__(self, names: Sequence[str], *, seed: int, explore: float, per: Per) -> None:
        order = list(names)
        random.Random(digest(["bandit", seed])).shuffle(order)
        self.arms = {name: Arm() for name in order}
        self._explore, self._per = explore, per
        self._objectives: list[float] = []
        self._failed = 0

    def choose(self, without: Container[str] = ()) -> str:
        """The arm of the greatest index; those that were never pulled come first. Those in
        ``without`` are left out while there are others.
        """
        left = [name for name in self.arms if name not in without]
        return max(left or self.arms, key=self._index)

    def _index(self, name: str) -> float:
        arm = self.arms[name]
        if not arm.calls:
            return math.inf
        pulls = sum(one.calls for one in self.arms.values())
        mean = arm.reward / arm.rewards if arm.rewards else 0.5
        bonus = self._explore * math.sqrt(2 * math.log(pulls) / arm.calls)
        dearest = max(one.cost(self._per) for one in self.arms.values())
        cost = arm.cost(self._per) / dearest if dearest > 0 and arm.answers else 1.0
        return (mean + bonus) / max(cost, LEAST_COST)

    def pulled(self, name: str, tokens: int, usd: float) -> None:
        """A call was made and answered."""
        arm = self.arms[name]
        arm.calls += 1
        arm.answers += 1
        arm.tokens += tokens
        arm.usd += usd

    def failed(self, name: str) -> None:
        """A call was made in vain, and worth nothing."""
        self.arms[name].calls += 1
        self.rewarded(name, 0.0)

    def rewarded(self, name: str, reward: float) -> None:
        """What a call was worth."""
        arm = self.arms[name]
        arm.rewards += 1
        arm.reward += reward

    def judged(self, objective: float | None) -> float:
        """The reward of a trial, which is remembered for those to come."""
        if objective is None:
            self._failed += 1
            return 0.0
        insort(self._objectives, objective)
        low = bisect_left(self._objectives, objective)
        high = bisect_right(self._objectives, objective)
        return (self._failed + (low + high) / 2) / (self._failed + len(self._objectives))
