"""Rows of the table of agents: what an agent's record is worth: equal for any number of workers, after kills, without a network, within budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from table import Row

GROUPS: dict[str, Callable[[], Iterator[Row]]] = {}
