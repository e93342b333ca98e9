"""Killed at any instant, a campaign goes on to the same end, bit for bit.

The benchmark has a hundred of these.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from crash_child import tables

from kernelwright.configs import api

CHILD = Path(__file__).resolve().parents[1] / "crash_child.py"
SETTINGS = ["budget.trials=30", "batch=4", "judge.confirm.finalists=3", "seed=5"]
PLACES = [
    ("gemm_model_random", "judge", 1),
    ("gemm_model_evolution", "judge", 22),
    ("gemm_model_cost_model", "commit", 17),
    ("gemm_h200_cost_model", "commit", 29),
    ("gemm_h200_evolution", "after", 12),
    ("gemm_model_evolution", "confirm", 0),
    ("gemm_model_cost_model", "confirm", 2),
    ("gemm_model_random", "confirming", 1),
    ("gemm_model_random", "confirming", 8),
]


@pytest.mark.parametrize(("config", "mode", "at"), PLACES)
def test_a_killed_campaign_ends_bit_equal(tmp_path, config, mode, at):
    command = [sys.executable, "-P", str(CHILD), config, str(tmp_path / "a"), mode, str(at)]
    killed = subprocess.run([*command, *SETTINGS], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not any(row[1] == "finished" for row in tables(tmp_path / "a")[2])
    api.run(config, tmp_path / "a", overrides=SETTINGS, workers=3)
    api.run(config, tmp_path / "b", overrides=SETTINGS)
    assert tables(tmp_path / "a") == tables(tmp_path / "b")


# Places in the extension from 13 to 30 trials; the old budget ends inside a batch.
EXTENDING = [("commit", 13), ("after", 14), ("commit", 22), ("confirm", 0)]


@pytest.mark.parametrize(("mode", "at"), EXTENDING)
def test_an_extension_that_is_killed_ends_bit_equal(tmp_path, mode, at):
    config, small = "gemm_model_evolution", ["budget.trials=13", *SETTINGS[1:]]
    for folder in ("a", "b"):
        api.run(config, tmp_path / folder, overrides=small)
    command = [sys.executable, "-P", str(CHILD), config, str(tmp_path / "a"), mode, str(at)]
    killed = subprocess.run([*command, *SETTINGS], check=False)
    assert killed.returncode == -signal.SIGKILL
    for folder in ("a", "b"):
        api.run(config, tmp_path / folder, overrides=SETTINGS)
    assert tables(tmp_path / "a") == tables(tmp_path / "b")
