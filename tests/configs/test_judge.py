"""The judge's section: what a target is told, what a run writes down, and what does not suit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml

from kernelwright.configs import api
from kernelwright.configs.build import build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.judge import judge_section, judging_of
from kernelwright.configs.load import read_config
from kernelwright.configs.schema import JudgeSection
from kernelwright.env.compiler.runtime.toolchain import BuildError
from kernelwright.env.problems.matmul import matmul
from kernelwright.evaluators.cpu.policy import (
    Checking,
    Judging,
    Policy,
    Profile,
    StaticState,
)
from kernelwright.evaluators.cpu.target import Cpu

CAMPAIGN = {
    "name": "judged",
    "problem": {"name": "matmul", "m": 8, "n": 8, "k": 8},
    "space": {"kind": "schedule"},
    "target": {"name": "cpu", "flags": ["-O1"]},
    "driver": {"name": "random"},
    "budget": {"trials": 1},
}
PLUGIN = """
from kernelwright.evaluators.cpu_model import CpuModel

class Mine(CpuModel):
    judge_keys = {KEYS}
    def __init__(self, problem, *, seed=0{JUDGING}):
        super().__init__(problem, seed=seed)
        {BODY}
"""
TARGET = SimpleNamespace(judge_keys=Cpu.judge_keys)


def section(judge, problem=None, **changes):
    """The resolved section of a campaign on the CPU, without building anything."""
    campaign = read_config({**CAMPAIGN, "judge": judge, **changes})
    return judge_section(campaign, problem or matmul(m=8, n=8, k=8), TARGET)


def test_what_is_not_said_is_strict_and_full():
    assert judging_of(JudgeSection()) == Judging()
    assert Judging().policy == Policy(Profile.STRICT, (), (), StaticState.ALLOW)
    assert section({}) == {
        "confirm": {"finalists": 3, "alpha": 0.01, "process_pairs": 10, "pairs": 8},
        "race": {"rounds": 5},
        "profile": "strict",
        "check": "full",
        "policy": {"symbols": [], "libraries": [], "static_state": "allow"},
        "state": "cold",
        "screen": {"pairs": 5},
    }


def test_what_is_said_reaches_the_judge():
    judge = {
        "profile": "standard",
        "check": "projection",
        "policy": {"symbols": ["a*"], "libraries": ["b"], "static_state": "refuse"},
    }
    told = judging_of(JudgeSection.model_validate(judge))
    policy = Policy(Profile.STANDARD, ("a*",), ("b",), StaticState.REFUSE)
    assert told == Judging(Profile.STANDARD, Checking.PROJECTION, policy)


@pytest.mark.cc
def test_the_target_is_told_and_the_run_writes_it_down(tmp_path, monkeypatch):
    told = []
    plain = Cpu.__init__

    def spied(self, problem, *, judging, **options):
        told.append(judging)
        plain(self, problem, judging=judging, **options)

    monkeypatch.setattr(Cpu, "__init__", spied)
    judge = {
        "profile": "standard",
        "policy": {"symbols": ["a*"]},
        "screen": {"pairs": 1},
        "confirm": {"finalists": 1, "process_pairs": 2, "pairs": 1},
    }
    campaign = {**CAMPAIGN, "judge": judge}
    # The spy hides what the options are, so they are left out.
    del campaign["target"]
    api.run({**campaign, "target": {"name": "cpu"}}, tmp_path / "run")
    assert told == [Judging(Profile.STANDARD, policy=Policy(symbols=("a*",)))]
    written = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert written["judge"]["profile"] == "standard"
    assert written["judge"]["check"] == "full"
    assert written["judge"]["policy"] == {
        "symbols": ["a*"],
        "libraries": [],
        "static_state": "allow",
    }
    # It says the same when it is read again.
    assert section(written["judge"]) == written["judge"]


def test_a_trusted_campaign_can_be_read_again_although_it_has_no_policy():
    resolved = section({"profile": "trusted-codegen"})
    assert resolved["policy"] == {"symbols": [], "libraries": [], "static_state": "allow"}
    assert section(resolved) == resolved


def test_trusted_code_is_what_is_generated_here():
    knobs = {"space": {"kind": "knobs"}}
    problem = matmul(m=8, n=8, k=8)
    assert problem.sketch is not None
    assert section({"profile": "trusted-codegen"}, **knobs)["profile"] == "trusted-codegen"
    with pytest.raises(ConfigError, match="kind knobs, whose C is not generated") as caught:
        section({"profile": "trusted-codegen"}, replace(problem, sketch=None), **knobs)
    assert caught.value.nearest == "standard"


def test_a_projection_is_for_problems_that_have_one():
    projected = SimpleNamespace(name="p", sketch=None, projection=object())
    assert section({"check": "projection"}, projected)["check"] == "projection"
    for without in (SimpleNamespace(name="p"), SimpleNamespace(name="p", projection=None)):
        with pytest.raises(ConfigError, match="the problem p, which has no projection"):
            section({"check": "projection"}, without)


def plugin(tmp_path, keys, judging="", body="pass"):
    text = PLUGIN.replace("{KEYS}", keys).replace("{JUDGING}", judging).replace("{BODY}", body)
    (tmp_path / "mine.py").write_text(text)
    campaign = {**CAMPAIGN, "target": {"name": "mine.py:Mine"}}
    path = tmp_path / "campaign.yaml"
    path.write_text(yaml.safe_dump(campaign))
    return build(read_config(path))


def test_a_target_of_one_s_own_is_told_if_it_asks(tmp_path):
    keys = '{"profile": ("strict",), "policy.symbols": None}'
    built = plugin(tmp_path, keys, ", judging", "self.told = judging")
    assert built.target.told == Judging()
    assert built.resolved["judge"]["policy"] == {"symbols": []}
    assert "judging" not in built.resolved["target"]


def test_a_target_that_is_never_told_may_not_say_that_it_reads(tmp_path):
    with pytest.raises(ConfigError, match=r"names the judge key policy\.symbols and is never told"):
        plugin(tmp_path, '{"profile": ("basic",), "policy.symbols": None}')
    assert plugin(tmp_path, '{"profile": ("basic",)}').resolved["judge"]["profile"] == "basic"


def test_a_roofline_stops_where_the_target_knows_one(monkeypatch):
    def none(name):
        raise BuildError("no compiler, so nothing is judged")

    monkeypatch.setattr("kernelwright.evaluators.cpu.target.find_toolchain", none)
    campaign = {**CAMPAIGN, "stop": {"roofline": 0.9}}
    monkeypatch.setattr(Cpu, "device", None)
    with pytest.raises(ConfigError, match="a known roofline") as caught:
        build(read_config(campaign))
    assert caught.value.path == "stop.roofline"
    known = SimpleNamespace(name="this machine", floor_s=lambda flops, moved_bytes, **how: 1e-9)
    monkeypatch.setattr(Cpu, "device", known)
    plan = build(read_config(campaign)).plan
    assert (plan.stop.roofline, plan.floors_ns) == (0.9, (("8x8x8", 1.0),))


def test_a_profile_is_said_once():
    assert Judging(Profile.STANDARD).policy.profile is Profile.STANDARD
    assert Judging(Profile.STANDARD, policy=Policy(symbols=("x",))).policy == Policy(
        Profile.STANDARD, ("x",)
    )
    with pytest.raises(ValueError, match="expected the profile strict, found standard"):
        Judging(policy=Policy(Profile.STANDARD))
