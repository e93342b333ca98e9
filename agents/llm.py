"""A driver that asks a language model, one call a proposal.

Each call shows the model the task, one of the best programs, what was tried and what failed. Its
reply is read by the space's dialect. What is cut, refused, empty or unreadable, what the space
refuses and what was tried before is an event of its class and never a candidate; where it can be
mended the next call asks for that.

Law of replay: questions are a function of (seed, batch, told trials, completions), and completions
are read back from the journal where it has them. So a campaign that goes on pays no call twice, and
a finished one runs again without a network.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from kernelwright.agents.chat import (
    BackendError,
    ChatModel,
    ChatRequest,
    Completion,
    Malformed,
    Message,
    canonical_schema,
    classify,
    digest,
)
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.memory import Memory
from kernelwright.agents.sheet import problem_sheet
from kernelwright.env.options import OptionError
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Candidate, Problem, Proposal
from kernelwright.prompts import render as prompts
from kernelwright.search.driver import Journal
from kernelwright.search.trial import Event, Trial, event

# Replies in a row without a proposal before the model is given up.
MOST_USELESS = 32
# Calls in a row that failed in passing before the campaign is stopped, to be resumed later.
MOST_LOST = 3
MENDABLE = frozenset({"truncated", "unparsable", "wrong_schema", "illegal", "duplicate"})
MOST_QUOTED = 4000


class ReplayMismatch(RuntimeError):  # noqa: N818 - it is no failure of the program, but of the record
    """A journal holds another question than the one asked now; the message names what differs."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One question: what is sent, and what it is about."""

    messages: tuple[Message, ...]
    parent: Candidate | None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class _Useless:
    """Why a reply gave no proposal, and whether and how it can be mended."""

    kind: str
    reason: str
    text: str = ""


