"""Best of n: the same question again and again, each answer drawn on its own.

Nothing that was tried is shown, so the answers are independent draws from the model, up to those
that were proposed before, which are not proposed again. What cleverer agents must beat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.agents.agent import agent
from kernelwright.agents.desk import Desk
from kernelwright.agents.talk import Turn
from kernelwright.agents.usual import Usual
from kernelwright.env.types import Proposal
from kernelwright.search.trial import Trial

HINT = "whatever you expect to be fastest"


@agent("best_of_n", without=("history", "parents", "inspirations", "attempts"), temperature=1.0)
class BestOfN:
    """Independent answers to one question: the baseline of agents."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._question: Turn | None = None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._desk.stopped

    @property
    def usual(self) -> Usual:
        """The same question again."""
        return Usual(growth=0.0)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember what was tried, so that it is not proposed again."""
        self._desk.tell(trials)

    def ask(self, n: int) -> list[Proposal]:
        """One call a proposal; more only while there is none at all.

        Raises:
            BackendError, ReplayMismatch: as `Talk.proposals`.
        """
        return self._desk.talk.proposals(n, self._asked, lambda turn, why: None)

    def _asked(self, slot: int) -> Turn:
        """The one question of the search."""
        del slot
        if self._question is None:
            desk, start = self._desk, self._desk.dialect.start()
            parent = None if start is None else desk.parent(start)
            nothing: dict[str, Any] = dict.fromkeys(("tried", "pending", "failures", "failed"), ())
            shown = nothing | {"count": 0, "batch": 1, "hint": HINT}
            self._question = Turn(desk.page(0, parent, **shown), start)
        return self._question
