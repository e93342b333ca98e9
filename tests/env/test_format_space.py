"""Programs that decide the format of a sparse operand and then the loops that fit it."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.configs.load import shipped_configs
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.pipeline import compile_procedure
from kernelwright.env.compiler.runtime.cache import BuildCache
from kernelwright.env.compiler.schedule.decision import without_decisions
from kernelwright.env.compiler.schedule.trace import apply_trace
from kernelwright.env.options import OptionError
from kernelwright.env.problems.program import definition_of, program
from kernelwright.env.problems.sparse.spmv import spmv_formats
from kernelwright.env.problems.spmv import spmv as spmv_of_one_format
from kernelwright.env.spaces.schedule import ProgramSpace
from kernelwright.env.spaces.schedule.formats import WAYS, spmv

FORMATS = ["csr", "dcsr", "coo", "csc", "bcsr(2,2)", "bcsr(4,4)", "ell", "ellslots", "dia"]


@pytest.fixture(scope="module")
def problem():
    return spmv_formats(rows=36, cols=28, nnz=200, matrix="banded", formats=FORMATS)


def space_of(problem, threads=1):
    return ProgramSpace(definition_of(problem, problem.workloads[0]), spmv, threads=threads)


def decided(space, candidate):
    return {name: value[0] for name, value in space.run_of(candidate).values.items()}


def drawn(space, count=300):
    """Schedules of which no two are the same, with what was decided."""
    rng = np.random.default_rng(0)
    found = {}
    for _ in range(count):
        candidate = space.sample(rng)
        found.setdefault(without_decisions(candidate.payload), decided(space, candidate))
    return found


def test_every_format_and_every_way_of_it_is_drawn(problem):
    found = [
        (d["format_A"].partition("(")[0], d["loops"]) for d in drawn(space_of(problem)).values()
    ]
    wanted = {
        (name, way)
        for name in {text.partition("(")[0] for text in FORMATS}
        for way in WAYS.get(name, ("plain",))
    }
    assert set(found) == wanted


def test_whatever_is_drawn_computes_the_reference(problem):
    (chosen,) = problem.workloads
    arrays = problem.inputs(chosen, np.random.default_rng(1))
    wanted = problem.reference(arrays)["y"]
    limit = problem.error_model.bound * problem.magnitude(arrays)["y"]
    for trace, decisions in drawn(space_of(problem, threads=2)).items():
        scheduled = apply_trace(problem.definition(chosen), trace)
        got = interpret(scheduled, arrays, chosen.fixed)["y"]
        assert (abs(got - wanted) <= limit).all(), decisions


@pytest.mark.cc
def test_whatever_is_drawn_compiles_and_computes_the_reference(problem, tmp_path):
    (chosen,) = problem.workloads
    arrays = problem.inputs(chosen, np.random.default_rng(2))
    wanted = problem.reference(arrays)["y"]
    limit = problem.error_model.bound * problem.magnitude(arrays)["y"]
    cache = BuildCache(tmp_path)
    for trace, decisions in drawn(space_of(problem)).items():
        kernel = compile_procedure(problem.definition(chosen), trace, cache=cache, flags=("-O1",))
        assert (abs(kernel(arrays, chosen.fixed)["y"] - wanted) <= limit).all(), decisions


def test_rows_run_in_parallel_where_there_are_threads(problem):
    ops = {step.op for trace in drawn(space_of(problem, threads=2)) for step in trace}
    assert "parallel" in ops
    assert "parallel" not in {step.op for trace in drawn(space_of(problem)) for step in trace}


def test_a_mutation_may_change_the_format(problem):
    space = space_of(problem)
    rng = np.random.default_rng(5)
    candidate = space.sample(rng)
    formats = set()
    for _ in range(60):
        candidate = space.mutate(candidate, rng) or candidate
        formats.add(decided(space, candidate)["format_A"])
        assert program(problem, candidate, problem.workloads[0]).entry == "spmv_formats"
    assert len(formats) > 3


def test_a_problem_without_formats_is_refused():
    plain = spmv_of_one_format(rows=9, cols=9, nnz=20)
    with pytest.raises(OptionError, match="formats of A to choose from"):
        ProgramSpace(definition_of(plain, plain.workloads[0]), spmv)


def test_the_shipped_campaign_is_over_formats():
    text = shipped_configs()["spmv_format_search"].read_text()
    assert f"{spmv.__module__}:{spmv.__name__}" in text
