"""Every agent keeps the contract; then what each does beside it."""

from __future__ import annotations

import json
import re

import pytest
from contract import AgentContract, Scripted, Versatile
from contracts import judged

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.drivers.hybrid import polisher
from kernelwright.agents.drivers.instructions import Instructions
from kernelwright.agents.drivers.islands import Islands
from kernelwright.agents.drivers.tunable import read_tunable
from kernelwright.agents.report import classified
from kernelwright.agents.talk import MOST_USELESS
from kernelwright.env.options import OptionError
from kernelwright.env.types import Candidate, Language, knob_candidate


def made_up(candidate):
    """An objective that is a function of the candidate; one in eight fails."""
    number = int(candidate.key[:8], 16)
    return None if number % 8 == 0 else number / 2**31 - 1


def knobs(**changes):
    """A program of the knob space as a model writes it."""
    start = {"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}
    return json.dumps(start | changes)


def some(count):
    """That many different programs."""
    return [knobs(bm=bm, stages=s) for bm in (32, 64, 128) for s in (2, 3, 4, 5)][:count]


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


def test_a_team_plans_once_a_batch_and_each_coder_has_a_move(worlds, recording):
    world = worlds["knobs"]
    model = Scripted(json=some(12), plan=["1. fewer stages\n2. larger blocks"], review=["ok"])
    driver = world.driver(recording(), agent="team", backend=model, batch=3)
    (proposals,) = [driver.ask(3)]
    assert model.marks == ["plan", *["json", "review"] * 3]
    moves = [
        r.messages[-1][1].rpartition("to your colleagues: ")[2].partition("\n")[0]
        for r, mark in zip(model.requests, model.marks, strict=True)
        if mark == "json"
    ]
    assert moves == ["fewer stages", "larger blocks", "fewer stages"]
    assert [p.tokens for p in proposals] == [45, 30, 30]
    review = model.requests[2].messages[-1][1]
    assert "## Program" in review
    assert review.count("## Answer") == 1


def test_what_the_verifier_rejects_goes_back_to_the_coder_once(worlds, recording):
    world, journal = worlds["knobs"], recording()
    answers = {"json": some(12), "plan": ["1. fewer stages"]}
    model = Scripted(**answers, review=["reject: reads past the end", "ok"])
    driver = world.driver(journal, agent="team", backend=model, batch=1)
    (proposal,) = driver.ask(1)
    assert model.marks == ["plan", "json", "review", "json", "review"]
    back = model.requests[3]
    assert len(back.messages) == 4
    assert "A reviewer rejected your program: reads past the end" in back.messages[-1][1]
    assert proposal.prompt_hash == back.key
    assert journal.past("declined", 1, 1).data["reason"] == "reads past the end"
    assert classified(journal.events) == {
        (1, 0): "plan",
        (1, 1): "declined",
        (1, 2): "review",
        (1, 3): "candidate",
        (1, 4): "review",
    }


def test_an_idea_that_is_rejected_twice_is_given_up(worlds, recording):
    world, journal = worlds["knobs"], recording()
    reviews = ["reject: a", "reject: b", "ok"]
    model = Scripted(json=some(12), plan=["1. x"], review=reviews)
    driver = world.driver(journal, agent="team", backend=model, batch=1)
    (proposal,) = driver.ask(1)
    assert [e.slot for e in journal.events if e.kind == "declined"] == [1, 3]
    # Another idea, with a plan of its own.
    assert model.marks[5:] == ["plan", "json", "review"]
    assert journal.past("proposed", 1, 6).data["key"] == proposal.candidate.key


def test_a_review_that_cannot_be_read_stops_nothing(worlds, recording):
    world, journal = worlds["knobs"], recording()
    model = Scripted(json=some(12), plan=["1. x"], review=["I am not sure"])
    driver = world.driver(journal, agent="team", backend=model, batch=1)
    assert len(driver.ask(1)) == 1
    assert journal.past("wrong_schema", 1, 2) is not None


def act(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


def test_tools_are_used_before_a_program_is_judged(worlds, recording):
    world, journal = worlds["schedule"], recording()
    actions = [
        act("list"),
        act("apply", directive="split('i', 8)"),
        act("apply", directive="vectorize('nowhere')"),
        act("show"),
        act("undo"),
        act("apply", directive="split('j', 8)"),
        act("estimate"),
        act("submit"),
    ]
    model = Scripted(action=actions)
    driver = world.driver(journal, agent="tool_loop", backend=model, batch=1)
    (proposal,) = driver.ask(1)
    assert [d.target for d in proposal.candidate.payload] == ["j"]
    assert proposal.tokens == 15 * 8
    heard = [r.messages[-1][1] for r in model.requests]
    assert "- `list()`: " in heard[0]
    assert """- `{"directive": "split('i', 2)"}`""" in heard[1]
    assert "The program is now `split('i', 8)`; calls left: 6." in heard[2]
    assert "refused: " in heard[3]
    assert "nowhere" in heard[3]
    assert "for io in" in heard[4]
    assert "The program is now `pass`" in heard[5]
    assert "none yet: 0 trials are known, 6 are needed" in heard[7]
    assert all(text.count("begins with ```action") == 1 for text in heard)
    said = [e.data for e in journal.events if e.kind == "tool"]
    assert [each["tool"] for each in said] == [json.loads(a)["tool"] for a in actions[:-1]]
    assert list(classified(journal.events).values()) == ["action"] * 7 + ["candidate"]


def test_a_session_goes_on_after_a_measurement_with_its_verdict(worlds, recording):
    world = worlds["knobs"]
    actions = [
        act("apply", changes={"stages": 4}),
        act("measure"),
        act("apply", changes={"bk": 64}),
        act("submit"),
        act("submit", program=knobs(bm=32)),
    ]
    model = Scripted(action=actions)
    driver = world.driver(recording(), agent="tool_loop", backend=model, batch=1)
    heights = iter([None, 1.0, 1.0])
    asked, _ = world.play(driver, asks=3, batch=1, objective=lambda c: next(heights))
    lengths = [len(r.messages) for r in model.requests]
    assert lengths == [2, 4, 6, 8, 2]
    assert "build_error, made_up" in model.requests[2].messages[-1][1]
    first, second, third = [p.candidate.knobs for (p,) in asked]
    assert (first["stages"], second["stages"], second["bk"]) == (4, 4, 64)
    assert third["bm"] == 32


def test_the_steps_of_a_session_are_bounded_and_what_it_has_then_is_submitted(worlds, recording):
    world, journal = worlds["knobs"], recording()
    model = Scripted(action=[act("apply", changes={"stages": 4}), act("list")])
    driver = world.driver(journal, agent="tool_loop", backend=model, batch=1, steps=3)
    (proposal,) = driver.ask(1)
    assert proposal.candidate.knobs["stages"] == 4
    assert len(model.requests) == 3


def test_a_session_whose_answers_end_is_submitted_as_far_as_it_came(worlds, recording):
    world, journal = worlds["knobs"], recording()
    model = Scripted(action=[act("apply", changes={"stages": 4}), "fly!"])
    driver = world.driver(journal, agent="tool_loop", backend=model, batch=1, attempts=2)
    (proposal,) = driver.ask(1)
    assert proposal.candidate.knobs["stages"] == 4
    assert [e.kind for e in journal.events].count("unparsable") == 2
    assert journal.past("proposed", 1, 0) is not None


def test_a_session_that_changed_nothing_new_comes_to_nothing(worlds, recording):
    world, model = worlds["knobs"], Scripted(action=[act("list")])
    driver = world.driver(recording(), agent="tool_loop", backend=model, batch=1, steps=2)
    driver.tell([judged(0, world.space.default, None)])
    assert driver.ask(1) == []
    assert "came to nothing" in driver.stopped


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (act("fly"), "expected one of the tools list, apply"),
        (act("apply", changes={"bm": 65}), "expected one of"),
        (act("apply", changes={"wings": 2}), "unknown knob"),
        (act("apply"), "expected {"),
        (act("list", all=True), "expected no argument, found all"),
        (act("undo"), "nothing was changed"),
        (act("write", program="[1]"), "expected a JSON object"),
        (act("submit", text="x"), "expected program, found text"),
    ],
)
def test_a_tool_that_refuses_says_why(worlds, recording, action, reason):
    world = worlds["knobs"]
    model = Scripted(action=[action, act("submit")])
    world.driver(recording(), agent="tool_loop", backend=model, batch=1).ask(1)
    assert "refused: " in model.requests[1].messages[-1][1]
    assert reason in model.requests[1].messages[-1][1]


