"""Rows of the table of agents: bad answers, bad servers and cheats, through every agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent_cheats import cheats
from agent_malformed import malformed
from agent_stalled import stalled
from agent_wire import faults
from table import Row

GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "faults": faults,
    "malformed": malformed,
    "stalled": stalled,
    "cheats": cheats,
}
