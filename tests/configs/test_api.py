from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from dataclasses import replace

import pytest
import yaml

import kernelwright
from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.resolve import UnknownNameError, resolve
from kernelwright.env.compiler.machine.device import DEVICES_DIR
from kernelwright.env.types import Stage
from kernelwright.search.campaign import ReplayError
from kernelwright.search.store import SqliteStore, StoreError

SMALL = {
    "name": "small",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "evolution"},
    "budget": {"trials": 24},
}
PLUGIN = '''
from kernelwright.search.drivers.random import Random
from kernelwright.search.store import SqliteStore, StoreError
from kernelwright.env.problems.gemm_gpu import gemm_gpu


class Mine(Random):
    """Random search under another name."""

    def __init__(self, space, *, seed, batch, luck: int = 3):
        super().__init__(space, seed=seed + luck, batch=batch)


def make(*, size: int = 512):
    return gemm_gpu(m=size, n=size, k=size)
'''


def times(folder):
    """Every wall time in a run's store."""
    with sqlite3.connect(folder / "run.sqlite") as db:
        rows = [
            db.execute(f"SELECT at FROM {t}").fetchall() for t in ("trials", "verdicts", "events")
        ]
        rows.append(db.execute("SELECT * FROM sittings").fetchall())
    db.close()
    return rows


def test_without_noise_the_claim_is_a_point(tmp_path):
    best = kernelwright.run(SMALL, tmp_path / "r")["best"]
    assert best["ci_low"] == best["speedup"] == best["ci_high"]
    assert best["evidence"] == "modelled"


def test_a_finished_run_prints_its_summary_and_measures_nothing(tmp_path):
    first = api.run(SMALL, tmp_path / "r")
    before = times(tmp_path / "r")
    seen = []
    assert api.run(SMALL, tmp_path / "r", observe=seen.append) == first
    assert seen == []
    assert times(tmp_path / "r") == before


def test_a_larger_budget_extends_and_a_smaller_one_is_refused(tmp_path):
    api.run(SMALL, tmp_path / "r")
    longer = api.run(SMALL | {"budget": {"trials": 40}}, tmp_path / "r")
    assert longer["trials"] == 40
    assert longer["finished"]
    with pytest.raises(ConfigError) as caught:
        api.run(SMALL, tmp_path / "r")
    assert caught.value.path == "budget.trials"
    fresh = api.run(SMALL | {"budget": {"trials": 40}}, tmp_path / "whole")
    # It has claimed before, so its interval is stricter.
    assert fresh["best"].pop("level") < longer["best"].pop("level") < 1
    assert fresh["best"] == longer["best"]


def test_dropping_a_limit_extends_and_adding_one_is_refused(tmp_path):
    both = SMALL | {"budget": {"trials": 24, "seconds": 1000.0}}
    api.run(both, tmp_path / "r")
    assert api.run(SMALL, tmp_path / "r")["trials"] == 24
    with pytest.raises(ConfigError, match=r"budget\.seconds"):
        api.run(both, tmp_path / "r")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"seed": 3}, "seed"),
        ({"batch": 4}, "batch"),
        ({"driver": {"name": "evolution", "population": 4}}, "driver.population"),
        ({"driver": {"name": "random"}}, "driver.crossover"),
        ({"target": {"name": "gpu-model", "noise": {"drift": 0.1}}}, "target.noise.drift"),
        ({"baseline": "default"}, "baseline"),
        ({"stop": {"plateau": 7}}, "stop.plateau"),
    ],
)
def test_another_campaign_in_the_same_folder_is_refused_by_key(tmp_path, change, key):
    api.run(SMALL, tmp_path / "r")
    with pytest.raises(ConfigError) as caught:
        api.run(SMALL | change, tmp_path / "r")
    assert caught.value.path == key
    assert "--fresh" in str(caught.value)


def test_workers_are_not_part_of_a_campaign(tmp_path):
    first = api.run(SMALL, tmp_path / "r", workers=1)
    assert api.run(SMALL | {"workers": 4}, tmp_path / "r") == first


def test_fresh_takes_the_next_name(tmp_path):
    folders = [api.run(SMALL, tmp_path / "r", fresh=True)["out"] for _ in range(3)]
    assert [f.rpartition("/")[2] for f in folders] == ["r", "r-2", "r-3"]


