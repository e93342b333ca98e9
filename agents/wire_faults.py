"""What goes wrong between a client and a server, made to go wrong on purpose: refusals, overload,
broken connections, and answers with status 200 that are none.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from kernelwright.agents.chat import ChatRequest, digest
from kernelwright.env.options import OptionError

JSON = "application/json"
# What a turn is called in which nothing goes wrong.
FINE = "ok"
Manner = Literal["whole", "hang", "drop", "cut"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server sends; ``manner`` is how: nothing at all (``hang``, ``drop``), or a body that
    ends early (``cut``).
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON
    manner: Manner = "whole"


Body = dict[str, Any]
# From the answer that there would have been to what is sent instead.
WireFault = Callable[[Body], Reply]


def _refused(
    status: int, message: str, type_: str, code: str | None = None, **headers: str
) -> WireFault:
    error = {"message": message, "type": type_, "param": None, "code": code}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda body: Reply(status, json.dumps({"error": error}).encode(), named)


def _changed(**fields: Any) -> WireFault:
    return lambda body: Reply(200, json.dumps({**body, **fields}).encode())


def _choice(**fields: Any) -> WireFault:
    """The first choice with other fields; ``content`` goes into its message."""

    def change(body: Body) -> Reply:
        if "choices" not in body:
            return _changed(output=[])(body)
        choice = dict(body["choices"][0])
        given = dict(fields)
        if "content" in given:
            choice["message"] = {**choice["message"], "content": given.pop("content")}
        return Reply(200, json.dumps({**body, "choices": [{**choice, **given}]}).encode())

    return change


def _without(name: str) -> WireFault:
    def change(body: Body) -> Reply:
        return Reply(200, json.dumps({k: v for k, v in body.items() if k != name}).encode())

    return change


def _raw(text: str, content_type: str = JSON) -> WireFault:
    return lambda body: Reply(200, text.encode(), {}, content_type)


def _manner(manner: Manner) -> WireFault:
    return lambda body: Reply(200, json.dumps(body).encode(), {}, JSON, manner)


_BUSY = "Rate limit reached for requests"
_LONG = "This model's maximum context length is 8192 tokens; the messages have more"
WIRE_FAULTS: dict[str, WireFault] = {
    "rate_limit": _refused(429, _BUSY, "requests", "rate_limit_exceeded"),
    "rate_limit_hint": _refused(
        429, _BUSY, "requests", "rate_limit_exceeded", retry_after_ms="20", retry_after="1"
    ),
    "rate_limit_long": _refused(429, _BUSY, "requests", "rate_limit_exceeded", retry_after="300"),
    "quota": _refused(
        429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"
    ),
    "bad_key": _refused(
        401, "Incorrect API key provided", "invalid_request_error", "invalid_api_key"
    ),
    "forbidden": _refused(403, "This project may not use the model", "invalid_request_error"),
    "no_model": _refused(
        404, "The model does not exist", "invalid_request_error", "model_not_found"
    ),
    "no_schema": _refused(
        400, "response_format: json_schema is not supported here", "invalid_request_error"
    ),
    "too_long": _refused(400, _LONG, "invalid_request_error", "context_length_exceeded"),
    "server_error": _refused(500, "The server had an error", "server_error"),
    "overloaded": _refused(503, "The engine is overloaded", "server_error"),
    "hang": _manner("hang"),
    "drop": _manner("drop"),
    "cut_body": _manner("cut"),
    "html": _raw("<html><body><h1>502 Bad Gateway</h1></body></html>", "text/html"),
    "broken_json": _raw('{"id": "x", "choices": [{"index": 0, "mess'),
    "no_usage": _without("usage"),
    "no_choices": _changed(choices=[], output=[]),
    "null_choices": _changed(choices=None, output=None),
    "error_in_200": _raw('{"error": {"message": "upstream failed", "code": 502}}'),
    "null_content": _choice(content=None),
    "content_filter": _choice(finish_reason="content_filter", content=None),
    "odd_finish": _choice(finish_reason="eos_token"),
}
# Those that mean something only where the request asks for answers by a schema.
OF_SCHEMAS = frozenset({"no_schema"})


class Script:
    """Which calls go wrong, and how.

    By rates the draw is a function of the seed, the request and how often that was sent before, so
    the order of other calls decides nothing. By turns the calls get what stands in a list, in the
    order in which they arrive, and later ones are fine.

    Raises:
        OptionError: if a fault does not exist, or rates are not between 0 and 1 altogether.
    """

    def __init__(
        self, *, rates: Mapping[str, float] = {}, turns: Sequence[str] = (), seed: int = 0
    ) -> None:
        for name in (*rates, *turns):
            if name not in WIRE_FAULTS and name != FINE:
                raise OptionError("wire", f"one of {', '.join(WIRE_FAULTS)}", repr(name))
        if not (min(rates.values(), default=0) >= 0 and sum(rates.values()) <= 1 + 1e-9):
            raise OptionError("wire", "rates of 0 to 1 altogether", str(dict(rates)))
        self._rates, self._turns, self._seed = dict(rates), tuple(turns), seed
        self._lock, self._count, self._sent = threading.Lock(), 0, Counter[str]()

    def next(self, request: ChatRequest) -> str:
        """The name of what happens to this call, `FINE` for nothing."""
        with self._lock:
            turn, again = self._count, self._sent[request.key]
            self._count += 1
            self._sent[request.key] += 1
        name = self._turns[turn] if turn < len(self._turns) else FINE
        if self._rates:
            name = self._drawn(Random(digest(["wire", self._seed, request.key, again])))
        return FINE if name in OF_SCHEMAS and request.schema is None else name

    def _drawn(self, rng: Random) -> str:
        left = rng.random()
        for name, rate in self._rates.items():
            left -= rate
            if left < 0:
                return name
        return FINE


def read_script(text: str, seed: int = 0) -> Script:
    """A script as it is written on a command line: ``drop=0.1,hang=0.05`` are rates, ``ok,drop,ok``
    are turns.

    Raises:
        OptionError: if it is neither.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if any("=" in part for part in parts):
        return Script(rates=read_rates("wire", text), seed=seed)
    return Script(turns=parts, seed=seed)


def read_rates(option: str, text: str) -> dict[str, float]:
    """Rates by name out of ``name=0.1,other=0.2``.

    Raises:
        OptionError: if it is of another form.
    """
    out: dict[str, float] = {}
    for part in text.split(","):
        name, _, rate = part.partition("=")
        try:
            out[name.strip()] = float(rate)
        except ValueError:
            raise OptionError(option, "name=rate, each with a number", repr(part)) from None
    return out
