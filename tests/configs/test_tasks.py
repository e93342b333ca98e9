"""Campaign files with tasks: read, checked, run, killed, shown."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from crash_child import tables

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config, read_document, shipped_configs
from kernelwright.configs.scoring import score
from kernelwright.configs.tables import rows_of
from kernelwright.configs.tasks import FAR, read_tasks
from kernelwright.configs.winner import WinnerError, export
from kernelwright.display.tasks import print_tasks
from kernelwright.page import Page
from kernelwright.search.store import SqliteStore, StoreError

CHILD = Path(__file__).resolve().parents[1] / "crash_child.py"


def campaign(**changes):
    small = yaml.safe_load(shipped_configs()["serving_small"].read_text())
    return small | {"budget": {"trials": 48}, "seed": 3} | changes


def read(config):
    return read_tasks(*read_document(config))


def test_a_product_is_every_combination_its_last_factor_fastest():
    found = read(campaign())
    assert [(m.name, m.weight) for m in found.members] == [
        ("out-decode-16", 950),
        ("out-prefill-4096", 50),
        ("up-decode-16", 950),
        ("up-prefill-4096", 50),
        ("down-decode-16", 950),
        ("down-prefill-4096", 50),
    ]
    problem = found.members[3].built.resolved["problem"]
    assert {k: problem[k] for k in "mnk"} == {"m": 4096, "n": 14336, "k": 4096}
    assert found.members[0].place == (12.0, 4.0, 12.0)


def test_listed_tasks_come_first_and_weights_multiply():
    tasks = {
        "listed": [{"name": "one", "problem": {"m": 8}}],
        "product": [{"a": {"weight": 2}, "b": {"weight": 3}}, {"c": {"weight": 5}}],
    }
    found = read(campaign(tasks=tasks))
    named = [(m.name, m.weight) for m in found.members]
    assert named == [("one", 1), ("a-c", 10), ("b-c", 15)]


def test_the_lecture_has_96_and_they_share_what_is_equal():
    found = read("serving_96")
    assert len({m.name for m in found.members}) == 96
    assert len({id(m.built.space) for m in found.members}) == 1
    assert len({m.built.plan.seed for m in found.members}) == 96
    assert sum(m.weight for m in found.members) == 4 * 1000
    assert found.file.budget.trials <= 96 * 48 / 4
    extents = {tuple(m.built.problem.workloads[0].fixed.values()) for m in found.members}
    assert {
        (4096, 4096, 4096),
        (4096, 14336, 4096),
        (4096, 4096, 14336),
        (16, 4096, 4096),
    } <= extents


def test_tasks_of_other_problems_are_far_apart():
    mine = {"name": "matmul", "m": 512, "n": 512, "k": 512}
    tasks = {"listed": [{"name": "a"}, {"name": "b", "problem": {"m": 8192}}]}
    here = read(campaign(tasks=tasks)).members
    assert here[1].place[1] - here[0].place[1] == 1.0
    tasks = {"listed": [{"name": "a"}, {"name": "b", "problem": {"dtype": "float64"}}]}
    cpu = {
        "target": {"name": "cpu-model"},
        "space": {"kind": "schedule"},
        "driver": {"name": "random"},
    }
    other = read(campaign(problem=mine, tasks=tasks, **cpu)).members
    assert abs(other[0].place[-1] - other[1].place[-1]) == FAR


def test_a_run_has_a_folder_a_task_and_says_what_it_is_worth(tmp_path):
    summary = api.run(campaign(), tmp_path / "run")
    assert summary["trials"] == sum(row["trials"] for row in summary["tasks"]) == 48
    assert summary["finished"]
    assert summary["unsolved"] == []
    assert all(row["batches"] >= 1 for row in summary["tasks"])
    assert sum(row["share"] for row in summary["tasks"]) == pytest.approx(1)
    total = summary["total"]
    assert total["speedup"] == pytest.approx(total["baseline_ns"] / total["time_ns"])
    assert total["speedup"] > 1
    assert api.show(tmp_path / "run") == summary
    row = summary["tasks"][2]
    one = api.show(tmp_path / "run" / row["name"])
    assert (one["best"], one["trials"]) == (row["best"], row["trials"])
    assert one["name"] == "serving_small.up-decode-16"
    winners = json.loads((tmp_path / "run" / "best.json").read_text())
    assert winners == {r["name"]: r["best"] for r in summary["tasks"]}
    again = json.loads((tmp_path / "run" / row["name"] / "best.json").read_text())
    assert again == row["best"]


def test_a_model_is_summed_over_tasks(tmp_path, capsys):
    backend = {"name": "mock", "faults": "frontier", "usd_per_million": 3}
    asked = {"driver": {"name": "llm"}, "agents": {"backend": backend}}
    summary = api.run(campaign(**asked), tmp_path / "run")
    ones = [api.show(tmp_path / "run" / row["name"]) for row in summary["tasks"]]
    for key in ("tokens", "usd"):
        assert summary[key] > 0
        assert summary[key] == pytest.approx(sum(one[key] for one in ones))
    cells = Counter()
    for each in filter(None, (one["simulated"] for one in ones)):
        cells.update({(r["injected"], r["filed_as"]): r["count"] for r in each["rows"]})
    found = summary["simulated"]
    assert {(r["injected"], r["filed_as"]): r["count"] for r in found["rows"]} == cells
    assert all(row["sound"] for row in found["rows"])
    print_tasks(Page(), summary)
    shown = capsys.readouterr().out
    assert "faults that the simulated model injected" in shown
    assert f"model: {summary['calls']} calls, {summary['tokens']:,} tokens" in shown


def test_the_resolved_campaign_runs_again_and_is_the_same(tmp_path):
    first = api.run(campaign(), tmp_path / "a")
    second = api.run(tmp_path / "a" / "config.yaml", tmp_path / "b")
    assert everything(tmp_path / "a") == everything(tmp_path / "b")
    assert api.run(tmp_path / "b" / "config.yaml", tmp_path / "a") == first
    assert first["tasks"] == second["tasks"]


def everything(folder):
    stores = sorted(folder.glob("**/run.sqlite"))
    return [(path.parent.relative_to(folder), tables(path.parent)) for path in stores]


def test_workers_change_nothing(tmp_path):
    api.run(campaign(), tmp_path / "a")
    api.run(campaign(), tmp_path / "b", workers=3)
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


@pytest.mark.parametrize(
    ("mode", "at"), [("judge", 5), ("commit", 7), ("after", 8), ("confirm", 2)]
)
def test_a_killed_campaign_ends_bit_equal(tmp_path, mode, at):
    settings = ["budget.trials=48", "judge.confirm.process_pairs=2"]
    command = [
        sys.executable,
        "-P",
        str(CHILD),
        "serving_small",
        str(tmp_path / "a"),
        mode,
        str(at),
    ]
    killed = subprocess.run([*command, *settings], check=False)
    assert killed.returncode == -signal.SIGKILL
    api.run("serving_small", tmp_path / "a", overrides=settings)
    api.run("serving_small", tmp_path / "b", overrides=settings)
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


def test_a_larger_budget_goes_on_as_if_there_had_been_no_stop(tmp_path):
    api.run(campaign(budget={"trials": 30}), tmp_path / "a")
    api.run(campaign(), tmp_path / "a")
    api.run(campaign(), tmp_path / "b")
    for (name, left), (_, right) in zip(
        everything(tmp_path / "a"), everything(tmp_path / "b"), strict=True
    ):
        assert left[0] == right[0], name
        turns = [[row for row in side[2] if row[1] == "turn"] for side in (left, right)]
        assert [row[2:] for row in turns[0]] == [row[2:] for row in turns[1]]


def test_another_campaign_in_the_folder_is_refused_and_named(tmp_path):
    api.run(campaign(), tmp_path / "run")
    for changes, path in [
        ({"budget": {"trials": 47}}, "budget.trials"),
        ({"seed": 4}, "seed"),
        ({"batch": 5}, "batch"),
    ]:
        with pytest.raises(ConfigError) as caught:
            api.run(campaign(**changes), tmp_path / "run")
        assert caught.value.path == path
    other = campaign()
    other["tasks"]["product"][1]["decode-16"]["weight"] = 951
    with pytest.raises(ConfigError) as caught:
        api.run(other, tmp_path / "run")
    assert caught.value.path == "tasks.listed.down-decode-16.weight"
    assert api.run(campaign(), tmp_path / "run", fresh=True)["out"] == str(tmp_path / "run-2")


def test_the_folder_of_a_task_is_no_campaign_to_run(tmp_path):
    api.run(campaign(), tmp_path / "run")
    folder = tmp_path / "run" / "out-decode-16"
    with pytest.raises(ConfigError) as caught:
        api.run(folder / "config.yaml", folder)
    assert caught.value.path == "task.of"
    # Elsewhere it is a campaign like any other.
    assert (
        api.run(folder / "config.yaml", tmp_path / "x", overrides=["budget.trials=4"])["trials"]
        == 4
    )
    assert api.judged_again(folder, 0)["now"]["status"] in ("ok", "win")


def test_other_commands_say_what_they_take(tmp_path):
    with pytest.raises(ConfigError, match="a campaign of one task"):
        read_config("serving_small")
    api.run(campaign(), tmp_path / "run")
    with pytest.raises(WinnerError, match="name the folder of one"):
        export(tmp_path / "run")


# A plug-in's problem, of which one variant has no configuration that can be launched.
PLUGIN = """
from dataclasses import replace
from kernelwright.env.problems.gemm_gpu import gemm_gpu

