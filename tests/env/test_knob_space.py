from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import knob_lists

from kernelwright.env.problems.gemm_gpu import KNOBS, UNSCHEDULED
from kernelwright.env.spaces.expressions import Constraint, own_rule
from kernelwright.env.spaces.knobs import EmptySpaceError, KnobSpace
from kernelwright.env.types import Candidate, Knob, Language, knob_candidate

SMALL = KnobSpace(
    [Knob("a", (1, 2, 4)), Knob("b", (1, 2, 4, 8)), Knob("c", (0, 1))],
    [Constraint("product", "a * b <= 8", "{a} * {b} is above 8")],
)


def test_enumerates_exactly_what_the_rules_allow():
    wanted = {
        (a, b, c) for a, b, c in itertools.product((1, 2, 4), (1, 2, 4, 8), (0, 1)) if a * b <= 8
    }
    found = {tuple(SMALL.candidate(i).knobs.values()) for i in SMALL.valid.tolist()}
    assert found == wanted
    assert SMALL.combinations == 24


@given(knob_lists(), st.data())
def test_levels_indices_and_candidates_agree(knobs, data):
    space = KnobSpace(knobs)
    index = data.draw(st.integers(0, space.combinations - 1))
    assert space.flat(space.unflat(index)) == index
    assert space.levels[index].tolist() == space.unflat(index)
    candidate = space.candidate(index)
    assert space.index(candidate) == index
    assert space.canonical(candidate) == candidate
    assert space.check(candidate) == ()


@given(st.integers(0, 2**32))
def test_moves_stay_in_the_space(seed):
    rng = np.random.default_rng(seed)
    one, other = SMALL.sample(rng), SMALL.sample(rng)
    for moved in (
        SMALL.mutate(one, rng),
        SMALL.mutate(one, rng, 2),
        SMALL.crossover(one, other, rng),
    ):
        assert moved is None or SMALL.check(moved) == ()


@given(st.integers(0, 2**32), st.integers(1, 2))
def test_a_mutation_moves_that_many_knobs_one_step(seed, steps):
    rng = np.random.default_rng(seed)
    one = SMALL.sample(rng)
    moved = SMALL.mutate(one, rng, steps)
    if moved is not None:
        before, after = SMALL.unflat(SMALL.index(one)), SMALL.unflat(SMALL.index(moved))
        assert (
            sorted(abs(x - y) for x, y in zip(before, after, strict=True))
            == [0] * (3 - steps) + [1] * steps
        )


@given(st.integers(0, 2**32))
def test_a_crossover_takes_every_knob_from_a_parent(seed):
    rng = np.random.default_rng(seed)
    left, right = SMALL.sample(rng), SMALL.sample(rng)
    child = SMALL.crossover(left, right, rng)
    if child is not None:
        for name, value in child.knobs.items():
            assert value in (left.knobs[name], right.knobs[name])


def test_neighbours_are_symmetric_and_one_step_away():
    for index in SMALL.valid.tolist():
        for near in SMALL.neighbour_indices(index):
            assert index in SMALL.neighbour_indices(near)
            steps = np.abs(SMALL.levels[index] - SMALL.levels[near])
            assert steps.sum() == 1


def test_sampling_reaches_everything():
    rng = np.random.default_rng(0)
    seen = {SMALL.index(SMALL.sample(rng)) for _ in range(2000)}
    assert seen == set(SMALL.valid.tolist())


def test_every_broken_rule_is_named_with_its_values():
    (violation,) = SMALL.check(knob_candidate({"a": 4, "b": 8, "c": 0}))
    assert (violation.code, violation.reason) == ("product", "4 * 8 is above 8")


@pytest.mark.parametrize(
    ("values", "code", "reason"),
    [
        ({"a": 3, "b": 1, "c": 0}, "knob_value", "a=3: expected one of 1, 2, 4"),
        ({"a": 1.0, "b": 1, "c": 0}, "knob_value", "a=1.0: expected one of 1, 2, 4"),
        ({"a": True, "b": 1, "c": 0}, "knob_value", "a=True"),
        ({"a": 1, "b": 1}, "missing_knob", "'c' has no value"),
        ({"a": 1, "b": 1, "c": 0, "d": 1}, "unknown_knob", "unknown knob 'd'; known: a, b, c"),
    ],
)
def test_what_is_not_a_configuration_is_told_why(values, code, reason):
    violation = SMALL.check(knob_candidate(values))[0]
    assert violation.code == code
    assert reason in violation.reason


def test_other_languages_are_not_in_the_space():
    assert SMALL.check(Candidate(Language.SOURCE, "int x;"))[0].code == "language"


def test_members_restrict_the_space():
    space = KnobSpace(
        [Knob("a", (1, 2, 4))], members=np.array([0, 2]), members_reason="not recorded"
    )
    assert space.valid.tolist() == [0, 2]
    assert space.check(knob_candidate({"a": 2}))[0].reason == "not recorded"


def test_features_are_logs_and_products():
    row = SMALL.features(knob_candidate({"a": 4, "b": 2, "c": 1}))
    # c has a value of 0, so its level stands for its logarithm.
    np.testing.assert_allclose(row, [2, 1, 1, 4, 2, 2, 1, 1, 1])


