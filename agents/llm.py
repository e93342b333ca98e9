"""A driver that asks a language model, one call a proposal.

Each call shows the model the task, one of the best programs, what was tried and what failed; a
reply that can be mended is followed by one that says what was wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.agents.chat import ChatModel
from kernelwright.agents.context.surroundings import NOTHING, Surroundings
from kernelwright.agents.desk import Desk
from kernelwright.agents.options import (
    Attempts,
    EditForm,
    History,
    Inspirations,
    MaxTokens,
    Parents,
    Structured,
    Temperature,
)
from kernelwright.agents.talk import Turn, Useless
from kernelwright.env.types import Problem, Proposal
from kernelwright.search.driver import Journal
from kernelwright.search.trial import Trial


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
        history: History = 8,
        parents: Parents = 3,
        inspirations: Inspirations = 0,
        attempts: Attempts = 2,
        max_tokens: MaxTokens = 4096,
        temperature: Temperature = 0.8,
        structured: Structured = False,
        edits: EditForm = "whole",
    ) -> None:
        self._attempts = attempts
        self._desk = Desk(
            space,
            name="llm",
            seed=seed,
            batch=batch,
            problem=problem,
            backend=backend,
            prompt=prompt,
            journal=journal,
            context=context,
            max_tokens=max_tokens,
            temperature=temperature,
            structured=structured,
            history=history,
            parents=parents,
            inspirations=inspirations,
            edits=edits,
        )

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._desk.stopped

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember what became of the proposals."""
        self._desk.tell(trials)

    def ask(self, n: int) -> list[Proposal]:
        """As many calls as proposals are wanted; more only while there is none at all.

        Raises:
            BackendError: if no call can succeed, or several in a row were lost; the campaign can be
                resumed.
            ReplayMismatch: if the journal is another driver's.
        """
        return self._desk.talk.proposals(n, self._fresh, self._mend)

    def _fresh(self, slot: int) -> Turn:
        """A question about one of the best programs; no two of a search are equal."""
        desk = self._desk
        candidate, parent = desk.memory.parent(desk.rng(slot), greedy=slot == 0)
        return Turn(desk.page(slot, parent), candidate)

    def _mend(self, turn: Turn, useless: Useless) -> Turn | None:
        """The same conversation, continued by what was wrong with the answer."""
        return self._desk.mended(turn, useless, self._attempts)
