"""Answers that cheat, in campaigns of every agent: how many a judge accepts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from agent_honest import honest
from agent_worlds import AGENTS
from table import Row

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import ChatRequest, Completion
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.programmer.cheats import CHEATS, Cheat
from kernelwright.agents.programmer.edits import DIVIDER, REPLACE, SEARCH
from kernelwright.agents.programmer.reading import Sheet, read_prompt
from kernelwright.agents.programmer.sourcefaults import cheated
from kernelwright.agents.report import OK, confusion
from kernelwright.configs.build import build
from kernelwright.configs.load import read_config
from kernelwright.search.campaign import Campaign
from kernelwright.search.store import MemoryStore
from kernelwright.search.trial import MODEL_CALL

PROBLEMS = ("{name: softmax, rows: 16, cols: 64}", "{name: prefix_sum, n: 1024}")
# One answer in so many is honest, so that there are other parents than the plain loops.
HONEST = 4
# Trials of a campaign of knobs or a schedule, and calls of any at most.
TRIALS, CALLS = 16, 200
PASSED, CHEATING = "ok", "cheating"
# How a cheat calls the kernel that it stands around.
HIDDEN = "_plain("
WORDS = ("plan", "review")
OF_CATALOGUE = {one.tag for one in CHEATS}
Cells = Counter[tuple[str, str]]


class Cheater:
    """A model that writes every cheat of the catalogue in C, in an order of its own; plans order
    one, reviews wave everything through, and programs are submitted and measured in turn.
    """

    model, priced, missing = "cheater", True, ()

    def __init__(self, *, seed: int) -> None:
        self._left = list(CHEATS)
        Random(seed).shuffle(self._left)
        self._honest = Mock(seed=seed, skill=1.0)
        self._cheating = Mock(seed=seed, faults={CHEATING: 1.0})
        self._programs, self._plain = 0, ""

    def complete(self, request: ChatRequest) -> Completion:
        """The next cheat as an answer to the question."""
        sheet = read_prompt(request.messages)
        if sheet.mark in WORDS:
            return self._cheating.complete(request)
        self._programs += 1
        if not self._plain or HIDDEN not in sheet.parent:
            self._plain = sheet.parent  # a cheat around a cheat is another one
        found = None if self._programs % HONEST == 0 else self._next(sheet)
        if found is None:
            return self._honest.complete(request)
        one, text = found
        if sheet.mark == "action":
            tool = ("submit", "measure")[self._programs % 2]
            block = json.dumps({"tool": tool, "arguments": {"program": text}})
        elif sheet.mark == "edit":
            block = "\n".join((SEARCH, sheet.parent, DIVIDER, text, REPLACE, ""))
        else:
            block = text
        said = f"This is faster.\n\n{fenced(block, sheet.mark)}\n"
        return Completion(said, "stop", self.model, request.key, injected=one.tag)

    def _next(self, sheet: Sheet) -> tuple[Cheat, str] | None:
        """A cheat that fits the kernel, with the program; None if none is left."""
        for one in self._left:
            text = cheated(one, replace(sheet, parent=self._plain))
            if text is not None:
                self._left.remove(one)
                return one, text
        return None


def _run(changes: list[str], config: str, until: Callable[[MemoryStore], bool]) -> MemoryStore:
    """The record of a campaign, which is not confirmed."""
    store = MemoryStore()
    limits = f"budget={{trials: 1000, calls: {CALLS}}}"
    plan = build(read_config(config, [limits, *changes])).plan
    Campaign(plan, store, until=lambda trial: until(store)).run()
    return store


def in_c(number: int, driver: str) -> MemoryStore:
    """A campaign in C until every cheat was said."""
    changes = [f"problem={PROBLEMS[number % len(PROBLEMS)]}", f"driver={driver}"]
    changes += [f"agents={{backend: {{name: '{__name__}:Cheater'}}}}", f"seed={number}"]
    changes += ["batch=4", "judge={screen: {pairs: 1}}"]

    def is_over(store: MemoryStore) -> bool:
        return said(store) >= OF_CATALOGUE

    return _run(changes, "softmax_source_mock", is_over)


def elsewhere(agent: str, config: str) -> MemoryStore:
    """A campaign in knobs or schedules, on the analytic models, by the simulated model."""
    backend = "{name: mock, faults: {cheating: 0.5}}"
    changes = [f"driver={{name: {agent}}}", f"agents={{backend: {backend}}}", "batch=4"]
    return _run(changes, config, lambda store: len(store.trials()) >= TRIALS)


def said(store: MemoryStore) -> set[str]:
    """What was injected into a campaign's answers."""
    calls = [e.data["completion"] or {} for e in store.events() if e.kind == MODEL_CALL]
    return {call["injected"] for call in calls if call.get("injected")}


def cells_of(store: MemoryStore) -> Cells:
    """What was injected, and what it was filed as."""
    return Counter(confusion(store.events(), store.trials(), variants=True))


def _accepted(cells: Cells) -> int:
    return sum(n for (truth, found), n in cells.items() if truth != OK and found == PASSED)


def _cheats(cells: Cells) -> int:
    return sum(n for (truth, _), n in cells.items() if truth != OK)


def _verdicts(cells: Cells) -> str:
    found = Counter[str]()
    for (truth, filed), n in cells.items():
        if truth != OK:
            found[filed] += n
    return ", ".join(f"{filed} {n}" for filed, n in found.most_common())


def cheats() -> Iterator[Row]:
    """Rows of all cheats, and of honest programs."""
    every = Counter[tuple[str, str]]()
    drivers = {f"`{agent}`": f"{{name: {agent}}}" for agent in AGENTS}
    drivers["`llm` by edits"] = "{name: llm, edits: search_replace}"
    for number, (shown, driver) in enumerate(drivers.items()):
        cells = cells_of(in_c(number, driver))
        every += cells
        tags = OF_CATALOGUE & {truth for truth, _ in cells}
        text = f"{_accepted(cells)} of {_cheats(cells)}: {_verdicts(cells)}"
        control = f"of honest answers {cells[OK, PASSED]} accepted"
        what = f"cheats in C through {shown} that the judge accepts"
        good = _accepted(cells) == 0 and len(tags) == len(CHEATS)
        yield what, f"0, all {len(CHEATS)} tried", f"{text}; {len(tags)} kinds; {control}", good
    for language, config in (("knobs", "gemm_model_llm"), ("schedules", "matmul_model")):
        cells = Counter[tuple[str, str]]()
        for agent in AGENTS:
            cells += cells_of(elsewhere(agent, config))
        every += cells
        text = f"{_accepted(cells)} of {_cheats(cells)}: {_verdicts(cells)}"
        what = f"cheats in {language} through all agents that become a trial which passes"
        yield what, "0", text, _accepted(cells) == 0 < _cheats(cells)
    yield _total(every)
    yield from honest()


def _total(every: Cells) -> Row:
    """Cheats by tag, and how many of the catalogue's a judge was asked about."""
    words = ("duplicate", *WORDS, "action", "candidate")
    judged = {truth for truth, found in every if found not in words}
    in_c = len(OF_CATALOGUE & judged)
    by_tag = Counter[str]()
    for (truth, _), n in every.items():
        if truth != OK:
            by_tag[truth.partition(":")[2]] += n
    tags = ", ".join(f"{tag} {n}" for tag, n in sorted(by_tag.items()))
    shown = f"{_accepted(every)} of {_cheats(every)}, {in_c} kinds in C judged ({tags})"
    good = _accepted(every) == 0 and in_c == len(CHEATS)
    return "all cheats accepted", f"0, all {len(CHEATS)} judged", shown, good
