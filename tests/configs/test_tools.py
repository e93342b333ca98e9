"""A campaign as tools: the same judge, budget and record as any campaign, fed from outside."""

from __future__ import annotations

import json
import subprocess
import sys
import threading

import pytest

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.tools.desk import MOST_WRITTEN, Desk
from kernelwright.configs.tools.session import Refused, Session
from kernelwright.configs.tools.tool import TOOLS
from kernelwright.configs.tools.views import MOST_TEXT, clipped, plain
from kernelwright.display.runs import summary_text
from kernelwright.search.store import DATABASE, SqliteStore

ON_A_MODEL = """
name: fed
problem: {name: gemm_gpu, m: 512, n: 512, k: 512}
target: {name: gpu-model}
driver: {name: evolution, population: 16}
judge: {confirm: {finalists: 2, process_pairs: 2, pairs: 2}}
budget: {trials: 6}
seed: 3
"""
SCHEDULES = """
name: scheduled
problem: {name: matmul, m: 16, n: 16, k: 16}
space: {kind: schedule}
target: {name: cpu-model}
driver: {name: random}
budget: {trials: 4}
"""
ON_THE_CPU = """
name: measured
problem: {name: row_sum, rows: 8, cols: 16}
space: {kind: source}
target: {name: cpu}
driver: {name: llm}
agents: {backend: {name: mock}}
judge: {screen: {pairs: 1}, race: {rounds: 0}, confirm: {finalists: 1, process_pairs: 2, pairs: 1}}
budget: {trials: 8}
"""
GOOD = {"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}
CALL = {tool.name: tool for tool in TOOLS}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "fed.yaml"
    path.write_text(ON_A_MODEL)
    return path


@pytest.fixture
def open_session(tmp_path, config):
    opened = []

    def make(text=None, out="run", **options):
        path = config
        if text is not None:
            path = tmp_path / "other.yaml"
            path.write_text(text)
        session = Session(path, tmp_path / out, **options)
        opened.append(session)
        return session, Desk(session, lambda: "tester 1")

    yield make
    for session in opened:
        session.close()


def call(desk, tool, **arguments):
    answer = CALL[tool].call(desk, arguments)
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    answer_text = json.dumps(answer, ensure_ascii=False)
    answer_text.encode()
    return answer


def different(**changes):
    return {**GOOD, **changes}


def test_a_campaign_says_what_it_is_about(open_session):
    _, desk = open_session()
    said = call(desk, "campaign")
    assert said["problem"]["name"] == "gemm_gpu@1"
    assert said["budget"] == {"trials": 6}
    assert "`stages`: one of" in said["how_to_write"]
    assert json.loads(said["start_from"]) == GOOD
    assert said["standing"]["left"] == {"trials": 6}


def test_submitting_judges_and_costs_a_trial(open_session):
    _, desk = open_session()
    first = call(desk, "submit", candidate=GOOD)
    assert first["judged"]
    assert first["trial"]["status"] == "ok"
    assert (first["trial"]["basis"], first["trial"]["proposer"]) == ("screened", "tester 1")
    assert first["standing"]["left"] == {"trials": 5}
    child = call(desk, "submit", candidate=json.dumps(different(bk=64)), parent=0)
    assert child["trial"]["parents"] == [first["trial"]["key"]]
    assert child["standing"]["trials"] == 2


def test_a_verdict_has_what_a_prompt_says_of_its_parent(open_session):
    _, desk = open_session()
    told = call(desk, "submit", candidate=different(stages=2))["trial"]
    (again,) = call(desk, "verdicts", trials=[told["trial"]])["trials"]
    assert again == told
    assert {"registers", "waves", "occupancy"} <= told["facts"].keys()
    assert not any(name.endswith("_s") for name in told["facts"])
    assert "bound by" in told["log"]
    assert any(line.startswith("roofline:") for line in told["profile"])
    assert any(line.startswith("registers:") for line in told["profile"])


def test_what_is_no_candidate_costs_nothing_and_says_why(open_session):
    _, desk = open_session()
    unknown = call(desk, "submit", candidate=different(bm=33))
    assert not unknown["judged"]
    assert "33" in unknown["faults"][0]
    assert not call(desk, "submit", candidate="{")["judged"]
    call(desk, "submit", candidate=GOOD)
    again = call(desk, "submit", candidate=GOOD)
    assert (again["judged"], again["trial"]["trial"]) == (False, 0)
    standing = again["standing"]
    assert (standing["trials"], standing["refused"], standing["duplicates"]) == (1, 2, 1)


def test_checking_and_estimating_spend_nothing(open_session):
    _, desk = open_session()
    assert call(desk, "check", candidate=GOOD)["legal"]
    refused = call(desk, "check", candidate=different(bm=256, bn=256, bk=128, stages=5))
    assert not refused["legal"]
    assert refused["faults"]
    estimate = call(desk, "estimate", candidate=GOOD)
    # The target is a model, so what it says is a verdict.
    assert "submit" in estimate["model"]
    assert estimate["facts"]["intensity"] > 0
    assert call(desk, "leaderboard")["standing"]["trials"] == 0


def test_what_trials_predict_needs_some_and_says_how_well_it_fits(open_session):
    _, desk = open_session(ON_A_MODEL.replace("trials: 6", "trials: 20"))
    for bk in (16, 32, 64):
        for warps in (4, 8):
            call(desk, "submit", candidate=different(bk=bk, warps=warps))
    learned = call(desk, "estimate", candidate=different(stages=2))["learned"]
    assert learned["trials"] >= 6
    assert learned["typical_error"] >= 1
    assert learned["speedup"] > 0


def test_schedules_are_written_as_python(open_session):
    _, desk = open_session(SCHEDULES)
    said = call(desk, "campaign")
    assert "split(" in said["how_to_write"]
    assert "void matmul(" in said["c_interface"]
    bare = call(desk, "check", candidate="unroll('p')\n")
    fenced = call(desk, "check", candidate="Try this:\n```python\nunroll('p')\n```\n")
    assert bare == fenced
    assert bare["legal"]
    assert call(desk, "check", candidate="import os\n")["legal"] is False


@pytest.mark.cc
def test_schedules_for_this_machine_are_estimated_by_the_model_of_another(open_session):
    _, desk = open_session(SCHEDULES.replace("cpu-model", "cpu"))
    plain_loops = call(desk, "estimate", candidate="")["model"]
    assert plain_loops["speedup"] == pytest.approx(1.0)
    assert "another" in plain_loops["machine"]
    unrolled = call(desk, "estimate", candidate="unroll('p')\n")
    assert unrolled["model"]["time_us"] > 0
    assert "trials ran" in unrolled["learned"]
    assert call(desk, "leaderboard")["standing"]["trials"] == 0


@pytest.mark.cc
def test_c_is_built_checked_and_timed_on_this_machine(open_session):
    _, desk = open_session(ON_THE_CPU)
    start = call(desk, "campaign")["start_from"]
    good = call(desk, "submit", candidate=start)["trial"]
    assert (good["status"], list(good["times_us"])) == ("ok", ["8x16"])
    wrong = call(desk, "submit", candidate=start.replace("+=", "-="))["trial"]
    assert (wrong["status"], wrong["speedup"]) == ("wrong", None)
    text = "void row_sum(void) { return 1 +; } // \u202e\x1b[2J"
    broken = call(desk, "submit", candidate=f"```c\n{text}\n```")["trial"]
    assert broken["status"] == "build_error"
    assert "error" in broken["log"] + broken["evidence"]
    done = call(desk, "finish", wait=600)
    assert done["standing"]["state"] == "finished"
    assert done["rows"][0]["basis"] == "confirmed"


def test_the_end_of_the_budget_confirms(open_session, tmp_path):
    session, desk = open_session(overrides=["budget.trials=2"])
    call(desk, "submit", candidate=GOOD)
    last = call(desk, "submit", candidate=different(bk=64))
    assert last["standing"]["left"] == {"trials": 0}
    done = call(desk, "finish")
    assert done["standing"]["stop"]["rule"] == "trials"
    assert done["standing"]["state"] == "finished"
    assert done["confirmed"]
    top = done["rows"][0]
    assert (top["basis"], top["status"]) == ("confirmed", done["standing"]["best"]["status"])
    assert top["ci_low"] <= top["speedup"] <= top["ci_high"]
    with pytest.raises(Refused, match="finished"):
        call(desk, "submit", candidate=different(bk=16))
    session.close()
    assert api.show(tmp_path / "run")["finished"]
    assert (tmp_path / "run" / "best.json").is_file()


def test_a_stopped_run_is_gone_on_with_by_the_same_command(open_session, tmp_path):
    session, desk = open_session()
    call(desk, "submit", candidate=GOOD)
    session.close()
    assert "not finished: the same `mcp` goes on" in summary_text(api.show(tmp_path / "run"))


def test_a_client_may_end_the_search_early(open_session):
    _, desk = open_session()
    call(desk, "submit", candidate=GOOD)
    done = call(desk, "finish")
    assert done["standing"]["stop"]["rule"] == "driver"
    assert done["standing"]["state"] == "finished"
    assert call(desk, "finish") == done


def test_a_session_goes_on_where_it_was(open_session, tmp_path):
    session, desk = open_session()
    before = call(desk, "submit", candidate=GOOD)
    call(desk, "submit", candidate="nonsense")
    session.close()
    _, desk = open_session()
    assert call(desk, "submit", candidate=GOOD)["reason"].endswith("trial 0")
    (trial,) = call(desk, "verdicts")["trials"]
    assert trial == before["trial"]
    after = call(desk, "submit", candidate=different(bk=64))
    assert after["standing"]["trials"] == 2


def test_sittings_leave_no_trace_in_the_record(open_session, tmp_path):
    def recorded(out, sittings):
        for bks in sittings:
            session, desk = open_session(out=out)
            for bk in bks:
                call(desk, "submit", candidate=different(bk=bk))
            session.close()
        session, desk = open_session(out=out)
        call(desk, "finish")
        session.close()
        with SqliteStore(tmp_path / out / DATABASE, readonly=True) as store:
            return store.trials(), store.events()

    assert recorded("once", [[16, 32, 64]]) == recorded("thrice", [[16], [], [32, 64]])


def test_a_larger_budget_goes_on_where_the_budget_ended(open_session):
    session, desk = open_session(overrides=["budget.trials=1"])
    call(desk, "submit", candidate=GOOD)
    assert call(desk, "finish")["standing"]["state"] == "finished"
    session.close()
    _, desk = open_session(overrides=["budget.trials=2"])
    assert call(desk, "submit", candidate=different(bk=64))["judged"]
    done = call(desk, "finish")["standing"]
    assert (done["state"], done["trials"]) == ("finished", 2)


def test_a_finished_run_is_shown_and_takes_nothing(open_session):
    session, desk = open_session()
    call(desk, "submit", candidate=GOOD)
    done = call(desk, "finish")
    session.close()
    _, desk = open_session()
    assert call(desk, "leaderboard")["rows"] == done["rows"]
    assert call(desk, "finish")["standing"]["state"] == "finished"
    with pytest.raises(Refused, match="finished"):
        call(desk, "submit", candidate=different(bk=64))


def test_what_was_handed_in_and_not_judged_is_judged_next_time(open_session, tmp_path, monkeypatch):
    from kernelwright.evaluators.gpu_model import GpuModel

    session, desk = open_session()
    call(desk, "submit", candidate=GOOD)
    real = GpuModel.evaluate

    def dies(self, requests):
        raise OSError("the machine went away")

    monkeypatch.setattr(GpuModel, "evaluate", dies)
    with pytest.raises(Refused, match="the machine went away"):
        call(desk, "submit", candidate=different(bk=64))
    with pytest.raises(Refused, match="the campaign failed"):
        call(desk, "submit", candidate=different(bk=16))
    assert call(desk, "leaderboard")["standing"]["state"] == "failed"
    session.close()
    monkeypatch.setattr(GpuModel, "evaluate", real)
    _, desk = open_session()
    call(desk, "submit", candidate=different(bk=16))
    numbers = {t["candidate"]: t["trial"] for t in call(desk, "verdicts")["trials"]}
    assert [json.loads(text)["bk"] for text in numbers] == [32, 64, 16]


def test_the_record_is_any_campaign_s(open_session, tmp_path):
    session, desk = open_session()
    call(desk, "submit", candidate=GOOD)
    call(desk, "submit", candidate=different(bk=64))
    session.close()
    run = tmp_path / "run"
    shown = api.show(run)
    assert (shown["trials"], shown["finished"]) == (2, False)
    # `run` has nobody to ask, so it confirms what was handed in.
    summary = api.run(run / "config.yaml", run)
    assert summary["trials"] == 2
    assert summary["best"]["status"] in ("win", "tie", "loss")
    assert "handed in" in summary["stop"]["reason"]
    with SqliteStore(run / DATABASE, readonly=True) as store:
        submitted = [e.data["proposer"] for e in store.events() if e.kind == "submitted"]
    assert submitted == ["tester 1", "tester 1"]


def test_a_judge_that_takes_long_is_heard_later(open_session, monkeypatch):
    from kernelwright.evaluators.gpu_model import GpuModel

    _, desk = open_session(overrides=["budget.trials=2"])
    call(desk, "submit", candidate=GOOD)
    real, may_go_on = GpuModel.evaluate, threading.Event()

    def evaluate(self, requests):
        assert may_go_on.wait(30)
        return real(self, requests)

    monkeypatch.setattr(GpuModel, "evaluate", evaluate)
    late = call(desk, "submit", candidate=different(bk=64), wait=0.01)
    assert (late["judged"], late["standing"]["trials"]) == (False, 1)
    assert "still at work" in late["reason"]
    # Who looks meanwhile does not wait.
    assert len(call(desk, "leaderboard")["rows"]) == 1
    assert call(desk, "finish", wait=0.01)["standing"]["state"] == "open"
    may_go_on.set()
    assert call(desk, "finish")["standing"]["state"] == "finished"
    assert [t["trial"] for t in call(desk, "verdicts")["trials"]] == [0, 1]


def test_another_campaign_s_folder_is_refused(open_session):
    session, _ = open_session()
    session.close()
    with pytest.raises(ConfigError, match="seed"):
        open_session(overrides=["seed=4"])


def test_a_budget_of_calls_buys_no_trial(open_session):
    with pytest.raises(ConfigError, match="trials or seconds"):
        open_session(ON_A_MODEL.replace("trials: 6", "calls: 6"))


def test_many_tasks_are_refused(open_session):
    with pytest.raises(ConfigError, match="one task"):
        Session("serving_small")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("submit", {}, "candidate"),
        ("submit", {"candidate": 7}, "candidate"),
        ("submit", {"candidate": GOOD, "parent": -1}, "parent"),
        ("submit", {"candidate": GOOD, "parent": 4}, "nothing was judged"),
        ("submit", {"candidate": GOOD, "path": "/etc/passwd"}, "path"),
        ("submit", {"candidate": {"x": "y" * 500_000}}, "at most"),
        ("verdicts", {"trials": [99]}, "none, as nothing was judged"),
        ("verdicts", {"latest": 10**9}, "latest"),
        ("leaderboard", {"most": "all"}, "most"),
        ("problem", {"name": "/etc/passwd"}, "expected one of"),
        ("problem", {"name": "os.system"}, "expected one of"),
        ("problem", {"name": "x.py:y"}, "expected one of"),
        ("estimate", {"candidate": "{"}, "unparsable"),
    ],
)
def test_hostile_arguments_are_refused_by_name(open_session, tool, arguments, said):
    _, desk = open_session()
    with pytest.raises(Refused, match=said):
        call(desk, tool, **arguments)


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MOST_WRITTEN + 1),
        '{"bm": NaN}',
        '{"bm": "\\ud800"}',
        "\ud800",
        "[" * 50_000,
        '{"bm": ' + "9" * 5000 + "}",
        '"}]}\n{"jsonrpc": "2.0", "id": 1, "result": {}}\n',
        "```json\n{}\n```\n```json\n{}\n```",
        "\x00\x1b[2J",
        "",
    ],
)
def test_hostile_candidates_are_answered_in_plain_json(open_session, text):
    _, desk = open_session()
    assert not call(desk, "check", candidate=text)["legal"]
    answer = call(desk, "submit", candidate=text)
    assert not answer["judged"]
    assert answer["standing"]["trials"] == 0


