from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contracts import EvaluatorContract

import kernelwright
from kernelwright.configs.build import TARGET_PARTS
from kernelwright.env.compiler.machine.cpu import CPUS_DIR, estimate, load_machine
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.schedule.trace import parse_trace
from kernelwright.env.objective import log2_speedup
from kernelwright.env.options import OptionError
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.spmv import spmv
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import (
    Candidate,
    Evidence,
    ExtentRange,
    Language,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Unpaired,
    Workload,
    knob_candidate,
)
from kernelwright.evaluators.cpu_model import CpuModel
from kernelwright.evaluators.statistics import speedup

PROBLEM = matmul(m=64, n=64, k=64)
BASE = Candidate(Language.SCHEDULE, ())


def schedule(text):
    return Candidate(Language.SCHEDULE, parse_trace(text))


ROWS = schedule("reorder('i', 'p', 'j')")
LANES = schedule("reorder('i', 'p', 'j')\nsplit('j', 16)\nvectorize('ji')")
SUM_LANES = schedule("split('p', 16)\nvectorize('pi')")


def ask(judge, candidate, stage=Stage.SCREEN, **fields):
    request = Request(candidate, stage, (Reference(Role.BASELINE, BASE),), **fields)
    return judge.evaluate([request])[0]


class TestCpuModel(EvaluatorContract):
    make = staticmethod(lambda seed: CpuModel(PROBLEM, seed=seed))

    def candidates(self):
        return LANES, BASE


def test_it_is_a_target():
    judge = CpuModel(PROBLEM)
    assert not [part for part in TARGET_PARTS if not hasattr(judge, part)]
    assert judge.evidence is Evidence.MODELLED
    assert judge.deterministic
    assert not judge.missing
    assert judge.members(PROBLEM) is None
    assert set(judge.judge_keys) == {"profile", "state", "confirm.process_pairs", "confirm.pairs"}


def test_the_baseline_is_the_definition_whatever_the_space():
    judge = CpuModel(PROBLEM)
    knobs = KnobSpace(PROBLEM.knobs, default=judge.unscheduled(PROBLEM))
    schedules = ScheduleSpace(PROBLEM.definition(PROBLEM.workloads[0]))
    for space in (knobs, schedules):
        assert judge.baseline(space) == BASE


def test_a_time_is_the_model_s():
    judge = CpuModel(PROBLEM)
    definition = PROBLEM.definition(PROBLEM.workloads[0])
    for candidate in (BASE, ROWS, LANES):
        wanted = estimate(lower(definition, candidate.payload).procedure, judge.device)
        assert judge.true_ns([candidate])[0] == pytest.approx(1e9 * wanted.time_s)
        assert judge.estimate(candidate) == (wanted,)


def test_a_verdict_carries_the_breakdown():
    judge = CpuModel(PROBLEM)
    for stage in (Stage.SCREEN, Stage.CONFIRM):
        verdict = ask(judge, LANES, stage)
        facts = dict(verdict.facts)
        assert facts["time_s"] * 1e9 == pytest.approx(judge.true_ns([LANES])[0])
        assert facts["flops"] == 2 * 64**3
        assert verdict.log == f"64x64x64: bound by {judge.estimate(LANES)[0].bound}"
        assert verdict.floors_ns == (("64x64x64", judge.floor_ns(PROBLEM.workloads[0])),)


def test_a_claim_is_exact():
    judge = CpuModel(PROBLEM)
    claim = ask(judge, LANES, Stage.CONFIRM, process_pairs=4, pairs=3)
    interval = speedup(claim)
    ratio = judge.true_ns([BASE])[0] / judge.true_ns([LANES])[0]
    assert interval.low == pytest.approx(interval.high) == pytest.approx(ratio)
    assert claim.status is Status.WIN
    assert [p.started_first for p in claim.measurements[0].samples] == [
        "candidate",
        "reference",
    ] * 2
    assert ask(judge, BASE, Stage.CONFIRM, process_pairs=4, pairs=3).status is Status.TIE


def test_an_illegal_schedule_is_a_build_error_with_the_compiler_s_reason():
    verdict = ask(CpuModel(PROBLEM), SUM_LANES)
    assert (verdict.status, verdict.code) == (Status.BUILD_ERROR, "illegal_directive")
    assert "loop pi carries a dependence and cannot be vectorized" in verdict.evidence
    assert "must run before" in verdict.evidence
    assert np.isnan(CpuModel(PROBLEM).true_ns([SUM_LANES])[0])
    with pytest.raises(ValueError, match="carries a dependence"):
        CpuModel(PROBLEM).build(SUM_LANES)


def test_what_has_no_c_is_a_build_error():
    text = "split('i', 32)\nsplit('j', 32)\nsplit('p', 32)\n"
    text += "reorder('io', 'jo', 'po', 'ii', 'ji', 'pi')\n"
    huge = schedule(f"{text}unroll('ii')\nunroll('ji')\nunroll('pi')")
    verdict = ask(CpuModel(PROBLEM), huge)
    assert (verdict.status, verdict.code) == (Status.BUILD_ERROR, "not_lowered")
    assert "statements after unrolling" in verdict.evidence
    verdict = ask(CpuModel(PROBLEM), Candidate(Language.SOURCE, "void matmul(void) {}"))
    assert (verdict.status, verdict.code) == (Status.BUILD_ERROR, "no_program")


