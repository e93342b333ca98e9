"""The time that a campaign has left bounds every call of its model."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from virtual import VirtualClock

from kernelwright.agents.backends.ensemble import Ensemble
from kernelwright.agents.backends.limits import Limits
from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.backends.wrappers import Limited, Priced, Timely
from kernelwright.agents.chat import BackendError, BudgetSpentError, ChatRequest, Completion
from kernelwright.configs.build import build
from kernelwright.configs.load import Chosen, read_config
from kernelwright.search.campaign import Campaign
from kernelwright.search.store import MemoryStore, StoreJournal

CAMPAIGN = {
    "name": "stalled",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "llm"},
    "agents": {"backend": {"name": "mock"}},
    "budget": {"seconds": 1.5},
    "batch": 4,
}
REQUEST = ChatRequest("m", (("user", "x"),), 100, 0.5, 0)
ANSWER = Completion("yes", "stop", "m", "id")
# Longer than a test may take: without a deadline what it says comes back in the end.
STALL_S = 60.0


class Stalling:
    """Answers some calls like the mock, then no more, until the test is over."""

    model, priced, missing = "mock", True, ()

    def __init__(self, answers=0):
        self._mock, self._left, self.asked = Mock(seed=0), answers, 0
        self.over = threading.Event()

    def complete(self, request):
        self.asked += 1
        self._left -= 1
        if self._left < 0:
            self.over.wait(STALL_S)
        return self._mock.complete(request)


def played(store, model):
    campaign = read_config(CAMPAIGN)
    backend = Chosen("stalling", lambda: model, {}, campaign.backend.plain)
    plan = build(replace(campaign, backend=backend)).plan
    return Campaign(plan, store).run()


def test_an_endpoint_that_stalls_ends_with_the_campaign_s_time():
    store, model = MemoryStore(), Stalling(6)
    stop = played(store, model)
    model.over.set()
    assert stop.rule == "seconds"
    assert len(store.trials()) >= 4
    calls = [e for e in store.events() if e.kind == "model_call"]
    assert model.asked == len(calls) == 7
    assert calls[-1].data["error"]["kind"] == "transient"
    assert "that budget.seconds left" in calls[-1].data["error"]["message"]
    assert [e.kind for e in store.events()].count("lost") == 1
    # Killed before the end: the record says when the search was over, and nobody is asked.
    again = MemoryStore()
    events = [e for e in store.events() if e.kind != "finished"]
    again.record(store.trials(), events=events)
    unplugged = Stalling()
    assert played(again, unplugged) == stop
    assert unplugged.asked == 0
    assert again.trials() == store.trials()
    assert again.events() == store.events()


class Quick:
    model, priced, missing = "m", True, ()

    def complete(self, request):
        self.thread = threading.current_thread()
        return ANSWER


def test_without_a_limit_nothing_is_put_between():
    model = Quick()
    assert Timely(model, StoreJournal((), print).left_s).complete(REQUEST) == ANSWER
    assert model.thread is threading.current_thread()


def test_a_call_begins_while_there_is_time_and_errors_pass_through():
    assert Timely(Quick(), lambda: 5.0).complete(REQUEST) == ANSWER
    with pytest.raises(BudgetSpentError, match="no time is left"):
        Timely(Quick(), lambda: 0.0).complete(REQUEST)

    class Wrong(Quick):
        def complete(self, request):
            raise BackendError("permanent", "wrong key")

    with pytest.raises(BackendError, match="wrong key"):
        Timely(Wrong(), lambda: 5.0).complete(REQUEST)


class Busy:
    model, priced, missing = "m", False, ()

    def __init__(self, clock):
        self._clock = clock

    def complete(self, request):
        self._clock.sleep(2.0)
        raise BackendError("transient", "busy")


def test_whoever_insists_stops_insisting():
    clock = VirtualClock()
    limited = Limited(Busy(clock), Limits(retries=20))
    limited._gate.clock = clock
    both = Ensemble(seed=0, backends={"a": limited, "b": Quick()}, choice="fixed")
    Timely(Priced(both, {"prompt": 1.0, "completion": 1.0}), lambda: 10.0)
    with pytest.raises(BackendError, match="busy"):
        limited.complete(REQUEST)
    assert clock.now() <= 12.0
