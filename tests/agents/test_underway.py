"""Calls on their way: counted as spent when the run dies before their answer is recorded, and not
begun when no time is left.
"""

from __future__ import annotations

import pytest
from test_budget import campaign, record_of

from kernelwright.agents import AGENT_DRIVERS
from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import BackendError
from kernelwright.configs import api
from kernelwright.display.runs import summary_text
from kernelwright.search.campaign import Campaign
from kernelwright.search.store import MemoryStore, SqliteStore, StoreJournal
from kernelwright.search.trial import MODEL_CALL, event
from kernelwright.search.underway import UNDERWAY, Underway, unanswered


class Dies(BaseException):
    """The process, at some point of a call."""


def dying_at(monkeypatch, number, error):
    """Let the ``number``-th call from now on end so; how many were made stands in the list."""
    complete, made = Mock.complete, []

    def watched(self, request):
        made.append(request.key)
        if len(made) == number:
            raise error
        return complete(self, request)

    monkeypatch.setattr(Mock, "complete", watched)
    return made


def lost_of(folder):
    with SqliteStore(folder / "run.sqlite", readonly=True) as store:
        return unanswered(store.meta())


def test_a_call_on_its_way_when_the_run_died_counts_as_spent(tmp_path, monkeypatch):
    config = campaign({"calls": 9})
    made = dying_at(monkeypatch, 4, Dies())
    with pytest.raises(Dies):
        api.run(config, tmp_path / "run")
    (lost,) = lost_of(tmp_path / "run")
    assert lost.tokens > 4096
    assert lost.usd == pytest.approx(lost.tokens * 10.0 / 1e6)
    summary = api.run(config, tmp_path / "run")
    assert len(made) == 9
    assert made.count(made[3]) == 2
    assert summary["stop"]["rule"] == "calls"
    assert summary["unanswered"] == {"calls": 1, "tokens": lost.tokens, "usd": lost.usd}
    assert "calls on their way when the run was killed: 1" in summary_text(summary)
    before = record_of(tmp_path / "run")
    api.run(config, tmp_path / "run")
    assert record_of(tmp_path / "run") == before
    assert len(made) == 9


@pytest.mark.parametrize("limit", ["usd", "tokens"])
def test_a_lost_call_is_counted_at_the_most_that_it_can_have_cost(tmp_path, monkeypatch, limit):
    config = campaign({limit: 0.2 if limit == "usd" else 20_000})
    dying_at(monkeypatch, 2, Dies())
    with pytest.raises(Dies):
        api.run(config, tmp_path / "run")
    (lost,) = lost_of(tmp_path / "run")
    summary = api.run(config, tmp_path / "run")
    spent = summary[limit] + getattr(lost, limit)
    assert config["budget"][limit] <= spent < 1.2 * config["budget"][limit]


def test_the_record_is_the_one_of_a_run_that_did_not_die(tmp_path, monkeypatch):
    config = campaign({"trials": 12}, batch=4)
    api.run(config, tmp_path / "whole")
    for number in (2, 3, 1):
        with monkeypatch.context() as patch:
            dying_at(patch, number, Dies())
            with pytest.raises(Dies):
                api.run(config, tmp_path / "parts")
    api.run(config, tmp_path / "parts")
    assert record_of(tmp_path / "parts") == record_of(tmp_path / "whole")
    assert len(lost_of(tmp_path / "parts")) == 3


def test_a_call_that_was_refused_was_not_lost(tmp_path, monkeypatch):
    dying_at(monkeypatch, 3, BackendError("permanent", "401 no"))
    with pytest.raises(Exception, match="401 no"):
        api.run(campaign({"calls": 5}), tmp_path / "run")
    assert lost_of(tmp_path / "run") == ()


def test_a_note_goes_when_its_answer_is_recorded():
    store = MemoryStore()
    notes = Underway(store, lambda ask: ask < 2)
    call = event(UNDERWAY, 1, 0)
    assert notes.reserve(call)
    assert unanswered(store.meta()) == (call,)
    store.record(meta=notes.settled(event(MODEL_CALL, 1, 0)))
    assert unanswered(store.meta()) == ()
    assert not notes.reserve(event(UNDERWAY, 2, 0))
    assert StoreJournal((), lambda event: None).reserve(call)


class Slow:
    """A clock that every call of the model moves on by a second."""

    def __init__(self, monkeypatch):
        self.now, complete = 0.0, Mock.complete

        def slow(model, request):
            self.now += 1.0
            return complete(model, request)

        monkeypatch.setattr(Mock, "complete", slow)

    def __call__(self):
        return self.now


@pytest.mark.parametrize("agent", AGENT_DRIVERS)
def test_no_call_begins_when_the_time_is_over(monkeypatch, agent):
    config = campaign({"seconds": 10.5}) | {"driver": {"name": agent}}
    clock, store = Slow(monkeypatch), MemoryStore()
    stop = Campaign(api.plan_of(config).plan, store, clock=clock).run()
    made = [e for e in store.events() if e.kind == MODEL_CALL]
    if agent != "hybrid":  # which asks no model after its seeds
        assert stop.rule == "seconds"
        assert len(made) == 11
    assert clock.now <= 11
    assert unanswered(store.meta()) == ()
