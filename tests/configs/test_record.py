from __future__ import annotations

import contextlib
import json
import subprocess
import sys

import pytest

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.exchange import convert, describe
from kernelwright.configs.record import record
from kernelwright.env.landscape.open import locate, open_landscape, read_landscape
from kernelwright.env.landscape.record import Failure, LandscapeError
from kernelwright.search.store import SqliteStore

SMALL = {
    "name": "small",
    "problem": {"name": "gemm_gpu", "m": 64, "n": 64, "k": 64},
    "target": {"name": "gpu-model", "noise": {"lognormal": 0.05}},
    "driver": {"name": "random"},
    "budget": {"trials": 8},
}
BASELINE = "bk=32 bm=128 bn=128 group_m=8 stages=3 warps=4"
ATTENTION = "h200_attention_32x4096x128_causal"
REPLAY = SMALL | {
    "problem": {"name": "attention_gpu"},
    "target": {"name": "recorded", "landscape": ATTENTION},
}


@pytest.mark.parametrize("name", ["a.jsonl", "a.json.gz", "a_t4.json"])
def test_a_model_is_recorded_in_any_format_of_results(tmp_path, name):
    summary = record(SMALL, tmp_path / name, limit=6, samples=3)
    assert (summary["configurations"], summary["measured"], summary["failed"]) == (6, 6, 0)
    found = read_landscape(tmp_path / name)
    assert found.format == summary["format"]
    assert (found.kernel, found.device) == ("gemm_gpu", "h100-lecture")
    assert found.extents == (("m", 64), ("n", 64), ("k", 64))
    assert [len(set(entry.times)) for entry in found.entries] == [3] * 6
    assert found.best.true_ns == pytest.approx(summary["best"]["ns"], rel=1e-12)
    assert not list(tmp_path.glob("*.part"))


def test_the_seed_decides_the_order(tmp_path):
    for name, seed in (("a.jsonl", 1), ("b.jsonl", 1), ("c.jsonl", 2)):
        record(SMALL | {"seed": seed}, tmp_path / name, limit=5)
    order = {n: [e.knobs for e in read_landscape(tmp_path / f"{n}.jsonl").entries] for n in "abc"}
    assert order["a"] == order["b"] != order["c"]


def test_a_recording_of_a_recording_fails_where_it_did(tmp_path):
    summary = record(REPLAY, tmp_path / "a.jsonl")
    first, again = open_landscape(locate(ATTENTION)), read_landscape(tmp_path / "a.jsonl")
    assert summary["configurations"] == summary["valid"] == 272
    assert summary["failed"] == first.failed == 8
    for entry in again.entries:
        was = first.by_knobs[entry.knobs]
        assert (entry.error, entry.failure) == (was.error, was.failure)
        assert set(entry.times) <= set(was.samples_ns)
        assert entry.facts == was.facts
        assert dict(entry.costs) == dict(was.costs)
    assert dict(again.metadata)["causal"] is True
    failed = next(entry for entry in again.entries if entry.error)
    assert (failed.error, failed.failure) == ("shared memory", Failure.COMPILE)
    # It stands for the same problem.
    replay = {**REPLAY, "target": {"name": "recorded", "landscape": str(tmp_path / "a.jsonl")}}
    assert record(replay, tmp_path / "b.jsonl", limit=3)["configurations"] == 3


def asked(monkeypatch):
    """The configurations that the judge was asked about."""
    from kernelwright.evaluators.gpu_model import GpuModel

    seen, evaluate = [], GpuModel.evaluate

    def watched(self, requests):
        # The baseline is judged whenever a campaign is made.
        seen.extend(c for r in requests if (c := str(r.candidate)) != BASELINE)
        return evaluate(self, requests)

    monkeypatch.setattr(GpuModel, "evaluate", watched)
    return seen


class Killed(BaseException):
    pass


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
@pytest.mark.parametrize("tail", ["", '{"bm": 1'])
def test_a_killed_recording_goes_on_and_measures_nothing_twice(tmp_path, monkeypatch, name, tail):
    def killer(done, total, what):
        if done == 70:
            raise Killed

    seen = asked(monkeypatch)
    with pytest.raises(Killed):
        record(SMALL, tmp_path / name, limit=100, samples=1, observe=killer)
    part = tmp_path / f"{name}.part"
    assert len(part.read_text().splitlines()) == 71
    assert not (tmp_path / name).exists()
    with part.open("a") as file:
        file.write(tail)
    done = len(seen)
    summary = record(SMALL, tmp_path / name, limit=100, samples=1)
    assert (summary["configurations"], summary["measured"]) == (100, 30)
    later = seen[done:]
    assert len(later) == 30
    assert not set(later) & set(seen[:70])
    record(SMALL, tmp_path / f"whole-{name}", limit=100, samples=1)
    assert read_landscape(tmp_path / name) == read_landscape(tmp_path / f"whole-{name}")


