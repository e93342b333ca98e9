"""Where an agent works: the problem's sheet, the language, what was tried, and the talk with the
model, put together once for all agents.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from typing import Any

from kernelwright.agents.asking import Asker, Sampling
from kernelwright.agents.chat import ChatModel, Message, canonical_schema, digest
from kernelwright.agents.context.prompter import Prompter
from kernelwright.agents.context.safe import clean
from kernelwright.agents.context.surroundings import NOTHING, Surroundings
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.memory import Memory, Parent, speedup
from kernelwright.agents.options import Common
from kernelwright.agents.sections import cut, joined
from kernelwright.agents.talk import Idea, Mark, Reply, Talk, Turn, Useless
from kernelwright.env.types import Candidate, Problem, Proposal
from kernelwright.prompts import render as prompts
from kernelwright.search.driver import Journal
from kernelwright.search.trial import Trial

MOST_SAID = 32
MENDABLE = frozenset({"truncated", "unparsable", "wrong_schema", "illegal", "duplicate"})


class Desk:
    """What agents are composed of.

    Args:
        space: whose candidates are asked for.
        name: the proposer's, in the record.
        seed: the campaign's.
        batch: how many proposals an ask wants.
        problem: what is to be made fast.
        backend: the model.
        prompt: the template of the first message about an idea.
        journal: the campaign's record.
        context: what surrounds the search, as far as prompts may speak of it.
        options: those that all agents have.

    Raises:
        OptionError: if the template cannot be rendered, or no model writes the space's language.
    """

    def __init__(
        self,
        space: Any,
        *,
        name: str,
        seed: int,
        batch: int,
        problem: Problem,
        backend: ChatModel,
        prompt: str,
        journal: Journal,
        context: Surroundings = NOTHING,
        options: Common,
    ) -> None:
        self.space, self.seed, self.batch, self._prompt = space, seed, batch, prompt
        self.problem, self.journal, self.options = problem, journal, options
        self.dialect = dialect_for(space, problem, edits=options.edits)
        self.memory = Memory(self.dialect, history=options.history, parents=options.parents)
        self.prompter = Prompter(
            problem,
            self.dialect,
            self.memory,
            journal,
            around=context,
            inspirations=options.inspirations,
        )
        self._values = self.prompter.fixed
        self.prompter.check(prompt, slot=1, batch=batch, hint=self.dialect.hints[0])
        schema = canonical_schema(self.dialect.schema()) if options.structured else None
        drawn = Sampling(seed, options.max_tokens, options.temperature, schema)
        asker = Asker(backend, journal, drawn, self.prompter.version(prompt))
        self.talk = Talk(
            space,
            self.dialect,
            self.memory,
            asker,
            journal,
            name=name,
            fitting=self.prompter.fitting,
        )
        self.trials: dict[str, Trial] = {}
        # What is said of the same thing again is not written again.
        self.said = lru_cache(MOST_SAID)(self.text)

    @property
    def stopped(self) -> str | None:
        """Why there is nothing more to propose."""
        return self.talk.stopped

    def tell(self, trials: Sequence[Trial]) -> None:
        """Remember what became of proposals."""
        self.memory.tell(trials)
        self.prompter.tell()
        self.trials |= {trial.candidate.key: trial for trial in trials}

    def ideas(self, n: int, think: Callable[[int], Idea]) -> list[Proposal]:
        """`Talk.ideas`."""
        return self.talk.ideas(n, think)

    def rng(self, number: int) -> random.Random:
        """The random numbers of an idea: a function of the seed and its place."""
        return random.Random(digest([self.seed, self.talk.asks, number]))

    def hint(self, number: int) -> str:
        """The direction of an idea."""
        hints = self.dialect.hints
        return hints[(self.seed + self.talk.asks + number) % len(hints)]

    def page(
        self,
        number: int,
        parent: Parent | None,
        *added: str,
        mark: Mark | None = None,
        **shown: Any,
    ) -> tuple[Message, ...]:
        """The first messages about an idea.

        Args:
            number: the idea's, counted within the ask.
            parent: the program to start from.
            added: sections that stand before what is said of the answer.
            mark: what is wanted, if that is no program.
            shown: values of the template in place of what the memory says.
        """

        def finish(messages: tuple[Message, ...]) -> tuple[Message, ...]:
            if not (added or mark):
                return messages
            *before, (role, text) = messages
            body, answer = cut(text)
            text = joined(body, *added, answer if mark is None else self.answer(mark))
            return (*before, (role, text))

        values = {"slot": number + 1, "batch": self.batch, "hint": self.hint(number)} | shown
        place = (self.talk.asks, number)
        return self.prompter.ask(self._prompt, place, parent, finish, **values)

    def text(self, template: str, **values: Any) -> str:
        """The text of one of the agents' own templates."""
        ((_, text),) = prompts.render(f"agents/{template}", **self._values, **values)
        return text

    def answer(self, mark: Mark | None = None) -> str:
        """What is said of the answer: which block is wanted."""
        return self.said("answer", wanted=mark.name if mark else self.dialect.name)

    def program(self, candidate: Candidate) -> str:
        """A candidate as a fenced block."""
        return fenced(clean(self.dialect.show(candidate)), self.dialect.fence)

    def line(self, candidate: Candidate) -> str:
        """A candidate in one line, for lists."""
        return self.memory.line(candidate)

    def parent(self, candidate: Candidate) -> Parent:
        """How a candidate is shown that is to be improved, with what is known of it."""
        trial = self.trials.get(candidate.key)
        if trial is None:
            result = "the starting point"
        else:
            said = speedup(trial)
            result = f"which failed: {said}" if trial.objective is None else f"speedup {said}"
        return Parent(candidate.key[:8], result, self.program(candidate), candidate)

    def follow(self, turn: Turn, said: str, text: str, mark: Mark | None = None) -> Turn:
        """The next question of the same conversation."""
        return Turn(self.prompter.follow(turn.messages, said, text), turn.parent, 1, mark)

    def mended(self, turn: Turn, useless: Useless, attempts: int | None = None) -> Turn | None:
        """The same conversation, continued by what was wrong with the answer; None if that cannot
        be said, or was said often enough (the option, unless given).
        """
        attempts = self.options.attempts if attempts is None else attempts
        if useless.kind not in MENDABLE or turn.attempt >= attempts or not useless.text:
            return None
        wanted = turn.mark.name if turn.mark else self.dialect.name
        dialect = self._values["dialect"] | {"name": wanted}
        messages = self.prompter.mend(
            turn.messages, useless.text, useless.kind, useless.reason, dialect=dialect
        )
        return Turn(messages, turn.parent, turn.attempt + 1, turn.mark)

    def insisted(
        self, turn: Turn, attempts: int | None = None
    ) -> Generator[Turn, Reply, tuple[Turn, Reply]]:
        """Part of an idea: ask, and say what was wrong with a useless answer, some times. Gives the
        last turn and what came back.
        """
        reply = yield turn
        while isinstance(reply, Useless):
            again = self.mended(turn, reply, attempts)
            if again is None:
                break
            turn = again
            reply = yield turn
        return turn, reply
