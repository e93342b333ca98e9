"""Rows of the table of agents: duplicates, edits, time and record of a proposal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from table import Row

GROUPS: dict[str, Callable[[], Iterator[Row]]] = {}
