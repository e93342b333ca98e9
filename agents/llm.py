"""A driver that asks a language model, one call a proposal.

Each call shows the model the task, one of the best programs, what was tried and what failed; a
reply that can be mended is followed by one that says what was wrong with it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from kernelwright.agents.asking import Asker, Sampling
from kernelwright.agents.chat import ChatModel, canonical_schema, digest
from kernelwright.agents.context.prompter import Prompter
from kernelwright.agents.context.surroundings import NOTHING, Surroundings
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.memory import Memory
from kernelwright.agents.talk import Talk, Turn, Useless
from kernelwright.env.types import Problem, Proposal
from kernelwright.search.driver import Journal
from kernelwright.search.trial import Trial

MENDABLE = frozenset({"truncated", "unparsable", "wrong_schema", "illegal", "duplicate"})


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
        context: Surroundings = NOTHING,
        history: Annotated[
            int, Field(ge=1, le=100, description="tried candidates that a prompt lists")
        ] = 8,
        parents: Annotated[
            int, Field(ge=1, le=100, description="how many of the best are improved upon")
        ] = 3,
        inspirations: Annotated[
            int, Field(ge=0, le=16, description="good programs shown whole beside the parent")
        ] = 0,
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
        self._seed, self._batch, self._prompt, self._attempts = seed, batch, prompt, attempts
        self._dialect = dialect_for(space, problem)
        self._memory = Memory(self._dialect, history=history, parents=parents)
        self._prompter = Prompter(
            problem,
            self._dialect,
            self._memory,
            journal,
            around=context,
            inspirations=inspirations,
        )
        self._prompter.check(prompt, **self._place(0, 0))
        schema = canonical_schema(self._dialect.schema()) if structured else None
        drawn = Sampling(seed, max_tokens, temperature, schema)
        asker = Asker(backend, journal, drawn, self._prompter.version(prompt))
        self._talk = Talk(space, self._dialect, self._memory, asker, journal, name="llm")

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
        messages = self._prompter.ask(self._prompt, (asks, slot), parent, **self._place(asks, slot))
        return Turn(messages, candidate)

    def _place(self, asks: int, slot: int) -> dict[str, Any]:
        """What is said of a question's place in its batch, and the direction that it is given."""
        hints = self._dialect.hints
        hint = hints[(self._seed + asks + slot) % len(hints)]
        return {"slot": slot + 1, "batch": self._batch, "hint": hint}

    def _mend(self, turn: Turn, useless: Useless) -> Turn | None:
        """The same conversation, continued by what was wrong with the answer."""
        if useless.kind not in MENDABLE or turn.attempt >= self._attempts or not useless.text:
            return None
        messages = self._prompter.mend(turn.messages, useless.text, useless.kind, useless.reason)
        return replace(turn, messages=messages, attempt=turn.attempt + 1)
