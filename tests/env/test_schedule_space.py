from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import matmul, tensor
from scheduled import PROCEDURES, product, transpose
from test_codegen import inputs_of

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.codegen.c import generate
from kernelwright.env.compiler.codegen.form import MAX_UNROLLED
from kernelwright.env.compiler.codegen.unrolled import written
from kernelwright.env.compiler.errors import ScheduleError
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.ir.nodes import (
    Block,
    Const,
    For,
    LoopKind,
    Procedure,
    Store,
    Var,
    loops,
)
from kernelwright.env.compiler.ir.simplify import whole
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace
from kernelwright.env.options import OptionError
from kernelwright.env.spaces.schedule import ScheduleSpace
from kernelwright.env.spaces.schedule import space as space_module
from kernelwright.env.spaces.schedule.nest import find_nests, owners
from kernelwright.env.spaces.schedule.sketch import decide, outline
from kernelwright.env.types import Candidate, Directive, Language, knob_candidate


@cache
def prefix():
    """Every iteration needs the one before."""
    y = tensor("y", 16, role="output")
    nest = For("i", whole(16), Store("y", (Var("i"),), Const(1.0, "float32"), "add"))
    before = For("q", whole(15), Store("y", (Var("q"),), Const(2.0, "float32"), "add"))
    return Procedure("prefix", (), (y,), Block((Store("y", (whole(0),), f0()), nest, before)))


def f0():
    return Const(0.0, "float32")


@cache
def space_of(name, threads=1):
    return ScheduleSpace(PROCEDURES[name](), threads=threads)


def schedule(text):
    return Candidate(Language.SCHEDULE, parse_trace(text))


def drawn(space, seed, count=1):
    rng = np.random.default_rng(seed)
    return [space.sample(rng) for _ in range(count)]


# Membership


def test_the_default_is_the_procedure_itself():
    space = space_of("product")
    assert space.default.payload == ()
    assert space.check(space.default) == ()
    assert space.scheduled(space.default) == product()
    assert space.language is Language.SCHEDULE
    assert space.can_sample


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("vectorize('k')", "illegal_directive", "vectorize: "),
        ("split('x', 2)", "illegal_directive", "expected one of the loops"),
        ("melt('i')", "illegal_directive", "melt: expected one of split, "),
        ("split('i')", "illegal_directive", "missing a required argument: 'factor'"),
        ("split('j', 16)\nvectorize('ji')\nsplit('ji', 2)", "illegal_directive", "serial loop"),
        ("parallel('i')", "threads", "several threads for i"),
        ("split('i', 2)\n" * 129, "too_long", "at most 128 directives, found 129"),
    ],
)
def test_what_is_not_in_the_space_is_told_why(text, code, reason):
    (violation,) = space_of("product").check(schedule(text))
    assert violation.code == code
    assert reason in violation.reason


def test_a_refusal_names_the_iterations():
    (violation,) = space_of("product").check(schedule("vectorize('k')"))
    assert "must run before" in violation.reason or "expected an extent" in violation.reason
    text = "split('k', 4)\nvectorize('ki')"
    (violation,) = space_of("product").check(schedule(text))
    assert "must run before" in violation.reason


def test_other_languages_are_refused():
    space = space_of("product")
    assert space.check(knob_candidate({"a": 1}))[0].code == "language"
    for method in (space.canonical, space.neighbours, space.features, space.scheduled):
        with pytest.raises(ValueError, match="expected a schedule candidate, found knobs"):
            method(knob_candidate({"a": 1}))


def test_what_would_write_out_too_much_is_refused():
    space = ScheduleSpace(matmul(16, 64, 64))
    unrolls = "unroll('i')\nunroll('k')\n"
    assert space.check(schedule(unrolls)) == ()
    (violation,) = space.check(schedule(unrolls + "split('j', 2)\nunroll('ji')"))
    assert violation.code == "too_many_statements"
    assert str(MAX_UNROLLED) in violation.reason
    wide = schedule(unrolls + "split('j', 2)")
    assert Directive("unroll", "ji") not in space.legal_moves(wide)
    assert Directive("vectorize", "jo") in space.legal_moves(wide)


def test_what_is_in_the_space_has_a_c_form():
    for name in PROCEDURES:
        for candidate in drawn(space_of(name), 3, 6):
            scheduled = space_of(name).scheduled(candidate)
            assert written(scheduled.body) <= MAX_UNROLLED
            assert generate(scheduled)


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(OptionError, match="threads: expected at least 1, found 0"):
        ScheduleSpace(product(), threads=0)
    with pytest.raises(OptionError, match="lanes: expected numbers of lanes among 2, 4"):
        ScheduleSpace(product(), lanes=(3,))
    with pytest.raises(OptionError, match="lanes"):
        ScheduleSpace(product(), lanes=())


