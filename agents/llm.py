"""A driver that asks a language model, one call a proposal.

Each call shows the model the task, one of the best programs, what was tried and what failed; a
reply that can be mended is followed by one that says what was wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.agents.agent import agent
from kernelwright.agents.desk import Desk
from kernelwright.agents.talk import Turn, Useless
from kernelwright.agents.usual import Usual, growth
from kernelwright.env.types import Proposal
from kernelwright.search.trial import Trial


@agent("llm")
class LlmDriver:
    """Asks a chat model for every proposal."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._desk.stopped

    @property
    def usual(self) -> Usual:
        """A question a proposal, which lists what was tried."""
        options = self._desk.options
        return Usual(growth=growth(options.history, options.inspirations))

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
        return self._desk.mended(turn, useless)