def test_a_refused_reference_is_no_reference():
    request = Request(BASE, Stage.SCREEN, (Reference(Role.BASELINE, SUM_LANES),))
    with pytest.raises(ValueError, match="is refused"):
        CpuModel(PROBLEM).evaluate([request])


def test_knobs_stand_for_the_schedule_of_the_problem_s_sketch():
    judge = CpuModel(PROBLEM)
    knobs = {"mr": 4, "nv": 2, "lanes": 16, "kc": 64, "outer": "rows"}
    same = Candidate(Language.SCHEDULE, PROBLEM.sketch(knobs))
    times = judge.true_ns([knob_candidate(knobs), same])
    assert times[0] == times[1]
    assert log2_speedup(ask(judge, knob_candidate(knobs))) > 2


def test_each_workload_is_measured():
    sizes = [Workload((("m", n), ("n", 32), ("k", 32))) for n in (32, 64)]
    problem = replace(PROBLEM, workloads=tuple(sizes))
    judge = CpuModel(problem)
    verdict = ask(judge, LANES)
    assert [m.workload for m in verdict.measurements] == ["32x32x32", "64x32x32"]
    times = [m.samples.candidate_ns[0] for m in verdict.measurements]
    assert judge.true_ns([LANES])[0] == pytest.approx((times[0] * times[1]) ** 0.5)
    alone = [CpuModel(replace(PROBLEM, workloads=(size,))).true_ns([LANES])[0] for size in sizes]
    assert times == pytest.approx(alone)
    assert [name for name, _ in verdict.floors_ns] == ["32x32x32", "64x32x32"]
    assert isinstance(verdict.measurements[0].samples, Unpaired)


def test_threads_make_parallel_loops_faster_and_nothing_else():
    big = matmul(m=256, n=256, k=256)
    one, four = CpuModel(big), CpuModel(big, threads=4)
    parallel = schedule("parallel('i')")
    assert four.true_ns([parallel])[0] < one.true_ns([parallel])[0] / 3
    assert four.true_ns([BASE])[0] == one.true_ns([BASE])[0]
    assert four.floor_ns(big.workloads[0]) < one.floor_ns(big.workloads[0])


def test_the_floor_knows_the_size_of_an_element():
    double = matmul(m=512, n=512, k=512, dtype="float64")
    single = matmul(m=512, n=512, k=512)
    floors = [CpuModel(p).floor_ns(p.workloads[0]) for p in (single, double)]
    assert floors[1] == pytest.approx(2 * floors[0])


def test_no_time_is_below_the_problem_s_own_count_of_work():
    more = replace(PROBLEM, flops=lambda w: 10**12)
    judge = CpuModel(more)
    assert judge.true_ns([LANES])[0] == judge.floor_ns(more.workloads[0]) > 1e9


def test_loops_over_memory_run_as_often_as_the_option_says():
    short, long = (CpuModel(spmv(), loaded_trips=trips) for trips in (4.0, 64.0))
    assert long.true_ns([BASE])[0] > 4 * short.true_ns([BASE])[0]


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises(OptionError, match="machine: expected"):
        CpuModel(PROBLEM, machine="cpu-lectur")
    with pytest.raises(OptionError, match="threads: expected at most the 8 cores"):
        CpuModel(PROBLEM, threads=9)
    with pytest.raises(ValueError, match="cpu-model: gemm_gpu: expected a definition"):
        CpuModel(gemm_gpu())
    free = replace(PROBLEM, workloads=(Workload((("m", ExtentRange(1, 9)), ("n", 8), ("k", 8))),))
    with pytest.raises(ValueError, match=r"cpu-model: .*range"):
        CpuModel(free)


def test_a_table_of_one_s_own_counts_and_is_hashed(tmp_path):
    text = (CPUS_DIR / "cpu-lecture.yaml").read_text()
    (tmp_path / "slow.yaml").write_text(text.replace("clock_hz: 3.66e+9", "clock_hz: 1.0e+9"))
    path = str(tmp_path / "slow.yaml")
    slow, usual = CpuModel(PROBLEM, machine=path), CpuModel(PROBLEM)
    assert slow.true_ns([BASE])[0] > 3 * usual.true_ns([BASE])[0]
    assert slow.files[path] != usual.files["cpu-lecture"]
    assert usual.device == load_machine("cpu-lecture")


def test_a_candidate_is_modelled_once():
    judge, calls = CpuModel(PROBLEM), []
    learn = judge._learn
    judge._learn = lambda candidate: (calls.append(candidate.key), learn(candidate))[1]
    for _ in range(3):
        ask(judge, LANES)
        judge.true_ns([LANES, BASE])
    assert sorted(calls) == sorted([LANES.key, BASE.key])


@pytest.mark.parametrize("space", ["schedule", "knobs"])
def test_a_campaign_on_the_model_replays_bit_for_bit(space, tmp_path):
    campaign = {
        "name": "modelled",
        "problem": {"name": "matmul", "m": 64, "n": 64, "k": 64},
        "space": {"kind": space},
        "target": {"name": "cpu-model"},
        "driver": {"name": "random"},
        "budget": {"trials": 12},
    }
    first, second = (kernelwright.run(campaign, tmp_path / name) for name in ("a", "b"))
    assert first["best"] == second["best"]
    assert first["best"]["status"] == "win"
    assert first["best"]["evidence"] == "modelled"
    assert first["by_status"] == second["by_status"]
