"""The one layer of retries: what failed in passing is tried again, a bounded number of times,
within one deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelwright.agents.backends.breaker import CircuitOpenError
from kernelwright.agents.backends.pace import Clock
from kernelwright.agents.chat import BackendError, Completion

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 8.0
# A server says how long to wait, and may say anything; nobody waits longer than this for one call.
LONGEST_ASKED_S = 3600.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to insist: attempts after the first, and seconds for all of them."""

    retries: int
    deadline_s: float = float("inf")

    def within(self, left_s: float) -> Patience:
        """No longer than this."""
        return replace(self, deadline_s=min(self.deadline_s, left_s))


def persist(attempt: Callable[[float], Completion], patience: Patience, clock: Clock) -> Completion:
    """What an attempt gives in the end; each is told how many seconds are left.

    Raises:
        BackendError: the last attempt's, or the first that cannot pass.
    """
    end, failed = clock.now() + patience.deadline_s, 0
    while True:
        try:
            return attempt(end - clock.now())
        except CircuitOpenError:
            raise
        except BackendError as error:
            if error.kind != "transient":
                raise
            failed += 1
            delay = error.after_s
            if delay is None:
                delay = min(FIRST_DELAY_S * 2.0 ** (failed - 1), LONGEST_DELAY_S)
            is_late = delay > LONGEST_ASKED_S or clock.now() + delay >= end
            if failed > patience.retries or is_late:
                text = f"{error.message} (attempt {failed}, the last)"
                raise BackendError("transient", text, after_s=error.after_s) from None
            clock.sleep(delay)
