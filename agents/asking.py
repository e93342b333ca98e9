"""One question to a model: sent, recorded, and read back where it was asked before.

A paid answer is recorded before anything is read into it, so a campaign that is killed pays no call
twice whose answer had come, and a finished one runs again without a network. A record of another
question is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.agents.chat import (
    BackendError,
    ChatModel,
    ChatRequest,
    Completion,
    Message,
    digest,
    first_difference,
    line_hashes,
)
from kernelwright.env.records import dumps, loads
from kernelwright.search.driver import Journal
from kernelwright.search.trial import MODEL_CALL, Event, event

# Calls in a row that failed in passing, or gave no completion, before the campaign is stopped, to
# be resumed later.
MOST_LOST = 3


class ReplayMismatch(RuntimeError):  # noqa: N818 - it is no failure of the program, but of the record
    """A journal holds another question than the one asked now; the message names what differs."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How answers are drawn: ``seed`` is the campaign's, ``schema`` a JSON Schema as canonical
    text, None for text.
    """

    seed: int
    max_tokens: int
    temperature: float
    schema: str | None = None


class Asker:
    """Puts questions to a model, each at its place in the campaign's record.

    Args:
        backend: the model.
        journal: the campaign's record.
        sampling: how answers are drawn unless a question says otherwise.
        template: the version of the prompts (`prompts.render.version`), for the record.
    """

    def __init__(
        self, backend: ChatModel, journal: Journal, sampling: Sampling, template: str = ""
    ) -> None:
        self._backend, self._journal, self.sampling = backend, journal, sampling
        self.template = template
        self._lost = 0

    def request(
        self, ask: int, slot: int, messages: tuple[Message, ...], sampling: Sampling | None = None
    ) -> ChatRequest:
        """The question of a place: its seed is the campaign's and the place's."""
        drawn = sampling or self.sampling
        return ChatRequest(
            model=self._backend.model,
            messages=messages,
            max_tokens=drawn.max_tokens,
            temperature=drawn.temperature,
            seed=int(digest([drawn.seed, ask, slot, "sampling"])[:7], 16),
            schema=drawn.schema,
        )

    def answer(self, ask: int, slot: int, request: ChatRequest) -> Completion | BackendError:
        """What the model says, or said when this was asked before; an error is one that failed in
        passing or gave no completion.

        Raises:
            BackendError: if no call can succeed, or several in a row were lost; the campaign can be
                resumed. A `BudgetSpentError`, if no more calls are to be made.
            ReplayMismatch: if the record holds another question at this place.
        """
        past = self._journal.past(MODEL_CALL, ask, slot)
        answer = self._asked(request) if past is None else recorded(past, request, self.template)
        if past is None:
            self._journal.record(call_event(ask, slot, request, answer, self.template))
        self._lost = self._lost + 1 if isinstance(answer, BackendError) else 0
        return answer

    def _asked(self, request: ChatRequest) -> Completion | BackendError:
        answer: Completion | BackendError
        try:
            answer = self._backend.complete(request)
        except BackendError as error:
            if error.kind == "permanent":
                raise
            if self._lost + 1 >= MOST_LOST:
                text = f"{MOST_LOST} calls in a row were lost, the last: {error.message}"
                raise BackendError(error.kind, text, answered_by=error.answered_by) from None
            answer = error
        if not isinstance(answer, Completion | BackendError):
            found = f"{type(answer).__name__} {answer!r:.80}"
            raise TypeError(f"backend {self._backend.model}: expected a Completion, found {found}")
        return answer


def call_event(
    ask: int,
    slot: int,
    request: ChatRequest,
    answer: Completion | BackendError,
    template: str = "",
) -> Event:
    """The event of a call: the answer as it came, the question by the hashes of its parts and of
    the lines of its messages, and of its templates.
    """
    lines = [line_hashes(text) for _, text in request.messages]
    data: dict[str, Any] = {"key": request.key, "request": request.parts, "model": request.model}
    data |= {"lines": lines} | ({"template": template} if template else {})
    if isinstance(answer, BackendError):
        return event(MODEL_CALL, ask, slot, **data, completion=None, error=error_data(answer))
    completion = json.loads(dumps(answer))
    return replace(
        event(MODEL_CALL, ask, slot, **data, completion=completion, error=None),
        tokens=answer.tokens,
        usd=answer.usd,
    )


def error_data(error: BackendError) -> dict[str, Any]:
    """What is recorded of a call that gave no completion."""
    by = {"answered_by": error.answered_by} if error.answered_by else {}
    return {"kind": error.kind, "message": error.message, **by}


def answer_of(data: Mapping[str, Any]) -> Completion | BackendError:
    """The answer that a call's event, or a recording, holds."""
    error = data["error"]
    if error is not None:
        return BackendError(
            error["kind"], error["message"], answered_by=error.get("answered_by", "")
        )
    return loads(Completion, json.dumps(data["completion"]))


def recorded(past: Event, request: ChatRequest, template: str = "") -> Completion | BackendError:
    """The recorded answer to the same question.

    Raises:
        ReplayMismatch: if it is the answer to another one.
    """
    data = past.data
    if data["key"] != request.key:
        names = differing(request, data)
        if data.get("template", template) != template:
            names.append("the prompt's template")
        raise ReplayMismatch(
            f"ask {past.ask}, call {past.slot}: the record holds the answer to another question; "
            f"it differs in {', '.join(names)}"
        )
    return answer_of(data)


def differing(request: ChatRequest, data: Mapping[str, Any]) -> list[str]:
    """The parts in which a request is not the recorded one; of a message with the number of the
    first line, and how it reads now.
    """
    now, then = request.parts, data["request"]
    names = [n for n in {**then, **now} if now.get(n) != then.get(n)]
    for i, (role, text) in enumerate(request.messages):
        name = f"message {i} ({role})"
        hashes = data.get("lines", [])
        line = first_difference(text, hashes[i]) if i < len(hashes) and name in names else None
        if line is not None:
            lines = text.split("\n")
            reads = f"now {lines[line - 1]!r:.160}" if line <= len(lines) else "where it ends now"
            names[names.index(name)] = f"{name} from line {line} ({reads})"
    return names