def test_gemm_has_28_features_with_the_intercept():
    assert KnobSpace(KNOBS).feature_table.shape == (6000, 27)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KnobSpace([]), "distinct knob names"),
        (lambda: KnobSpace([Knob("a", (1,)), Knob("a", (2,))]), "distinct knob names"),
        (lambda: KnobSpace([Knob(n, tuple(range(9999))) for n in "abcde"]), "at most 2.62"),
        (lambda: KnobSpace([Knob("a", (1,))], [Constraint("x", "a > 1", "")]), "no configuration"),
        (lambda: KnobSpace([Knob("a", (1,))], [Constraint("x", "b > 1", "")]), "unknown name 'b'"),
        (
            lambda: KnobSpace([Knob("a", (1,))], default=[("a", 2)]),
            "default a=2: a=2: expected one of",
        ),
    ],
)
def test_spaces_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_default_is_kept():
    assert KnobSpace(KNOBS, default=UNSCHEDULED).default == Candidate(Language.KNOBS, UNSCHEDULED)


CHAIN = [Knob(f"k{i}", tuple(range(1, 33))) for i in range(10)]
CHAIN_RULES = [
    own_rule(f"k{i} * k{i + 1} <= 64", frozenset(knob.name for knob in CHAIN)) for i in range(9)
]


def test_a_space_too_large_to_list_is_drawn_from():
    space = KnobSpace(CHAIN, CHAIN_RULES)
    assert not space.is_listed
    with pytest.raises(ValueError, match="too many valid configurations among 1,125,899,906,842"):
        assert space.valid.size
    rng = np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(20)]
    assert len(set(drawn)) == 20
    assert not any(space.check(candidate) for candidate in drawn)
    broken = knob_candidate({knob.name: 32 for knob in CHAIN})
    first = space.check(broken)[0].reason
    assert first == "expected k0 * k1 <= 64, found k0 = 32, k1 = 32"
    assert all(space.contains_index(i) for i in space.neighbour_indices(space.index(drawn[0])))
    assert len(space.features(drawn[0])) == 10 + 55


def test_samples_of_a_large_space_are_near_uniform():
    # Two components: one with a single valid pair in 64, one without a constraint.
    knobs = [Knob("a", tuple(range(8))), Knob("b", tuple(range(8))), *CHAIN[:6]]
    names = frozenset(knob.name for knob in knobs)
    space = KnobSpace(knobs, [own_rule("a + b == 3", names)])
    assert not space.is_listed
    rng = np.random.default_rng(1)
    counts = np.bincount([space.sample(rng).knobs["a"] for _ in range(400)], minlength=8)
    assert counts[4:].sum() == 0
    assert counts[:4].min() > 60


@given(st.data())
def test_what_is_listed_is_what_holds(data):
    values = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)
    knobs = [Knob(n, tuple(data.draw(values))) for n in "abcd"]
    texts = ["a + b <= 9", "b * c != 8", "a % 2 == c % 2", "d >= a or d == 0", "a < 12"]
    chosen = data.draw(st.lists(st.sampled_from(texts), max_size=4, unique=True))
    rules = [own_rule(text, frozenset("abcd")) for text in chosen]
    rows = itertools.product(*(knob.values for knob in knobs))
    product = [dict(zip("abcd", row, strict=True)) for row in rows]
    wanted = [
        i
        for i, row in enumerate(product)
        if all(r.holds({n: np.array([v]) for n, v in row.items()})[0] for r in rules)
    ]
    if not wanted:
        with pytest.raises(EmptySpaceError):
            KnobSpace(knobs, rules)
        return
    space = KnobSpace(knobs, rules)
    assert space.valid.tolist() == wanted
    for i in wanted[:5]:
        made = space.candidate(i)
        assert made == knob_candidate(product[i])
        assert made.payload == knob_candidate(product[i]).payload


def test_there_may_be_more_knobs_than_arrays_have_axes():
    space = KnobSpace([*(Knob(f"k{i}", (i,)) for i in range(1100)), Knob("z", (1, 2, 3))])
    assert space.levels_of(space.valid)[:, -1].tolist() == [0, 1, 2]
    assert space.indices_of(space.levels_of(space.valid)).tolist() == space.valid.tolist()
    assert space.feature_rows(space.valid[:1]).shape[0] == 1
    assert space.crossover_index(0, 2, np.random.default_rng(0).random) in (0, 2)
    members = KnobSpace(space.knobs, members=np.array([0, 2]))
    assert members.valid.tolist() == [0, 2]


def test_of_many_knobs_each_comes_from_either_parent():
    space = KnobSpace([Knob(f"b{i}", (0, 1)) for i in range(60)])
    rng = np.random.default_rng(0)
    ones = [space.unflat(space.crossover_index(2**60 - 1, 0, rng.random)) for _ in range(400)]
    assert np.abs(np.mean(ones, axis=0) - 0.5).max() < 0.12


def test_a_definition_named_like_the_knob_that_it_reads_depends_on_it():
    rule = Constraint("c", "x <= 4", "{x} is above 4", where=(("x", "x * 2"),))
    space = KnobSpace([Knob("x", (1, 2, 3, 4)), Knob("y", (1, 2))], [rule])
    assert {space.candidate(i).knobs["x"] for i in space.valid.tolist()} == {1, 2}
    assert space.check(knob_candidate({"x": 3, "y": 1}))
