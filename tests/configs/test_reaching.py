"""A run goes on where only how its model is reached has changed."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from kernelwright.agents.mock_server import mock_endpoint
from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.transcript import prompt_of
from kernelwright.display.runs import summary_text

OWN = """
from typing import Annotated

from kernelwright.agents.backends.mock import Mock
from kernelwright.env.options import ReachOption


class Own(Mock):
    def __init__(self, *, seed, gate: Annotated[int, ReachOption()] = 0, width: int = 1):
        super().__init__(seed=seed)
"""


def campaign(backend, trials=4):
    return {
        "name": "moved",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "llm"},
        "agents": {"backend": backend},
        "budget": {"trials": trials},
        "batch": 4,
    }


@contextmanager
def endpoint():
    server = mock_endpoint(seed=1)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_run_goes_on_at_another_address(tmp_path):
    pytest.importorskip("openai")
    with endpoint() as first:
        model, was = first.model.model, first.url
        backend = {"name": "openai", "model": model, "base_url": was}
        begun = api.run(campaign(backend), tmp_path)
        asked = prompt_of(tmp_path, "1")
    with endpoint() as second:
        moved = {**backend, "base_url": second.url, "timeout": 60.0, "limits": {"concurrency": 1}}
        summary = api.run(campaign(moved, 8), tmp_path)
        assert summary["trials"] == 8
        calls = sum(begun["replies"].values())
        found = {c["key"]: (c["was"], c["now"]) for c in summary["reached"]}
        assert found["agents.backend.base_url"] == (was, second.url)
        assert found["agents.backend.timeout"] == (120.0, 60.0)
        assert found["agents.backend.limits.concurrency"] == (None, 1)
        assert {change["calls"] for change in summary["reached"]} == {calls}
        assert f"agents.backend.base_url {second.url!r}" in summary_text(api.show(tmp_path))
        assert prompt_of(tmp_path, "1") == {**asked, "of": 8}
        assert api.run(campaign(moved, 8), tmp_path)["reached"] == summary["reached"]


@pytest.mark.parametrize(
    ("backend", "key"),
    [
        ({"name": "mock", "skill": 0.1}, "agents.backend.skill"),
        ({"name": "mock", "persona": "bold"}, "agents.backend.persona"),
    ],
)
def test_another_model_is_another_campaign(tmp_path, backend, key):
    api.run(campaign({"name": "mock"}), tmp_path)
    with pytest.raises(ConfigError) as refused:
        api.run(campaign({**backend, "limits": {"retries": 2}}), tmp_path)
    assert refused.value.path == key
    assert api.show(tmp_path)["reached"] == []


def test_a_smaller_budget_is_refused_before_anything_is_recorded(tmp_path):
    api.run(campaign({"name": "mock"}, 8), tmp_path)
    with pytest.raises(ConfigError, match=r"budget\.trials"):
        api.run(campaign({"name": "mock", "limits": {"retries": 2}}, 4), tmp_path)
    assert api.show(tmp_path)["reached"] == []


def test_a_backend_of_ones_own_says_what_is_only_reach(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    name = f"{tmp_path / 'own.py'}:Own"
    api.run(campaign({"name": name, "gate": 1}), tmp_path / "run")
    summary = api.run(campaign({"name": name, "gate": 2}), tmp_path / "run")
    (change,) = summary["reached"]
    assert (change["key"], change["was"], change["now"]) == ("agents.backend.gate", 1, 2)
    with pytest.raises(ConfigError, match=r"agents\.backend\.width"):
        api.run(campaign({"name": name, "gate": 2, "width": 2}), tmp_path / "run")


def test_those_of_backends_inside_others_count_too(tmp_path):
    server = {"name": "openai", "model": "m", "base_url": "http://localhost:1/v1"}
    inside = {"name": "ensemble", "backends": {"a": server, "b": {"name": "mock"}}}
    chosen = read_config(campaign(inside)).backend
    assert {"limits", "backends.a.base_url", "backends.a.limits"} <= set(chosen.reaching)
    assert not any(key.endswith("model") for key in chosen.reaching)
    replay = {"name": "replay", "from": str(tmp_path), "on_miss": "record", "backend": server}
    assert "backend.deadline" in read_config(campaign(replay)).backend.reaching
