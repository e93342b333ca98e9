"""Instructions that compete: a bandit chooses which one stands in a prompt, and the least useful is
replaced now and then by one that the model writes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SHIPPED = (
    "Change one thing of the parent, that of which you expect most.",
    "Be bold: another structure, not another number.",
    "Name what limits the parent (memory, latency, number of instructions), then lift that limit.",
    "Take the best idea of another program that is shown into the parent.",
    "Make it simpler: take away what does not pay, then tune what is left.",
    "Look at what failed or was slow, and go the opposite way.",
)
EXPLORE = 0.5
RENEWAL = 8  # uses of every instruction, on average, before one is replaced
ENOUGH = 2  # uses of an instruction before it may be replaced
MOST_GAIN = 1.0  # log2 of speed that counts as a whole success


@dataclass(slots=True, eq=False)
class Instruction:
    """A text, how often it was used, and the sum of its rewards."""

    text: str
    uses: int = 0
    reward: float = 0.0

    @property
    def mean(self) -> float:
        """The mean reward."""
        return self.reward / self.uses if self.uses else 0.0


class Instructions:
    """A population of instructions.

    A reward is the gain over the parent in log2, from 0 to `MOST_GAIN`; an answer that came to
    nothing earns 0. Chosen is the greatest upper confidence bound (UCB1, Auer et al. 2002).

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self.population = [Instruction(text) for text in SHIPPED[:count]]
        self._since = 0
        self._used: dict[str, tuple[Instruction, float | None]] = {}

    def choose(self) -> Instruction:
        """The instruction of the next prompt."""
        total = sum(each.uses for each in self.population)

        def bound(each: Instruction) -> float:
            if not each.uses:
                return math.inf
            return each.mean + EXPLORE * math.sqrt(2 * math.log(total) / each.uses)

        chosen = max(self.population, key=bound)
        chosen.uses += 1
        self._since += 1
        return chosen

    def expect(self, key: str, instruction: Instruction, height: float | None) -> None:
        """A candidate came of an instruction; ``height`` is its parent's objective."""
        self._used[key] = instruction, height

    def learn(self, key: str, objective: float | None) -> None:
        """What became of a candidate."""
        instruction, height = self._used.pop(key, (None, None))
        if instruction is not None and objective is not None:
            gain = objective - (height or 0.0)
            instruction.reward += min(max(gain, 0.0), MOST_GAIN) / MOST_GAIN

    @property
    def is_due(self) -> bool:
        """Whether one is to be replaced."""
        return self._since >= RENEWAL * len(self.population)

    def renew(self, text: str | None) -> None:
        """Replace the least useful; None if nothing better was written."""
        self._since = 0
        tried = [each for each in self.population if each.uses >= ENOUGH]
        if text is None or not tried:
            return
        least = min(tried, key=lambda each: each.mean)
        self.population[self.population.index(least)] = Instruction(text)
