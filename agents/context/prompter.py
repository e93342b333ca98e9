"""Prompts as drivers ask for them: what is remembered of the search and what surrounds it, put into
a template, cut to its budget and without secrets.

A prompt is a function of (seed, batch, told trials, the model's own answers) and of the campaign's
record: what else is looked at stands there (`surroundings`), with what was retrieved and what was
cut.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernelwright.agents.chat import CHARACTERS_A_TOKEN
from kernelwright.agents.context.fitting import Fitting
from kernelwright.agents.context.library import MOST_TITLE, Passage
from kernelwright.agents.context.profile import Known, ProfileSheet, profile_sheet
from kernelwright.agents.context.safe import clean, one_line, secrets_of, without_secrets
from kernelwright.agents.context.samples import DEVICE, PASSAGE, PROFILE, in_between, midway
from kernelwright.agents.context.shelves import Shelves
from kernelwright.agents.context.shrink import Messages, Values, tokens_of
from kernelwright.agents.context.surroundings import (
    LOOKED,
    NOTHING,
    RETRIEVED,
    Seen,
    Surroundings,
    see,
)
from kernelwright.agents.context.winners import program_text
from kernelwright.agents.dialects.dialect import Dialect
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.memory import Memory, Parent
from kernelwright.agents.sheet import lasting_values
from kernelwright.env.options import OptionError
from kernelwright.env.types import Candidate, Problem, Verdict
from kernelwright.prompts import render as prompts
from kernelwright.search.driver import Journal
from kernelwright.search.trial import event

REPAIR = "repair"


def shipped_prompts() -> dict[str, str]:
    """The prompts that a campaign may name, with what each is for."""
    return {name: text for name, text in prompts.PROMPTS.items() if name != REPAIR}


def template_version(prompt: str) -> str:
    """The hash of a prompt's templates, that of mending included."""
    return prompts.version(prompt, REPAIR)


# What is quoted of an answer that is to be mended, and of why.
MOST_QUOTED = 4000
# Profiles of parents that are not put together anew.
MOST_PROFILES = 64
# However little room is left, so much of an answer that is to be mended is shown.
LEAST_QUOTED = 400


@dataclass(frozen=True, slots=True)
class Quoted:
    """A retrieved passage as a template shows it; ``block`` is fenced."""

    id: str
    source: str
    title: str
    block: str

    @classmethod
    def of(cls, passage: Passage) -> Quoted:
        """A passage, quoted."""
        block = fenced(clean(passage.text), "text")
        return cls(passage.id, passage.source, one_line(passage.title, MOST_TITLE), block)


def as_it_is(messages: Messages) -> Messages:
    """Nothing is done to them."""
    return messages


