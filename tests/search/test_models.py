"""Cost models, and what drivers make of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from contracts import DriverContract, judged
from playground import SCHEDULES, SPACE, drive, sloping

from kernelwright.env.options import OptionError
from kernelwright.env.problems.gemm_gpu import gemm_gpu
from kernelwright.env.spaces.knobs import KnobSpace
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.search.drivers import pool
from kernelwright.search.drivers.cost_model import CostModel
from kernelwright.search.drivers.model_topk import ModelTopK
from kernelwright.search.models.model import make_model
from kernelwright.search.models.prior import ENOUGH, LEAST, Prior
from kernelwright.search.models.ridge import Ridge

PROBLEM = gemm_gpu()
TARGET = GpuModel(PROBLEM)
GEMM = KnobSpace(PROBLEM.knobs, TARGET.constraints, default=PROBLEM.unscheduled)


def truth(candidates):
    return np.log2(TARGET.true_ns(candidates))


def rows_of(space, count, seed=0):
    rng = np.random.default_rng(seed)
    return [space.candidate(int(i)) for i in rng.choice(space.valid, count, replace=False)]


def table(space, candidates):
    return space.feature_table[[space.index(c) for c in candidates]]


# Choosing a model


class Constant:
    """A model of one's own that predicts what it was told last."""

    def __init__(self, space, *, seed):
        self.count, self.last, self.seed = 0, 0.0, seed

    def add(self, rows, targets):
        self.count += len(targets)
        self.last = float(targets[-1])

    def predict(self, rows):
        return np.full(len(rows), self.last)


def test_a_model_of_one_s_own_is_named_by_its_path(monkeypatch):
    monkeypatch.setitem(sys.modules, "my_models", sys.modules[__name__])
    made = make_model("my_models:Constant", SPACE, seed=7, problem=None, penalty=1.0)
    assert (made.seed, made.count) == (7, 0)
    driver = CostModel(SPACE, seed=0, batch=8, model="my_models.Constant")
    assert len({t.candidate for t in drive(driver, 32)}) == 32


@pytest.mark.parametrize("name", ["ridg", "no_such_module:X", "json:nothing", "json.dumps:", ":"])
def test_an_unknown_model_is_refused(name):
    with pytest.raises(OptionError, match="one of ridge, trees, prior or a dotted path") as refusal:
        make_model(name, SPACE, seed=0)
    assert refusal.value.option == "model"


class Mute(Constant):
    predict = property()


def test_what_is_no_model_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "my_models", sys.modules[__name__])
    with pytest.raises(OptionError, match="my_models:Mute without predict"):
        make_model("my_models:Mute", SPACE, seed=0)


# Trees


def test_trees_without_scikit_learn_name_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(OptionError, match=r"kernelwright\[trees\]"):
        CostModel(SPACE, seed=0, batch=8, model="trees")


def cliff(candidates):
    """A time with a step that no product of logarithms has."""
    return np.array(
        [4.0 if c.knobs["bn"] >= 128 and c.knobs["warps"] < 8 else 0.0 for c in candidates]
    )


def test_trees_learn_a_cliff_that_ridge_smooths_over():
    pytest.importorskip("sklearn")
    seen, asked = rows_of(GEMM, 256), rows_of(GEMM, 500, seed=1)
    errors = {}
    for name in ("trees", "ridge"):
        model = make_model(name, GEMM, seed=0)
        model.add(table(GEMM, seen), cliff(seen))
        errors[name] = np.abs(model.predict(table(GEMM, asked)) - cliff(asked)).mean()
    assert errors["trees"] < 0.3 * errors["ridge"]


def test_trees_are_seeded_and_know_what_they_have_seen():
    pytest.importorskip("sklearn")
    seen, asked = rows_of(GEMM, 64), rows_of(GEMM, 200, seed=1)

    def grown(seed, pieces):
        model = make_model("trees", GEMM, seed=seed)
        for piece in pieces:
            model.add(table(GEMM, piece), truth(piece))
        return model

    one, other = grown(3, [seen]), grown(3, [seen[:10], seen[10:]])
    np.testing.assert_array_equal(
        one.predict(table(GEMM, asked)), other.predict(table(GEMM, asked))
    )
    assert one.spread(table(GEMM, seen)).max() < 1e-6
    assert one.spread(table(GEMM, asked)).mean() > 0.05
    with pytest.raises(ValueError, match="at least one sample"):
        make_model("trees", GEMM, seed=0).predict(table(GEMM, asked))


