"""The real client against a scripted server on the loopback: every way in which servers answer ends
in a completion or in an error of the right kind, after the right number of calls.
"""

from __future__ import annotations

import logging
import socket
import threading
import time

import pytest
from serving import completion, failure

from kernelwright.agents.backends.gate import Gate
from kernelwright.agents.backends.openai import OpenAI
from kernelwright.agents.backends.wire import FORMATS
from kernelwright.agents.chat import BackendError, ChatRequest, Completion, classify
from kernelwright.env.options import OptionError
from kernelwright.env.records import dumps, loads

KEY = "sk-very-secret-0123456789"
REQUEST = ChatRequest("m", (("system", "be brief"), ("user", "hello")), 100, 0.5, 7)
BY_SCHEMA = ChatRequest("m", (("user", "hello"),), 100, 0.5, 7, '{"type":"object"}')
NO_KEY = "KERNELWRIGHT_TEST_NO_KEY"


def slept(backend):
    return backend._gate.clock.slept


def error_of(backend, request=REQUEST):
    with pytest.raises(BackendError) as caught:
        backend.complete(request)
    return caught.value


def test_a_completion_has_what_the_server_sent(server, backend):
    answer = backend(completion()).complete(REQUEST)
    assert (answer.text, answer.finish_reason, answer.model, answer.id) == (
        "hi",
        "stop",
        "m-2",
        "c1",
    )
    assert (answer.prompt_tokens, answer.completion_tokens) == (5, 2)
    assert not answer.usage_estimated
    assert answer.injected is None
    (asked,) = server.asked
    assert asked == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hello"},
        ],
        "max_tokens": 100,
        "temperature": 0.5,
        "seed": 7,
    }


def test_money_is_by_the_price_list_and_unpriced_is_said(backend):
    prices = {"prompt": 1e6, "completion": 2e6}
    priced = backend(completion(), usd_per_million=prices)
    assert priced.priced
    assert priced.complete(REQUEST).usd == 9.0
    unpriced = backend(completion())
    assert not unpriced.priced
    assert unpriced.complete(REQUEST).usd == 0.0


@pytest.mark.parametrize(
    "prices",
    [
        {},
        {"prompt": 1.0},
        {"prompt": 1.0, "completion": -1.0},
        {"a": 1.0, "b": 1.0},
        {"prompt": 1e308, "completion": 1.0},
    ],
)
def test_a_price_list_that_is_none_is_refused(prices):
    with pytest.raises(OptionError, match="usd_per_million"):
        OpenAI(model="m", usd_per_million=prices)


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (completion(content=None), "empty"),
        (completion(content=""), "empty"),
        (completion(content=None, refusal="I will not."), "refused"),
        (completion(content="", reason="content_filter"), "refused"),
        (completion(content="half of", reason="length"), "truncated"),
        ((200, {"id": "x", "choices": []}, {}), "empty"),
        ((200, {"id": "x"}, {}), "empty"),
        ((200, {"id": "x", "choices": None}, {}), "empty"),
        ((200, {"choices": [{"index": 0}]}, {}), "empty"),
        ((200, {"choices": [{"finish_reason": "stop", "message": None}]}, {}), "empty"),
    ],
)
def test_a_completion_without_an_answer_is_a_reply_of_its_class(server, backend, entry, kind):
    assert classify(backend(entry).complete(REQUEST)).kind == kind
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "entry",
    [
        (200, {"error": {"message": "overloaded", "code": 1}}, {}),
        (200, b"<html>busy</html>", {"content-type": "text/html"}),
        (200, b'{"choices": [', {}),
        (200, b"[" * 100_000, {}),
        (200, b"", {}),
        (200, ["a", "list"], {}),
        (200, {"choices": "none"}, {}),
        (200, {"choices": [{"message": {"content": 3}}]}, {}),
    ],
)
def test_an_answer_that_is_no_completion_is_a_content_error_after_one_call(server, backend, entry):
    assert error_of(backend(entry)).kind == "content"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (None, (4, 1)),
        ((-1, 2), (4, 2)),
        (("5", 2), (4, 2)),
        ((5, 1.5), (5, 1)),
        ((True, 2), (4, 2)),
        ((2**30, 2), (4, 2)),
        ((float("nan"), None), (4, 1)),
        ((0, 0), (4, 1)),
        ((5, 0), (5, 1)),
    ],
)
def test_usage_that_is_missing_or_absurd_is_estimated_and_marked(backend, usage, counts):
    status, body, headers = completion(usage=None)
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    answer = backend((status, body, headers)).complete(REQUEST)
    assert answer.usage_estimated
    assert (answer.prompt_tokens, answer.completion_tokens) == counts