def test_a_canonical_candidate_is_the_same_program():
    space = space_of("transpose")
    long = schedule("tile('i', 'j', 4, 2)\nsplit('io', 2, 'ioo', 'ioi', 'guard')")
    short = space.canonical(long)
    assert len(short.payload) == 4
    assert short.payload[-1] == Directive("split", "io", (2,))
    assert space.scheduled(short) == space.scheduled(long)
    assert space.canonical(short) == short


# Drawing


@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(PROCEDURES)), st.integers(0, 10_000), st.booleans())
def test_whatever_the_space_gives_is_legal_and_means_the_same(name, seed, threaded):
    space, rng = space_of(name, 2 if threaded else 1), np.random.default_rng(seed)
    one, other = space.sample(rng), space.sample(rng)
    given_ = [one, other, space.mutate(one, rng, 2), space.crossover(one, other, rng)]
    inputs = inputs_of(space.procedure, seed)
    expected = interpret(space.procedure, inputs)
    for candidate in given_:
        if candidate is None:
            continue
        assert space.check(candidate) == ()
        found = interpret(apply_trace(space.procedure, candidate.payload), inputs)
        for output, values in expected.items():
            np.testing.assert_array_equal(found[output], values)


def test_a_sample_is_a_function_of_the_generator():
    fresh = ScheduleSpace(product())
    for seed in range(5):
        assert drawn(fresh, seed, 4) == drawn(space_of("product"), seed, 4)
    assert len(set(drawn(fresh, 0, 32))) > 24


def test_only_threads_make_loops_parallel():
    def kinds(threads):
        space = ScheduleSpace(product(), threads=threads)
        found = Counter(d.op for c in drawn(space, 0, 16) for d in c.payload)
        rng = np.random.default_rng(1)
        moved = [space.mutate(c, rng) for c in drawn(space, 0, 16)]
        found.update(d.op for c in moved if c is not None for d in c.payload)
        return found

    assert "parallel" not in kinds(1)
    assert kinds(4)["parallel"] > 16


def test_lanes_are_drawn_from_those_given():
    space = ScheduleSpace(product(), lanes=(4, 16))
    rng = np.random.default_rng(0)
    candidates = drawn(space, 1, 16)
    candidates += [c for c in (space.mutate(c, rng) for c in candidates) if c is not None]
    found = {
        loop.extent.value
        for candidate in candidates
        for loop in loops(space.scheduled(candidate))
        if loop.kind is LoopKind.VECTORIZED
    }
    assert found == {4, 16}


def accumulators(procedure):
    """Registers' worth of results that a loop over k keeps: the copies inside it, if it moves none
    of the store and lanes are innermost; 0 if it has no such form.
    """
    by_name = {loop.var: loop for loop in loops(procedure)}
    over_k = [by_name[name] for name in ("k", "ki", "koi", "koo", "ko") if name in by_name]
    inner = next((loop for loop in over_k if loop.kind is LoopKind.SERIAL), None)
    if inner is None:
        return 0
    count, node, is_vector = 1, inner.body, False
    while isinstance(node, For):
        if node.kind is LoopKind.SERIAL:
            return 0
        is_vector = node.kind is LoopKind.VECTORIZED
        if node.kind is LoopKind.UNROLLED and node.var[0] != "k":
            count *= node.extent.value
        node = node.body
    return count if is_vector else 0


def test_register_tiles_are_frequent():
    """The schedule of docs/schedules.md has 16 accumulators of 16 lanes inside k."""
    space = ScheduleSpace(product(512, 512, 512))
    tiles = [accumulators(space.scheduled(c)) for c in drawn(space, 0, 64)]
    assert sum(8 <= tile <= 28 for tile in tiles) >= 12
    assert max(tiles) <= 28
    docs = schedule(
        "split('i', 8)\nsplit('j', 16)\nsplit('jo', 2)\n"
        "reorder('joo', 'io', 'k', 'ii', 'joi', 'ji')\n"
        "unroll('ii')\nunroll('joi')\nvectorize('ji')\n"
    )
    assert accumulators(space.scheduled(docs)) == 16
    (plan,) = [p for p in outline(find_nests(space.procedure), docs.payload).plans if p][1:]
    assert [(t.lanes, t.register, t.cache) for t in plan.tilings] == [
        (1, 8, 1),
        (16, 2, 1),
        (1, 1, 1),
    ]
    assert plan.order == ("j", "i")
    assert plan.placement == "between"


def test_independent_rows_of_a_sum_are_drawn():
    """Chains of additions that overlap: copies along the rows inside the reduction."""
    x, k = te.placeholder("x", (64, 64)), te.reduce_axis("k", 64)
    y = te.compute("y", (64,), lambda i: te.reduce_sum(x[i, k.value], k), [x])
    space = ScheduleSpace(te.lower("row_sum", [y]))
    texts = [print_trace(c.payload) for c in drawn(space, 0, 32)]
    assert sum("unroll('ii')" in t and "reorder('io', 'k" in t for t in texts) >= 8


