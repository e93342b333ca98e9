"""One question to a model: sent, recorded, and read back where it was asked before.

A paid answer is recorded before anything is read into it, so a campaign that is killed pays no call
twice whose answer had come, and a finished one runs again without a network. A record of another
question is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from kernelwright.agents.chat import (
    BackendError,
    BudgetSpentError,
    ChatModel,
    ChatRequest,
    Completion,
    Message,
    digest,
    first_difference,
    most_cost,
)
from kernelwright.agents.questions import Calls, Questions, in_full
from kernelwright.env.records import loads
from kernelwright.search.driver import Journal
from kernelwright.search.trial import MODEL_CALL, Event, event
from kernelwright.search.underway import UNDERWAY

# Calls in a row that failed in passing before the campaign is stopped, to be resumed later.
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
        self._questions = Questions()
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
        passing, gave no completion or was of the question.

        Raises:
            BackendError: if no call can succeed, or several in a row were lost; the campaign can be
                resumed. A `BudgetSpentError`, if no more calls are to be made.
            ReplayMismatch: if the record holds another question at this place.
        """
        past = self._journal.past(MODEL_CALL, ask, slot)
        question = self._questions.kept(ask, slot, request)
        if self.template:
            question["template"] = self.template
        if past is None:
            answer = self._asked(ask, slot, request)
            self._journal.record(call_event(ask, slot, question, answer))
        else:
            answer = recorded(past, request, self._call, self.template)
        is_lost = isinstance(answer, BackendError) and answer.kind == "transient"
        self._lost = self._lost + 1 if is_lost else 0
        return answer

    def _call(self, ask: int, slot: int) -> Mapping[str, Any]:
        """The data of an earlier call of the record."""
        past = self._journal.past(MODEL_CALL, ask, slot)
        assert past is not None
        return past.data

    def _asked(self, ask: int, slot: int, request: ChatRequest) -> Completion | BackendError:
        answer: Completion | BackendError
        tokens, usd = most_cost(request, getattr(self._backend, "usd_per_million", None))
        call = Event(UNDERWAY, ask, slot, "{}", tokens, usd)
        if not self._journal.reserve(call):
            raise BudgetSpentError("budget.seconds: no time is left for a call")
        try:
            answer = self._backend.complete(request)
        except BackendError as error:
            is_last = error.kind == "transient" and self._lost + 1 >= MOST_LOST
            if error.kind == "permanent" or is_last:
                self._journal.release(call)
                raise
            answer = error
        if not isinstance(answer, Completion | BackendError):
            found = f"{type(answer).__name__} {answer!r:.80}"
            raise TypeError(f"backend {self._backend.model}: expected a Completion, found {found}")
        return storable(answer) if isinstance(answer, Completion) else answer


def storable(answer: Completion) -> Completion:
    """A completion without lone surrogates, which no record can hold, whoever sent them."""
    told = {field.name: getattr(answer, field.name) for field in fields(answer)}
    texts = {name: value for name, value in told.items() if isinstance(value, str)}
    clean = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
    return answer if clean == texts else replace(answer, **clean)  # type: ignore[arg-type]


def call_event(
    ask: int, slot: int, question: Mapping[str, Any], answer: Completion | BackendError
) -> Event:
    """The event of a call: the answer as it came, the question as `Questions.kept` has it."""
    if isinstance(answer, BackendError):
        return event(MODEL_CALL, ask, slot, **question, completion=None, error=error_data(answer))
    told = event(MODEL_CALL, ask, slot, **question, completion=answer.plain, error=None)
    return replace(told, tokens=answer.tokens, usd=answer.usd)


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


def recorded(
    past: Event, request: ChatRequest, calls: Calls, template: str = ""
) -> Completion | BackendError:
    """The recorded answer to the same question.

    Args:
        past: the event of the call.
        request: the question.
        calls: finds the record's other calls.
        template: the version of the prompts.

    Raises:
        ReplayMismatch: if it is the answer to another one.
    """
    data = past.data
    if data["key"] != request.key:
        names = differing(request, in_full(data, calls))
        if data.get("template", template) != template:
            names.append("the prompt's template")
        raise ReplayMismatch(
            f"ask {past.ask}, call {past.slot}: the record holds the answer to another question; "
            f"it differs in {', '.join(names)}"
        )
    return answer_of(data)


def differing(request: ChatRequest, data: Mapping[str, Any]) -> list[str]:
    """The parts in which a request is not the recorded one, given `in_full`; of a message with the
    number of the first line, and how it reads now.
    """
    names = differing_parts(request.parts, data["request"])
    for i, (role, text) in enumerate(request.messages):
        name = f"message {i} ({role})"
        hashes = data.get("lines", [])
        line = first_difference(text, hashes[i]) if i < len(hashes) and name in names else None
        if line is not None:
            lines = text.split("\n")
            reads = f"now {lines[line - 1]!r:.160}" if line <= len(lines) else "where it ends now"
            names[names.index(name)] = f"{name} from line {line} ({reads})"
    return names


def differing_parts(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """The names of the parts that are not the recorded ones; a record may hold the first digits of
    a message's hash.
    """

    def is_same(name: str) -> bool:
        here, there = now.get(name), then.get(name)
        if name.startswith("message ") and here and there:
            return str(here).startswith(str(there))
        return here == there

    return [name for name in {**then, **now} if not is_same(name)]