def make(*, m: int = 256, hopeless: bool = False):
    problem = gemm_gpu(m=m, n=256, k=256)
    if not hopeless:
        return problem
    only = {"bm": (256,), "bn": (256,), "warps": (1,)}
    knobs = tuple(replace(k, values=only.get(k.name, k.values)) for k in problem.knobs)
    return replace(problem, knobs=knobs)
"""


def hopeless(tmp_path, count):
    (tmp_path / "mine.py").write_text(PLUGIN)
    listed = [{"name": f"t{i}", "problem": {"m": 128 << i}} for i in range(3)]
    for i in range(count):
        listed[i]["problem"]["hopeless"] = True
    path = tmp_path / "c.yaml"
    tasks = {"listed": listed, "share": True}
    path.write_text(
        yaml.safe_dump(
            campaign(problem={"name": "mine.py:make"}, tasks=tasks, budget={"trials": 36})
        )
    )
    return path


def test_each_task_has_its_part_of_the_tuning_cache(tmp_path):
    config = campaign(cache={"folder": str(tmp_path / "known")})
    first = api.run(config, tmp_path / "a")
    second = api.run(config, tmp_path / "b")
    assert (first["served"], second["served"]) == (0, 48)
    assert [row["best"] for row in first["tasks"]] == [row["best"] for row in second["tasks"]]
    assert [row["trials"] for row in second["tasks"]] == [row["served"] for row in second["tasks"]]
    # One more task costs its own measurements alone.
    more = {"name": "new", "problem": {"m": 64}}
    third = api.run(
        config | {"tasks": config["tasks"] | {"listed": [more]}, "budget": {"trials": 56}},
        tmp_path / "c",
    )
    rows = {row["name"]: row for row in third["tasks"]}
    assert rows["new"]["served"] == 0
    assert third["served"] >= 24  # each task's first batch at least


@pytest.mark.parametrize(("mode", "at"), [("judge", 9), ("commit", 7), ("confirm", 2)])
def test_a_killed_campaign_with_a_cache_ends_bit_equal(tmp_path, mode, at):
    path, only_read = tmp_path / "c.yaml", "cache.write=false"
    path.write_text(yaml.safe_dump(campaign(cache={"folder": "known"})))
    api.run(path, tmp_path / "first", overrides=["budget.trials=24"])
    command = [sys.executable, "-P", str(CHILD), str(path), str(tmp_path / "a"), mode, str(at)]
    killed = subprocess.run([*command, only_read], check=False)
    assert killed.returncode == -signal.SIGKILL
    api.run(path, tmp_path / "a", overrides=[only_read])
    assert api.run(path, tmp_path / "b", overrides=[only_read])["served"] >= 24
    assert everything(tmp_path / "a") == everything(tmp_path / "b")


def test_a_table_has_a_row_for_each_task(tmp_path):
    summary = api.run(campaign(), tmp_path / "runs" / "run")
    for folder in (tmp_path / "runs" / "run", tmp_path / "runs"):
        rows = rows_of([folder])
        named = {f"serving_small.{row['name']}" for row in summary["tasks"]}
        assert {row["run"] for row in rows} == named


def test_scores_are_of_each_task(tmp_path):
    folder = tmp_path / "run"
    summary = api.run(campaign(), folder)
    scores = score([folder])
    assert [row["run"] for row in scores["runs"]] == [
        str(folder / row["name"]) for row in summary["tasks"]
    ]
    assert [row["claim"] for row in scores["runs"]] == [row["claim"] for row in summary["tasks"]]
    assert scores["confirmed"]["total"] == 6
    assert score([folder / "run.sqlite"], problems=7)["missing"] == 1
    with pytest.raises(ConfigError, match="expected every run once"):
        score([folder, folder / "up-decode-16"])
    with pytest.raises(ConfigError, match="at least the 6 runs"):
        score([folder], problems=5)


def test_tasks_that_had_not_begun_when_the_run_was_stopped_are_shown_as_such(tmp_path):
    folder = tmp_path / "runs" / "run"
    summary = api.run(campaign(), folder)
    first, second, third, *rest = (row["name"] for row in summary["tasks"])
    # As a process leaves them that is killed between the steps of its start.
    for name in (first, second, third):
        for path in (folder / name).iterdir():
            path.unlink()
    (folder / first / "run.sqlite").touch()
    SqliteStore(folder / second / "run.sqlite").close()
    (folder / third).rmdir()
    shown = api.show(folder)
    assert shown["unsolved"] == [first, second, third]
    assert [row["trials"] for row in shown["tasks"][:3]] == [0, 0, 0]
    for runs in (folder, tmp_path / "runs"):
        assert {row["run"] for row in rows_of([runs])} == {f"serving_small.{name}" for name in rest}
    scores = score([folder])
    assert [row["status"] for row in scores["runs"][:3]] == [None] * 3
    assert scores["confirmed"]["total"] == 6
    assert scores["notes"] == [
        f"not finished: {', '.join(str(folder / name) for name in (first, second, third))}"
    ]
    # Named alone it says what it is; beside others it is none.
    for name in (first, second):
        with pytest.raises(StoreError, match="stopped before it recorded anything"):
            api.show(folder / name)
        with pytest.raises(StoreError, match="stopped before it recorded anything"):
            score([folder / name])


def test_a_task_without_a_valid_config_starves_nobody(tmp_path):
    summary = api.run(hopeless(tmp_path, 1), tmp_path / "run")
    rows = summary["tasks"]
    assert summary["unsolved"] == ["t0"]
    assert "no configuration satisfies the constraints" in rows[0]["reason"]
    assert (rows[0]["trials"], summary["trials"]) == (0, 36)
    assert all(row["best"]["status"] in ("win", "tie") for row in rows[1:])
    assert api.show(tmp_path / "run") == summary
    plan = api.check(tmp_path / "c.yaml")
    assert [task["valid"] for task in plan["tasks"]] == [0, 3744, 3744]


def test_where_no_task_has_a_valid_config_the_campaign_is_refused(tmp_path):
    with pytest.raises(ConfigError) as caught:
        api.check(hopeless(tmp_path, 3))
    assert caught.value.path == "tasks"
    assert "no configuration satisfies" in caught.value.found


def test_recorded_landscapes_are_tasks_too(tmp_path):
    shapes = {"16x14336x4096": (16, 14336, 4096), "4096x4096x4096": (4096, 4096, 4096)}
    names = {key: f"h200_{key}" for key in shapes}
    recordings = {
        key: yaml.safe_load(shipped_configs()[name].read_text())["target"]["landscape"]
        for key, name in names.items()
    }
    listed = [
        {
            "name": key,
            "problem": dict(zip("mnk", shape, strict=True)),
            "target": {"landscape": recordings[key]},
        }
        for key, shape in shapes.items()
    ]
    config = campaign(tasks={"listed": listed}, target={"name": "recorded"}, judge={})
    summary = api.run(config, tmp_path / "run")
    assert [row["best"]["evidence"] for row in summary["tasks"]] == ["recorded"] * 2
    assert len(yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["hashes"]) == 3
    assert api.run(tmp_path / "run" / "config.yaml", tmp_path / "run") == summary


def test_the_command_line_prints_a_line_a_task(tmp_path):
    def kernelwright(*arguments):
        command = [sys.executable, "-P", "-m", "kernelwright", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    ran = kernelwright("run", "serving_small", "--set", "budget.trials=24")
    assert ran.returncode == 0, ran.stderr
    assert "weighted total: " in ran.stdout
    shown = kernelwright("show", "runs/serving_small").stdout
    assert shown == ran.stdout[ran.stdout.index("task  ") :]
    checked = kernelwright("check", "serving_small").stdout
    assert "6 tasks of gemm_gpu@1 on gpu-model (modelled)" in checked
    failed = kernelwright("run", str(hopeless(tmp_path, 1)), "--json", "--out", "h")
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["unsolved"] == ["t0"]
