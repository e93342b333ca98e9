from __future__ import annotations

import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout

import pytest
import yaml

from kernelwright.cli import main
from kernelwright.configs.load import shipped_configs

KEYS = {"best", "library_ratio", "trials", "by_status", "baseline", "seconds", "tokens", "usd"}
BEST = {"key", "status", "speedup", "ci_low", "ci_high", "evidence"}


def kernelwright(*arguments, cwd):
    """A command in this process, as importing all of it anew takes longer than most of them."""
    command, out, err = ["kernelwright", *map(str, arguments)], io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", command)
        patch.setattr(sys, "__stdout__", out)
        patch.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            code = end.code
        except Exception:  # noqa: BLE001 - what the interpreter would do
            traceback.print_exc()
            code = 1
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def test_run_and_show_print_one_json_object(tmp_path):
    ran = kernelwright("run", "gemm_h200", "--set", "budget.trials=32", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    summary = json.loads(ran.stdout)
    assert summary.keys() >= KEYS
    assert summary["best"].keys() >= BEST
    assert (tmp_path / "runs" / "gemm_h200" / "run.sqlite").exists()
    shown = kernelwright("show", "runs/gemm_h200", "--json", cwd=tmp_path)
    assert json.loads(shown.stdout) == summary
    text = kernelwright("show", "runs/gemm_h200", cwd=tmp_path).stdout
    assert text.startswith(f"{summary['claim']} (recorded)\n")
    assert "at 95%, against the unscheduled baseline; against cublas 0.9" in text


def test_piped_progress_is_plain_lines(tmp_path):
    ran = kernelwright("run", "gemm_h200", "--out", "r", cwd=tmp_path)
    assert ran.returncode == 0
    assert "\x1b" not in ran.stdout
    assert "128/128 trials" in ran.stdout
    again = kernelwright("run", "gemm_h200", "--out", "r", cwd=tmp_path)
    assert "128/128 trials" not in again.stdout
    first, second = again.stdout.splitlines()[:2]
    assert first == "already finished; --fresh starts another"
    assert second in ran.stdout


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
        (["run", "nowhere.yaml"], "expected a file, found nothing there"),
        (["run", "nowhere"], "expected a file or a shipped name"),
        (["list", "driver"], "did you mean 'drivers'"),
        (["check"], "expected a CONFIG"),
        (["run"], "CONFIG"),
        (["frobnicate"], "frobnicate"),
        (["run", "gemm_h200", "--set", "budget"], "a.b=value"),
        (["compare", "gemm_h200"], "at least two campaigns"),
        (["compare", "gemm_model_random", "gemm_h200_random"], "the target of gemm_model_random"),
        (["run", "gemm_h200", "--workers", "0"], "workers"),
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
    rows += [knobs | {"group_m": 1, "us": [9.0], "err": 0.5}, knobs | {"group_m": 8, "us": [9.0]}]
    rows[0]["default"] = knobs | {"group_m": 8}
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    campaign = {
        "name": "none",
        "problem": {"name": "gemm_gpu", "m": 64, "n": 64, "k": 64},
        "target": {"name": "recorded", "landscape": "l.jsonl"},
        "driver": {"name": "grid"},
        "budget": {"trials": 1},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(campaign))
    ran = kernelwright("run", "c.yaml", "--json", cwd=tmp_path)
    assert ran.returncode == 1
    assert json.loads(ran.stdout)["best"] is None
    assert json.loads(ran.stdout)["by_status"] == {"wrong": 1}
    shown = kernelwright("show", "runs/none", cwd=tmp_path)
    assert shown.returncode == 0
    assert "nothing valid was found" in shown.stdout


def test_score_counts_claims_and_problems_without_a_run(tmp_path):
    for out, trials in (("a", 1), ("b", 32)):
        arguments = ["--set", f"budget.trials={trials}", "--out", out]
        assert kernelwright("run", "gemm_h200", *arguments, cwd=tmp_path).returncode == 0
    asked = ["score", "a", "b", "--of", "5", "--p", "1.0", "--p", "1.01"]
    told = kernelwright(*asked, "--json", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    scores = json.loads(told.stdout)
    shown = [json.loads(kernelwright("show", r, "--json", cwd=tmp_path).stdout) for r in "ab"]
    wins = sum(summary["best"]["status"] == "win" for summary in shown)
    assert [row["claim"] for row in scores["runs"]] == [summary["claim"] for summary in shown]
    assert scores["runs"][1]["speedup"]["ci_low"] == shown[1]["best"]["ci_low"]
    assert [row["p"] for row in scores["fast"]] == [1.0, 1.01]
    assert (scores["fast"][0]["count"], scores["fast"][0]["total"]) == (wins, 5)
    assert (scores["wins"], scores["missing"], scores["evidence"]) == (wins, 3, "recorded")
    mean = scores["geometric_mean"]
    assert mean["ci_low"] <= mean["estimate"] <= (mean["ci_high"] or float("inf"))
    assert "the same problem more than once" in " ".join(scores["notes"])
    text = kernelwright(*asked, cwd=tmp_path).stdout
    assert f"p = 1: {wins} of 5 " in text
    assert "problems without a run: 3" in text
    assert "geometric mean of all 5: " in text
    # The order of runs is nothing that a score knows.
    turned = kernelwright("score", "b", "a", *asked[3:], "--json", cwd=tmp_path)
    assert json.loads(turned.stdout)["geometric_mean"] == mean


def test_score_refuses_what_cannot_be_scored_together(tmp_path):
    kernelwright("run", "gemm_h200", "--set", "budget.trials=2", "--out", "a", cwd=tmp_path)
    config = campaign(tmp_path)
    kernelwright("run", config, "--out", "modelled", cwd=tmp_path)
    for arguments, said in (
        (["a", "modelled"], "expected runs of one kind of evidence"),
        (["a", "a/"], "expected every run once"),
        (["a", "nowhere"], "no such run"),
        (["a", "--of", "0"], "at least the 1 runs"),
        (["a", "--p", "-1"], "a finite ratio above 0"),
        (["a", "--p", "nan"], "a finite ratio above 0"),
        ([], "DIR"),
    ):
        refused = kernelwright("score", *arguments, cwd=tmp_path)
        assert refused.returncode == 2, arguments
        assert said in refused.stderr
        assert refused.stdout == ""
    refused = kernelwright("score", "a", "modelled", "--json", cwd=tmp_path)
    assert "modelled: modelled" in json.loads(refused.stdout)["error"]["found"]


def test_a_run_where_nothing_is_valid_is_scored_as_a_failure(tmp_path):
    (tmp_path / "none").mkdir()
    rows = [{"m": 64, "n": 64, "k": 64, "gpu": "H200"}]
    knobs = {"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 3}
    rows += [knobs | {"group_m": 1, "us": [9.0], "err": 0.5}, knobs | {"group_m": 8, "us": [9.0]}]
    rows[0]["default"] = knobs | {"group_m": 8}
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    change = {"problem": {"name": "gemm_gpu", "m": 64, "n": 64, "k": 64}}
    change["target"] = {"name": "recorded", "landscape": "l.jsonl"}
    config = campaign(tmp_path, driver={"name": "grid"}, budget={"trials": 1}, **change)
    kernelwright("run", config, "--out", "r", cwd=tmp_path)
    told = kernelwright("score", "r", cwd=tmp_path)
    assert told.returncode == 0
    assert "r    none" in told.stdout
    assert "p = 1: 0 of 1 " in told.stdout
    assert "geometric mean of all 1: 1.00x, of unknown limits; wins (0)" in told.stdout
    assert "confirmed" not in told.stdout


def test_compare_prints_rows_and_a_verdict(tmp_path):
    arguments = ["compare", "gemm_model_random", "gemm_model_cost_model", "--seeds", "6", "--json"]
    result = json.loads(kernelwright(*arguments, cwd=tmp_path).stdout)
    assert len(result["rows"]) == 12
    assert result["rows"][0].keys() == {"config", "seed", "evaluations_to_target", "best"}
    assert len({(row["config"], row["seed"]) for row in result["rows"]}) == 12
    assert len({row["seed"] for row in result["rows"]}) == 12
    (pair,) = result["summary"]["pairs"]
    assert pair["ci_low"] <= pair["ratio"] <= pair["ci_high"]


def test_compare_draws_and_counts_to_several_targets(tmp_path):
    pair = ["gemm_model_random", "gemm_model_evolution"]
    options = ["--seeds", "6", "--budget", "12", "--within", "0.5", "--within", "0.25"]
    result = kernelwright("compare", *pair, *options, "--plot", "curves", cwd=tmp_path)
    assert result.returncode == 0
    assert "median to 50%" in result.stdout
    assert "median to 25%" in result.stdout
    drawn = {str(path.relative_to(tmp_path)) for path in (tmp_path / "curves").iterdir()}
    assert drawn == {"curves/best_at_budget.svg", "curves/evaluations_to_target.svg"}
    assert drawn <= set(result.stdout.splitlines())
    refused = kernelwright("compare", *pair, "--plot", "curves.pdf", "--json", cwd=tmp_path)
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["path"] == "--plot"


def test_compare_with_itself_uses_disjoint_seeds(tmp_path):
    arguments = ["compare", "gemm_model_cost_model", "gemm_model_cost_model", "--seeds", "6"]
    result = kernelwright(*arguments, cwd=tmp_path)
    assert result.returncode == 0
    assert (
        "no difference in evaluations to within 5% between gemm_model_cost_model (1) and "
        "gemm_model_cost_model (2)" in result.stdout
    )


@pytest.mark.parametrize(
    ("what", "some"),
    [
        ("problems", "gemm_gpu"),
        ("spaces", "knobs"),
        ("drivers", "evolution"),
        ("targets", "recorded"),
        ("configs", "quickstart"),
        ("directives", "vectorize"),
        ("backends", "mock"),
    ],
)
def test_list(tmp_path, what, some):
    rows = json.loads(kernelwright("list", what, "--json", cwd=tmp_path).stdout)[what]
    assert (some in [row["name"] for row in rows]) if some else rows == []
    text = kernelwright("list", what, cwd=tmp_path).stdout
    assert (some in text) if some else f"no {what} yet" in text
    assert all(row["doc"] for row in rows)


def test_check_prints_the_plan_and_the_schema(tmp_path):
    text = kernelwright("check", "gemm_h200", cwd=tmp_path).stdout
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
    for command in ("run", "show", "score", "check", "list", "compare", "figures"):
        assert kernelwright(command, "--help", cwd=tmp_path).returncode == 0
        assert command in kernelwright("--help", cwd=tmp_path).stdout


SLOW = '''
import time
from kernelwright.search.drivers.random import Random


class Slow(Random):
    """Random search that thinks."""

    def ask(self, n):
        time.sleep(0.4)
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


def test_list_s_help_names_all_that_can_be_listed(tmp_path):
    from kernelwright.configs.catalogue import CATALOGUE

    told = kernelwright("list", "--help", cwd=tmp_path).stdout
    assert all(what in told for what in CATALOGUE)


def test_a_terminal_gets_a_live_panel(tmp_path):
    master, slave = pty.openpty()
    command = [sys.executable, "-P", "-m", "kernelwright", "run", "gemm_h200"]
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
    assert "gemm_h200" in text
    assert "win:" in text


def test_compare_claims_nothing_from_a_few_runs(tmp_path):
    arguments = ["compare", "gemm_model_evolution", "gemm_model_evolution", "--seeds", "2"]
    told = kernelwright(*arguments, cwd=tmp_path).stdout
    assert "nothing can be said" in told
    assert "fewer than 6 runs" in told


def campaign(folder, name="c.yaml", **change):
    base = {
        "name": "c",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "random"},
        "budget": {"trials": 8},
    }
    (folder / name).write_text(yaml.safe_dump(base | change, allow_unicode=True))
    return name


BAD_DRIVERS = {
    "raises.py": "class D:\n stopped = None\n def __init__(self, space, *, seed, batch): pass\n"
    " def ask(self, n): raise RuntimeError('boom')\n def tell(self, t): pass\n",
    "none.py": "class D:\n stopped = None\n def __init__(self, space, *, seed, batch): pass\n"
    " def ask(self, n): return None\n def tell(self, t): pass\n",
    "ints.py": "class D:\n stopped = None\n def __init__(self, space, *, seed, batch): pass\n"
    " def ask(self, n): return [1, 2]\n def tell(self, t): pass\n",
    "many.py": "from kernelwright.search.drivers.random import Random\n"
    "class D(Random):\n def ask(self, n): return super().ask(10 * n)\n",
    "leaves.py": "from kernelwright.search.drivers.random import Random\n"
    "class D(Random):\n def ask(self, n): raise SystemExit(0)\n",
    "tells.py": "from kernelwright.search.drivers.random import Random\n"
    "class D(Random):\n def tell(self, trials): raise KeyError('boom')\n",
}
BAD_FACTORIES = {
    "init.py": "class D:\n def __init__(self, space, *, seed, batch): raise RuntimeError('boom')\n",
    "exits.py": "import sys\nclass D:\n def __init__(self, space, *, seed, batch): sys.exit(0)\n",
    "syntax.py": "class D(\n",
    "imports.py": "import nothing_of_that_name\n",
    "leaves.py": "raise SystemExit(0)\n",
    "number.py": "D = 3\n",
    "no_tell.py": "class D:\n stopped = None\n def __init__(self, space, *, seed, batch): pass\n"
    " def ask(self, n): return []\n",
    "annotated.py": "class D:\n def __init__(self, space, *, seed, batch, x: 'No' = 1): pass\n",
}


@pytest.mark.parametrize("name", BAD_DRIVERS)
def test_a_driver_that_misbehaves_is_blamed(tmp_path, name):
    (tmp_path / name).write_text(BAD_DRIVERS[name])
    config = campaign(tmp_path, driver={"name": f"{name}:D"})
    result = kernelwright("run", config, "--json", cwd=tmp_path)
    assert result.returncode == 1
    assert "the driver failed: " in json.loads(result.stdout)["error"]["found"]
    assert "ask 1" in json.loads(result.stdout)["error"]["found"]


@pytest.mark.parametrize("name", BAD_FACTORIES)
def test_a_driver_that_cannot_be_made_is_refused(tmp_path, name):
    (tmp_path / name).write_text(BAD_FACTORIES[name])
    config = campaign(tmp_path, driver={"name": f"{name}:D"})
    result = kernelwright("run", config, "--json", cwd=tmp_path)
    assert result.returncode == 2
    error = json.loads(result.stdout)["error"]
    assert error["path"].startswith("driver")
    assert error["line"] > 0


NAMES = [
    "..foo.bar",
    ".foo:bar",
    "os.path",
    "math.pi",
    "builtins.dict",
    "a\0.py:X",
    "x" * 300 + ".py:X",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["driver", "problem", "target"])
def test_names_that_make_nothing_are_refused(tmp_path, key, name):
    config = campaign(tmp_path, **{key: {"name": name}})
    result = kernelwright("check", config, "--json", cwd=tmp_path)
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["path"].startswith(key)


def test_a_problem_that_exits_is_refused(tmp_path):
    config = campaign(tmp_path, problem={"name": "sys.exit"})
    assert kernelwright("check", config, cwd=tmp_path).returncode == 2


TEXTS = {
    "deep": "x: " + "[" * 3000,
    "huge number": "name: a\nseed: 0x" + "f" * 5000,
    "bad tag": "seed: !!bool abc",
    "bad timestamp": "seed: !!timestamp abc",
    "long scalar": "name: " + "1" * 400_000 + "x",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_texts_made_to_break_readers_are_refused(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    result = kernelwright("check", "c.yaml", "--json", cwd=tmp_path)
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["file"] == "c.yaml"


def test_usage_errors_keep_the_promise_of_json(tmp_path):
    for arguments in (
        ["run"],
        ["run", "gemm_h200", "--workers", "x"],
        ["show", "--bogus"],
        ["run", "--bogus"],
    ):
        result = kernelwright(*arguments, "--json", cwd=tmp_path)
        assert result.returncode == 2
        assert json.loads(result.stdout)["error"]["found"]


def test_folders_that_cannot_be_used_are_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "odd" / "run.sqlite").mkdir(parents=True)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.sqlite").write_bytes(b"SQLite format 3\0" + b"\1" * 5000)
    for out in ("file", "file/below", "odd", "damaged", "x" * 300):
        result = kernelwright("run", "gemm_h200", "--out", out, "--json", cwd=tmp_path)
        assert result.returncode == 2, out
        assert json.loads(result.stdout)["error"]["found"]


def test_text_that_the_terminal_cannot_show_is_escaped(tmp_path):
    command = [sys.executable, "-P", "-m", "kernelwright", "show", "ö ü"]
    environ = os.environ | {"PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, check=False)
    assert result.returncode == 2
    assert b"\\xf6" in result.stderr


@pytest.mark.parametrize(
    ("change", "status"),
    [({"error": "shared memory"}, "build_error"), ({"us": [9.0], "err": 0.5}, "wrong")],
)
def test_a_baseline_that_fails_is_refused(tmp_path, change, status):
    knobs = {"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3}
    rows = [{"m": 64, "n": 64, "k": 64, "gpu": "H200"}, knobs | {"group_m": 1, "us": [9.0] * 5}]
    rows.append(knobs | {"group_m": 8} | change)
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    place = {"problem": {"name": "gemm_gpu", "m": 64, "n": 64, "k": 64}}
    place["target"] = {"name": "recorded", "landscape": "l.jsonl"}
    result = kernelwright("run", campaign(tmp_path, **place), "--json", cwd=tmp_path)
    assert result.returncode == 2
    error = json.loads(result.stdout)["error"]
    assert error["path"] == "baseline"
    assert status in error["found"]


def test_an_override_is_named_wherever_it_hurts(tmp_path):
    for override, path in [
        ("budgt.trials=8", "budgt"),
        ("budget.trials=", "budget"),
        ("a.b.c=1", "a"),
    ]:
        result = kernelwright("check", "gemm_h200", "--set", override, "--json", cwd=tmp_path)
        error = json.loads(result.stdout)["error"]
        assert (error["file"], error["path"]) == (f"--set {override}", path)


def test_list_is_one_line_a_row_when_piped(tmp_path):
    lines = kernelwright("list", "configs", cwd=tmp_path).stdout.splitlines()
    assert len(lines) == 1 + len(shipped_configs())
    assert all(line == line.rstrip() for line in lines)
    assert "H200" in kernelwright("list", "landscapes", cwd=tmp_path).stdout
    assert "h100-lecture" in kernelwright("list", "devices", cwd=tmp_path).stdout


def test_a_plug_in_that_prints_does_not_spoil_the_json(tmp_path):
    text = "from kernelwright.search.drivers.random import Random\nprint('loud')\n"
    text += "class D(Random):\n def ask(self, n):\n  print('louder')\n  return super().ask(n)\n"
    (tmp_path / "loud.py").write_text(text)
    result = kernelwright(
        "run", campaign(tmp_path, driver={"name": "loud.py:D"}), "--json", cwd=tmp_path
    )
    assert json.loads(result.stdout)["trials"] == 8
    assert "louder" in result.stderr


TARGETS = {
    "none": "return [None for _ in requests]",
    "two": "return super().evaluate(requests) * 2",
    "exits": "raise SystemExit(0)",
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_that_misbehaves_is_refused(tmp_path, name):
    text = "from kernelwright.evaluators.gpu_model import GpuModel\n"
    text += f"class T(GpuModel):\n def evaluate(self, requests): {TARGETS[name]}\n"
    (tmp_path / "t.py").write_text(text)
    result = kernelwright(
        "run", campaign(tmp_path, target={"name": "t.py:T"}), "--json", cwd=tmp_path
    )
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["path"] == "target"


def test_absurd_numbers_are_answered(tmp_path):
    config = campaign(tmp_path, budget={"seconds": 1e308})
    assert (
        json.loads(kernelwright("check", config, "--json", cwd=tmp_path).stdout)["candidates"]
        == 3744
    )
    for override in ("stop=!!map nonsense", "hashes=!!map x"):
        assert kernelwright("check", config, "--set", override, cwd=tmp_path).returncode == 2


def test_a_driver_s_options_are_listed_with_ranges_and_descriptions():
    from kernelwright.configs.catalogue import OPTIONED, catalogue, options_of, words

    found = {row["name"]: row for row in options_of("drivers", "llm")}
    assert found["history"]["doc"]
    assert words(found["history"]["value"]) == "a whole number from 1 to 100"
    assert words(found["edits"]["value"]) == "whole, search_replace, either"
    assert "seed" not in found
    for what in OPTIONED:
        for row in catalogue(what):
            assert all(words(option["value"]) for option in options_of(what, row["name"]))