class TestCostModelOfTrees(DriverContract):
    space = SPACE

    def make(self, seed, batch):
        pytest.importorskip("sklearn")
        return CostModel(SPACE, seed=seed, batch=batch, model="trees", kappa=1.0)

    @pytest.mark.parametrize("batch", [8])  # a forest an ask: one by one takes seconds
    def test_covers_the_space_without_an_invalid_or_repeated_proposal(self, batch):
        super().test_covers_the_space_without_an_invalid_or_repeated_proposal(batch)


def test_kappa_needs_a_model_that_tells_a_spread():
    with pytest.raises(OptionError, match="ridge, which tells no spread") as refusal:
        CostModel(SPACE, seed=0, batch=8, kappa=1.0)
    assert refusal.value.option == "kappa"


# The prior


def test_the_prior_is_the_analytic_model():
    seen = rows_of(GEMM, 50)
    model = Prior(GEMM, problem=PROBLEM)
    found = model.predict(table(GEMM, seen))
    np.testing.assert_allclose(found, truth(seen) - np.log2(1e9), atol=1e-9)


def test_a_prior_that_ranks_is_kept_and_corrected():
    seen, asked = rows_of(GEMM, 200), rows_of(GEMM, 300, seed=1)

    def off(candidates):
        """The model's time, with an error that depends on a knob."""
        return truth(candidates) + 0.5 * np.log2([c.knobs["bk"] for c in candidates])

    model = Prior(GEMM, problem=PROBLEM)
    before = np.std(model.predict(table(GEMM, asked)) - off(asked))
    model.add(table(GEMM, seen), off(seen))
    after = np.std(model.predict(table(GEMM, asked)) - off(asked))
    assert (model.is_kept, model.note) == (True, "prior")
    assert model.correlation > 0.7
    assert after < 0.8 * before


def test_a_prior_that_misleads_is_dropped_and_leaves_ridge():
    seen = rows_of(GEMM, 64)
    model, plain = Prior(GEMM, problem=PROBLEM), Ridge(0.1)
    few = seen[: ENOUGH - 1]
    model.add(table(GEMM, few), -truth(few))
    assert model.is_kept
    assert model.says == f"prior: not tested before {ENOUGH} trials"
    rest = seen[ENOUGH - 1 :]
    model.add(table(GEMM, rest), -truth(rest))
    assert (model.is_kept, model.note) == (False, "prior dropped")
    assert model.correlation < LEAST
    assert "rank correlation -1.00 on 64 trials" in model.says
    plain.add(table(GEMM, few), -truth(few))
    plain.add(table(GEMM, rest), -truth(rest))
    asked = table(GEMM, rows_of(GEMM, 20, seed=1))
    np.testing.assert_array_equal(model.predict(asked), plain.predict(asked))


def test_a_dropped_prior_can_come_back():
    seen = rows_of(GEMM, 120)
    model = Prior(GEMM, problem=PROBLEM)
    model.add(table(GEMM, seen[:12]), -truth(seen[:12]))
    assert not model.is_kept
    model.add(table(GEMM, seen[12:]), truth(seen[12:]))
    assert model.is_kept


def test_there_is_no_prior_for_other_problems_or_spaces():
    for space, problem in ((SPACE, None), (SCHEDULES, PROBLEM)):
        with pytest.raises(OptionError, match="analytic model"):
            Prior(space, problem=problem)
    with pytest.raises(OptionError, match="a space with the knobs bm, bn, bk"):
        Prior(SPACE, problem=PROBLEM)


def test_the_decision_is_visible_in_proposals_and_events():
    events = []

    class Journal:
        def record(self, event):
            events.append(event)

    driver = CostModel(GEMM, seed=0, batch=8, problem=PROBLEM, journal=Journal(), model="prior")
    number, proposers = 0, []
    for _ in range(4):
        proposals = driver.ask(8)
        proposers.append({p.proposer for p in proposals})
        values = truth([p.candidate for p in proposals]).tolist()
        # As if what the model takes for fast were slow.
        driver.tell(
            [
                judged(number + i, p.candidate, v)
                for i, (p, v) in enumerate(zip(proposals, values, strict=True))
            ]
        )
        number += 8
    assert proposers[0] == {"cost_model prior"}
    assert proposers[-1] == {"cost_model prior dropped"}
    assert [e.data["note"] for e in events] == ["prior", "prior dropped"]
    assert "rank correlation" in events[1].data["says"]


