"""Evolution by a model: islands, inspirations, crossover by plans, instructions that compete."""

from __future__ import annotations

from contract import Scripted, Versatile, some
from contracts import judged

from kernelwright.agents.drivers.instructions import Instructions
from kernelwright.agents.drivers.islands import Islands
from kernelwright.env.types import knob_candidate


def test_evolve_crosses_by_a_plan_first_and_names_both_parents(worlds, recording):
    world = worlds["knobs"]
    model = Scripted(json=some(12), plan=["1. take the stages of the second parent"])
    driver = world.driver(
        recording(), agent="evolve", backend=model, batch=1, islands=1, crossover=1.0
    )
    heights = iter([1.0, 2.0, 3.0])
    asked, _ = world.play(driver, asks=3, batch=1, objective=lambda c: next(heights))
    assert model.marks == ["json", "json", "plan", "json"]
    keys = [p.candidate.key for (p,) in asked]
    assert set(asked[2][0].parents) == set(keys[:2])
    plan, code = model.requests[2].messages[-1][1], model.requests[3].messages[-1][1]
    for text in (plan, code):
        assert "## Second parent" in text
        assert all(f"Key {key[:8]}, speedup" in text for key in keys[:2])
    assert "1. take the stages of the second parent" in code
    assert plan.count("## Answer") == code.count("## Answer") == 1
    assert plan.index("## Second parent") < plan.index("## Answer")
    assert (asked[2][0].tokens, asked[2][0].usd) == (30, 0.5)


def test_a_plan_that_cannot_be_read_leaves_the_crossover_without_one(worlds, recording):
    world, journal = worlds["knobs"], recording()
    model = Scripted(json=some(12), plan=["no list"])
    driver = world.driver(
        journal, agent="evolve", backend=model, batch=1, islands=1, crossover=1.0, attempts=1
    )
    asked, _ = world.play(driver, asks=3, batch=1)
    assert model.marks == ["json", "json", "plan", "json"]
    assert journal.past("wrong_schema", 3, 0) is not None
    assert "## Plan" not in model.requests[-1].messages[-1][1]
    assert len(asked[2][0].parents) == 2


def test_evolve_shows_the_best_and_the_different_for_inspiration(worlds, recording):
    world, model = worlds["knobs"], Scripted(json=some(12))
    driver = world.driver(
        recording(),
        agent="evolve",
        backend=model,
        batch=1,
        islands=1,
        crossover=0.0,
        inspirations=2,
    )
    asked, _ = world.play(driver, asks=6, batch=1, objective=lambda c: 1.0)
    shown = model.requests[-1].messages[-1][1].partition("## Inspirations")[2]
    parent = asked[5][0].parents[0]
    keys = [p.candidate.key for (p,) in asked[:5]]
    found = [key for key in keys if f"Key {key[:8]}," in shown.partition("## Answer")[0]]
    assert len(found) == 2
    assert parent not in found


def test_islands_are_apart_until_they_exchange_their_best():
    islands = Islands(2, 4, 4)
    trials = [judged(i, knob_candidate({"a": i}), float(i)) for i in range(6)]
    for number, trial in enumerate(trials[:3]):
        islands.expect(trial.candidate, number % 2)
        islands.add(trial)
    assert [t.number for t in islands.of(0)] == [2, 0]
    assert [t.number for t in islands.of(1)] == [1]
    islands.add(trials[3])  # nobody's: it joins all, and is the fourth
    assert [t.number for t in islands.of(0)] == [3, 2, 0]
    assert [t.number for t in islands.of(1)] == [3, 1]
    islands.expect(trials[4].candidate, 0)
    islands.expect(trials[5].candidate, 0)
    for trial in trials[4:]:
        islands.add(trial)
    for number in (6, 7):
        islands.add(judged(number, knob_candidate({"a": number}), None))
    assert [t.number for t in islands.of(1)] == [5, 3, 1]


def test_an_island_keeps_no_failure_and_no_more_than_its_population():
    islands = Islands(1, 2, 0)
    for number, height in enumerate([1.0, None, 3.0, 2.0]):
        islands.add(judged(number, knob_candidate({"a": number}), height))
    assert [t.number for t in islands.of(0)] == [2, 3]


def test_inspirations_are_the_best_and_those_unlike_the_parent():
    islands = Islands(1, 10, 0)
    values = ({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 9, "b": 9})
    trials = [judged(i, knob_candidate(v), 10.0 - i) for i, v in enumerate(values)]
    for trial in trials:
        islands.add(trial)
    found = islands.inspirations(2, but=[trials[0]])
    assert [t.number for t in found] == [1, 3]


def test_instructions_that_gain_are_chosen_more_often_and_the_least_is_replaced():
    instructions = Instructions(2)
    good, bad = instructions.population
    for number in range(40):
        chosen = instructions.choose()
        instructions.expect(str(number), chosen, 1.0)
        instructions.learn(str(number), 3.0 if chosen is good else 0.5)
    assert good.uses > 2 * bad.uses
    assert (good.mean, bad.mean) == (1.0, 0.0)
    assert instructions.is_due
    instructions.renew("1. something new")
    assert [each.text for each in instructions.population] == [good.text, "1. something new"]
    assert not instructions.is_due
    assert instructions.choose().text == "1. something new"


def test_evolve_has_its_instructions_rewritten_by_the_model(worlds, recording):
    world = worlds["knobs"]
    model = Versatile(3)
    driver = world.driver(
        recording(), agent="evolve", backend=model, instructions=1, crossover=0.0, islands=1
    )
    world.play(driver, asks=5, objective=lambda c: 0.0)
    texts = [r.messages[-1][1] for r in model.requests]
    asked = [text for text in texts if "begins with ```plan" in text]
    assert len(asked) == 2
    assert "(0.00 in 8 uses)" in asked[0]
    used = [text.partition("## Instruction\n\n")[2].partition("\n")[0] for text in texts]
    assert len({line for line in used if line}) >= 2
