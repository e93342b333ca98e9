from __future__ import annotations

import json

import numpy as np
import pytest
from contracts import EvaluatorContract

from kernelwright.env.landscape.open import locate, open_landscape
from kernelwright.env.options import OptionError
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.types import (
    CacheState,
    Language,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    Unpaired,
    knob_candidate,
)
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.evaluators.noise import Noise
from kernelwright.evaluators.recorded import Recorded
from kernelwright.evaluators.statistics import speedup
from kernelwright.evaluators.target import speed_of_light

NAME = "h200_gemm_4096x4096x4096"
BASE = {"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}
TOO_BIG = {"bm": 256, "bn": 256, "bk": 128, "warps": 8, "stages": 5, "group_m": 1}


def ask(judge, values, stage=Stage.SCREEN, role=Role.BASELINE, **fields):
    request = Request(
        knob_candidate(values), stage, (Reference(role, knob_candidate(BASE)),), **fields
    )
    return judge.evaluate([request])[0]


class TestGpuModel(EvaluatorContract):
    make = staticmethod(lambda seed: GpuModel(gemm_gpu(), seed=seed, noise=Noise(lognormal=0.02)))


class TestGpuModelWithoutNoise(EvaluatorContract):
    make = staticmethod(lambda seed: GpuModel(gemm_gpu(), seed=seed))

    def test_the_claim_is_exact(self):
        (verdict,) = self.make(0).evaluate([self.request(Stage.CONFIRM, process_pairs=3, pairs=2)])
        logs = {c / r for pair in verdict.measurements[0].samples for c, r in pair.samples_ns}
        assert len(logs) == 1
        assert verdict.status is Status.WIN


class TestHopperModel(EvaluatorContract):
    make = staticmethod(
        lambda seed: GpuModel(gemm_gpu(), seed=seed, device="h200", noise=Noise(lognormal=0.02))
    )


class TestRecorded(EvaluatorContract):
    make = staticmethod(lambda seed: Recorded(gemm_gpu(), seed=seed, landscape=NAME))


def test_noise_is_redrawn_by_seed_and_repeat_but_not_by_trial():
    judge = GpuModel(gemm_gpu(), seed=1, noise=Noise(lognormal=0.02))
    other = GpuModel(gemm_gpu(), seed=2, noise=Noise(lognormal=0.02))
    assert ask(judge, BASE) == ask(judge, BASE, trial=77)
    assert ask(judge, BASE) != ask(judge, BASE, first_repeat=1)
    assert ask(judge, BASE) != ask(other, BASE)


def test_drift_moves_screens_and_cancels_in_pairs():
    judge = GpuModel(gemm_gpu(), seed=1, noise=Noise(drift=0.1))
    screens = {
        ask(judge, BASE, trial=t).measurements[0].samples.candidate_ns for t in range(0, 90, 30)
    }
    assert len(screens) == 3
    claim = ask(judge, BASE, Stage.CONFIRM, trial=30, process_pairs=4, pairs=2)
    assert claim.status is Status.TIE


def test_process_pairs_swap_roles_and_start_order():
    claim = ask(GpuModel(gemm_gpu()), BASE, Stage.CONFIRM, process_pairs=4, pairs=3)
    pairs = claim.measurements[0].samples
    assert [p.started_first for p in pairs] == ["candidate", "reference"] * 2
    assert all(p.roles[0] is p.started_first for p in pairs)
    assert {len(p.samples_ns) for p in pairs} == {3}


def test_no_two_stages_draw_the_same_sample():
    judge = GpuModel(gemm_gpu(), seed=1, noise=Noise(lognormal=0.05))
    screen = ask(judge, BASE).measurements[0].samples.candidate_ns
    claim = ask(judge, BASE, Stage.CONFIRM, process_pairs=3, pairs=3, first_repeat=1)
    drawn = [c for pair in claim.measurements[0].samples for c, _ in pair.samples_ns]
    assert len(set(drawn)) == 9
    assert not set(screen) & set(drawn)


def test_what_cannot_launch_is_a_build_error_with_every_reason():
    verdict = ask(GpuModel(gemm_gpu()), {**TOO_BIG, "warps": 1})
    assert verdict.status is Status.BUILD_ERROR
    assert verdict.code == "registers"
    assert "2088 registers a thread" in verdict.evidence
    assert "655360 B of shared memory" in verdict.evidence
    assert np.isnan(GpuModel(gemm_gpu()).true_ns([knob_candidate(TOO_BIG)])[0])


def test_the_h200_spills_registers_and_refuses_only_shared_memory():
    judge = GpuModel(gemm_gpu(), device="h200")
    verdict = ask(judge, TOO_BIG)
    assert (verdict.status, verdict.code) == (Status.BUILD_ERROR, "shared_memory")
    assert verdict.evidence == (
        "5 buffers of 256 x 128 and 5 of 128 x 256 operands take 655360 B of shared memory, "
        "at most 232448"
    )
    claim = ask(judge, {**BASE, "bn": 256}, Stage.CONFIRM, process_pairs=2)
    assert claim.status is Status.LOSS
    assert dict(claim.facts)["spilled_words"] == 256
    assert claim.log == "bound by spill"


def test_split_k_is_a_knob_of_the_h200():
    judge = GpuModel(gemm_gpu(m=512, n=512, k=16384, split_k=True), device="h200")
    whole, split = (knob_candidate({**BASE, "split_k": s}) for s in (1, 8))
    assert judge.true_ns([whole])[0] > 2 * judge.true_ns([split])[0]
    with pytest.raises(OptionError, match=r"device whose model has the knob split_k \(h200\)"):
        GpuModel(gemm_gpu(split_k=True))


def test_rule_reasons_carry_the_values():
    judge = GpuModel(gemm_gpu())
    space = KnobSpace(judge.problem.knobs, judge.constraints)
    (violation,) = space.check(knob_candidate({**BASE, "bm": 16}))
    assert (violation.code, violation.reason) == (
        "warp_tile",
        "a warp gets 8 x 64 of the 16 x 128 tile, less than one 16 x 8 mma",
    )


def test_the_model_needs_a_gemm():
    problem = gemm_gpu()
    other = type(problem)(
        **{f: getattr(problem, f) for f in problem.__slots__} | {"knobs": problem.knobs[:2]}
    )
    with pytest.raises(ValueError, match="expected a GEMM with knobs"):
        GpuModel(other)


def test_a_claim_carries_the_breakdown_of_its_estimate():
    judge = GpuModel(gemm_gpu())
    claim = ask(judge, BASE, Stage.CONFIRM, process_pairs=2)
    facts = dict(claim.facts)
    assert (facts["registers"], facts["shared_bytes"], facts["occupancy"]) == (168, 49152, 3)
    assert facts["time_s"] * 1e9 == pytest.approx(judge.true_ns([knob_candidate(BASE)])[0])
    # Three blocks of 1.9e-7 s of L2 traffic a K step against 1.5e-7 s of Tensor Core time each.
    assert claim.log == "bound by l2"
    assert judge.build(knob_candidate(BASE)).facts == claim.facts


def test_a_recorded_screen_is_one_of_the_samples():
    landscape = open_landscape(locate(NAME))
    entry = landscape.by_knobs[knob_candidate(BASE).payload]
    seen = set()
    for seed in range(40):
        verdict = ask(Recorded(gemm_gpu(), seed=seed, landscape=NAME), BASE)
        seen |= set(verdict.measurements[0].samples.candidate_ns)
        assert verdict.max_error == entry.max_error
    assert seen == set(entry.samples_ns)


def test_a_recorded_confirmation_uses_every_sample_once():
    judge = Recorded(gemm_gpu(), landscape=NAME)
    entry = judge.landscape.by_knobs[knob_candidate(BASE).payload]
    request = Request(
        knob_candidate(BASE),
        Stage.CONFIRM,
        (Reference(Role.BASELINE, knob_candidate(BASE)), Reference(Role.LIBRARY, judge.library)),
    )
    (verdict,) = judge.evaluate([request])
    assert verdict.measurements[0].samples == Unpaired(entry.samples_ns, entry.samples_ns)
    assert verdict.measurements[1].samples.reference_ns == judge.landscape.library_ns
    assert verdict.status is Status.TIE
    assert judge.library.language is Language.LIBRARY


def test_recorded_failures_fail_again():
    verdict = ask(Recorded(gemm_gpu(), landscape=NAME), TOO_BIG)
    assert (verdict.status, verdict.code) == (Status.BUILD_ERROR, "shared_memory")
    assert verdict.evidence == "recorded: shared memory"


def test_the_recorded_space_is_the_file():
    judge = Recorded(gemm_gpu(), landscape=NAME)
    space = KnobSpace(
        judge.problem.knobs,
        members=judge.members(judge.problem),
        members_reason=judge.members_reason,
    )
    assert len(space.valid) == 5400
    absent = knob_candidate({"bm": 256, "bn": 256, "bk": 16, "warps": 1, "stages": 1, "group_m": 1})
    assert space.check(absent)[0].reason == "not in the landscape"
    with pytest.raises(ValueError, match="not in the landscape"):
        judge.evaluate([Request(absent, Stage.SCREEN, (Reference(Role.BASELINE, absent),))])


def toy(tmp_path, rows, **header):
    base = {"m": 64, "n": 64, "k": 64, "gpu": "NVIDIA H200"} | header
    path = tmp_path / "toy.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in [base, *rows]) + "\n")
    return str(path)


SMALL = gemm_gpu(m=64, n=64, k=64)
OTHER = BASE | {"bm": 64}


def test_a_recorded_error_above_the_bound_is_wrong(tmp_path):
    path = toy(tmp_path, [BASE | {"us": [9.0]}, OTHER | {"us": [8.0], "err": 0.01}])
    verdict = ask(Recorded(SMALL, landscape=path), OTHER)
    assert (verdict.status, verdict.code, verdict.max_error) == (Status.WRONG, "error_bound", 0.01)


def test_a_sample_below_the_roofline_is_too_fast(tmp_path):
    path = toy(tmp_path, [BASE | {"us": [9.0]}, OTHER | {"us": [1e-4]}])
    verdict = ask(Recorded(SMALL, landscape=path), OTHER)
    assert (verdict.status, verdict.code) == (Status.TOO_FAST, "below_roofline")


def test_the_baseline_of_a_landscape_without_the_usual_one(tmp_path):
    rows = [OTHER | {"us": [8.0]}, OTHER | {"bn": 64, "us": [9.0]}, OTHER | {"bn": 32, "us": [7.0]}]
    assert dict(Recorded(SMALL, landscape=toy(tmp_path, rows)).unscheduled(SMALL)) == OTHER
    default = {**OTHER, "bn": 32}
    judge = Recorded(SMALL, landscape=toy(tmp_path, rows, default=default))
    assert dict(judge.unscheduled(SMALL)) == default


def test_a_recording_of_another_shape_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"a recording of m=64 n=64 k=64, found .* of m=32"):
        Recorded(SMALL, landscape=toy(tmp_path, [BASE | {"us": [1.0]}], m=32))


