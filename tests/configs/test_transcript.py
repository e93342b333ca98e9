"""A run's questions are written again from its campaign and its record, and what a campaign says of
them is checked before any is asked.
"""

from __future__ import annotations

import json
import shutil

import pytest

from kernelwright.agents.chat import digest
from kernelwright.agents.questions import in_full
from kernelwright.cli import app
from kernelwright.configs import api
from kernelwright.configs.calls import call_rows
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.transcript import prompt_of
from kernelwright.search.store import DATABASE, SqliteStore


def campaign(**more):
    agents = {"backend": {"name": "mock", "faults": 0.4}} | more.pop("agents", {})
    return {
        "name": "told",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model", "noise": {"lognormal": 0.05}},
        "driver": {"name": "llm"},
        "agents": agents,
        "budget": {"trials": 10},
        "batch": 4,
        **more,
    }


def calls_of(folder):
    with SqliteStore(folder / DATABASE, readonly=True) as store:
        return [e for e in store.events() if e.kind == "model_call"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "a"
    api.run(campaign(), folder)
    return folder


def test_questions_of_several_priced_models_are_written_again(tmp_path):
    backends = {"a": {"name": "mock"}, "b": {"name": "mock", "persona": "swift"}}
    prices = {"mock-swift": {"prompt": 1.0, "completion": 1.0}}
    agents = {"backend": {"name": "ensemble", "backends": backends}, "prices": prices}
    api.run(campaign(agents=agents, budget={"trials": 2}), tmp_path / "run")
    assert prompt_of(tmp_path / "run", "1")["model"] == "ensemble"


def test_every_question_of_a_run_is_written_again_as_it_was(run):
    calls = calls_of(run)
    places = {(each.ask, each.slot): each.data for each in calls}
    kinds = set()
    for number, call in list(enumerate(calls, 1))[::3]:
        found = prompt_of(run, str(number))
        sent = {
            f"message {i} ({m['role']})": digest(m["content"])
            for i, m in enumerate(found["messages"])
        }
        whole = in_full(call.data, lambda *at: places[at])["request"]
        assert all(text.startswith(whole[name]) for name, text in sent.items())
        assert found["answer"] == call.data["completion"]
        assert found == prompt_of(run, f"{call.ask}.{call.slot}")
        kinds |= {event["kind"] for event in found["events"]}
    assert "proposed" in kinds
    assert kinds & {"truncated", "illegal", "duplicate", "wrong_schema", "unparsable"}


def test_a_question_of_a_run_tells_the_machine_and_what_bounds_the_parent(run):
    text = prompt_of(run, "1")["messages"][1]["content"]
    assert "## Device\n\nNVIDIA H100" in text
    assert "no program takes less than" in text
    assert "bound by " in text.partition("## Profile")[2]
    later = prompt_of(run, str(len(calls_of(run))))["messages"][1]["content"]
    assert "- roofline: 0." in later.partition("## Profile")[2].partition("## Results")[0]


def test_the_record_of_an_unfinished_run_is_enough(run, tmp_path):
    whole = [prompt_of(run, str(n)) for n in (1, 3)]
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / "config.yaml").write_bytes((run / "config.yaml").read_bytes())
    with SqliteStore(run / DATABASE, readonly=True) as old, SqliteStore(folder / DATABASE) as new:
        events = old.events()
        last = [i for i, e in enumerate(events) if e.kind == "model_call"][2]
        new.record(events=events[: last + 1])
    for before in whole:
        found = prompt_of(folder, str(before["call"]))
        assert found["messages"] == before["messages"]


@pytest.mark.parametrize("call", ["0", "999", "9.9", "x", "-1", ""])
def test_a_call_that_was_not_made_is_refused(run, call):
    with pytest.raises(ConfigError, match="a call from 1 to"):
        prompt_of(run, call)


def test_a_run_that_asked_no_model_has_no_questions(tmp_path):
    plain = campaign(driver={"name": "random"})
    del plain["agents"]
    api.run(plain, tmp_path / "b")
    with pytest.raises(ConfigError, match="expected a run with calls"):
        prompt_of(tmp_path / "b", "1")


def test_a_run_of_another_version_of_the_prompt_says_so(run, tmp_path, monkeypatch):
    from kernelwright.agents.context import prompter

    monkeypatch.setattr(prompter, "without_secrets", lambda m, s: tuple((r, t + "!") for r, t in m))
    with pytest.raises(ConfigError, match=r"asked again as they were.*call 0: .*message 0"):
        prompt_of(run, "1")


def test_the_command_prints_question_answer_and_what_became_of_it(run, capfd):
    app(["show", str(run), "--prompt", "1"], standalone_mode=False)
    text = capfd.readouterr().out
    assert text.startswith("call 1 of ")
    for part in ("\n[system]\nYou are", "\n[user]\n## Task", "\n[answer: "):
        assert part in text
    app(["show", str(run), "--prompt", "1.0", "--json"], standalone_mode=False)
    told = json.loads(capfd.readouterr().out)
    assert told["call"] == 1
    assert [m["role"] for m in told["messages"]] == ["system", "user"]
    assert app(["show", str(run), "--prompt", "1", "--replay", "0"], standalone_mode=False) == 2


