"""Questions that are too long: for the campaign's budget, or for the model that is asked."""

from __future__ import annotations

import pytest
from contract import Unplugged, Versatile

from kernelwright.agents.chat import BackendError
from kernelwright.agents.context.fitting import Fitting
from kernelwright.agents.context.shrink import tokens_of
from kernelwright.agents.context.surroundings import CUT, Surroundings
from kernelwright.search.store import StoreJournal

TALKING = ("llm", "refine", "evolve", "team", "tool_loop", "hybrid")
OVERFLOW = BackendError("repairable", "400 maximum context length exceeded")


class Narrow(Versatile):
    """A model that reads no more than so many tokens."""

    def __init__(self, most, **options):
        super().__init__(**options)
        self.most, self.sizes, self.refused = most, [], 0

    def complete(self, request):
        size = tokens_of(request.messages)
        if size > self.most:
            self.refused += 1
            raise OVERFLOW
        self.sizes.append(size)
        return super().complete(request)


def longest(world, **options):
    """The tokens of the longest and of the shortest question where nothing is cut."""
    model = Narrow(10**9)
    journal = StoreJournal((), lambda event: None)
    world.play(world.driver(journal, backend=model, **options), asks=8)
    return max(model.sizes), min(model.sizes)


@pytest.mark.parametrize("agent", TALKING)
def test_a_question_that_is_too_long_is_cut_and_asked_again(worlds, journal, agent):
    world = worlds["knobs"]
    most, least = longest(world, agent=agent, seed=1)
    model = Narrow((most + least) // 2, seed=0)
    asked, _ = world.play(world.driver(journal, agent=agent, backend=model, seed=1), asks=8)
    kinds = [e.kind for e in journal.events]
    assert model.refused == kinds.count("too_long") > 0
    assert "lost" not in kinds
    cuts = {(e.ask, e.slot): e.data for e in journal.events if e.kind == CUT}
    for e in journal.events:
        if e.kind == "too_long":
            assert cuts[e.ask, e.slot + 1]["cut"]
    # Once it is known what the model reads, questions are cut to that beforehand.
    assert model.refused <= 2
    assert all(asked)
    # And all of it again, from the record.
    driver = world.driver(
        StoreJournal(journal.events, print), agent=agent, backend=Unplugged(), seed=1
    )
    again, _ = world.play(driver, asks=8)
    assert again == asked


def test_what_cannot_be_cut_is_filed_and_given_up(worlds, journal):
    world, model = worlds["knobs"], Narrow(10)
    driver = world.driver(journal, backend=model)
    assert driver.ask(4) == []
    assert "the last was too_long" in driver.stopped
    assert {e.kind for e in journal.events} == {"model_call", "too_long", CUT}


@pytest.mark.parametrize("agent", ["refine", "tool_loop"])
def test_a_long_conversation_loses_its_oldest_turns(worlds, journal, agent):
    world = worlds["knobs"]
    options = {"agent": agent, "seed": 1, "turns" if agent == "refine" else "steps": 16}
    most, least = longest(world, **options)
    budget = (most + least) // 2
    model = Narrow(10**9)
    driver = world.driver(journal, backend=model, context=Surroundings(tokens=budget), **options)
    world.play(driver, asks=8)
    told = {(e.ask, e.slot): e.data for e in journal.events if e.kind == CUT}
    assert any(data["cut"].get("turns") for data in told.values())
    assert max(model.sizes) <= budget + max(data["over"] for data in told.values())
    assert max(model.sizes) < most
    calls = [(e.ask, e.slot) for e in journal.events if e.kind == "model_call"]
    for place, request in zip(calls, model.requests, strict=True):
        roles = [role for role, _ in request.messages]
        assert roles[:2] == ["system", "user"]
        assert roles[2:] == ["assistant", "user"] * (len(roles[2:]) // 2)
        assert "## Task" in request.messages[1][1]
        if place in told:
            assert told[place]["tokens"] == tokens_of(request.messages)


def page(values):
    return (("system", "be brief"), ("user", "task " + " ".join(values["pending"])))


def conversation(turns):
    each = (("assistant", "a" * 40), ("user", "u" * 40))
    return tuple(message for _ in range(turns) for message in each)


@pytest.mark.parametrize(
    ("tokens", "turns", "cut"),
    [
        (None, 3, None),
        (1000, 3, None),
        (65, 3, {"turns": 1}),
        (45, 3, {"turns": 2}),
        (30, 3, {"turns": 2, "pending": 5}),
    ],
)
def test_turns_go_before_the_page(tokens, turns, cut):
    fitting = Fitting(None)
    first = fitting.page({"pending": ["x" * 12] * 6}, page)
    fitting.tokens = tokens
    whole = (*first, *conversation(turns))
    fitted = fitting.conversation(whole)
    if cut is None:
        assert fitted == whole
        assert fitting.cut(fitted) is None
        return
    told = fitting.cut(fitted)
    assert (told["cut"], told["over"]) == (cut, 0)
    assert told["tokens"] == tokens_of(fitted) <= tokens
    assert fitted[0] == whole[0]
    assert fitted[-2:] == whole[-2:]