def test_the_resolved_config_can_be_run_again_and_guards_its_files(tmp_path):
    landscape = tmp_path / "mine.jsonl"
    rows = [{"m": 64, "n": 64, "k": 64, "gpu": "H200"}]
    knobs = {"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 3}
    rows += [knobs | {"group_m": g, "us": [8.0 - g / 10]} for g in (1, 4, 8)]
    landscape.write_text("\n".join(map(json.dumps, rows)) + "\n")
    config = tmp_path / "campaign.yaml"
    problem = {"name": "gemm_gpu", "m": 64, "n": 64, "k": 64}
    target = {"name": "recorded", "landscape": "mine.jsonl"}
    config.write_text(yaml.safe_dump(SMALL | {"problem": problem, "target": target}))
    first = api.run(config, tmp_path / "r")
    assert first["trials"] == 3
    assert first["stop"]["rule"] == "driver"
    assert first["library_ratio"] is None
    resolved = tmp_path / "r" / "config.yaml"
    assert yaml.safe_load(resolved.read_text())["target"]["landscape"] == str(landscape)
    assert api.run(resolved, tmp_path / "again")["best"] == first["best"]
    landscape.write_text(landscape.read_text().replace("7.9", "7.8"))
    with pytest.raises(ConfigError, match="hashes"):
        api.run(resolved, tmp_path / "third")
    with pytest.raises(ConfigError, match="hashes"):
        api.run(config, tmp_path / "r")


def test_a_lost_config_yaml_is_written_again(tmp_path):
    api.run(SMALL, tmp_path / "r")
    (tmp_path / "r" / "config.yaml").unlink()
    shutil.rmtree(tmp_path / "r" / "best.json", ignore_errors=True)
    api.run(SMALL, tmp_path / "r")
    assert (tmp_path / "r" / "config.yaml").exists()


def test_one_s_own_driver_and_problem_plug_in_by_file(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    config = tmp_path / "campaign.yaml"
    choice = {"driver": {"name": "mine.py:Mine", "luck": 5}, "problem": {"name": "mine.py:make"}}
    config.write_text(yaml.safe_dump(SMALL | choice))
    summary = api.run(config, tmp_path / "r")
    assert summary["trials"] == 24
    built = api.plan_of(config)
    assert built.problem.workloads[0].label == "512x512x512"
    assert str(tmp_path / "mine.py") in built.resolved["hashes"]
    with pytest.raises(ConfigError, match="did you mean 'luck'"):
        api.plan_of(config, ["driver.lukc=5"])
    (tmp_path / "mine.py").write_text(PLUGIN.replace("512", "256"))
    assert api.plan_of(config).problem.workloads[0].label == "256x256x256"


def test_a_driver_by_dotted_path():
    campaign = SMALL | {"driver": {"name": "kernelwright.search.drivers.grid:Grid"}}
    assert type(api.plan_of(campaign).plan.make_driver(None)).__name__ == "Grid"
    dotted = SMALL | {"driver": {"name": "kernelwright.search.drivers.grid.Grid"}}
    assert type(api.plan_of(dotted).plan.make_driver(None)).__name__ == "Grid"


def test_a_baseline_by_key(tmp_path):
    key = api.run(SMALL, tmp_path / "r")["best"]["key"]
    again = api.run(SMALL | {"baseline": key}, tmp_path / "s")
    assert again["baseline"]["key"] == key
    assert again["best"]["speedup"] == 1


def test_the_library_as_baseline(tmp_path):
    target = {"name": "recorded", "landscape": "h200_gemm_4096x4096x4096"}
    summary = api.run(SMALL | {"target": target, "baseline": "library"}, tmp_path / "r")
    assert summary["baseline"]["name"] == "library"
    assert summary["library_ratio"] == summary["best"]["speedup"]


def test_check_says_what_the_budget_buys():
    plan = api.check(SMALL)
    size = {"combinations": 6000, "valid": 3744, "kind": "knobs", "finite": True}
    assert plan["space"] == size
    assert plan["candidates"] == 24
    assert api.check(SMALL | {"budget": {"trials": 9999}})["candidates"] == 3744


def test_check_and_run_say_what_the_speed_of_light_is(tmp_path):
    plan = api.check(SMALL | {"stop": {"target": {"us": 160.0}}})
    assert plan["stop"] == {"target": {"us": 160.0}}
    (bound,) = plan["bounds"]
    assert bound["limit"] == "compute"
    summary = api.run(SMALL, tmp_path / "r")
    assert summary["speed_of_light"]["bounds"] == plan["bounds"]
    assert 0.3 < summary["speed_of_light"]["share"] < plan["reach"] * 1.05
    assert api.show(tmp_path / "r")["speed_of_light"] == summary["speed_of_light"]


def test_check_estimates_what_seconds_buy():
    few = api.check(SMALL | {"budget": {"seconds": 1e-6}})["candidates"]
    many = api.check(SMALL | {"budget": {"seconds": 1e6}})["candidates"]
    assert (few, many) == (0, 3744)
    assert api.check(SMALL)["missing"] == []


def test_a_missing_file_lists_the_shipped_campaigns():
    with pytest.raises(ConfigError, match="did you mean 'quickstart'"):
        read_config("quikstart")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_config(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    "name",
    ["nothing", "kernelwright.nothing:X", "kernelwright.search.drivers.grid:Nothing", ".", ":"],
)
def test_unknown_names_list_the_known(name):
    with pytest.raises(UnknownNameError, match="one of a"):
        resolve({"a": "x:y"}, name)


def test_a_file_without_a_name_in_it_says_what_is_missing():
    with pytest.raises(UnknownNameError) as refused:
        resolve({"a": "x:y"}, "mine.py")
    assert refused.value.near == "mine.py:NAME"


STOPS = '''
from kernelwright.search.drivers.random import Random
import pathlib


class Fickle(Random):
    """Another search every time it is made."""

    def __init__(self, space, *, seed, batch):
        counter = pathlib.Path(__file__).with_suffix(".count")
        calls = int(counter.read_text()) if counter.exists() else 0
        counter.write_text(str(calls + 1))
        super().__init__(space, seed=seed + calls, batch=batch)
'''


def test_an_extension_that_fails_leaves_the_run_as_it_was(tmp_path):
    (tmp_path / "fickle.py").write_text(STOPS)
    config = tmp_path / "campaign.yaml"
    config.write_text(yaml.safe_dump(SMALL | {"driver": {"name": "fickle.py:Fickle"}}))
    first = api.run(config, tmp_path / "r")
    with pytest.raises(ReplayError):
        api.run(config, tmp_path / "r", overrides=["budget.trials=40"])
    assert api.show(tmp_path / "r") == first
    assert api.run(config, tmp_path / "r") == first


def test_what_the_caller_gave_is_not_changed():
    mine = {**SMALL, "budget": {"trials": 24}}
    api.plan_of(mine, ["budget.trials=4", "seed=3"])
    assert mine == SMALL


def test_wrong_arguments_are_told(tmp_path):
    with pytest.raises(TypeError, match="overrides: expected a list"):
        api.plan_of(SMALL, "seed=3")
    with pytest.raises(TypeError, match="config: expected a path"):
        api.plan_of(None)
    with pytest.raises(ConfigError, match="1 to 256"):
        api.run(SMALL, tmp_path / "r", workers=9999)


def test_an_edited_device_table_is_read_again(tmp_path):
    table = tmp_path / "dev.yaml"
    table.write_text((DEVICES_DIR / "h100-lecture.yaml").read_text())
    campaign = SMALL | {"target": {"name": "gpu-model", "device": str(table)}}
    assert api.plan_of(campaign).target.device.clock_hz == 1.83e9
    table.write_text(table.read_text().replace("1.83e+9", "1.5e+9"))
    assert api.plan_of(campaign).target.device.clock_hz == 1.5e9


def test_a_file_beside_the_campaign_does_not_shadow_a_shipped_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h100-lecture").write_text("not a table")
    campaign = SMALL | {"target": {"name": "gpu-model", "device": "h100-lecture"}}
    assert api.plan_of(campaign).target.device.sms == 132


def test_a_recording_depends_on_its_device_table_too():
    target = {"name": "recorded", "landscape": "h200_gemm_4096x4096x4096"}
    hashes = api.plan_of(SMALL | {"target": target}).resolved["hashes"]
    assert set(hashes) == {"h200", "h200_gemm_4096x4096x4096"}


def test_a_driver_file_may_import_its_neighbour(tmp_path):
    (tmp_path / "near.py").write_text("from kernelwright.search.drivers.grid import Grid\n")
    (tmp_path / "mine.py").write_text("import near\nMine = near.Grid\n")
    config = tmp_path / "campaign.yaml"
    config.write_text(yaml.safe_dump(SMALL | {"driver": {"name": "mine.py:Mine"}}))
    assert api.check(config)["driver"].endswith("mine.py:Mine")


def test_options_need_not_be_keyword_only(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from kernelwright.search.drivers.random import Random\n"
        "class Mine(Random):\n"
        "    def __init__(self, space, seed, batch, skip=0):\n"
        "        super().__init__(space, seed=seed + skip, batch=batch)\n"
    )
    config = tmp_path / "campaign.yaml"
    config.write_text(yaml.safe_dump(SMALL | {"driver": {"name": "mine.py:Mine", "skip": 2}}))
    api.check(config)
    with pytest.raises(ConfigError, match="expected one of the keys skip, found 'skp'"):
        api.plan_of(config, ["driver.skp=3"])
    with pytest.raises(ConfigError, match="expected no options, found 'skip'"):
        api.plan_of(SMALL | {"driver": {"name": "random", "skip": 3}})


def test_the_time_of_a_confirmation_is_measured_not_guessed(tmp_path):
    confirm = {"finalists": 20, "process_pairs": 200, "pairs": 50}
    campaign = SMALL | {"judge": {"confirm": confirm}, "budget": {"trials": 200, "seconds": 60.0}}
    summary = api.run(campaign, tmp_path / "r")
    assert (summary["trials"], summary["stop"]["rule"]) == (200, "trials")


def neighbours(folder, kind):
    folder.mkdir()
    (folder / "helper.py").write_text(
        f"from kernelwright.search.drivers.{kind.lower()} import {kind}\nBase = {kind}\n"
    )
    (folder / "d.py").write_text("import helper\n\n\nclass D(helper.Base):\n    pass\n")
    config = folder / "c.yaml"
    config.write_text(yaml.safe_dump(SMALL | {"driver": {"name": "d.py:D"}}))
    return config


def test_neighbours_of_the_same_name_are_not_mixed_up(tmp_path):
    drivers = [
        api.plan_of(neighbours(tmp_path / kind, kind)).plan.make_driver(None)
        for kind in ("Grid", "Random")
    ]
    assert [type(d).__mro__[1].__name__ for d in drivers] == ["Grid", "Random"]
    assert "helper" not in sys.modules


def test_an_edited_neighbour_makes_another_campaign(tmp_path):
    config = neighbours(tmp_path / "a", "Grid")
    assert str(tmp_path / "a" / "helper.py") in api.plan_of(config).resolved["hashes"]
    api.run(config, tmp_path / "r")
    (tmp_path / "a" / "helper.py").write_text(
        "from kernelwright.search.drivers.random import Random as Base\n"
    )
    with pytest.raises(ConfigError, match=r"hashes\..*helper"):
        api.run(config, tmp_path / "r")


TYPED = '''
import enum
from kernelwright.search.drivers.random import Random


class Mood(enum.Enum):
    CALM = "calm"
    WILD = "wild"


class Typed(Random):
    """Random search with options that YAML has no words for."""

    def __init__(self, space, *, seed, batch, w: tuple[float, float] = (1.0, 2.0),
                 mood: Mood = Mood.CALM, missing: float = float("nan")):
        assert isinstance(w, tuple)
        super().__init__(space, seed=seed, batch=batch)
'''


def test_options_of_richer_types_can_be_given_and_run_again(tmp_path):
    (tmp_path / "t.py").write_text(TYPED)
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump(SMALL | {"driver": {"name": "t.py:Typed", "mood": "wild"}}))
    first = api.run(config, tmp_path / "r")
    assert api.run(config, tmp_path / "r") == first
    assert api.run(tmp_path / "r" / "config.yaml", tmp_path / "r") == first
    with pytest.raises(ConfigError, match=r"driver\.mood"):
        api.plan_of(config, ["driver.mood=sad"])


@pytest.mark.parametrize(
    "body",
    [
        "class Odd: pass\ndef D(space, *, seed, batch, x: Odd = None): pass\n",
        "def D(space, *, seed, batch, x: '1 +' = None): pass\n",
        "def D(space, *, seed, batch, x=object()): pass\n",
    ],
)
def test_options_that_cannot_be_written_down_are_refused(tmp_path, body):
    (tmp_path / "t.py").write_text(body)
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump(SMALL | {"driver": {"name": "t.py:D"}}))
    with pytest.raises(ConfigError, match=r"driver\.name"):
        api.plan_of(config)