def test_an_answer_of_nothing_may_have_taken_no_tokens(backend):
    answer = backend(completion(content=None, usage=(5, 0))).complete(REQUEST)
    assert (answer.completion_tokens, answer.usage_estimated) == (0, False)


@pytest.mark.parametrize("name", [{"a": 1}, 7, None, "\ud800", "x" * 100_000])
def test_an_odd_name_costs_no_answer(backend, name):
    status, body, headers = completion()
    body |= {"id": name, "model": name}
    body["choices"][0]["finish_reason"] = name
    answer = backend((status, body, headers)).complete(REQUEST)
    assert answer.text == "hi"
    assert loads(Completion, dumps(answer)) == answer
    assert len(dumps(answer)) < 1500


def test_text_in_parts_and_lone_surrogates_are_read(backend):
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert backend(completion(content=parts)).complete(REQUEST).text == "ab"
    assert backend(completion(content="a\ud800b")).complete(REQUEST).text == "a?b"


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(server, backend, status):
    found = backend(failure(status), failure(status), completion())
    assert found.complete(REQUEST).text == "hi"
    assert len(server.asked) == 3
    assert slept(found) == [0.5, 1.0]


def test_what_does_not_pass_ends_after_the_last_attempt(server, backend):
    error = error_of(backend(failure(503, "overloaded")))
    assert error.kind == "transient"
    assert "overloaded" in error.message
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "entry",
    [
        failure(400, "bad request"),
        failure(401, "who are you"),
        failure(403, "not you"),
        failure(404, "no model seed-7b"),
        failure(422, "odd"),
        failure(429, "quota", code="insufficient_quota"),
        failure(429, "quota", type="insufficient_quota"),
    ],
)
def test_what_cannot_pass_costs_one_call(server, backend, entry):
    assert error_of(backend(entry)).kind == "permanent"
    assert len(server.asked) == 1


def test_the_server_says_how_long_to_wait(backend):
    found = backend(
        failure(429, headers={"retry-after-ms": "1500"}),
        failure(429, headers={"retry-after": "3"}),
        completion(),
    )
    found.complete(REQUEST)
    assert slept(found) == [1.5, 3.0]


def test_a_wait_beyond_the_deadline_is_not_begun(server, backend):
    found = backend(failure(429, headers={"retry-after": "300"}), deadline=100.0)
    assert error_of(found).kind == "transient"
    assert slept(found) == []
    assert len(server.asked) == 1


def test_attempts_end_at_the_deadline(backend):
    found = backend(failure(500), deadline=3.0, retries=20)
    assert error_of(found).kind == "transient"
    assert 0 < found._gate.clock.now() <= 3.0


def test_a_context_that_is_too_long_says_what_to_lower(server, backend):
    text = "maximum context length is 4096 tokens, reduce max_tokens"
    error = error_of(backend(failure(400, text, code="context_length_exceeded")))
    assert error.kind == "repairable"
    assert "lower the driver's history" in error.message
    assert len(server.asked) == 1


def trickle(handler):
    """Sends a byte now and then and never ends: no read of the client's ever times out."""
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "100000")
    handler.end_headers()
    done = threading.Event()
    try:
        while not done.wait(0.05):
            handler.wfile.write(b" ")
    except OSError:
        return


def hang(handler):
    handler.connection.settimeout(30)
    handler.connection.recv(1)


