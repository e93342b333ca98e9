"""Answers that are none, and some that look whole, in searches by every agent and in each language:
none may become a candidate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from random import Random

from agent_worlds import AGENTS, Search, world
from table import Row

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import ChatRequest, Completion, digest
from kernelwright.agents.report import OK, confusion

ANSWERS = 1000
WORLDS = ("knobs", "schedule", "source")
STEPS = 24
# Of hybrid's proposals only the seeds are the model's.
OPTIONS = {"hybrid": {"seeds": 10_000}}
# Shares of all answers: as the simulated model spoils them, and those that look whole.
SPOILT = dict.fromkeys(("truncated", "refused", "empty", "prose", "unparsable"), 0.06)
WHOLE_SHARE = 0.3
CANDIDATE = "candidate"
FILED = {name: name for name in SPOILT} | {"prose": "unparsable"}


def _unclosed(answer: Completion) -> Completion:
    """A whole program in a block without its end."""
    text = (answer.text or "").rstrip().rstrip("`")
    return replace(answer, text=text, injected="unparsable:whole")


def _between_others(answer: Completion) -> Completion:
    """The same, behind a block of another language that is closed."""
    text = f"```text\nfirst try\n```\n\n{_unclosed(answer).text}"
    return replace(answer, text=text, injected="unparsable:whole behind another")


def _thought(answer: Completion) -> Completion:
    """A whole program that was only thought, and no answer."""
    return replace(answer, text=f"<think>\n{answer.text}</think>\n", injected="unparsable:thought")


Spoiling = Callable[[Completion], Completion]
# Each makes of an honest answer, which has a whole program, one that must not be read.
WHOLE: tuple[Spoiling, ...] = (
    lambda one: replace(one, finish_reason="length", injected="truncated:whole"),
    lambda one: replace(one, refusal="I will not.", injected="refused:whole"),
    lambda one: replace(one, finish_reason="content_filter", injected="refused:filtered"),
    _unclosed,
    _between_others,
    _thought,
)


class Spoilt(Mock):
    """The simulated model, more than half of whose answers are none."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed=seed, skill=0.7, faults=SPOILT)
        self._chance = seed

    def complete(self, request: ChatRequest) -> Completion:
        """An answer as the model gives it, or a whole one that must not be read."""
        answer = super().complete(request)
        rng = Random(digest(["spoilt", self._chance, request.key]))
        if answer.injected is None and rng.random() < WHOLE_SHARE / (1 - sum(SPOILT.values())):
            return rng.choice(WHOLE)(answer)
        return answer


def searched(agent: str, language: str, answers: int) -> Iterator[Search]:
    """Searches with other seeds, until so many answers were none."""
    left = answers
    for seed in count():
        search = world(language).search(agent, Spoilt(seed), seed=seed, **OPTIONS.get(agent, {}))
        for _ in range(STEPS):
            if not search.step() or _spoilt(search) >= left:
                break
        yield search
        left -= _spoilt(search)
        if left <= 0:
            return


def _spoilt(search: Search) -> int:
    cells = confusion(search.events, variants=True)
    return sum(n for (truth, _), n in cells.items() if truth != OK)


def malformed() -> Iterator[Row]:
    """How many of the answers that are none became candidates, and how many of the others."""
    cells = Counter[tuple[str, str]]()
    each = -(-ANSWERS // (len(AGENTS) * len(WORLDS)))
    by_agent = Counter[str]()
    for agent in AGENTS:
        for language in WORLDS:
            for search in searched(agent, language, each):
                cells.update(confusion(search.events, variants=True))
                by_agent[agent] += _spoilt(search)
    bad = {cell: n for cell, n in cells.items() if cell[0] != OK}
    total, taken = sum(bad.values()), sum(n for (_, found), n in bad.items() if found == CANDIDATE)
    kinds = Counter[str]()
    for (truth, _), n in bad.items():
        kinds[truth] += n
    named = ", ".join(f"{truth} {n}" for truth, n in sorted(kinds.items()))
    what = "answers cut, refused, empty or unreadable that became candidates"
    shown = f"{taken} of {total:,} ({min(by_agent.values())} or more by each agent: {named})"
    yield what, f"0 of at least {ANSWERS:,}", shown, taken == 0 and total >= ANSWERS
    whole = sum(n for truth, n in kinds.items() if ":" in truth)
    amiss = {c: n for c, n in bad.items() if c[1] != FILED.get(c[0].partition(":")[0])}
    right = total - sum(amiss.values())
    shown = f"{right:,} of {total:,}, {whole} of which look whole {amiss or ''}"
    yield "these filed under their own class", "all", shown.strip(), not amiss
    honest = {found: n for (truth, found), n in cells.items() if truth == OK}
    shown = f"{honest.get(CANDIDATE, 0)} of {sum(honest.values())}"
    yield "the whole answers between them that became candidates", "-", shown, None
