"""An agent that acts: tools, their refusals, sessions and estimates."""

from __future__ import annotations

import json
import re

import pytest
from contract import Scripted, act, knobs
from contracts import judged

from kernelwright.agents.report import classified
from kernelwright.env.options import OptionError
from kernelwright.env.types import knob_candidate


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


def test_a_program_is_filed_with_the_answer_that_made_it(worlds, recording):
    world, journal = worlds["knobs"], recording()
    refused = act("record_result", speedup=99.0)
    model = Scripted(action=[act("apply", changes={"stages": 4}), refused])
    driver = world.driver(journal, agent="tool_loop", backend=model, batch=1, steps=3)
    driver.ask(1)
    assert list(classified(journal.events).values()) == ["candidate", "action", "action"]


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


def test_the_analytic_model_of_a_cpu_estimates_schedules(worlds, recording):
    program = "split('j', 16)\nreorder('jo', 'p', 'ji')\nvectorize('ji')"
    world = worlds["schedule"]
    model = Scripted(action=[act("write", program=program), act("estimate"), act("submit")])
    driver = world.driver(
        recording(), agent="tool_loop", backend=model, batch=1, model="cpu-lecture"
    )
    driver.ask(1)
    said = model.requests[2].messages[-1][1]
    assert float(re.search(r"estimate: ([0-9.]+) times the speed", said)[1]) > 1.5
    with pytest.raises(OptionError, match="model: expected schedules"):
        worlds["knobs"].driver(recording(), agent="tool_loop", model="cpu-lecture")
