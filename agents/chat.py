"""The seam to language models: a request, a completion, and what may go wrong between them.

A `ChatRequest` is a value, and its ``key`` names it: two requests with one key are the same bytes
on the wire. A `Completion` is what came back, before anything is read into it; it goes into the
campaign's record and comes back from there equal. `classify` says which completions hold no answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from kernelwright.search.trial import Event, Trial

Message = tuple[str, str]
ErrorKind = Literal["transient", "permanent", "repairable", "content"]

ROLES = ("system", "user", "assistant")
# What a reply without a usable answer is filed under, as kinds of events.
REPLY_CLASSES = ("truncated", "refused", "empty", "unparsable", "wrong_schema")
CHARACTERS_A_TOKEN = 4
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class BackendError(RuntimeError):
    """A call that gave no completion.

    ``transient``: another attempt may do (the backend has made its own already). ``permanent``: no
    attempt will (a wrong key, an unknown model). ``repairable``: this question cannot be answered,
    another one may be (a prompt that is too long). ``content``: the server answered, and the answer
    is no completion. ``after_s`` is how long the server wants to be left alone, and ``answered_by``
    which of several backends it was. One that ``is_pause`` is no failure: the run was to end here
    and to go on later.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        after_s: float | None = None,
        answered_by: str = "",
        is_pause: bool = False,
    ) -> None:
        super().__init__(message)
        if kind not in get_args(ErrorKind):
            expected = ", ".join(get_args(ErrorKind))
            raise ValueError(f"BackendError.kind: expected one of {expected}, found {kind!r}")
        self.kind, self.message = kind, message
        self.after_s, self.answered_by, self.is_pause = after_s, answered_by, is_pause


class BudgetSpentError(BackendError):
    """A call that was not made, because a limit of the campaign's budget is reached."""

    def __init__(self, message: str) -> None:
        super().__init__("permanent", message)


def digest(value: object) -> str:
    """A content hash of anything that JSON holds."""
    text = _CANONICAL.encode(value)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=1024)
def text_hash(text: str) -> str:
    """The content hash of a text; what a conversation repeats is hashed once."""
    return digest(text)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call: the conversation and how it is to be continued.

    ``schema`` is a JSON Schema as canonical JSON text that the reply shall follow, None for text.
    """

    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float
    seed: int
    schema: str | None = None

    def __post_init__(self) -> None:
        if not self.messages:
            raise ValueError("ChatRequest.messages: expected at least one message")
        for role, _ in self.messages:
            if role not in ROLES:
                raise ValueError(f"ChatRequest: expected a role of {ROLES}, found {role!r}")
        if self.max_tokens < 1:
            raise ValueError(f"ChatRequest.max_tokens: expected >= 1, found {self.max_tokens}")

    @property
    def parts(self) -> dict[str, str | int | float | None]:
        """The request in parts short enough to record: texts by their hashes."""
        return {
            **self.settings,
            **{
                f"message {i} ({role})": text_hash(text)
                for i, (role, text) in enumerate(self.messages)
            },
        }

    @property
    def settings(self) -> dict[str, str | int | float | None]:
        """How the conversation is to be continued."""
        return {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "schema": None if self.schema is None else digest(self.schema),
        }

    @property
    def key(self) -> str:
        """The content hash of the whole request."""
        return _key(self)


@lru_cache(maxsize=64)
def _key(request: ChatRequest) -> str:
    return digest(request.parts)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered. ``text`` is None where the server sent none.

    ``injected`` is the ground truth of a simulated model about its own fault: out of band, never
    part of a prompt, None from a real one. ``usage_estimated`` says that the token counts are
    estimates, because the server sent none. ``seconds`` is what a simulated model declares that the
    answer took; nobody waited, and a real one declares nothing. ``cached_tokens`` are those of the
    prompt that the server had read before; ``answered_by`` names which of several backends it was,
    ``down`` those that were asked before it and failed, and ``reasons`` why each of them did.
    """

    text: str | None
    finish_reason: str | None
    model: str
    id: str
    refusal: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usage_estimated: bool = False
    usd: float = 0.0
    injected: str | None = None
    seconds: float = 0.0
    cached_tokens: int = 0
    answered_by: str = ""
    down: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
            if getattr(self, name) < 0:
                raise ValueError(f"Completion.{name}: expected >= 0, found {getattr(self, name)}")
        if not 0 <= self.usd < float("inf"):
            raise ValueError(f"Completion.usd: expected a finite number >= 0, found {self.usd}")
        if not 0 <= self.seconds < float("inf"):
            found = self.seconds
            raise ValueError(f"Completion.seconds: expected a finite number >= 0, found {found}")

    @property
    def plain(self) -> dict[str, Any]:
        """It as JSON has it."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def tokens(self) -> int:
        """All tokens that were paid for."""
        return self.prompt_tokens + self.completion_tokens


class ChatModel(Protocol):
    """A model behind a backend. It knows nothing of campaigns."""

    @property
    def model(self) -> str:
        """The model's name, as it stands in requests."""
        ...

    @property
    def priced(self) -> bool:
        """Whether completions carry money: without prices a budget in money means nothing."""
        ...

    @property
    def missing(self) -> tuple[str, ...]:
        """What the first call would lack on this machine; empty if nothing."""
        ...

    def complete(self, request: ChatRequest) -> Completion:
        """The model's answer.

        Raises:
            BackendError: if there is none; its kind says whether to try again.
        """
        ...