def test_estimates_are_learned_from_trials(worlds, recording):
    world, model = worlds["knobs"], Scripted(action=[act("estimate"), act("submit")])
    driver = world.driver(recording(), agent="tool_loop", backend=model, batch=1)
    for number, bm in enumerate((32, 64, 128, 256)):
        for place, stages in enumerate((2, 3)):
            values = json.loads(knobs(bm=bm, stages=stages))
            driver.tell([judged(2 * number + place, knob_candidate(values), float(number))])
    model._answers["action"].insert(0, act("apply", changes={"bk": 64}))
    driver.ask(1)
    assert re.search(r"estimate: [0-9.]+ times the speed", model.requests[2].messages[-1][1])


def test_a_hybrid_whose_seeds_fail_goes_on_as_the_driver_would_have_alone(worlds, recording):
    world = worlds["knobs"]
    model = Scripted(json=some(4))
    journal = recording()
    options = {"polish": "evolution", "seeds": 4, "test": 6}
    driver = world.driver(journal, agent="hybrid", backend=model, seed=3, **options)
    seeds = {
        c.key for c in map(driver._desk.dialect.parse, map("```json\n{}\n```".format, some(4)))
    }

    def height(candidate):
        return None if candidate.key in seeds else made_up(candidate)

    asked, _ = world.play(driver, asks=12, objective=height)
    alone = polisher("evolution", world.space, seed=3, batch=4, problem=world.problem)
    expected, _ = world.play(alone, asks=11, objective=height)
    found = [p.candidate for proposals in asked[1:] for p in proposals]
    assert found == [p.candidate for ps in expected for p in ps if p.candidate.key not in seeds]
    assert {p.candidate.key for p in asked[0]} == seeds
    (event,) = [e for e in journal.events if e.kind == "seeds"]
    assert event.data == {"kept": [], "dropped": 4}


