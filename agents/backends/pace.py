"""Time for those who wait for models, and how much of something may happen in a minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Protocol

MINUTE_S = 60.0


class Clock(Protocol):
    """Seconds that pass, and waiting for them."""

    def now(self) -> float:
        """Monotonic seconds."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class WallClock:
    """The machine's own time."""

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class Entry:
    """Something that happened at a time: so much of it, which may be corrected."""

    def __init__(self, at: float, amount: float) -> None:
        self.at, self.amount = at, amount


class Window:
    """At most so much in any minute, by any number of threads.

    A bucket that fills steadily lets twice its size through in its first minute, which is what
    servers answer with 429; a window that slides does not. What is larger than the limit passes
    alone.
    """

    def __init__(self, limit: float, *, span_s: float = MINUTE_S) -> None:
        self._limit, self._span_s = limit, span_s
        self._entries: deque[Entry] = deque()
        self._lock = threading.Lock()

    def take(self, amount: float, now: float) -> Entry | float:
        """The entry of what may happen now, or the seconds after which to ask again."""
        with self._lock:
            while self._entries and self._entries[0].at + self._span_s <= now:
                self._entries.popleft()
            used, excess = sum(e.amount for e in self._entries), 0.0
            excess = used + amount - self._limit
            if excess <= 0 or not self._entries:
                entry = Entry(now, amount)
                self._entries.append(entry)
                return entry
            for old in self._entries:
                excess -= old.amount
                if excess <= 0:
                    return old.at + self._span_s - now
            return self._entries[-1].at + self._span_s - now

    def give_back(self, entry: Entry) -> None:
        """What was taken did not happen after all."""
        with self._lock:
            if entry in self._entries:
                self._entries.remove(entry)