def test_a_baseline_must_pass_in_all_its_samples(tmp_path):
    knobs = {"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3}
    rows = [{"m": 4096, "n": 4096, "k": 4096, "gpu": "H200"}]
    rows += [
        knobs | {"group_m": 8, "us": [300, 300, 300, 50, 300]},
        knobs | {"group_m": 1, "us": [300]},
    ]
    (tmp_path / "l.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    target = {"name": "recorded", "landscape": str(tmp_path / "l.jsonl")}
    for seed in range(5):
        with pytest.raises(ConfigError, match="a baseline that passes"):
            api.plan_of(SMALL | {"target": target, "seed": seed})


def test_fresh_in_the_folder_itself(tmp_path, monkeypatch):
    api.run(SMALL, tmp_path / "r")
    monkeypatch.chdir(tmp_path / "r")
    assert api.run(SMALL, ".", fresh=True)["out"] == str(tmp_path / "r-2")


def test_a_comparison_counts_what_a_stopped_run_had(tmp_path):
    from kernelwright.configs.comparison import compare_configs

    paths = []
    for name in ("random", "grid"):
        path = tmp_path / f"{name}.yaml"
        change = {"driver": {"name": name}, "budget": {"trials": 500}, "stop": {"plateau": 5}}
        path.write_text(yaml.safe_dump(SMALL | change))
        paths.append(str(path))
    (pair,) = compare_configs([*paths], seeds=6)["summary"]["pairs"]
    assert "nothing can be said" in pair["says"]
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(SMALL | {"budget": {"trials": 500}}))
    with pytest.raises(ConfigError, match="stop"):
        compare_configs([paths[0], str(other)], seeds=6)


ON_CPU = {
    "name": "cpu",
    "problem": {"name": "matmul", "m": 8, "n": 8, "k": 8},
    "space": {"kind": "schedule"},
    "target": {"name": "cpu", "flags": ["-O1"]},
    "driver": {"name": "random"},
    "judge": {"screen": {"pairs": 1}, "confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1}},
    "budget": {"trials": 2},
}


@pytest.mark.cc
def test_a_run_does_not_go_on_with_another_machine_or_compiler(tmp_path):
    summary = api.run(ON_CPU, tmp_path / "r")
    assert "gcc" in summary["best"]["machine"] or "clang" in summary["best"]["machine"]
    with SqliteStore(tmp_path / "r" / "run.sqlite") as store:
        store.set_meta(machine="another one; tcc 0.9")
    with pytest.raises(ConfigError) as caught:
        api.run(ON_CPU | {"budget": {"trials": 3}}, tmp_path / "r")
    assert caught.value.path == "target (machine and compiler)"
    assert "tcc" in caught.value.expected


@pytest.mark.cc
def test_the_winner_is_left_as_c(tmp_path):
    api.run(ON_CPU, tmp_path / "r")
    text = (tmp_path / "r" / "best.c").read_text()
    assert "void matmul(" in text
    assert "machine:" in text
    assert not (tmp_path / "r" / "nothing.c").exists()


@pytest.mark.cc
def test_failures_are_told_by_class_with_what_was_seen_first(tmp_path):
    (tmp_path / "k.c").write_text("void matmul(void) {}\n")
    space = {"kind": "template", "file": "k.c", "knobs": {"STEP": [1, 2]}}
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(ON_CPU | {"space": space}))
    summary = api.run(path, tmp_path / "r")
    assert summary["best"] is None
    (row,) = summary["failures"]
    assert (row["status"], row["code"], row["count"]) == ("build_error", "compile_error", 2)
    assert "conflicting types" in row["evidence"]


def test_a_trial_is_judged_again_as_far_as_it_came(tmp_path):
    out = tmp_path / "r"
    kernelwright.run({**SMALL, "target": {"name": "gpu-model", "noise": {"lognormal": 0.02}}}, out)
    with SqliteStore(out / "run.sqlite", readonly=True) as store:
        trials = store.trials()
    claimed = next(t for t in trials if t.verdict(Stage.CONFIRM))
    found = api.judged_again(out, claimed.number)
    assert found["stage"] == "confirm"
    # The model's noise is a function of the trial: what was claimed is claimed.
    assert found["then"] == found["now"]
    screened = next(t for t in trials if t.objective is not None and not t.verdict(Stage.CONFIRM))
    found = api.judged_again(out, screened.number)
    assert (found["stage"], found["now"]["status"]) == ("screen", "ok")
    with pytest.raises(ConfigError) as refused:
        api.judged_again(out, 999)
    assert refused.value.path == "--replay"


def test_a_damaged_store_is_refused(tmp_path):
    api.run(SMALL, tmp_path / "r")
    with SqliteStore(tmp_path / "r" / "run.sqlite") as store:
        store._db.execute("UPDATE verdicts SET verdict = substr(verdict, 1, 40)")
    with pytest.raises(StoreError, match="expected a whole store, found damage"):
        api.show(tmp_path / "r")


def test_wins_are_best_before_ties(tmp_path):
    from contracts import judged

    from kernelwright.env.types import (
        Arm,
        CacheState,
        Evidence,
        Measurement,
        ProcessPair,
        Role,
        Stage,
        Status,
        Verdict,
        knob_candidate,
    )
    from kernelwright.search.summary import best_trial

    def claimed(number, status, ratio):
        pair = ProcessPair(Arm.CANDIDATE, (Arm.CANDIDATE, Arm.REFERENCE), ((1.0, ratio),))
        m = Measurement(
            "w", Role.BASELINE, "k", (pair,), "c", CacheState.COLD, Evidence.MEASURED, "m"
        )
        found = judged(number, knob_candidate({"a": number}), 1.0)
        verdict = Verdict(status, measurements=(m,))
        return replace(found, verdicts=(*found.verdicts, (Stage.CONFIRM, verdict)))

    trials = [claimed(0, Status.TIE, 9.0), claimed(1, Status.WIN, 2.0), claimed(2, Status.WIN, 3.0)]
    assert best_trial(trials).number == 2


BY_MODEL = {
    "name": "by-model",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "llm"},
    "budget": {"calls": 4},
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% block user %}{{ nope }}{% endblock %}", "'nope' is undefined"),
        ("{% block user %}{{ ", "unexpected"),
        ("no blocks", "expected a block named user"),
    ],
)
def test_a_prompt_of_one_s_own_is_tried_before_anything_is_asked(tmp_path, text, said):
    (tmp_path / "mine.j2").write_text(text)
    path = tmp_path / "c.yaml"
    agents = {"backend": {"name": "mock"}, "prompt": "mine.j2"}
    path.write_text(yaml.safe_dump(BY_MODEL | {"agents": agents}))
    with pytest.raises(ConfigError) as caught:
        api.check(path)
    assert caught.value.path == "agents.prompt"
    assert said in caught.value.found


