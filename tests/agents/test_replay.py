"""Recorded completions, played again: the same campaign without a call, and a request that was
never made is an error that says what differs.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.agents import recordings
from kernelwright.agents.asking import answer_of
from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.backends.replay import Replay
from kernelwright.agents.chat import BackendError, ChatRequest, Completion
from kernelwright.agents.recordings import exchange, write_recording
from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.env.options import OptionError
from kernelwright.search.store import SqliteStore

CAMPAIGN = {
    "name": "recorded",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "llm"},
    "agents": {"backend": {"name": "mock", "faults": 0.3}},
    "budget": {"trials": 12},
    "seed": 5,
}
REQUEST = ChatRequest("m", (("system", "be brief"), ("user", "one\ntwo\nthree")), 100, 0.5, 7)


def campaign(backend, **changes):
    return {**CAMPAIGN, "agents": {"backend": backend}, **changes}


def record_of(folder):
    with SqliteStore(folder / "run.sqlite", readonly=True) as store:
        return store.trials(), store.events()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / "run"
    api.run(CAMPAIGN, folder)
    return folder


@pytest.fixture
def offline(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("somebody wanted a network")

    for name in ("connect", "connect_ex", "bind", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(Mock, "complete", refuse)


def said(text="hi", **fields):
    return Completion(text, "stop", "m-2", "c1", prompt_tokens=5, completion_tokens=2, **fields)


def recorded(folder, *pairs):
    for request, answer in pairs:
        write_recording(folder, exchange(request, answer))
    return folder


def test_a_finished_campaign_runs_again_without_a_call_and_has_the_same_record(
    run, tmp_path, offline
):
    api.run(campaign({"name": "replay", "from": str(run)}), tmp_path / "again")
    assert record_of(tmp_path / "again") == record_of(run)


def test_a_replayed_campaign_may_be_replayed(run, tmp_path, offline):
    first, second = tmp_path / "a", tmp_path / "b"
    api.run(campaign({"name": "replay", "from": str(run)}), first)
    api.run(campaign({"name": "replay", "from": [str(first)]}), second)
    assert record_of(second) == record_of(run)


def test_another_seed_is_an_error_that_names_what_differs(run, tmp_path):
    backend = {"name": "replay", "from": str(run)}
    with pytest.raises(Exception, match="no answer to request") as caught:
        api.run(campaign(backend, seed=6), tmp_path / "other")
    text = str(caught.value)
    assert "differs in message 1 (user) from line" in text
    assert "seed (recorded" in text


def test_a_miss_is_permanent_and_shows_the_first_line_that_differs(tmp_path):
    folder = recorded(tmp_path, (REQUEST, said()), (replace(REQUEST, max_tokens=9), said()))
    backend = Replay(from_=str(folder))
    other = replace(REQUEST, messages=(("system", "be brief"), ("user", "one\n2\nthree")))
    with pytest.raises(BackendError) as caught:
        backend.complete(other)
    error = caught.value
    assert error.kind == "permanent"
    assert f"{REQUEST.key[:12]}, differs in message 1 (user) from line 2 (now '2')" in str(error)
    assert "where it read 'two'" in str(error)
    with pytest.raises(BackendError, match=r"temperature \(recorded 0.5, now 0.9\)$"):
        backend.complete(replace(REQUEST, temperature=0.9))


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ((("system", "be brief"), ("user", "one\ntwo")), "line 3 (where it ends now)"),
        ((("system", "be brief"), ("user", "one\ntwo\nthree\nfour")), "line 4 (now 'four')"),
        ((("system", "be brief"),), "message 1 (user)"),
        ((*REQUEST.messages, ("user", "more")), "message 2 (user)"),
    ],
)
def test_texts_that_are_longer_or_shorter_differ_where_one_ends(tmp_path, messages, says):
    backend = Replay(from_=str(recorded(tmp_path, (REQUEST, said()))))
    with pytest.raises(BackendError) as caught:
        backend.complete(replace(REQUEST, messages=messages))
    assert says in str(caught.value)


def test_the_first_source_counts_and_errors_come_again(tmp_path):
    lost = BackendError("content", "found str")
    one = recorded(tmp_path / "a", (REQUEST, said("first")))
    other = replace(REQUEST, seed=8)
    two = recorded(tmp_path / "b", (REQUEST, said("second")), (other, lost))
    backend = Replay(from_=(str(one), str(two)))
    assert backend.complete(REQUEST) == said("first")
    with pytest.raises(BackendError, match="found str") as caught:
        backend.complete(other)
    assert caught.value.kind == "content"
    assert backend.model == "m"
    assert backend.priced
    assert backend.missing == ()


class Scripted:
    model, priced, missing = "m", False, ("a key",)

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0

    def complete(self, request):
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, BackendError):
            raise answer
        return answer


def test_a_miss_may_be_asked_and_is_recorded_before_it_is_used(tmp_path):
    model = Scripted(BackendError("transient", "later"), said(), BackendError("content", "str"))
    folder = tmp_path / "recordings"
    backend = Replay(from_=str(folder), on_miss="record", backend=model)
    assert (backend.model, backend.priced, backend.missing) == ("m", False, ("a key",))
    with pytest.raises(BackendError, match="later"):
        backend.complete(REQUEST)
    assert not folder.exists()
    assert backend.complete(REQUEST) == backend.complete(REQUEST) == said()
    other = replace(REQUEST, seed=8)
    for _ in range(2):
        with pytest.raises(BackendError, match="str"):
            backend.complete(other)
    assert model.asked == 3
    assert backend.missing == ()
    again = Replay(from_=str(folder))
    assert again.complete(REQUEST) == said()
    data = json.loads((folder / f"{REQUEST.key}.json").read_text())
    assert data["messages"] == [list(m) for m in REQUEST.messages]
    assert not list(folder.glob(".*"))


def test_a_campaign_that_records_runs_again_from_its_recordings(tmp_path, monkeypatch):
    inner = {"name": "mock", "faults": 0.3}
    backend = {"name": "replay", "from": "kept", "on_miss": "record", "backend": inner}
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps(campaign(backend)))
    api.run(config, tmp_path / "a")
    resolved = api.plan_of(tmp_path / "a" / "config.yaml").resolved["agents"]["backend"]
    assert resolved["from"] == str(tmp_path / "kept")
    assert resolved["backend"]["faults"] == 0.3

    def refuse(self, request):
        raise AssertionError("the model was asked")

    monkeypatch.setattr(Mock, "complete", refuse)
    api.run(config, tmp_path / "b")
    api.run(campaign({"name": "replay", "from": str(tmp_path / "kept")}), tmp_path / "c")
    assert record_of(tmp_path / "a") == record_of(tmp_path / "b") == record_of(tmp_path / "c")


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"from_": "nowhere"}, "from"),
        ({"from_": "empty"}, "from"),
        ({"from_": "broken"}, "from"),
        ({"from_": "two"}, "model"),
        ({"from_": "two", "model": "x"}, "model"),
        ({"from_": "two", "on_miss": "record"}, "on_miss"),
        ({"from_": "two", "model": "m", "backend": Scripted()}, "backend"),
    ],
)
def test_what_cannot_be_played_is_refused(tmp_path, options, option):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.json").write_text('{"key": 1}')
    recorded(tmp_path / "two", (REQUEST, said()), (replace(REQUEST, model="n"), said()))
    options = {**options, "from_": str(tmp_path / options["from_"])}
    with pytest.raises(OptionError) as caught:
        Replay(**options)
    assert caught.value.option == option


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: [],
        lambda data: {**data, "key": "0" * 32},
        lambda data: {**data, "request": {**data["request"], "seed": 8}},
        lambda data: {**data, "completion": {"text": 3}},
        lambda data: {**data, "completion": {**data["completion"], "usd": -1.0}},
        lambda data: {**data, "completion": {**data["completion"], "text": "\ud800"}},
        lambda data: {**data, "completion": None},
        lambda data: {**data, "error": {"kind": "odd", "message": "x"}},
        lambda data: {**data, "messages": [["user"]]},
        lambda data: {**data, "messages": [["user", 3]]},
        lambda data: {**data, "lines": 3},
    ],
)
def test_a_recording_that_was_edited_is_refused_by_name(tmp_path, damage):
    recorded(tmp_path, (REQUEST, said()))
    place = tmp_path / f"{REQUEST.key}.json"
    place.write_text(json.dumps(damage(json.loads(place.read_text()))))
    with pytest.raises(OptionError, match=f"{REQUEST.key}.json: expected a record"):
        Replay(from_=str(tmp_path))


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x00", "9" * 5000, '{"key": 1}'])
def test_a_file_that_is_no_recording_is_refused_by_name(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(OptionError, match=r"a\.json: expected a record"):
        Replay(from_=str(tmp_path))


def test_a_recording_of_another_name_or_size_is_refused(tmp_path, monkeypatch):
    recorded(tmp_path, (REQUEST, said()))
    place = tmp_path / f"{REQUEST.key}.json"
    monkeypatch.setattr(recordings, "MOST_BYTES", 100)
    with pytest.raises(OptionError, match="more than 100"):
        Replay(from_=str(tmp_path))
    monkeypatch.undo()
    place.rename(tmp_path / "copy.json")
    with pytest.raises(OptionError, match="named after"):
        Replay(from_=str(tmp_path))


def test_an_answer_that_was_paid_for_is_used_where_it_cannot_be_kept(tmp_path, caplog):
    into = tmp_path / "kept"
    backend = Replay(from_=str(into), on_miss="record", backend=Scripted(said()))
    into.write_text("a file in its place")
    assert backend.complete(REQUEST) == said()
    assert backend.complete(REQUEST) == said()
    assert "is not kept" in caplog.text


def test_lone_surrogates_of_any_backend_are_recorded_without(worlds, recording):
    odd = Completion("a\ud800", "\ud800", "\ud800", "x", refusal=None)
    journal = recording()
    driver = worlds["knobs"].driver(journal, backend=Scripted(*[odd] * 40), attempts=1)
    with suppress(BackendError):
        driver.ask(1)
    calls = [e for e in journal.events if e.kind == "model_call"]
    assert answer_of(calls[0].data).text == "a?"


def test_runs_alone_are_nothing_to_record_in(run, tmp_path):
    with pytest.raises(OptionError, match="a folder to record in"):
        Replay(from_=str(run), on_miss="record", backend=Scripted())
    backend = Replay(from_=(str(run), str(tmp_path)), on_miss="record", backend=Scripted(said()))
    backend.complete(REQUEST)
    assert [p.name for p in tmp_path.iterdir()] == [f"{REQUEST.key}.json"]


def test_folders_lie_beside_the_campaign_or_where_the_run_is_started(run, tmp_path, monkeypatch):
    beside, here = tmp_path / "beside", tmp_path / "here"
    beside.mkdir()
    here.mkdir()
    config = beside / "c.yaml"
    config.write_text(json.dumps(campaign({"name": "replay", "from": "runs/a"})))
    monkeypatch.chdir(here)
    with pytest.raises(ConfigError, match="expected recorded completions") as caught:
        api.check(config)
    assert caught.value.path == "agents.backend.from"
    (here / "runs").mkdir()
    Path("runs/a").symlink_to(run)
    assert api.plan_of(config).resolved["agents"]["backend"]["from"] == str(run)