def test_a_device_without_a_table_has_no_floor(tmp_path):
    judge = Recorded(SMALL, landscape=toy(tmp_path, [BASE | {"us": [1e-6] * 4}], gpu="Radeon"))
    assert judge.device is None
    assert judge.floor_ns(SMALL.workloads[0]) == 0
    assert ask(judge, BASE).status is Status.OK
    assert ask(judge, BASE, Stage.CONFIRM).status is Status.TIE


def test_recordings_of_other_knobs_or_values_are_refused(tmp_path):
    judge = Recorded(SMALL, landscape=toy(tmp_path, [{"bm": 16, "us": [9.0]}]))
    with pytest.raises(OptionError, match=r"the knobs bm bn bk warps stages group_m .* found bm"):
        judge.members(SMALL)
    judge = Recorded(SMALL, landscape=toy(tmp_path, [BASE | {"bm": 512, "us": [9.0]}]))
    with pytest.raises(OptionError, match="bm=512: expected one of 16, 32, 64, 128, 256"):
        judge.members(SMALL)


def test_the_truth_of_what_fails_is_not_a_time(tmp_path):
    rows = [BASE | {"us": [9.0]}, OTHER | {"us": [8.0], "err": 0.01}]
    rows += [OTHER | {"bn": 64, "us": [1e-5]}, OTHER | {"bn": 32, "error": "x"}]
    judge = Recorded(SMALL, landscape=toy(tmp_path, rows))
    space = [knob_candidate({k: v for k, v in row.items() if k in BASE}) for row in rows]
    assert np.isnan(judge.true_ns(space)).tolist() == [False, True, True, True]


