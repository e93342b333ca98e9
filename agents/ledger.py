"""What a campaign has spent on models, and whether there may be one call more."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import chain

from kernelwright.agents.chat import BudgetSpentError, ChatRequest, most_cost
from kernelwright.search.plan import Budget
from kernelwright.search.spending import Spent, limit_reached
from kernelwright.search.trial import MODEL_CALL, Event, Trial
from kernelwright.search.underway import UNDERWAY


class Ledger:
    """Counts what the record says was spent, and what calls on their way may come to at most.

    A call is made while something is left of every limit, so calls one after the other exceed one
    by what the last of them cost and no more. Calls at the same time are counted at their most
    until they have come back.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._spent = Spent()
        # By request: the same one may be on its way several times.
        self._reserved: dict[str, list[Spent]] = {}
        self._lock = threading.Lock()

    def hear(self, event: Event) -> None:
        """Count a call that is in the record, whatever sitting made it, and one whose answer was
        lost with the sitting.
        """
        if event.kind in (MODEL_CALL, UNDERWAY):
            with self._lock:
                # The payload holds the key; it is long, and read by others.
                for key in [key for key in self._reserved if key in event.payload]:
                    self._drop(key)
                self._spent += Spent.of(event)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Trials cost no calls."""

    def reserve(self, request: ChatRequest, usd_per_million: Mapping[str, float] | None) -> None:
        """Set aside what a call may cost at most.

        Raises:
            BudgetSpentError: if a limit is reached without it.
        """
        tokens, usd = most_cost(request, usd_per_million)
        most = Spent(1, tokens, Spent.picodollars(usd))
        with self._lock:
            on_their_way = chain.from_iterable(self._reserved.values())
            reached = limit_reached(self._budget, sum(on_their_way, self._spent))
            if reached is not None:
                raise BudgetSpentError(f"budget.{reached[0]}: {reached[1]}")
            self._reserved.setdefault(request.key, []).append(most)

    def release(self, request: ChatRequest) -> None:
        """A call came to nothing."""
        with self._lock:
            self._drop(request.key)

    def _drop(self, key: str) -> None:
        """One call of this request is no longer on its way."""
        waiting = self._reserved.get(key, [])
        if waiting:
            waiting.pop()
        if not waiting:
            self._reserved.pop(key, None)
