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

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from kernelwright.agents.backends.addresses import URL_VARIABLE, bare, check_url
from kernelwright.agents.backends.connecting import TooMuchError, connect, sent_elsewhere
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
from kernelwright.agents.backends.secrets import fault_of, scrub, scrubbed
from kernelwright.agents.backends.servers import Servers
from kernelwright.agents.backends.wire import Wire
from kernelwright.agents.chat import BackendError, ChatRequest, Completion
from kernelwright.env.options import OptionError, ReachOption

PRICE_KEYS = {"prompt", "completion"}
MOST_USD = 1e9
KEY_VARIABLE = "OPENAI_API_KEY"
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
            str | None,
            Field(description="the server, up to and with /v1; none is OpenAI's"),
            ReachOption(),
        ] = None,
        key_env: Annotated[
            str | None,
            Field(
                min_length=1,
                description="the environment variable that holds the key; OPENAI_API_KEY unless "
                "base_url names a server, which is sent none then",
            ),
            ReachOption(),
        ] = None,
        timeout: Annotated[
            float, Field(gt=0, le=3600, description="seconds one attempt may take"), ReachOption()
        ] = 120.0,
        deadline: Annotated[
            float,
            Field(gt=0, le=86400, description="seconds all attempts of a call may take"),
            ReachOption(),
        ] = 300.0,
        retries: Annotated[
            int,
            Field(ge=0, le=20, description="attempts after the first, if it failed in passing"),
            ReachOption(),
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
        self._is_named = base_url is not None
        if key_env is not None and not _VARIABLE.fullmatch(key_env):
            expected = "the name of an environment variable, which holds the key"
            found = f"{len(key_env)} characters that are none"  # it may be a key that was pasted
            raise OptionError("key_env", expected, found)
        self.model, self._api = model, api
        self._base_url = os.environ.get(URL_VARIABLE) or None if base_url is None else base_url
        if self._base_url is not None:
            check_url(self._base_url, is_recorded=self._is_named)
        # The key of one server is not for any other that a campaign names.
        self._key_env = key_env or (None if self._is_named else KEY_VARIABLE)
        self._timeout, self._patience = timeout, Patience(retries, deadline)
        self._prices = usd_per_million
        self._gate = Gate()
        self._left_s: Callable[[], float] = lambda: math.inf
        self._on_retry: Again = unheard
        # What is known of the server is read when it is asked first.
        self._servers = Servers()
        self._wire: Wire | None = None
        self._noted: dict[str, Any] = {}
        # Clients that no call uses at the moment: a call that is given up takes its own with it.
        self._idle: list[Any] = []

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

    def keep_to(self, left_s: Callable[[], float]) -> None:
        """Insist no longer than this."""
        self._left_s = left_s

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
        if (fault := fault_of(self._key())) is not None:
            raise BackendError("permanent", f"{self._key_env}: {fault}")
        try:
            patience = self._patience.within(self._left_s())
            return persist(
                lambda left_s: self._attempt(request, left_s),
                patience,
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
            sent = "no key was sent, key_env names none"
            if self._key_env is not None:
                unset = f"the variable for the key, {self._key_env}, is not set"
                sent = f"the key is the value of {self._key_env}" if self._key() else unset
            text += f" ({sent})"
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

        client = self._idle.pop() if self._idle else self._connect()
        is_usable = True
        limit = max(min(self._timeout, left_s), 0.001)
        by_response = self._api == "responses"
        create = client.responses.create if by_response else client.chat.completions.create
        given = response_arguments(wire, request) if by_response else wire.arguments(request)
        try:
            return bounded(lambda: create(**given, timeout=limit), limit)
        except openai.APIStatusError as error:
            said = error.message.removeprefix(f"Error code: {error.status_code}").removeprefix(
                " - "
            )
            text = f"{error.status_code} {said}".rstrip()
            if 300 <= error.status_code < 400:
                text += f" ({sent_elsewhere(error.response.headers.get('location', ''))})"
            raise FailedError(
                kind_of(error.status_code, error.code, error.type, error.message),
                text,
                error.status_code,
                retry_after(error.response.headers),
            ) from None
        except openai.APIResponseValidationError as error:
            raise BackendError("content", f"the answer is no completion: {error}") from None
        except openai.APIConnectionError as error:  # timeouts are connection errors too
            if isinstance(error.__cause__, TooMuchError):
                raise BackendError("content", str(error.__cause__)) from None
            cause = f": {error.__cause__}" if error.__cause__ else ""
            raise FailedError("transient", f"{error.message.rstrip('.')}{cause}") from None
        except TooMuchError as error:
            raise BackendError("content", str(error)) from None
        except TooLateError:
            is_usable = False
            client.close()  # so that whoever still reads from its connection ends, too
            raise FailedError("transient", f"no whole answer after {limit:.3g} s") from None
        except openai.APIError as error:
            kind = kind_of(0, error.code, error.type, error.message)
            raise FailedError(kind, error.message) from None
        except OSError as error:
            raise FailedError("transient", f"{type(error).__name__}: {error}") from None
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise BackendError("content", f"expected a completion, found {unread(error)}") from None
        finally:
            if is_usable:
                self._idle.append(client)

    def _connect(self) -> Any:
        """A client.

        Raises:
            BackendError: if there can be none.
        """
        try:
            return connect(self._key() or NO_KEY, self._base_url, is_named=self._is_named)
        except (ValueError, OSError, ImportError) as error:
            where = "base_url, and the environment's proxies and certificates"
            text = f"no client can be made, see {where}: {error}"
            raise BackendError("permanent", text) from None

    @property
    def _about(self) -> dict[str, str]:
        """Whom notes on the server are about."""
        url = bare(self._base_url or "")  # a variable's URL may hold a password
        return {"base_url": url, "model": self.model, "api": self._api}

    @property
    def _where(self) -> str:
        """The server's address without user, password and query."""
        return bare(self._base_url or OPENAI_URL).rstrip("/")

    def _key(self) -> str:
        return os.environ.get(self._key_env, "").strip() if self._key_env is not None else ""


def _check_prices(prices: Mapping[str, float]) -> None:
    if not PRICE_KEYS <= set(prices) <= {*PRICE_KEYS, "cached"}:
        found = ", ".join(sorted(prices)) or "nothing"
        raise OptionError("usd_per_million", "prices for prompt and completion", found)
    for name, value in prices.items():
        if not 0 <= value <= MOST_USD:
            expected = f"a price of 0 to {MOST_USD:,.0f} for {name}"
            raise OptionError("usd_per_million", expected, f"{value}")
