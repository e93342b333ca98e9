"""The target ``cpu``: every way to fail is a status with a class code; what passes is measured."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelwright.env.objective import log2_speedup
from kernelwright.env.problems.histogram import histogram
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.row_sum import row_sum
from kernelwright.env.problems.shapes import Range
from kernelwright.env.protocols import Builds, Estimates
from kernelwright.env.types import (
    Arm,
    CacheState,
    Candidate,
    Directive,
    Evidence,
    Language,
    Library,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    knob_candidate,
)
from kernelwright.evaluators.cpu.check import Answers
from kernelwright.evaluators.cpu.memory import PAGE, Arena
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program

pytestmark = pytest.mark.cc

PROBLEM = matmul(m=16, n=24, k=8)
BASE = unscheduled_program(PROBLEM)
HEAD = """#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
void matmul(const float *restrict A, const float *restrict B, float *restrict C,
            int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += A[i * k + p] * B[p * n + j];
            C[i * n + j] = sum;
        }
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield Cpu(PROBLEM, flags=("-O1",), limit_s=1.0)
    patch.undo()


def source(body):
    return Candidate(Language.SOURCE, HEAD + body + "\n}\n")


def ask(judge, candidate, reference=BASE, role=Role.BASELINE, stage=Stage.SCREEN, **fields):
    (verdict,) = judge.evaluate(
        [Request(candidate, stage, (Reference(role, reference),), **fields)]
    )
    return verdict


FAULTS = {
    "C[0] += 1;": ("wrong", "wrong_value"),
    "C[5] = NAN;": ("wrong", "not_finite"),
    "C[5] = 1 / 0.0f;": ("wrong", "not_finite"),
    "((float *)A)[3] = 2;": ("wrong", "input_written"),
    "C[m * n] = 1;": ("crashed", "out_of_bounds"),
    "C[-1] = 1;": ("wrong", "out_of_bounds"),
    "C[-PAST] = 1;": ("crashed", "out_of_bounds"),
    "volatile float x = A[m * k]; (void)x;": ("crashed", "out_of_bounds"),
    "*(volatile int *)8 = 1;": ("crashed", "segmentation_fault"),
    "volatile int zero = 0; C[0] = 7 / zero;": ("crashed", "floating_point_exception"),
    "raise(SIGFPE);": ("crashed", "floating_point_exception"),
    "__builtin_trap();": ("crashed", "illegal_instruction"),
    "abort();": ("crashed", "abort"),
    "raise(SIGKILL);": ("crashed", "killed"),
    "exit(0);": ("crashed", "exit"),
    "_exit(3);": ("crashed", "exit"),
    "for (volatile int i = 0;; i++) {}": ("timeout", "timeout"),
    "raise(SIGSTOP);": ("timeout", "timeout"),
    "char deep[1 << 26]; volatile char *at = deep; at[0] = 1;": ("crashed", "segmentation_fault"),
    "C[0] = ;": ("build_error", "compile_error"),
    "void unheard_of(void); unheard_of();": ("build_error", "link_error"),
    "for (int i = 0; i < 3; i++) close(i);": ("crashed", None),
}


@pytest.mark.parametrize("body", FAULTS)
def test_every_way_to_fail_is_a_status_with_a_class_code(judge, body):
    status, code = FAULTS[body]
    verdict = ask(judge, source(body.replace("PAST", "1500")))
    assert verdict.status == status, verdict
    assert verdict.code == code or code is None
    assert verdict.evidence
    assert not verdict.measurements
    assert str(Path.home()) not in verdict.evidence
    assert ask(judge, BASE).status is Status.OK


def test_what_is_not_written_is_seen(judge):
    nothing = Candidate(Language.SOURCE, HEAD.partition("{")[0] + "{ (void)A; }")
    verdict = ask(judge, nothing)
    assert (verdict.status, verdict.code) == (Status.WRONG, "unwritten")
    assert "384 of 384" in verdict.evidence


def test_another_signature_does_not_compile(judge):
    text = "void matmul(const double *A, const float *B, float *C) { (void)A; }"
    verdict = ask(judge, Candidate(Language.SOURCE, text))
    assert (verdict.status, verdict.code) == (Status.BUILD_ERROR, "compile_error")
    assert "conflicting types" in verdict.log


def test_an_illegal_schedule_is_a_build_error_with_its_reason(judge):
    verdict = ask(judge, Candidate(Language.SCHEDULE, (Directive("vectorize", "nowhere"),)))
    assert (verdict.status, verdict.code) == (Status.BUILD_ERROR, "illegal_directive")
    assert "expected one of the loops" in verdict.evidence


