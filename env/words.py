"""Words that go with numbers."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """So many of something, as ``1 trial`` and ``2,000 trials``."""
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"
