"""From conversations to proposals: what every agent shares that asks a model for candidates.

An agent says which question comes next (`fresh`) and how a useless answer is followed up (`mend`);
here the answer is read by the space's dialect. What is cut, refused, empty or unreadable, what the
space refuses and what was tried before is an event of its class and never a candidate.

Law of replay: questions must be a function of (seed, batch, told trials, completions), and
completions are read back from the journal where it has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelwright.agents.asking import Asker
from kernelwright.agents.chat import BackendError, Malformed, Message, classify
from kernelwright.agents.dialects.dialect import Dialect
from kernelwright.agents.memory import Memory
from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.driver import Journal
from kernelwright.search.trial import event

# Replies in a row without a proposal before the model is given up.
MOST_USELESS = 32


@dataclass(frozen=True, slots=True)
class Turn:
    """One question: what is sent, what it is about, and the how-manieth about one idea it is."""

    messages: tuple[Message, ...]
    parent: Candidate | None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Useless:
    """Why a reply gave no proposal: the class of its event, a sentence to mend it by, and what was
    said.
    """

    kind: str
    reason: str
    text: str = ""


class Talk:
    """The conversation of a campaign.

    Args:
        space: whose candidates are asked for.
        dialect: how they are written.
        memory: what was tried.
        asker: the model.
        journal: the campaign's record.
        name: the proposer's, in the record.
    """

    def __init__(
        self,
        space: Any,
        dialect: Dialect,
        memory: Memory,
        asker: Asker,
        journal: Journal,
        *,
        name: str,
    ) -> None:
        self._space, self._dialect, self._memory = space, dialect, memory
        self._asker, self._journal, self._name = asker, journal, name
        self._useless = 0
        self.asks = 0
        self.stopped: str | None = None

    def proposals(
        self,
        n: int,
        fresh: Callable[[int], Turn],
        mend: Callable[[Turn, Useless], Turn | None],
    ) -> list[Proposal]:
        """As many calls as proposals are wanted; more only while there is none at all.

        Args:
            n: how many proposals are wanted.
            fresh: the question of a slot; no two of a search are equal.
            mend: what follows a useless answer; None for a fresh question.

        Raises:
            BackendError: if no call can succeed, or several in a row were lost; the campaign can be
                resumed.
            ReplayMismatch: if the journal is another driver's.
        """
        self.asks += 1
        out: list[Proposal] = []
        slot, turn = 0, None
        while self.stopped is None and (slot < n or not out):
            turn = turn or fresh(slot)
            outcome = self._outcome(slot, turn)
            if isinstance(outcome, Proposal):
                out.append(outcome)
                self._memory.propose(outcome.candidate)
                self._useless = 0
                turn = None
            else:
                self._note(slot, outcome)
                turn = mend(turn, outcome)
            slot += 1
        return out

    def _outcome(self, slot: int, turn: Turn) -> Proposal | Useless:
        request = self._asker.request(self.asks, slot, turn.messages)
        answer = self._asker.answer(self.asks, slot, request)
        if isinstance(answer, BackendError):
            kind = "unparsable" if answer.kind == "content" else "lost"
            return Useless(kind, answer.message)
        read = classify(answer)
        found = read if isinstance(read, Malformed) else self._dialect.parse(read)
        if isinstance(found, Malformed):
            return Useless(found.kind, found.reason, answer.text or "")
        violations = self._space.check(found)
        if violations:
            reason = "; ".join(v.reason for v in violations[:4])
            if found not in self._memory:
                self._memory.refuse(found, violations[0].code, reason)
            return Useless("illegal", reason, answer.text or "")
        candidate = self._space.canonical(found)
        if candidate in self._memory:
            again = self._memory.repeat(candidate)
            return Useless("duplicate", f"{again}; change something else", answer.text or "")
        parents = () if turn.parent is None else (turn.parent.key,)
        self._journal.record(event("proposed", self.asks, slot, key=candidate.key))
        return Proposal(candidate, self._name, parents, request.key, answer.tokens, answer.usd)

    def _note(self, slot: int, useless: Useless) -> None:
        self._journal.record(event(useless.kind, self.asks, slot, reason=useless.reason[:1000]))
        self._useless += 1
        if self._useless >= MOST_USELESS:
            last = f"the last was {useless.kind}: {useless.reason:.200}"
            self.stopped = f"{MOST_USELESS} replies in a row gave nothing new; {last}"
