"""What was spent on language models, and which limit of a budget that reaches."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.env.words import counted
from kernelwright.search.plan import Budget
from kernelwright.search.trial import Event

PICO = 1e12


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls, tokens, and money in millionths of a millionth of a USD: whole numbers, so a sum does
    not depend on its order.
    """

    calls: int = 0
    tokens: int = 0
    picos: int = 0

    @classmethod
    def of(cls, call: Event) -> Spent:
        """What one call cost."""
        return cls(1, call.tokens, cls.picodollars(call.usd))

    @staticmethod
    def picodollars(usd: float) -> int:
        """An amount of money as a whole number."""
        return round(usd * PICO)

    @property
    def usd(self) -> float:
        """The money in USD."""
        return self.picos / PICO

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.picos + other.picos)


def limit_reached(budget: Budget, spent: Spent) -> tuple[str, str] | None:
    """The name of the first limit that is reached, with a sentence; None if none is."""
    if budget.calls is not None and spent.calls >= budget.calls:
        were = "was" if spent.calls == 1 else "were"
        return "calls", f"{counted(spent.calls, 'call')} of the model {were} made"
    if budget.tokens is not None and spent.tokens >= budget.tokens:
        return "tokens", f"{spent.tokens} tokens were spent"
    if budget.usd is not None and spent.picos >= Spent.picodollars(budget.usd):
        return "usd", f"{spent.usd:.6g} USD were spent"
    return None