def test_with_a_prior_half_of_the_first_configurations_are_its_favourites():
    driver = CostModel(GEMM, seed=0, batch=8, problem=PROBLEM, model="prior")
    first = [p.candidate for p in driver.ask(8)]
    best = np.sort(truth([GEMM.candidate(i) for i in GEMM.valid.tolist()]))[:4]
    np.testing.assert_allclose(np.sort(truth(first[1::2])), best, atol=1e-9)


# model_topk


def test_the_favourites_are_measured_in_order_and_then_it_stops():
    driver = ModelTopK(GEMM, seed=0, batch=8, problem=PROBLEM, model="prior", initial=0, k=10)
    trials = []
    while proposals := driver.ask(8):
        trials += [p.candidate for p in proposals]
        driver.tell([judged(len(trials), p.candidate, 0.0) for p in proposals])
    ranked = np.sort(truth([GEMM.candidate(i) for i in GEMM.valid.tolist()]))[:10]
    np.testing.assert_allclose(truth(trials), ranked, atol=1e-9)
    assert driver.stopped == "the model's 10 favourites were measured"


def test_a_ranking_is_made_once_from_the_first_configurations():
    driver = ModelTopK(SPACE, seed=0, batch=8, initial=16)
    trials = drive(driver, 16)
    model = Ridge(0.1)
    passed = [t for t in trials if t.objective is not None]
    model.add(table(SPACE, [t.candidate for t in passed]), np.array([-t.objective for t in passed]))
    rest = [i for i in SPACE.valid.tolist() if i not in {SPACE.index(t.candidate) for t in trials}]
    order = [rest[i] for i in np.argsort(model.predict(SPACE.feature_table[rest]), kind="stable")]
    found = [SPACE.index(p.candidate) for p in driver.ask(8)]
    # What is measured on the way changes nothing.
    driver.tell([judged(16 + i, SPACE.candidate(j), -100.0) for i, j in enumerate(found)])
    found += [SPACE.index(p.candidate) for p in driver.ask(8)]
    times = model.predict(SPACE.feature_table)
    np.testing.assert_allclose(times[found], times[order[:16]])


def test_a_model_that_learns_needs_something_to_learn_from():
    with pytest.raises(OptionError, match="at least 2 for ridge") as refusal:
        ModelTopK(SPACE, seed=0, batch=8, initial=1)
    assert refusal.value.option == "initial"


def test_failures_only_are_no_ranking():
    driver = ModelTopK(SPACE, seed=0, batch=8, initial=8)
    for ask in range(3):
        proposals = driver.ask(8)
        assert len(proposals) == 8
        driver.tell([judged(8 * ask + i, p.candidate, None) for i, p in enumerate(proposals)])
    proposals = driver.ask(8)
    driver.tell(
        [judged(24 + i, p.candidate, sloping(p.candidate)) for i, p in enumerate(proposals)]
    )
    assert driver.ask(8)


@pytest.mark.parametrize("driver", [CostModel, ModelTopK])
def test_of_a_space_whose_features_fit_nowhere_samples_are_ranked(driver, monkeypatch):
    monkeypatch.setattr(pool, "MOST_FEATURES", 100)
    monkeypatch.setattr(KnobSpace, "feature_table", None)
    found = drive(driver(GEMM, seed=0, batch=8, initial=16), 96, lambda c: float(-truth([c])[0]))
    assert len({t.candidate.key for t in found}) == 96
    # It still is guided: what it chose is faster than what was drawn.
    drawn, chosen = (np.median([t.objective for t in part]) for part in (found[:16], found[16:]))
    assert chosen > drawn
    small = SPACE if len(SPACE.valid) < 400 else GEMM
    trials = drive(driver(small, seed=0, batch=8), len(small.valid) + 8, lambda c: 1.0)
    assert len(trials) == len(small.valid)


def test_a_penalty_that_is_lost_in_rounding_is_no_error():
    model = Ridge(1e-300)
    model.add(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), np.array([1.0, 2.0, 3.0]))
    assert model.predict(np.array([[4.0, 8.0]])) == pytest.approx([4.0])
