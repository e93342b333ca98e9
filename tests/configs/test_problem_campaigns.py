"""Every problem with a definition is a campaign in which a model writes directives."""

from __future__ import annotations

import pytest
from toys import CPU_PROBLEMS

from kernelwright.configs import api

# At default sizes an estimate of 24 stages takes a second.
SMALL = {"pyramid": {"h": 64, "w": 64}}


@pytest.mark.parametrize("name", CPU_PROBLEMS)
def test_a_model_schedules_it(name, tmp_path):
    campaign = {
        "name": name,
        "problem": {"name": name, **SMALL.get(name, {})},
        "space": {"kind": "schedule"},
        "target": {"name": "cpu-model"},
        "driver": {"name": "llm"},
        "agents": {"backend": {"name": "mock"}, "prompt": "refine"},
        "budget": {"trials": 4},
        "batch": 2,
    }
    summary = api.run(campaign, tmp_path / "run")
    # A model that proposes nothing new for long enough ends a campaign before its budget.
    assert 2 <= summary["trials"] <= 4
    assert summary["best"]["status"] in ("win", "tie", "loss")
    assert summary["tokens"] > 0
