from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.exchange import describe
from kernelwright.env.landscape.open import open_landscape
from kernelwright.env.options import OptionError, ProblemError
from kernelwright.env.problems.recorded_kernel import recorded_kernel
from kernelwright.env.types import (
    Candidate,
    Language,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    knob_candidate,
)
from kernelwright.evaluators.recorded import Recorded, code_of

SPACES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "recorded_spaces"
# The restrictions of the spaces, from their own description.
RULES = {
    "convolution-W6600": [
        "use_padding==0 or block_size_x % 32 != 0",
        "block_size_x*block_size_y<=1024",
        "use_padding==0 or use_shmem != 0",
        "use_shmem == 0 or (block_size_x*tile_size_x+filter_width-1)"
        "*(block_size_y*tile_size_y+filter_height-1) < 12*1024",
    ],
    "dedispersion-W6600": [
        "32 <= block_size_x*block_size_y <= 1024",
        "tile_size_x > 1 or tile_stride_x == 0",
        "tile_size_y > 1 or tile_stride_y == 0",
    ],
    "gemm-RTX_2080_Ti": [
        "KWG % KWI == 0",
        "MWG % (MDIMC*VWM) == 0",
        "NWG % (NDIMC*VWN) == 0",
        "MWG % (MDIMA*VWM) == 0",
        "NWG % (NDIMB*VWN) == 0",
        "KWG % ((MDIMC*NDIMC)/MDIMA) == 0",
        "KWG % ((MDIMC*NDIMC)/NDIMB) == 0",
    ],
    "pnpoly-RTX_3090": [],
}


def cache(folder, **change):
    rows = {}
    for x in (1, 2, 4):
        for y in (1, 2):
            if x * y < 8:
                row = {
                    "x": x,
                    "y": y,
                    "time": 2.0 / x,
                    "times": [2.0 / x] * 4,
                    "compile_time": 500.0,
                }
                rows[f"{x},{y}"] = row
    rows["4,1"] |= {"time": "RuntimeFailedConfig"}
    rows["2,2"] |= {"time": "CompilationFailedConfig"}
    rows["1,2"] |= {"time": "InvalidConfig"}
    for name in ("4,1", "2,2", "1,2"):
        del rows[name]["times"]
    top = {
        "device_name": "",
        "kernel_name": "toy",
        "problem_size": [64, 32],
        "tune_params_keys": ["x", "y"],
        "tune_params": {"x": [1, 2, 4], "y": [1, 2]},
        "objective": "time",
        "cache": rows,
    }
    path = folder / "toy.json"
    path.write_text(json.dumps(top | change))
    return str(path)


def ask(judge, base, **knobs):
    references = (Reference(Role.BASELINE, knob_candidate(base)),)
    (verdict,) = judge.evaluate([Request(knob_candidate(knobs), Stage.SCREEN, references)])
    return verdict


def test_the_problem_is_the_files(tmp_path):
    problem = recorded_kernel(landscape=cache(tmp_path))
    assert (problem.name, problem.workloads[0].fixed) == ("toy", {"x": 64, "y": 32})
    assert [(k.name, k.values) for k in problem.knobs] == [("x", (1, 2, 4)), ("y", (1, 2))]
    with pytest.raises(ProblemError, match="known by its recorded times alone"):
        problem.reference({})
    with pytest.raises(ProblemError, match="it has no inputs"):
        problem.inputs(problem.workloads[0], np.random.default_rng(0))


