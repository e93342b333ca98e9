"""The simulated model over the wire: the real client sees what the backend in this process says."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.backends.openai import OpenAI
from kernelwright.agents.chat import BackendError, ChatRequest
from kernelwright.agents.mock_server import mock_endpoint
from kernelwright.agents.server import INJECTED_HEADER, chat_server


class Moody(Mock):
    """Raises what it is told to."""

    error = None

    def complete(self, request):
        if self.error is not None:
            raise self.error
        return super().complete(request)


@pytest.fixture
def served(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    model = Moody(seed=3, faults=0.4)
    server = chat_server(model)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield model, server.server_port
    server.shutdown()
    server.server_close()


def call(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read()), dict(answer.headers)
    connection.close()
    return found


@pytest.mark.parametrize("name", ["knobs", "schedule", "source"])
def test_a_search_over_the_wire_is_the_search_in_this_process(worlds, recording, served, name):
    world, (_, port) = worlds[name], served
    remote = OpenAI(model="mock", base_url=f"http://127.0.0.1:{port}/v1", retries=0)
    near, far = recording(), recording()
    options = {"seed": 3}
    inside, _ = world.play(world.driver(near, faults=0.4, **options), asks=5)
    outside, _ = world.play(world.driver(far, backend=remote, **options), asks=5)
    assert outside == inside
    kinds = [(e.kind, e.ask, e.slot) for e in near.events]
    assert [(e.kind, e.ask, e.slot) for e in far.events] == kinds


def test_a_schema_goes_over_the_wire(worlds, recording, served):
    world, (_, port) = worlds["knobs"], served
    remote = OpenAI(model="mock", base_url=f"http://127.0.0.1:{port}/v1", retries=0)
    options = {"seed": 3, "structured": True}
    journal = recording()
    (proposal,) = world.driver(journal, backend=remote, **options).ask(1)
    assert not world.space.check(proposal.candidate)
    # Who is asked for JSON alone answers with nothing around it.
    answers = [e.data["completion"]["text"] for e in journal.events if e.kind == "model_call"]
    assert json.loads(answers[-1]) == proposal.candidate.knobs


def test_the_truth_about_a_fault_is_in_a_header_only(served):
    _, port = served
    body = {"model": "mock", "messages": [{"role": "user", "content": "hello"}]}
    truths = set()
    for seed in range(40):
        asked = json.dumps({**body, "seed": seed}).encode()
        status, answer, headers = call(port, "POST", "/v1/chat/completions", asked)
        assert status == 200
        assert "injected" not in json.dumps(answer)
        truths.add(headers.get(INJECTED_HEADER))
    assert len(truths) > 3


def test_the_model_is_listed(served):
    status, answer, _ = call(served[1], "GET", "/v1/models")
    assert (status, answer["data"][0]["id"]) == (200, "mock")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("asked", ["gpt-5", "", "mock-bold"])
def test_another_model_than_is_listed_is_not_found(served, path, asked):
    body = {"model": asked, "messages": [{"role": "user", "content": "x"}], "input": "x"}
    status, answer, _ = call(served[1], "POST", path, json.dumps(body).encode())
    assert status == 404
    assert (answer["error"]["code"], answer["error"]["param"]) == ("model_not_found", "model")
    assert "expected mock" in answer["error"]["message"]
    assert call(served[1], "GET", "/v1/models/gpt-5")[1]["error"]["code"] == "model_not_found"
    assert call(served[1], "GET", "/v1/models/mock")[0] == 200


def test_a_model_that_the_server_does_not_know_costs_one_call_that_says_so(served):
    remote = OpenAI(model="gpt-5", base_url=f"http://127.0.0.1:{served[1]}/v1", retries=3)
    with pytest.raises(BackendError, match=r"gpt-5.*does not exist") as caught:
        remote.complete(ChatRequest("gpt-5", (("user", "x"),), 16, 0.0, 0))
    assert caught.value.kind == "permanent"


def test_a_server_may_have_several_names_for_its_model():
    server = mock_endpoint(names=("a/b", "c"))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    listed = call(server.server_port, "GET", "/v1/models")[1]["data"]
    assert [entry["id"] for entry in listed] == ["a/b", "c"]
    assert call(server.server_port, "GET", "/v1/models/a%2Fb")[1]["id"] == "a/b"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "expected JSON"),
        (b"[" * 100_000, "expected JSON"),
        (b"[]", "expected an object"),
        (b"{}", "messages: expected a list"),
        (b'{"messages": []}', "at least one message"),
        (b'{"messages": [3]}', "expected a role"),
        (b'{"messages": [{"role": "tool", "content": "x"}]}', "expected a role"),
        (b'{"messages": [{"role": "user", "content": "x"}], "seed": "x"}', "invalid literal"),
        (b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 0}', "max_tokens"),
        (b'{"messages": [{"role": "user", "content": "x"}], "stream": true}', "stream"),
    ],
)
def test_a_body_that_is_no_request_is_refused_with_the_reason(served, body, reason):
    status, answer, _ = call(served[1], "POST", "/v1/chat/completions", body)
    assert status == 400
    assert reason in answer["error"]["message"]


def test_other_paths_and_endless_bodies_are_refused(served):
    assert call(served[1], "GET", "/")[0] == 404
    assert call(served[1], "POST", "/v1/embeddings", b"{}")[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", served[1], timeout=10)
    connection.putrequest("POST", "/v1/chat/completions")
    connection.putheader("content-length", str(2**40))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(("kind", "seen"), [("transient", "transient"), ("permanent", "permanent")])
def test_errors_keep_their_kind_over_the_wire(served, worlds, recording, kind, seen):
    model, port = served
    model.error = BackendError(kind, "the model is away")
    remote = OpenAI(model="mock", base_url=f"http://127.0.0.1:{port}/v1", retries=0)
    with pytest.raises(BackendError, match="the model is away") as caught:
        worlds["knobs"].driver(recording(), backend=remote).ask(1)
    assert caught.value.kind == seen


def test_parts_of_a_message_are_joined(served):
    _, port = served
    whole = {"messages": [{"role": "user", "content": "ab"}]}
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    split = {"messages": [{"role": "user", "content": parts}]}
    answers = [
        call(port, "POST", "/v1/chat/completions", json.dumps(body).encode())[1]
        for body in (whole, split)
    ]
    assert answers[0] == answers[1]
