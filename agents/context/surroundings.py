"""What surrounds a search, as far as a prompt may speak of it. It is looked at once, when the first
question is asked, and then a part of the campaign's record: a campaign that goes on, is replayed or
is looked at elsewhere sees what it saw then, whatever has become of the machine, of other runs'
folders and of the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelwright.agents.context.device import UNKNOWN, DeviceSheet
from kernelwright.agents.context.library import Passage
from kernelwright.agents.context.profile import Known
from kernelwright.agents.context.shelves import Shelves, as_many_as_fit
from kernelwright.env.types import Candidate
from kernelwright.search.driver import Journal
from kernelwright.search.trial import Event, event

# The kinds of events: what surrounded a search, once; what a question was given to know; what a
# look at its parent found; what a question had to leave out.
SEEN, RETRIEVED, LOOKED, CUT = "surroundings", "retrieved", "parent_examined", "context_cut"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a campaign gives to whoever writes its prompts.

    Args:
        tokens: how long a question may be, as estimated; None for no limit.
        device: looks at the machine.
        explain: what a model of the machine says of a program; it must be a pure function.
        examine: a look at a program that may find something else tomorrow, such as at what a
            compiler makes of it; what it found is recorded.
        passages: collects what may be retrieved; winners are in the order of their worth.
        retrieved: how many passages a question is given at most.
    """

    tokens: int | None = None
    device: Callable[[], DeviceSheet] | None = None
    explain: Callable[[Candidate], Known | None] | None = None
    examine: Callable[[Candidate], Known | None] | None = None
    passages: Callable[[], tuple[Passage, ...]] | None = None
    retrieved: int = 3


NOTHING = Surroundings()


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen when the first question was asked."""

    device: DeviceSheet = UNKNOWN
    passages: tuple[Passage, ...] = ()

    def event(self) -> Event:
        """It as an event."""
        sheet = {"name": self.device.name, "lines": list(self.device.lines)}
        told = [
            {"id": p.id, "source": p.source, "title": p.title, "text": p.text, "apart": p.apart}
            for p in self.passages
        ]
        return event(SEEN, 0, device=sheet, passages=told)

    @classmethod
    def of_event(cls, event: Event) -> Seen:
        """What an earlier sitting saw."""
        data: dict[str, Any] = event.data
        sheet = DeviceSheet(str(data["device"]["name"]), tuple(map(str, data["device"]["lines"])))
        told = (
            Passage(str(p["source"]), str(p["title"]), str(p["text"]), p.get("apart"))
            for p in data["passages"]
        )
        return cls(sheet, tuple(told))

    def shelves(self) -> Shelves | None:
        """The passages with their index; None without any."""
        return Shelves(self.passages) if self.passages else None


def see(around: Surroundings, journal: Journal) -> Seen:
    """What the record says was seen; else what is seen now, which is recorded if it is anything.

    Raises:
        OSError: if something that was asked for cannot be read.
    """
    past = journal.past(SEEN, 0, 0)
    if past is not None:
        return Seen.of_event(past)
    device = around.device() if around.device is not None else UNKNOWN
    told = around.passages() if around.passages is not None else ()
    seen = Seen(device, as_many_as_fit(told))
    if seen != Seen():
        journal.record(seen.event())
    return seen
