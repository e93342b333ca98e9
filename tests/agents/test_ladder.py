"""Answers by schema from servers of all kinds: each is asked in the strictest form that it keeps
to, which is found in a few calls and remembered.
"""

from __future__ import annotations

import json

import httpx2
import openai
import pytest
from virtual import VirtualClock

from kernelwright.agents.backends.conforming import conforms
from kernelwright.agents.backends.gate import Gate
from kernelwright.agents.backends.openai import OpenAI
from kernelwright.agents.backends.servers import (
    BELIEVED_DAYS,
    BELIEVED_DAYS_HERE,
    DAY_S,
    Servers,
)
from kernelwright.agents.backends.wire import FORMATS
from kernelwright.agents.chat import BackendError, ChatRequest

SCHEMA = {
    "type": "object",
    "properties": {"bm": {"enum": [32, 64]}, "fast": {"type": "boolean"}},
    "required": ["bm", "fast"],
    "additionalProperties": False,
}
GOOD, FENCED = '{"bm": 64, "fast": true}', 'Sure!\n```json\n{"bm": 64, "fast": true}\n```'
OTHER = '{"answer": 42}'
URL = "http://127.0.0.1:9/v1"


def request(number=0):
    text = json.dumps(SCHEMA, sort_keys=True)
    return ChatRequest("m", (("user", f"question {number}"),), 100, 0.5, number, text)


def form(asked):
    """The form in which a request asks for its answer."""
    if "tools" in asked:
        assert asked["tool_choice"]["function"]["name"] == "answer"
        return "tool"
    wanted = asked.get("response_format", {}) or asked.get("text", {}).get("format", {})
    if wanted.get("type") == "json_object":
        return "json_object_schema" if "schema" in wanted else "json_object"
    return wanted.get("type", "text")


def answered(content, calls=None, reason="stop"):
    message = {"role": "assistant", "content": content, "tool_calls": calls}
    choice = {"index": 0, "finish_reason": reason, "message": message}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return 200, {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}


def called(arguments):
    function = {"name": "answer", "arguments": arguments}
    return answered(None, [{"id": "t", "type": "function", "function": function}], "tool_calls")


def refused(text, status=400):
    return status, {"error": {"message": text}}


# What servers of each kind answer to a form, and the form that they are asked in in the end.
SERVERS = {
    "llama.cpp, vLLM": ({"json_schema": answered(GOOD)}, "json_schema", 1),
    "llama-cpp-python": (
        {
            "json_schema": refused("Internal Server Error", 500),
            "json_object_schema": answered(GOOD),
        },
        "json_object_schema",
        2,
    ),
    "JSON mode only, refuses": (
        {
            "json_schema": refused("'response_format.type' must be 'text' or 'json_object'"),
            "json_object_schema": refused("unknown field response_format.schema"),
            "json_object": answered(OTHER),
        },
        "json_object",
        3,
    ),
    "accepts a schema, answers JSON of its own": (
        {name: answered(OTHER) for name in ("json_schema", "json_object_schema", "json_object")},
        "json_object",
        3,
    ),
    "ignores every form, calls tools": (
        {**dict.fromkeys(FORMATS, answered(FENCED)), "tool": called(GOOD)},
        "tool",
        4,
    ),
    "ignores everything": (dict.fromkeys(FORMATS, answered(FENCED)), "text", 5),
    "text only, refuses": (
        {
            "json_schema": refused("json_schema is not supported"),
            "json_object_schema": refused("response_format is not supported"),
            "json_object": refused("response_format is not supported"),
            "tool": refused("this model does not support tools"),
            "text": answered(FENCED),
        },
        "text",
        5,
    ),
    "breaks down over any form": (
        {**dict.fromkeys(FORMATS, refused("oops", 500)), "text": answered(FENCED)},
        "text",
        3,
    ),
}


