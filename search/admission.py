"""Which proposals are judged: those that are in the space and new, as far as there is room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.env.protocols import Space
from kernelwright.env.types import Proposal
from kernelwright.search.trial import Event, event


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
        violations = space.check(proposal.candidate)
        if violations:
            reasons = [v.reason for v in violations]
            text = str(proposal.candidate)
            events.append(event("invalid", ask, slot, key=key, candidate=text, reasons=reasons))
            continue
        seen[key] = count + len(fresh)
        fresh.append(proposal)
    return fresh, events
