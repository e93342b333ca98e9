"""What the command line says where a model does not answer: who failed, and how to go on."""

from __future__ import annotations

import json
import socket
import sys
import threading
from contextlib import contextmanager

import pytest
import yaml

from kernelwright.agents.mock_server import mock_endpoint
from kernelwright.cli import main

CAMPAIGN = {
    "name": "c",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "llm"},
    "budget": {"trials": 4, "calls": 20},
    "batch": 2,
}


def ended(monkeypatch, folder, backend, *options):
    """The exit code of a run with such a backend."""
    monkeypatch.chdir(folder)
    (folder / "c.yaml").write_text(yaml.safe_dump(CAMPAIGN | {"agents": {"backend": backend}}))
    monkeypatch.setattr(sys, "argv", ["kernelwright", "run", "c.yaml", *options])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


@contextmanager
def serving(turn):
    """A server that always answers so."""
    with mock_endpoint(wire=f"{turn}=1.0") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def openai(url, **more):
    return {"name": "openai", "model": "mock", "base_url": url, "retries": 0, **more}


def test_a_server_that_is_down_is_named(monkeypatch, tmp_path, capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        url = f"http://127.0.0.1:{port}/v1"
        assert ended(monkeypatch, tmp_path, openai(url)) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(
        "kernelwright: the model failed: 3 calls in a row were lost, the last: m"
    )
    assert f"mock at {url}: Connection error" in said
    assert said.endswith("; the same command goes on")
    monkeypatch.setattr(sys, "argv", ["kernelwright", "show", "runs/c"])
    with pytest.raises(SystemExit):
        main()
    assert (
        f"the last call that was lost: mock at {url}: Connection error" in capsys.readouterr().out
    )


def test_an_address_of_the_environment_is_told_without_its_password(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:hidden@127.0.0.1:9/v1")
    backend = {"name": "openai", "model": "m", "retries": 0, "key_env": "SOME_KEY_OF_MINE"}
    assert ended(monkeypatch, tmp_path, backend) == 1
    said = capsys.readouterr().err
    assert "m at http://127.0.0.1:9/v1: " in said
    assert "hidden" not in said


@pytest.mark.parametrize("is_set", [False, True])
def test_a_key_that_is_not_set_is_no_wrong_key(monkeypatch, tmp_path, capsys, is_set):
    if is_set:
        monkeypatch.setenv("SOME_KEY_OF_MINE", "sk-of-no-use-anywhere")
    with serving("bad_key") as server:
        backend = openai(server.url, key_env="SOME_KEY_OF_MINE")
        assert ended(monkeypatch, tmp_path, backend) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert ("SOME_KEY_OF_MINE, is not set)" in said) is not is_set
    assert ("(the key is the value of SOME_KEY_OF_MINE)" in said) is is_set
    assert "401 Error code" not in said
    assert said.endswith("; the same command goes on")


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("backend", "why"),
    [
        ({"name": "human", "folder": "q", "wait": 0.01, "poll": 0.01}, "no answer to"),
        ({"name": "mock", "limits": {"seconds": 1e-9}}, "(limits.seconds) are over"),
    ],
)
def test_a_pause_is_no_failure(monkeypatch, tmp_path, capfd, backend, why, as_json):
    assert ended(monkeypatch, tmp_path, backend, *["--json"] * as_json) == 130
    found = capfd.readouterr()
    said = json.loads(found.out)["error"]["found"] if as_json else found.err.splitlines()[-1]
    assert "paused: " in said
    assert why in said
    assert "failed" not in said
    assert said.endswith("the same command goes on")


@pytest.mark.parametrize(
    ("turn", "came"),
    [
        ("html", "a web page"),
        ("broken_json", "broken JSON"),
        ("null_choices", "choices, found None"),
    ],
)
def test_a_server_that_sends_no_completions_is_given_up_soon(
    monkeypatch, tmp_path, capfd, turn, came
):
    with serving(turn) as server:
        assert ended(monkeypatch, tmp_path, openai(server.url)) == 1
    said = capfd.readouterr().err.splitlines()[-1]
    assert "the model failed: 3 calls in a row were lost, the last: mock at http://127" in said
    assert came in said
    monkeypatch.setattr(sys, "argv", ["kernelwright", "show", "runs/c", "--json"])
    with pytest.raises(SystemExit):
        main()
    found = json.loads(capfd.readouterr().out)
    assert (found["calls"], found["replies"]) == (2, {"lost": 2})
    assert came in found["last_lost"]


def test_a_fresh_run_goes_on_in_its_folder(monkeypatch, tmp_path, capsys):
    backend = {"name": "mock", "limits": {"seconds": 1e-9}}
    assert ended(monkeypatch, tmp_path, backend, "--fresh") == 130
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("the same command with --out DIR, this run's folder, for --fresh goes on")
