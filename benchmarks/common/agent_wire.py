"""Faults on the wire and in answers, one at a time, through every agent and the client of OpenAI's
interface, against the simulated model's server.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent_worlds import AGENTS, VirtualClock, served, world
from table import Row

from kernelwright.agents.backends.gate import Gate
from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.backends.openai import OpenAI
from kernelwright.agents.chat import BackendError, ChatRequest, Completion
from kernelwright.agents.programmer.faults import FILED_AS
from kernelwright.agents.programmer.reading import read_prompt
from kernelwright.agents.report import classified
from kernelwright.agents.server import chat_server
from kernelwright.agents.wire_faults import FINE, OF_SCHEMAS, WIRE_FAULTS, Script
from kernelwright.search.trial import MODEL_CALL

RETRIES, TIMEOUT_S, DEADLINE_S = 2, 0.3, 500.0
# The marks of the questions that agents ask here; json is a program.
MARKS = dict.fromkeys(AGENTS, ("json",))
MARKS |= {"evolve": ("json", "plan"), "team": ("plan", "json", "review"), "tool_loop": ("action",)}
OPTIONS = {"evolve": {"islands": 1, "crossover": 1.0}}
# Steps before something goes wrong; a hybrid asks no more once its seeds are slower.
STEPS_BEFORE = {"hybrid": 0}
PERMANENT, LOST, PASSED = "permanent", "lost", "passed"
# What becomes of a call, by what goes wrong on the wire at each attempt at it, ...
TRANSIENT = {
    *("rate_limit", "rate_limit_hint", "rate_limit_long", "server_error", "overloaded"),
    *("hang", "drop", "cut_body"),
}
ON_THE_WIRE = {
    **dict.fromkeys(TRANSIENT, LOST),
    **dict.fromkeys(("quota", "bad_key", "forbidden", "no_model"), PERMANENT),
    "too_long": "too_long",
    **dict.fromkeys(("html", "broken_json", "error_in_200", "null_choices"), LOST),
    **dict.fromkeys(("no_choices", "null_content"), "empty"),
    "content_filter": "refused",
    **dict.fromkeys(("no_usage", "odd_finish", "no_schema"), PASSED),
}
# ... and by what is wrong with the answer. What can be read and is no program is filed as what it
# is, whatever is wrong with it.
OF_PROGRAMS = {
    **dict.fromkeys(("truncated", "refused", "empty", "wrong_schema"), None),
    **dict.fromkeys(("prose", "unparsable", "syntax"), "unparsable"),
    **dict.fromkeys(("illegal", "wrong_code"), "illegal"),
    "duplicate": "duplicate",
    "cheating": "illegal or wrong_schema",
}
READABLE = ("illegal", "wrong_code", "wrong_answer", "duplicate", "cheating")


class Aimed(Script):
    """One question goes wrong once armed: the first that asks for the mark, at each attempt.

    It answers for a model, too: with a fault of a class if ``fault`` is one of answers, else as the
    model whose every answer is honest.
    """

    model, priced, missing = "mock", True, ()

    def __init__(self, fault: str, mark: str) -> None:
        super().__init__()
        self.fault, self.mark = fault, mark
        self._honest = Mock(seed=0, skill=1.0)
        self._faulty = Mock(seed=0, faults={fault: 1.0} if fault in FILED_AS else 0.0)
        self.armed, self.key, self.injected = False, "", ""
        self.sent: list[str] = []

    def next(self, request: ChatRequest) -> str:
        """Called once a request."""
        self.sent.append(request.key)
        return self.fault if self.fault in WIRE_FAULTS and self._is_hit(request) else FINE

    def complete(self, request: ChatRequest) -> Completion:
        """The model's answer."""
        if self.fault not in FILED_AS or not self._is_hit(request):
            return self._honest.complete(request)
        answer = self._faulty.complete(request)
        self.injected = answer.injected or ""
        return answer

    def _is_hit(self, request: ChatRequest) -> bool:
        if self.armed and not self.key and read_prompt(request.messages).mark == self.mark:
            self.key = request.key
        return request.key == self.key

    @property
    def attempts(self) -> int:
        """How often the question was sent."""
        return self.sent.count(self.key)

    @property
    def later(self) -> int:
        """How many other requests came after it."""
        return len(self.sent) - self.sent.index(self.key) - self.attempts


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one fault: its class, what it should be, attempts at the question, requests
    after it, and whether the agent went on as the class has it.
    """

    fault: str
    mark: str
    found: str
    expected: str
    attempts: int
    later: int
    went_on: bool

    @property
    def is_right(self) -> bool:
        """Whether the class is right, and what the agent did then."""
        return self.found in self.expected.split(" or ") and self.went_on


def tried(agent: str, fault: str, mark: str) -> Outcome | None:
    """One fault in a search that has begun; None where the language has no such fault."""
    aimed = Aimed(fault, mark)
    options = OPTIONS.get(agent, {}) | ({"structured": True} if fault in OF_SCHEMAS else {})
    with served(chat_server(aimed, aimed)) as server:
        backend = OpenAI(
            model="mock",
            base_url=server.url,
            timeout=TIMEOUT_S if fault == "hang" else 30.0,
            deadline=DEADLINE_S,
            retries=RETRIES,
        )
        backend.pass_through(Gate(clock=VirtualClock()))
        search = world("knobs").search(agent, backend, **options)
        for _ in range(STEPS_BEFORE.get(agent, 2)):
            search.step()
        aimed.armed, error, proposals = True, None, []
        try:
            # Where a plan serves for several asks, or a session goes on, the question comes later.
            while not aimed.key:
                proposals = search.step()
        except BackendError as raised:
            error = raised
    if fault in FILED_AS and not aimed.injected:
        return None
    calls = [e for e in search.events if e.kind == MODEL_CALL and e.data["key"] == aimed.key]
    found = error.kind if error else "none"
    if calls:
        found = classified(search.events)[calls[0].ask, calls[0].slot]
    expected, later = _expected(fault, mark), aimed.later
    went_on = not (calls or later) if expected == PERMANENT else bool(proposals)
    return Outcome(fault, mark, found, expected, aimed.attempts, later, went_on)


def _expected(fault: str, mark: str) -> str:
    """The class of a fault in the answer to a question for a mark."""
    good = "candidate or duplicate or declined" if mark == "json" else f"{mark} or candidate"
    if fault == "prose_around":  # the programmer may break a rule unasked
        return f"{good} or illegal"
    if fault in WIRE_FAULTS:
        found = ON_THE_WIRE.get(fault, "a class of its own")
    elif mark != "json" and fault in READABLE:
        found = mark
    else:
        found = OF_PROGRAMS.get(fault, "a class of its own") or fault
    return good if found == PASSED else found


def outcomes(agent: str) -> list[Outcome]:
    """Every fault at every question of an agent."""
    found = []
    for mark in MARKS[agent]:
        for fault in (*WIRE_FAULTS, *FILED_AS):
            if fault in OF_SCHEMAS and (mark != "json" or agent == "tool_loop"):
                continue  # only programs are asked for by a schema
            outcome = tried(agent, fault, mark)
            found += [] if outcome is None else [outcome]
    return found


def faults() -> Iterator[Row]:
    """A row an agent, and what errors cost in all of them."""
    every: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        # What is learned of these servers is of no use to anybody.
        os.environ["XDG_CACHE_HOME"], before = folder, os.environ.get("XDG_CACHE_HOME")
        try:
            for agent in AGENTS:
                found = outcomes(agent)
                every += found
                yield _agent_row(agent, found)
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            os.environ |= {} if before is None else {"XDG_CACHE_HOME": before}
    permanent = [one for one in every if one.expected == PERMANENT]
    calls = sorted({one.attempts + one.later for one in permanent})
    shown = f"{' or '.join(map(str, calls))} in {len(permanent)} searches"
    yield "requests that a permanent error costs", "1", shown, calls == [1]
    transient = [one for one in every if one.fault in TRANSIENT]
    most = max(one.attempts - 1 for one in transient)
    shown = f"at most {most} in {len(transient)} searches"
    what = "requests more that a transient error costs"
    yield what, f"at most {RETRIES} (retries)", shown, most <= RETRIES


def _agent_row(agent: str, found: Sequence[Outcome]) -> Row:
    kinds = len({one.fault for one in found})
    right = [one for one in found if one.is_right]
    wrong = ", ".join(f"{one.fault} ({one.mark}) {one.found}" for one in found if not one.is_right)
    asked = ", ".join(MARKS[agent])
    shown = f"{len(right)} of {len(found)} right ({kinds} faults; questions: {asked}) {wrong}"
    what = f"faults through `{agent}`: the class, and what follows"
    return what, "all right, at least 24 faults", shown.strip(), right == found and kinds >= 24
