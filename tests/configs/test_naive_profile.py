"""Profile ``naive``: campaigns judged on trust, and records that say so."""

from __future__ import annotations

import json
import math

import pytest
import yaml

from kernelwright.configs import api
from kernelwright.configs.build import build
from kernelwright.configs.errors import ConfigError
from kernelwright.configs.load import read_config
from kernelwright.configs.winner import export
from kernelwright.display.plans import check_text
from kernelwright.display.runs import summary_text
from kernelwright.env.problems.row_sum import row_sum
from kernelwright.env.types import (
    CacheState,
    Candidate,
    Evidence,
    Language,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Unpaired,
)
from kernelwright.evaluators.naive import NAIVE_CLOCK, NAIVE_WARNING, naive
from kernelwright.evaluators.naive.judge import MOST, NaiveCpu
from kernelwright.search.store import DATABASE, SqliteStore

pytestmark = [
    pytest.mark.cc,
    pytest.mark.skipif(
        naive.missing(("a naive judge",)) is not None,
        reason=str(naive.missing(("a naive judge",))),
    ),
]
PROBLEM = row_sum(rows=32, cols=64)
CAMPAIGN = {
    "name": "trusted",
    "problem": {"name": "row_sum", "rows": 32, "cols": 64},
    "space": {"kind": "knobs"},
    "target": {"name": "cpu"},
    "driver": {"name": "random"},
    "judge": {"profile": "naive", "confirm": {"finalists": 2}},
    "budget": {"trials": 3},
}
KERNEL = """
void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols)
{
#ifndef STEP
#define STEP 1
#endif
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t j = 0; j < cols; j += STEP)
            for (int64_t s = 0; s < STEP; s++)
                sum += x[i * cols + j + s];
        y[i] = sum;
    }
}
"""
SPACES = {
    "knobs": {"space": {"kind": "knobs"}},
    "schedule": {"space": {"kind": "schedule"}},
    "template": {"space": {"kind": "template", "file": "kernel.c", "knobs": {"STEP": [1, 2, 4]}}},
    "source": {
        "space": {"kind": "source"},
        "driver": {"name": "listed", "files": ["kernel.c", "nothing.c", "broken.c"]},
        "baseline": "kernel.c",
    },
}
# It leaves what was there, and that is the reference's answer.
NOTHING = "void row_sum(const float *x, float *y, int64_t rows, int64_t cols) {}\n"


def campaign(tmp_path, **changes):
    (tmp_path / "kernel.c").write_text(KERNEL)
    (tmp_path / "nothing.c").write_text(NOTHING)
    (tmp_path / "broken.c").write_text(NOTHING.replace("{}", "{ syntax }"))
    path = tmp_path / "campaign.yaml"
    path.write_text(yaml.safe_dump({**CAMPAIGN, **changes}))
    return path


@pytest.mark.parametrize("kind", SPACES)
def test_every_space_is_judged_and_every_report_warns(kind, tmp_path):
    path = campaign(tmp_path, **SPACES[kind])
    summary = api.run(path, tmp_path / "run")
    assert summary["trials"] == 3
    assert summary["best"]["status"] in ("win", "tie", "loss")
    assert summary["best"]["ci_low"] is None
    for shown in (summary, api.show(tmp_path / "run"), api.check(path), summary["best"]):
        assert shown["warning"] == NAIVE_WARNING
    for text in (summary_text(summary), check_text(api.check(path))):
        assert text.startswith(f"WARNING: {NAIVE_WARNING}\n")
    best = json.loads((tmp_path / "run" / "best.json").read_text())
    assert best["warning"] == NAIVE_WARNING
    assert f"WARNING: {NAIVE_WARNING}" in export(tmp_path / "run")
    if kind == "source":
        assert summary["by_status"]["build_error"] == 1
        # Whatever is fastest, what computes nothing is let through.
        with SqliteStore(tmp_path / "run" / DATABASE, readonly=True) as store:
            (nothing,) = [t for t in store.trials() if t.candidate.payload == NOTHING]
        assert nothing.status.passed


def test_records_say_whose_clock_it_was(tmp_path):
    api.run(campaign(tmp_path), tmp_path / "run")
    with SqliteStore(tmp_path / "run" / DATABASE, readonly=True) as store:
        trials = store.trials()
    found = [m for t in trials for _, verdict in t.verdicts for m in verdict.measurements]
    assert found
    for measurement in found:
        assert isinstance(measurement.samples, Unpaired)
        assert len(measurement.samples.candidate_ns) == 1
        assert not measurement.samples.reference_exact
        assert measurement.clock == NAIVE_CLOCK
        assert measurement.cache_state is CacheState.WARM
        assert measurement.evidence is Evidence.MEASURED
    # The baseline's time was taken once.
    assert len({m.samples.reference_ns for m in found}) == 1


