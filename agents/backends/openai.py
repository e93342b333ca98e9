"""Any server that speaks OpenAI's Chat Completions: hosted, or local (vLLM, Ollama, llama.cpp).

One retry layer, and it is here: the client's own is off. Transient failures (429 for the rate, 408,
409, 5xx, connection, timeout) are tried again a bounded number of times within one deadline;
permanent ones (a wrong key, an unknown model, an empty account) cost one call. What a server says
it does not know of a request (``max_tokens``, ``temperature``, ``seed``, a JSON schema) is left
away from then on. Servers answer 200 with all manner of things that the client lets through
(missing choices, an error object, a bare string, broken JSON); each has its class here.

The client library is imported by the first call.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field

from kernelwright.agents.backends.reading import read_completion
from kernelwright.agents.backends.wire import Wire
from kernelwright.agents.chat import BackendError, ChatRequest, Completion
from kernelwright.env.options import OptionError

T = TypeVar("T")
FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 8.0
PRICE_KEYS = {"prompt", "completion"}
# Servers without accounts ignore the key, and the client refuses to be made without one.
NO_KEY = "none"
_LOOKS_LIKE_A_KEY = re.compile(r"\b(sk|pk|key|hf|gsk)[-_][\w*.-]{6,}")
_OVERFLOW = re.compile(r"context[ _](length|size|window)|too many tokens", re.IGNORECASE)


class OpenAI:
    """Chat Completions over the ``openai`` client.

    Raises:
        OptionError: if the price list is not one of ``prompt`` and ``completion``.
    """

    def __init__(
        self,
        *,
        model: Annotated[str, Field(min_length=1, description="the model's name at the server")],
        base_url: Annotated[
            str | None, Field(description="the server, up to and with /v1; none is OpenAI's")
        ] = None,
        key_env: Annotated[
            str, Field(min_length=1, description="the environment variable that holds the key")
        ] = "OPENAI_API_KEY",
        timeout: Annotated[
            float, Field(gt=0, le=3600, description="seconds one attempt may take")
        ] = 120.0,
        deadline: Annotated[
            float, Field(gt=0, le=86400, description="seconds all attempts of a call may take")
        ] = 300.0,
        retries: Annotated[
            int, Field(ge=0, le=20, description="attempts after the first, if it failed in passing")
        ] = 3,
        usd_per_million: Annotated[
            dict[str, float] | None,
            Field(description="what a million tokens cost: {prompt, completion}"),
        ] = None,
    ) -> None:
        if usd_per_million is not None:
            _check_prices(usd_per_million)
        self.model = model
        self._base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._key_env = key_env
        self._timeout, self._deadline, self._retries = timeout, deadline, retries
        self._prices = usd_per_million
        self._wire = Wire()
        self._client: Any = None
        self._sleep: Callable[[float], object] = time.sleep
        self._clock: Callable[[], float] = time.monotonic

    @property
    def priced(self) -> bool:
        """Whether completions carry money."""
        return self._prices is not None

    @property
    def missing(self) -> tuple[str, ...]:
        """The key, where the server is one that wants it."""
        if self._key() or self._base_url:
            return ()
        return (f"the environment variable {self._key_env} with an API key",)

    def complete(self, request: ChatRequest) -> Completion:
        """The model's answer.

        Raises:
            BackendError: if there is none within the attempts and the deadline.
        """
        if self.missing:
            raise BackendError("permanent", f"expected {self.missing[0]}, found none")
        end, failed = self._clock() + self._deadline, 0
        while True:
            try:
                answer = self._attempt(request, end - self._clock())
                return read_completion(answer, request, self._prices)
            except BackendError as error:
                raise BackendError(error.kind, self._scrub(error.message)) from None
            except _FailedError as failure:
                if self._can_ask_for_less(failure) and self._wire.step_down(failure.text, request):
                    continue
                failed += failure.kind == "transient"
                delay = failure.after_s
                if delay is None:
                    delay = min(FIRST_DELAY_S * 2.0 ** max(failed - 1, 0), LONGEST_DELAY_S)
                late = self._clock() + delay >= end
                if failure.kind == "transient" and failed <= self._retries and not late:
                    self._sleep(delay)
                    continue
                if failure.status >= 500 and not late and self._wire.drop_schema(request):
                    failed = 0  # llama-cpp-python answers 500 to a schema
                    continue
                raise self._give_up(failure, failed) from None

    @staticmethod
    def _can_ask_for_less(failure: _FailedError) -> bool:
        return failure.status in (400, 422) and not _OVERFLOW.search(failure.text)

    def _give_up(self, failure: _FailedError, failed: int) -> BackendError:
        text = self._scrub(failure.text)
        if failure.kind == "transient":
            return BackendError("transient", f"{text} (attempt {failed}, the last)")
        if failure.status in (401, 403):
            text += f" (the key is the value of {self._key_env})"
        if _OVERFLOW.search(text):
            text += " (the prompt is too long for this model: lower the driver's history)"
        return BackendError("permanent", text)

    def _attempt(self, request: ChatRequest, left_s: float) -> Any:
        """What the client returns, whatever it is.

        Raises:
            _FailedError: if it raised, or took too long.
            BackendError: if what the server sent cannot be read at all.
        """
        import openai

        client = self._connect()
        limit = max(min(self._timeout, left_s), 0.001)
        arguments = {**self._wire.arguments(request), "timeout": limit}
        try:
            return _bounded(lambda: client.chat.completions.create(**arguments), limit)
        except openai.APIStatusError as error:
            raise _FailedError(
                _kind(error.status_code, error.code, error.type),
                f"{error.status_code} {error.message}",
                error.status_code,
                _retry_after(error.response.headers),
            ) from None
        except openai.APIResponseValidationError as error:
            raise BackendError("content", f"the answer is no completion: {error}") from None
        except openai.APIConnectionError as error:  # timeouts are connection errors too
            cause = f": {error.__cause__}" if error.__cause__ else ""
            raise _FailedError("transient", f"{error.message.rstrip('.')}{cause}") from None
        except _TooLateError:
            self._client = None  # its connection still waits
            raise _FailedError("transient", f"no whole answer after {limit:.3g} s") from None
        except openai.APIError as error:
            raise _FailedError(_kind(0, error.code, error.type), error.message) from None
        except (ValueError, RecursionError) as error:
            text = f"the answer cannot be read: {type(error).__name__}: {error}"
            raise BackendError("content", text) from None

    def _connect(self) -> Any:
        import openai

        if self._client is None:
            self._client = openai.OpenAI(
                api_key=self._key() or NO_KEY, base_url=self._base_url, max_retries=0
            )
        return self._client

    def _key(self) -> str:
        return os.environ.get(self._key_env, "").strip()

    def _scrub(self, text: str) -> str:
        """A message without the key, whole or as servers abbreviate it."""
        key = self._key()
        text = text.replace(key, "[key]") if key else text
        return _LOOKS_LIKE_A_KEY.sub("[key]", text)[:1000]


class _FailedError(Exception):
    """One attempt that failed, for a reason that may pass or not."""

    def __init__(self, kind: str, text: str, status: int = 0, after_s: float | None = None) -> None:
        super().__init__(text)
        self.kind, self.text, self.status, self.after_s = kind, text, status, after_s


class _TooLateError(Exception):
    """A call that did not end in time."""


def _kind(status: int, code: object, type_: object) -> str:
    if "insufficient_quota" in (code, type_):
        return "permanent"
    passing = status in (408, 409, 429) or status >= 500 or status == 0
    return "transient" if passing else "permanent"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _check_prices(prices: Mapping[str, float]) -> None:
    if set(prices) != PRICE_KEYS:
        found = ", ".join(sorted(prices)) or "nothing"
        raise OptionError("usd_per_million", "prices for prompt and completion", found)
    for name, value in prices.items():
        if not 0 <= value < float("inf"):
            raise OptionError("usd_per_million", f"a price of at least 0 for {name}", f"{value}")


def _bounded(call: Callable[[], T], limit_s: float) -> T:
    """What ``call`` returns, if it does in time.

    The client's timeouts are per read, so a server that trickles holds a call for ever; a thread
    that is left behind does not.

    Raises:
        _TooLateError: if it does not.
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
        raise _TooLateError
    value, error = outcome[0]
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
