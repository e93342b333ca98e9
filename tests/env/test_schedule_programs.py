"""Spaces of schedules written by programs: a function of one's own, a knob template, rules."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scheduled import PROCEDURES, product
from test_codegen import inputs_of

from kernelwright.env.compiler import tensor as te
from kernelwright.env.compiler.ir.interpret import interpret
from kernelwright.env.compiler.schedule import DIRECTIVES
from kernelwright.env.compiler.schedule.decision import decisions_of, without_decisions
from kernelwright.env.compiler.schedule.trace import apply_trace, parse_trace, print_trace
from kernelwright.env.options import OptionError
from kernelwright.env.problems.matmul import matmul
from kernelwright.env.problems.program import program
from kernelwright.env.records import dumps, loads
from kernelwright.env.spaces.expressions import Constraint, ExpressionError
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.env.spaces.novelty import Forms
from kernelwright.env.spaces.schedule import ProgramSpace, ScheduleSpace
from kernelwright.env.spaces.schedule.builder import InfeasibleError
from kernelwright.env.spaces.schedule.program import Program
from kernelwright.env.spaces.schedule.rules import RULES, sketch_program
from kernelwright.env.spaces.schedule.space import MAX_DIRECTIVES
from kernelwright.env.spaces.schedule.structure import (
    innermost,
    is_reduced,
    loops_around,
    readers_loops,
    stages,
    stored_in,
    temporaries,
    update_loops,
)
from kernelwright.env.spaces.schedule.template import from_knobs, template_program, to_knobs
from kernelwright.env.types import Candidate, Directive, Language
from kernelwright.search.tuning.identity import identity


def tiled(s):
    """Two tiles, an order, and lanes where they fit."""
    i = s.sample_perfect_tile("i", 2, 8)
    j = s.sample_partitioned_tile("j", 3, 1, 4)
    io, ii = s.cut("i", i)
    jo, jm, ji = s.cut("j", j)
    if s.sample_categorical((False, True), (0.3, 0.7), name="outer columns"):
        s.reorder(jo, io, "k", ii, jm, ji)
    if s.legal("vectorize", ji):
        s.vectorize(ji)
    if s.threads > 1 and s.sample_categorical((False, True), name="threads"):
        s.parallel(s.loops[2])


@cache
def space(threads=1):
    return ProgramSpace(product(), tiled, threads=threads)


@cache
def sketches(name, threads=1):
    return ProgramSpace(PROCEDURES[name](), sketch_program(), threads=threads)


def samples(space_, seed, count):
    rng = np.random.default_rng(seed)
    return [space_.sample(rng) for _ in range(count)]


def only(candidate):
    return without_decisions(candidate.payload)


# Programs


def test_a_run_records_its_decisions_and_what_they_went_into():
    run = space().program.draw(np.random.default_rng(3))
    assert list(run.decisions) == ["i_tile", "j_tile", "outer columns"]
    assert decisions_of(run.trace) == {
        name: type(d)(name, type(d.domain)(*_fields(d.domain)), d.value)
        for name, d in run.decisions.items()
    }
    i, j = run.decisions["i_tile"].value, run.decisions["j_tile"].value
    assert run.users("i_tile") == (Directive("split", "i", (i[1],)),)
    assert run.users("j_tile") == (
        Directive("split", "j", (j[2],)),
        Directive("split", "jo", (j[1],)),
    )
    assert run.users("outer columns") == ()
    assert all(type(a) in (int, str, bool, float) for d in run.trace for a in d.args)


def _fields(domain):
    """A domain as the entry of a trace tells it: without probabilities."""
    if hasattr(domain, "options"):
        return domain.options, (), domain.op
    return domain.extent, domain.parts, domain.max_inner, domain.position, domain.inner_factor


def test_arithmetic_remembers_where_numbers_came_from():
    def function(s):
        a = s.sample_categorical((2, 4), name="a")
        b = s.sample_categorical((2, 4), name="b")
        word = s.sample_categorical(("x", "y"), name="word")
        s.split("j", a * b)
        s.split("i", 16 // a - 1 + b % 2, word + "o", "inner" + word)
        assert s.extent("jo") == 32 // (a * b)

    run = Program(function, product()).draw(np.random.default_rng(0))
    splits = [names for d, names in zip(run.trace, run.uses, strict=True) if d.op == "split"]
    assert splits == [("a", "b"), ("a", "b", "word")]


def test_directives_are_methods_that_give_the_new_loops():
    seen = []

    def function(s):
        io, ii = s.split("i", 4)
        names = s.tile("j", "k", 8, 4)
        (fused,) = s.fuse(io, ii)
        seen[:] = [io, ii, *names, fused]
        s.reorder("jo", "ko", "ji", "ki")

    run = Program(function, product()).draw(np.random.default_rng(0))
    assert seen == ["io", "ii", "jo", "ko", "ji", "ki", "io_ii"]
    # Written in the one spelling: the tile as its splits and its order.
    assert [d.op for d in run.trace] == ["split", "split", "split", "reorder", "fuse", "reorder"]


def test_what_is_no_directive_is_no_method():
    with pytest.raises(OptionError, match="AttributeError: expected a directive or method"):
        Program(lambda s: s.melt("i"), product())


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda s: s.vectorize("k"), "line 1, vectorize('k'): vectorize: loop k carries"),
        (lambda s: s.split("zz", 2), "expected one of the loops"),
        (lambda s: s.split("i", float("nan")), "expected finite arguments"),
        (lambda s: s.extent("zz"), "expected one of the loops"),
        (lambda s: s.sample_perfect_tile("i", 0), "1 to 16 factors"),
        (lambda s: s.sample_categorical(()), "expected different options"),
        (lambda s: s.require(False, "too hot"), "too hot"),
        (lambda s: [s.decide("a", d) for d in (_choice(), _choice())], "expected one decision a"),
        (lambda s: 1 / 0, "ZeroDivisionError"),
        (lambda s: [s.sample_categorical((1, 2)) for _ in range(600)], "at most 512"),
    ],
)
def test_programs_that_never_write_a_schedule_are_refused(function, reason):
    with pytest.raises(OptionError) as error:
        Program(function, product())
    assert error.value.option == "program"
    assert reason in error.value.found


def _choice():
    from kernelwright.env.compiler.schedule.domain import Choice

    return Choice((1, 2))


def test_programs_with_a_chance_of_their_own_are_refused():
    rng = np.random.default_rng(0)

    def function(s):
        s.split("i", int(rng.integers(2, 1000)))

    with pytest.raises(OptionError, match="expected a function of its decisions alone"):
        Program(function, product())


def test_a_refusal_names_the_decisions_it_came_from():
    def function(s):
        s.split("j", s.sample_categorical((3, 5), name="lanes"), "jo", "ji")
        s.vectorize("ji")

    with pytest.raises(OptionError, match="expected an extent of 2, 4"):
        Program(function, product())

    def named(s):
        s.split("i", s.sample_categorical((0, -1), name="rows"))

    with pytest.raises(OptionError, match=r"found line 2, split\('i', .*\(from rows\)"):
        Program(named, product())


def test_usual_names_are_counted():
    def function(s):
        s.sample_categorical((1, 2))
        s.sample_categorical((1, 2))
        s.sample_perfect_tile("i", 2)
        s.sample_perfect_tile("i", 2)

    run = Program(function, product()).draw(np.random.default_rng(0))
    assert list(run.decisions) == ["choice", "choice_2", "i_tile", "i_tile_2"]


# Replay


@pytest.mark.parametrize("make", [space, lambda: sketches("product"), lambda: sketches("softmax")])
def test_a_trace_is_run_again_exactly_through_text_and_json(make):
    it = make()
    for candidate in samples(it, 1, 8):
        run = it.run_of(candidate)
        assert run.trace == candidate.payload
        again = parse_trace(print_trace(candidate.payload))
        assert it.program.replay(again) == run
        assert it.run_of(loads(Candidate, dumps(candidate))) == run
        assert it.canonical(candidate).payload == candidate.payload
        # The program is what the directives say, whoever wrote them.
        assert it.scheduled(candidate) == apply_trace(it.procedure, only(candidate))


def test_an_edited_trace_is_free_form():
    it = space()
    candidate = samples(it, 0, 1)[0]
    edited = Candidate(Language.SCHEDULE, (*candidate.payload, Directive("unroll", "ii")))
    assert it.check(edited) == ()
    assert it.run_of(edited) is None
    free = it.canonical(edited)
    assert free.payload == only(edited)
    assert free == edited
    assert it.comments(free) == ("",) * len(free.payload)
    rng = np.random.default_rng(0)
    moved = [it.mutate(free, rng) for _ in range(12)]
    assert any(each is not None for each in moved)
    assert all(it.check(each) == () for each in moved if each is not None)
    assert it.neighbours(free)
    it.crossover(free, candidate, rng)
    assert not it.features(free)[-16:].any()


def test_a_decision_that_is_none_of_its_domain_is_refused():
    candidate = Candidate(Language.SCHEDULE, parse_trace("sample_categorical('a', 3, 1, 2)"))
    (violation,) = space().check(candidate)
    assert violation.code == "illegal_decision"
    assert "expected one of 1, 2, found 3" in violation.reason


# Mutation and crossover


def test_a_mutation_changes_one_decision_and_keeps_the_others():
    it, rng = space(2), np.random.default_rng(0)
    changed = set()
    for candidate in samples(it, 2, 30):
        child = it.mutate(candidate, rng)
        if child is None:
            continue
        before, after = it.run_of(candidate).values, it.run_of(child).values
        assert only(child) != only(candidate)
        different = {name for name in before if before[name] != after.get(name)}
        assert len(different) == 1
        changed |= different
    assert changed == {"i_tile", "j_tile", "outer columns", "threads"}


def test_later_decisions_are_kept_where_they_fit_and_drawn_by_name_where_not():
    def function(s):
        outer = s.sample_categorical((2, 4, 32), name="outer")
        jo, _ = s.split("j", outer)
        s.sample_perfect_tile(jo, 2, 64, name="rest")
        s.split("i", s.sample_categorical((2, 4, 8), name="rows"))
        if outer == 32:
            s.sample_categorical((1, 2, 3, 4, 5, 6, 7, 8), name="extra")

    it = Program(function, product())
    kept = {"outer": (4,), "rest": (2, 4), "rows": (8,)}
    assert it.run(kept, None).values == kept
    # An extent of 16 has no such tile, rows has still 8.
    other = it.run({**kept, "outer": (2,)}, 7).values
    assert other["rows"] == (8,)
    assert other["rest"] != (2, 4)
    with pytest.raises(InfeasibleError, match="expected a value for the decision rest"):
        it.run({**kept, "outer": (2,)}, None)
    # What is drawn depends on the seed and on its own name, not on what was drawn before.
    alone = it.run({**kept, "outer": (32,), "rest": (1, 1)}, 7).values["extra"]
    assert it.run({"outer": (32,)}, 7).values["extra"] == alone
    drawn = {it.run({"outer": (32,)}, seed).values["extra"] for seed in range(40)}
    assert len(drawn) == 8


def test_a_child_has_every_decision_from_a_parent():
    it, rng = space(2), np.random.default_rng(0)
    parents = samples(it, 4, 24)
    mixed = 0
    for left, right in zip(parents[::2], parents[1::2], strict=True):
        child = it.crossover(left, right, rng)
        if child is None:
            continue
        a, b, c = (it.run_of(each).values for each in (left, right, child))
        assert all(c[name] in (a.get(name), b.get(name)) for name in c)
        mixed += c not in (a, b)
    assert mixed >= 4
    assert it.crossover(parents[0], parents[0], rng) is None


def test_neighbours_are_a_decision_away():
    it = space()
    centre = samples(it, 5, 1)[0]
    near = it.neighbours(centre)
    assert near == ProgramSpace(product(), tiled).neighbours(centre)
    assert len(set(near)) == len(near) > 3
    values = it.run_of(centre).values
    for each in near:
        other = it.run_of(each).values
        assert sum(other[name] != values[name] for name in values) == 1
        assert it.check(each) == ()


def test_a_sample_is_a_function_of_the_generator():
    fresh = ProgramSpace(product(), tiled)
    for seed in range(4):
        assert [c.payload for c in samples(fresh, seed, 3)] == [
            c.payload for c in samples(space(), seed, 3)
        ]
    assert len(set(samples(fresh, 0, 24))) > 12


def test_a_program_that_seldom_succeeds_gives_the_plain_loops_at_worst(monkeypatch):
    it = ProgramSpace(product(), tiled)
    monkeypatch.setattr(it.program, "draw", lambda rng: None)
    assert it.sample(np.random.default_rng(0)) == it.default


def test_decisions_do_not_count_as_directives():
    def function(s):
        for number in range(MAX_DIRECTIVES + 1):
            s.sample_categorical((1, 2), name=f"d{number}")

    it = ProgramSpace(product(), function)
    (candidate,) = samples(it, 0, 1)
    assert len(candidate.payload) > MAX_DIRECTIVES
    assert it.check(candidate) == ()


# Edits


def test_an_edited_decision_is_carried_out_by_the_program():
    it = space()
    parent = next(c for c in samples(it, 6, 9) if it.run_of(c).values["i_tile"] != (2, 4))
    edited = tuple(
        Directive(d.op, d.target, (8, 8, 2, 4)) if d.target == "i_tile" else d
        for d in parent.payload
    )
    child = it.revised(Candidate(Language.SCHEDULE, edited), parent)
    assert it.run_of(child).values == {**it.run_of(parent).values, "i_tile": (2, 4)}
    assert child != parent
    # What it leaves out stays as it was.
    alone = tuple(d for d in edited if d.target == "i_tile" or not d.is_decision)
    assert it.revised(Candidate(Language.SCHEDULE, alone), parent).payload == child.payload


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Directive("sample_categorical", "mood", (1, 1, 2)), "found mood"),
        (Directive("sample_categorical", "outer columns", (3, 3, 4)), "expected one of False"),
    ],
)
def test_edits_that_the_program_does_not_know_are_refused(entry, reason):
    parent = samples(space(), 0, 1)[0]
    edited = Candidate(Language.SCHEDULE, (entry, *only(parent)))
    with pytest.raises(InfeasibleError, match=reason):
        space().revised(edited, parent)


# Templates

PROBLEM = matmul(m=64, n=64, k=64)


@cache
def templated(constraints=()):
    procedure = PROBLEM.definition(PROBLEM.workloads[0])
    writes = template_program(PROBLEM.knobs, PROBLEM.sketch, constraints)
    return ProgramSpace(procedure, writes)


def test_a_template_is_a_program_whose_decisions_are_its_knobs():
    knobs, it = KnobSpace(PROBLEM.knobs), templated()
    rng = np.random.default_rng(0)
    forms = Forms(it, PROBLEM)
    for _ in range(10):
        chosen = knobs.sample(rng)
        candidate = from_knobs(it, chosen)
        run = it.run_of(candidate)
        assert set(run.decisions) == set(knobs.names)
        assert to_knobs(run) == chosen
        assert to_knobs(run).key == chosen.key
        # One program, whichever of the two it is written as.
        workload = PROBLEM.workloads[0]
        assert program(PROBLEM, candidate, workload).text == program(PROBLEM, chosen, workload).text
        sketched = it.canonical(Candidate(Language.SCHEDULE, PROBLEM.sketch(chosen.knobs)))
        assert candidate == sketched
        assert forms.of(candidate) == forms.of(sketched)
        assert identity(PROBLEM, it.canonical(sketched)) == f"schedule:{candidate.key}"


def test_a_template_s_directives_tell_their_knobs():
    run = templated().run_of(samples(templated(), 0, 1)[0])
    split = next(d for d in run.trace if d.op == "split" and d.target == "j")
    assert run.uses[run.trace.index(split)] == ("nv", "lanes")


def test_a_template_keeps_its_rules():
    rule = Constraint("registers", "mr * nv <= 8", "more accumulators than registers")
    it = templated((rule,))
    found = [it.run_of(c).values for c in samples(it, 0, 40)]
    assert all(v["mr"][0] * v["nv"][0] <= 8 for v in found)
    values = {**dict(PROBLEM.unscheduled), "mr": 8, "nv": 4}
    with pytest.raises(InfeasibleError, match="more accumulators than registers"):
        from_knobs(it, Candidate(Language.KNOBS, tuple(values.items())))
    rng = np.random.default_rng(0)
    for candidate in samples(it, 1, 20):
        child = it.mutate(candidate, rng)
        if child is not None:
            assert it.run_of(child).values["mr"][0] * it.run_of(child).values["nv"][0] <= 8
    with pytest.raises(ExpressionError):
        template_program(PROBLEM.knobs, PROBLEM.sketch, (Constraint("r", "zz < 2", "no"),))
    with pytest.raises(InfeasibleError, match="expected a value for the decision nv"):
        from_knobs(it, Candidate(Language.KNOBS, (("mr", 1),)))


# Sketches


@pytest.mark.parametrize("name", PROCEDURES)
def test_sketches_are_legal_and_mean_the_same(name):
    it, rng = sketches(name, 2), np.random.default_rng(7)
    one, other = it.sample(rng), it.sample(rng)
    inputs = inputs_of(it.procedure, 0)
    expected = interpret(it.procedure, inputs)
    for candidate in (one, other, it.mutate(one, rng, 2), it.crossover(one, other, rng)):
        if candidate is None:
            continue
        assert it.run_of(candidate) is not None
        found = interpret(it.scheduled(candidate), inputs)
        for output, values in expected.items():
            np.testing.assert_allclose(found[output], values, rtol=1e-5)


def test_every_rule_writes_something_where_it_applies():
    def ops(names, procedure):
        it = ProgramSpace(procedure, sketch_program(names), threads=2)
        return {d.op for c in samples(it, 0, 24) for d in only(c)}

    assert ops(["multi_level_tiling"], product()) == {"split", "reorder"}
    kinds = ops(["multi_level_tiling", "parallelize_vectorize_unroll"], product())
    assert kinds == {"split", "reorder", "unroll", "vectorize", "parallel"}
    assert ops(["parallelize_vectorize_unroll"], product()) == {"split", "vectorize"}


@cache
def stencil():
    """Two stages, the second reads neighbours of the first."""
    x = te.placeholder("x", (18, 18))
    a = te.compute("a", (18, 16), lambda i, j: x[i, j] + x[i, j + 2], [x])
    b = te.compute("b", (16, 16), lambda y, z: a[y, z] * a[y + 2, z], [a])
    return te.lower("stencil", [b])


@cache
def sums():
    """Few results, each of many values."""
    x, k = te.placeholder("x", (4, 64)), te.reduce_axis("k", 64)
    return te.lower("sums", [te.compute("y", (4,), lambda i: te.reduce_sum(x[i, k.value], k), [x])])


STRUCTURAL = [
    (["auto_inline"], stencil, {"compute_inline"}),
    (["random_compute_location"], stencil, {"compute_at", "store_root"}),
    (["multi_level_tiling", "add_cache_write"], product, {"cache_write"}),
    (["allow_reassociation", "add_rfactor"], sums, {"reassociate", "rfactor"}),
]


@pytest.mark.parametrize(("names", "make", "wanted"), STRUCTURAL)
def test_structure_is_changed_by_the_directives_that_there_are(names, make, wanted):
    it = ProgramSpace(make(), sketch_program(names))
    inputs = inputs_of(make(), 0)
    expected = interpret(make(), inputs)
    found = set()
    for candidate in samples(it, 0, 24):
        found |= {step.op for step in only(candidate)}
        for output, values in interpret(it.scheduled(candidate), inputs).items():
            np.testing.assert_allclose(values, expected[output], rtol=1e-5)
    assert found & wanted == wanted & set(DIRECTIVES)


def test_sums_are_reassociated_only_where_a_campaign_says_so():
    it = ProgramSpace(sums(), sketch_program())
    ops = {step.op for candidate in samples(it, 0, 24) for step in only(candidate)}
    assert not ops & {"reassociate", "rfactor"}
    assert [name for name, rule in RULES.items() if rule.by_name] == ["allow_reassociation"]


def test_questions_about_a_procedure():
    procedure = product()
    assert stages(procedure) == ("C",)
    assert stages(stencil()) == ("b", "a")
    assert temporaries(stencil()) == ("a",)
    assert temporaries(procedure) == ()
    assert is_reduced(procedure, "C")
    assert not is_reduced(stencil(), "a")
    assert update_loops(procedure, "C") == ("i", "j")
    assert update_loops(stencil(), "b") == ()
    cut = apply_trace(procedure, parse_trace("split('k', 4)\nreorder('ko', 'i', 'ki', 'j')"))
    assert update_loops(cut, "C") == ("i",)
    assert loops_around(cut, "ki") == ("ko", "i")
    assert readers_loops(stencil(), "a") == ("y", "z")
    assert readers_loops(procedure, "C") == ()
    assert stored_in(procedure, "i") == ("C",)
    assert [loop.var for loop in innermost(procedure)] == ["j_start", "k"]


def test_every_rule_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "spaces.md").read_text()
    for name in RULES:
        assert f"| `{name}` |" in text


def test_the_structure_of_a_sketch_is_a_decision():
    names = {n for c in samples(sketches("softmax"), 0, 12) for n in decisions_of(c.payload)}
    assert any(name.endswith(": tile") for name in names)
    assert any(name.endswith(": lanes") for name in names)


@pytest.mark.parametrize(
    ("names", "found", "near"),
    [(["tiling"], "'tiling'", None), (["auto_inlne"], "'auto_inlne'", "auto_inline")],
)
def test_unknown_rules_are_refused(names, found, near):
    with pytest.raises(OptionError) as error:
        sketch_program(names)
    assert (error.value.option, error.value.found) == ("sketch", found)
    assert all(name in error.value.expected for name in RULES)
    assert near is None or error.value.nearest == near
    with pytest.raises(OptionError, match="each rule once"):
        sketch_program(["auto_inline", "auto_inline"])


# Features


@pytest.mark.parametrize("make", [space, lambda: sketches("softmax"), templated])
def test_features_tell_the_decisions_apart(make):
    it = make()
    rows = [it.features(c) for c in [it.default, *samples(it, 3, 12)]]
    assert {row.shape for row in rows} == {rows[0].shape}
    assert np.isfinite(rows).all()
    loops = it.loop_features(it.default)
    assert np.array_equal(rows[0][: len(loops)], loops)
    assert len({row[len(loops) :].tobytes() for row in rows}) > 5


def test_a_space_without_a_program_keeps_no_decisions():
    plain = ScheduleSpace(product())
    candidate = samples(space(), 0, 1)[0]
    assert plain.check(candidate) == ()
    assert plain.canonical(candidate).payload == only(candidate)
