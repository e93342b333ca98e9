"""Rows of the table of agents: their records, equal for any number of workers, after kills, without
a network, within budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agent_budgets import budgets
from agent_equal import equal
from agent_kills import kill
from agent_replays import replay
from table import Row

# Kills copy this process, so they come before anything that starts threads in it.
GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "kill": kill,
    "equal": equal,
    "replay": replay,
    "budgets": budgets,
}