def drop(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def cut(handler):
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("entry", [trickle, hang, drop, cut])
def test_a_server_that_stalls_or_breaks_off_is_transient(server, backend, entry):
    found = backend(entry, timeout=0.4, retries=1)
    assert error_of(found).kind == "transient"
    assert len(server.asked) == 2


def test_the_next_call_after_a_stalled_one_works(server, backend):
    found = backend(trickle, completion(), timeout=0.4, retries=1)
    assert found.complete(REQUEST).text == "hi"


def test_nobody_listening_is_transient():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = OpenAI(model="m", base_url=f"http://127.0.0.1:{port}/v1", retries=0)
    assert error_of(found).kind == "transient"


def test_a_server_that_wants_less_is_asked_for_less(server, backend):
    found = backend(
        failure(400, "Unsupported parameter: 'max_tokens'; use 'max_completion_tokens'"),
        failure(400, "'temperature' does not support 0.5 with this model"),
        failure(422, "unknown field seed"),
        completion(),
        completion(),
    )
    found.complete(REQUEST)
    last = server.asked[-1]
    assert last["max_completion_tokens"] == 100
    assert not {"max_tokens", "temperature", "seed"} & set(last)
    found.complete(REQUEST)
    assert server.asked[-1] == last


def test_a_server_that_refuses_everything_ends(server, backend):
    error = error_of(
        backend(failure(400, "temperature seed max_tokens response_format tools")), BY_SCHEMA
    )
    assert error.kind == "permanent"
    assert len(server.asked) == len(FORMATS) - 1 + 3 + 1


def test_the_key_is_sent_and_never_shown(server, backend, monkeypatch, caplog):
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    found = backend(failure(401, f"Incorrect API key: {KEY}, {KEY[:8]}****"), key_env="MY_KEY")
    error = error_of(found)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    shown = " ".join([str(error), repr(error), repr(found), str(vars(found)), caplog.text])
    assert KEY not in shown
    assert "sk-very" not in shown
    assert "the value of MY_KEY" in error.message


def test_a_local_server_needs_no_key(server, backend):
    found = backend(completion(), key_env=NO_KEY)
    assert found.missing == ()
    found.complete(REQUEST)
    assert server.headers[0]["authorization"] == "Bearer none"


def test_without_key_and_server_nothing_is_called(monkeypatch):
    for name in (NO_KEY, "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    found = OpenAI(model="m", key_env=NO_KEY)
    assert found.missing == (f"the environment variable {NO_KEY} with an API key",)
    assert error_of(found).kind == "permanent"


def test_the_client_is_not_imported_before_a_call():
    import subprocess
    import sys

    code = (
        "import sys; from kernelwright.agents.backends.openai import OpenAI; OpenAI(model='m'); "
        "print('openai' in sys.modules)"
    )
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_call_is_given_no_more_time_than_there_is(server, backend):
    found = backend(failure(500), deadline=300.0, retries=20)
    found.keep_to(lambda: 5.0)
    assert error_of(found).kind == "transient"
    assert sum(slept(found)) <= 5.0
    assert 1 < len(server.asked) < 20


def test_a_server_that_stalls_holds_a_call_no_longer_than_its_deadline(server, backend):
    found = backend(trickle, deadline=0.5, timeout=60.0)
    found.pass_through(Gate())
    began = time.monotonic()
    assert error_of(found).kind == "transient"
    # On a busy machine threads wake up late; without the deadline it would be a minute.
    assert time.monotonic() - began < 20
    assert len(server.asked) == 1


def test_a_call_that_was_given_up_holds_no_thread_and_no_other_call(server, backend):
    found = backend(trickle, completion(), deadline=0.3, timeout=60.0, retries=0)
    found.pass_through(Gate())
    before = set(threading.enumerate())
    assert error_of(found).kind == "transient"
    ours = [t for t in threading.enumerate() if t not in before and "run" in t.name]
    for thread in ours:
        thread.join(20)
    assert not any(thread.is_alive() for thread in ours)
    assert found.complete(REQUEST).text == "hi"