@pytest.mark.parametrize("noise", [{"lognormal": 0.02}, {"drift": 0.3}, {"lognormal": 0.5}])
def test_claims_of_the_fastest_hold_the_truth(noise):
    """The fastest is next to the roofline; no noise may push it out of its own interval."""
    fastest = {"bm": 256, "bn": 128, "bk": 32, "warps": 8, "stages": 4, "group_m": 1}
    held = 0
    for seed in range(60):
        judge = GpuModel(gemm_gpu(), seed=seed, noise=Noise(**noise))
        claim = ask(judge, fastest, Stage.CONFIRM, trial=seed, process_pairs=10, pairs=8)
        times = judge.true_ns([knob_candidate(BASE), knob_candidate(fastest)])
        interval = speedup(claim)
        held += interval.low * (1 - 1e-9) <= times[0] / times[1] <= interval.high * (1 + 1e-9)
    assert held >= 52


def test_the_speed_of_light_says_what_sets_it(tmp_path):
    square, decode = gemm_gpu(), gemm_gpu(m=16, n=14336, k=4096)
    (bound,) = speed_of_light(GpuModel(square), square)
    assert (bound.workload, bound.limit) == (square.workloads[0].label, "compute")
    assert bound.floor_ns == GpuModel(square).floor_ns(square.workloads[0])
    (bound,) = speed_of_light(GpuModel(decode), decode)
    assert bound.limit == "memory"
    assert bound.floor_ns > GpuModel(decode).bound_ns(
        decode.workloads[0], CacheState.COLD, moved=False
    )
    judge = Recorded(SMALL, landscape=toy(tmp_path, [BASE | {"us": [9.0]}], gpu="Radeon"))
    assert speed_of_light(judge, SMALL) == ()