def test_seeds_that_beat_the_drivers_own_are_told_to_it(worlds, recording):
    world, journal = worlds["knobs"], recording()
    model = Scripted(json=some(4))
    options = {"polish": "evolution", "seeds": 4, "test": 16}
    driver = world.driver(journal, agent="hybrid", backend=model, seed=3, **options)
    best = driver._desk.dialect.parse(f"```json\n{some(4)[2]}\n```").key
    asked, _ = world.play(driver, asks=30, objective=lambda c: 9.0 if c.key == best else made_up(c))
    (event,) = [e for e in journal.events if e.kind == "seeds"]
    assert event.data == {"kept": [best], "dropped": 3}
    later = [p for proposals in asked[6:] for p in proposals]
    assert any(best in p.parents for p in later)
    assert {p.proposer for p in later} == {"hybrid evolution"}


def test_a_hybrid_goes_on_without_a_model_that_gives_nothing(worlds, recording):
    world, model = worlds["knobs"], Scripted(json=["[]"])
    driver = world.driver(recording(), agent="hybrid", backend=model, polish="random")
    asked, _ = world.play(driver, asks=3)
    assert all(len(proposals) == 4 for proposals in asked)
    assert len(model.requests) == MOST_USELESS


@pytest.mark.parametrize(("name", "polish"), [("knobs", "nothing"), ("schedule", "grid")])
def test_a_polisher_that_cannot_be_is_refused(worlds, recording, name, polish):
    with pytest.raises(OptionError, match="polish: expected"):
        worlds[name].driver(recording(), agent="hybrid", polish=polish)


