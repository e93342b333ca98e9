"""Every directive has proposals, and among them one that is legal somewhere."""

from __future__ import annotations

from contextlib import suppress

import pytest

from kernelwright.configs.resolve import resolve
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.env.compiler.schedule.proposals import PROPOSALS, proposals
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace
from kernelwright.env.problems import PROBLEMS
from kernelwright.env.problems.program import definition_of

# Programs in which each kind of directive has something to do.
PROGRAMS = [
    ("matmul", {"m": 8, "n": 32, "k": 4}, ""),
    ("blur", {"h": 8, "w": 16}, ""),
    ("blur", {"h": 8, "w": 16}, "compute_at('blurx', 'y')"),
    ("blur", {"h": 8, "w": 16}, "split('y', 4)\ncompute_at('blurx', 'yi')"),
    ("blur", {"h": 8, "w": 16}, "compute_at('blurx', 'y')\nstore_root('blurx')"),
    ("blur", {"h": 9, "w": 17}, "split('x', 4)"),
    ("gauss_seidel", {"h": 6, "w": 7, "t": 2}, ""),
    ("jacobi1d", {"n": 12, "t": 3}, ""),
    ("matmul", {"m": 8, "n": 16, "k": 4}, "cache_read('A', 'i')\nbind('i', 'thread.x')"),
    ("matmul", {"m": 16, "n": 32, "k": 8}, "cache_read('B', 'p')"),
]


def programs():
    for name, options, trace in PROGRAMS:
        problem = resolve(PROBLEMS, name)(**options)
        procedure = definition_of(problem, problem.workloads[0])
        try:
            yield apply_trace(procedure, parse_trace(trace))
        except ScheduleError as error:
            raise AssertionError(f"{name}: {trace!r}: {error}") from error


def test_every_directive_has_proposals():
    assert set(PROPOSALS) == set(DIRECTIVES)


@pytest.mark.parametrize("op", sorted(PROPOSALS))
def test_some_proposal_is_legal_somewhere(op):
    legal = 0
    for procedure in programs():
        for directive in list(proposals(procedure, op))[:60]:
            assert directive.op == op
            with suppress(ScheduleError):
                apply(procedure, directive)
                legal += 1
        if legal:
            return
    assert (legal == 0) == (op in NEEDS_MORE), op


# What asks for a program of its own, made in the directive's own tests.
NEEDS_MORE = {
    "bound",
    "specialize",
    "software_pipeline",
    "tensorize",
    "barrier",
    "pad",
    "bound_storage",
}
