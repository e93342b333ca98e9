"""What a user names: files and folders that are made, and what is said where something is wrong."""

from __future__ import annotations

import json

import pytest

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.exchange import convert, export_best
from kernelwright.configs.load import read_config
from kernelwright.configs.places import to_write
from kernelwright.configs.record import record
from kernelwright.configs.tables import export_table
from kernelwright.configs.winner import WinnerError, export
from kernelwright.env.landscape.open import open_landscape
from kernelwright.env.landscape.record import LandscapeError

SMALL = {
    "name": "small",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "random"},
    "budget": {"trials": 4},
}


def refusal(call, *arguments, **options):
    with pytest.raises(ConfigError) as caught:
        call(*arguments, **options)
    return caught.value


def test_a_folder_is_no_campaign_and_what_lies_in_it_is_named(tmp_path):
    run = tmp_path / "run"
    api.run(SMALL, run)
    error = refusal(read_config, str(run))
    assert error.found == f"the folder of a run (kernelwright show {run})"
    assert error.nearest == str(run / "config.yaml")
    (tmp_path / "c.yaml").write_text("")
    error = refusal(read_config, str(tmp_path))
    assert (error.expected, error.found) == ("a campaign file", "a folder")
    assert error.nearest == str(tmp_path / "c.yaml")


def test_a_file_s_folder_is_made_and_a_folder_is_no_file(tmp_path):
    run = tmp_path / "run"
    api.run(SMALL, run)
    deep, taken = tmp_path / "a" / "b", tmp_path / "taken.jsonl"
    taken.mkdir()
    convert(str(run), deep / "c.jsonl")
    assert len(open_landscape(deep / "c.jsonl").entries) == 4
    export_best(run, "triton", deep / "d" / "best.json")
    export_table([run], deep / "e" / "table.json")
    record(SMALL, deep / "f" / "g.jsonl", limit=2)
    assert {path.name for path in deep.rglob("*.json*")} == {
        *("c.jsonl", "best.json", "table.json", "g.jsonl")
    }
    calls = (
        lambda: convert(str(run), taken),
        lambda: export_table([run], taken),
        lambda: record(SMALL, taken, limit=2),
    )
    for call in calls:
        error = refusal(call)
        assert (error.path, error.expected, error.found) == ("--out", "a file to write", "a folder")
    (tmp_path / "file").write_text("")
    assert refusal(to_write, tmp_path / "file" / "x.json").expected == "a place to write to"


def test_what_a_replay_and_an_export_of_a_model_s_run_found_is_said(tmp_path):
    api.run(SMALL, tmp_path)
    error = refusal(api.judged_again, tmp_path, 99)
    assert (error.expected, error.found) == ("one of trials 0 to 3", "99")
    with pytest.raises(WinnerError, match="exported by --format triton"):
        export(tmp_path)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [("objectives", "time", "a list"), ("objectives", [], "at least 1 of them")],
)
def test_types_are_named_in_plain_words(option, value, expected):
    driver = {"name": "pareto", option: value}
    assert refusal(read_config, SMALL | {"driver": driver}).expected == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", "an object without keys"),
        ("[1]", "a list"),
        ("null", "'null'"),
        ('{"a": 1}', "an object with the keys a"),
        ('{"tune_params_keys": ["a"], "tune_params": {}}', "a file without"),
    ],
)
def test_what_a_file_holds_that_is_no_landscape_is_said(tmp_path, text, found):
    (tmp_path / "l.json").write_text(text)
    with pytest.raises(LandscapeError) as caught:
        open_landscape(tmp_path / "l.json")
    assert f"found {found}" in str(caught.value)


PROBLEM = """
from dataclasses import replace

from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.types import Knob


def bare():
    made = gemm_gpu(m=64, n=64, k=64)
    return replace(made, knobs=(Knob("a", (1, 2)),), unscheduled=())
"""


def test_a_recording_of_other_knobs_or_without_extents_is_told_in_words(tmp_path):
    (tmp_path / "p.py").write_text(PROBLEM)
    (tmp_path / "knobs.jsonl").write_text(
        json.dumps({"m": 64, "n": 64, "k": 64, "knobs": ["b"]}) + '\n{"b": 1, "us": [1]}\n'
    )
    (tmp_path / "none.jsonl").write_text('{"knobs": ["a"]}\n{"a": 1, "us": [1]}\n')
    given = SMALL | {"problem": {"name": f"{tmp_path / 'p.py'}:bare"}}

    def found(file):
        target = {"name": "recorded", "landscape": str(tmp_path / file)}
        return refusal(api.plan_of, given | {"target": target})

    assert "Error" not in str(found("knobs.jsonl"))
    assert found("knobs.jsonl").path == "target.landscape"
    without = found("none.jsonl")
    assert without.expected == "a recording of m=64 n=64 k=64"
    assert without.found.endswith("none.jsonl' without extents")