def test_a_screen_is_one_process_pair_of_checked_calls(judge):
    verdict = ask(judge, source(""), pairs=4)
    assert verdict.status is Status.OK
    (m,) = verdict.measurements
    assert (m.evidence, m.role, m.cache_state) == (Evidence.MEASURED, Role.BASELINE, "cold")
    (pair,) = m.samples
    assert len(pair.samples_ns) == 4
    assert 0 < verdict.max_error < PROBLEM.error_model.bound


def test_a_screen_names_its_incumbent(judge):
    verdict = ask(judge, source(""), source("(void)0;"), Role.INCUMBENT, pairs=2)
    assert log2_speedup(verdict, Role.INCUMBENT) is not None
    assert log2_speedup(verdict) is None


def test_a_confirmation_swaps_the_start_order_and_claims(judge):
    verdict = ask(judge, source(""), stage=Stage.CONFIRM, process_pairs=3, pairs=2)
    assert verdict.status.is_claim
    (m,) = verdict.measurements
    assert [p.started_first for p in m.samples] == [Arm.CANDIDATE, Arm.REFERENCE, Arm.CANDIDATE]


def test_a_hopeless_candidate_is_screened_with_one_pair(judge):
    slow = source("for (volatile int i = 0; i < 1000000; i++) {}")
    (m,) = ask(judge, slow, pairs=6).measurements
    assert len(m.samples[0].samples_ns) == 1


def test_knobs_are_judged_by_sketch_and_by_template(judge):
    knobs = {knob.name: knob.values[0] for knob in PROBLEM.knobs}
    assert ask(judge, knob_candidate(knobs)).status is Status.OK
    text = HEAD.replace("p++", "p += STEP") + "}\n"
    templated = Cpu(replace(PROBLEM, template=text), flags=("-O1",))
    assert ask(templated, knob_candidate({"STEP": 1})).status is Status.OK
    assert ask(templated, knob_candidate({"STEP": 2})).status is Status.WRONG


def test_fixed_extents_are_macros(judge):
    assert ask(judge, source("if (KW_M != m || KW_N != n || KW_K != k) abort();")).status == "ok"


def test_the_library_is_an_arm_like_any_other(judge):
    library = judge.library
    assert library.language is Language.LIBRARY
    verdict = ask(judge, source(""), library, Role.LIBRARY, pairs=2)
    assert log2_speedup(verdict, Role.LIBRARY) is not None
    assert ask(judge, library).status is Status.OK


def test_a_library_that_is_not_there_is_no_library():
    missing = Library("nobody", "nobody:f", "nobody_at_all")
    assert Cpu(replace(PROBLEM, library=missing)).library is None
    assert Cpu(replace(PROBLEM, library=None)).library is None


def test_a_reference_that_fails_is_our_fault_not_the_candidates(judge):
    verdict = ask(judge, source(""), source("abort();"))
    assert (verdict.status, verdict.code) == (Status.BROKEN, "reference_failed")
    assert "SIGABRT" in verdict.evidence


def test_whole_numbers_are_compared_exactly():
    problem = histogram(n=1000, bins=16)
    judge = Cpu(problem, flags=("-O1",))
    base = unscheduled_program(problem)
    assert ask(judge, base, base).max_error == 0
    text = problem.plain_c.rstrip()
    assert text.endswith("}")
    output = next(t.name for t in problem.tensors if t.role == "output")
    off = Candidate(Language.SOURCE, f"{text[:-1]} {output}[3] += 1; }}")
    verdict = ask(judge, off, base)
    assert (verdict.status, verdict.code) == (Status.WRONG, "wrong_value")
    assert "1 of 16" in verdict.evidence


def test_ranged_extents_are_drawn_and_every_shape_is_checked():
    problem = row_sum(rows=Range(low=3, high=40), cols=Range(low=5, high=70))
    judge = Cpu(problem, flags=("-O1",))
    base = unscheduled_program(problem)
    assert base.language is Language.SOURCE
    assert ask(judge, base, base).status is Status.OK
    name = next(n for n, _ in problem.workloads[0].extents)
    picky = base.payload.rstrip()[:-1] + f"if ({name} > 3) __builtin_trap(); }}"
    assert ask(judge, Candidate(Language.SOURCE, picky), base).status is Status.CRASHED


