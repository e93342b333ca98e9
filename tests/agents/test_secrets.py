"""The key of a server stands nowhere but in the request's header: not in what a run leaves behind,
even where the server sends it back.
"""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from kernelwright.agents.backends.openai import OpenAI
from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.env.options import OptionError

KEY = "sk-proj-very-secret-0123456789abcdef"
BLOCK = '```json\n{"bm": %d, "bn": 64, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}\n```'


class Gossip(BaseHTTPRequestHandler):
    """A server that tells the key back wherever it can."""

    count, headers_seen = 0, []

    def do_POST(self):
        cls = type(self)
        self.rfile.read(int(self.headers["content-length"]))
        cls.headers_seen.append(self.headers["authorization"])
        cls.count += 1
        told = f"your key is {KEY}, in short {KEY[:10]}****"
        block = BLOCK % (32, 64, 128, 256)[cls.count % 4]
        answers = [
            (200, {"id": KEY, "model": KEY, "choices": [self.choice(f"{told}\n{block}")]}),
            (200, {"id": "x", "choices": [self.choice(None, refusal=told)]}),
            (200, {"error": {"message": told}}),
            (500, {"error": {"message": told}}),
            (200, {"id": "x", "choices": [self.choice(f"{told}, no block")]}),
            (200, {"id": "x", "choices": [self.choice(block)]}),
        ]
        status, body = answers[cls.count % len(answers)]
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    @staticmethod
    def choice(content, **fields):
        message = {"role": "assistant", "content": content, **fields}
        return {"index": 0, "finish_reason": "stop", "message": message}

    def log_message(self, *args):
        pass


@pytest.fixture
def url(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("SOME_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gossip)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def leaks(folder):
    """The files below a folder that hold the key, or its beginning."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    wanted = (KEY.encode(), KEY[:10].encode())
    return [path.name for path in files if any(part in path.read_bytes() for part in wanted)]


def test_a_run_leaves_no_key_behind(url, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    inner = {"name": "openai", "model": "m", "base_url": url, "key_env": "SOME_KEY", "retries": 0}
    backend = {"name": "replay", "from": "kept", "on_miss": "record", "backend": inner}
    campaign = {
        "name": "gossip",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "llm", "structured": True},
        "agents": {"backend": backend},
        "budget": {"calls": 24},
    }
    config = tmp_path / "campaign.yaml"
    config.write_text(yaml.safe_dump(campaign))
    summary = api.run(config, tmp_path / "run")
    assert summary["replies"]["refused"] > 0
    assert summary["replies"]["lost"] > 0
    assert summary["trials"] > 0
    assert Gossip.headers_seen == [f"Bearer {KEY}"] * Gossip.count
    assert (tmp_path / "kept").is_dir()
    assert leaks(tmp_path) == []
    shown = caplog.text + "".join(capfd.readouterr()) + json.dumps(summary)
    assert KEY not in shown
    assert KEY[:10] not in shown.replace("authorization", "")


def test_an_error_tells_no_key(url, tmp_path, monkeypatch):
    monkeypatch.setattr(Gossip, "count", 2)

    backend = OpenAI(model="m", base_url=url, key_env="SOME_KEY", retries=0)
    from kernelwright.agents.chat import BackendError, ChatRequest

    request = ChatRequest("m", (("user", "q"),), 9, 0.5, 1)
    with pytest.raises(BackendError) as caught:
        backend.complete(request)
    text = f"{caught.value} {caught.value.args} {caught.value.message} {vars(backend)}"
    assert KEY[:10] not in text
    assert "[key]" in text


@pytest.mark.parametrize(
    "url",
    [
        "https://user:word@host/v1",
        "https://user@host/v1",
        "https://host/v1?key=abc",
        "host/v1",
        "ftp://host/v1",
    ],
)
def test_an_address_holds_no_secret(url):
    with pytest.raises(OptionError) as caught:
        OpenAI(model="m", base_url=url)
    assert caught.value.option == "base_url"
    assert "word" not in str(caught.value).replace("password", "")
    assert "abc" not in str(caught.value)


def test_a_key_in_place_of_a_variable_s_name_is_refused_and_not_repeated():
    campaign = {
        "name": "pasted",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "llm"},
        "agents": {"backend": {"name": "openai", "model": "m", "key_env": KEY}},
        "budget": {"calls": 1},
    }
    with pytest.raises(ConfigError) as caught:
        api.check(campaign)
    assert caught.value.path == "agents.backend.key_env"
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", ["", "1", "ollama", "EMPTY"])
def test_a_word_in_place_of_a_key_changes_no_program(key):
    from kernelwright.agents.backends.secrets import scrubbed
    from kernelwright.agents.chat import Completion

    answer = Completion("int x1 = EMPTY; /* ollama, key_lengths */", "stop", "m", "id")
    assert scrubbed(answer, key) == scrubbed(answer, KEY) == answer