def test_failures_have_the_status_of_their_kind_and_costs_are_facts(tmp_path):
    path = cache(tmp_path)
    judge = Recorded(recorded_kernel(landscape=path), landscape=path)
    base = {"x": 1, "y": 1}
    found = {k: ask(judge, base, x=k[0], y=k[1]) for k in ((4, 1), (2, 2), (1, 2), (2, 1))}
    assert {k: (v.status, v.code) for k, v in found.items()} == {
        (4, 1): (Status.CRASHED, "runtime_failed_config"),
        (2, 2): (Status.BUILD_ERROR, "compilation_failed_config"),
        (1, 2): (Status.BUILD_ERROR, "invalid_config"),
        (2, 1): (Status.OK, None),
    }
    assert all(dict(v.facts) == {"compile_s": 0.5} for v in found.values())
    assert found[2, 1].measurements[0].machine == "unknown"
    assert judge.device is None


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        ("correctness", Status.WRONG),
        ("timeout", Status.TIMEOUT),
        ("constraints", Status.BUILD_ERROR),
    ],
)
def test_other_kinds_of_failure(tmp_path, failure, status):
    rows = [{"knobs": ["a"], "gpu": "NVIDIA H200"}, {"a": 1, "us": [1.0]}]
    rows.append({"a": 2, "error": "what it was", "failure": failure})
    path = tmp_path / "l.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    judge = Recorded(recorded_kernel(landscape=str(path)), landscape=str(path))
    verdict = ask(judge, {"a": 1}, a=2)
    assert (verdict.status, verdict.code) == (status, "what_it_was")
    # An H200 has a roofline, but nobody counted what this kernel does.
    assert judge.device is None


def test_codes_of_errors():
    assert code_of("RuntimeFailedConfig") == "runtime_failed_config"
    assert code_of(" shared memory!") == "shared_memory"
    assert code_of("…") == "recorded_failure"


def test_rules_are_verified_and_are_the_reasons(tmp_path):
    path = cache(tmp_path)
    rules = ["x * y < 8", "x < 8"]
    problem = recorded_kernel(landscape=path, constraints=rules)
    assert problem.constraints == tuple(rules)
    campaign = {
        "name": "toy",
        "problem": {"name": "recorded_kernel", "landscape": path, "constraints": rules},
        "target": {"name": "recorded", "landscape": path},
        "driver": {"name": "grid"},
        "budget": {"trials": 9},
    }
    space = api.plan_of(campaign).space
    assert len(space.valid) == 5
    reasons = [violation.reason for violation in space.check(knob_candidate({"x": 4, "y": 2}))]
    assert reasons == ["not in the landscape", "expected x * y < 8, found x = 4, y = 2"]
    summary = api.run(campaign, tmp_path / "run")
    assert summary["by_status"]["crashed"] == 1
    assert summary["best"] is not None


def test_a_rule_that_a_recorded_configuration_breaks_is_an_error(tmp_path):
    with pytest.raises(OptionError, match=r"x < 4.*1 of 5 configurations .* found x = 4"):
        recorded_kernel(landscape=cache(tmp_path), constraints=["x < 4"])
    with pytest.raises(OptionError, match="unknown name 'z'"):
        recorded_kernel(landscape=cache(tmp_path), constraints=["z < 4"])


def test_rules_of_a_t1_file(tmp_path):
    parameters = [{"Name": n, "Type": "int", "Values": "[1, 2, 4]"} for n in "xy"]
    conditions = [{"Expression": "x * y < 8", "Parameters": ["x", "y"]}]
    space = {"TuningParameters": parameters, "Conditions": conditions}
    (tmp_path / "space.json").write_text(json.dumps({"ConfigurationSpace": space}))
    path = cache(tmp_path)
    problem = recorded_kernel(landscape=path, constraints=str(tmp_path / "space.json"))
    assert problem.constraints == ("x * y < 8",)
    with pytest.raises(OptionError, match="a list of rules, or a T1 file"):
        recorded_kernel(landscape=path, constraints=path)
    config = tmp_path / "c.yaml"
    config.write_text(
        "name: toy\n"
        "problem: {name: recorded_kernel, landscape: toy.json, constraints: space.json}\n"
        "target: {name: recorded, landscape: toy.json}\n"
        "driver: {name: random}\nbudget: {trials: 3}\n"
    )
    files = api.plan_of(config).resolved["hashes"]
    assert {Path(name).name for name in files} == {"toy.json", "space.json"}


