"""Time that passes when somebody waits."""

from __future__ import annotations


class VirtualClock:
    """A clock whose sleepers do not wait; it remembers how long they wanted to."""

    def __init__(self):
        self.slept, self._now = [], 0.0

    def now(self):
        return self._now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self._now += seconds