def test_a_prompt_of_one_s_own_belongs_to_the_campaign(tmp_path):
    prompt = tmp_path / "mine.j2"
    prompt.write_text("{% block user %}Configurations for {{ problem.name }}.{% endblock %}")
    path = tmp_path / "c.yaml"
    agents = {"backend": {"name": "mock"}, "prompt": "mine.j2"}
    path.write_text(yaml.safe_dump(BY_MODEL | {"agents": agents}))
    api.run(path, tmp_path / "r")
    resolved = yaml.safe_load((tmp_path / "r" / "config.yaml").read_text())
    assert resolved["agents"]["prompt"] == str(prompt)
    assert str(prompt) in resolved["hashes"]
    prompt.write_text(prompt.read_text() + " ")
    with pytest.raises(ConfigError, match="a file that was changed"):
        api.run(path, tmp_path / "r")


def test_a_key_that_a_backend_lacks_is_missing_before_anything_is_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    backend = {"name": "openai", "model": "m", "key_env": "NO_SUCH_KEY"}
    campaign = BY_MODEL | {"agents": {"backend": backend}}
    assert "NO_SUCH_KEY" in api.check(campaign)["missing"][0]
    with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
        api.run(campaign, tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_the_package_names_what_it_has():
    assert {"run", "load", "__version__"} <= set(dir(kernelwright))
