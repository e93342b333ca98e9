"""Refining: a conversation about one program that goes on when its verdict is there.

What the judge said (status, evidence, build log) is the next message of the same conversation, up
to ``turns`` programs; then a new conversation begins from the best program, or one of the best. A
batch of n keeps n conversations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kernelwright.agents.agent import agent
from kernelwright.agents.desk import Desk
from kernelwright.agents.memory import failure_of, speedup
from kernelwright.agents.talk import Draft, Idea, Turn
from kernelwright.agents.usual import Usual, growth
from kernelwright.env.types import Proposal
from kernelwright.search.trial import Trial

MEND = "Mend it: keep the idea, remove what the judge names."
IMPROVE = "Say to yourself what limits it now, then make it faster."
TURN_BACK = "It is slower than what it was made from. Undo what cost time, then try another way."


@dataclass(frozen=True, slots=True)
class Open:
    """A conversation that waits for a verdict: its last question, what was said, the program, and
    how many programs it has had.
    """

    turn: Turn
    said: str
    key: str
    programs: int


@agent("refine")
class Refine:
    """Repairs and improves one program over several turns, then starts afresh."""

    def __init__(
        self,
        desk: Desk,
        *,
        turns: Annotated[int, Field(ge=1, le=32, description="programs of one conversation")] = 4,
    ) -> None:
        self._desk, self._turns = desk, turns
        self._open: dict[int, Open] = {}

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._desk.stopped

    @property
    def usual(self) -> Usual:
        """Questions that grow with every turn."""
        options, turns = self._desk.options, 0.17 * (self._turns - 1)
        return Usual(growth=growth(options.history, options.inspirations) + turns)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember the verdicts that conversations wait for."""
        self._desk.tell(trials)

    def ask(self, n: int) -> list[Proposal]:
        """The next program of each conversation.

        Raises:
            BackendError, ReplayMismatch: as `Talk.ideas`.
        """
        return self._desk.ideas(n, self._think)

    def _think(self, number: int) -> Idea:
        waiting = self._open.pop(number, None)
        turn = None if waiting is None else self._continued(waiting)
        programs = 1 if waiting is None or turn is None else waiting.programs + 1
        turn = turn or self._fresh(number)
        turn, reply = yield from self._desk.insisted(turn)
        if not isinstance(reply, Draft):
            return None
        self._open[number] = Open(turn, reply.text, reply.candidate.key, programs)
        return reply

    def _fresh(self, number: int) -> Turn:
        desk = self._desk
        candidate, parent = desk.memory.parent(desk.rng(number), greedy=number == 0)
        return Turn(desk.page(number, parent), candidate)

    def _continued(self, waiting: Open) -> Turn | None:
        """The conversation with the verdict; None if it has had its turns, or there is no verdict
        of this program.
        """
        desk = self._desk
        trial = desk.trials.get(waiting.key)
        if trial is None or waiting.programs >= self._turns:
            return None
        failure = None if trial.objective is not None else failure_of("", trial)
        parent = waiting.turn.parent
        before = None if parent is None else desk.trials.get(parent.key)
        slower = _height(trial) < _height(before)
        text = desk.text(
            "verdict",
            result=failure.status if failure else f"it passed, speedup {speedup(trial)}",
            code=failure.code if failure else None,
            detail=failure.detail if failure else "",
            advice=MEND if failure else TURN_BACK if slower else IMPROVE,
            parent=desk.parent(trial.candidate),
            count=desk.memory.count,
            tried=desk.memory.tried(),
            pending=desk.memory.pending(),
        )
        turn = desk.follow(waiting.turn, waiting.said, text)
        return Turn(turn.messages, trial.candidate)


def _height(trial: Trial | None) -> float:
    """A trial's objective; below all others where there is none."""
    if trial is None or trial.objective is None:
        return -math.inf
    return trial.objective
