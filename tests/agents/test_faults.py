"""The matrix of faults: whatever a server sends, the driver files it under the right class, after
the right number of calls, and goes on or ends as that class has it.
"""

from __future__ import annotations

import json

import httpx2
import openai
import pytest
from virtual import VirtualClock

from kernelwright.agents.backends.gate import Gate
from kernelwright.agents.backends.openai import OpenAI
from kernelwright.agents.chat import BackendError

RETRIES = 2
GOOD = '```json\n{"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}\n```'
ILLEGAL = GOOD.replace("64,", "65,", 1)


def completion(content=GOOD, reason="stop", **fields):
    message = {"role": "assistant", "content": content, **fields}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    choice = {"index": 0, "finish_reason": reason, "message": message}
    return 200, {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}


def failure(status, message="no", headers=None, **fields):
    return status, {"error": {"message": message, **fields}}, headers or {}


def raised(kind, text="broken"):
    return kind(text)


def raw(content, kind="text/html", status=200):
    return status, content, {"content-type": kind}


# What is sent, the class that the call is filed under, and how many calls it takes.
# `lost` passes after the last attempt, `ended` ends the run after one call.
LOST, ENDED, ONCE = ("lost", RETRIES + 1), ("ended", 1), 1
FAULTS = {
    "429, the rate": (failure(429), *LOST),
    "429, come back in a second": (failure(429, headers={"retry-after": "1"}), *LOST),
    "429, come back in an hour": (failure(429, headers={"retry-after": "3600"}), "lost", 1),
    "429, the quota by code": (failure(429, code="insufficient_quota"), *ENDED),
    "429, the quota by type": (failure(429, type="insufficient_quota"), *ENDED),
    "408": (failure(408), *LOST),
    "409": (failure(409), *LOST),
    "500": (failure(500), *LOST),
    "502 with a page": (raw(b"<html>bad gateway</html>", status=502), *LOST),
    "503": (failure(503), *LOST),
    "504": (failure(504), *LOST),
    "529": (failure(529), *LOST),
    "400": (failure(400, "bad request"), *ENDED),
    "401": (failure(401), *ENDED),
    "403": (failure(403), *ENDED),
    "404": (failure(404, "no such model"), *ENDED),
    "422": (failure(422, "odd"), *ENDED),
    "400, context by code": (failure(400, code="context_length_exceeded"), "too_long", ONCE),
    "400, context by type": (failure(400, "n", type="exceed_context_size_error"), "too_long", ONCE),
    "400, context in words": (failure(400, "maximum context length is 9"), "too_long", ONCE),
    "413": (failure(413), "too_long", ONCE),
    "no connection": (raised(httpx2.ConnectError), *LOST),
    "connection dropped": (raised(httpx2.RemoteProtocolError), *LOST),
    "reading broke off": (raised(httpx2.ReadError), *LOST),
    "timeout": (raised(httpx2.ReadTimeout), *LOST),
    "a page": (raw(b"<html>busy</html>"), "lost", ONCE),
    "broken JSON": (raw(b'{"choices": [', "application/json"), "lost", ONCE),
    "nothing": (raw(b"", "application/json"), "lost", ONCE),
    "a list": ((200, ["a"], {}), "lost", ONCE),
    "an error under 200": ((200, {"error": {"message": "busy"}}, {}), "lost", ONCE),
    "choices in words": ((200, {"choices": "none"}, {}), "lost", ONCE),
    "content that is a number": (completion(content=3), "lost", ONCE),
    "no choices": ((200, {"id": "x", "choices": []}, {}), "empty", ONCE),
    "null choices": ((200, {"id": "x", "choices": None}, {}), "lost", ONCE),
    "missing choices": ((200, {"id": "x"}, {}), "lost", ONCE),
    "null message": ((200, {"choices": [{"message": None}]}, {}), "empty", ONCE),
    "null content": (completion(content=None), "empty", ONCE),
    "blank content": (completion(content=" \n"), "empty", ONCE),
    "thoughts alone": (completion(content=None, reasoning_content="hm"), "empty", ONCE),
    "a refusal": (completion(content=None, refusal="I will not"), "refused", ONCE),
    "a content filter": (completion(content="", reason="content_filter"), "refused", ONCE),
    "cut, though it looks whole": (completion(reason="length"), "truncated", ONCE),
    "prose": (completion(content="Tiling should help."), "unparsable", ONCE),
    "a fence that does not end": (completion(content=GOOD[:-3]), "unparsable", ONCE),
    "another schema": (completion(content="```json\n[1]\n```"), "wrong_schema", ONCE),
    "an illegal program": (completion(content=ILLEGAL), "illegal", ONCE),
    "an unknown finish reason": (completion(reason="tired"), "proposed", ONCE),
    "no finish reason": (completion(reason=None), "proposed", ONCE),
    "no usage": ((200, {**completion()[1], "usage": None}, {}), "proposed", ONCE),
    "fields of its own": ((200, {**completion()[1], "x_more": [1]}, {}), "proposed", ONCE),
}


class Server:
    """Answers every request with one thing."""

    def __init__(self, entry):
        self.entry, self.asked = entry, 0

    def __call__(self, sent):
        self.asked += 1
        if isinstance(self.entry, Exception):
            raise self.entry
        status, payload, *rest = self.entry
        headers = rest[0] if rest else {}
        if isinstance(payload, bytes):
            return httpx2.Response(status, content=payload, headers=headers)
        text = json.dumps(payload).encode()
        headers = {"content-type": "application/json", **headers}
        return httpx2.Response(status, content=text, headers=headers)

    def backend(self, retries=RETRIES):
        url = "http://127.0.0.1:9/v1"
        found = OpenAI(model="m", base_url=url, retries=retries, deadline=600.0)
        http = openai.DefaultHttpxClient(transport=httpx2.MockTransport(self))
        client = openai.OpenAI(api_key="none", base_url=url, max_retries=0, http_client=http)
        found._idle.append(client)
        found.pass_through(Gate(clock=VirtualClock()))
        return found


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_has_its_class_and_its_number_of_calls(worlds, journal, fault):
    entry, kind, calls = FAULTS[fault]
    server = Server(entry)
    driver = worlds["knobs"].driver(journal, backend=server.backend(), attempts=1)
    # One place of an ask is looked at: the driver would go on while it has nothing.
    turn = driver._fresh(0)
    talk = driver._desk.talk
    talk._begin()
    if kind == "ended":
        with pytest.raises(BackendError) as caught:
            talk._answered(turn)
        assert caught.value.kind == "permanent"
        assert journal.events == []
    else:
        outcome = talk._answered(turn)
        assert getattr(outcome, "kind", "proposed") == kind
        assert journal.past("model_call", 1, 0) is not None
    assert server.asked == calls
    assert server.asked - 1 <= RETRIES


def test_the_matrix_is_large_and_has_every_class():
    assert len(FAULTS) >= 24
    kinds = {kind for _, kind, _ in FAULTS.values()}
    classes = {"truncated", "refused", "empty", "unparsable", "wrong_schema", "illegal"}
    assert kinds == {*classes, "lost", "too_long", "ended", "proposed"}


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_a_call_takes_no_more_attempts_than_its_retries(retries):
    server = Server(failure(503))
    driver_backend = server.backend(retries)
    from kernelwright.agents.chat import ChatRequest

    with pytest.raises(BackendError, match=f"attempt {retries + 1}, the last"):
        driver_backend.complete(ChatRequest("m", (("user", "q"),), 9, 0.5, 1))
    assert server.asked == retries + 1
