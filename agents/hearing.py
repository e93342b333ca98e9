"""Between a campaign and a driver that asks models: whoever learns from answers hears what is
recorded of them and what trials the driver is told, in one order, be it now or when a record is
replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernelwright.agents.chat import BackendError, BudgetSpentError, Hears
from kernelwright.env.types import Proposal
from kernelwright.search.driver import Driver, Journal, Notice
from kernelwright.search.trial import MODEL_CALL, Event, Trial


class HeardJournal:
    """A journal whose events are heard, each once, when it is recorded or read back."""

    def __init__(self, journal: Journal, ears: Sequence[Hears]) -> None:
        self._journal, self._ears = journal, tuple(ears)
        self._heard: set[tuple[str, int, int]] = set()
        self.is_asking = False  # a call was noted, and has not come to its end
        for lost in journal.unanswered:
            for ear in self._ears:
                ear.hear(lost)

    def past(self, kind: str, ask: int, slot: int) -> Event | None:
        """The event of that place that an earlier sitting recorded."""
        found = self._journal.past(kind, ask, slot)
        if found is not None:
            self._hear(found)
        return found

    def record(self, event: Event) -> None:
        """Record an event, and let it be heard."""
        self._journal.record(event)
        self.is_asking = self.is_asking and event.kind != MODEL_CALL
        self._hear(event)

    def left_s(self) -> float:
        """The wall seconds that the campaign has left for proposing."""
        return self._journal.left_s()

    @property
    def unanswered(self) -> Sequence[Event]:
        """The calls of earlier sittings that were never answered."""
        return self._journal.unanswered

    def reserve(self, call: Event) -> bool:
        """Note a call that is about to be made, if there is time for it."""
        self.is_asking = self._journal.reserve(call)
        return self.is_asking

    def release(self, call: Event) -> None:
        """Forget a call that came to nothing."""
        self._journal.release(call)
        self.is_asking = False

    def notice(self, notice: Notice) -> None:
        """Pass it on."""
        self._journal.notice(notice)

    def _hear(self, event: Event) -> None:
        place = (event.kind, event.ask, event.slot)
        if place not in self._heard:
            self._heard.add(place)
            for ear in self._ears:
                ear.hear(event)


class Notices:
    """Where notices of calls go: the journal of the driver that makes them, once there is one."""

    def __init__(self) -> None:
        self._journal: Journal | None = None

    def to(self, journal: Journal) -> None:
        """Send them to this journal from now on."""
        self._journal = journal

    def asked(self) -> None:
        """A call begins."""
        self._tell(Notice("asked"))

    def again(self, error: BackendError) -> None:
        """It failed in passing, and is tried again."""
        self._tell(Notice("again", error.message))

    def over(self) -> None:
        """It came to nothing."""
        self._tell(Notice("over"))

    def _tell(self, notice: Notice) -> None:
        if self._journal is not None:
            self._journal.notice(notice)


class HeardDriver:
    """A driver whose trials are heard, and who has nothing to propose once a budget is spent;
    ``begin`` is called before it is asked.
    """

    def __init__(
        self, driver: Driver, ears: Sequence[Hears], begin: Callable[[], None] = lambda: None
    ) -> None:
        self._driver, self._ears, self._begin = driver, tuple(ears), begin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._driver.stopped

    def ask(self, n: int) -> Sequence[Proposal]:
        """The driver's proposals; none where its first call would be beyond the budget."""
        self._begin()
        try:
            return self._driver.ask(n)
        except BudgetSpentError:
            return ()

    def tell(self, trials: Sequence[Trial]) -> None:
        """Let trials be heard, then tell the driver."""
        for ear in self._ears:
            ear.tell(trials)
        self._driver.tell(trials)