class LlmDriver:
    """Asks a chat model for every proposal."""

    def __init__(
        self,
        space: Any,
        *,
        seed: int,
        batch: int,
        problem: Problem,
        backend: ChatModel,
        prompt: str,
        journal: Journal,
        history: Annotated[
            int, Field(ge=1, le=100, description="tried candidates that a prompt lists")
        ] = 8,
        parents: Annotated[
            int, Field(ge=1, le=100, description="how many of the best are improved upon")
        ] = 3,
        attempts: Annotated[
            int, Field(ge=1, le=8, description="calls for one idea: the first, then mending")
        ] = 2,
        max_tokens: Annotated[
            int, Field(ge=16, le=1_000_000, description="tokens of one answer at most")
        ] = 4096,
        temperature: Annotated[
            float, Field(ge=0, le=2, description="the model's sampling temperature")
        ] = 0.8,
        structured: Annotated[
            bool, Field(description="ask the server for JSON by schema, where replies are JSON")
        ] = False,
    ) -> None:
        prompts.check(prompt)
        self._space, self._batch = space, batch
        self._seed, self._backend, self._journal, self._prompt = seed, backend, journal, prompt
        self._dialect = dialect_for(space, problem)
        self._values = {
            "problem": problem_sheet(problem),
            "dialect": {"name": self._dialect.name, "facts": self._dialect.facts()},
        }
        self._memory = Memory(self._dialect, history=history, parents=parents)
        self._attempts, self._max_tokens, self._temperature = attempts, max_tokens, temperature
        self._schema = canonical_schema(self._dialect.schema()) if structured else None
        self._asks = self._useless = self._lost = 0
        self._stopped: str | None = None
        try:
            self._fresh(0)
        except prompts.PromptError as error:
            expected = "a template of values that there are"
            raise OptionError("prompt", expected, str(error)) from None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._stopped

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember what became of the proposals."""
        self._memory.tell(trials)

    def ask(self, n: int) -> list[Proposal]:
        """As many calls as proposals are wanted; more only while there is none at all.

        Raises:
            BackendError: if no call can succeed, or several in a row were lost; the campaign can be
                resumed.
            ReplayMismatch: if the journal is another driver's.
        """
        self._asks += 1
        out: list[Proposal] = []
        slot, turn = 0, None
        while self._stopped is None and (slot < n or not out):
            turn = turn or self._fresh(slot)
            outcome = self._call(slot, turn)
            if isinstance(outcome, Proposal):
                out.append(outcome)
                self._memory.propose(outcome.candidate)
                self._useless = self._lost = 0
                turn = None
            else:
                self._note(slot, outcome)
                turn = self._mend(turn, outcome)
            slot += 1
        return out

    # Questions

    def _fresh(self, slot: int) -> _Turn:
        """A question about one of the best programs; no two of a search are equal."""
        rng = random.Random(digest([self._seed, self._asks, slot]))
        candidate, parent = self._memory.parent(rng, greedy=slot == 0)
        hints = self._dialect.hints
        messages = prompts.render(
            self._prompt,
            **self._values,
            parent=parent,
            tried=self._memory.tried(),
            count=self._memory.count,
            pending=self._memory.pending(),
            failures=self._memory.failures(),
            slot=slot + 1,
            batch=self._batch,
            hint=hints[(self._seed + self._asks + slot) % len(hints)],
        )
        return _Turn(messages, candidate)

    def _mend(self, turn: _Turn, useless: _Useless) -> _Turn | None:
        """The same conversation, continued by what was wrong with the answer."""
        if useless.kind not in MENDABLE or turn.attempt >= self._attempts or not useless.text:
            return None
        said: Message = ("assistant", useless.text[:MOST_QUOTED])
        (again,) = prompts.render(
            "repair", **self._values, kind=useless.kind, reason=useless.reason[:MOST_QUOTED]
        )
        return _Turn((*turn.messages, said, again), turn.parent, turn.attempt + 1)

    def _request(self, slot: int, turn: _Turn) -> ChatRequest:
        return ChatRequest(
            model=self._backend.model,
            messages=turn.messages,
            max_tokens=self._max_tokens,
            temperature=self._temperature,
            seed=int(digest([self._seed, self._asks, slot, "sampling"])[:7], 16),
            schema=self._schema,
        )

    # Answers

    def _call(self, slot: int, turn: _Turn) -> Proposal | _Useless:
        request = self._request(slot, turn)
        answer = self._answer(slot, request)
        if isinstance(answer, BackendError):
            kind = "unparsable" if answer.kind == "content" else "lost"
            return _Useless(kind, answer.message)
        read = classify(answer)
        found = read if isinstance(read, Malformed) else self._dialect.parse(read)
        if isinstance(found, Malformed):
            return _Useless(found.kind, found.reason, answer.text or "")
        violations = self._space.check(found)
        if violations:
            reason = "; ".join(v.reason for v in violations[:4])
            if found not in self._memory:
                self._memory.refuse(found, violations[0].code, reason)
            return _Useless("illegal", reason, answer.text or "")
        candidate = self._space.canonical(found)
        if candidate in self._memory:
            again = self._memory.repeat(candidate)
            return _Useless("duplicate", f"{again}; change something else", answer.text or "")
        parents = () if turn.parent is None else (turn.parent.key,)
        self._journal.record(event("proposed", self._asks, slot, key=candidate.key))
        return Proposal(candidate, "llm", parents, request.key, answer.tokens, answer.usd)

    def _answer(self, slot: int, request: ChatRequest) -> Completion | BackendError:
        """What the model says, or said when this was asked before; paid answers are recorded before
        anything is read into them.
        """
        past = self._journal.past("model_call", self._asks, slot)
        if past is not None:
            return _recorded(past, request)
        answer: Completion | BackendError
        try:
            answer = self._backend.complete(request)
        except BackendError as error:
            if error.kind == "permanent" or (
                error.kind == "transient" and self._lost + 1 >= MOST_LOST
            ):
                raise
            answer = error
        if not isinstance(answer, Completion | BackendError):
            found = f"{type(answer).__name__} {answer!r:.80}"
            raise TypeError(f"backend {self._backend.model}: expected a Completion, found {found}")
        self._journal.record(_call_event(self._asks, slot, request, answer))
        return answer

    def _note(self, slot: int, useless: _Useless) -> None:
        self._journal.record(event(useless.kind, self._asks, slot, reason=useless.reason[:1000]))
        self._lost = self._lost + 1 if useless.kind == "lost" else 0
        self._useless += 1
        if self._useless >= MOST_USELESS:
            last = f"the last was {useless.kind}: {useless.reason:.200}"
            self._stopped = f"{MOST_USELESS} replies in a row gave nothing new; {last}"


def _call_event(
    ask: int, slot: int, request: ChatRequest, answer: Completion | BackendError
) -> Event:
    data: dict[str, Any] = {"key": request.key, "request": request.parts, "model": request.model}
    if isinstance(answer, BackendError):
        error = {"kind": answer.kind, "message": answer.message}
        return event("model_call", ask, slot, **data, completion=None, error=error)
    completion = json.loads(dumps(answer))
    return replace(
        event("model_call", ask, slot, **data, completion=completion, error=None),
        tokens=answer.tokens,
        usd=answer.usd,
    )


def _recorded(past: Event, request: ChatRequest) -> Completion | BackendError:
    """The recorded answer to the same question.

    Raises:
        ReplayMismatch: if it is the answer to another one.
    """
    data = past.data
    if data["key"] != request.key:
        now, then = request.parts, data["request"]
        differing = [n for n in {**then, **now} if now.get(n) != then.get(n)]
        raise ReplayMismatch(
            f"ask {past.ask}, call {past.slot}: the record holds the answer to another question; "
            f"it differs in {', '.join(differing)}"
        )
    if data["error"] is not None:
        return BackendError(data["error"]["kind"], data["error"]["message"])
    return loads(Completion, json.dumps(data["completion"]))
