"""Credit of the arms of a bandit: the area under the curve of their latest successes, and a bonus
for those that were tried rarely.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence


class Credits:
    """Who is to be asked: arms by name, each with its latest successes.

    Args:
        arms: the names, in the order in which ties are broken.
        window: how many outcomes of an arm are remembered.
        explore: the weight of the bonus.
    """

    def __init__(self, arms: Sequence[str], *, window: int, explore: float) -> None:
        self.outcomes = {arm: deque[bool](maxlen=window) for arm in arms}
        self.uses = dict.fromkeys(arms, 0)
        self._explore = explore

    def area(self, arm: str) -> float:
        """The area under the curve of an arm's successes: 1 if all succeeded, 0 if none did."""
        seen = self.outcomes[arm]
        weight = sum(place for place, success in enumerate(seen, start=1) if success)
        return 2 * weight / (len(seen) * (len(seen) + 1)) if seen else 0.0

    def choose(self) -> str:
        """The arm with the best credit; one that was never asked comes first."""
        total = 1 + sum(self.uses.values())

        def credit(arm: str) -> float:
            uses = self.uses[arm]
            if not uses:
                return math.inf
            return self.area(arm) + self._explore * math.sqrt(2 * math.log(total) / uses)

        chosen = max(self.uses, key=credit)
        self.uses[chosen] += 1
        return chosen

    def record(self, arm: str, *, success: bool) -> None:
        """The outcome of a proposal of an arm."""
        self.outcomes[arm].append(success)
