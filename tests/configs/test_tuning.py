"""Campaigns with a tuning cache, and tables of what they chose."""

from __future__ import annotations

import ast
import csv
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import crash_child
import pytest
import yaml

from kernelwright.configs import api
from kernelwright.configs.choices import Place
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config, shipped_configs
from kernelwright.configs.resolve import resolve
from kernelwright.configs.tables import export_table
from kernelwright.configs.tuning import serving_of
from kernelwright.configs.winner import WinnerError
from kernelwright.display.runs import summary_text
from kernelwright.env.compiler.runtime.toolchain import BuildError, find_toolchain
from kernelwright.env.landscape.open import locate
from kernelwright.env.problems import PROBLEMS
from kernelwright.evaluators.cpu_model import CpuModel
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.search.store import DATABASE, SqliteStore
from kernelwright.search.tuning.cache import TuningCache
from kernelwright.search.tuning.record import sealed
from kernelwright.search.tuning.rows import read_table, table

try:
    TOOLCHAIN = find_toolchain()
except BuildError:
    TOOLCHAIN = None
CHILD = Path(__file__).resolve().parents[1] / "crash_child.py"
GEMM = {
    "name": "gemm",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "evolution"},
    "budget": {"trials": 24},
    "batch": 4,
    "cache": {"folder": "known"},
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def go(out, **changes):
    return api.run({**GEMM, **changes}, out)


def tables(out):
    return crash_child.tables(Path(out))


def lines():
    return sum(len(path.read_text().splitlines()) for path in Path("known").glob("*/*.jsonl"))


@pytest.fixture
def screened(monkeypatch):
    """The candidates that models were asked to screen."""
    seen = []
    for target in (GpuModel, CpuModel):

        def watched(self, requests, evaluate=target.evaluate):
            seen.extend(r.candidate for r in requests if r.stage == "screen")
            return evaluate(self, requests)

        monkeypatch.setattr(target, "evaluate", watched)
    return seen


def test_without_a_cache_nothing_is_kept_and_nothing_changes():
    go("a")
    plain = {key: value for key, value in GEMM.items() if key != "cache"}
    api.run(plain, "b")
    assert "cache" not in yaml.safe_load(Path("b/config.yaml").read_text())
    trials, verdicts, events = tables("a")
    assert [trials, verdicts] == tables("b")[:2]
    assert [e[1:] for e in events if e[1] != "cache"] == [e[1:] for e in tables("b")[2]]


def test_a_longer_search_and_another_driver_are_served_what_is_known(screened):
    go("a")
    screened.clear()
    summary = go("b", budget={"trials": 40})
    # One is judged again to see whether the cache holds, one is the baseline's own.
    assert (summary["served"], summary["trials"], len(screened)) == (24, 40, 16 + 2)
    before = lines()
    go("c", driver={"name": "random"}, seed=4)
    fresh = 24 - api.show("c")["served"]
    # The choice, and a claim that was made afresh of a trial that was served.
    assert before + fresh + 1 <= lines() <= before + fresh + 2
    assert go("d", driver={"name": "random"}, seed=4)["served"] == 24


def test_reading_and_writing_are_chosen_apart():
    go("a", cache={"folder": "known", "write": False})
    assert not Path("known").exists()
    go("b", cache={"folder": "known", "read": False})
    before = lines()
    assert go("c", cache={"folder": "known", "read": False})["served"] == 0
    Path("known").chmod(0o500)
    assert go("d", cache={"folder": "known", "write": False})["served"] == 24
    Path("known").chmod(0o700)
    assert lines() == before


def test_a_folder_that_is_a_file_is_refused_before_anything_runs():
    Path("known").write_text("")
    with pytest.raises(ConfigError, match=r"cache\.folder: expected a folder that can be written"):
        go("a")
    assert not Path("a").exists()