class Scripted:
    """A server without a socket: answers by the form of the request."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def __call__(self, sent):
        body = json.loads(sent.content)
        self.asked.append(body)
        status, payload = self.answers[form(body)]
        return httpx2.Response(status, json=payload)

    def plug_into(self, backend):
        transport = httpx2.MockTransport(self)
        client = openai.OpenAI(
            api_key="none",
            base_url=URL,
            max_retries=0,
            http_client=openai.DefaultHttpxClient(transport=transport),
        )
        backend._idle.append(client)
        backend.pass_through(Gate(clock=VirtualClock()))
        return backend


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def make(server, **options):
    return server.plug_into(OpenAI(model="m", base_url=URL, retries=2, **options))


@pytest.mark.parametrize("kind", SERVERS)
def test_each_kind_of_server_is_asked_in_the_strictest_form_that_it_keeps_to(kind):
    answers, last, calls = SERVERS[kind]
    server = Scripted(answers)
    backend = make(server)
    for number in range(6):
        backend.complete(request(number))
    forms = [form(asked) for asked in server.asked]
    assert forms[calls - 1 :] == [last] * (len(forms) - calls + 1)
    assert len(set(forms[:calls])) == calls
    before = len(server.asked)
    make(server).complete(request(9))
    assert [form(asked) for asked in server.asked[before:]] == [last]


def test_the_arguments_of_the_tool_are_the_answer():
    server = Scripted({**dict.fromkeys(FORMATS, answered("no")), "tool": called(GOOD)})
    backend = make(server)
    answers = [backend.complete(request(n)) for n in range(4)]
    assert answers[-1].text == GOOD
    assert answers[-1].finish_reason == "tool_calls"


@pytest.mark.parametrize(
    "reply",
    [answered('{"bm": 6', reason="length"), answered(None), answered("", reason="content_filter")],
)
def test_what_is_no_whole_answer_says_nothing_of_the_server(reply):
    server = Scripted(dict.fromkeys(FORMATS, reply))
    backend = make(server)
    for number in range(3):
        backend.complete(request(number))
    assert {form(asked) for asked in server.asked} == {"json_schema"}


def test_a_form_that_worked_is_not_given_up_for_a_breakdown():
    server = Scripted({"json_schema": answered(GOOD)})
    backend = make(server)
    backend.complete(request(0))
    server.answers = {"json_schema": refused("oops", 500)}
    with pytest.raises(Exception, match="oops"):
        backend.complete(request(1))
    assert {form(asked) for asked in server.asked} == {"json_schema"}


def test_a_server_that_is_broken_altogether_is_asked_by_schema_again_later():
    server = Scripted(dict.fromkeys(FORMATS, refused("oops", 500)))
    backend = make(server)
    with pytest.raises(Exception, match="oops"):
        backend.complete(request(0))
    server.answers = {"json_schema": answered(GOOD)}
    assert backend.complete(request(1)).text == GOOD


def test_what_is_known_of_a_server_is_its_own_and_grows_old(cache):
    make(Scripted(SERVERS["llama-cpp-python"][0])).complete(request())
    (file,) = (cache / "kernelwright" / "servers").iterdir()
    data = json.loads(file.read_text())
    assert (data["base_url"], data["model"], data["api"]) == (URL, "m", "chat")
    assert data["learned"]["format"] == "json_object_schema"
    assert len(data["date"]) == 10
    about = {name: data[name] for name in ("base_url", "model", "api")}
    assert Servers().read(about) == data["learned"]
    assert Servers().read({**about, "model": "n"}) is None
    assert Servers().read(about, now=data["at"] + BELIEVED_DAYS_HERE * DAY_S + 1) is None
    file.write_text("{")
    assert Servers().read(about) is None
    hosted = {**about, "base_url": "https://models.example/v1"}
    Servers().write(hosted, data["learned"])
    now = data["at"] + BELIEVED_DAYS * DAY_S
    assert Servers().read(hosted, now=now - 60) == data["learned"]
    assert Servers().read(hosted, now=now + 60) is None


def test_without_a_schema_no_form_is_asked_for_and_none_is_learned():
    server = Scripted({"text": answered("hello")})
    make(server).complete(ChatRequest("m", (("user", "q"),), 100, 0.5, 1))
    by_schema = Scripted({"json_schema": answered(GOOD)})
    make(by_schema).complete(request())
    assert [form(asked) for asked in by_schema.asked] == ["json_schema"]


def response(*parts, status="completed", why=None, **fields):
    content = [{"type": "output_text", "text": part, "annotations": []} for part in parts]
    message = {"type": "message", "id": "m", "role": "assistant", "status": status}
    return 200, {
        "id": "r1",
        "object": "response",
        "model": "m-3",
        "status": status,
        "incomplete_details": None if why is None else {"reason": why},
        "output": [{**message, "content": content}],
        "usage": {
            "input_tokens": 9,
            "output_tokens": 4,
            "total_tokens": 13,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        **fields,
    }


def test_responses_are_asked_and_read_like_chat():
    server = Scripted({"text": response("two ", "parts")})
    prices = {"prompt": 2e6, "completion": 1e6, "cached": 1e6}
    answer = make(server, api="responses", usd_per_million=prices).complete(
        ChatRequest("m", (("system", "be brief"), ("user", "q")), 100, 0.5, 1)
    )
    assert (answer.text, answer.finish_reason, answer.model) == ("two parts", "stop", "m-3")
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens) == (9, 4, 3)
    assert answer.usd == 6 * 2 + 3 * 1 + 4 * 1
    (asked,) = server.asked
    assert asked["input"][0] == {"role": "system", "content": "be brief"}
    assert (asked["max_output_tokens"], asked["store"], "seed" in asked) == (100, False, False)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (response("half", status="incomplete", why="max_output_tokens"), "length"),
        (response("", status="incomplete", why="content_filter"), "content_filter"),
        (response("half", status="failed"), "failed"),
    ],
)
def test_a_response_says_why_it_ended(reply, reason):
    answer = make(Scripted({"text": reply}), api="responses").complete(
        ChatRequest("m", (("user", "q"),), 100, 0.5, 1)
    )
    assert answer.finish_reason == reason


def test_a_chat_completion_is_no_response():
    backend = make(Scripted({"text": answered("hi")}), api="responses")
    with pytest.raises(BackendError) as caught:
        backend.complete(ChatRequest("m", (("user", "q"),), 100, 0.5, 1))
    assert caught.value.kind == "content"


def test_responses_by_schema_have_their_own_words():
    tool = {"type": "function_call", "name": "answer", "arguments": GOOD, "call_id": "c", "id": "f"}
    answers = {name: refused("json_schema is not supported") for name in FORMATS}
    answers["tool"] = (200, {**response()[1], "output": [tool]})
    found = make(Scripted(answers), api="responses")

    class ByText(Scripted):
        def __call__(self, sent):
            body = json.loads(sent.content)
            self.asked.append(body)
            wanted = "tool" if "tools" in body else body.get("text", {}).get("format", {})["type"]
            status, payload = self.answers[wanted]
            return httpx2.Response(status, json=payload)

    server = ByText(answers)
    assert server.plug_into(found).complete(request()).text == GOOD
    assert server.asked[0]["text"]["format"]["name"] == "answer"
    assert server.asked[-1]["tool_choice"] == {"type": "function", "name": "answer"}


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        (GOOD, True),
        (f" {GOOD}\n", True),
        ('{"bm": 64}', False),
        ('{"bm": 65, "fast": true}', False),
        ('{"bm": true, "fast": true}', False),
        ('{"bm": 64, "fast": 1}', False),
        ('{"bm": 64, "fast": true, "more": 0}', False),
        ("[1]", False),
        (FENCED, False),
        ("", False),
        ("[" * 100_000, False),
    ],
)
def test_whether_a_text_follows_a_schema(text, follows):
    assert conforms(text, json.dumps(SCHEMA)) is follows


def test_following_agrees_with_a_validator_of_the_standard():
    import jsonschema

    schemas = [
        SCHEMA,
        {"type": ["integer", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
        {"const": 1},
        {"type": "object", "required": ["a"], "properties": {"a": {"enum": [1, "x", None]}}},
        {"type": "number"},
    ]
    values = [None, True, 1, 1.0, 1.5, "x", [1], ["x"], [], {}, {"a": 1}, {"a": True}, {"a": None}]
    values += [{"bm": 32, "fast": False}, {"bm": 32.0, "fast": False}, {"bm": 1, "fast": False}]
    for schema in schemas:
        validator = jsonschema.Draft202012Validator(schema)
        for value in values:
            text = json.dumps(value)
            assert conforms(text, json.dumps(schema)) == validator.is_valid(value), (schema, value)