def test_the_analytic_model_of_a_cpu_estimates_schedules(worlds, recording):
    program = "split('j', 16)\nreorder('jo', 'p', 'ji')\nvectorize('ji')"
    world = worlds["schedule"]
    model = Scripted(action=[act("write", program=program), act("estimate"), act("submit")])
    driver = world.driver(
        recording(), agent="tool_loop", backend=model, batch=1, model="cpu-lecture"
    )
    driver.ask(1)
    said = model.requests[2].messages[-1][1]
    assert float(re.search(r"estimate: ([0-9.]+) times the speed", said)[1]) > 2
    with pytest.raises(OptionError, match="model: expected schedules"):
        worlds["knobs"].driver(recording(), agent="tool_loop", model="cpu-lecture")


TEMPLATE = """#include <math.h>
#include <stdint.h>
#define WIDTH 8 // tune: 4, 8, 16
#define DEPTH 1 // tune: 1, 2
#define FIXED 3 // tune: 3
void softmax(const float *restrict x, float *restrict y, int64_t rows, int64_t cols) { }
"""


def test_macros_with_values_behind_them_are_tunable(worlds):
    space = worlds["source"].space
    found = read_tunable(Candidate(Language.SOURCE, TEMPLATE), space)
    assert [(k.name, k.values) for k in found.knobs] == [("WIDTH", (4, 8, 16)), ("DEPTH", (1, 2))]
    changed = found.program({"WIDTH": 16, "DEPTH": 2}).payload
    assert changed == TEMPLATE.replace("WIDTH 8", "WIDTH 16").replace("DEPTH 1", "DEPTH 2")
    assert found.program(dict(found.default)).payload == TEMPLATE
    twice = TEMPLATE + "#define WIDTH 8 // tune: 4, 8\n"
    assert [k.name for k in read_tunable(Candidate(Language.SOURCE, twice), space).knobs] == [
        "DEPTH"
    ]
    assert read_tunable(Candidate(Language.SOURCE, "int x;\n"), space) is None


def test_macros_outside_the_regions_are_left_alone(worlds):
    space = worlds["regions"].space
    text = space.text.replace(
        "// region normalise\n", "// region normalise\n#define W 8 // tune: 4\n"
    )
    outside = "#define V 8 // tune: 4\n" + text
    assert [k.name for k in read_tunable(Candidate(Language.SOURCE, text), space).knobs] == ["W"]
    assert read_tunable(Candidate(Language.SOURCE, outside), space) is None


def test_of_c_the_best_template_is_tuned_and_then_the_model_is_asked_again(worlds, recording):
    world = worlds["source"]
    plain = TEMPLATE.replace(" // tune:", " //")
    model = Scripted(c=[plain, TEMPLATE, plain + "// other\n"])
    options = {"polish": "random", "seeds": 2, "tuning": 9}
    driver = world.driver(recording(), agent="hybrid", backend=model, batch=2, **options)
    asked, trials = world.play(driver, asks=6, batch=2, objective=lambda c: 1.0)
    assert "// tune: 4, 8, 16, 32" in model.requests[0].messages[-1][1]
    first = [p.candidate.payload for p in asked[0]]
    assert first == [plain, TEMPLATE]
    tuned = [p for proposals in asked[1:4] for p in proposals]
    assert len(tuned) == 5  # of six choices one is known
    assert {p.parents for p in tuned} == {(trials[1].candidate.key,)}
    assert {p.proposer for p in tuned} == {"hybrid random"}
    assert len(model.requests) > 2
    with pytest.raises(OptionError, match="polish: expected"):
        world.driver(recording(), agent="hybrid", polish="beam")
