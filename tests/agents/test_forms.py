"""Answers of the simulated programmer in every form that a prompt may ask for: whole, as edits, and
as either; and what becomes of its faults there.
"""

from __future__ import annotations

from collections import Counter

import pytest

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import Malformed, classify
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.dialects.fences import blocks
from kernelwright.agents.programmer.directives import applied, between, directives, listed
from kernelwright.agents.programmer.faults import FILED_AS
from kernelwright.agents.programmer.reading import read_prompt
from kernelwright.agents.report import classified

MARKS = {"schedule": ("python", "steps"), "source": ("c", "edit"), "regions": ("c", "edit")}
NAMES = tuple(MARKS)


class Turning(Mock):
    """Some honest answers, then faults of one class."""

    def __init__(self, fault, seed):
        super().__init__(seed=seed)
        self._honest, self._faulty = Mock(seed=seed), Mock(seed=seed, faults={fault: 1.0})
        self._asked = 0

    def complete(self, request):
        self._asked += 1
        return (self._honest if self._asked <= 8 else self._faulty).complete(request)


@pytest.fixture
def answered(worlds, recording):
    """The requests of a search with their answers by an honest programmer."""

    def play(name, edits):
        said = []

        class Overheard(Mock):
            def complete(self, request):
                said.append((request, super().complete(request)))
                return said[-1][1]

        backend = Overheard(seed=3, skill=0.7)
        world, journal = worlds[name], recording()
        world.play(world.driver(journal, backend=backend, seed=3, edits=edits), asks=6)
        return said, journal

    return play


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edits", ["whole", "search_replace", "either"])
def test_the_form_is_the_one_that_is_asked_for(answered, name, edits):
    said, journal = answered(name, edits)
    whole, edited = MARKS[name]
    wanted = {"whole": (whole,), "search_replace": (edited,), "either": (whole, edited)}[edits]
    marks = Counter()
    for request, answer in said:
        assert read_prompt(request.messages).forms == wanted
        marks[blocks(answer.text)[-1].mark] += 1
    assert set(marks) == set(wanted)
    filed = Counter(event.kind for event in journal.events)
    # Edits that fit nowhere would be of these classes.
    assert not filed["unparsable"]
    assert not filed["wrong_schema"]
    assert filed["proposed"] >= len(said) / 2


@pytest.mark.parametrize("name", NAMES)
def test_which_form_is_a_function_of_seed_and_request(answered, name):
    said, _ = answered(name, "either")
    again = Mock(seed=3, skill=0.7)
    assert [again.complete(request) for request, _ in reversed(said)] == [
        answer for _, answer in reversed(said)
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("edits", ["search_replace", "either"])
@pytest.mark.parametrize(
    "fault", ["truncated", "unparsable", "syntax", "wrong_schema", "illegal", "duplicate"]
)
def test_faults_of_edits_are_filed_as_what_they_are(worlds, recording, name, edits, fault):
    world, journal = worlds[name], recording()
    driver = world.driver(journal, backend=Turning(fault, 4), seed=4, edits=edits)
    world.play(driver, asks=3)
    filed, seen = classified(journal.events), 0
    for event in journal.events:
        truth = event.kind == "model_call" and event.data["completion"]["injected"]
        if truth:
            seen += 1
            found = filed[event.ask, event.slot]
            # C is read before it is built.
            allowed = {"candidate"} if name != "schedule" and fault in ("syntax", "illegal") else ()
            assert found in {*FILED_AS[truth.partition(":")[0]], *allowed}
    assert seen


def test_a_refused_edit_of_a_schedule_is_mended(worlds, recording):
    world = worlds["schedule"]
    dialect = dialect_for(world.space, world.problem, edits="search_replace")
    driver = world.driver(recording(), edits="search_replace")
    turn = driver._fresh(0)
    wrong = "```steps\ninsert 1: unroll('i')\ninsert 1: split('none', 4)\n```"
    messages = driver._desk.prompter.mend(
        turn.messages,
        wrong,
        "illegal",
        "split: expected a loop, found none",
        dialect={"name": "schedule", "facts": dialect.facts()},
    )
    asked = Mock(seed=0, skill=1.0)
    from kernelwright.agents.chat import ChatRequest

    answer = asked.complete(ChatRequest("mock", messages, 4096, 0.0, 0))
    found = dialect.parse(classify(answer))
    assert not isinstance(found, Malformed)
    assert dialect.brief(found) == "unroll('i')"


PARENT = "split('i', 8)  # 1\nsplit('j', 16)  # 2\nreorder('io', 'jo')  # 3\n"


@pytest.mark.parametrize(
    ("after", "steps"),
    [
        ("split('i', 4)\nsplit('j', 16)\nreorder('io', 'jo')", "replace 1: split('i', 4)\n"),
        ("split('i', 8)\nreorder('io', 'jo')", "delete 2\n"),
        (
            "split('i', 8)\nsplit('j', 16)\nreorder('io', 'jo')\nunroll('ii')",
            "insert 4: unroll('ii')\n",
        ),
        ("", "delete 1\ndelete 2\ndelete 3\n"),
    ],
)
def test_edits_of_schedules_are_few(after, steps):
    assert between(PARENT, after) == steps
    assert applied(directives(PARENT), steps.splitlines()) == after.splitlines()


def test_numbers_are_no_part_of_a_schedule():
    assert listed(PARENT) == "split('i', 8); split('j', 16); reorder('io', 'jo')"
    assert listed("# no directive: the loops as they are written\n") == "pass"
