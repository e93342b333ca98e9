from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
import yaml

KEYS = {"best", "library_ratio", "trials", "by_status", "baseline", "seconds", "tokens", "usd"}
BEST = {"key", "status", "speedup", "ci_low", "ci_high", "evidence"}


def kernelwright(*arguments, cwd):
    command = [sys.executable, "-P", "-m", "kernelwright", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_run_and_show_print_one_json_object(tmp_path):
    ran = kernelwright("run", "quickstart", "--set", "budget.trials=32", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout)
    assert summary.keys() >= KEYS
    assert summary["best"].keys() >= BEST
    assert (tmp_path / "runs" / "quickstart" / "run.sqlite").exists()
    shown = kernelwright("show", "runs/quickstart", "--json", cwd=tmp_path)
    assert json.loads(shown.stdout) == summary
    text = kernelwright("show", "runs/quickstart", cwd=tmp_path).stdout
    assert f"{summary['best']['speedup']:.3f}x the unscheduled baseline" in text


def test_piped_progress_is_plain_lines(tmp_path):
    ran = kernelwright("run", "quickstart", "--out", "r", cwd=tmp_path)
    assert ran.returncode == 0
    assert "\x1b" not in ran.stdout
    assert "128/128 trials" in ran.stdout
    again = kernelwright("run", "quickstart", "--out", "r", cwd=tmp_path)
    assert "128/128 trials" not in again.stdout
    assert again.stdout.splitlines()[0] in ran.stdout


def test_refusals_exit_2_with_the_place(tmp_path):
    (tmp_path / "a.yaml").write_text("name: a\nsede: 1\n")
    plain = kernelwright("run", "a.yaml", cwd=tmp_path)
    assert plain.returncode == 2
    assert "a.yaml:2: sede: expected" in plain.stderr
    assert plain.stdout == ""
    for command in (["run", "a.yaml"], ["check", "a.yaml"], ["compare", "a.yaml", "a.yaml"]):
        refused = kernelwright(*command, "--json", cwd=tmp_path)
        assert refused.returncode == 2
        error = json.loads(refused.stdout)["error"]
        assert error.keys() == {"file", "line", "path", "expected", "found", "nearest"}
        assert (error["line"], error["path"], error["nearest"]) == (2, "sede", "seed")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "nowhere"], "no such run"),
        (["run", "nowhere.yaml"], "expected a file or one of"),
        (["list", "driver"], "did you mean 'drivers'"),
        (["check"], "expected a CONFIG"),
        (["run"], "CONFIG"),
        (["frobnicate"], "frobnicate"),
        (["run", "quickstart", "--set", "budget"], "a.b=value"),
        (["compare", "quickstart"], "at least two campaigns"),
        (["compare", "gemm_model_random", "gemm_h200_random"], "the target of gemm_model_random"),
        (["run", "quickstart", "--workers", "0"], "workers"),
    ],
)
def test_wrong_calls_exit_2(tmp_path, arguments, said):
    result = kernelwright(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_unequal_budgets_are_not_compared(tmp_path):
    quick = yaml.safe_load(kernelwright_config("gemm_model_random"))
    quick["budget"]["trials"] = 99
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(quick))
    result = kernelwright("compare", "gemm_model_evolution", "b.yaml", "--json", cwd=tmp_path)
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["path"] == "budget"


def kernelwright_config(name):
    from kernelwright.configs.load import shipped_configs

    return shipped_configs()[name].read_text()


