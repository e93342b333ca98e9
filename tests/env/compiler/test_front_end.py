"""Directives of a front end: they come before those on loops, and lower the statement anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from programs import elementwise, f32, mul
from test_schedule import D

from kernelwright.agents.context.pages import directive_pages
from kernelwright.agents.dialects.schedule import Schedule
from kernelwright.env.compiler import schedule
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Load, Var
from kernelwright.env.compiler.ir.simplify import simplify_procedure
from kernelwright.env.compiler.ir.verify import verify
from kernelwright.env.compiler.schedule.memo import cached_apply, schedules_of
from kernelwright.env.compiler.schedule.proposals import proposals
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, directive_function
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.spaces.schedule.space import ScheduleSpace
from kernelwright.env.types import Candidate, Language

X = Load("x", (Var("i"),))


@dataclass(frozen=True)
class Scaled:
    """``y = factor x`` for any factor; ``note`` changes nothing of its loops."""

    factor: float = 1.0
    note: str = ""

    @property
    def key(self):
        return repr(self)

    def proposals(self):
        return (D("scale", "x", 2.0), D("scale", "x", 3.0))

    def lower(self):
        return replace(elementwise(mul(X, f32(self.factor))), origin=self)


def scale(origin, tensor, factor):
    """Multiply by a factor. And more."""
    if tensor != "x":
        raise ScheduleError("scale", f"expected x, found {tensor!r}")
    return replace(origin, factor=origin.factor * factor).lower()


@pytest.fixture(autouse=True)
def front_end(monkeypatch):
    monkeypatch.setitem(schedule.FRONT_END_DIRECTIVES, "scale", f"{__name__}:scale")


def test_a_front_end_lowers_its_statement_anew():
    after = apply(Scaled().lower(), D("scale", "x", 2.0))
    assert after == Scaled(2.0).lower()
    assert after.origin == Scaled(2.0)
    twice = apply_trace(after, (D("scale", "x", 2.0), D("split", "i", 4)))
    assert twice == apply(Scaled(4.0).lower(), D("split", "i", 4))


def test_after_a_directive_on_loops_it_is_too_late():
    split = apply(Scaled().lower(), D("split", "i", 4))
    assert split.origin is None
    expected = "scale: expected a procedure of the sparse front end before any loop directive"
    for procedure in (split, elementwise(X)):
        with pytest.raises(ScheduleError, match=expected):
            apply(procedure, D("scale", "x", 2.0))
    # Also where a directive changes nothing but a kind, or is called by itself.
    for op, *given in (("unroll", "i"), ("parallel", "i"), ("rename", "i", "j")):
        assert directive_function(op)(Scaled().lower(), *given).origin is None
        assert apply(Scaled().lower(), D(op, *given)).origin is None


def test_a_space_draws_from_what_a_statement_proposes():
    assert list(proposals(Scaled().lower(), "scale")) == list(Scaled().proposals())
    assert not list(proposals(elementwise(X), "scale"))
    space = ScheduleSpace(Scaled().lower())
    moves = space.legal_moves(space.default)
    assert [move for move in moves if move.op == "scale"] == list(Scaled().proposals())
    split = Candidate(Language.SCHEDULE, (D("split", "i", 4),))
    assert "scale" not in {move.op for move in space.legal_moves(split)}
    rng = np.random.default_rng(0)
    drawn = [space.sample(rng).payload for _ in range(30)]
    drawn += [space.mutate(split, rng).payload for _ in range(30)]
    assert any(step.op == "scale" for trace in drawn for step in trace)
    for trace in drawn:
        ops = [step.op == "scale" for step in trace]
        assert ops == sorted(ops, reverse=True)
        apply_trace(Scaled().lower(), trace)


def test_refusals_have_their_reasons():
    with pytest.raises(ScheduleError, match="scale: expected x, found 'z'"):
        apply(Scaled().lower(), D("scale", "z", 2.0))
    with pytest.raises(ScheduleError, match=r"scale: .* of scale\(tensor, factor\)"):
        apply(Scaled().lower(), D("scale", "x"))
    with pytest.raises(ScheduleError, match=r"found 'skale'; did you mean 'scale'\?"):
        apply(Scaled().lower(), D("skale", "x"))


def test_equal_loops_of_other_origins_are_equal_and_not_confused():
    one, other = Scaled(note="a").lower(), Scaled(note="b").lower()
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)
    step = (D("scale", "x", 3.0),)
    assert cached_apply(one, step).origin == Scaled(3.0, "a")
    assert cached_apply(other, step).origin == Scaled(3.0, "b")
    assert schedules_of(one) is not schedules_of(other)
    assert schedules_of(one) is schedules_of(Scaled(note="a").lower())
    with pytest.raises(ScheduleError, match="before any loop directive"):
        cached_apply(replace(one, origin=None), step)


def test_what_changes_no_loop_keeps_the_origin():
    procedure = Scaled().lower()
    assert verify(procedure).origin == simplify_procedure(procedure).origin == Scaled()


def test_directives_of_front_ends_are_listed_and_explained():
    assert list(schedule.known_directives())[-1] == "scale"
    assert set(schedule.DIRECTIVES) < set(schedule.known_directives())
    page = directive_pages()[-1]
    assert "scale(tensor, factor)" in str(page)


def test_a_prompt_tells_them_where_they_can_be_applied():
    groups = [
        Schedule(ScheduleSpace(p), matmul(m=8, n=16, k=8)).facts()["others"] for p in PROCEDURES
    ]
    told = [[line.call for _, lines in found for line in lines] for found in groups]
    assert "scale(tensor, factor)" in told[0]
    assert "scale(tensor, factor)" not in told[1]


PROCEDURES = (Scaled().lower(), elementwise(X))