def test_what_a_candidate_leaves_running_dies_with_it(judge, tmp_path):
    mark = tmp_path / "pid"
    body = f"""
    if (access("{mark}", 0)) {{
        int child = fork();
        if (!child) {{ for (;;) pause(); }}
        FILE *out = fopen("{mark}", "w"); fprintf(out, "%d", child); fclose(out);
    }}"""
    text = HEAD.replace("#include <unistd.h>", "#include <unistd.h>\n#include <stdio.h>")
    assert ask(judge, Candidate(Language.SOURCE, text + body + "}\n")).status is Status.OK
    child = int(mark.read_text())
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
    raise AssertionError("the child still runs")


def test_a_worker_sees_no_secret(judge, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen = Cpu(PROBLEM, flags=("-O1",))
    assert ask(seen, source('if (getenv("OPENAI_API_KEY")) abort();')).status is Status.OK


def test_it_builds_ahead_and_knows_how_long_it_takes(judge):
    assert isinstance(judge, Builds)
    assert isinstance(judge, Estimates)
    judge.prepare(source("C[0] = ;"))
    judge.prepare(source(""))
    request = Request(source(""), Stage.CONFIRM, (Reference(Role.BASELINE, BASE),), process_pairs=9)
    once = replace(request, process_pairs=1)
    assert judge.estimate_s(request) == pytest.approx(9 * judge.estimate_s(once))


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    found = Cpu(PROBLEM, toolchain="clang")
    if not found.missing:
        pytest.skip("the compiler was looked for before")
    assert "clang" in found.missing[0]


def small(values=None):
    problem = row_sum(rows=3, cols=5)
    rng = np.random.default_rng(0)
    arrays = values or problem.inputs(problem.workloads[0], rng)
    return problem, arrays, Arena(problem, problem.workloads[0], (arrays,))


def test_arrays_end_where_their_pages_end():
    _problem, _, arena = small()
    for slot in arena.slots:
        assert slot.offset % PAGE == 0
        assert slot.lead % 64 == 0
        assert 0 <= slot.map_bytes - slot.lead - slot.data_bytes < 64


def test_poison_is_seen_where_nothing_was_written():
    problem, _, arena = small()
    arena.poison(7)
    (name,) = (t.name for t in problem.tensors if t.role == "output")
    assert arena.poisoned(name).all()
    assert np.isnan(arena.views[name]).all()
    arena.views[name][1] = 4.0
    assert arena.poisoned(name).tolist() == [True, False, True]
    assert arena.damaged() is None


@pytest.mark.parametrize("place", [-1, -64, 12, 13, 60])
def test_a_write_beside_an_output_is_damage(place):
    _problem, _, arena = small()
    arena.poison(7)
    slot = next(s for s in arena.slots if not s.is_input)
    raw = arena._bytes
    at = slot.offset + slot.lead + place
    raw[at] ^= 1
    assert slot.name in arena.damaged()


def test_inputs_are_sealed_against_writers():
    import mmap

    _, _, arena = small()
    with pytest.raises(PermissionError):
        mmap.mmap(arena.inputs_fd, PAGE)
    mmap.mmap(arena.inputs_fd, PAGE, prot=mmap.PROT_READ).close()


def test_an_input_that_does_not_fit_is_refused():
    _problem, arrays, _ = small()
    name = next(iter(arrays))
    with pytest.raises(ValueError, match="expected float32"):
        small({**arrays, name: arrays[name].astype(np.float64)})


def test_the_answers_accept_themselves_and_nothing_far_off():
    problem, arrays, arena = small()
    answers = Answers(problem, arrays)
    (name,) = (t.name for t in problem.tensors if t.role == "output")
    arena.poison(1)
    arena.views[name][...] = problem.reference(arrays)[name]
    fault, error = answers.check(arena)
    assert fault is None
    assert error <= problem.error_model.bound
    arena.views[name][2] *= 1.001
    fault, _ = answers.check(arena)
    assert fault.code == "wrong_value"
    assert f"{name}[2]" in fault.evidence
    assert os.path.sep not in fault.evidence


def test_states_are_recorded(judge):
    verdict = ask(judge, source(""), state=CacheState.WARM)
    assert verdict.measurements[0].cache_state is CacheState.WARM


def test_every_process_pair_of_a_confirmation_has_memory_of_its_own(judge):
    ask(judge, source(""))
    stage = judge._stage(PROBLEM.workloads[0], 0)
    first = stage.arena
    ask(judge, source(""))
    assert stage.arena is first
    ask(judge, source(""), stage=Stage.CONFIRM, process_pairs=2, pairs=1)
    assert stage.arena is not first
    assert first.inputs_fd == -1
