"""How an attempt at a server fails: its kind by what was sent, how long to wait, and an end to
those that hang.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from kernelwright.agents.chat import BackendError, ErrorKind

T = TypeVar("T")
_OVERFLOW = re.compile(
    r"context[ _](length|size|window)|exceed_context|too many tokens|prompt is too long",
    re.IGNORECASE,
)


class FailedError(BackendError):
    """One attempt that failed, for a reason that may pass or not."""

    def __init__(
        self, kind: ErrorKind, text: str, status: int = 0, after_s: float | None = None
    ) -> None:
        super().__init__(kind, text, after_s=after_s)
        self.status = status


def can_ask_for_less(failure: FailedError) -> bool:
    """Whether the server refused a request for something in it that may be spared."""
    return failure.status in (400, 422) and failure.kind != "repairable"


class TooLateError(Exception):
    """A call that did not end in time."""


def kind_of(status: int, code: object, type_: object, text: str) -> ErrorKind:
    """What kind of failure a status with an error's code, type and message is; 0 is no status."""
    if "insufficient_quota" in (code, type_):
        return "permanent"
    if status == 413 or _OVERFLOW.search(f"{code} {type_} {text}"):
        return "repairable"
    passing = status in (408, 409, 429) or status >= 500 or status == 0
    return "transient" if passing else "permanent"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server wants to be left alone, None if it does not say."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def bounded(call: Callable[[], T], limit_s: float) -> T:
    """What ``call`` returns, if it does in time.

    The client's timeouts are per read, so a server that trickles holds a call for ever; a thread
    that is left behind does not.

    Raises:
        TooLateError: if it does not.
    """
    outcome: list[tuple[T | None, BaseException | None]] = []

    def run() -> None:
        try:
            outcome.append((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    # The client's own timeout comes first where it can, because it says what it waited for.
    thread.join(limit_s + 0.25)
    if not outcome:
        raise TooLateError
    value, error = outcome[0]
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
