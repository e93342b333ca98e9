"""A circuit breaker: who fails again and again is left alone for a while."""

from __future__ import annotations

import threading

from kernelwright.agents.chat import BackendError


class CircuitOpenError(BackendError):
    """A call that was not made, because too many before it failed; it is not tried again soon."""

    def __init__(self, message: str, after_s: float) -> None:
        super().__init__("transient", message, after_s=after_s)


class Breaker:
    """Closed until ``most`` calls in a row fail; then open for ``cooldown_s``; then half open: one
    call is let through, which closes it or opens it again.
    """

    def __init__(self, most: int, cooldown_s: float) -> None:
        self._most, self._cooldown_s = most, cooldown_s
        self._failed = 0
        self._opened: float | None = None
        self._probing = False
        self._lock = threading.Lock()

    def enter(self, now: float) -> None:
        """See that a call may be made.

        Raises:
            CircuitOpenError: if it may not.
        """
        with self._lock:
            if self._opened is None:
                return
            left_s = self._opened + self._cooldown_s - now
            if left_s > 0 or self._probing:
                wait = max(left_s, 0.0)
                text = f"{self._failed} calls in a row failed; the next is made in {wait:.0f} s"
                raise CircuitOpenError(text, wait)
            self._probing = True

    def leave(self, now: float, *, failed: bool | None) -> None:
        """A call that was let through came to its end; None if it was not made after all."""
        with self._lock:
            if failed is None:
                self._probing = False
                return
            self._failed = self._failed + 1 if failed else 0
            is_open = failed and (self._probing or self._failed >= self._most)
            self._opened = now if is_open else None
            self._probing = False
