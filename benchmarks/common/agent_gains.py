"""Rows of the table of agents: what feedback, skill, retrieval and the hybrid are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from table import Row

GROUPS: dict[str, Callable[[], Iterator[Row]]] = {}
