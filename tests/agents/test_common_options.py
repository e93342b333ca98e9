"""The options that all agents have: they stand in each signature, and are read."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest
from contract import Versatile, wanted

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.agent import agent
from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import Completion
from kernelwright.agents.options import Common
from kernelwright.configs.load import GIVEN
from kernelwright.configs.resolve import options_model, resolve
from kernelwright.env.compiler.schedule.trace import print_trace

# What would mean nothing to an agent, or is its own there.
WITHOUT = {
    "best_of_n": {"history", "parents", "inspirations", "attempts"},
    "sequential": {"history", "parents", "inspirations"},
    "evolve": {"parents"},
    "tool_loop": {"structured", "edits"},
}
COMMON = {field.name: field.default for field in fields(Common)}
INSPIRED = ("llm", "refine", "evolve", "tool_loop", "team", "hybrid")
EDITED = tuple(name for name in AGENT_DRIVERS if name != "tool_loop")


class Listening(Mock):
    """The mock, which keeps what it was asked."""

    def __init__(self):
        super().__init__(seed=0)
        self.asked = []

    def complete(self, request):
        self.asked.append(request.messages)
        return super().complete(request)


@pytest.mark.parametrize("name", AGENT_DRIVERS)
def test_every_agent_has_the_common_options(name):
    found = options_model(resolve(AGENT_DRIVERS, name), GIVEN["driver"]).model_fields
    assert set(COMMON) - WITHOUT.get(name, set()) <= set(found)
    assert not WITHOUT.get(name, set()) & set(found)
    own = {"temperature": 1.0} if name == "best_of_n" else {}
    own |= {"inspirations": 2} if name == "evolve" else {}
    for option in set(COMMON) & set(found):
        assert found[option].default == (COMMON | own)[option]
        assert found[option].description


def test_a_new_agent_states_what_is_its_own():
    @agent("mine", without=("edits",), attempts=3)
    class Mine:
        def __init__(self, desk, *, depth: int = 2) -> None:
            self.desk, self.depth = desk, depth

    known = inspect.signature(Mine).parameters
    parts = ["space", "seed", "batch", "problem", "backend", "prompt", "journal", "context"]
    options = [option for option in COMMON if option != "edits"]
    assert list(known) == [*parts, "depth", *options]
    assert known["attempts"].default == 3


def test_an_option_that_an_agent_is_without_is_refused(worlds, journal):
    with pytest.raises(TypeError, match="edits"):
        worlds["knobs"].driver(journal, agent="tool_loop", edits="whole")


@pytest.mark.parametrize("name", INSPIRED)
def test_inspirations_are_shown(worlds, journal, name):
    world, model = worlds["knobs"], Listening()
    driver = world.driver(journal, agent=name, backend=model, inspirations=2)
    world.play(driver, asks=6)
    assert any("## Inspirations" in messages[1][1] for messages in model.asked)


class Editing(Versatile):
    """Answers with the next of some edits where edits are wanted."""

    def __init__(self, edits):
        super().__init__(rejects=0.0)
        self._edits = iter(edits)

    def complete(self, request):
        if wanted(request.messages) != "steps":
            return super().complete(request)
        self.requests.append(request)
        return Completion(f"```steps\n{next(self._edits)}\n```", "stop", self.model, "id")


@pytest.mark.parametrize("name", EDITED)
def test_programs_come_as_edits(worlds, journal, name):
    world = worlds["schedule"]
    moves = world.space.legal_moves(world.space.default)
    model = Editing(f"insert 1: {print_trace((move,)).strip()}" for move in moves)
    driver = world.driver(journal, agent=name, backend=model, edits="search_replace")
    ((first, *_), *_), _ = world.play(driver, asks=1)
    assert first.candidate.payload == moves[:1]
    asked = [messages[-1][1] for messages in (request.messages for request in model.requests)]
    assert any("Edits of the parent's directives" in text for text in asked)
