"""What a campaign made of a simulated model's faults, as a table."""

from __future__ import annotations

import json

import pytest
from contracts import judged

from kernelwright.agents.programmer.faults import FILED_AS
from kernelwright.agents.report import OK, is_sound, matrix_lines, simulated
from kernelwright.configs import api
from kernelwright.display.model import model_lines
from kernelwright.display.runs import summary_text
from kernelwright.page import wrapped

CAMPAIGN = {
    "name": "faulty",
    "problem": {"name": "gemm_gpu"},
    "target": {"name": "gpu-model"},
    "driver": {"name": "llm"},
    "agents": {"backend": {"name": "mock", "faults": "frontier"}, "prompt": "refine"},
    "budget": {"trials": 24, "calls": 60},
    "seed": 2,
}


def rows_of(found):
    return {(row["injected"], row["filed_as"]): row["count"] for row in found["rows"]}


@pytest.mark.parametrize("name", ["knobs", "schedule"])
def test_every_fault_is_filed_as_what_it_is(worlds, recording, name):
    world, seen = worlds[name], set()
    for seed in range(6):
        journal = recording()
        driver = world.driver(journal, seed=seed, faults="frontier")
        _, trials = world.play(driver, asks=12)
        found = simulated(journal.events, trials)
        assert [row for row in found["rows"] if not row["sound"]] == []
        calls = sum(event.kind == "model_call" for event in journal.events)
        assert sum(row["count"] for row in found["rows"]) == calls
        assert found["believed"] == {}
        seen |= {row["injected"] for row in found["rows"]}
    assert {"illegal", "duplicate", "syntax", "wrong_schema", "truncated", OK} <= seen


@pytest.mark.parametrize("agent", ["team", "tool_loop", "evolve"])
def test_a_fault_in_what_is_no_program_is_filed_as_what_that_is(worlds, recording, agent):
    faults = {"cheating": 0.3, "illegal": 0.1, "wrong_answer": 0.1, "duplicate": 0.1}
    world, filed = worlds["knobs"], set()
    for seed in range(2):
        journal = recording()
        driver = world.driver(journal, agent=agent, seed=seed, faults=faults)
        _, trials = world.play(driver, asks=5)
        found = simulated(journal.events, trials)
        assert [row for row in found["rows"] if not row["sound"]] == []
        assert found["believed"] == {}
        filed |= {row["filed_as"] for row in found["rows"] if row["injected"] == "cheating"}
    assert filed & {"plan", "review", "action"}


def test_a_campaign_without_faults_has_no_matrix(worlds, recording):
    journal = recording()
    _, trials = worlds["knobs"].play(worlds["knobs"].driver(journal), asks=3)
    assert simulated(journal.events, trials) is None


def test_a_run_and_a_look_at_it_print_the_matrix(tmp_path):
    summary = api.run(CAMPAIGN, tmp_path / "run")
    again = api.show(tmp_path / "run")
    assert again["simulated"] == summary["simulated"]
    assert json.loads(json.dumps(summary["simulated"])) == summary["simulated"]
    lines = summary_text(summary).splitlines()
    at = lines.index("faults that the simulated model injected -> what they were filed as:")
    counts = rows_of(summary["simulated"])
    truths = {truth for truth, _ in counts}
    read = {}
    for line in lines[at + 1 : at + 1 + len(truths)]:
        (truth, total), filed = line.partition("->")[0].split(), line.partition("->")[2]
        cells = [cell.split() for cell in filed.split(",")]
        read |= {(truth, name): int(count) for count, name in cells}
        assert int(total) == sum(int(count) for count, _ in cells)
    assert read == counts


def test_a_believed_cheat_is_said_aloud(worlds, recording):
    # A judge that believes everything.
    world, journal = worlds["source"], recording()
    driver = world.driver(journal, seed=1, faults={"cheating": 1.0})
    proposals = driver.ask(2)
    trials = [judged(i, p.candidate, 1.0) for i, p in enumerate(proposals)]
    found = simulated(journal.events, trials)
    assert sum(found["believed"].values()) == len(proposals)
    assert all(tag.startswith("cheating:") for tag in found["believed"])
    assert not any(row["sound"] for row in found["rows"] if row["filed_as"] == "ok")
    assert any("!" in line for line in matrix_lines(found))


def test_every_class_says_what_it_may_be_filed_as():
    for name, allowed in FILED_AS.items():
        assert is_sound(name, "candidate")
        assert all(is_sound(name, filed) for filed in allowed)
        assert name == "prose_around" or not is_sound(name, "ok")
    assert is_sound(OK, "ok")
    assert is_sound(OK, "duplicate")


def test_the_faults_fit_a_terminal_and_say_what_a_candidate_is():
    filed = [(name, filed) for name, allowed in FILED_AS.items() for filed in allowed]
    cells = [*filed, ("cheating", "ok"), (OK, "ok"), (OK, "candidate")]
    rows = [
        {"injected": truth, "filed_as": found, "count": 3, "sound": is_sound(truth, found)}
        for truth, found in cells
    ]
    nothing = {"replies": {}, "answered_by": {}, "calls": 0, "tokens": 0, "usd": 0.0}
    nothing["unanswered"] = {"calls": 0, "tokens": 0, "usd": 0.0}
    nothing |= {"failures_by": {}, "unpriced": []}
    found = {"rows": rows, "believed": {}, "seconds": 0.0}
    lines = model_lines({**nothing, "simulated": found})
    assert "  candidate: proposed, and not judged" in lines
    assert sum("->" in line for line in lines[1:]) == len(FILED_AS)
    assert any("cheating" in line and "3 ok!" in line for line in lines)
    shown = wrapped("\n".join(lines), 80).splitlines()
    assert all(len(line) <= 80 for line in shown)
    words = {word for line in shown for word in line.split()}
    assert {f"{found}" for _, found in cells} <= {word.strip(",!") for word in words}
    without = {**nothing, "simulated": {**found, "rows": rows[:-1]}}
    assert not any("not judged" in line for line in model_lines(without))
