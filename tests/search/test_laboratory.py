"""The noise laboratory: planted truths, rules, and what is counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kernelwright.configs.errors import ConfigError
from kernelwright.configs.noise import audit_noise, rule_of
from kernelwright.env.types import Reference, Request, Role, Stage, Status
from kernelwright.evaluators.cpu.target import Cpu
from kernelwright.search.laboratory import RULES
from kernelwright.search.laboratory.audit import (
    OURS,
    Laboratory,
    Outcome,
    Sizes,
    jobs_of,
    run_job,
    shortfalls,
    simulated,
)
from kernelwright.search.laboratory.bench import Bench, Claim
from kernelwright.search.laboratory.bout import bout
from kernelwright.search.laboratory.judge import BASELINE, BenchJudge, kernel
from kernelwright.search.laboratory.noise import HARDEST, SIMULATED, Simulated, Traces, traces_of
from kernelwright.search.laboratory.plots import plots
from kernelwright.search.laboratory.real import (
    STEPS,
    Calibration,
    calibrated,
    compared,
    faster,
    identical_search,
    planted,
    planted_problem,
    recorded,
)

CLEAN = Simulated("clean", lognormal=0.0)
TINY = Sizes(20, 6, 6, 8, 4, 1, 1, 1, 4, 24)


def bench(clock=CLEAN, speedups=(1.0,), seed=0):
    return Bench(clock, speedups, np.random.default_rng(seed))


@pytest.mark.parametrize("clock", SIMULATED, ids=lambda clock: clock.name)
def test_pairs_share_their_window_and_calls_average_out(clock):
    rng = np.random.default_rng(1)
    pairs = clock.pairs(rng, 400, 16)
    assert pairs.shape == (400, 16, 2)
    logs = np.log(pairs)
    assert abs(np.median(logs[:, :, 0] - logs[:, :, 1])) < 0.005
    assert clock.window(rng, 50).shape == (50,)
    if clock.drift >= 0.02:
        windows = np.median(logs.reshape(400, -1), axis=1)
        assert 0.7 * clock.drift < np.std(windows) < 1.6 * clock.drift


def test_two_clocks_stay_for_a_while():
    logs = np.log(
        Simulated("two", lognormal=0.0, switch=0.05).pairs(np.random.default_rng(2), 50, 40)
    )
    calls = logs.reshape(50, -1) > 0.1
    assert 0.3 < calls.mean() < 0.7
    assert 0.02 < np.mean(calls[:, 1:] != calls[:, :-1]) < 0.08


def test_traces_are_drawn_from_what_was_recorded():
    times = np.arange(1, 25, dtype=float).reshape(2, 6, 2)
    traces = Traces("t", times)
    drawn = traces.pairs(np.random.default_rng(0), 30, 9) * float(np.median(times))
    drawn = drawn.round(9)
    assert drawn.shape == (30, 9, 2)
    assert set(map(tuple, drawn.reshape(-1, 2))) <= set(map(tuple, times.reshape(-1, 2)))
    # A stretch of one process pair, in its order.
    assert all(np.isin(row[:, 0], times[0, :, 0]).all() or row[0, 0] > 12 for row in drawn)
    with pytest.raises(ValueError, match="process pairs, pairs, 2"):
        traces_of("none", [])


def test_a_bench_counts_every_call():
    found = bench(speedups=[1.25, 1.0])
    assert found.times(None, 3).tolist() == [1e5] * 3
    assert found.times(0, 2).tolist() == [8e4] * 2
    assert found.pairs(0, 2, 5).shape == (2, 5, 2)
    assert found.calls == 3 + 2 + 20


@pytest.mark.parametrize("name", RULES)
def test_every_rule_finds_the_faster_kernel_where_there_is_no_noise(name):
    found = rule_of(name)(bench(speedups=[1.0, 1.2, 1.0, 1.0]))
    assert (found.candidate, found.is_win) == (1, True)
    assert found.speedup == pytest.approx(1.2, rel=1e-3)
    same = rule_of(name)(bench(speedups=[1.0] * 4))
    assert same is None or not same.is_win


def test_ours_judges_like_a_machine_and_counts_what_identical_kernels_cost():
    found = bench(SIMULATED[0], [1.0] * 12)
    result = bout(
        BenchJudge(found, np.random.default_rng(0)), BASELINE, list(map(kernel, range(12)))
    )
    assert all(t.status is not Status.WIN for t in result.trials)
    assert found.calls >= result.calls + 160  # ten process pairs of eight, identical
    judge = BenchJudge(found, np.random.default_rng(0))
    request = Request(kernel(0), Stage.SCREEN, (Reference(Role.INCUMBENT, kernel(1)),))
    with pytest.raises(ValueError, match="the baseline alone"):
        judge.evaluate([request])


def test_what_an_outcome_says_of_the_truth():
    assert Outcome(Claim(0, 1.1, True), 1.0, 1).is_false
    assert Outcome(Claim(3, 1.1, True), 1.05, 1).is_false
    right = Outcome(Claim(0, 1.06, True, 1.04, 1.08), 1.05, 1)
    assert (right.is_found, right.is_false, right.covers) == (True, False, True)
    assert right.bias == pytest.approx(1.06 / 1.05 - 1)
    assert Outcome(Claim(2, 1.01, False, 1.005, 1.02), 1.05, 1).covers is False
    nothing = Outcome(None, 1.05, 1)
    assert (nothing.is_found, nothing.is_false, nothing.bias, nothing.covers) == (
        False,
        False,
        None,
        None,
    )


def test_jobs_give_the_same_in_any_process():
    jobs = jobs_of("median_of_50", HARDEST, 1.03, 5, 8, 1)
    alone = [run_job(rule_of, job) for job in jobs]
    with Laboratory(rule_of, workers=2) as laboratory:
        assert laboratory.run(jobs) == alone
    assert len({o.claim.speedup for o in alone}) == len(alone)


@pytest.mark.audit
def test_our_rule_keeps_its_promises_on_the_hardest_clock():
    found = simulated(Laboratory(rule_of, workers=1), Sizes(150, 12, 12, 40), None)
    assert found["aa"]["count"] <= 3
    assert found["search"]["count"] == 0
    assert found["power"]["1.10"] == 1
    assert found["power"]["1.05"] >= 0.9
    assert all(calls["most"] <= 6000 for calls in found["calls"].values())
    assert 0.88 < found["coverage"] < 0.99
    assert abs(found["bias"]) < 0.003
    assert shortfalls(found) == []


def test_shortfalls_are_what_chance_does_not_explain():
    fine = {"count": 3, "total": 1000, "rate": 0.003, "low": 0.001, "high": 0.009}
    good = {"aa": fine, "search": fine, "coverage": 0.95, "coverage_interval": (0.94, 0.96)}
    good |= {"bias": 0.0005, "bias_error": 0.0, "powers": 1000}
    good |= {"power": {"1.03": 0.85, "1.05": 0.995}}
    assert shortfalls(good) == []
    many = {"count": 30, "total": 1000, "rate": 0.03, "low": 0.021, "high": 0.042}
    bad = {
        **good,
        "aa": many,
        "aa_real": {"wins": 2, "comparisons": 60},
        "search_real": {"wins": 1, "searches": 20},
        "coverage": 0.9,
        "coverage_interval": (0.89, 0.91),
        "bias": 0.01,
        "power": {"1.03": 0.0, "1.05": 0.9},
    }
    said = " ".join(shortfalls(bad))
    for word in (
        "30 of 1000",
        "2 false wins",
        "1 false wins in searches",
        "coverage",
        "bias",
        "1.03x",
        "1.05x",
    ):
        assert word in said
    assert "nothing was confirmed" in " ".join(shortfalls(good | {"coverage": None}))


RULE = '''
from kernelwright.search.laboratory.bench import Claim


def always(bench):
    """Calls whatever it is given faster."""
    return Claim(0, 2.0, True)


def late(bench):
    """Is a rule until it has many candidates."""
    return None if bench.candidates < 4 else Claim(bench.candidates, 2.0, True)


def raises(bench):
    raise SystemExit(3)


def nan(bench):
    return Claim(0, float("nan"), True)


def true(bench):
    return True


number = 3
'''


@pytest.mark.cc
@pytest.mark.audit
def test_the_audit_judges_a_rule_of_ones_own_and_draws_it(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelwright.configs.noise.QUICK", TINY)
    file = tmp_path / "mine.py"
    file.write_text(RULE)
    seen = []
    rules = [f"{file}:late", f"{file}:always"]
    report = audit_noise(quick=True, rules=rules, seen=seen.append)
    mine = [row for row in report["rules"] if row["rule"] == f"{file}:always"]
    assert {row["search_false_win"] for row in mine} == {1.0}
    # The faster kernel is anywhere, so whoever names the first finds it by luck alone.
    assert all(row["found_1.05"] < 0.9 for row in mine)
    assert len(report["rules"]) == (len(RULES) + 1) * (len(SIMULATED) + 1) + 1
    # What goes wrong late costs that rule its figures, and nothing else.
    (failed,) = report["failed_rules"]
    assert "candidate 24 of 24" in failed
    assert report["aa_process_pairs"] == 10
    assert report["search_real"] == {"wins": 0, "searches": 1}
    keys = "aa_false_win search_false_win power coverage bias coverage_real bias_real aa_real"
    assert all(key in report for key in keys.split())
    json.dumps(report, allow_nan=False)
    assert seen
    files = plots(report, tmp_path / "plots")
    assert [file.name for file in files] == ["false_wins.svg", "found.svg", "power.svg"]
    assert all("<svg" in Path(file).read_text() for file in files)


BAD = ["median_of_5", "nowhere:x"]
BAD += [f"{{file}}:{name}" for name in ("nothing", "number", "raises", "nan", "true")]


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_rule_is_refused_before_anything_is_run(tmp_path, name):
    file = tmp_path / "mine.py"
    file.write_text(RULE)
    with pytest.raises(ConfigError) as refused:
        audit_noise(quick=True, rules=[name.format(file=file)])
    assert refused.value.path == "--rule"


def test_a_calibration_turns_speedups_into_chains():
    found = Calibration(step_ns=1.0, rest_ns=5000.0)
    for ratio in (1.0, 1.03, 1.1):
        assert found.speedup(STEPS, found.steps(ratio)) == pytest.approx(ratio, rel=1e-5)


@pytest.mark.cc
def test_real_kernels_of_known_speed_are_told_apart():
    judge = Cpu(planted_problem())
    calibration = calibrated(judge)
    assert calibration.step_ns > 0
    assert calibration.rest_ns > 0
    longer = calibration.steps(1.5)
    found = compared(judge, planted(STEPS), planted(longer), calibration.speedup(STEPS, longer))
    assert found.status is Status.WIN
    assert found.interval.estimate == pytest.approx(1.5, rel=0.1)


@pytest.mark.cc
def test_the_truth_of_a_planted_speedup_is_calibrated_around_it():
    found, error = faster(Cpu(planted_problem()), 1.2, 1)
    assert 0 <= error < 0.2
    (one,) = found
    assert one.truth == pytest.approx(1.2, rel=0.2)


@pytest.mark.cc
def test_identical_kernels_are_searched_by_the_judge_itself():
    judge = Cpu(planted_problem())
    found = identical_search(judge, 6, race_rounds=1)
    assert len(found.trials) == 6
    assert len({trial.candidate.key for trial in found.trials}) == 1
    traces = recorded(judge, 2, 3)
    assert [len(pair) for pair in traces] == [3, 3]


def test_ours_is_among_the_rules():
    assert OURS in RULES
