"""What people are shown."""

from __future__ import annotations

import io
import json

from rich.console import Console

from kernelwright.cli import app
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


def shown(facts, light=None, served=0, failures=()):
    best = {"evidence": "measured", "candidate": {"a": 1}, "language": "knobs", "key": "k"}
    best |= {"trial": 0, "log": "", "machine": "m", "facts": facts}
    best |= {"level": 0.985, "least_effect": 0.001}
    empty = dict.fromkeys(("baseline", "stop", "calls", "tokens", "replies", "answered_by"))
    empty |= {"failures_by": {}, "unpriced": []}
    zero = dict.fromkeys(
        ("served", "refused", "duplicates", "seconds", "seconds_search", "seconds_confirm"), 0
    )
    lists = {"failures": failures, "unconfirmed": [], "by_status": {"ok": 1}}
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
            live(Progress("race", done, 3, 8, {"ok": 8}, None, 2.0, note="round 2"))
        live(Progress("confirm", 1, 3, 8, {"ok": 8}, None, 3.0))
    lines = out.getvalue().splitlines()
    assert lines[-2:] == ["race, round 2: 3/3 timed, 2.0 s", "1/3 finalists confirmed, 3.0 s"]
    assert len(lines) == 3


FAILS_ONCE = """
from kernelwright.agents.chat import BackendError, Completion


class Model:
    def __init__(self):
        self.model, self.priced, self.missing, self.calls = "slow", False, (), 0

    def complete(self, request):
        self.calls += 1
        if self.calls == 1:
            raise BackendError("transient", "503 busy", after_s=0.0)
        return Completion("nothing", "stop", "slow", request.key, None, 90, 10)
"""


def watched(tmp_path, **options):
    """A run that asks a model three times, the first time twice: what was shown 31 s after each
    notice, and what was printed in all.
    """
    (tmp_path / "slow.py").write_text(FAILS_ONCE)
    backend = {"name": f"{tmp_path / 'slow.py'}:Model", "limits": {"retries": 2}}
    campaign = CAMPAIGN | {"driver": {"name": "llm"}, "agents": {"backend": backend}}
    out, now, shots = io.StringIO(), [0.0], []
    console = Console(file=out, width=80, height=24, **options)
    with LiveRun(console, "c", lambda: now[0]) as live:

        def observe(progress):
            live(progress)
            now[0] += 31
            paper = Console(width=80)
            with paper.capture() as found:
                paper.print(live.panel())
            shots.append(found.get())

        api.run(campaign | {"budget": {"trials": 8, "calls": 3}}, tmp_path / "r", observe=observe)
    return shots, out.getvalue()


def test_a_terminal_shows_a_model_that_thinks(tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    shots, printed = watched(tmp_path, force_terminal=True)
    assert "call 1 of 3, 0 tokens, waiting 31 s" in shots[0]
    assert "call 1 of 3, 0 tokens, waiting 62 s, tried again 1 time (503 busy)" in shots[1]
    assert "1 call of 3, 100 tokens" in shots[2]
    assert "call 2 of 3, 100 tokens, waiting 31 s" in shots[3]
    assert "call 3 of 3, 200 tokens " in printed
    assert all(len(line) <= 80 for shot in shots for line in shot.splitlines())


def test_a_pipe_gets_a_line_for_some_calls(tmp_path):
    _, printed = watched(tmp_path)
    assert printed.splitlines()[:3] == [
        "call 1 of 3, 0 tokens",
        "call 1 of 3, 0 tokens, waiting 31 s, tried again 1 time (503 busy)",
        "call 2 of 3, 100 tokens",
    ]
    assert sum(line.startswith("call ") for line in printed.splitlines()) == 3


def test_tasks_count_the_calls_of_all(tmp_path):
    listed = [{"name": "a"}, {"name": "b", "problem": {"m": 512}}]
    campaign = CAMPAIGN | {"driver": {"name": "llm"}, "agents": {"backend": {"name": "mock"}}}
    campaign |= {"tasks": {"listed": listed}, "budget": {"trials": 20}, "batch": 4}
    seen = []
    api.run(campaign, tmp_path / "r", observe=seen.append)
    assert any(p.calls is not None and p.calls.is_waiting for p in seen)
    assert seen[-1].calls.spent.calls == api.show(tmp_path / "r")["calls"]


def test_kinds_of_failure_that_are_not_shown_are_counted():
    def lines(count):
        row = {"status": "wrong", "count": 1, "trial": 0, "evidence": "off", "log": ""}
        failures = [{**row, "code": f"c{n}"} for n in range(count)]
        return shown({}, failures=failures)

    assert "  and 1 more kind (--json has all)" in lines(6)
    assert "  and 3 more kinds (--json has all)" in lines(8)
    assert not any("more kind" in line for line in lines(5))


def test_only_a_run_that_was_finished_says_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "c.yaml").write_text(json.dumps(CAMPAIGN))
    monkeypatch.chdir(tmp_path)
    command = ["run", "c.yaml", "--set", "budget={seconds: 0.000001}"]
    for already in (False, True):
        app(command, standalone_mode=False)
        assert ("already finished" in capsys.readouterr().out) is already