def test_nothing_valid_exits_1_and_shows_0(tmp_path):
    rows = [{"m": 64, "n": 64, "k": 64, "gpu": "H200"}]
    knobs = {"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 3}
    rows += [knobs | {"group_m": 1, "us": [9.0], "err": 0.5}]
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    campaign = {
        "name": "none",
        "problem": {"name": "gemm_gpu", "m": 64, "n": 64, "k": 64},
        "target": {"name": "recorded", "landscape": "l.jsonl"},
        "driver": {"name": "grid"},
        "budget": {"trials": 5},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(campaign))
    ran = kernelwright("run", "c.yaml", "--json", cwd=tmp_path)
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["best"] is None
    assert json.loads(ran.stdout)["by_status"] == {"wrong": 1}
    shown = kernelwright("show", "runs/none", cwd=tmp_path)
    assert shown.returncode == 0
    assert "nothing valid was found" in shown.stdout


def test_compare_prints_rows_and_a_verdict(tmp_path):
    arguments = ["compare", "gemm_model_random", "gemm_model_cost_model", "--seeds", "5", "--json"]
    result = json.loads(kernelwright(*arguments, cwd=tmp_path).stdout)
    assert len(result["rows"]) == 10
    assert result["rows"][0].keys() == {"config", "seed", "evaluations_to_target", "best"}
    assert len({(row["config"], row["seed"]) for row in result["rows"]}) == 10
    assert len({row["seed"] for row in result["rows"]}) == 10
    (pair,) = result["summary"]["pairs"]
    assert pair["ci_low"] <= pair["ratio"] <= pair["ci_high"]


def test_compare_with_itself_uses_disjoint_seeds(tmp_path):
    arguments = ["compare", "gemm_model_cost_model", "gemm_model_cost_model", "--seeds", "6"]
    result = kernelwright(*arguments, cwd=tmp_path)
    assert result.returncode == 0
    assert (
        "no difference between gemm_model_cost_model (1) and gemm_model_cost_model (2)"
        in result.stdout
    )


@pytest.mark.parametrize(
    ("what", "some"),
    [
        ("problems", "gemm_gpu"),
        ("spaces", "knobs"),
        ("drivers", "evolution"),
        ("targets", "recorded"),
        ("configs", "quickstart"),
        ("directives", None),
        ("backends", None),
    ],
)
def test_list(tmp_path, what, some):
    rows = json.loads(kernelwright("list", what, "--json", cwd=tmp_path).stdout)[what]
    assert (some in [row["name"] for row in rows]) if some else rows == []
    text = kernelwright("list", what, cwd=tmp_path).stdout
    assert (some in text) if some else f"no {what} yet" in text
    assert all(row["doc"] for row in rows)


def test_check_prints_the_plan_and_the_schema(tmp_path):
    text = kernelwright("check", "quickstart", cwd=tmp_path).stdout
    assert "6,000 combinations, 5,400 valid" in text
    assert "128 candidates" in text
    schema = json.loads(kernelwright("check", "--schema", cwd=tmp_path).stdout)
    assert schema["title"] == "kernelwright campaign"


def test_figures_json(tmp_path):
    result = kernelwright("figures", "--json", cwd=tmp_path)
    assert result.returncode == 0
    rows = json.loads(result.stdout)["rows"]
    assert all(row["ok"] for row in rows)
    assert {"id", "accepted", "got", "ok"} <= rows[0].keys()


def test_version_and_help(tmp_path):
    assert kernelwright("--version", cwd=tmp_path).stdout.strip() == "0.1.0"
    for command in ("run", "show", "check", "list", "compare", "figures"):
        assert kernelwright(command, "--help", cwd=tmp_path).returncode == 0
        assert command in kernelwright("--help", cwd=tmp_path).stdout


SLOW = '''
import time
from kernelwright.search.drivers.random import Random


class Slow(Random):
    """Random search that thinks."""

    def ask(self, n):
        time.sleep(0.2)
        return super().ask(n)
'''


def slow_campaign(folder):
    (folder / "slow.py").write_text(SLOW)
    campaign = {
        "name": "slow",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "slow.py:Slow"},
        "budget": {"trials": 48},
        "batch": 4,
    }
    (folder / "slow.yaml").write_text(yaml.safe_dump(campaign))


def test_ctrl_c_exits_130_and_the_same_command_goes_on(tmp_path):
    slow_campaign(tmp_path)
    command = [sys.executable, "-P", "-m", "kernelwright", "run", "slow.yaml"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert "trials" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "the same command goes on" in errors
    half = json.loads(kernelwright("show", "runs/slow", "--json", cwd=tmp_path).stdout)
    assert 0 < half["trials"] < 48
    assert not half["finished"]
    assert half["best"]["ci_low"] is None
    done = kernelwright("run", "slow.yaml", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["trials"] == 48
    whole = kernelwright("run", "slow.yaml", "--out", "whole", "--json", cwd=tmp_path)
    keys = ("best", "by_status", "trials", "baseline")
    assert all(json.loads(done.stdout)[k] == json.loads(whole.stdout)[k] for k in keys)


def test_two_processes_cannot_run_the_same_campaign(tmp_path):
    slow_campaign(tmp_path)
    command = [sys.executable, "-P", "-m", "kernelwright", "run", "slow.yaml"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    second = kernelwright("run", "slow.yaml", cwd=tmp_path)
    assert second.returncode == 2
    assert "another process is running this campaign" in second.stderr
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_terminal_gets_a_live_panel(tmp_path):
    master, slave = pty.openpty()
    command = [sys.executable, "-P", "-m", "kernelwright", "run", "quickstart"]
    environ = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=slave, stderr=slave, stdin=slave, env=environ
    )
    os.close(slave)
    seen, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            try:
                seen += os.read(master, 65536)
            except OSError:
                break
        elif process.poll() is not None:
            break
    os.close(master)
    assert process.wait(timeout=30) == 0
    text = seen.decode()
    assert "\x1b[" in text
    assert "quickstart" in text
    assert "win:" in text
