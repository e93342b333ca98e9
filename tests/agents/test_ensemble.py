"""Several backends as one: chosen, replaced while down, and learned about from the record alone."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from kernelwright.agents.backends.bandit import Bandit
from kernelwright.agents.backends.ensemble import Ensemble
from kernelwright.agents.chat import BackendError, ChatRequest, Completion
from kernelwright.configs import api
from kernelwright.configs.errors import ConfigError
from kernelwright.display.runs import summary_text
from kernelwright.env.options import OptionError
from kernelwright.search.answering import failures_by
from kernelwright.search.store import SqliteStore
from kernelwright.search.trial import MODEL_CALL, event

MOCK = {"name": "mock"}
DOWN = """
from kernelwright.agents.chat import BackendError


class Down:
    def __init__(self):
        self.model, self.priced, self.missing = "down", True, ()

    def complete(self, request):
        raise BackendError("transient", "no route")
"""
REQUEST = ChatRequest("ensemble", (("user", "q"),), 100, 0.5, 7)


class Scripted:
    priced, missing = True, ()

    def __init__(self, name, *answers, missing=(), priced=True):
        self.model, self.answers, self.requests = name, list(answers) or ["hi"], []
        self.missing, self.priced = missing, priced

    def complete(self, request):
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BackendError):
            raise answer
        return Completion(answer, "stop", self.model, "id")


def ensemble(*backends, **options):
    return Ensemble(seed=3, backends={b.model: b for b in backends}, **options)


def record_of(folder):
    with SqliteStore(folder / "run.sqlite", readonly=True) as store:
        return store.trials(), store.events()


def calls_of(folder):
    return [e for e in record_of(folder)[1] if e.kind == MODEL_CALL]


def by_backend(events):
    calls = [e.data for e in events if e.kind == MODEL_CALL]
    return Counter((data["completion"] or data["error"])["answered_by"] for data in calls)


def campaign(trials=24, seed=1, faults=0.2, **options):
    good = {"name": "mock", "skill": 1.0}
    bad = {"name": "mock", "skill": 0.0, "faults": faults}
    return {
        "name": "many",
        "problem": {"name": "gemm_gpu"},
        "target": {"name": "gpu-model"},
        "driver": {"name": "llm"},
        "agents": {"backend": {"name": "ensemble", "backends": {"x": good, "y": bad}, **options}},
        "budget": {"trials": trials},
        "batch": 4,
        "seed": seed,
    }


def test_the_chosen_one_is_asked_by_its_own_name_and_named_in_the_answer():
    a, b = Scripted("a"), Scripted("b")
    answer = ensemble(a, b, choice="fixed").complete(REQUEST)
    assert (answer.answered_by, answer.model) == ("a", "a")
    assert a.requests[0].model == "a"
    assert a.requests[0].messages == REQUEST.messages
    assert b.requests == []


def test_weights_are_kept_to_and_are_a_function_of_seed_and_question():
    a, b, c = Scripted("a"), Scripted("b"), Scripted("c")
    weights = {"a": 3.0, "b": 1.0, "c": 0.0}
    questions = [ChatRequest("ensemble", (("user", "q"),), 100, 0.5, n) for n in range(400)]

    def names(asked):
        found = ensemble(a, b, c, choice="weights", weights=weights)
        return [found.complete(q).answered_by for q in asked]

    first = names(questions)
    assert first == names(questions[::-1])[::-1]
    counts = Counter(first)
    assert counts["c"] == 0
    assert 260 < counts["a"] < 340


@pytest.mark.parametrize("kind", ["transient", "permanent"])
def test_the_next_one_answers_while_one_is_down(kind):
    down = Scripted("a", BackendError(kind, "401 no"))
    found = ensemble(down, Scripted("b"), Scripted("c"), choice="fixed", fallback=("c", "b"))
    answers = [found.complete(REQUEST).answered_by for _ in range(3)]
    assert answers == ["c"] * 3
    # What cannot pass is not tried again.
    assert len(down.requests) == (3 if kind == "transient" else 1)


def test_one_that_is_down_is_worth_nothing_and_is_left_for_the_others(tmp_path):
    (tmp_path / "down.py").write_text(DOWN)
    backends = {
        "down": {"name": f"{tmp_path}/down.py:Down", "limits": {"breaker": 2}},
        "bad": {"name": "mock", "skill": 0.0, "faults": 0.8},
        "good": {"name": "mock", "skill": 1.0},
    }
    api.run(campaign(backends=backends, fallback=["bad", "good"]), tmp_path / "run")
    events = record_of(tmp_path / "run")[1]
    counts = by_backend(events)
    assert counts["down"] == 0
    assert counts["good"] > counts["bad"] > 0
    calls = [e.data["completion"] for e in events if e.kind == MODEL_CALL]
    assert 0 < sum(bool(call["down"]) for call in calls) < len(calls) / 2
    again = campaign()
    again["agents"] = {"backend": {"name": "replay", "from": str(tmp_path / "run")}}
    api.run(again, tmp_path / "again")
    assert record_of(tmp_path / "run") == record_of(tmp_path / "again")


def test_a_dead_member_is_named_in_the_summary_with_its_failures(tmp_path):
    (tmp_path / "down.py").write_text(DOWN)
    config = campaign(trials=8)
    dead = {"name": f"{tmp_path}/down.py:Down", "limits": {"breaker": 1}}
    backends = {"dead": dead, "cheap": MOCK}
    options = {"choice": "fixed", "fallback": ["cheap"]}
    config["agents"]["backend"] |= {"backends": backends, **options}
    summary = api.run(config, tmp_path / "run")
    calls = summary["answered_by"]["cheap"]
    reason = "no route (attempt 1, the last)"  # of the open circuit, too
    assert summary["failures_by"] == {"dead": {"calls": calls, "first": reason}}
    assert f"dead: {calls} calls failed: {reason}" in summary_text(summary).splitlines()
    reasons = {call.data["completion"]["reasons"][0] for call in calls_of(tmp_path / "run")}
    assert reasons == {reason}


def test_a_call_that_nobody_answered_is_a_failure_of_the_first():
    lost = {"completion": None, "error": {"answered_by": "a", "message": "a: busy"}}
    older = {"completion": {"answered_by": "b", "down": ["a"]}, "error": None}
    events = [event(MODEL_CALL, 1, slot, **data) for slot, data in enumerate((lost, older))]
    assert failures_by(events) == {"a": {"calls": 2, "first": "busy"}}


def test_a_limit_of_money_names_the_member_without_a_price(tmp_path):
    config = campaign(trials=4)
    (tmp_path / "down.py").write_text(DOWN.replace("True", "False"))
    config["agents"]["backend"]["backends"]["y"] = {"name": f"{tmp_path}/down.py:Down"}
    config["budget"] = {"usd": 1.0}
    with pytest.raises(ConfigError, match="no price of down of y"):
        api.check(config)


def test_weights_leave_out_who_is_down_for_good():
    down, a, b = Scripted("down", BackendError("permanent", "401")), Scripted("a"), Scripted("b")
    weights = {"down": 100.0, "a": 1.0, "b": 1.0}
    found = ensemble(down, a, b, choice="weights", weights=weights, fallback=("b",))
    questions = [ChatRequest("ensemble", (("user", "q"),), 100, 0.5, n) for n in range(60)]
    counts = Counter(found.complete(q).answered_by for q in questions)
    assert len(down.requests) == 1
    assert min(counts["a"], counts["b"]) > 10


def test_without_anyone_left_the_first_error_is_raised_and_says_whose_it_is():
    a, b = (
        Scripted("a", BackendError("transient", "busy")),
        Scripted("b", BackendError("permanent", "401")),
    )
    with pytest.raises(BackendError, match="a: busy") as caught:
        ensemble(a, b, choice="fixed", fallback=("b",)).complete(REQUEST)
    assert (caught.value.kind, caught.value.answered_by) == ("transient", "a")
    with pytest.raises(BackendError, match="a: busy"):
        ensemble(a, b, choice="fixed").complete(REQUEST)


@pytest.mark.parametrize("kind", ["content", "repairable"])
def test_an_answer_that_is_none_is_not_asked_for_elsewhere(kind):
    a, b = Scripted("a", BackendError(kind, "found str")), Scripted("b")
    with pytest.raises(BackendError) as caught:
        ensemble(a, b, choice="fixed", fallback=("b",)).complete(REQUEST)
    assert (caught.value.kind, caught.value.answered_by) == (kind, "a")
    assert b.requests == []


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"fallback": ("z",)}, "fallback"),
        ({"choice": "weights"}, "weights"),
        ({"weights": {"a": 1.0, "b": 1.0}}, "weights"),
        ({"choice": "weights", "weights": {"a": 1.0}}, "weights"),
        ({"choice": "weights", "weights": {"a": 0.0, "b": 0.0}}, "weights"),
    ],
)
def test_names_that_do_not_fit_are_refused(options, option):
    with pytest.raises(OptionError) as caught:
        ensemble(Scripted("a"), Scripted("b"), **options)
    assert caught.value.option == option


def test_it_is_priced_and_complete_where_all_are():
    a, b = Scripted("a"), Scripted("b", missing=("a key",), priced=False)
    found = ensemble(a, b)
    assert not found.priced
    assert found.missing == ("a key (of b)",)
    with pytest.raises(OptionError, match="choose among no others"):
        ensemble(a, found)
    with pytest.raises(OptionError, match="at least two"):
        ensemble(a)


def test_a_campaign_learns_who_is_better(tmp_path):
    counts = Counter()
    for seed in range(3):
        summary = api.run(campaign(trials=48, seed=seed, faults=0.6), tmp_path / str(seed))
        found = by_backend(record_of(tmp_path / str(seed))[1])
        assert summary["answered_by"] == found
        assert f"answers of: {found['x']} x, {found['y']} y" in summary_text(summary)
        counts += found
    assert counts["x"] > 1.5 * counts["y"]


def test_an_interrupted_campaign_chooses_as_if_it_had_not_been(tmp_path):
    api.run(campaign(trials=30), tmp_path / "whole")
    for trials in (3, 9, 17, 30):
        api.run(campaign(trials=trials), tmp_path / "parts")
    whole, parts = (record_of(tmp_path / name) for name in ("whole", "parts"))
    ends = ("stopped", "finished", "extended")
    events = [[e for e in record[1] if e.kind not in ends] for record in (whole, parts)]
    assert events[0] == events[1]
    assert [t.candidate for t in whole[0]] == [t.candidate for t in parts[0]]
    assert len(by_backend(events[0])) == 2


def test_a_record_of_several_backends_is_replayed_by_one(tmp_path):
    api.run(campaign(), tmp_path / "a")
    again = campaign()
    again["agents"] = {"backend": {"name": "replay", "from": str(tmp_path / "a")}}
    api.run(again, tmp_path / "b")
    assert record_of(tmp_path / "a") == record_of(tmp_path / "b")


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"backends": {"x": {"name": "mok"}, "y": {"name": "mock"}}}, "backends.x.name"),
        (
            {"backends": {"x": {"name": "mock", "skil": 1}, "y": {"name": "mock"}}},
            "backends.x.skil",
        ),
        ({"backends": {"x": "mock", "y": {"name": "mock"}}}, "backends.x"),
        ({"backends": "mock"}, "backends"),
        ({"backends": {"x": MOCK}}, "backends"),
        ({"fallback": ["z"]}, "fallback"),
        ({"explore": -1}, "explore"),
        ({"limits": {"breakr": 3}}, "limits.breakr"),
        ({"limits": {"breaker": 0}}, "limits.breaker"),
        ({"limits": 3}, "limits"),
    ],
)
def test_faults_inside_are_reported_where_they_are(options, path):
    with pytest.raises(ConfigError) as caught:
        api.check(campaign(**options))
    assert caught.value.path == f"agents.backend.{path}"


def pull(bandit, means, rounds, seed=0, costs=None):
    rng, regret, best = random.Random(seed), 0.0, max(means.values())
    for _ in range(rounds):
        name = bandit.choose()
        bandit.pulled(name, 10, (costs or dict.fromkeys(means, 1.0))[name])
        bandit.rewarded(name, float(rng.random() < means[name]))
        regret += best - means[name]
    return regret


def test_regret_is_within_the_textbook_bound():
    means = {"a": 0.2, "b": 0.5, "c": 0.8}
    gaps = [max(means.values()) - mean for mean in means.values() if mean < max(means.values())]
    rounds = 2000
    bound = sum(8 * math.log(rounds) / gap for gap in gaps)
    bound += (1 + math.pi**2 / 3) * sum(gaps)
    found = [
        pull(Bandit(list(means), seed=seed, explore=1.0, per="call"), means, rounds, seed)
        for seed in range(5)
    ]
    assert max(found) <= 1.2 * bound
    by_default = Bandit(list(means), seed=0, explore=0.35, per="call")
    assert pull(by_default, means, rounds) < min(found)
    assert by_default.arms["c"].calls > 0.9 * rounds


def test_a_cheap_model_that_is_nearly_as_good_is_asked_more():
    means, costs = {"dear": 0.6, "cheap": 0.5}, {"dear": 10.0, "cheap": 1.0}
    by_call = Bandit(list(means), seed=0, explore=0.35, per="call")
    by_money = Bandit(list(means), seed=0, explore=0.35, per="usd")
    for bandit in (by_call, by_money):
        pull(bandit, means, 2000, costs=costs)
    assert by_call.arms["dear"].calls > 1000
    assert by_money.arms["cheap"].calls > 1800


def test_models_that_cost_nothing_are_compared_by_call():
    means = {"a": 0.2, "b": 0.8}
    bandit = Bandit(list(means), seed=0, explore=0.35, per="usd")
    pull(bandit, means, 500, costs={"a": 0.0, "b": 0.0})
    assert bandit.arms["b"].calls > 400


def test_rewards_are_ranks():
    bandit = Bandit(["a"], seed=0, explore=0.0, per="call")
    rewards = [bandit.judged(x) for x in (1.0, 50.0, None, 0.5, 50.0)]
    assert rewards == [0.5, 0.75, 0.0, (1 + 0.5) / 4, (1 + 3.0) / 5]
