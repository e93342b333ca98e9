"""Rows of the table of agents: their records, equal for any number of workers, after kills, without
a network, within budgets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from table import Row

GROUPS: dict[str, Callable[[], Iterator[Row]]] = {}