# Decisions


@pytest.mark.parametrize("name", PROCEDURES)
def test_decisions_are_read_back_from_samples(name, monkeypatch):
    monkeypatch.setattr(space_module, "EXTENDED", 0.0)
    space = space_of(name, threads=2)
    nests = find_nests(space.procedure)
    for candidate in drawn(space, 5, 8):
        parts = outline(nests, candidate.payload)
        assert None not in parts.plans
        assert parts.homeless == ()
        assert parts.trace(nests) == candidate.payload


def test_samples_reach_beyond_the_decisions():
    """In order, without a choice of lanes or blocks: nearly nothing can be decided."""
    space, rng = ScheduleSpace(prefix()), np.random.default_rng(0)
    found = {space.sample(rng) for _ in range(200)}
    assert len(found) > 20
    assert any(d.op == "split" for c in found for d in c.payload)


def test_directives_without_decisions_stay_as_they_are():
    space, rng = space_of("softmax"), np.random.default_rng(0)
    odd = "split('e_i', 2, 'a', 'b')\nsplit('a', 2)\nfuse('ao', 'ai')\n"
    candidate = schedule(odd)
    names = {loop.var for loop in loops(space.procedure)}
    candidate = candidate if "e_i" in names else schedule(odd.replace("e_i", sorted(names)[0]))
    assert space.check(candidate) == ()
    nests = find_nests(space.procedure)
    parts = outline(nests, candidate.payload)
    assert sum(plan is None for plan in parts.plans) == 1
    assert parts.trace(nests) == candidate.payload
    children = [space.mutate(candidate, rng) for _ in range(12)]
    kept = [c for c in children if c is not None and c.payload[: len(candidate.payload)]]
    assert sum(set(candidate.payload) <= set(c.payload) for c in kept) >= 6
    assert all(space.check(c) == () for c in kept)


def test_a_directive_belongs_to_the_nest_of_its_loops():
    nests = find_nests(product())
    text = (
        "tile('i', 'j', 2, 4)\nfuse('io', 'jo', 'f')\nunroll('f')\nunroll('i_start')\nunroll('q')"
    )
    assert owners(nests, parse_trace(text)) == [1, 1, 1, 0, None]
    text = (
        "split('i', 2, 'a')\nunroll('ii')\nunroll('a')\nunroll('io')\nfuse('j', 'k')\nunroll('j_k')"
    )
    assert owners(nests, parse_trace(text)) == [1, 1, 1, None, 1, 1]


def test_nests_know_their_loops():
    start, update = find_nests(product())
    assert not start.has_loads
    assert [axis.loop for axis in update.spatial] == ["i", "j"]
    assert [axis.loop for axis in update.reduction] == ["k"]
    assert update.dense == "j"
    assert update.is_streamed
    assert update.iterations == 8 * 32 * 8
    (across,) = find_nests(transpose())
    assert across.dense == "j"
    assert not across.is_streamed
    assert all(axis.is_free for axis in across.axes)


def test_a_trace_that_is_no_sketch_has_no_decisions():
    (nest,) = find_nests(transpose())
    for text in ("fuse('i', 'j')", "unroll('j')\nsplit('i', 4)", "split('i', 4, 'a')"):
        assert decide(nest, parse_trace(text)) is None
    assert decide(nest, parse_trace("split('i', 4)\nunroll('ii')")) is None  # not innermost
    tiled = "split('i', 4)\nreorder('io', 'j', 'ii')\nunroll('ii')"
    assert decide(nest, parse_trace(tiled)).tilings[0].register == 4


# Moves


@pytest.mark.parametrize("name", PROCEDURES)
def test_a_mutation_is_another_legal_schedule_near_by(name):
    space, rng = space_of(name), np.random.default_rng(0)
    nests = find_nests(space.procedure)
    near = total = 0
    for candidate in drawn(space, 1, 6):
        for _ in range(4):
            child = space.mutate(candidate, rng)
            if child is None:
                continue
            assert child != candidate
            assert space.check(child) == ()
            pairs = zip(
                outline(nests, candidate.payload).plans,
                outline(nests, child.payload).plans,
                strict=True,
            )
            total += 1
            near += sum(a != b for a, b in pairs) <= 1
    assert total >= 15
    assert near == total