def test_the_user_s_own_folder_is_beside_the_builds(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    go("a", cache={})
    assert list((tmp_path / "mine" / "kernelwright" / "tuning").glob("gemm_gpu@1/*.jsonl"))


def test_what_decides_a_time_or_a_status_is_in_the_key():
    matmul = {"name": "matmul", "m": 32, "n": 32, "k": 32}
    base = {**GEMM, "problem": matmul, "space": {"kind": "schedule"}}

    def key(**changes):
        return Place.of(read_config({**base, "target": {"name": "cpu-model"}, **changes})).key

    same = [
        {},
        {"seed": 5},
        {"driver": {"name": "random"}},
        {"budget": {"trials": 1}},
        {"space": {"kind": "knobs"}},
        {"judge": {"confirm": {"finalists": 1}}},
    ]
    other = [
        {"problem": {**matmul, "m": 64}},
        {"problem": {**matmul, "dtype": "float64"}},
        {"target": {"name": "cpu-model", "threads": 2}},
        {"target": {"name": "cpu-model", "loaded_trips": 3}},
    ]
    assert {key(**changes) for changes in same} == {key()}
    assert len({key(**changes) for changes in ({}, *other)}) == 1 + len(other)

    def noisy(seed, **noise):
        return Place.of(
            read_config({**GEMM, "target": {"name": "gpu-model", "noise": noise}, "seed": seed})
        ).key

    # Without noise a seed says nothing; with it another seed has other samples.
    assert noisy(1) == noisy(2) != noisy(1, lognormal=0.1) != noisy(2, lognormal=0.1)


OWN = """
from dataclasses import replace
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.types import Directive, Knob

def make(*, wide: bool = False, more: bool = False):
    problem = matmul(m=64, n=64, k=64)
    knobs = [Knob("mr", (1, 2, 4, *([8] if wide else []))), Knob("nv", (1, 2))]
    unscheduled = {"mr": 1, "nv": 1}
    if more:
        knobs.append(Knob("kc", (512, 16)))
        unscheduled["kc"] = 512

    def sketch(knobs):
        return problem.sketch({"lanes": 8, "kc": 512, "outer": "rows", **knobs})

    return replace(
        problem, knobs=tuple(knobs), unscheduled=tuple(unscheduled.items()), sketch=sketch
    )
"""


def test_a_value_or_a_knob_that_is_added_to_a_problem_measures_only_what_is_new(screened):
    Path("own.py").write_text(OWN)

    def grid(out, **options):
        screened.clear()
        summary = go(
            out,
            problem={"name": "own.py:make", **options},
            target={"name": "cpu-model"},
            driver={"name": "grid"},
            budget={"trials": 99},
        )
        # Not the baseline's own, nor the one that is judged again.
        fresh = [cand for cand in screened if cand.payload][int(summary["served"] > 0) :]
        return summary["trials"], summary["served"], len(fresh)

    assert grid("a") == (6, 0, 6)
    assert grid("b") == (6, 6, 0)
    assert grid("c", wide=True) == (8, 6, 2)
    # The knob's default is the program without it, which its sketch proves.
    assert grid("d", wide=True, more=True) == (16, 8, 8)


# Trials 0 to 11 are served.
KILLED = [("judge", 17), ("commit", 13), ("commit", 6), ("after", 6), ("confirming", 0)]


@pytest.mark.parametrize(("mode", "at"), KILLED)
def test_a_killed_campaign_with_a_cache_ends_bit_equal(mode, at):
    go("first", budget={"trials": 12})
    known = {path: path.read_bytes() for path in Path("known").glob("*/*.jsonl")}
    Path("c.yaml").write_text(yaml.safe_dump(GEMM))
    overrides = ["judge.confirm.finalists=3"]
    command = [sys.executable, "-P", str(CHILD), "c.yaml", "a", mode, str(at), *overrides]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    # Meanwhile others write to the cache, which the campaign that goes on does not see.
    go("other", seed=2)
    api.run("c.yaml", "a", overrides=overrides, workers=3)
    for path, content in known.items():
        path.write_bytes(content)
    api.run("c.yaml", "b", overrides=overrides)
    assert tables("a") == tables("b")
    assert any(e[1] == "served" for e in tables("a")[2])


def test_a_campaign_goes_on_without_a_cache_that_was_removed():
    go("first")
    Path("c.yaml").write_text(yaml.safe_dump({**GEMM, "seed": 1}))
    command = [sys.executable, "-P", str(CHILD), "c.yaml", "a", "commit", "13"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    for path in Path("known").glob("*/*.jsonl"):
        path.unlink()
    assert api.run("c.yaml", "a")["trials"] == 24
    assert any(e[1] == "cache_lost" for e in tables("a")[2])


def test_an_interrupted_campaign_leaves_what_it_judged():
    def interrupt(progress):
        if progress.trials >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.run(GEMM, "a", observe=interrupt)
    assert lines() == 1 + 8
    assert go("b")["served"] == 8


def test_an_extended_campaign_sees_the_cache_of_its_start():
    go("first", seed=1)
    go("a", budget={"trials": 12})
    go("between", seed=2)
    summary = go("a")
    assert summary["trials"] == 24
    events = [e[1] for e in tables("a")[2]]
    assert events.count("cache") == 1


# Tables


@pytest.fixture
def runs():
    for number, size in enumerate((2048, 512)):
        problem = {"name": "gemm_gpu", "m": size, "n": size, "k": size}
        go(f"runs/{number}", problem=problem)
    return Path("runs")


def test_a_table_has_a_row_a_shape_with_what_a_reader_needs(runs):
    rows = read_table(export_table([runs]))
    assert [row["extents"] for row in rows] == [dict.fromkeys("mnk", s) for s in (512, 2048)]
    summary = api.show(runs / "1")
    (row,) = read_table(export_table([runs / "1"]))
    assert row == rows[0]
    assert row["configuration"] == summary["best"]["candidate"]
    for name in ("status", "speedup", "ci_low", "ci_high", "evidence"):
        assert row[name] == summary["best"][name]
    assert (row["problem"], row["device"], row["evaluations"]) == ("gemm_gpu@1", "h100-lecture", 24)


def test_a_table_is_the_same_from_runs_in_any_order_and_from_the_cache(runs):
    text = export_table([runs])
    assert export_table([runs / "0", runs / "1"]) == export_table([runs / "1", runs / "0"]) == text
    of_cache = read_table(export_table(["known"]))
    # When it ended is known to the second, by two clocks.
    assert [{**r, "when": 0} for r in of_cache] == [{**r, "when": 0} for r in read_table(text)]


def test_of_runs_of_one_shape_the_better_claim_stands(runs):
    go("runs/2", problem={"name": "gemm_gpu", "m": 512, "n": 512, "k": 512}, budget={"trials": 200})
    (row, _) = read_table(export_table([runs]))
    claims = [api.show(runs / n)["best"]["ci_low"] for n in "12"]
    assert row["ci_low"] == max(claims)
    worse = {**row, "status": "tie", "ci_low": 9.0, "run": "another"}
    assert table([worse, row]) == table([row, worse]) == [row]


def test_every_format_holds_the_same_configurations(runs):
    rows = read_table(export_table([runs], "t.json"))
    assert read_table(Path("t.json").read_text()) == rows
    found = list(csv.DictReader(export_table([runs], "t.csv").splitlines()))
    assert [{k: int(r[f"knob.{k}"]) for k in rows[0]["configuration"]} for r in found] == [
        row["configuration"] for row in rows
    ]
    assert [r["m"] for r in found] == ["512", "2048"]
    tree = ast.parse(export_table([runs], "t.py"))
    assert ast.literal_eval(tree.body[1].value) == rows
    text = export_table([runs], form="md")
    assert len(text.splitlines()) == 2 + len(rows)
    assert "| m=512 n=512 k=512 |" in text
    # A reader needs to know which compiler, what the speedup is over, and when it was found.
    names, first = ([c.strip() for c in text.splitlines()[n].split("|")[1:-1]] for n in (0, 2))
    shown = dict(zip(names, first, strict=True))
    assert shown["over"] == rows[0]["baseline"] == "unscheduled"
    assert (shown["when"], shown["compiler"]) == (rows[0]["when"], "-")
    assert shown["options"].startswith("dtype=float16 split_k=False device=h100-lecture")
    assert shown["speedup"].startswith(f"{rows[0]['status']}: ")
    # The format that is asked for goes before the file's ending.
    assert export_table([runs], "u.csv", "md") == text == Path("u.csv").read_text()


def test_what_holds_no_run_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="expected a run, a folder of runs or a tuning cache"):
        export_table([tmp_path])
    with pytest.raises(ConfigError, match="expected one of json, csv, md, py, found 'jsn'"):
        export_table([tmp_path], form="jsn")
    for text in ("", "{}", '{"format": 9, "rows": []}', '{"format": 1, "rows": [{}]}', "[1]"):
        with pytest.raises(ValueError, match="expected"):
            read_table(text)


def test_a_landscape_counts_by_what_is_in_it_and_not_by_its_path():
    source, whole = (
        Path("c.yaml"),
        yaml.safe_load(shipped_configs()["h200_16x14336x4096"].read_text()),
    )
    shipped = locate(whole["target"]["landscape"])
    text, names = shipped.read_bytes(), [f"{name}{''.join(shipped.suffixes)}" for name in "abc"]
    for name in names:
        Path(name).write_bytes(text)
    for seed, name in enumerate(names):
        campaign = whole | {"seed": seed, "budget": {"trials": 8}}
        campaign["target"] = {"name": "recorded", "landscape": name}
        source.write_text(yaml.safe_dump(campaign))
        api.run(source, f"runs/{name}")
    (row,) = read_table(export_table(["runs"]))
    assert "against the library" in export_table(["runs"], form="md")
    assert "cublas 0." in export_table(["runs"], form="md")
    assert row["files"].keys() == {row["target"]["landscape"]}
    # Another recording is another place, and so is a row that does not say what was in its file.
    for files in (dict.fromkeys(row["files"], "0" * 64), {}):
        assert len(table([row, {**row, "files": files}])) == 2


def test_a_run_without_anything_valid_has_no_row(runs, monkeypatch):
    monkeypatch.setattr("kernelwright.configs.tables.best_trial", lambda trials: None)
    with pytest.raises(WinnerError, match="found nothing valid"):
        export_table([runs])


def test_the_command_line_writes_tables(runs):
    def call(*words):
        command = [sys.executable, "-P", "-m", "kernelwright", "export", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = call("--table", "runs", "-o", "t.md")
    assert (done.returncode, done.stdout) == (0, "")
    assert Path("t.md").read_text() == export_table([runs], form="md")
    assert json.loads(call("--table", "runs").stdout)["rows"]
    # A reader at a terminal has a reader's table.
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "kernelwright", "export", "--table", "runs"]
    subprocess.run(command, stdout=theirs, check=True)
    os.close(theirs)
    assert os.read(ours, 9).decode() == "| problem"
    os.close(ours)
    assert call("runs/0", "runs/1").returncode == 2
    assert call("runs/0", "--format", "csv").returncode == 2


def test_a_snapshot_of_the_cache_is_read_by_hand(runs):
    cache = TuningCache(Path("known"))
    keys = list(cache.known("gemm_gpu@1"))
    assert len(keys) == 2
    snapshot = cache.read(keys[0])
    assert len(snapshot.trials) == 24
    assert len(snapshot.choices) == 1
    assert snapshot.trials[0].run.startswith("gemm in ")


# Warm starts

NEAR = {"folder": "known", "near": 3}


def first_proposers(out, count):
    with SqliteStore(Path(out) / DATABASE, readonly=True) as store:
        return [t.proposer for t in store.trials()[:count]]


def test_a_search_begins_with_what_did_well_at_other_shapes():
    best = {m: go(f"m{m}", problem={"name": "gemm_gpu", "m": m})["best"] for m in (1024, 2048)}
    go("c", cache=NEAR)
    with SqliteStore(Path("c") / DATABASE, readonly=True) as store:
        trials = store.trials()
        (found,) = [e.data["seeds"] for e in store.events() if e.kind == "warm_start"]
    # The nearer shape first, the best of each before the second of any.
    sources = [f"m={m} n=4096 k=4096 on h100-lecture" for m in (2048, 1024)]
    assert [seed["source"].partition(" on ")[0] for seed in found][:2] == [
        s.partition(" on ")[0] for s in sources
    ]
    keys = [trial.candidate.knobs for trial in trials[:2]]
    assert keys[0] == best[2048]["candidate"]
    assert all(t.proposer.startswith("warm by m=") for t in trials[:2])
    assert not trials[2].proposer.startswith("warm")


def test_an_earlier_search_of_the_same_work_is_gone_on_with():
    best = go("a")["best"]
    again = go("b", cache=NEAR, driver={"name": "random"}, seed=9, budget={"trials": 4})
    assert first_proposers("b", 2) == [f"warm by {SOURCE}"] * 2
    assert again["best"]["candidate"] == best["candidate"]
    assert again["served"] >= 2


SOURCE = "m=4096 n=4096 k=4096 on h100-lecture"


def test_what_was_found_is_a_part_of_the_run(tmp_path):
    go("a")
    go("b", cache=NEAR, seed=1, budget={"trials": 6})
    shutil.rmtree("known")
    go("b", cache=NEAR, seed=1, budget={"trials": 10})
    assert first_proposers("b", 1) == [f"warm by {SOURCE}"]


def test_like_keys_that_this_space_has_nothing_of_are_no_seeds():
    go("a", problem={"name": "gemm_gpu", "m": 2048})
    path = next(Path("known").glob("*/*.jsonl"))
    text = path.read_text()
    key = next(TuningCache(Path("known")).known())
    broken = [json.loads(line) for line in text.splitlines()]
    for line in broken:
        if line.get("kind") == "trial":
            line["candidate"]["payload"] = [["BLOCK", 3]]
        line.pop("key"), line.pop("sha256")
    path.write_text("".join(sealed(line, key.digest) + "\n" for line in broken))
    assert go("b", cache=NEAR)["trials"] == 24
    assert not any(p.startswith("warm") for p in first_proposers("b", 24))


@pytest.mark.cc
@pytest.mark.skipif(TOOLCHAIN is None, reason="no C compiler on this machine")
def test_a_macro_is_new_to_a_template_unless_its_text_knew_it():
    campaign = {
        **GEMM,
        "problem": {"name": "row_sum", "rows": 64, "cols": 64},
        "space": {"kind": "template", "file": "own.c", "knobs": {"STEP": [1, 2]}},
        "target": {"name": "cpu"},
        "driver": {"name": "grid"},
        "budget": {"trials": 2},
        "judge": {"profile": "naive"},
    }
    knobs = {"STEP": [1, 2], "WIDE": [4, 1]}
    more = {**campaign, "space": {**campaign["space"], "knobs": knobs}, "budget": {"trials": 4}}
    text = resolve(PROBLEMS, "row_sum")().plain_c
    Path("own.c").write_text(text)
    source = Path("c.yaml")
    source.write_text(yaml.safe_dump(campaign))
    assert api.run(source, "a")["cache"]["records"] == 0
    # An edited text is another program, and the run says so.
    Path("own.c").write_text(f"#ifndef WIDE\n#define WIDE 1\n#endif\n{text}")
    summary = api.run(source, "b")
    assert (summary["served"], summary["cache"]["records"]) == (0, 2)
    assert "none of the tuning cache's 2 records: they are of other texts" in summary_text(summary)
    # The knob that the text has a fallback for costs only what is new, whatever its default is.
    source.write_text(yaml.safe_dump(more))
    built = api.plan_of(source)
    serving = serving_of(built)
    assert serving.probe() is not None
    serving.begin({"serves": "all"})
    found = [serving.find(built.space.candidate(i)) for i in range(4)]
    wide = [built.space.candidate(i).knobs["WIDE"] for i in range(4)]
    assert [one is not None for one in found] == [w == 1 for w in wide]


def test_a_run_that_was_served_nothing_says_why():
    first = go("a", driver={"name": "grid"}, budget={"trials": 4})
    assert (first["served"], first["cache"]["records"]) == (0, 0)
    assert "served" not in summary_text(first)
    # Of the four that are known none is tried.
    other = go("b", driver={"name": "random"}, budget={"trials": 2})
    assert other["served"] == 0
    why = "none of the tuning cache's 4 records: they are of other configurations than were tried"
    assert f"served: {why}" in summary_text(other)
    # Over another baseline a time says nothing.
    (key, *_) = (trial[1] for trial in tables("a")[0])
    third = go("c", driver={"name": "grid"}, budget={"trials": 4}, baseline=key)
    assert third["cache"]["reason"] == "none in this space has a time over this baseline"
    again = go("d", driver={"name": "grid"}, budget={"trials": 4})
    assert (again["served"], again["cache"]["reason"]) == (4, None)


@pytest.mark.cc
@pytest.mark.skipif(TOOLCHAIN is None, reason="no C compiler on this machine")
def test_on_this_machine_claims_are_fresh_whatever_is_served():
    campaign = {
        **GEMM,
        "problem": {"name": "row_sum", "rows": 64, "cols": 64},
        "space": {"kind": "template", "file": "own.c", "knobs": {"STEP": [1, 2]}},
        "target": {"name": "cpu"},
        "driver": {"name": "grid"},
        "budget": {"trials": 2},
        "judge": {
            "screen": {"pairs": 1},
            "race": {"rounds": 0},
            "confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1},
        },
    }
    # One configuration does not compile, which is so in every sitting.
    text = resolve(PROBLEMS, "row_sum")().plain_c
    Path("own.c").write_text(f"#if STEP == 2\n#error no\n#endif\n{text}")
    Path("c.yaml").write_text(yaml.safe_dump(campaign))
    first = api.run("c.yaml", "a")
    assert first["by_status"]["build_error"] == 1
    second = api.run("c.yaml", "b")
    events = [row for row in tables("b")[2] if row[1] in ("cache", "served")]
    serves = json.loads(events[0][4])["serves"]
    assert second["served"] == {"all": 2, "failures": 1}[serves]
    confirmed = [
        {text for trial, stage, _, _, text in tables(out)[1] if stage == "confirm"} for out in "ab"
    ]
    assert all(confirmed)
    assert not confirmed[0] & confirmed[1]


def test_a_file_that_cannot_be_read_is_no_reason_to_lose_a_run(caplog):
    path = TuningCache(Path("known")).path(Place.of(read_config(GEMM)).key)
    path.mkdir(parents=True)
    summary = go("a")
    assert (summary["trials"], summary["served"]) == (24, 0)
    assert "nothing was read" in caplog.text
    assert "nothing was kept" in caplog.text


REFERENCE = """
from dataclasses import replace
from kernelwright.env.problems.matmul import matmul

def reference(arrays):
    return {"C": arrays["A"].astype("f8") @ arrays["B"].astype("f8")}

def make():
    found = matmul(m=32, n=32, k=32)
    return replace(found, name="mine", reference=reference, definition=None, sketch=None)
"""


def test_the_file_of_a_problem_that_only_its_reference_defines_is_in_the_key():
    def key():
        section = {"name": "mine.py:make"}
        parts = {"problem": section, "space": {"kind": "source"}, "target": {"name": "cpu"}}
        return Place.of(read_config({**GEMM, **parts})).key

    Path("mine.py").write_text(REFERENCE)
    first = key()
    assert key() == first
    Path("mine.py").write_text(REFERENCE.replace("@", "* 2 @"))
    assert key() != first
