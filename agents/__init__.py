"""Proposers that talk or learn. No chat backend exists yet; ``BACKENDS`` is the table they will be
listed in.
"""

from __future__ import annotations

BACKENDS: dict[str, str] = {}