def test_mutations_reach_every_decision():
    space, rng = ScheduleSpace(product(64, 64, 64), threads=2), np.random.default_rng(0)
    nests = find_nests(space.procedure)
    (parent,) = drawn(space, 4)
    before = outline(nests, parent.payload).plans[1]
    changed = Counter()
    for _ in range(80):
        child = space.mutate(parent, rng)
        after = None if child is None else outline(nests, child.payload).plans[1]
        if after is None:
            continue
        for a, b in zip(before.tilings, after.tilings, strict=True):
            changed.update(
                part
                for part in ("lanes", "register", "cache")
                if getattr(a, part) != getattr(b, part)
            )
        changed.update(
            part
            for part in ("order", "placement", "parallel")
            if getattr(before, part) != getattr(after, part)
        )
    assert set(changed) == {"lanes", "register", "cache", "order", "placement", "parallel"}


def test_a_child_has_every_nest_from_a_parent_or_mixed():
    space, rng = space_of("softmax"), np.random.default_rng(0)
    nests = find_nests(space.procedure)
    born = inherited = 0
    for seed in range(6):
        left, right = drawn(space, seed, 2)
        child = space.crossover(left, right, rng)
        if child is None:
            continue
        born += 1
        plans = [outline(nests, c.payload).plans for c in (left, right, child)]
        for a, b, c in zip(*plans, strict=True):
            assert c is not None
            for x, y, z in zip(a.tilings, b.tilings, c.tilings, strict=True):
                inherited += z in (x, y)
                assert z in (x, y) or z.lanes == 1  # a part that no longer fits is left out
    assert born >= 4
    assert inherited


def test_a_crossover_with_itself_gives_nothing_new():
    space, rng = space_of("product"), np.random.default_rng(0)
    (one,) = drawn(space, 0)
    assert space.crossover(one, one, rng) is None


def test_neighbours_are_a_directive_or_a_factor_away():
    space = space_of("product")
    centre = schedule("split('i', 4)\nsplit('j', 8)\nvectorize('ji')")
    near = space.neighbours(centre)
    assert len(set(near)) == len(near)
    assert all(space.check(each) == () for each in near)
    assert near == ScheduleSpace(product()).neighbours(centre)
    texts = [print_trace(each.payload) for each in near]
    assert "split('i', 4)\nsplit('j', 8)\n" in texts
    assert "split('i', 3)\nsplit('j', 8)\nvectorize('ji')\n" in texts
    assert "split('i', 5)\nsplit('j', 8)\nvectorize('ji')\n" in texts
    # Seven lanes are none.
    assert not any("split('j', 7)" in text for text in texts)
    appended = [each for each in near if each.payload[:3] == centre.payload]
    assert [each.payload[3] for each in appended] == list(space.legal_moves(centre))


def test_moves_are_remembered_and_bounded(monkeypatch):
    space = ScheduleSpace(transpose())
    asked = []
    monkeypatch.setattr(
        space_module, "legal_moves", lambda *a, **k: asked.append(1) or (Directive("unroll", "i"),)
    )
    monkeypatch.setattr(space_module, "REMEMBERED", 2)
    for text in ("", "split('i', 2)", "", "split('i', 3)", "split('i', 4)", ""):
        assert space.legal_moves(schedule(text)) == (Directive("unroll", "i"),)
    assert len(asked) == 5


def test_a_full_trace_has_no_moves(monkeypatch):
    monkeypatch.setattr(space_module, "MAX_DIRECTIVES", 1)
    space = ScheduleSpace(transpose())
    assert space.legal_moves(space.default)
    assert space.legal_moves(schedule("split('i', 2)")) == ()


def test_iterations_that_depend_on_each_other_are_left_in_order():
    space = ScheduleSpace(prefix())
    for candidate in drawn(space, 0, 8):
        assert space.check(candidate) == ()
    with pytest.raises(ScheduleError):
        space.scheduled(schedule("vectorize('q')"))


# Features


@pytest.mark.parametrize("name", PROCEDURES)
def test_features_have_one_length_and_are_finite(name):
    space = space_of(name, threads=2)
    rows = [space.features(c) for c in [space.default, *drawn(space, 2, 8)]]
    assert {row.shape for row in rows} == {rows[0].shape}
    assert np.isfinite(rows).all()
    assert len({row.tobytes() for row in rows}) > 5


def test_features_tell_what_matters_apart():
    space = ScheduleSpace(product(64, 64, 64))
    texts = [
        "",
        "split('j', 16)\nvectorize('ji')",
        "split('j', 16)\nreorder('i', 'jo', 'k', 'ji')\nvectorize('ji')",
        "split('j', 16)\nreorder('jo', 'i', 'k', 'ji')\nvectorize('ji')",
        "split('i', 4)\nsplit('j', 16)\nreorder('io', 'jo', 'k', 'ii', 'ji')\n"
        "unroll('ii')\nvectorize('ji')",
    ]
    rows = [space.features(schedule(text)).tobytes() for text in texts]
    assert len(set(rows)) == len(rows)
