"""Candidates from outside: a person or a program hands them in one by one, and this driver proposes
them.

Whatever is handed in is recorded before it is judged, at its place in the campaign, so a campaign
that goes on after an interruption proposes the same again without anybody's help. Where nobody
hands anything in (``kernelwright run``), what is recorded is all there is, and the search ends.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Literal

from kernelwright.env.protocols import Space
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.driver import Journal
from kernelwright.search.trial import Event, Trial, event

# Events of this driver: what was handed in, and the end. What is refused has the events of any
# other driver's proposals.
SUBMITTED, CLOSED = "submitted", "closed"
Refusal = Literal["invalid", "duplicate"]


class External:
    """Proposes what is handed in from outside (`kernelwright mcp`)."""

    # What it records it cannot say again when the campaign goes on.
    is_from_outside = True

    def __init__(self, space: Space, *, seed: int, batch: int, journal: Journal) -> None:
        del space, seed, batch
        self._journal = journal
        self._waiting: deque[Proposal] = deque()
        self._asks = self._refused = 0
        self.told: dict[str, Trial] = {}

    @property
    def stopped(self) -> str | None:
        """Why there is nothing to propose; None while there is something."""
        closing = self._past(CLOSED)
        if closing is not None:
            return str(closing.data["reason"])
        if self._waiting or self._past(SUBMITTED) is not None:
            return None
        return "nothing more was handed in; `kernelwright mcp` takes candidates"

    @property
    def is_behind(self) -> bool:
        """Whether an earlier sitting recorded what the next ask will propose, or its end."""
        return self._past(SUBMITTED) is not None or self._past(CLOSED) is not None

    def hand_in(self, proposal: Proposal) -> None:
        """Have the next ask propose this."""
        self._waiting.append(proposal)

    def withdraw(self) -> None:
        """Take back what was handed in and not proposed yet."""
        self._waiting.clear()

    def refuse(self, kind: Refusal, **data: object) -> None:
        """Record that what was handed in is not proposed: it is no candidate of this campaign, or
        was tried before.
        """
        ask, slot = self._asks + 1, self._refused
        while self._journal.past(kind, ask, slot) is not None:
            slot += 1
        self._refused = slot + 1
        self._journal.record(event(kind, ask, slot, **data))

    def close(self, reason: str) -> None:
        """Let the next ask end the search."""
        self._journal.record(event(CLOSED, self._asks + 1, reason=reason))

    def ask(self, n: int) -> list[Proposal]:
        """What was handed in; in an ask that an earlier sitting made, what it proposed then."""
        if self._past(CLOSED) is not None:
            return []
        is_known = self._past(SUBMITTED) is not None
        self._asks, self._refused = self._asks + 1, 0
        out: list[Proposal] = []
        for slot in range(n):
            past = self._journal.past(SUBMITTED, self._asks, slot)
            if past is None and (is_known or not self._waiting):
                break
            out.append(self._record(slot) if past is None else _proposal(past))
        return out

    def _record(self, slot: int) -> Proposal:
        proposal = self._waiting.popleft()
        data = {
            "candidate": json.loads(dumps(proposal.candidate)),
            "key": proposal.candidate.key,
            "proposer": proposal.proposer,
            "parents": list(proposal.parents),
        }
        self._journal.record(event(SUBMITTED, self._asks, slot, **data))
        return proposal

    def _past(self, kind: str) -> Event | None:
        """What is recorded at the first place of the next ask."""
        return self._journal.past(kind, self._asks + 1, 0)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Keep what became of them, by key."""
        self.told.update((trial.candidate.key, trial) for trial in trials)


def _proposal(past: Event) -> Proposal:
    data = past.data
    candidate = loads(Candidate, json.dumps(data["candidate"]))
    return Proposal(candidate, data["proposer"], tuple(data["parents"]))
