"""A clock that runs only while somebody works."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class WorkClock:
    """Seconds for which it was running."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        """The seconds so far."""
        return self._sum + (0.0 if self._since is None else time.monotonic() - self._since)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run it meanwhile."""
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._sum, self._since = self(), None