def test_a_finished_recording_is_taken_up_again(tmp_path, monkeypatch):
    record(SMALL, tmp_path / "a.json", limit=5)
    seen = asked(monkeypatch)
    assert record(SMALL, tmp_path / "a.json", limit=5)["measured"] == 0
    assert seen == []
    assert record(SMALL, tmp_path / "a.json", limit=8)["measured"] == 3
    # Fewer than there are: nothing is thrown away.
    assert record(SMALL, tmp_path / "a.json", limit=2)["configurations"] == 8


@pytest.mark.parametrize("finished", [True, False])
def test_a_file_of_another_campaign_is_refused_and_stays(tmp_path, finished):
    def killer(done, total, what):
        if not finished and done == 2:
            raise Killed

    with contextlib.suppress(Killed):
        record(SMALL, tmp_path / "a.jsonl", limit=4, observe=killer)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for change in ({"seed": 9}, {"problem": SMALL["problem"] | {"m": 128}}):
        with pytest.raises(ConfigError, match=f"another campaign's: .*{next(iter(change))}"):
            record(SMALL | change, tmp_path / "a.jsonl", limit=4)
    with pytest.raises(ConfigError, match="samples of it differ"):
        record(SMALL, tmp_path / "a.jsonl", limit=4, samples=2)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    # The driver and the budget measure nothing.
    assert record(SMALL | {"budget": {"trials": 99}}, tmp_path / "a.jsonl", limit=4)


@pytest.mark.parametrize("lines", [0, 1, 4])
def test_a_journal_never_takes_the_place_of_the_finished_file(tmp_path, monkeypatch, lines):
    """Killed while it took a finished file up again, with less in the journal than in the file."""
    out = tmp_path / "a.jsonl"
    record(SMALL, out, limit=9, samples=1)
    before = out.read_bytes()
    part = tmp_path / "a.jsonl.part"
    part.write_text("".join(out.read_text().splitlines(keepends=True)[:lines]))
    seen = asked(monkeypatch)
    assert record(SMALL, out, limit=5, samples=1)["configurations"] == 9
    assert seen == []
    assert out.read_bytes() == before
    assert not part.exists()


@pytest.mark.parametrize("campaign", ["summer", "[]", "1", 5, None])
def test_a_campaign_of_other_words_is_another_one(tmp_path, campaign):
    header = {"kernel": "x", "knobs": ["a"], "campaign": campaign}
    text = json.dumps(header) + '\n{"a": 1, "us": [1.0]}\n'
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(ConfigError, match="a file that names no campaign"):
        record(SMALL, tmp_path / "a.jsonl", limit=2)
    assert (tmp_path / "a.jsonl").read_text() == text


@pytest.mark.parametrize("lines", [0, 1, 4])
def test_beside_a_journal_the_file_of_another_campaign_stays(tmp_path, lines):
    out, part = tmp_path / "a.jsonl", tmp_path / "a.jsonl.part"
    record(SMALL, out, limit=4, samples=1)
    journal = out.read_text().splitlines(keepends=True)[:lines]
    record(SMALL | {"seed": 9}, tmp_path / "b.jsonl", limit=4, samples=1)
    (tmp_path / "b.jsonl").replace(out)
    part.write_text("".join(journal))
    before = out.read_bytes()
    with pytest.raises(ConfigError, match="another campaign's: seed of it differ"):
        record(SMALL, out, limit=6, samples=1)
    assert out.read_bytes() == before


def test_a_lone_header_is_not_taken_over_by_another_campaign(tmp_path):
    out, part = tmp_path / "a.jsonl", tmp_path / "a.jsonl.part"
    record(SMALL | {"seed": 9}, out, limit=1)
    part.write_text(out.read_text().splitlines(keepends=True)[0])
    out.unlink()

    def killer(done, total, what):
        raise Killed

    with pytest.raises(Killed):
        record(SMALL, out, limit=3, observe=killer)
    with pytest.raises(ConfigError, match="seed of it differ"):
        record(SMALL | {"seed": 9}, out, limit=3)
    assert record(SMALL, out, limit=3)["measured"] == 2


def test_a_kill_does_not_move_a_simulated_drift(tmp_path):
    drifting = SMALL | {"target": {"name": "gpu-model", "noise": {"drift": 0.3}}}
    record(drifting, tmp_path / "whole.jsonl", limit=12, samples=1)
    record(drifting, tmp_path / "a.jsonl", limit=5, samples=1)
    record(drifting, tmp_path / "a.jsonl", limit=12, samples=1)
    assert read_landscape(tmp_path / "a.jsonl") == read_landscape(tmp_path / "whole.jsonl")


