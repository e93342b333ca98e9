"""Where a campaign stands, for whoever watches it; nothing of it is recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kernelwright.search.driver import Notice
from kernelwright.search.plan import Budget
from kernelwright.search.spending import Spent
from kernelwright.search.trial import MODEL_CALL, Event, Trial


@dataclass(frozen=True, slots=True)
class Calls:
    """What was asked of language models so far, within which limits.

    ``is_waiting`` while a call is on its way, which failed in passing and is tried ``again`` for
    the so-manieth time, the last time for a ``reason``.
    """

    budget: Budget
    spent: Spent
    is_waiting: bool = False
    again: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a campaign stands: ``done`` of ``total`` trials, or finalists while confirming.

    ``total`` is None where the budget has no number of trials; ``best`` is the best trial so far by
    objective; a ``note`` stands in its place where there are many tasks, and of a race it is the
    round. ``calls`` is None where
    no model was asked.
    """

    phase: str
    done: int
    total: int | None
    trials: int
    by_status: dict[str, int]
    best: Trial | None
    seconds: float
    replayed: bool = False
    note: str = ""
    calls: Calls | None = None


class Meter:
    """Follows the calls of a campaign, by what is recorded of them and what is noticed."""

    def __init__(self, budget: Budget, past: Iterable[Event]) -> None:
        spent = sum((Spent.of(e) for e in past if e.kind == MODEL_CALL), Spent())
        self._calls = Calls(budget, spent)

    @property
    def calls(self) -> Calls | None:
        """How it stands, None as long as nothing was asked."""
        now = self._calls
        return now if now.is_waiting or now.spent.calls else None

    def notice(self, notice: Notice) -> None:
        """Take up how the call on its way is doing."""
        now = self._calls
        if notice.kind == "again":
            self._calls = replace(now, again=now.again + 1, reason=notice.reason)
        else:
            self._calls = Calls(now.budget, now.spent, is_waiting=notice.kind == "asked")

    def record(self, call: Event) -> None:
        """Take up a call that has come to its end."""
        self._calls = Calls(self._calls.budget, self._calls.spent + Spent.of(call))


def together(parts: Iterable[Calls | None]) -> Calls | None:
    """The calls of several campaigns, of which one at most waits for a model; None if none asked.
    Limits are each campaign's own.
    """
    known = [part for part in parts if part is not None]
    if not known:
        return None
    now = next((part for part in known if part.is_waiting), known[-1])
    return replace(now, budget=Budget(), spent=sum((part.spent for part in known), Spent()))
