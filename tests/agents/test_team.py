"""A planner, a coder and a verifier."""

from __future__ import annotations

from contract import Scripted, some

from kernelwright.agents.report import classified


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
