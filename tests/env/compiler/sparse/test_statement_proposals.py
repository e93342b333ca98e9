"""What may be tried on a statement: drivers find each kind of directive, always before loops."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.schedule import FRONT_END_DIRECTIVES
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace, print_trace
from kernelwright.env.compiler.sparse.build import program
from kernelwright.env.compiler.sparse.lower import lower
from kernelwright.env.compiler.sparse.named import parse_format
from kernelwright.env.spaces.schedule.space import ScheduleSpace

MTTKRP = "M(i,r) = T(i,j,k) * C(j,r) * D(k,r)"
PRODUCT = "C(i,j) = A(i,k) * B(k,j)"


def offered():
    made = program("y(i) = A(i,j) * x(j)", {"A": "csr"})
    forms = tuple((parse_format(text), f"A_{text}") for text in ("csr", "coo", "ell"))
    return replace(made, choices=(("A", forms),))


def lines(made, op):
    return print_trace([step for step in made.proposals() if step.op == op]).splitlines()


def test_formats_are_those_that_there_are():
    assert lines(offered(), "storage") == ["storage('A', 'coo')", "storage('A', 'ell')"]
    assert not lines(program("y(i) = A(i,j) * x(j)", {"A": "csr"}), "storage")


def test_orders_are_those_that_the_formats_allow():
    made = program(PRODUCT, {"A": "csr"})
    assert lines(made, "order") == ["order('i', 'j', 'k')", "order('j', 'i', 'k')"]


def test_parts_are_summed_inside_over_what_the_rest_needs():
    found = lines(program(MTTKRP, {"T": "csf"}), "precompute")
    assert "precompute('j', 'T(i,j,k) * D(k,r)', 'r')" in found
    assert "precompute('i', 'T(i,j,k) * C(j,r) * D(k,r)', 'r')" in found
    assert len(found) == len(set(found))
    twice = apply_trace(
        lower(program(MTTKRP, {"T": "csf"})),
        parse_trace("precompute('i', 'T(i,j,k) * C(j,r) * D(k,r)', 'r')"),
    ).origin
    assert "precompute('j', 'T(i,j,k) * D(k,r)', 'r')" in lines(twice, "precompute")


def test_workspaces_and_parts():
    rows = dict.fromkeys("ABC", "csr")
    assert lines(program("C(i,j) = A(i,j) + B(i,j)", rows), "workspace") == ["workspace('j')"]
    made = program("y(i) = A(i,j) * x(j)", {"A": "csr"})
    assert not lines(made, "workspace")
    assert "split_nonzeros('A', 8)" in lines(made, "split_nonzeros")
    assert "split_coordinates('j', 64)" in lines(made, "split_coordinates")
    cut = apply_trace(lower(made), parse_trace("split_nonzeros('A', 8)")).origin
    assert not lines(cut, "split_nonzeros")


STATEMENTS = [
    offered(),
    program(PRODUCT, {"A": "csr"}),
    program(PRODUCT, dict.fromkeys("ABC", "csr")),
    program(MTTKRP, {"T": "csf"}),
    program("C(i,j) = A(i,j) + B(i,j)", dict.fromkeys("ABC", "csr")),
]


def test_of_every_directive_some_are_legal():
    legal = set()
    for made in STATEMENTS:
        for step in made.proposals():
            with suppress(ScheduleError):
                assert apply(lower(made), step).origin != made
                legal.add(step.op)
    assert legal == set(FRONT_END_DIRECTIVES)


@pytest.mark.parametrize("made", STATEMENTS)
def test_a_search_finds_them_before_all_others(made):
    procedure = lower(made)
    space = ScheduleSpace(procedure, threads=2)
    rng = np.random.default_rng(1)
    tried = [space.sample(rng) for _ in range(15)]
    tried += [found for each in tried if (found := space.mutate(each, rng)) is not None]
    traces = [each.payload for each in tried]
    assert {step.op for trace in traces for step in trace} & set(FRONT_END_DIRECTIVES)
    for trace in traces:
        on_statement = [step.op in FRONT_END_DIRECTIVES for step in trace]
        assert on_statement == sorted(on_statement, reverse=True)
        apply_trace(procedure, trace)
