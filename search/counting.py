"""What searches are compared by: evaluations, and calls, tokens and money of a model, each up to
the evaluation that came near enough to the best.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.search.efficiency import Trajectory
from kernelwright.search.plan import Budget
from kernelwright.search.spending import Spent
from kernelwright.search.trial import MODEL_CALL, Event, Trial

EVALUATIONS = "evaluations"
# What a model costs, as `Spent` and `Budget` call it.
MODEL = ("calls", "tokens", "usd")


@dataclass(frozen=True, slots=True)
class Cost:
    """Something that is counted: `EVALUATIONS` or one of `MODEL`, and the budget's limit of it."""

    name: str
    limit: float | None = None

    @property
    def words(self) -> str:
        """What sentences call it."""
        return "USD" if self.name == "usd" else self.name

    def beyond(self, spent: float) -> float:
        """The least that a run could have needed which did not get there with what it spent: one
        more than the budget where there are such steps; money has none.
        """
        most = max(spent, self.limit or 0)
        return most if self.name == "usd" else most + 1


@dataclass(frozen=True, slots=True)
class Spending:
    """What a run had spent on a model after 1, 2, … evaluations, and in the end."""

    after: tuple[Spent, ...]
    total: Spent

    @classmethod
    def of(cls, trials: Sequence[Trial], events: Sequence[Event]) -> Spending:
        """Of a run: a trial stands for all calls of the asks up to its own."""
        calls = sorted((e for e in events if e.kind == MODEL_CALL), key=lambda call: call.ask)
        sums = list(itertools.accumulate(map(Spent.of, calls), initial=Spent()))
        asks = _asks(calls, trials, events)
        after = tuple(sums[bisect.bisect_right(asks, trial.ask)] for trial in trials)
        return cls(after, sums[-1])


def _asks(calls: Sequence[Event], trials: Sequence[Trial], events: Sequence[Event]) -> list[int]:
    """The campaign's asks that calls were made in. An agent that asks its model only now and then
    counts its own; what it proposed says which they were.
    """
    judged = {trial.candidate.key: trial.ask for trial in trials}
    proposed = ((e.ask, judged.get(e.data["key"])) for e in events if e.kind == "proposed")
    known = {ask: found for ask, found in proposed if found is not None}
    found = (known.get(call.ask, call.ask) for call in calls)
    return list(itertools.accumulate(found, max))


NOTHING = Spending((), Spent())


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one campaign: its name, how each run went (a trajectory, None where nothing is
    known of how good its candidates are), and what each spent on a model.
    """

    name: str
    trajectories: tuple[Trajectory, ...]
    spendings: tuple[Spending, ...] = ()

    def needed(self, cost: Cost, within: float) -> list[float | None]:
        """What each run needed to within a share of the best; None where it was not reached."""
        counts = [run.evaluations_to(within) for run in self.trajectories]
        if cost.name == EVALUATIONS:
            return list(counts)
        return [
            None if n is None else getattr(spending.after[n - 1], cost.name)
            for n, spending in zip(counts, self.spendings, strict=True)
        ]

    def spent(self, cost: Cost) -> list[float]:
        """What each run spent in the end."""
        if cost.name == EVALUATIONS:
            return [len(run.times) for run in self.trajectories]
        return [getattr(spending.total, cost.name) for spending in self.spendings]

    def at_least(self, cost: Cost, within: float) -> list[float]:
        """What each run needed, or could have needed at least (`Cost.beyond`) if it did not get
        there; also one that ended before, or giving up early would look like being fast.
        """
        pairs = zip(self.needed(cost, within), self.spent(cost), strict=True)
        return [cost.beyond(spent) if need is None else need for need, spent in pairs]


def costs_of(budget: Budget, campaigns: Sequence[Runs]) -> list[Cost]:
    """What campaigns are compared by under a budget: evaluations, and of a model what any of them
    spent.
    """
    costs = [Cost(EVALUATIONS, budget.trials)]
    model = [Cost(name, getattr(budget, name)) for name in MODEL]
    return costs + [cost for cost in model if any(sum(runs.spent(cost)) for runs in campaigns)]