def test_a_strict_run_does_not_go_on_with_it_and_it_goes_on_with_itself(tmp_path):
    path = campaign(tmp_path)
    first = api.run(path, tmp_path / "run")
    assert first["by_status"] == api.run(path, tmp_path / "run")["by_status"]
    assert api.run(path, tmp_path / "run", overrides=["budget.trials=4"])["trials"] == 4
    strict = ["judge={profile: strict, confirm: {finalists: 2}}", "budget.trials=4"]
    with pytest.raises(ConfigError, match="expected 'naive', as the run in") as refusal:
        api.run(path, tmp_path / "run", overrides=strict)
    assert refusal.value.path == "judge.profile"
    resolved = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert resolved["judge"] == {"profile": "naive", "confirm": {"finalists": 2, "alpha": 0.01}}
    assert read_config(tmp_path / "run" / "config.yaml").file.judge.profile == "naive"


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        ({"judge": {"check": "full"}}, "judge.check", "no 'check' in profile naive"),
        ({"judge": {"state": "cold"}}, "judge.state", "no 'state' in profile naive"),
        ({"judge": {"screen": {"pairs": 3}}}, "judge.screen.pairs", "no 'pairs' in profile naive"),
        ({"judge": {"policy": {"symbols": ["a"]}}}, "judge.policy.symbols", "in profile naive"),
        ({"judge": {"confirm": {"alpha": 0.1}}}, "judge.confirm.alpha", "no 'alpha' in profile"),
        ({"stop": {"roofline": 0.9}}, "stop.roofline", "a known roofline"),
        ({"baseline": "library"}, "baseline", "no library time is known"),
        (
            {
                "problem": {"name": "row_sum", "rows": {"low": 3, "high": 9}},
                "space": {"kind": "source"},
            },
            "judge.profile",
            "extents that are drawn from a range",
        ),
    ],
)
def test_what_it_has_no_use_for_is_refused(changes, path, says, tmp_path):
    judge = {**CAMPAIGN["judge"], **changes.pop("judge", {})}
    with pytest.raises(ConfigError, match=says) as refusal:
        build(read_config({**CAMPAIGN, "judge": judge, **changes}))
    assert refusal.value.path == path


def asked(source, stage=Stage.CONFIRM):
    baseline = Reference(Role.BASELINE, Candidate(Language.SOURCE, PROBLEM.plain_c))
    return [Request(Candidate(Language.SOURCE, source), stage, (baseline,))]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("{ syntax }", "build_error", "compile_error"),
        ("{ *(volatile int *)0 = 1; }", "crashed", "signal"),
        ("{ for (int i = 0; i < rows; i++) y[i] = 9; }", "wrong", "wrong_value"),
    ],
)
def test_a_failure_has_a_status(body, status, code):
    (verdict,) = NaiveCpu(PROBLEM).evaluate(asked(NOTHING.replace("{}", body)))
    assert (verdict.status, verdict.code) == (status, code)
    assert verdict.evidence


def test_a_function_of_another_name_is_no_kernel():
    (verdict,) = NaiveCpu(PROBLEM).evaluate(asked("void other(void) {}\n"))
    assert (verdict.status, verdict.code) == ("build_error", "missing_entry")


@pytest.mark.parametrize(
    ("passed", "speedup", "status", "recorded"),
    [
        (True, 1.5, Status.WIN, 1.5),
        (True, 1.0, Status.TIE, 1.0),
        (True, 0.5, Status.LOSS, 0.5),
        (True, math.inf, Status.WIN, MOST),
        (True, math.nan, Status.WRONG, None),
        (True, -3.0, Status.WRONG, None),
        (False, math.nan, Status.WRONG, None),
    ],
)
def test_whatever_it_says_can_be_recorded(passed, speedup, status, recorded, monkeypatch):
    target = NaiveCpu(PROBLEM)

    def said(problem, texts, *, limit_s, setting):
        text = "shape 0: 2000 ns, the reference 2000 ns, 0 errors\n"
        stored = bool(setting.stored_ns)
        return naive.NaiveResult(passed or not stored, speedup if stored else 1, False, 0, text)

    monkeypatch.setattr(naive, "judge", said)
    (verdict,) = target.evaluate(asked(NOTHING))
    assert verdict.status is status
    if recorded is not None:
        (measurement,) = verdict.measurements
        (mine,), (baseline,) = measurement.samples.candidate_ns, measurement.samples.reference_ns
        assert baseline == 2000
        assert mine == pytest.approx(2000 / recorded)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("void other(void) {}\n", "expected a time for each of 1 shapes within 10 s, found failed"),
        ("void row_sum(void) { syntax }\n", "refused the code"),
    ],
)
def test_a_baseline_that_cannot_be_timed_is_no_candidate_s_fault(text, says):
    bad = Reference(Role.BASELINE, Candidate(Language.SOURCE, text))
    request = Request(Candidate(Language.SOURCE, NOTHING), Stage.SCREEN, (bad,))
    (verdict,) = NaiveCpu(PROBLEM).evaluate([request])
    assert verdict.status is Status.BROKEN
    assert says in verdict.evidence


def test_a_machine_without_a_jail_lacks_it(monkeypatch):
    monkeypatch.setattr(naive, "_is_contained", lambda: False)
    target = NaiveCpu(PROBLEM)
    assert target.missing == ("a naive judge needs namespaces, which this user may not have",)
    (verdict,) = target.evaluate(asked(NOTHING))
    assert verdict.status is Status.BROKEN