@pytest.mark.parametrize(
    ("agents", "path", "expected"),
    [
        ({"context": {"tokens": 300}}, "agents.context.tokens", "at least"),
        ({"context": {"tokens": 100}}, "agents.context.tokens", "at least 256"),
        ({"context": {"token": 1}}, "agents.context.token", "one of the keys"),
        ({"retrieval": {"pages": ["none.md"]}}, "agents.retrieval.pages", "a text file"),
        ({"retrieval": {"runs": ["none"]}}, "agents.retrieval.runs", "a folder of runs"),
        ({"retrieval": {}}, "agents.retrieval", "something to retrieve"),
        ({"retrieval": {"passages": 0}}, "agents.retrieval.passages", "at least 1"),
        ({"prompt": "none.j2"}, "agents.prompt", "a template"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_asked(agents, path, expected):
    with pytest.raises(ConfigError) as caught:
        api.plan_of(campaign(agents=agents))
    assert caught.value.path == path
    assert expected in caught.value.expected


def test_a_python_without_full_text_search_is_told(monkeypatch):
    from kernelwright.agents.context.library import NoFullTextError
    from kernelwright.configs import context

    def fail():
        raise NoFullTextError("SQLite 3.0 of this Python: no such module: fts5")

    monkeypatch.setattr(context, "check_full_text", fail)
    with pytest.raises(ConfigError, match=r"FTS5.*no such module"):
        api.plan_of(campaign(agents={"retrieval": {}}))


def test_a_resolved_campaign_without_such_sections_is_what_it_was():
    resolved = api.plan_of(campaign()).resolved["agents"]
    assert set(resolved) == {"backend", "prompt"}
    more = {"context": {"tokens": 5000}, "retrieval": {"cache": 2}}
    resolved = api.plan_of(campaign(agents=more)).resolved["agents"]
    assert resolved["context"] == {"tokens": 5000, "device": True, "profile": True}
    assert resolved["retrieval"]["cache"] == 2


def test_a_driver_whose_prompts_take_no_context_refuses_one(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    stopped = None\n"
        "    def __init__(self, space, *, seed, batch, backend):\n"
        "        pass\n"
        "    def ask(self, n):\n        return []\n"
        "    def tell(self, trials):\n        pass\n"
    )
    driver = {"name": f"{tmp_path / 'mine.py'}:Mine"}
    api.plan_of(campaign(driver=driver))
    with pytest.raises(ConfigError, match=r"agents.context: expected a driver whose prompts"):
        api.plan_of(campaign(driver=driver, agents={"context": {"tokens": 5000}}))


def test_every_call_of_a_run_is_listed_with_what_became_of_it(run, capsys):
    rows, calls = call_rows(run), calls_of(run)
    summary = api.show(run)
    assert [row["call"] for row in rows] == list(range(1, summary["calls"] + 1))
    assert [(r["ask"], r["slot"], r["tokens"]) for r in rows] == [
        (c.ask, c.slot, c.tokens) for c in calls
    ]
    judged = [row for row in rows if row["trial"] is not None]
    assert [row["trial"] for row in judged] == list(range(summary["trials"]))
    assert {row["became"] for row in judged} == {"candidate"}
    assert {r["became"] for r in rows} - {"candidate"} <= set(summary["replies"])
    app(["show", str(run), "--calls"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    for row, line in zip(rows, lines[1:], strict=False):
        assert line.split()[:2] == [str(row["call"]), f"{row['ask']}.{row['slot']}"]
        if row["trial"] is not None:
            assert f"trial {row['trial']} {row['status']}" in line
        assert row["reason"] is None or row["reason"].split()[0] in line


def test_a_trial_leads_to_its_call(run):
    row = next(row for row in call_rows(run) if row["trial"] == 4)
    assert prompt_of(run, "trial 4") == prompt_of(run, str(row["call"]))
    with pytest.raises(ConfigError, match="a trial that a model wrote"):
        prompt_of(run, "trial 999")


def test_a_run_of_tasks_has_no_calls_of_its_own(tmp_path):
    listed = {"listed": [{"name": "a"}, {"name": "b"}]}
    api.run(campaign(tasks=listed, budget={"trials": 8}), tmp_path / "t")
    with pytest.raises(ConfigError, match="one of its tasks"):
        call_rows(tmp_path / "t")
    assert call_rows(tmp_path / "t" / "a")


def test_an_edited_template_does_not_hide_what_was_asked(tmp_path):
    own = tmp_path / "my.j2"
    own.write_text("{% extends 'refine.j2' %}{% block hint %}Be brief: {{ hint }}.{% endblock %}")
    api.run(campaign(agents={"prompt": str(own)}), tmp_path / "r")
    before = prompt_of(tmp_path / "r", "2")
    assert "Be brief: " in before["messages"][1]["content"]
    own.write_text("{% extends 'refine.j2' %}{% block hint %}Be long: {{ hint }}.{% endblock %}")
    assert prompt_of(tmp_path / "r", "2") == before
    own.unlink()
    assert prompt_of(tmp_path / "r", "2") == before
    with pytest.raises(ConfigError):
        api.run(campaign(agents={"prompt": str(own)}), tmp_path / "r")


def test_a_run_keeps_the_shipped_templates_too(run, monkeypatch, tmp_path):
    from kernelwright.prompts import render

    before = prompt_of(run, "1")
    shutil.copytree(render.TEMPLATES, tmp_path / "templates")
    edited = tmp_path / "templates" / "refine.j2"
    edited.write_text("{% block user %}Something else.{% endblock %}")
    monkeypatch.setattr(render, "TEMPLATES", tmp_path / "templates")
    render._environment.cache_clear()
    try:
        assert prompt_of(run, "1") == before
    finally:
        render._environment.cache_clear()
