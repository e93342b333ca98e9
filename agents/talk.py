"""From conversations to proposals: what every agent shares that asks a model for candidates.

An agent says which question comes next; here the answer is read, programs by the space's dialect,
everything else (plans, reviews, actions) by the mark that was asked for. What is cut, refused,
empty or unreadable, what the space refuses and what was tried before is an event of its class and
never a candidate.

Two shapes of agents. `Talk.proposals`: one call a proposal, with what follows a useless answer.
`Talk.ideas`: an idea is a generator that yields `Turn`s, is sent what came back, and returns the
`Draft` that it wants judged, or None if it has given up.

Law of replay: questions must be a function of (seed, batch, told trials, completions), and
completions are read back from the journal where it has them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

from kernelwright.agents.asking import Asker
from kernelwright.agents.chat import BackendError, BudgetSpentError, Malformed, Message, classify
from kernelwright.agents.context.fitting import Fitting
from kernelwright.agents.context.safe import one_line
from kernelwright.agents.context.surroundings import CUT
from kernelwright.agents.dialects.dialect import Dialect
from kernelwright.agents.dialects.fences import answer_block
from kernelwright.agents.memory import Memory
from kernelwright.env.protocols import explained
from kernelwright.env.spaces.knobs import is_listed
from kernelwright.env.types import Candidate, Proposal
from kernelwright.search.driver import Journal
from kernelwright.search.drivers.pool import EXHAUSTED
from kernelwright.search.trial import event

# Replies in a row without a proposal before the model is given up.
MOST_USELESS = 32
# How often a question is cut that is too long for the model.
MOST_CUT = 2
MOST_REASON = 1000
TOO_LONG = "too_long"
# What a call without a completion is filed under by the kind of its error, if not as lost.
_FILED = {"repairable": TOO_LONG}
MOST_TOLD = 200  # characters of the last one's reason
# What a space calls a program that is too long to be looked at any further.
PROGRAM_TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Mark:
    """An answer that is no program: how its fenced block is marked, and how its text is read."""

    name: str
    read: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One question: what is sent, what it is about, the how-manieth about one idea it is, and what
    is wanted if that is no program.
    """

    messages: tuple[Message, ...]
    parent: Candidate | None
    attempt: int = 1
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Useless:
    """Why a reply gave no proposal: the class of its event, a sentence to mend it by, and what was
    said.
    """

    kind: str
    reason: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """An answer that is no program: what was read in its block, the whole reply, and where the call
    stands in the record.
    """

    value: Any
    text: str
    slot: int
    prompt_hash: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A program that may be proposed: it is in the space and was not tried. ``text`` is the whole
    reply, ``slot`` where its call stands in the record.
    """

    candidate: Candidate
    parents: tuple[str, ...]
    text: str
    slot: int
    prompt_hash: str


Reply: TypeAlias = Draft | Said | Useless
Idea: TypeAlias = Generator[Turn, Reply, Draft | None]


class Talk:
    """The conversation of a campaign.

    Args:
        space: whose candidates are asked for.
        dialect: how they are written.
        memory: what was tried.
        asker: the model.
        journal: the campaign's record.
        name: the proposer's, in the record.
        fitting: cuts what is too long for the model, and knows what was cut of a question.
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
        fitting: Fitting,
    ) -> None:
        self._space, self._dialect, self._memory = space, dialect, memory
        self._asker, self._journal, self._name = asker, journal, name
        self._fitting = fitting
        self._useless = 0
        self._tokens, self._usd = 0, 0.0
        self._slot = 0
        self._tried = 0  # configurations from the first on, of a space that lists them
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
        self._begin()
        out: list[Proposal] = []
        turn: Turn | None = None
        while self.stopped is None and (self._slot < n or not out):
            turn = turn or fresh(self._slot)
            self._tokens, self._usd = 0, 0.0
            try:
                reply = self._answered(turn)
            except BudgetSpentError:
                break  # the campaign's budget says why; what there is goes out
            if isinstance(reply, Draft):
                out.append(self._proposal(reply))
            turn = mend(turn, reply) if isinstance(reply, Useless) else None
        return out

    def ideas(self, n: int, think: Callable[[int], Idea]) -> list[Proposal]:
        """As many ideas as proposals are wanted; more only while there is none at all.

        A proposal carries what all calls of its idea cost. An idea that ends without a draft counts
        as a useless answer.

        Args:
            n: how many proposals are wanted.
            think: the idea of a number, counted within the ask.

        Raises:
            BackendError, ReplayMismatch: as `proposals`.
        """
        self._begin()
        out: list[Proposal] = []
        for number in count():
            if self.stopped is not None or (number >= n and out):
                break
            try:
                draft = self._followed(think(number))
            except BudgetSpentError:
                break  # the campaign's budget says why; what there is goes out
            if draft is not None:
                out.append(self._proposal(draft))
        return out

    def _begin(self) -> None:
        self.asks += 1
        self._slot = 0
        if self.stopped is None and self._is_exhausted():
            self.stopped = EXHAUSTED

    def _is_exhausted(self) -> bool:
        """Whether the space has nothing that was not tried, so that no answer could be new."""
        if not is_listed(self._space):
            return False
        valid = self._space.valid
        while self._tried < len(valid):
            if not self._memory.has_tried(self._space.candidate(int(valid[self._tried]))):
                return False
            self._tried += 1
        return True

    def _followed(self, idea: Idea) -> Draft | None:
        """What an idea comes to."""
        self._tokens, self._usd = 0, 0.0
        useless = self._useless
        try:
            turn = next(idea)
            while self.stopped is None:
                turn = idea.send(self._answered(turn))
        except StopIteration as end:
            draft: Draft | None = end.value
            if draft is None and self._useless == useless:
                self._count("an idea", "came to nothing")
            return draft
        idea.close()
        return None

    def _answered(self, turn: Turn) -> Reply:
        """What comes back for a question, filed. One that is too long for the model is cut and
        asked again, `MOST_CUT` times at most.
        """
        for cut in range(MOST_CUT + 1):
            slot, self._slot = self._slot, self._slot + 1
            reply = self._reply(slot, turn)
            if cut == MOST_CUT or not (isinstance(reply, Useless) and reply.kind == TOO_LONG):
                break
            messages = self._fitting.shorter(turn.messages)
            if messages is None:
                break
            self.note(TOO_LONG, slot, reason=reply.reason[:MOST_REASON])
            turn = replace(turn, messages=messages)
        if isinstance(reply, Useless):
            self.file(slot, reply)
        elif isinstance(reply, Said) and turn.mark is not None:
            self._journal.record(event(turn.mark.name, self.asks, slot))
        return reply

    def _reply(self, slot: int, turn: Turn) -> Reply:
        # Only programs have a schema.
        sampling = replace(self._asker.sampling, schema=None) if turn.mark else None
        cut = self._fitting.cut(turn.messages)
        if cut is not None:
            self.note(CUT, slot, **cut)
        request = self._asker.request(self.asks, slot, turn.messages, sampling)
        answer = self._asker.answer(self.asks, slot, request)
        if isinstance(answer, BackendError):
            return Useless(_FILED.get(answer.kind, "lost"), answer.message)
        self._tokens += answer.tokens
        self._usd += answer.usd
        read, text = classify(answer), answer.text or ""
        if turn.mark is not None:
            block = read if isinstance(read, Malformed) else answer_block(read, (turn.mark.name,))
            value = block if isinstance(block, Malformed) else turn.mark.read(block)
            if isinstance(value, Malformed):
                return Useless(value.kind, value.reason, text)
            return Said(value, text, slot, request.key)
        found = read if isinstance(read, Malformed) else self._dialect.parse(read, turn.parent)
        if isinstance(found, Malformed):
            return Useless(found.kind, found.reason, text)
        parents = () if turn.parent is None else (turn.parent.key,)
        return self.draft(found, parents, Said(None, text, slot, request.key))

    def draft(self, found: Candidate, parents: tuple[str, ...], said: Said) -> Draft | Useless:
        """A program that somebody wants judged, or why it will not be."""
        violations = explained(self._space, found)
        if violations:
            reason = "; ".join(v.reason for v in violations[:4])
            if violations[0].code != PROGRAM_TOO_LONG and found not in self._memory:
                self._memory.refuse(found, violations[0].code, reason)
            return Useless("illegal", reason, said.text)
        candidate = self._space.canonical(found)
        if candidate in self._memory:
            again = self._memory.repeat(candidate)
            return Useless("duplicate", f"{again}; change something else", said.text)
        return Draft(candidate, parents, said.text, said.slot, said.prompt_hash)

    def _proposal(self, draft: Draft) -> Proposal:
        """The proposal of a draft, recorded; it costs what was spent since the last one."""
        key = draft.candidate.key
        self._journal.record(event("proposed", self.asks, draft.slot, key=key))
        self._memory.propose(draft.candidate)
        self._useless = 0
        return Proposal(
            draft.candidate,
            self._name,
            draft.parents,
            draft.prompt_hash,
            self._tokens,
            self._usd,
        )

    def note(self, kind: str, slot: int, **data: object) -> None:
        """Record what an agent did with an answer."""
        self._journal.record(event(kind, self.asks, slot, **data))

    def file(self, slot: int, useless: Useless) -> None:
        """Record that a reply came to nothing; too many in a row end the search."""
        self.note(useless.kind, slot, reason=useless.reason[:MOST_REASON])
        self._count(useless.kind, useless.reason)

    def _count(self, kind: str, reason: str) -> None:
        self._useless += 1
        if self._useless >= MOST_USELESS:
            last = f"the last was {kind}: {one_line(reason, MOST_TOLD)}"
            self.stopped = f"{MOST_USELESS} replies in a row gave nothing new; {last}"