def test_another_look_at_a_recording_is_several_of_its_samples(tmp_path):
    judge = Recorded(SMALL, landscape=toy(tmp_path, [BASE | {"us": [9.0, 10.0, 11.0]}]))
    (m,) = ask(judge, BASE, Stage.RACE, pairs=8, first_repeat=100).measurements
    assert len(m.samples.candidate_ns) == 8
    assert {1e3 * us for us in (9.0, 10.0, 11.0)} >= set(m.samples.candidate_ns)
    assert len(set(m.samples.candidate_ns)) > 1
    one, many = (ask(judge, BASE, pairs=pairs).measurements[0].samples for pairs in (1, 8))
    assert len(many.candidate_ns) == 8
    assert many.candidate_ns[:1] == one.candidate_ns


@pytest.mark.parametrize("device", ["h100-lecture", "h200"])
def test_a_breakdown_does_not_depend_on_what_was_estimated_beside_it(device):
    problem = gemm_gpu(m=1024, n=512, k=2048)
    together, alone = (GpuModel(problem, seed=0, device=device) for _ in range(2))
    space = KnobSpace(problem.knobs, together.constraints, default=problem.unscheduled)
    found = [space.candidate(int(index)) for index in space.valid[::29]]
    together.true_ns(found)
    for candidate in found:
        assert together.build(candidate) == alone.build(candidate)
