"""Calls to models that are on their way.

Each is noted before it is made, at the most that it can cost, and forgotten when its answer is in
the record. What is still noted when a run goes on was on its way when the run was killed: its
answer is lost, and it counts as spent. The notes stand beside the record, which is the same whether
a run was killed or not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from kernelwright.search.trial import Event

if TYPE_CHECKING:
    from kernelwright.search.store import Store

# The kind of a note.
UNDERWAY = "underway"


class Underway:
    """The notes of a campaign.

    Args:
        store: where they are kept.
        has_time: whether there is time left for a call of an ask.
    """

    def __init__(self, store: Store, has_time: Callable[[int], bool]) -> None:
        self._store, self._has_time = store, has_time
        self.unanswered = unanswered(store.meta())
        self._now: dict[tuple[int, int], Event] = {}

    def reserve(self, call: Event) -> bool:
        """Note a call, if there is time for it."""
        if not self._has_time(call.ask):
            return False
        self._now[call.ask, call.slot] = call
        self._store.set_meta(**self._meta())
        return True

    def release(self, call: Event) -> None:
        """Forget a call that came to nothing."""
        self._store.set_meta(**self.settled(call))

    def settled(self, call: Event) -> Mapping[str, str]:
        """Forget a call; what is to be recorded together with its answer."""
        return self._meta() if self._now.pop((call.ask, call.slot), None) else {}

    def _meta(self) -> dict[str, str]:
        noted = (*self.unanswered, *self._now.values())
        return {UNDERWAY: json.dumps([[c.ask, c.slot, c.tokens, c.usd] for c in noted])}


def unanswered(meta: Mapping[str, str]) -> tuple[Event, ...]:
    """The calls that were never answered, by what a store knows of its campaign."""
    rows: Iterable[tuple[int, int, int, float]] = json.loads(meta.get(UNDERWAY, "[]"))
    return tuple(Event(UNDERWAY, ask, slot, "{}", tokens, usd) for ask, slot, tokens, usd in rows)
