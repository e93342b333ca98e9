"""Campaigns over spaces of schedules that a program, a template or rules write."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from crash_child import tables

from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.winner import schedule_steps
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.search.drivers import DRIVERS
from kernelwright.search.store import SqliteStore

AUDIT = pytest.mark.audit
CHILD = Path(__file__).resolve().parents[1] / "crash_child.py"
PROGRAM = '''
from kernelwright.env.types import Directive


def space(s):
    """Rows in registers, columns in lanes."""
    io, ii = s.split("i", s.sample_categorical((1, 2, 4, 8), name="rows"))
    jo, jm, ji = s.cut("j", s.sample_perfect_tile("j", 3, 16))
    s.reorder(io, jo, "p", ii, jm, ji)
    s.unroll(ii)
    if s.legal("vectorize", ji):
        s.vectorize(ji)


def template(knobs):
    return [
        Directive("split", "i", (knobs["rows"],)),
        Directive("split", "j", (knobs["lanes"],)),
        Directive("reorder", "io", ("jo", "p", "ii", "ji")),
        Directive("unroll", "ii"),
        Directive("vectorize", "ji"),
    ]


def broken(s):
    s.split("nothing", 4)


NUMBER = 3
'''
SPACES = {
    "sketch": {"sketch": "all"},
    "rules": {"sketch": ["multi_level_tiling", "parallelize_vectorize_unroll"]},
    "problem": {"template": "problem", "constraints": ["mr * nv <= 16"]},
    "template": {
        "template": "mine.py:template",
        "knobs": {"rows": [1, 2, 4, 8, 16], "lanes": [2, 4, 8, 16, 32]},
        "constraints": ["rows * lanes <= 256"],
    },
    "program": {"program": "mine.py:space"},
}
DRIVEN = ("random", "evolution", "auto", "annealing", "cost_model", "beam", "mcts")


def written(folder, space, driver="evolution", trials=16, **more):
    """A campaign file beside the functions that it names."""
    (folder / "mine.py").write_text(PROGRAM)
    campaign = {
        "name": "written",
        "problem": {"name": "matmul", "m": 32, "n": 64, "k": 16},
        "space": {"kind": "schedule", **space},
        "target": {"name": "cpu-model"},
        "driver": {"name": driver},
        "budget": {"trials": trials},
        "batch": 4,
        "seed": 3,
        **more,
    }
    path = folder / "written.yaml"
    path.write_text(yaml.safe_dump(campaign))
    return path


def payloads(folder):
    """The candidates of a run as they are stored, decisions and all."""
    store = SqliteStore(folder / "run.sqlite")
    found = [trial.candidate.payload for trial in store.trials()]
    store.close()
    return found


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(
    "driver",
    [
        name if name in ("random", "evolution", "auto") else pytest.param(name, marks=AUDIT)
        for name in DRIVEN
        if name in DRIVERS
    ],
)
def test_every_driver_searches_every_kind_of_space(tmp_path, space, driver):
    path = written(tmp_path, SPACES[space], driver)
    summary = api.run(path, tmp_path / "a", workers=2)
    assert summary["trials"] == 16
    # How fast they are is the model's affair; that all of them can be judged is the space's.
    assert set(summary["by_status"]) <= {"ok", "win", "tie", "loss"}
    api.run(path, tmp_path / "b")
    assert tables(tmp_path / "a") == tables(tmp_path / "b")
    stored = payloads(tmp_path / "a")
    assert stored == payloads(tmp_path / "b")
    # A beam goes directive by directive from the plain loops and draws nothing.
    decided = any(step.is_decision for payload in stored for step in payload)
    assert decided == (driver != "beam")


@pytest.mark.parametrize("space", ["sketch", "template"])
def test_a_model_edits_what_a_program_wrote(tmp_path, space):
    agents = {"backend": {"name": "mock"}}
    path = written(tmp_path, SPACES[space], "llm", agents=agents)
    summary = api.run(path, tmp_path / "a")
    assert summary["trials"] == 16
    assert summary["best"]["evidence"] == "modelled"
    api.run(path, tmp_path / "b")
    assert tables(tmp_path / "a") == tables(tmp_path / "b")


@pytest.mark.parametrize(
    ("space", "driver", "at"),
    [("program", "evolution", 9), ("sketch", "evolution", 6), ("template", "auto", 11)],
)
def test_a_killed_search_ends_bit_equal(tmp_path, space, driver, at):
    path = written(tmp_path, SPACES[space], driver)
    command = [sys.executable, "-P", str(CHILD), str(path), str(tmp_path / "a"), "commit", str(at)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    api.run(path, tmp_path / "a", workers=3)
    api.run(path, tmp_path / "b")
    assert tables(tmp_path / "a") == tables(tmp_path / "b")
    assert payloads(tmp_path / "a") == payloads(tmp_path / "b")


def test_a_killed_search_with_all_directives_ends_bit_equal(tmp_path):
    path = written(tmp_path, {"directives": "all"}, trials=12)
    command = [sys.executable, "-P", str(CHILD), str(path), str(tmp_path / "a"), "commit", "7"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    api.run(path, tmp_path / "a", workers=3)
    summary = api.run(path, tmp_path / "b")
    assert tables(tmp_path / "a") == tables(tmp_path / "b")
    assert summary["trials"] == 12
    core = {"split", "unroll", "vectorize", "parallel", "fuse", "reorder"}
    assert {step.op for payload in payloads(tmp_path / "b") for step in payload} - core


def test_a_run_s_config_can_be_run_elsewhere(tmp_path):
    path = written(tmp_path, SPACES["program"])
    api.run(path, tmp_path / "a")
    resolved = yaml.safe_load((tmp_path / "a" / "config.yaml").read_text())
    mine = tmp_path / "mine.py"
    assert resolved["space"] == {"kind": "schedule", "program": f"{mine}:space"}
    assert str(mine) in resolved["hashes"]
    assert api.run(tmp_path / "a" / "config.yaml", tmp_path / "b")["trials"] == 16
    assert tables(tmp_path / "a") == tables(tmp_path / "b")
    # Another program is another campaign.
    mine.write_text(PROGRAM.replace("(1, 2, 4, 8)", "(1, 2)"))
    with pytest.raises(ConfigError, match="hashes"):
        api.run(tmp_path / "a" / "config.yaml", tmp_path / "c")


def test_what_is_shown_of_a_winner_are_its_directives(tmp_path):
    api.run(written(tmp_path, SPACES["problem"]), tmp_path / "a")
    best = json.loads((tmp_path / "a" / "best.json").read_text())
    trace = parse_trace(best["candidate"])
    assert {d.target for d in trace if d.is_decision} == {"mr", "nv", "lanes", "kc", "outer"}
    rows = schedule_steps(tmp_path / "a")
    shown = [parse_trace(row["directive"])[0] for row in rows[1:]]
    assert shown == [d for d in trace if not d.is_decision]
    with sqlite3.connect(tmp_path / "a" / "run.sqlite") as db:
        assert db.execute("SELECT count(*) FROM trials").fetchone() == (16,)
    db.close()


@pytest.mark.parametrize(
    ("space", "path", "expected", "found"),
    [
        ({"program": "mine.py:space", "sketch": "all"}, "space.sketch", "one of program", "and"),
        ({"program": "space"}, "space.program", "file.py:function", "'space'"),
        ({"program": "mine.py:nothing"}, "space.program", "a name in mine.py", "'nothing'"),
        ({"program": "mine.py:NUMBER"}, "space.program", "a function", "which is a int"),
        ({"program": "none.py:space"}, "space.program", "a Python file", "No such file"),
        ({"program": "mine.py:broken"}, "space.program", "may be applied", "split('nothing', 4)"),
        ({"program": "mine.py:space", "knobs": {"a": [1]}}, "space.knobs", "a template", "knobs"),
        ({"sketch": "all", "constraints": ["a < 1"]}, "space.constraints", "a template", "cons"),
        ({"template": "problem", "knobs": {"a": [1]}}, "space.knobs", "of your own", "knobs"),
        ({"sketch": ["auto_inlin"]}, "space.sketch", "auto_inline, ", "'auto_inlin'"),
        ({"sketch": "some"}, "space.sketch", "all", "'some'"),
        ({"template": "mine.py:template"}, "space", "'knobs'", "none"),
        ({"template": "own"}, "space.template", "problem, a dotted path", "'own'"),
        (
            {"template": "mine.py:template", "knobs": {"rows": [2]}},
            "space.template",
            "",
            "KeyError",
        ),
        (
            {"template": "mine.py:template", "knobs": {"rows": [2, 2]}},
            "space.knobs.rows",
            "a knob",
            "twice",
        ),
        ({"template": "problem", "constraints": ["zz < 1"]}, "space.constraints.0", "", "zz"),
        ({"file": "kernel.c"}, "space.file", "program, sketch, template", "'file'"),
    ],
)
def test_spaces_that_cannot_be_are_refused(tmp_path, space, path, expected, found):
    with pytest.raises(ConfigError) as error:
        api.check(written(tmp_path, space))
    assert error.value.path == path
    assert expected in error.value.expected
    assert found in error.value.found


def test_a_problem_without_a_template_needs_one(tmp_path):
    blur = {"problem": {"name": "blur", "h": 16, "w": 16}}
    with pytest.raises(ConfigError, match="a function of your own, because blur has no template"):
        api.check(written(tmp_path, {"template": "problem"}, **blur))
    with pytest.raises(ConfigError, match=r"space.program: .*kind knobs"):
        api.check(written(tmp_path, {"kind": "knobs", "program": "mine.py:space"}))
