"""Sequential sampling: one chain, in which every question shows the last program and its verdict.

The chain goes on from what was judged last, better or not, and nothing else is remembered. In a
batch of several, all questions are about the same last program, so ``batch: 1`` is the chain as it
is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.agents.agent import agent
from kernelwright.agents.desk import Desk
from kernelwright.agents.memory import Row, failure_of, speedup
from kernelwright.agents.talk import Turn, Useless
from kernelwright.env.types import Proposal
from kernelwright.search.trial import Trial


@agent("sequential", without=("history", "parents", "inspirations"))
class Sequential:
    """A chain of answers, each to the last one's verdict."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last: Trial | None = None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._desk.stopped

    def tell(self, trials: Sequence[Trial]) -> None:
        """Go on from the last trial."""
        self._desk.tell(trials)
        self._last = trials[-1] if trials else self._last

    def ask(self, n: int) -> list[Proposal]:
        """One call a proposal; more only while there is none at all.

        Raises:
            BackendError, ReplayMismatch: as `Talk.proposals`.
        """
        return self._desk.talk.proposals(n, self._fresh, self._mend)

    def _fresh(self, slot: int) -> Turn:
        desk, last = self._desk, self._last
        candidate = desk.dialect.start() if last is None else last.candidate
        parent = None if candidate is None else desk.parent(candidate)
        line = "" if last is None else desk.line(last.candidate)
        return Turn(
            desk.page(
                slot,
                parent,
                tried=[] if last is None else [Row(line, speedup(last))],
                failures=[]
                if last is None or last.objective is not None
                else [failure_of(line, last)],
            ),
            candidate,
        )

    def _mend(self, turn: Turn, useless: Useless) -> Turn | None:
        return self._desk.mended(turn, useless)
