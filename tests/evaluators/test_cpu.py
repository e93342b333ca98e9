"""The target ``cpu``: every way to fail is a status with a class code; what passes is measured."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelwright.env.objective import log2_speedup
from kernelwright.env.options import ProblemError
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
    ErrorModel,
    Evidence,
    ExtentRange,
    Language,
    Library,
    Problem,
    Reference,
    Request,
    Role,
    Stage,
    Status,
    TensorSpec,
    Workload,
    knob_candidate,
)
from kernelwright.evaluators.cpu.build import CompilerBrokenError
from kernelwright.evaluators.cpu.check import Answers
from kernelwright.evaluators.cpu.memory import PAGE, Arena, see_that_they_fit
from kernelwright.evaluators.cpu.policy import Judging, Profile
from kernelwright.evaluators.cpu.target import Cpu, odd_near, unscheduled_program

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
    # What strict refuses before it is loaded must be caught when it runs, too.
    yield Cpu(PROBLEM, flags=("-O1",), limit_s=1.0, judging=Judging(profile=Profile.STANDARD))
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
    "raise(SIGFPE);": ("rejected", "forbidden_syscall"),
    "__builtin_trap();": ("crashed", "illegal_instruction"),
    "abort();": ("crashed", "abort"),
    "raise(SIGKILL);": ("rejected", "forbidden_syscall"),
    "exit(0);": ("crashed", "exit"),
    "_exit(3);": ("crashed", "exit"),
    "for (volatile int i = 0;; i++) {}": ("timeout", "timeout"),
    "raise(SIGSTOP);": ("rejected", "forbidden_syscall"),
    "char deep[1 << 26]; volatile char *at = deep; at[0] = 1;": ("crashed", "segmentation_fault"),
    "C[0] = ;": ("build_error", "compile_error"),
    "void unheard_of(void); unheard_of();": ("build_error", "link_error"),
    "for (int i = 0; i < 3; i++) close(i);": ("rejected", "forbidden_syscall"),
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
    assert len(m.samples[0].samples_ns) <= 2


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
    assert "crashed: stopped by SIGABRT" in verdict.evidence


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


def test_no_process_is_left_behind(judge):
    verdict = ask(judge, source("if (!fork()) for (;;) pause();"))
    assert (verdict.status, verdict.code) == (Status.REJECTED, "forbidden_syscall")
    assert "clone" in verdict.evidence or "fork" in verdict.evidence


def test_a_worker_sees_no_secret(judge, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen = Cpu(PROBLEM, flags=("-O1",), judging=Judging(profile=Profile.STANDARD))
    assert ask(seen, source('if (getenv("OPENAI_API_KEY")) abort();')).status is Status.OK


def test_it_builds_ahead_and_knows_how_long_it_takes(judge):
    assert isinstance(judge, Builds)
    assert isinstance(judge, Estimates)
    judge.prepare(source("C[0] = ;"))
    judge.prepare(source(""))
    request = Request(source(""), Stage.CONFIRM, (Reference(Role.BASELINE, BASE),), process_pairs=9)
    once = replace(request, process_pairs=1)
    assert judge.estimate_s(request) == pytest.approx(9 * judge.estimate_s(once))


def test_a_library_that_never_loads_costs_the_time_of_a_call():
    trusting = Judging(profile=Profile.TRUSTED_CODEGEN)
    judge = Cpu(PROBLEM, flags=("-O1",), limit_s=1.0, judging=trusting)
    at_load = "__attribute__((constructor)) static void at_load(void) { for (;;); }"
    verdict = ask(judge, Candidate(Language.SOURCE, f"{HEAD}}}\n{at_load}\n"))
    assert (verdict.status, verdict.code) == (Status.TIMEOUT, "timeout")
    assert "loading took longer than 1 s" in verdict.evidence


def test_verdicts_come_in_the_order_of_requests(judge):
    against = (Reference(Role.BASELINE, BASE),)
    bodies = ["", "abort();", "C[0] += 1;"]
    requests = [Request(source(body), Stage.SCREEN, against) for body in bodies]
    assert [v.status for v in judge.evaluate(requests)] == ["ok", "crashed", "wrong"]


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    found = Cpu(PROBLEM, toolchain="clang")
    assert "clang" in found.missing[0]


def small(values=None, slots=2):
    problem = row_sum(rows=3, cols=5)
    rng = np.random.default_rng(0)
    arrays = values or problem.inputs(problem.workloads[0], rng)
    arena = Arena(problem, problem.workloads[0], slots, rng)
    for slot in range(slots):
        arena.write(slot, arrays)
    arena.show()
    return problem, arrays, arena


def test_arrays_end_where_their_pages_end():
    _problem, _, arena = small()
    for field in arena.fields:
        assert field.offset % PAGE == 0
        assert field.lead % 64 == 0
        assert 0 <= field.map_bytes - field.lead - field.data_bytes < 64


def test_no_two_arrays_of_an_arena_touch():
    _problem, _, arena = small(slots=5)
    spans = sorted(
        (at, at + field.map_bytes)
        for row in arena.addresses
        for field, at in zip(arena.fields, row, strict=True)
    )
    ends = [arena.base, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), arena.base + arena.reserve_bytes]
    assert all(end + PAGE <= start for end, start in zip(ends, starts, strict=True))


def test_addresses_differ_from_arena_to_arena():
    problem, _, _ = small()
    rng = np.random.default_rng(1)
    bases = {Arena(problem, problem.workloads[0], 1, rng).base for _ in range(20)}
    assert len(bases) == 20


def test_poison_is_seen_where_nothing_was_written():
    problem, _, arena = small()
    arena.poison(7)
    (name,) = (t.name for t in problem.tensors if t.role == "output")
    assert arena.outputs_of(1).poisoned(name).all()
    assert np.isnan(arena.written[1][name]).all()
    arena.written[1][name][1] = 4.0
    assert arena.outputs_of(1).poisoned(name).tolist() == [True, False, True]
    assert arena.damaged(range(1, 2)) is None
    assert arena.damaged(range(1)) == "outputs of another call"


@pytest.mark.parametrize("place", [-1, -64, 12, 13, 60])
def test_a_write_beside_an_output_is_damage(place):
    _problem, _, arena = small()
    arena.poison(7)
    field = next(f for f in arena.fields if not f.is_input)
    arena._bytes[field.offset + field.lead + place] ^= 1
    assert field.name in arena.damaged(range(1))


def test_an_address_has_an_owner():
    _problem, _, arena = small()
    field, at = arena.fields[0], arena.addresses[1][0]
    assert arena.owner(at + 8) == (field, "in")
    assert arena.owner(at - 1) == (field, "before")
    assert arena.owner(at + field.map_bytes) == (field, "behind")
    assert arena.owner(8) is None


def test_inputs_are_sealed_against_writers():
    import mmap

    _, _, arena = small()
    with pytest.raises(PermissionError):
        mmap.mmap(arena.inputs_fd, PAGE)
    mmap.mmap(arena.inputs_fd, PAGE, prot=mmap.PROT_READ).close()


def test_an_input_that_does_not_fit_is_refused():
    problem, arrays, arena = small()
    name = next(iter(arrays))
    see_that_they_fit(problem, arena.fields, arrays)
    with pytest.raises(ProblemError, match="expected float32"):
        see_that_they_fit(problem, arena.fields, {**arrays, name: arrays[name].astype(float)})


def test_the_answers_accept_themselves_and_nothing_far_off():
    problem, arrays, arena = small()
    answers = Answers(problem, arrays, {f.name: f.shape for f in arena.fields if not f.is_input})
    (name,) = (t.name for t in problem.tensors if t.role == "output")

    def check():
        found = arena.outputs_of(0)
        return answers.check(found.arrays, found.poisoned)

    arena.poison(1)
    assert check()[0].code == "unwritten"
    arena.written[0][name][...] = problem.reference(arrays)[name]
    fault, error = check()
    assert fault is None
    assert error <= problem.error_model.bound
    arena.written[0][name][2] *= 1.001
    assert answers.compare(arena.written[0]) > problem.error_model.bound
    fault, _ = check()
    assert fault.code == "wrong_value"
    assert f"{name}[2]" in fault.evidence
    assert os.path.sep not in fault.evidence


def test_states_are_recorded(judge):
    verdict = ask(judge, source(""), state=CacheState.WARM)
    assert verdict.measurements[0].cache_state is CacheState.WARM


def test_an_answer_remembered_by_address_is_wrong():
    problem = row_sum(rows=64, cols=8)
    base = unscheduled_program(problem)
    text = """
    #include <string.h>
    static const float *known[512]; static float kept[512][64]; static int count;
    void row_sum(const float *restrict x, float *restrict y, int64_t rows, int64_t cols) {
        for (int i = 0; i < count; i++)
            if (known[i] == x) { memcpy(y, kept[i], sizeof kept[i]); return; }
        for (int64_t i = 0; i < rows; i++) {
            y[i] = 0;
            for (int64_t j = 0; j < cols; j++) y[i] += x[i * cols + j];
        }
        known[count] = x; memcpy(kept[count++], y, sizeof kept[0]);
    }"""
    verdict = ask(Cpu(problem, flags=("-O1",)), Candidate(Language.SOURCE, text), base, pairs=30)
    assert (verdict.status, verdict.code) == (Status.WRONG, "wrong_value")


def test_whole_numbers_show_a_single_missing_term():
    problem = row_sum(rows=2, cols=1 << 16)
    base = unscheduled_program(problem)
    short = problem.plain_c.replace("j < cols", "j < cols - 1")
    assert short != problem.plain_c
    judge = Cpu(problem, flags=("-O1",))
    assert ask(judge, base, base, pairs=20).status is Status.OK
    verdict = ask(judge, Candidate(Language.SOURCE, short), base, pairs=30)
    assert (verdict.status, verdict.code) == (Status.WRONG, "wrong_value")


def own(reference, *, inputs=None, dtype="float32", shape=("n",), bound=1e-6, roles=()):
    """A problem y = f(x) with these parts."""
    tensors = (
        TensorSpec("x", ("n",), "float32", "input"),
        TensorSpec("y", shape, dtype, "output"),
        *roles,
    )
    draw = inputs or (lambda w, rng: {"x": rng.random(w.fixed["n"], np.float32)})
    return Problem(
        name="own",
        version=1,
        tensors=tensors,
        workloads=(Workload((("n", 8),)),),
        error_model=ErrorModel(bound, "made up"),
        reference=reference,
        inputs=draw,
        flops=lambda w: 8,
        moved_bytes=lambda w: 64,
        spaces=("source",),
        plain_c="void own(const float *restrict x, float *restrict y, int64_t n) {}",
    )


def kernel(body, output="float"):
    head = f"void own(const float *restrict x, {output} *restrict y, int64_t n)"
    return Candidate(
        Language.SOURCE, f"#include <math.h>\n#include <stdlib.h>\n{head} {{ {body} }}"
    )


def shuffled(values):
    """A generator of these values in any order: what never changes could be remembered."""
    return lambda w, rng: {"x": rng.permutation(values)}


def roots(arrays):
    with np.errstate(all="ignore"):
        return {"y": np.sqrt(arrays["x"])}


def test_what_is_no_number_in_the_reference_must_be_none_in_the_answer():
    def logs(arrays):
        with np.errstate(all="ignore"):
            return {"y": np.log(arrays["x"].astype(np.float64))}

    values = np.array([-1, 0, 1, 2, 3, 4, 5, np.inf], np.float32)
    for bound in (1e-6, 0.0):
        problem = own(logs, inputs=shuffled(values), bound=bound)
        problem = replace(problem, non_finite=True)
        if bound == 0.0:
            problem = replace(problem, reference=roots)
        judge = Cpu(problem, flags=("-O1",))
        function = "logf" if bound else "sqrtf"
        right = kernel(f"for (int i = 0; i < n; i++) y[i] = {function}(x[i]);")
        assert ask(judge, right, right).status is Status.OK
        off = kernel(f"for (int i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : {function}(x[i]);")
        verdict = ask(judge, off, right)
        assert (verdict.status, verdict.code) == (Status.WRONG, "wrong_value")
        assert "at y[" in verdict.evidence


def test_a_truth_value_is_0_or_1():
    problem = own(lambda a: {"y": a["x"] > 0.5}, dtype="bool", bound=0.0)
    judge = Cpu(problem, flags=("-O1",))
    right = kernel("for (int i = 0; i < n; i++) y[i] = x[i] > 0.5f;", "uint8_t")
    assert ask(judge, right, right, pairs=4).status is Status.OK
    for body in ("y[i] = x[i] > 0.5f ? 255 : 0;", "if (!(x[i] > 0.5f)) y[i] = 0;"):
        other = kernel(f"for (int i = 0; i < n; i++) {{ {body} }}", "uint8_t")
        assert ask(judge, other, right, pairs=4).status is Status.WRONG


def test_an_output_without_axes_is_one_number():
    problem = own(lambda a: {"y": a["x"].astype(np.float64).sum()}, shape=())
    judge = Cpu(problem, flags=("-O1",))
    right = kernel("*y = 0; for (int i = 0; i < n; i++) *y += x[i];")
    assert ask(judge, right, right).status is Status.OK


def same(arrays):
    return {"y": arrays["x"]}


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (own(same, dtype="complex64"), "y: expected one of .* found complex64"),
        (own(same, roles=(TensorSpec("s", ("n",), "float32", "scratch"),)), "s: .*scratch"),
    ],
)
def test_tensors_that_have_no_place_are_refused(problem, said):
    with pytest.raises(ProblemError, match=said):
        Cpu(problem)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (own(lambda a: {"z": a["x"]}), "expected outputs .'y'., found .'z'."),
        (own(lambda a: {"y": a["x"][1:]}), r"expected numbers of shape \[8\], found float32\[7\]"),
        (own(lambda a: a["q"]), "reference: KeyError: 'q'"),
        (own(same, inputs=lambda w, rng: {}), "inputs: expected an array x, found nothing"),
        (own(same, inputs=lambda w, rng: {"x": np.ones(3)}), r"x: expected float32\[8\]"),
        (own(same, inputs=lambda w, rng: 1 / 0), "inputs: ZeroDivisionError"),
    ],
)
def test_a_problem_whose_parts_do_not_fit_is_named(problem, said):
    right = kernel("for (int i = 0; i < n; i++) y[i] = x[i];")
    with pytest.raises(ProblemError, match=said):
        ask(Cpu(problem, flags=("-O1",)), right, right)


def test_memory_is_bounded(judge):
    body = "volatile char *at = malloc(8UL << 30); if (!at) __builtin_trap(); at[1] = 1;"
    verdict = ask(judge, source(body))
    assert (verdict.status, verdict.code) == (Status.CRASHED, "illegal_instruction")


def test_no_file_is_written(judge, tmp_path):
    path = tmp_path / "flood"
    body = f'creat("{path}", 0600);'
    text = HEAD.replace("#include <unistd.h>", "#include <unistd.h>\n#include <fcntl.h>")
    verdict = ask(judge, Candidate(Language.SOURCE, f"{text}{body}\n}}\n"))
    assert (verdict.status, verdict.code) == (Status.REJECTED, "forbidden_syscall")
    assert not path.exists()


@pytest.mark.audit
def test_a_pruned_cache_is_filled_again(tmp_path, monkeypatch):
    import shutil

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fresh = Cpu(PROBLEM, flags=("-O1",))
    assert ask(fresh, source("")).status is Status.OK
    for library in tmp_path.rglob("kernel.so"):
        library.unlink()
    assert ask(fresh, source("")).status is Status.OK
    shutil.rmtree(tmp_path / "kernelwright")
    assert ask(fresh, source("")).status is Status.OK


def test_a_compiler_that_breaks_is_nobody_s_build_error(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fresh = Cpu(PROBLEM, flags=("-O1",))
    assert ask(fresh, source("C[0] = ;")).status is Status.BUILD_ERROR
    broken = replace(fresh._builder._toolchain, command=("/bin/false",))
    monkeypatch.setattr(fresh._builder, "_toolchain", broken)
    with pytest.raises(CompilerBrokenError, match="no longer compiles anything"):
        ask(fresh, source("(void)1;"))


def test_every_range_with_an_odd_number_gives_odd_numbers():
    for low in range(1, 7):
        for high in range(low, 9):
            for value in range(low, high + 1):
                got = odd_near(value, ExtentRange(low, high))
                assert low <= got <= high
                assert got % 2 == 1 or low == high


def test_the_least_the_greatest_and_an_odd_extent_are_drawn():
    problem = row_sum(rows=4, cols=Range(low=16, high=64))
    judge = Cpu(problem)
    drawn = [judge._drawn(problem.workloads[0], number).fixed["cols"] for number in range(3)]
    assert drawn[:2] == [16, 64]
    assert drawn[2] % 2 == 1


def with_a_nan(arrays=None, magnitude=None, bound=1e-6, dtype="float64"):
    values = np.array([1, 2, 3, np.nan, 5, 6, 7, 8], np.float32)

    def times_3(arrays):
        return {"y": arrays["x"].astype(dtype) * 3}

    problem = own(times_3, inputs=shuffled(values), bound=bound)
    return replace(problem, magnitude=magnitude, non_finite=True)


@pytest.mark.parametrize("bound", [1e-6, 0.0])
@pytest.mark.parametrize("magnitude", [None, lambda a: {"y": np.abs(a["x"]) * 3}])
def test_an_element_that_was_not_written_is_no_nan(bound, magnitude):
    judge = Cpu(with_a_nan(magnitude=magnitude, bound=bound), flags=("-O1",))
    right = kernel("for (int i = 0; i < n; i++) y[i] = x[i] * 3;")
    assert ask(judge, right, right, pairs=3).status is Status.OK
    lazy = kernel("for (int i = 0; i < n; i++) if (x[i] == x[i]) y[i] = x[i] * 3;")
    verdict = ask(judge, lazy, right)
    assert (verdict.status, verdict.code) == (Status.WRONG, "unwritten")
    off = kernel("for (int i = 0; i < n; i++) y[i] = x[i] * (x[i] == 7 ? 4 : 3);")
    verdict = ask(judge, off, right)
    assert (verdict.status, verdict.code) == (Status.WRONG, "wrong_value")
    if magnitude is not None or bound == 0:
        assert "1 of 8 elements are off" in verdict.evidence


@pytest.mark.parametrize("scale", [1e20, 1e-25])
def test_a_reference_in_a_narrow_dtype_is_compared_in_a_wide_one(scale):
    def doubled(arrays):
        return {"y": arrays["x"] * np.float32(2)}

    values = np.linspace(1, 2, 8, dtype=np.float32) * np.float32(scale)
    judge = Cpu(own(doubled, inputs=shuffled(values)), flags=("-O1",))
    right = kernel("for (int i = 0; i < n; i++) y[i] = x[i] * 2.0000002f;")
    assert ask(judge, right, right).status is Status.OK
    for body in ("y[i] = x[i] * 3;", "y[i] = 0;"):
        other = kernel(f"for (int i = 0; i < n; i++) {body}")
        assert ask(judge, other, right).code == "wrong_value"


@pytest.mark.parametrize(
    ("magnitude", "said"),
    [
        (lambda a: {"z": a["x"]}, "magnitude: .*expected outputs .'y'., found .'z'."),
        (lambda a: {"y": a["x"][:3]}, "magnitude: ValueError"),
        (lambda a: 1 / 0, "magnitude: ZeroDivisionError"),
    ],
)
def test_a_magnitude_that_does_not_fit_is_named(magnitude, said):
    problem = replace(own(same), magnitude=magnitude)
    right = kernel("for (int i = 0; i < n; i++) y[i] = x[i];")
    with pytest.raises(ProblemError, match=said):
        ask(Cpu(problem, flags=("-O1",)), right, right)


def test_a_reference_that_raises_on_whole_numbers_is_named():
    def picky(arrays):
        if np.array_equal(arrays["x"], np.rint(arrays["x"])):
            raise KeyError("whole")
        return {"y": arrays["x"] * np.float32(2)}

    problem = replace(own(picky), exact_on_integers=True)
    right = kernel("for (int i = 0; i < n; i++) y[i] = x[i] * 2;")
    with pytest.raises(ProblemError, match="exact_on_integers: KeyError"):
        ask(Cpu(problem, flags=("-O1",)), right, right)


@pytest.mark.parametrize("change", ["+= 1", "*= 2", "/= 3"])
def test_arithmetic_beside_an_output_is_seen(judge, change):
    verdict = ask(judge, source(f"C[-1] {change};"))
    assert (verdict.status, verdict.code) == (Status.WRONG, "out_of_bounds")
    assert "before C" in verdict.evidence
    # 16 x 24 floats end with their page, but 15 x 23 do not.
    odd = Cpu(matmul(m=15, n=23, k=8), flags=("-O1",))
    verdict = ask(odd, source(f"C[m * n] {change};"), unscheduled_program(odd.problem))
    assert (verdict.status, verdict.code) == (Status.WRONG, "out_of_bounds")
    assert "behind C" in verdict.evidence


def test_a_reference_may_not_change_its_inputs():
    def careless(arrays):
        arrays["x"][0] = 0
        return {"y": arrays["x"] * np.float32(2)}

    right = kernel("for (int i = 0; i < n; i++) y[i] = x[i] * 2;")
    with pytest.raises(ProblemError, match="read-only"):
        ask(Cpu(own(careless), flags=("-O1",)), right, right)


def test_another_name_is_a_missing_entry():
    strict = Cpu(PROBLEM, flags=("-O1",))
    verdict = ask(strict, Candidate(Language.SOURCE, "void matmul2(void) {}"))
    assert (verdict.status, verdict.code) == (Status.BUILD_ERROR, "missing_entry")
    assert "expected a function matmul" in verdict.evidence


def test_an_assertion_that_fails_is_an_abort():
    text = HEAD.replace("#include <math.h>", "#include <math.h>\n#include <assert.h>")
    verdict = ask(Cpu(PROBLEM), Candidate(Language.SOURCE, text + "assert(m == 3);}"))
    assert (verdict.status, verdict.code) == (Status.CRASHED, "abort")
    verdict = ask(Cpu(PROBLEM), source("kill(getpid(), SIGABRT);"))
    assert verdict.status is Status.REJECTED
