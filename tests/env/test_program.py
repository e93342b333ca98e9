"""Any candidate as C: schedules of every problem mean what the interpreter means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_codegen import needs_cc
from toys import CPU_PROBLEMS, FORMATTED

from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.pipeline import lower
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.runtime.call import Kernel
from kernelwright.env.compiler.runtime.toolchain import find_toolchain
from kernelwright.env.compiler.schedule.trace import print_trace
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.program import (
    ProgramError,
    arguments,
    definition_of,
    extent_macros,
    program,
)
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Candidate, Directive, Language, knob_candidate
from kernelwright.evaluators.cpu.check import Answers

# Sizes that no tile divides and some that it does.
SIZES = {
    "matmul": {"m": 9, "n": 17, "k": 6},
    "softmax": {"rows": 5, "cols": 19},
    "row_sum": {"rows": 9, "cols": 21},
    "transpose": {"rows": 10, "cols": 18},
    "prefix_sum": {"n": 37},
    "histogram": {"n": 61, "bins": 7},
    "blur": {"h": 6, "w": 19},
    "gelu": {"n": 35},
    "layer_norm": {"rows": 4, "cols": 18},
    "conv3x3": {"h": 6, "w": 17},
    "spmv": {"rows": 9, "cols": 8, "nnz": 20},
    "jacobi1d": {"n": 19, "t": 3},
    "jacobi2d": {"h": 7, "w": 11, "t": 2},
    "gauss_seidel": {"h": 7, "w": 11, "t": 2},
    "batched_matmul": {"batch": 3, "m": 5, "n": 9, "k": 4},
    "column_sum": {"rows": 9, "cols": 21},
    "conv2d_nchw": {"images": 2, "channels": 3, "filters": 2, "h": 4, "w": 9},
    "conv2d_nhwc": {"images": 2, "channels": 3, "filters": 9, "h": 4, "w": 5},
    "depthwise": {"channels": 3, "h": 4, "w": 9},
    "box4": {"h": 4, "w": 9},
    "unsharp": {"h": 5, "w": 11},
    "pyramid": {"h": 9, "w": 13},
    **FORMATTED,
}


def problem_of(name):
    return resolve(PROBLEMS, name)(**SIZES[name])


def test_every_problem_for_the_cpu_is_here():
    assert set(SIZES) == set(CPU_PROBLEMS)


def moved(space, seed):
    """A drawn schedule, and now and then some legal moves beyond it."""
    rng = np.random.default_rng(seed)
    candidate = space.sample(rng)
    for _ in range(int(rng.integers(0, 3))):
        candidate = space.mutate(candidate, rng) or candidate
    return candidate


@needs_cc
@settings(deadline=None, max_examples=36, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(SIZES)), st.integers(0, 10**6))
def test_any_schedule_of_any_problem_leaves_interpreter_c_and_numpy_equal(
    tmp_path_factory, name, seed
):
    problem = problem_of(name)
    workload = problem.workloads[0]
    procedure = definition_of(problem, workload)
    candidate = moved(ScheduleSpace(procedure, threads=1 + seed % 2), seed)
    inputs = problem.inputs(workload, np.random.default_rng(seed))
    lowered = lower(procedure, candidate.payload)
    note = print_trace(candidate.payload)
    interpreted = interpret(lowered.procedure, inputs, workload.fixed)
    cache = BuildCache(tmp_path_factory.getbasetemp() / "builds")
    flags = ("-O1", "-march=native", "-ffp-contract=off")
    build = cache.build(lowered.source, find_toolchain(), flags)
    # The procedure's own arguments have constant shapes, the problem's named ones.
    given_ = tuple(
        replace(a, shape=tuple(int(e.value) for e in t.shape))
        for a, t in zip(arguments(problem), lowered.procedure.tensors, strict=True)
    )
    names = tuple(workload.fixed)
    got = Kernel(build.library, problem.name, given_, names)(inputs, workload.fixed)
    answers = Answers(problem, inputs, {output: array.shape for output, array in got.items()})
    for output, array in got.items():
        # Only exp and erf are the C library's own; they may differ from NumPy's in the last bits,
        # and 1 + erf(x) loses the leading ones.
        if name in ("softmax", "gelu"):
            near = {"rtol": 1e-6, "atol": 1e-6, "err_msg": note}
            np.testing.assert_allclose(array, interpreted[output], **near)
        else:
            np.testing.assert_array_equal(array, interpreted[output], err_msg=note)
    assert answers.compare(got) <= problem.error_model.bound, note


def test_what_a_candidate_s_language_needs_must_be_there():
    problem = problem_of("softmax")
    workload = problem.workloads[0]
    with pytest.raises(ProgramError, match="expected a candidate with a C form"):
        program(problem, knob_candidate({"tile": 4}), workload)
    with pytest.raises(ProgramError, match="expected a definition"):
        program(replace(problem, definition=None), Candidate(Language.SCHEDULE, ()), workload)
    illegal = Candidate(Language.SCHEDULE, (Directive("unroll", "nowhere"),))
    with pytest.raises(ScheduleError, match="expected one of the loops"):
        program(problem, illegal, workload)


def test_ranges_have_no_schedule_and_no_macro():
    problem = resolve(PROBLEMS, "row_sum")(rows=4)
    ranged = resolve(PROBLEMS, "row_sum")
    from kernelwright.env.problems.shapes import Range

    some = ranged(rows=Range(low=2, high=5), cols=8)
    with pytest.raises(ProgramError, match="rows"):
        program(some, Candidate(Language.SCHEDULE, ()), some.workloads[0])
    assert extent_macros(some.workloads[0]) == ["#define KW_COLS 8"]
    assert "#define KW_ROWS 4" in extent_macros(problem.workloads[0])


def test_a_template_s_knobs_are_macros_before_its_text():
    problem = replace(problem_of("row_sum"), template="int a;")
    made = program(problem, knob_candidate({"T": 4, "FAST": True, "X": 0.5}), problem.workloads[0])
    lines = made.text.splitlines()
    assert lines[:3] == ["#define FAST 1", "#define T 4", "#define X 0.5"]
    assert lines[-1] == "int a;"
    assert made.entry == "row_sum"


def test_a_knob_candidate_is_the_schedule_of_its_sketch():
    problem = problem_of("matmul")
    knobs = {knob.name: knob.values[-1] for knob in problem.knobs}
    made = program(problem, knob_candidate(knobs), problem.workloads[0])
    assert made.trace == problem.sketch(knobs)
    assert (
        made.text
        == program(problem, Candidate(Language.SCHEDULE, made.trace), problem.workloads[0]).text
    )
