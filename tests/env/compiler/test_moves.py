from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import elementwise, f32, matmul, mul

from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.nodes import Load, Var
from kernelwright.env.compiler.schedule import memo
from kernelwright.env.compiler.schedule.memo import Schedules, cached_apply, schedules_of
from kernelwright.env.compiler.schedule.moves import FACTORS, legal_moves, spell, vocabulary
from kernelwright.env.compiler.schedule.trace import apply, apply_trace, parse_trace, print_trace
from kernelwright.env.types import Directive

TILED = "split('i', 2)\nsplit('j', 4)\nreorder('io', 'jo', 'k', 'ii', 'ji')\nunroll('ii')\n"


def only(text):
    (directive,) = parse_trace(text)
    return directive


@pytest.mark.parametrize(
    ("written", "spelled"),
    [
        ("split('i', 4)", "split('i', 4)"),
        ("split('i', 4, 'io', 'ii', 'guard')", "split('i', 4)"),
        ("split('i', 4, '', '')", "split('i', 4)"),
        ("split('i', 4, 'io')", "split('i', 4)"),
        ("split('i', 4, 'a')", "split('i', 4, 'a')"),
        ("split('i', 4, '', 'b', 'guard')", "split('i', 4, 'io', 'b')"),
        ("split('i', 4, 'io', 'ii', 'perfect')", "split('i', 4, 'io', 'ii', 'perfect')"),
        ("split('i', 4, 'io', 'ii', 'guard', 'x')", "split('i', 4, 'io', 'ii', 'guard', 'x')"),
        ("split('i', 4, 5)", "split('i', 4, 5)"),
        ("fuse('i', 'j', 'i_j')", "fuse('i', 'j')"),
        ("fuse('i', 'j', 'f')", "fuse('i', 'j', 'f')"),
        ("unroll('i')", "unroll('i')"),
        ("rfactor('i', '', False)", "rfactor('i')"),
        ("rfactor('i', '', True)", "rfactor('i', '', True)"),
        ("rfactor('i', 'P', False)", "rfactor('i', 'P')"),
        ("barrier('i', 'before')", "barrier('i')"),
        ("barrier('i', 'after')", "barrier('i', 'after')"),
        ("reorder('j', 'i')", "reorder('j', 'i')"),
        (
            "tile('i', 'j', 2, 4)",
            "split('i', 2)\nsplit('j', 4)\nreorder('io', 'jo', 'ii', 'ji')",
        ),
        ("tile('i', 'j', 2, 4, 'perfect')", "tile('i', 'j', 2, 4, 'perfect')"),
    ],
)
def test_a_directive_has_one_spelling(written, spelled):
    assert print_trace(spell(only(written))) == spelled + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "split('i', 2, 'io', 'ii', 'guard')",
        "split('i', 2, '', 'x')",
        "fuse('i0', 'j0', 'i0_j0')",
        "tile('i', 'k', 2, 2)",
    ],
)
def test_another_spelling_is_the_same_program(text):
    start = matmul()
    assert apply(start, only(text)) == apply_trace(start, spell(only(text)))


def test_the_vocabulary_goes_loop_by_loop():
    y = elementwise(mul(Load("x", (Var("i"),)), f32(2.0)), n=16)
    moves = vocabulary(y, lanes=(4, 16), threaded=True)
    splits = [Directive("split", "i", (factor,)) for factor in FACTORS if factor < 16]
    kinds = [Directive(op, "i") for op in ("unroll", "vectorize", "parallel")]
    assert list(moves) == [*splits, *kinds]
    assert Directive("parallel", "i") not in vocabulary(y, lanes=(4, 16), threaded=False)
    assert Directive("vectorize", "i") not in vocabulary(y, lanes=(4, 8), threaded=False)


@settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10_000))
def test_legal_moves_are_those_that_may_be_applied(seed):
    rng = random.Random(seed)
    procedure = matmul(4, 8, 6)
    for _ in range(rng.randrange(6)):
        moves = vocabulary(procedure, lanes=(2, 4, 8), threaded=True)
        procedure = _if_legal(procedure, rng.choice(moves))
    moves = vocabulary(procedure, lanes=(2, 4, 8), threaded=True)
    expected = tuple(move for move in moves if _is_legal(procedure, move))
    found = legal_moves(
        procedure, lambda move: apply(procedure, move), lanes=(2, 4, 8), threaded=True
    )
    assert found == expected


def _is_legal(procedure, move):
    try:
        apply(procedure, move)
    except ScheduleError:
        return False
    return True


def _if_legal(procedure, move):
    return apply(procedure, move) if _is_legal(procedure, move) else procedure


def test_remembered_schedules_are_those_that_are_applied(monkeypatch):
    applied = []

    def counting(procedure, directive):
        applied.append(directive)
        return apply(procedure, directive)

    monkeypatch.setattr(memo, "apply", counting)
    known, trace = Schedules(matmul()), parse_trace(TILED)
    assert known.after(trace) == apply_trace(matmul(), trace)
    assert known.after(trace[:2]) == apply_trace(matmul(), trace[:2])
    assert known.after((*trace, Directive("vectorize", "ji"))) is not None
    assert applied == [*trace, Directive("vectorize", "ji")]
    assert known.after(()) == matmul()


def test_a_refusal_is_remembered_with_its_reason(monkeypatch):
    known = Schedules(matmul())
    with pytest.raises(ScheduleError) as first:
        known.after((Directive("vectorize", "k"),))
    monkeypatch.setattr(memo, "apply", None)
    for trace in [(Directive("vectorize", "k"),), (Directive("vectorize", "k"),) * 2]:
        with pytest.raises(ScheduleError) as again:
            known.after(trace)
        assert str(again.value) == str(first.value)
        assert again.value.conflict == first.value.conflict is not None


def test_equal_numbers_are_different_arguments():
    known = Schedules(matmul())
    assert known.after((Directive("split", "i", (1,)),))
    for value in (True, 1.0):
        with pytest.raises(ScheduleError, match="expected a factor"):
            known.after((Directive("split", "i", (value,)),))


def test_procedures_that_are_written_alike_share_a_memory():
    assert schedules_of(matmul(3, 5, 7)) is schedules_of(matmul(3, 5, 7))
    plus, minus = (elementwise(f32(zero)) for zero in (0.0, -0.0))
    assert plus == minus
    assert schedules_of(plus) is not schedules_of(minus)
    assert cached_apply(matmul(), parse_trace(TILED)) is cached_apply(matmul(), parse_trace(TILED))


def test_only_the_latest_are_remembered(monkeypatch):
    monkeypatch.setattr(memo, "MAX_TRACES", 2)
    known = Schedules(matmul(4, 64, 4))
    first = known.after((Directive("split", "j", (2,)),))
    known.after((Directive("split", "j", (4,)),))
    assert known.after((Directive("split", "j", (2,)),)) is first
    known.after((Directive("split", "j", (8,)),))
    assert known.after((Directive("split", "j", (2,)),)) is first
    known.after((Directive("split", "j", (16,)),))
    known.after((Directive("split", "j", (32,)),))
    again = known.after((Directive("split", "j", (2,)),))
    assert again == first
    assert again is not first