def test_knobs_and_files_that_cannot_be_searched_are_refused(tmp_path):
    with pytest.raises(OptionError, match="a file or one of"):
        recorded_kernel(landscape="nowhere.json")
    rows = [{"knobs": ["a b"]}, {"a b": 1, "us": [1.0]}]
    path = tmp_path / "l.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(OptionError, match="expected an identifier, found 'a b'"):
        recorded_kernel(landscape=str(path))


def test_a_landscape_of_other_knobs_is_refused_as_ever(tmp_path):
    path = cache(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    rows = [{"knobs": ["z"], "extents": {"x": 64, "y": 32}}, {"z": 1, "us": [1.0]}]
    (other / "l.jsonl").write_text("\n".join(map(json.dumps, rows)))
    campaign = {
        "name": "toy",
        "problem": {"name": "recorded_kernel", "landscape": path},
        "target": {"name": "recorded", "landscape": str(other / "l.jsonl")},
        "driver": {"name": "random"},
        "budget": {"trials": 3},
    }
    with pytest.raises(ConfigError, match="a recording of the knobs x y of toy, found z"):
        api.plan_of(campaign)


def test_the_mask_of_attention_must_be_the_recordings():
    campaign = {
        "name": "a",
        "problem": {"name": "attention_gpu", "causal": False},
        "target": {"name": "recorded", "landscape": "h200_attention_32x4096x128_causal"},
        "driver": {"name": "random"},
        "budget": {"trials": 3},
    }
    with pytest.raises(ConfigError, match="a recording with causal=False"):
        api.plan_of(campaign)


@pytest.mark.skipif(
    not SPACES.is_dir(), reason="needs ../shared/data/recorded_spaces beside the checkout"
)
@pytest.mark.parametrize("name", RULES)
def test_published_spaces_open_with_their_restrictions(name):
    path = str(SPACES / f"{name}.json.gz")
    campaign = {
        "name": "toy",
        "problem": {"name": "recorded_kernel", "landscape": path, "constraints": RULES[name]},
        "target": {"name": "recorded", "landscape": path},
        "driver": {"name": "random"},
        "budget": {"trials": 3},
    }
    built = api.plan_of(campaign)
    judge, space = built.target, built.space
    assert len(space.valid) == len(judge.landscape.entries)
    free = type(space)(built.problem.knobs, space.constraints)
    # Every configuration that keeps the restrictions is in the file.
    assert np.array_equal(free.valid, space.valid)
    best: Candidate = space.candidate(int(space.valid[0]))
    assert judge.evaluate([Request(best, Stage.SCREEN, built.plan.against_baseline)])


def test_words_of_a_file_do_not_reach_a_terminal_as_commands(tmp_path):
    words, written = "k\x1b[31m\n\x07é", "k\\x1b[31m\\n\\x07é"
    path = tmp_path / "a.jsonl"
    rows = [{"a": 1, "us": [1.0]}, {"a": 2, "error": words}]
    header = {"kernel": words, "gpu": words, "extents": {"x": 1}, "knobs": ["a"]}
    path.write_text("\n".join(map(json.dumps, (header, *rows))) + "\n")
    problem = recorded_kernel(landscape=str(path))
    assert problem.name == written
    target = Recorded(problem, landscape=str(path))
    baseline = (Reference(Role.BASELINE, Candidate(Language.KNOBS, (("a", 1),))),)
    asked = [Candidate(Language.KNOBS, (("a", value),)) for value in (1, 2)]
    ran, failed = target.evaluate([Request(c, Stage.SCREEN, baseline) for c in asked])
    assert ran.measurements[0].machine == written
    assert failed.evidence == f"recorded: {written}"
    assert describe(str(path))["doc"].startswith(f"{written} on {written}, 2 configurations")
    # What is converted stays what it was.
    assert open_landscape(path).kernel == words


def test_a_library_without_times_is_not_compared_with(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"kernel": "k", "library": "cublas", "knobs": ["a"], "extents": {"x": 1}}]
    rows += [{"a": 1, "us": [1.0]}, {"a": 2, "us": [2.0]}]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert Recorded(recorded_kernel(landscape=str(path)), landscape=str(path)).library is None