def test_two_at_once_into_one_file_are_refused_and_spoil_nothing(tmp_path):
    def second(done, total, what):
        with pytest.raises(ConfigError, match="a running one"):
            record(SMALL, tmp_path / "a.jsonl", limit=9)

    assert record(SMALL, tmp_path / "a.jsonl", limit=3, observe=second)["measured"] == 3
    assert record(SMALL, tmp_path / "a.jsonl", limit=3)["measured"] == 0


def test_files_that_were_not_recorded_are_not_overwritten(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"kernel": "x", "knobs": ["a"]}\n{"a": 1, "us": [1.0]}\n')
    with pytest.raises(ConfigError, match="a file that names no campaign"):
        record(SMALL, tmp_path / "a.jsonl", limit=1)
    (tmp_path / "b.jsonl").write_text("my notes\n")
    with pytest.raises(ConfigError, match="expected a new file"):
        record(SMALL, tmp_path / "b.jsonl", limit=1)
    assert (tmp_path / "b.jsonl").read_text() == "my notes\n"


@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        ({}, "a.txt", "expected a name ending in"),
        ({}, "a.t1.json", "expected a format of results, found T1"),
        (
            {
                "target": {"name": "cpu"},
                "problem": {"name": "matmul"},
                "space": {"kind": "schedule"},
            },
            "a.jsonl",
            "a space that can be listed",
        ),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_anything_is_measured(
    tmp_path, change, name, message
):
    with pytest.raises(ConfigError, match=message):
        record(SMALL | change, tmp_path / name, limit=1)
    assert list(tmp_path.iterdir()) == []


def test_an_analytic_cpu_is_recorded(tmp_path):
    change = {
        "problem": {"name": "matmul", "m": 64, "n": 64, "k": 64},
        "target": {"name": "cpu-model"},
    }
    assert record(SMALL | change, tmp_path / "a.jsonl", limit=2, samples=2)["configurations"] == 2


@pytest.mark.cc
def test_this_machine_is_recorded(tmp_path):
    problem = {"name": "row_sum", "rows": 64, "cols": 64}
    campaign = SMALL | {"problem": problem, "target": {"name": "cpu"}}
    summary = record(campaign, tmp_path / "a.jsonl", limit=1, samples=2)
    (entry,) = read_landscape(tmp_path / "a.jsonl").entries
    assert (summary["configurations"], len(entry.times)) == (1, 2)
    assert entry.max_error is not None


