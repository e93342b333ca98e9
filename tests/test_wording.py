"""What the command line says where something is wrong, or is one of its kind."""

from __future__ import annotations

import json
import socket
import sys

import pytest

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.marks import read_action
from kernelwright.cli import main
from kernelwright.configs import api
from kernelwright.configs.catalogue import CATALOGUE, catalogue
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.outlay import Outlay
from kernelwright.env.options import OptionError
from kernelwright.env.words import counted
from kernelwright.prompts.render import PROMPTS, templates
from kernelwright.search.campaign import screened
from kernelwright.search.plan import Budget
from kernelwright.search.spending import Spent, limit_reached


def said(monkeypatch, capsys, *arguments):
    """The exit code of a command and what it wrote on stderr."""
    monkeypatch.setattr(sys, "argv", ["kernelwright", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, capsys.readouterr().err


def test_list_alone_says_what_can_be_listed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kernelwright", "list"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert capsys.readouterr().out.split() == list(CATALOGUE)


def test_every_shipped_prompt_is_described():
    assert set(PROMPTS) == set(templates())
    names = [row["name"] for row in catalogue("prompts")]
    assert names == ["blind", "refine"]


@pytest.mark.parametrize(
    ("option", "near"),
    [
        ({"persona": "hostle"}, "hostile"),
        ({"faults": "fronteer"}, "frontier"),
        ({"faults": {"cheeting": 0.1}}, "cheating"),
    ],
)
def test_the_nearest_persona_profile_or_class_is_named(option, near):
    with pytest.raises(OptionError, match=f"did you mean '{near}'"):
        Mock(seed=0, **option)


def test_a_folder_of_something_else_is_no_place_for_a_run(tmp_path):
    campaign = {
        "name": "c",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "random"},
        "budget": {"trials": 2},
    }
    (tmp_path / "letter.txt").write_text("mine")
    tasks = {"tasks": {"listed": [{"name": "a"}]}, "budget": {"trials": 8}}
    for more in ({}, tasks):
        with pytest.raises(ConfigError, match=r"--out: expected an empty folder.*'letter.txt'"):
            api.run(campaign | more, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "run.lock").write_text("")
    assert api.run(campaign, tmp_path / "begun")["trials"] == 2
    assert api.run(campaign, tmp_path / "begun")["trials"] == 2


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["run", "x.yaml", "--wrong"], "kernelwright run"),
        (["audit", "noise", "--wrong"], "kernelwright audit noise"),
        (["frobnicate"], "kernelwright"),
    ],
)
def test_a_wrong_call_is_sent_to_the_help_of_its_command(monkeypatch, capsys, arguments, command):
    code, text = said(monkeypatch, capsys, *arguments)
    assert code == 2
    assert text.splitlines()[-1] == f"Try '{command} --help'."


def test_a_port_that_is_taken_is_named(monkeypatch, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, text = said(monkeypatch, capsys, "mock-server", "--port", str(port))
    assert code == 2
    assert f"port: expected a port of 127.0.0.1 that is free (0 is any), found {port} (" in text


def test_what_is_expected_and_found_is_said_once(monkeypatch, tmp_path, capsys):
    campaign = {
        "name": "c",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "llm"},
        "agents": {"backend": {"name": "replay", "from": str(tmp_path / "none")}},
        "budget": {"trials": 1},
    }
    (tmp_path / "c.yaml").write_text(json.dumps(campaign))
    _, text = said(monkeypatch, capsys, "check", str(tmp_path / "c.yaml"))
    assert "expected recorded completions, found no run and no folder of recordings at " in text
    assert "found Expecting" not in read_action("{").reason
    assert read_action("{").reason.startswith("expected JSON: ")


def test_one_of_a_kind_is_said_in_the_singular():
    assert [counted(n, "trial") for n in (0, 1, 2)] == ["0 trials", "1 trial", "2 trials"]
    assert screened(1) == "1 candidate was screened"
    assert "about 1 proposal, " in Outlay("m", 1.0, 10, None, 1).sentence
    _, reason = limit_reached(Budget(calls=1), Spent(1))
    assert reason == "1 call of the model was made"