@runtime_checkable
class Hurried(Protocol):
    """A backend that insists, waits or asks others, and can be told how much time there is."""

    def keep_to(self, left_s: Callable[[], float]) -> None:
        """Let no call take longer than the seconds that are left when it begins."""
        ...


@runtime_checkable
class Hears(Protocol):
    """Something that learns what became of answers, as a choice among several models does. What it
    hears is a function of the campaign's record, however often the campaign was interrupted.
    """

    def hear(self, event: Event) -> None:
        """A call's event, or one of what was read into its answer; each comes once, in order."""
        ...

    def tell(self, trials: Sequence[Trial]) -> None:
        """The trials that a driver is told."""
        ...


@dataclass(frozen=True, slots=True)
class Malformed:
    """A reply that holds no candidate: its class (`REPLY_CLASSES`) and a sentence that a model can
    mend it by.
    """

    kind: str
    reason: str

    def __post_init__(self) -> None:
        if self.kind not in REPLY_CLASSES:
            expected = ", ".join(REPLY_CLASSES)
            raise ValueError(f"Malformed.kind: expected one of {expected}, found {self.kind!r}")


def classify(completion: Completion) -> str | Malformed:
    """The text of a whole answer, or why there is none.

    A completion cut at the token limit is never read, even where it looks whole: what is missing
    cannot be known.
    """
    if completion.refusal:
        return Malformed("refused", f"the model refused: {completion.refusal:.200}")
    if completion.finish_reason == "content_filter":
        return Malformed("refused", "the answer was withheld by a content filter")
    if completion.finish_reason == "length":
        return Malformed("truncated", "the answer was cut off at the token limit")
    if completion.text is None or not completion.text.strip():
        return Malformed("empty", f"there was no answer (finish reason {completion.finish_reason})")
    return completion.text


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is, where nobody counted."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


def price(
    prompt_tokens: int,
    completion_tokens: int,
    usd_per_million: Mapping[str, float] | None,
    cached_tokens: int = 0,
) -> float:
    """What tokens cost by a price list with ``prompt`` and ``completion``, and perhaps ``cached``
    for those of the prompt that the server had read before; 0 without a list.
    """
    if usd_per_million is None:
        return 0.0
    cached = min(cached_tokens, prompt_tokens)
    spent = (prompt_tokens - cached) * usd_per_million["prompt"]
    spent += cached * usd_per_million.get("cached", usd_per_million["prompt"])
    spent += completion_tokens * usd_per_million["completion"]
    return spent / 1e6


def most_cost(
    request: ChatRequest, usd_per_million: Mapping[str, float] | None
) -> tuple[int, float]:
    """The tokens and the USD that a call can come to at most, by estimate."""
    asked = sum(estimate_tokens(text) for _, text in request.messages)
    return asked + request.max_tokens, price(asked, request.max_tokens, usd_per_million)


def line_hashes(text: str) -> str:
    """Four hexadecimal digits a line: enough to say which line of a text is another one, where the
    text itself is not kept.
    """
    return "".join(map(_line_hash, text.split("\n")))


@lru_cache(maxsize=4096)
def _line_hash(line: str) -> str:
    return digest(line)[:4]


def first_difference(text: str, hashes: str) -> int | None:
    """The number, from 1, of the first line of ``text`` that is not the one of `line_hashes`."""
    now = line_hashes(text)
    for number, at in enumerate(range(0, max(len(now), len(hashes)), 4), 1):
        if now[at : at + 4] != hashes[at : at + 4]:
            return number
    return None


def canonical_schema(schema: Mapping[str, Any] | None) -> str | None:
    """A JSON Schema as the text that `ChatRequest` holds."""
    return None if schema is None else _CANONICAL.encode(schema)