def kernelwright(*arguments, cwd):
    command = [sys.executable, "-P", "-m", "kernelwright", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


def test_the_commands(tmp_path):
    made = kernelwright(
        *("record", "h200_attention_full", "-o", "a.json", "--limit", 12, "--json"), cwd=tmp_path
    )
    assert json.loads(made.stdout)["configurations"] == 12
    assert "configuration 12 of 12" in made.stderr
    done = kernelwright("convert", "a.json", "-o", "b.t1.json", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "12 configurations, kernel_tuner to t1: b.t1.json",
        "lost: the results of all 12 configurations",
        "lost: the device 'NVIDIA H200'",
        "lost: metadata: campaign, causal",
    ]
    kept = (tmp_path / "b.t1.json").read_bytes()
    refused = kernelwright("convert", ATTENTION, "-o", "b.t1.json", cwd=tmp_path)
    assert (refused.returncode, (tmp_path / "b.t1.json").read_bytes()) == (2, kept)
    assert "b.t1.json: expected a name that is free" in refused.stderr
    forced = kernelwright("convert", ATTENTION, "-o", "b.t1.json", "--force", cwd=tmp_path)
    assert forced.returncode == 0
    assert (tmp_path / "b.t1.json").read_bytes() != kept
    wrong = kernelwright("convert", "b.t1.json", "-o", "c.jsonl", "--json", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "T1 has no results" in json.loads(wrong.stdout)["error"]["found"]
    text = (tmp_path / "a.json").read_text()
    (tmp_path / "cut.json").write_text(text[: text.rindex("bm")])
    listed = kernelwright("list", "landscapes", "a.json", "cut.json", "--json", cwd=tmp_path)
    whole, cut = json.loads(listed.stdout)["landscapes"]
    assert (whole["configurations"], whole["notes"], whole["format"]) == (12, [], "kernel_tuner")
    assert (cut["configurations"], cut["notes"]) == (11, ["the file breaks off: 1 record is lost"])
    assert "1 record is lost" in kernelwright("list", "landscapes", "cut.json", cwd=tmp_path).stdout
    assert kernelwright("list", "drivers", "cut.json", cwd=tmp_path).returncode == 2


def test_a_run_is_converted_into_a_landscape_of_what_it_measured(tmp_path):
    summary = api.run(SMALL, tmp_path / "r")
    done = convert(str(tmp_path / "r"), tmp_path / "earlier.jsonl")
    assert (done["read"], done["entries"]) == ("a run", 8)
    found = read_landscape(tmp_path / "earlier.jsonl")
    assert (found.kernel, found.device) == ("gemm_gpu", "h100-lecture")
    assert dict(found.extents) == {"m": 64, "n": 64, "k": 64}
    with SqliteStore(tmp_path / "r" / "run.sqlite", readonly=True) as store:
        trials = store.trials()
    assert [e.knobs for e in found.entries] == [t.candidate.payload for t in trials]
    # Those that were raced and confirmed have more samples than their screens'.
    assert all(len(e.times) >= len(t.verdicts) for e, t in zip(found.entries, trials, strict=True))
    # It is advice for another shape.
    options = {"name": "auto", "transfer": [str(tmp_path / "earlier.jsonl")]}
    more = {"name": "gemm_gpu", "m": 128, "n": 64, "k": 64}
    api.run(SMALL | {"problem": more, "driver": options, "batch": 1}, tmp_path / "s")
    with SqliteStore(tmp_path / "s" / "run.sqlite", readonly=True) as store:
        first = store.trials()[0]
    assert first.proposer.startswith("auto transfer ")
    assert first.candidate.knobs == dict(found.best.knobs)
    assert summary["trials"] == 8


def test_a_run_that_is_no_landscape_is_not_converted(tmp_path):
    matmul = {"name": "matmul", "m": 16, "n": 16, "k": 16}
    schedules = {"space": {"kind": "schedule"}, "target": {"name": "cpu-model"}}
    api.run(SMALL | {"problem": matmul, **schedules, "budget": {"trials": 2}}, tmp_path / "r")
    with pytest.raises(LandscapeError, match="expected a run on knobs, found candidates in sched"):
        convert(str(tmp_path / "r"), tmp_path / "a.jsonl")
    assert not (tmp_path / "a.jsonl").exists()


def test_the_winner_of_a_run_in_the_shapes_of_others(tmp_path):
    ran = kernelwright("run", "h200_attention_full", "--out", "r", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    triton = json.loads(kernelwright("export", "r", "--format", "triton", cwd=tmp_path).stdout)
    ((config, times),) = triton["configs_timings"]
    best = json.loads((tmp_path / "r" / "best.json").read_text())
    assert config["kwargs"].keys() == {"bm", "bn"}
    assert (config["num_warps"], config["num_ctas"], config["pre_hook"]) == (8, 1, None)
    assert times[1] <= times[0] <= times[2] < 1
    assert best is not None
    saved = kernelwright("export", "r", "--format", "helion", "-o", ".", cwd=tmp_path)
    assert saved.returncode == 0, saved.stderr
    (path,) = tmp_path.glob("*.best_config")
    helion = json.loads(path.read_text())
    assert json.loads(helion["config"])["num_warps"] == 8
    assert helion["key"]["fields"]["hardware"] == "NVIDIA H200"
    assert kernelwright("export", "r", "--format", "x", cwd=tmp_path).returncode == 2
    # It has no C form, as ever.
    assert kernelwright("export", "r", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("name", ["mine.jsonl", "mine.json.gz"])
def test_a_file_that_says_something_else_is_not_overwritten(tmp_path, name):
    out, notes = tmp_path / name, b"my notes of a whole year\n"
    out.write_bytes(notes)
    with pytest.raises(LandscapeError, match=r"a file that says the same, found another \(--force"):
        convert(ATTENTION, out)
    assert out.read_bytes() == notes
    done = convert(ATTENTION, out, force=True)
    data = out.read_bytes()
    assert data != notes
    assert convert(ATTENTION, out) == done
    # A run that has gone on says more than the landscape that was made of it.
    out.write_bytes(data[:-10])
    with pytest.raises(LandscapeError):
        convert(ATTENTION, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_shipped_landscapes_are_described_and_converted_by_name(tmp_path):
    assert describe(ATTENTION)["failed"] == 8
    done = convert(ATTENTION, tmp_path / "a.best_config")
    assert done["lost"][0] == "271 other configurations"
    config = json.loads(json.loads((tmp_path / "a.best_config").read_text())["config"])
    assert config == {"bm": 64, "bn": 64, "num_warps": 4, "num_stages": 3}
