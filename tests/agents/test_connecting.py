"""A question goes to the server that was named and to nobody else, with nothing that was meant for
another; and what a server sends cannot fill the memory.
"""

from __future__ import annotations

import gzip
import json

import pytest
from serving import Server, completion, failure

from kernelwright.agents.backends import connecting
from kernelwright.agents.backends.addresses import bare, check_url, is_here
from kernelwright.agents.backends.openai import OpenAI
from kernelwright.agents.backends.servers import Servers
from kernelwright.agents.backends.wire import FORMATS, Wire
from kernelwright.agents.chat import BackendError, ChatRequest
from kernelwright.env.options import OptionError

REQUEST = ChatRequest("m", (("user", "what nobody else shall read"),), 100, 0.5, 7)
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def other(server):
    found = Server()
    found.script = [completion("from elsewhere")]
    yield found
    found.http.shutdown()
    found.http.server_close()


def error_of(backend):
    with pytest.raises(BackendError) as caught:
        backend.complete(REQUEST)
    return caught.value


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_question_is_not_sent_on(server, backend, other, status):
    there = {"location": f"{other.url}/chat/completions?token=word"}
    error = error_of(backend((status, b"", there)))
    assert other.asked == []
    assert error.kind == "permanent"
    assert other.url in error.message
    assert "word" not in error.message
    assert len(server.asked) == 1


def test_a_key_is_for_the_server_that_it_is_named_for(server, backend, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("MY_KEY", "mine")
    error = error_of(backend(failure(401)))
    assert "no key was sent" in error.message
    backend(completion(), key_env="MY_KEY").complete(REQUEST)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    OpenAI(model="m").complete(REQUEST)
    assert [h["authorization"] for h in server.headers] == [
        "Bearer none",
        "Bearer mine",
        f"Bearer {KEY}",
    ]


def test_an_account_is_named_to_nobody_else(server, backend, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    backend(completion()).complete(REQUEST)
    assert "mine" not in str(server.headers[0])
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    OpenAI(model="m").complete(REQUEST)
    assert "org-mine" in str(server.headers[1])


def test_a_server_of_this_machine_is_asked_without_a_proxy(backend, other, monkeypatch):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, other.url.removesuffix("/v1"))
    assert backend(completion("from here")).complete(REQUEST).text == "from here"
    assert other.asked == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTPS_PROXY", "foo://user:word@127.0.0.1:9"), ("SSL_CERT_FILE", "/nonexistent/file")],
)
def test_an_environment_of_which_no_client_can_be_made_is_permanent(
    server, monkeypatch, name, value
):
    for lower in ("https_proxy", "http_proxy", "all_proxy"):
        monkeypatch.delenv(lower, raising=False)
    monkeypatch.setenv(name, value)
    error = error_of(OpenAI(model="m", base_url="https://models.invalid/v1", retries=0))
    assert error.kind == "permanent"
    assert "environment" in error.message
    assert "word" not in error.message


@pytest.mark.parametrize(
    "key", [f"{KEY}\nand-more-of-it", "sk-\u201cquoted\u201d-0123456789", "a b"]
)
def test_a_key_that_no_header_can_hold_is_said_and_not_told(server, backend, monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    error = error_of(backend(completion(), key_env="MY_KEY"))
    assert (error.kind, server.asked) == ("permanent", [])
    assert "MY_KEY: expected a key of printable ASCII" in error.message
    assert not any(part in error.message for part in (key[:5], "more-of-it", "quoted"))


def zipped(text):
    return (
        200,
        gzip.compress(json.dumps(completion(text)[1]).encode()),
        {"content-encoding": "gzip"},
    )


def test_an_answer_that_is_too_large_is_given_up(server, backend, monkeypatch):
    monkeypatch.setattr(connecting, "MOST_BYTES", 100_000)
    for large in (completion("x" * 200_000), zipped("x" * 1_000_000), (500, b"x" * 200_000, {})):
        error = error_of(backend(large))
        assert error.kind == "content"
        assert "at most 100000 bytes" in error.message
    assert len(server.asked) == 3
    assert backend(zipped("x" * 50_000)).complete(REQUEST).text == "x" * 50_000


def test_a_message_does_nothing_to_a_terminal(backend):
    error = error_of(backend(failure(400, "no\x1b]0;title\x07 \ud800\x9b2J")))
    assert error.message.isprintable()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host/v1",
        "ftp://host/v1",
        "http://[::1/v1",
        "http://host:99999/v1",
        "http://host/v1?a=b",
    ],
)
def test_an_address_in_the_environment_is_looked_at_too(monkeypatch, url):
    with pytest.raises(OptionError):
        check_url(url)
    if url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        with pytest.raises(OptionError, match="OPENAI_BASE_URL"):
            OpenAI(model="m")


def test_a_password_in_the_environment_is_not_noted(server, monkeypatch, tmp_path):
    server.script = [completion()]
    monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("//", "//user:pass-word@"))
    OpenAI(model="m").complete(REQUEST)
    (note,) = tmp_path.rglob("servers/*.json")
    assert server.url in note.read_text()
    assert "pass-word" not in note.read_text()


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.53/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://0.0.0.0:1/v1", True),
        ("http://localhost.example/v1", False),
        ("http://127.0.0.1.example/v1", False),
        ("https://models.example/v1", False),
        ("http://[/v1", False),
    ],
)
def test_which_servers_are_here(url, here):
    assert is_here(url) is here


def test_an_address_is_shown_without_what_is_secret():
    assert bare("https://user:word@host:1/path?token=x#y") == "https://host:1/path"
    assert bare("/path?token=x") == "/path"
    assert bare("http://[") == ""


@pytest.mark.parametrize(
    "note",
    [
        '{"at": 1e999, "learned": {}}',
        f'{{"at": {"9" * 400}, "learned": {{}}}}',
        "[" * 100_000,
        '{"at": 0, "learned": []}',
        "[]",
        "\x00",
    ],
)
def test_notes_that_are_none_say_nothing(tmp_path, note):
    servers, about = Servers(tmp_path), {"base_url": "http://localhost/v1", "model": "m"}
    servers.write(about, {"format": "tool"})
    (place,) = tmp_path.glob("*.json")
    assert servers.read(about) == {"format": "tool"}
    place.write_text(note)
    assert servers.read(about, now=1.0) in (None, {})


@pytest.mark.parametrize("wrong", [7, None, "seed", {"seed": 1}, [["seed"], {}, 3]])
def test_a_note_of_another_form_is_left_aside(wrong):
    wire = Wire({"format": wrong, "limit": wrong, "dropped": wrong})
    assert wire.format == FORMATS[0]
    assert set(wire.arguments(REQUEST)) >= {"max_tokens", "temperature", "seed"}
