"""Any server that speaks OpenAI's Chat Completions: hosted, or local (vLLM, Ollama, llama.cpp).

One retry layer (`retrying`): the client's own is off. Transient failures (429 for the rate, 408,
409, 5xx, connection, timeout) are tried again a bounded number of times within one deadline;
permanent ones (a wrong key, an unknown model, an empty account) cost one call. What a server says
it does not know of a request (``max_tokens``, ``temperature``, ``seed``, a JSON schema) is left
away from then on (`wire`), and remembered (`servers`). Servers answer 200 with all manner of things
that the client lets through (missing choices, an error object, a bare string, broken JSON); each
has its class here.

The client library is imported by the first call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from kernelwright.agents.backends.failures import (
    FailedError,
    TooLateError,
    bounded,
    can_ask_for_less,
    kind_of,
    retry_after,
)
from kernelwright.agents.backends.gate import Gate
from kernelwright.agents.backends.reading import read_completion, unread
from kernelwright.agents.backends.responses import read_response, response_arguments
from kernelwright.agents.backends.retrying import Again, Patience, persist, unheard
from kernelwright.agents.backends.secrets import scrub, scrubbed
from kernelwright.agents.backends.servers import Servers
from kernelwright.agents.backends.wire import Wire
from kernelwright.agents.chat import BackendError, ChatRequest, Completion
from kernelwright.env.options import OptionError

PRICE_KEYS = {"prompt", "completion"}
OPENAI_URL = "https://api.openai.com/v1"
# Servers without accounts ignore the key, and the client refuses to be made without one.
NO_KEY = "none"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class OpenAI:
    """Any server with an OpenAI-compatible interface, through the ``openai`` client.

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
            Field(description="what a million tokens cost: {prompt, completion}, also cached"),
        ] = None,
        api: Annotated[
            Literal["chat", "responses"],
            Field(description="the interface: Chat Completions, or Responses"),
        ] = "chat",
    ) -> None:
        if usd_per_million is not None:
            _check_prices(usd_per_million)
        _check_url(base_url)
        if not _VARIABLE.fullmatch(key_env):
            expected = "the name of an environment variable, which holds the key"
            found = f"{len(key_env)} characters that are none"  # it may be a key that was pasted
            raise OptionError("key_env", expected, found)
        self.model, self._api = model, api
        self._base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._key_env = key_env
        self._timeout, self._patience = timeout, Patience(retries, deadline)
        self._prices = usd_per_million
        self._gate = Gate()
        self._on_retry: Again = unheard
        # What is known of the server is read when it is asked first.
        self._servers = Servers()
        self._wire: Wire | None = None
        self._noted: dict[str, Any] = {}
        self._client: Any = None

    @property
    def usd_per_million(self) -> Mapping[str, float] | None:
        """The price list."""
        return self._prices

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

    def pass_through(self, gate: Gate) -> None:
        """Send every attempt through this gate from now on."""
        self._gate = gate

    def on_retry(self, again: Again) -> None:
        """Call this before each further attempt, from now on."""
        self._on_retry = again

    def complete(self, request: ChatRequest) -> Completion:
        """The model's answer.

        Raises:
            BackendError: if there is none within the attempts and the deadline.
        """
        if self.missing:
            raise BackendError("permanent", f"expected {self.missing[0]}, found none")
        try:
            return persist(
                lambda left_s: self._attempt(request, left_s),
                self._patience,
                self._gate.clock,
                lambda error: self._on_retry(self._scrubbed(error)),
            )
        except BackendError as error:
            if not error.is_pause:
                error.message = f"{self.model} at {self._where}: {error.message}"
            raise self._scrubbed(error) from None

    def _scrubbed(self, error: BackendError) -> BackendError:
        """The error without the key."""
        error.message = scrub(error.message, self._key())
        error.args = (error.message,)
        return error

    def _attempt(self, request: ChatRequest, left_s: float) -> Completion:
        """One answer; what a server does not know is left away, and it is asked again at once.

        Raises:
            BackendError: if there is none.
        """
        if self._wire is None:
            self._noted = self._servers.read(self._about) or {}
            self._wire = Wire(self._noted)
        wire, clock = self._wire, self._gate.clock
        end = clock.now() + left_s
        while True:
            try:
                with self._gate.admit(request, end - clock.now()) as permit:
                    answer = self._call(wire, request, permit.end - clock.now())
                    completion = self._read(answer, request)
                    permit.settle(completion.tokens)
            except FailedError as failure:
                if can_ask_for_less(failure) and wire.step_down(failure.message, request):
                    continue
                if failure.status == 500:
                    wire.broke(request)
                raise self._explained(failure) from None
            wire.heard(request, completion)
            if wire.learned != self._noted:
                self._noted = wire.learned
                self._servers.write(self._about, self._noted)
            return completion

    def _read(self, answer: Any, request: ChatRequest) -> Completion:
        read = read_response if self._api == "responses" else read_completion
        completion = read(answer, request, self._prices)
        return scrubbed(completion, self._key())

    def _explained(self, failure: FailedError) -> BackendError:
        text = failure.message
        if failure.status in (401, 403):
            unset = f"the variable for the key, {self._key_env}, is not set"
            given = f"the key is the value of {self._key_env}"
            text += f" ({given if self._key() else unset})"
        if failure.kind == "repairable":
            text += " (the prompt is too long for this model: lower the driver's history)"
        return BackendError(failure.kind, text, after_s=failure.after_s)

    def _call(self, wire: Wire, request: ChatRequest, left_s: float) -> Any:
        """What the client returns, whatever it is.

        Raises:
            FailedError: if it raised, or took too long.
            BackendError: if what the server sent cannot be read at all.
        """
        import openai

        client = self._connect()
        limit = max(min(self._timeout, left_s), 0.001)
        by_response = self._api == "responses"
        create = client.responses.create if by_response else client.chat.completions.create
        given = response_arguments(wire, request) if by_response else wire.arguments(request)
        try:
            return bounded(lambda: create(**given, timeout=limit), limit)
        except openai.APIStatusError as error:
            prefix = f"Error code: {error.status_code} - "
            raise FailedError(
                kind_of(error.status_code, error.code, error.type, error.message),
                f"{error.status_code} {error.message.removeprefix(prefix)}",
                error.status_code,
                retry_after(error.response.headers),
            ) from None
        except openai.APIResponseValidationError as error:
            raise BackendError("content", f"the answer is no completion: {error}") from None
        except openai.APIConnectionError as error:  # timeouts are connection errors too
            cause = f": {error.__cause__}" if error.__cause__ else ""
            raise FailedError("transient", f"{error.message.rstrip('.')}{cause}") from None
        except TooLateError:
            self._client = None  # its connection still waits
            raise FailedError("transient", f"no whole answer after {limit:.3g} s") from None
        except openai.APIError as error:
            kind = kind_of(0, error.code, error.type, error.message)
            raise FailedError(kind, error.message) from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise BackendError("content", f"expected a completion, found {unread(error)}") from None

    def _connect(self) -> Any:
        import openai

        if self._client is None:
            self._client = openai.OpenAI(
                api_key=self._key() or NO_KEY, base_url=self._base_url, max_retries=0
            )
        return self._client

    @property
    def _about(self) -> dict[str, str]:
        """Whom notes on the server are about."""
        url = (self._base_url or "").rpartition("@")[2]  # a variable's URL may hold a password
        return {"base_url": url, "model": self.model, "api": self._api}

    @property
    def _where(self) -> str:
        """The server's address without user, password and query."""
        parts = urlsplit(self._base_url or OPENAI_URL)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"

    def _key(self) -> str:
        return os.environ.get(self._key_env, "").strip()


def _check_prices(prices: Mapping[str, float]) -> None:
    if not PRICE_KEYS <= set(prices) <= {*PRICE_KEYS, "cached"}:
        found = ", ".join(sorted(prices)) or "nothing"
        raise OptionError("usd_per_million", "prices for prompt and completion", found)
    for name, value in prices.items():
        if not 0 <= value < float("inf"):
            raise OptionError("usd_per_million", f"a price of at least 0 for {name}", f"{value}")


def _check_url(url: str | None) -> None:
    """A URL is recorded, so nothing secret may stand in it."""
    parts = urlsplit(url or "http://none")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OptionError("base_url", "a URL, as http://localhost:8000/v1", "another text")
    if parts.username or parts.password or parts.query:
        expected = "a URL without user, password and query (the key comes from key_env)"
        raise OptionError("base_url", expected, f"one at {parts.hostname} with them")