class Prompter:
    """Writes the questions of one search.

    Args:
        problem: what is computed.
        dialect: how candidates are written.
        memory: what was tried.
        journal: the campaign's record.
        around: what surrounds the search.
        inspirations: how many good programs are shown beside the parent.

    ``fixed`` are the values of a template that stay the same: the problem and the language.
    """

    def __init__(
        self,
        problem: Problem,
        dialect: Dialect,
        memory: Memory,
        journal: Journal,
        *,
        around: Surroundings = NOTHING,
        inspirations: int = 0,
    ) -> None:
        self._problem, self._memory, self._journal = problem, memory, journal
        self._around, self._inspirations = around, inspirations
        self.fixed = lasting_values(problem, dialect)
        self._secrets = secrets_of(os.environ)
        self.fitting = Fitting(around.tokens)
        self._seen: Seen | None = None
        self._shelves: Shelves | None = None
        self._examined: dict[str, Known | None] = {}
        self._profiles: OrderedDict[str, tuple[Verdict | None, ProfileSheet]] = OrderedDict()

    def check(self, prompt: str, **values: object) -> None:
        """See that a template can be rendered with these values, as a search begins and in its
        midst, that it gives one text, and that what is never cut fits.

        Raises:
            OptionError: naming ``prompt`` or ``tokens``.
        """
        prompts.check(prompt)
        _, parent = self._memory.start()
        shown = self._values(parent, Seen(), (), ProfileSheet()) | values
        later = self._values(parent, Seen(DEVICE), (PASSAGE,), PROFILE) | midway(parent) | values
        try:
            messages = prompts.render(prompt, **self.fixed, **shown)
            once, again = (prompts.render(prompt, **self.fixed, **later) for _ in range(2))
            for between in in_between(shown, later):
                prompts.render(prompt, **self.fixed, **between)
        except prompts.PromptError as error:
            expected = "a template of values that there are"
            raise OptionError("prompt", expected, str(error)) from None
        if once != again:
            expected = "a template that gives one text for the same values"
            raise OptionError("prompt", expected, f"{prompt}, which gives several")
        least, budget = tokens_of(messages), self._around.tokens
        if budget is not None and least > budget:
            expected = f"at least {least}, which the task, the language and the start take"
            raise OptionError("tokens", expected, str(budget))

    def tell(self) -> None:
        """An ask has ended: the environment's secrets are looked at anew."""
        self._secrets = secrets_of(os.environ)

    def version(self, prompt: str) -> str:
        """The hash of a prompt's templates, that of mending included."""
        return template_version(prompt)

    def ask(
        self,
        prompt: str,
        place: tuple[int, int],
        parent: Parent | None,
        finish: Callable[[Messages], Messages] = as_it_is,
        **values: object,
    ) -> Messages:
        """The messages of a question.

        Args:
            prompt: the template.
            place: the ask and a number, under which it is recorded what was retrieved.
            parent: the program to improve, if there is one.
            finish: what else is done to the messages before they are measured.
            values: what else the template needs, or is shown in place of what is remembered.
        """
        seen = self._look()
        profile = self._profile(parent)
        passages = self._retrieve(place, parent, profile)
        given = self._values(parent, seen, passages, profile) | values

        def render(values: Values) -> Messages:
            messages = finish(prompts.render(prompt, **self.fixed, **values))
            return without_secrets(messages, self._secrets)

        return self.fitting.page(given, render)

    def mend(
        self, messages: Messages, said: str, kind: str, reason: str, **values: object
    ) -> Messages:
        """The same conversation, continued by what was wrong with the answer.

        Args:
            messages: what was asked.
            said: the answer.
            kind: the class that it was filed under.
            reason: what was wrong with it.
            values: what the template is shown in place of what is fixed.
        """
        why = one_line(reason, MOST_QUOTED)
        given = {**self.fixed, **values, "kind": kind, "reason": why}
        ((_, again),) = prompts.render(REPAIR, **given)
        return self.follow(messages, said, again)

    def follow(self, messages: Messages, said: str, text: str) -> Messages:
        """The same conversation, with an answer and what comes next; of a long answer the two ends
        are quoted, as far as there is room.

        Args:
            messages: what was asked.
            said: the answer.
            text: what comes next.
        """
        more: Messages = (("user", text),)
        room, most = self.fitting.room(messages, more), MOST_QUOTED
        if room is not None:
            most = max(LEAST_QUOTED, min(most, room * CHARACTERS_A_TOKEN))
        quoted: Messages = (("assistant", clean(said, most)),)
        whole = (*messages, *without_secrets((*quoted, *more), self._secrets))
        return self.fitting.conversation(whole)

    def _look(self) -> Seen:
        if self._seen is None:
            self._seen = see(self._around, self._journal)
            self._shelves = self._seen.shelves()
        return self._seen

    def _values(
        self,
        parent: Parent | None,
        seen: Seen,
        passages: tuple[Passage, ...],
        profile: ProfileSheet,
    ) -> dict[str, Any]:
        """Everything that a template may show of the search and of what surrounds it."""
        memory, candidate = self._memory, None if parent is None else parent.candidate
        return {
            "parent": parent,
            "device": seen.device,
            "profile": profile,
            "tried": memory.tried(),
            "count": memory.count,
            "pending": memory.pending(),
            "failures": memory.failures(),
            "failed": memory.failed(),
            "inspirations": memory.inspirations(self._inspirations, but=candidate),
            "known": [Quoted.of(each) for each in passages],
        }

    def _profile(self, parent: Parent | None) -> ProfileSheet:
        candidate = None if parent is None else parent.candidate
        if candidate is None:
            return ProfileSheet()
        verdict, explain = self._memory.verdict(candidate), self._around.explain
        then, sheet = self._profiles.pop(candidate.key, (None, None))
        if sheet is None or then is not verdict:
            known = None if explain is None else explain(candidate)
            sheet = profile_sheet(verdict, known, self._examine(candidate))
        self._profiles[candidate.key] = verdict, sheet
        if len(self._profiles) > MOST_PROFILES:
            self._profiles.popitem(last=False)
        return sheet

    def _examine(self, candidate: Candidate) -> Known | None:
        """What a look at the program found when it was first asked about. Looks are recorded by
        their number: they come in the same order when a search runs again.
        """
        examine = self._around.examine
        if examine is None:
            return None
        if candidate.key not in self._examined:
            number = len(self._examined)
            past = self._journal.past(LOOKED, 0, number)
            if past is not None and past.data["key"] == candidate.key:
                found = Known.of(past.data)
            else:
                found = examine(candidate)
                told = {} if found is None else found.plain()
                self._journal.record(event(LOOKED, 0, number, key=candidate.key, found=told))
            self._examined[candidate.key] = found
        return self._examined[candidate.key]

    def _retrieve(
        self, place: tuple[int, int], parent: Parent | None, profile: ProfileSheet
    ) -> tuple[Passage, ...]:
        """The passages that fit what the question is about: failures first, then the parent, then
        the problem; of the winners those first that were not tried and are not the parent's like.
        Where the record has them, those.
        """
        if self._shelves is None:
            return ()
        past = self._journal.past(RETRIEVED, *place)
        if past is not None:
            return tuple(self._shelves.get(past.data["ids"]))
        failures = self._memory.failures()
        about = [f"{row.code or ''} {row.detail}" for row in failures[:1]]
        about += [self._problem.name, *profile.lines[:4]]
        about += [parent.block] if parent is not None else []
        tried = {program_text(candidate) for candidate in self._memory.candidates()}
        start = None if parent is None else parent.candidate
        found = self._shelves.find(
            about,
            self._around.retrieved,
            tried=tried,
            parent=None if start is None else program_text(start),
            turn=place[0],
        )
        if found:
            self._journal.record(event(RETRIEVED, *place, ids=[each.id for each in found]))
        return tuple(found)
