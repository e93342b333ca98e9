"""Traces that may not be applied say why, and what would be."""

from __future__ import annotations

import pytest
from programs import matmul

from kernelwright.env.compiler.errors import CompilerError
from kernelwright.env.compiler.schedule.explain import MOST_TRIED, explain
from kernelwright.env.compiler.schedule.memo import Schedules
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.types import Candidate, Directive, Language

NEST = matmul(64, 64, 64)


def told(text, procedure=NEST):
    return explain(Schedules(procedure), parse_trace(text))


def test_what_may_be_applied_has_no_explanation():
    assert told("split('i', 8)\nvectorize('ii')") is None
    assert told("") is None


@pytest.mark.parametrize(
    ("text", "line", "reason", "near"),
    [
        # The loop that carries a dependence: the counterexample, and one that carries none.
        ("split('i', 8)\nvectorize('k')", 2, "must run before", "vectorize('j')"),
        ("parallel('k')", 1, "(i=0, k=0, j=0) must run before", "parallel('j')"),
        ("vectorise('i')", 1, "did you mean 'vectorize'?", "vectorize('i')"),
        ("unroll('ii')", 1, "expected one of the loops", "unroll('i')"),
        ("split('i', 0)", 1, "a factor of at least 1, found 0", "split('i', 1)"),
        ("split('i')", 1, "missing a required argument: 'factor'", "split('i', 8)"),
        ("split('i', 8, 'j')", 1, "expected a free name", "split('i', 8)"),
        (
            "split('i', 7, 'a', 'b', 'perfect')",
            1,
            "7 to divide",
            "split('i', 8, 'a', 'b', 'perfect')",
        ),
        ("fuse('i', 'j')", 1, "directly inside loop i", "fuse('k', 'j')"),
        ("reorder('i', 'zz')", 1, "found 'zz'", None),
        ("sample_categorical('n', 7, 4, 8)", 1, "found 7", "sample_categorical('n', 8, 4, 8)"),
        ("split('i', 8)\nsample_dice('n', 7)", 2, "found 'sample_dice'", None),
    ],
)
def test_the_line_the_reason_and_what_is_near(text, line, reason, near):
    found = told(text)
    trace = parse_trace(text)
    assert found.line == line
    assert found.directive == trace[line - 1]
    assert reason in found.reason
    if near is not None:
        assert found.nearest == parse_trace(near)[0]
        assert str(found).endswith(f"; accepted here: {near}")
    assert str(found).startswith(f"line {line}, {text.splitlines()[line - 1]}: ")
    if found.nearest is not None:
        apply_trace(NEST, (*trace[: line - 1], found.nearest))
    else:
        assert "accepted here" not in str(found)


def test_no_more_than_a_few_directives_are_tried(monkeypatch):
    asked = []
    after = Schedules.after

    def counted(self, trace):
        asked.append(trace)
        if len(trace) > 1:
            raise CompilerError("no")
        return after(self, trace)

    monkeypatch.setattr(Schedules, "after", counted)
    found = told("split('i', 8)\nsplit('j', 9, 'a', 'b', 'guard')")
    assert found.nearest is None
    assert MOST_TRIED <= len(asked) <= MOST_TRIED + 4


def test_a_space_explains_what_it_refuses():
    space = ScheduleSpace(NEST)
    candidate = Candidate(Language.SCHEDULE, parse_trace("split('i', 8)\nvectorize('k')"))
    (plain,), (full,) = space.check(candidate), space.explain(candidate)
    assert plain.code == full.code == "illegal_directive"
    assert "line 2, vectorize('k'): loop k carries a dependence" in full.reason
    assert full.reason.endswith("accepted here: vectorize('j')")
    assert space.explain(space.default) == ()
    long = Candidate(Language.SCHEDULE, (Directive("split", "i", (2,)),) * 129)
    assert space.explain(long) == space.check(long)
    wrong = Candidate(Language.SCHEDULE, parse_trace("sample_categorical('n', 7, 4, 8)"))
    assert space.check(wrong)[0].code == "illegal_decision"
    assert space.explain(wrong)[0].reason.endswith("sample_categorical('n', 8, 4, 8)")
