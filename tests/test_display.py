"""What people are shown."""

from __future__ import annotations

import io
import json

from rich.console import Console

from kernelwright.configs import api
from kernelwright.display.live import LiveRun
from kernelwright.display.plans import check_tasks_text, check_text
from kernelwright.display.runs import summary_text
from kernelwright.search.campaign import Progress

CAMPAIGN = {
    "name": "c",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "random"},
    "budget": {"trials": 8},
}
TOY = """
from dataclasses import replace

from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.types import Knob


def toy():
    return replace(gemm_gpu(m=64, n=64, k=64), knobs=(Knob("a", (1, 2, 4)),), unscheduled=())
"""
FACTS = {
    "host.clock_hz": 4.25e9,
    "host.clock_drift": 1.032,
    "host.likeness": 0.001,
    "host.discarded": 8.0,
    "host.disturbed": 0.0,
    "registers": 3.0,
}


def shown(facts, light=None, served=0):
    best = {"evidence": "measured", "candidate": {"a": 1}, "language": "knobs", "key": "k"}
    best |= {"trial": 0, "log": "", "machine": "m", "facts": facts}
    best |= {"level": 0.985, "least_effect": 0.001}
    empty = dict.fromkeys(("baseline", "stop", "tokens", "replies", "answered_by"))
    empty |= {"failures_by": {}, "unpriced": []}
    zero = dict.fromkeys(
        ("served", "refused", "duplicates", "seconds", "seconds_search", "seconds_confirm"), 0
    )
    lists = {"failures": [], "unconfirmed": [], "by_status": {"ok": 1}}
    zero["served"] = served
    rest = {"claim": "win: 2x", "trials": 1, "finished": True, "out": "o"}
    rest["unanswered"] = {"calls": 0, "tokens": 0, "usd": 0.0}
    rest["speed_of_light"] = light or {"bounds": [], "share": None}
    return summary_text({"best": best, **empty, **zero, **lists, **rest}).splitlines()


def test_a_summary_says_how_near_the_best_is_to_the_speed_of_light():
    assert not any("speed of light" in line for line in shown(FACTS))
    bounds = [
        {"workload": "a", "floor_ns": 2000.0, "limit": "compute"},
        {"workload": "b", "floor_ns": 500.0, "limit": "memory"},
    ]
    lines = shown(FACTS, {"bounds": bounds, "share": 0.25})
    said = "speed of light: 2 us (compute) for a, 0.5 us (memory) for b; the best is at 0.250 of it"
    assert said in lines


def test_a_plan_says_what_is_out_of_reach():
    def lines(**change):
        plan = api.check(CAMPAIGN | change)
        return check_text(plan).splitlines()

    light = "speed of light: 138.9 us (compute); the best of this space is at 0.907 of it"
    assert light in lines()
    without_extents = api.check(CAMPAIGN) | {"workloads": [""]}
    assert check_text(without_extents).startswith("c: gemm_gpu@1 on gpu-model (modelled)\n")
    stop = {"roofline": 0.95, "plateau": 9, "target": {"us": 160}}
    found = lines(stop=stop)
    assert found[0].startswith("WARNING: stop.roofline 0.95 is out of reach")
    assert "stops early at: 0.95 of the roofline, 160 us, 9 trials without a better one" in found
    assert not any("WARNING" in line for line in lines(stop={"roofline": 0.9, "target": 1.4}))
    small = {"name": "matmul", "m": 8, "n": 8, "k": 8}
    for goal, said in (
        ({"us": 150}, "150 us is out of reach: the best of this space is 153.2 us"),
        (50, "50 is out of reach: the best of this space is at 1.452x, 153.2 us against 222.5 us"),
    ):
        assert lines(stop={"target": goal})[0] == f"WARNING: stop.target {said}"
    open_space = lines(problem=small, space={"kind": "schedule"}, target={"name": "cpu-model"})
    assert any("how near candidates come to it is not known" in line for line in open_space)
    unlisted = {"problem": small, "space": {"kind": "schedule"}, "target": {"name": "cpu-model"}}
    for goal, met in (({"us": 1e-6}, False), ({"us": 1e6}, True), (1e9, False), (1.01, True)):
        warned = (
            "is out of reach: the speed of light is" in lines(**unlisted, stop={"target": goal})[0]
        )
        assert warned is not met


def test_what_is_lost_of_a_recording_is_said_by_check_run_and_show(tmp_path):
    header = {"kernel": "toy", "gpu": "none", "n": 64, "knobs": ["a"], "m": 64, "k": 64}
    rows = [{"a": a, "us": [1.0 + a]} for a in (1, 2, 4)]
    text = "\n".join(json.dumps(row) for row in [header, *rows])
    (tmp_path / "cut.jsonl").write_text(text[:-5])
    (tmp_path / "whole.jsonl").write_text(text + "\n")
    (tmp_path / "toy.py").write_text(TOY)
    said = "recording: the last line breaks off: 1 record is lost"
    for name, lost in (("cut", True), ("whole", False)):
        campaign = {
            "name": name,
            "problem": {"name": f"{tmp_path / 'toy.py'}:toy"},
            "target": {"name": "recorded", "landscape": str(tmp_path / f"{name}.jsonl")},
            "driver": {"name": "random"},
            "budget": {"trials": 2},
        }
        ran = api.run(campaign, tmp_path / name)
        texts = [check_text(api.check(campaign)), *map(summary_text, (ran, api.show(ran["out"])))]
        assert [said in text.splitlines() for text in texts] == [lost] * 3
    listed = [
        {"name": name, "target": {"landscape": str(tmp_path / f"{name}.jsonl")}}
        for name in ("cut", "whole")
    ]
    text = check_tasks_text(
        api.check(campaign | {"tasks": {"listed": listed}, "budget": {"trials": 16}})
    )
    lines = [line for line in text.splitlines() if line.startswith("recording")]
    assert lines == [said.replace("recording", "recording of cut")]


def test_a_summary_says_what_was_served():
    assert not any(line.startswith("served") for line in shown({}))
    said = "served: 3 of them from the tuning cache, not judged again"
    assert said in shown({}, served=3)


def test_a_summary_says_what_the_host_did():
    lines = shown(FACTS)
    assert "  registers=3" in lines
    assert (
        "host: clock 4.25 GHz, moved by +3.2% since the sitting began, identical kernels seem 0.1% "
        "apart, 8 disturbed pairs of calls taken again" in lines
    )
    said = "decided: by the interval at 98.5%, 0.1% beyond 1, as the error rate is shared"
    assert said in lines
    kept = shown(FACTS | {"host.disturbed": 2.0})
    assert any(line.endswith("2 kept for want of better ones") for line in kept)
    assert not any(line.startswith("host:") for line in shown({"registers": 3.0}))


def test_a_race_is_one_line_a_round():
    out = io.StringIO()
    with LiveRun(Console(file=out, width=200), "c") as live:
        live(Progress("search", 8, 8, 8, {"ok": 8}, None, 1.0))
        for done in range(1, 4):
            live(Progress("race", done, 3, 8, {"ok": 8}, None, 2.0))
        live(Progress("confirm", 1, 3, 8, {"ok": 8}, None, 3.0))
    lines = out.getvalue().splitlines()
    assert lines[-2:] == ["3/3 raced, 2.0 s", "1/3 finalists confirmed, 3.0 s"]
    assert len(lines) == 3
