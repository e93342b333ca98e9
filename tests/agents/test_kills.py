"""Agents of several calls a proposal, killed with SIGKILL at a call, over the real store: the
end is the same, and no call is made twice whose answer is recorded.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from crash_child import tables

from kernelwright.agents.backends.mock import Mock
from kernelwright.configs import api
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.trial import MODEL_CALL
from kernelwright.search.underway import unanswered

CHILD = Path(__file__).resolve().parents[1] / "crash_child.py"
SETTINGS = ["budget.trials=12", "batch=4", "seed=5", "agents.backend.faults=0.15"]
# Plans, reviews, tools and crossings are under way at these calls, or the first call of all.
PLACES = [
    ("team", "call", 4),
    ("team", "answer", 9),
    ("tool_loop", "call", 17),
    ("evolve", "call", 11),
    ("evolve", "answer", 6),
    ("refine", "call", 0),
]


@pytest.mark.parametrize(("agent", "mode", "at"), PLACES)
def test_an_agent_that_is_killed_at_a_call_ends_bit_equal(tmp_path, monkeypatch, agent, mode, at):
    config = f"gemm_model_{agent}"
    settings = [*SETTINGS, *(["driver.crossover=0.6"] if agent == "evolve" else [])]
    command = [sys.executable, "-P", str(CHILD), config, str(tmp_path / "a"), mode, str(at)]
    killed = subprocess.run([*command, *settings], check=False)
    assert killed.returncode == -signal.SIGKILL
    with SqliteStore(tmp_path / "a" / DATABASE) as store:
        assert sum(e.kind == MODEL_CALL for e in store.events()) == at
        assert len(unanswered(store.meta())) == 1
    complete, made = Mock.complete, []

    def counted(self, request):
        made.append(request.key)
        return complete(self, request)

    monkeypatch.setattr(Mock, "complete", counted)
    api.run(config, tmp_path / "a", overrides=settings, workers=3)
    resumed = made.copy()
    made.clear()
    api.run(config, tmp_path / "b", overrides=settings)
    assert tables(tmp_path / "a") == tables(tmp_path / "b")
    assert resumed == made[at:]
    assert len(resumed) > 0
