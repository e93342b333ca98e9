"""A team of three: a planner says what to try, a coder writes it, a verifier reads it before it is
proposed.

A plan serves a whole batch: each coder carries out one of its moves. A program that the verifier
rejects goes back to the coder once, with the reason; rejected again, the idea is given up. A review
that cannot be read stops nothing, for the judge looks at everything anyway.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from kernelwright.agents.agent import agent
from kernelwright.agents.desk import Desk
from kernelwright.agents.marks import PLAN, REVIEW, Plan
from kernelwright.agents.memory import Parent
from kernelwright.agents.talk import Draft, Idea, Reply, Said, Turn, Useless
from kernelwright.agents.usual import Usual
from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.trial import Trial

DECLINED = "declined"


@dataclass(frozen=True, slots=True)
class Order:
    """A plan, and the program that it is about."""

    plan: Plan
    candidate: Candidate | None
    parent: Parent | None


@agent("team")
class Team:
    """A planner, a coder and a verifier."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._order: Order | None = None

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self._desk.stopped

    @property
    def usual(self) -> Usual:
        """A review of every program, and a plan a batch; both are short."""
        return Usual(others=1 + 1 / self._desk.batch, growth=0.25)

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember what became of the proposals."""
        self._desk.tell(trials)

    def ask(self, n: int) -> list[Proposal]:
        """Programs for the moves of one plan.

        Raises:
            BackendError, ReplayMismatch: as `Talk.ideas`.
        """
        self._order = None
        return self._desk.ideas(n, self._think)

    def _think(self, number: int) -> Idea:
        desk, order = self._desk, self._order or (yield from self._planned(number))
        if order is None:
            return None
        # What a move of the plan came to nothing for is not tried again in the same ask.
        self._order = order if number + 1 < max(len(order.plan.moves), desk.batch) else None
        move = order.plan.moves[number % len(order.plan.moves)]
        section = desk.text("plan", plan=order.plan, move=move)
        turn = Turn(desk.page(number, order.parent, section, hint=move), order.candidate)
        turn, reply = yield from desk.insisted(turn)
        for last in (False, True):
            if not isinstance(reply, Draft):
                return None
            reason = yield from self._reviewed(number, order, reply)
            if reason is None:
                return reply
            desk.talk.file(reply.slot, Useless(DECLINED, reason, reply.text))
            if last:
                return None
            again = desk.follow(turn, reply.text, desk.text("declined", reason=reason))
            turn, reply = yield from desk.insisted(again)
        return None

    def _planned(self, number: int) -> Generator[Turn, Reply, Order | None]:
        desk = self._desk
        # The best at every other ask: what can be done about one program comes to an end.
        greedy = number == 0 and desk.talk.asks % 2 == 1
        candidate, parent = desk.memory.parent(desk.rng(number), greedy=greedy)
        page = desk.page(number, parent, desk.said("planner", count=desk.batch), mark=PLAN)
        _, reply = yield from desk.insisted(Turn(page, candidate, 1, PLAN))
        return Order(reply.value, candidate, parent) if isinstance(reply, Said) else None

    def _reviewed(
        self, number: int, order: Order, draft: Draft
    ) -> Generator[Turn, Reply, str | None]:
        """Why the verifier rejects a draft; None if it does not, or cannot be understood."""
        desk = self._desk
        section = desk.text("review", program=desk.program(draft.candidate))
        shown = {"tried": [], "count": 0, "pending": []}
        page = desk.page(number, order.parent, section, mark=REVIEW, **shown)
        _, reply = yield from desk.insisted(Turn(page, draft.candidate, 1, REVIEW), 1)
        return reply.value.reason if isinstance(reply, Said) else None
