"""Rows of the table of agents: bad answers, bad servers and cheats, through every agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from table import Row

GROUPS: dict[str, Callable[[], Iterator[Row]]] = {}
