"""``init`` makes a folder that runs as it is."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.loaded import load
from kernelwright.configs.scaffold import scaffold
from kernelwright.configs.winner import export
from kernelwright.env.compiler.runtime.toolchain import BuildError, find_toolchain

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
needs_cc = pytest.mark.skipif(TOOLCHAIN is None, reason="no C compiler on this machine")
SMALL = ["problem.m=16", "problem.n=16", "problem.d=32", "budget.trials=4"]
SMALL += ["judge.screen.pairs=1", "judge.confirm.finalists=1", "judge.confirm.process_pairs=2"]


def test_init_makes_three_files_of_that_name(tmp_path):
    made = scaffold("knn", tmp_path)
    assert [path.name for path in made] == ["knn.c", "knn.py", "knn.yaml"]
    assert sorted(tmp_path.rglob("*.*")) == sorted(made)
    assert not [path for path in made if "mykernel" in path.read_text()]
    assert "void knn(" in made[0].read_text()


@needs_cc
def test_what_init_makes_runs_exports_and_loads(tmp_path):
    campaign = scaffold("knn", tmp_path)[-1]
    summary = api.run(campaign, tmp_path / "run", overrides=SMALL)
    assert summary["by_status"].keys() <= {"ok", "win", "tie", "loss"}, summary["by_status"]
    assert "void knn(" in export(tmp_path / "run")
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((16, 32)).astype(np.float32) for _ in "xy")
    wanted = ((x[:, None] - y) ** 2).sum(axis=2)
    np.testing.assert_allclose(load(tmp_path / "run")(x, y), wanted, rtol=1e-5)


@needs_cc
@pytest.mark.parametrize("place", [pytest.param("every", marks=pytest.mark.audit), "plain"])
def test_every_candidate_and_the_plain_loops_are_correct(tmp_path, place):
    campaign = scaffold("knn", tmp_path)[-1]
    more = {"every": "driver.name=grid", "plain": "baseline=unscheduled"}[place]
    trials = "budget.trials=1000" if place == "every" else "budget.trials=2"
    summary = api.run(campaign, tmp_path / "run", overrides=[*SMALL, trials, more])
    assert summary["by_status"].keys() <= {"ok", "win", "tie", "loss"}, summary["by_status"]


def test_the_campaign_is_modest(tmp_path):
    budget = read_config(scaffold("knn", tmp_path)[-1]).file.budget
    assert budget.seconds is not None
    assert budget.seconds <= 60


@pytest.mark.parametrize(
    "name",
    ["", "9x", "a-b", "a/b", "../a", "double", "class", "random", "numpy", "kw_a", "ünter", "_a"],
)
def test_names_that_cannot_be_a_kernel_s_are_refused(tmp_path, name):
    with pytest.raises(ConfigError, match="a name that C and Python leave free"):
        scaffold(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_nothing_is_overwritten(tmp_path, kind):
    there = tmp_path / "knn"
    if kind == "folder":
        there.mkdir()
    elif kind == "file":
        there.write_text("mine")
    else:
        there.symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="nothing here has yet"):
        scaffold("knn", tmp_path)
    assert not (tmp_path / "nowhere").exists()
    assert kind != "file" or there.read_text() == "mine"


def test_the_command_says_what_it_made(tmp_path):
    command = [sys.executable, "-P", "-m", "kernelwright", "init", "knn"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.stdout.splitlines()[:3] == ["knn/knn.c", "knn/knn.py", "knn/knn.yaml"]
    assert ran.stdout.splitlines()[-1] == "kernelwright run knn/knn.yaml"
    again = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert again.returncode == 2
    assert "found 'knn'" in again.stderr
