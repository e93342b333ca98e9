"""Asking a driver, and which of its proposals are judged: those that are in the space and new, as
far as there is room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kernelwright.env.protocols import Space, explained
from kernelwright.env.types import Proposal
from kernelwright.search.driver import Driver
from kernelwright.search.store import StoreError
from kernelwright.search.trial import Event, event


class DriverError(RuntimeError):
    """A driver raised, or broke the protocol: which ask it was and what happened."""


@contextmanager
def blame(where: str) -> Iterator[None]:
    """Say that it was the driver that raised, and where; that a record cannot be written is not its
    doing.
    """
    try:
        yield
    except StoreError:
        raise
    except (Exception, SystemExit) as error:
        raise DriverError(f"{where}: {type(error).__name__}: {error}") from error


def asked(driver: Driver, ask: int, batch: int) -> list[Proposal]:
    """What a driver proposes for a batch.

    Raises:
        DriverError: if it raises, or answers something else.
    """
    with blame(f"ask {ask}"):
        proposals = list(driver.ask(batch))
    strangers = [p for p in proposals if not isinstance(p, Proposal)]
    if strangers:
        found = type(strangers[0]).__name__
        raise DriverError(f"ask {ask}: expected proposals, found {found} {strangers[0]!r:.80}")
    if len(proposals) > batch:
        raise DriverError(f"ask {ask}: expected at most {batch} proposals, found {len(proposals)}")
    return proposals


def admit(
    space: Space,
    ask: int,
    proposals: Sequence[Proposal],
    known: Mapping[str, int],
    count: int,
    room: int | None,
) -> tuple[list[Proposal], list[Event]]:
    """The proposals of an ask to judge, and events for those that are invalid or known.

    Args:
        space: where they must lie.
        ask: the number of the ask.
        proposals: in the driver's order.
        known: trial numbers by candidate key.
        count: the number of the next trial.
        room: how many may be judged, None for all. What comes after the last one is not looked at.
    """
    fresh: list[Proposal] = []
    events: list[Event] = []
    seen: dict[str, int] = {}
    for slot, proposal in enumerate(proposals):
        if room is not None and len(fresh) >= room:
            break
        key = proposal.candidate.key
        number = known.get(key, seen.get(key))
        if number is not None:
            events.append(event("duplicate", ask, slot, key=key, trial=number))
            continue
        violations = explained(space, proposal.candidate)
        if violations:
            reasons = [v.reason for v in violations]
            text = str(proposal.candidate)
            events.append(event("invalid", ask, slot, key=key, candidate=text, reasons=reasons))
            continue
        seen[key] = count + len(fresh)
        fresh.append(proposal)
    return fresh, events
