"""The whole road in seconds: problem, recorded trial, confirm, show. CI runs it on a wheel."""

from __future__ import annotations

import json
import subprocess
import sys

import kernelwright

CAMPAIGN = {
    "name": "tiny",
    "problem": {"name": "gemm_gpu", "m": 4096, "n": 4096, "k": 4096},
    "target": {"name": "recorded", "landscape": "h200_gemm_4096x4096x4096"},
    "driver": {"name": "evolution"},
    "budget": {"trials": 40},
    "seed": 1,
}


def test_tiny(tmp_path):
    summary = kernelwright.run(CAMPAIGN, tmp_path / "run")
    assert summary["trials"] == 40
    assert sum(summary["by_status"].values()) == 40
    best = summary["best"]
    assert best["status"] in ("win", "tie", "loss")
    assert best["ci_low"] <= best["speedup"] <= best["ci_high"]
    assert best["evidence"] == "recorded"
    assert summary["baseline"]["name"] == "unscheduled"
    assert 0.1 < summary["library_ratio"] < 1.2

    command = [sys.executable, "-m", "kernelwright", "show", str(tmp_path / "run"), "--json"]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert shown["best"] == best
    assert json.loads((tmp_path / "run" / "best.json").read_text()) == best