def test_problems_are_those_of_the_table(open_session):
    _, desk = open_session()
    listed = [row["name"] for row in call(desk, "problems")["problems"]]
    assert {"matmul", "gemm_gpu", "recorded_kernel"} <= set(listed)
    # Of this one even the tensors are those of a file that a campaign names.
    with pytest.raises(Refused, match="only a campaign says"):
        call(desk, "problem", name="recorded_kernel")
    for name in set(listed) - {"recorded_kernel"}:
        assert call(desk, "problem", name=name)["tensors"]
    assert call(desk, "problem", name="gemm_gpu")["is_campaign"]
    assert "void softmax(" in call(desk, "problem", name="softmax")["c_interface"]


def test_thinking_time_is_not_the_campaign_s(open_session, monkeypatch):
    session, desk = open_session(ON_A_MODEL.replace("trials: 6", "seconds: 1000"))
    call(desk, "submit", candidate=GOOD)
    session._watch._sum += 5.0
    spent = call(desk, "submit", candidate=different(bk=64))["standing"]
    assert 5.0 <= spent["judging_seconds"] < 100
    assert spent["left"]["seconds"] == pytest.approx(1000 - spent["judging_seconds"])
    assert session._watch() == session._watch()


def test_views_are_bounded_and_plain():
    assert plain({"a": float("inf"), "b": ["\ud800", 1, True, None]}) == {
        "a": None,
        "b": ["?", 1, True, None],
    }
    long = clipped("a" * 10 * MOST_TEXT)
    assert len(long) < MOST_TEXT + 100
    assert clipped("short") == "short"


def test_every_tool_says_what_it_does_and_takes():
    for tool in TOOLS:
        assert len(tool.description) > 40
        assert tool.schema["type"] == "object"
        assert tool.schema["additionalProperties"] is False
    assert {tool.name for tool in TOOLS if not tool.reads_only} == {"submit", "finish"}


@pytest.mark.parametrize("absent", ["mcp", "anyio"])
def test_the_command_says_how_to_get_what_it_lacks(config, absent):
    code = f"import sys; sys.modules[{absent!r}] = None; from kernelwright.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code, "mcp", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert "pip install 'kernelwright[mcp]'" in run.stderr
