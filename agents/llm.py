"""A driver that asks a language model, one call a proposal.

Each call shows the model the task, one of the best programs, what was tried and what failed; a
reply that can be mended is followed by one that says what was wrong with it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from kernelwright.agents.asking import Asker, Sampling
from kernelwright.agents.chat import ChatModel, Message, canonical_schema, digest
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.dialects.dialect import Edits
from kernelwright.agents.memory import Memory
from kernelwright.agents.sheet import problem_sheet
from kernelwright.agents.talk import Talk, Turn, Useless
from kernelwright.env.options import OptionError
from kernelwright.env.types import Problem, Proposal
from kernelwright.prompts import render as prompts
from kernelwright.search.driver import Journal
from kernelwright.search.trial import Trial

MENDABLE = frozenset({"truncated", "unparsable", "wrong_schema", "illegal", "duplicate"})
MOST_QUOTED = 4000


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
        edits: Annotated[
            Edits,
            Field(description="C and schedules come whole, as edits of the parent, or either"),
        ] = "whole",
    ) -> None:
        prompts.check(prompt)
        self._seed, self._batch, self._prompt, self._attempts = seed, batch, prompt, attempts
        self._dialect = dialect_for(space, problem, edits=edits)
        self._values = {
            "problem": problem_sheet(problem),
            "dialect": {"name": self._dialect.name, "facts": self._dialect.facts()},
        }
        self._memory = Memory(self._dialect, history=history, parents=parents)
        schema = canonical_schema(self._dialect.schema()) if structured else None
        asker = Asker(backend, journal, Sampling(seed, max_tokens, temperature, schema))
        self._talk = Talk(space, self._dialect, self._memory, asker, journal, name="llm")
        try:
            self._fresh(0)
        except prompts.PromptError as error:
            expected = "a template of values that there are"
            raise OptionError("prompt", expected, str(error)) from None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._talk.stopped

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
        return self._talk.proposals(n, self._fresh, self._mend)

    def _fresh(self, slot: int) -> Turn:
        """A question about one of the best programs; no two of a search are equal."""
        asks = self._talk.asks
        rng = random.Random(digest([self._seed, asks, slot]))
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
            hint=hints[(self._seed + asks + slot) % len(hints)],
        )
        return Turn(messages, candidate)

    def _mend(self, turn: Turn, useless: Useless) -> Turn | None:
        """The same conversation, continued by what was wrong with the answer."""
        if useless.kind not in MENDABLE or turn.attempt >= self._attempts or not useless.text:
            return None
        said: Message = ("assistant", useless.text[:MOST_QUOTED])
        (again,) = prompts.render(
            "repair", **self._values, kind=useless.kind, reason=useless.reason[:MOST_QUOTED]
        )
        return Turn((*turn.messages, said, again), turn.parent, turn.attempt + 1)
