"""Rows of the table of agents: what feedback, skill and retrieval are worth, and what the hybrid is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from table import Row

GROUPS: dict[str, Callable[[], Iterator[Row]]] = {}
