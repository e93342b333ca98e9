"""The seam between the campaign and whoever proposes: ask and tell.

Law of replay: a driver is a pure function of (seed, batch size, trials told in proposal order). It
gets data, never the campaign, so the number of workers, a restart or the clock cannot change what
it proposes.

A driver is a class called with the space, ``seed=``, ``batch=`` and its own keyword options, which
come from the campaign file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kernelwright.env.types import Proposal
from kernelwright.search.trial import Event, Trial


class Driver(Protocol):
    """Proposes candidates and learns from trials."""

    @property
    def stopped(self) -> str | None:
        """Why it has nothing more to propose; None while it has."""
        ...

    def ask(self, n: int) -> Sequence[Proposal]:
        """At most ``n`` proposals; none means that it has stopped, and `stopped` says why."""
        ...

    def tell(self, trials: Sequence[Trial]) -> None:
        """The trials of its proposals, in proposal order; a baseline that is itself a trial comes
        first.
        """
        ...


@dataclass(frozen=True, slots=True)
class Notice:
    """What is going on and stands in no record: a model is ``asked``; it failed in passing, for a
    ``reason``, and is asked ``again``; or that is ``over`` without an answer.
    """

    kind: Literal["asked", "again", "over"]
    reason: str = ""


class Journal(Protocol):
    """What a driver that pays for its proposals writes into the campaign's record, and reads back
    from it when the campaign goes on.
    """

    def past(self, kind: str, ask: int, slot: int) -> Event | None:
        """The event of that place that an earlier sitting recorded, None if there is none."""
        ...

    def record(self, event: Event) -> None:
        """Record an event: one of a paid call, and any of a driver with ``is_from_outside``, at
        once; others before the next of those at the latest. One that is known is left as it is. Of
        a call that was reserved it is the end.
        """
        ...

    def left_s(self) -> float:
        """The wall seconds that the campaign has left for proposing; infinite without a limit. Only
        how long to wait may depend on it, for what is recorded decides when the campaign goes on.
        """
        ...

    @property
    def unanswered(self) -> Sequence[Event]:
        """The calls that were on their way when an earlier sitting was killed, at the most that
        they can have cost.
        """
        ...

    def reserve(self, call: Event) -> bool:
        """Note that a call is about to be made, and what it can cost at most; False if there is no
        time left for it.
        """
        ...

    def release(self, call: Event) -> None:
        """A call that was reserved came to nothing, and is not recorded."""
        ...

    def notice(self, notice: Notice) -> None:
        """Say what is going on, for whoever watches; it changes nothing."""
        ...
