"""What every attempt at a server passes: rates, concurrency, the circuit breaker, the end of time.

Shared by all threads that ask one backend.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kernelwright.agents.backends.breaker import Breaker
from kernelwright.agents.backends.limits import Limits
from kernelwright.agents.backends.pace import Clock, Entry, WallClock, Window
from kernelwright.agents.chat import BackendError, ChatRequest, estimate_tokens


class Permit:
    """One attempt that was let through; at ``end`` the time for it is over."""

    def __init__(self, tokens: Entry | None, end: float) -> None:
        self._tokens, self.end = tokens, end

    def settle(self, tokens: int) -> None:
        """Say how many tokens it was, of which only the most could be known before."""
        if self._tokens is not None:
            self._tokens.amount = float(tokens)


class Gate:
    """Lets attempts through as `Limits` have it; without limits, all of them at once."""

    def __init__(self, limits: Limits | None = None, clock: Clock | None = None) -> None:
        limits = limits or Limits()
        self.clock = clock or WallClock()
        self._limits = limits
        per_minute = (limits.requests_per_minute, limits.tokens_per_minute)
        self._requests, self._tokens = (Window(n) if n is not None else None for n in per_minute)
        many = limits.concurrency
        self._places = threading.BoundedSemaphore(many) if many is not None else None
        most = limits.breaker
        self._breaker = Breaker(most, limits.cooldown) if most is not None else None
        self._began: float | None = None

    @contextmanager
    def admit(self, request: ChatRequest, left_s: float) -> Iterator[Permit]:
        """Wait until an attempt may be made, for at most so long.

        Raises:
            BackendError: if it may not be made in that time; a `CircuitOpenError` at once.
        """
        end = self.clock.now() + min(left_s, self._left_s())
        if self._breaker is not None:
            self._breaker.enter(self.clock.now())
        asked, failed = False, True
        try:
            with self._place(end):
                tokens = self._wait(request, end)
                asked = True
                yield Permit(tokens, end)
            failed = False
        except BackendError as error:
            failed = error.kind == "transient"
            raise
        finally:
            if self._breaker is not None:
                # That there was no room here says nothing of who would have been asked.
                self._breaker.leave(self.clock.now(), failed=failed if asked else None)

    def _left_s(self) -> float:
        """What is left of the time for all calls."""
        most, now = self._limits.seconds, self.clock.now()
        if most is None:
            return float("inf")
        if self._began is None:
            self._began = now
        left_s = self._began + most - now
        if left_s <= 0:
            raise BackendError("permanent", f"the {most:g} s for calls (limits.seconds) are over")
        return left_s

    @contextmanager
    def _place(self, end: float) -> Iterator[None]:
        if self._places is None:
            yield
            return
        wait = min(max(end - self.clock.now(), 0.0), threading.TIMEOUT_MAX)
        if not self._places.acquire(timeout=wait):
            raise BackendError("transient", f"no place among {self._limits.concurrency} calls")
        try:
            yield
        finally:
            self._places.release()

    def _wait(self, request: ChatRequest, end: float) -> Entry | None:
        """Wait for both rates; the entry of the tokens."""
        if self._requests is not None:
            self._take(self._requests, 1.0, end, "requests")
        if self._tokens is None:
            return None
        asked = sum(estimate_tokens(text) for _, text in request.messages)
        return self._take(self._tokens, asked + request.max_tokens, end, "tokens")

    def _take(self, window: Window, amount: float, end: float, what: str) -> Entry:
        while True:
            found = window.take(amount, self.clock.now())
            if isinstance(found, Entry):
                return found
            if self.clock.now() + found >= end:
                text = f"limits.{what}_per_minute leaves no room for {found:.0f} s"
                raise BackendError("transient", text, after_s=found)
            self.clock.sleep(found)
