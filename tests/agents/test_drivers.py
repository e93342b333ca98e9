"""Every agent keeps the contract; then what the simple ones do beside it."""

from __future__ import annotations

from contract import AgentContract, Scripted, Versatile, some

from kernelwright.agents import AGENT_DRIVERS


class TestLlm(AgentContract):
    agent = "llm"


class TestBestOfN(AgentContract):
    agent = "best_of_n"


class TestSequential(AgentContract):
    agent = "sequential"


class TestRefine(AgentContract):
    agent = "refine"


class TestEvolve(AgentContract):
    agent = "evolve"
    options = {"crossover": 0.5, "migration": 5, "instructions": 2}  # noqa: RUF012


class TestToolLoop(AgentContract):
    agent = "tool_loop"


class TestTeam(AgentContract):
    agent = "team"


class TestHybrid(AgentContract):
    agent = "hybrid"
    options = {"polish": "evolution"}  # noqa: RUF012


def test_every_agent_keeps_the_contract():
    assert {cls.agent for cls in AgentContract.__subclasses__()} == set(AGENT_DRIVERS)


def test_best_of_n_asks_one_question_whatever_came_of_it(worlds, recording):
    world, model = worlds["knobs"], Versatile(1)
    driver = world.driver(recording(), agent="best_of_n", backend=model)
    world.play(driver, asks=6)
    assert len({request.messages for request in model.requests}) == 1
    assert len({request.key for request in model.requests}) == len(model.requests) >= 24


def test_sequential_shows_the_last_program_and_nothing_before_it(worlds, recording):
    world, model = worlds["knobs"], Scripted(json=some(4))
    driver = world.driver(recording(), agent="sequential", backend=model, batch=1)
    heights = iter([2.0, 1.0, None, 0.5])
    asked, _ = world.play(driver, asks=4, batch=1, objective=lambda c: next(heights))
    keys = [p.candidate.key[:8] for (p,) in asked]
    first, second, third, fourth = [r.messages[-1][1] for r in model.requests]
    assert f"Key {keys[0]}, speedup 4x." in second
    assert f"Key {keys[1]}, speedup 2x." in third
    assert keys[0] not in third
    assert third.count("`: ") == first.count("`: ") + 1
    assert f"Key {keys[2]}, which failed: build_error." in fourth
    assert "build_error, made_up" in fourth
    assert [p.parents[0][:8] for (p,) in asked[1:]] == keys[:3]


def test_refine_goes_on_with_the_verdict_in_the_same_conversation(worlds, recording):
    world, model = worlds["knobs"], Scripted(json=some(8))
    driver = world.driver(recording(), agent="refine", backend=model, batch=1, turns=3)
    heights = iter([None, 2.0, 1.0, 0.0, 0.0])
    asked, _ = world.play(driver, asks=5, batch=1, objective=lambda c: next(heights))
    assert [len(r.messages) for r in model.requests] == [2, 4, 6, 2, 4]
    keys = [p.candidate.key[:8] for (p,) in asked]
    mend, improve = [model.requests[i].messages[-1][1] for i in (1, 2)]
    assert "The judge says of your last program: build_error, made_up." in mend
    assert "Mend it" in mend
    assert "it passed, speedup 4x" in improve
    assert model.requests[2].messages[:4] == model.requests[1].messages
    assert f"Key {keys[1]}, speedup 4x." in model.requests[3].messages[-1][1]


def test_refine_says_when_a_program_became_slower(worlds, recording):
    world, model = worlds["knobs"], Scripted(json=some(8))
    driver = world.driver(recording(), agent="refine", backend=model, batch=1)
    heights = iter([2.0, 1.0, 3.0])
    world.play(driver, asks=3, batch=1, objective=lambda c: next(heights))
    assert "It is slower than what it was made from" in model.requests[2].messages[-1][1]


def test_refine_keeps_a_conversation_for_each_place_of_a_batch(worlds, recording):
    world, model = worlds["knobs"], Versatile(2)
    driver = world.driver(recording(), agent="refine", backend=model, batch=3, attempts=1)
    world.play(driver, asks=2, batch=3, objective=lambda c: 1.0)
    assert [len(r.messages) for r in model.requests].count(4) >= 2
