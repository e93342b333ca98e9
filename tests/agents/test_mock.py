"""The simulated model: a function of seed and request, with faults at set rates and their truth."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import ChatRequest, Completion, Malformed, classify
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.programmer.faults import FILED_AS, PROFILES, SHARES, fault_rates
from kernelwright.agents.programmer.personas import PERSONAS
from kernelwright.env.objective import log2_speedup
from kernelwright.env.options import OptionError
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Reference, Request, Role, Stage
from kernelwright.evaluators.gpu_model import GpuModel
from kernelwright.prompts.render import TEMPLATES

NAMES = ("knobs", "schedule", "source", "regions")
# How each fault shows: the class of the reply, or that it becomes a candidate.
SHOWS = {
    "truncated": "truncated",
    "refused": "refused",
    "empty": "empty",
    "prose": "unparsable",
    "unparsable": "unparsable",
    "wrong_schema": "wrong_schema",
}


@pytest.fixture
def requests(worlds, recording):
    """Requests as they come up in a search, mending turns among them."""

    def make(name, asks=8):
        asked = []

        class Overheard(Mock):
            def complete(self, request):
                asked.append(request)
                return super().complete(request)

        world = worlds[name]
        backend = Overheard(seed=2, skill=0.7, faults=0.3)
        world.play(world.driver(recording(), backend=backend, seed=2), asks=asks)
        return asked

    return make


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_a_function_of_seed_and_request(requests, name):
    asked = requests(name)
    forwards = [Mock(seed=1, faults=0.4).complete(r) for r in asked]
    again = Mock(seed=1, faults=0.4)
    backwards = [again.complete(r) for r in reversed(asked)][::-1]
    assert forwards == backwards
    assert forwards != [Mock(seed=2, faults=0.4).complete(r) for r in asked]


@pytest.mark.parametrize("name", NAMES)
def test_the_envelope_is_that_of_a_real_model(requests, name):
    for request in requests(name):
        answer = Mock(seed=1, faults=0.4).complete(request)
        assert answer.id
        assert answer.model == "mock"
        assert answer.prompt_tokens > 0
        assert answer.finish_reason in ("stop", "length")
        assert loads(Completion, dumps(answer)) == answer


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", [*SHOWS, "wrong_code"])
def test_every_fault_shows_as_what_it_is(worlds, requests, name, fault):
    world = worlds[name]
    dialect = dialect_for(world.space, world.problem)
    model = Mock(seed=4, faults={fault: 1.0})
    for request in requests(name, 4):
        answer = model.complete(request)
        read = classify(answer)
        found = read if isinstance(read, Malformed) else dialect.parse(read)
        if fault != "wrong_code":
            assert answer.injected == fault
            assert isinstance(found, Malformed)
            assert found.kind == SHOWS[fault]
        elif name in ("source", "regions"):
            assert answer.injected.startswith("wrong_code:")
            assert not isinstance(found, Malformed)
            assert not world.space.check(found)
        else:
            assert answer.injected.startswith("illegal:")
            assert world.space.check(found)


@pytest.mark.parametrize("name", NAMES)
def test_an_honest_answer_parses_and_carries_no_tag(worlds, requests, name):
    world = worlds[name]
    dialect = dialect_for(world.space, world.problem)
    for request in requests(name):
        answer = Mock(seed=3).complete(request)
        assert answer.injected is None
        assert not isinstance(dialect.parse(answer.text), Malformed)


def test_faults_come_at_their_rates(requests):
    asked = requests("knobs", 60)
    drawn = Counter()
    for seed in range(12):
        model = Mock(seed=seed, skill=0.0, faults=0.4)
        drawn.update(str(model.complete(request).injected) for request in asked)
    total = sum(drawn.values())
    assert total > 2000
    for name, share in SHARES.items():
        seen = drawn["illegal:value" if name == "wrong_code" else name] / total
        assert seen == pytest.approx(0.4 * share, abs=0.015)


# Profiles


def test_profiles_are_what_they_are_called():
    assert sum(PROFILES["frontier"].values()) == pytest.approx(0.38)
    assert PROFILES["hostile"] == {"cheating": 0.3}
    for name, rates in PROFILES.items():
        assert set(rates) <= set(FILED_AS)
        assert fault_rates(name) == {c: rates.get(c, 0.0) for c in FILED_AS}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_keeps_its_rates(requests, profile):
    asked = requests("knobs", 30)
    drawn = Counter()
    for seed in range(12):
        model = Mock(seed=seed, skill=0.0, faults=profile)
        truths = (model.complete(request).injected or "none" for request in asked)
        drawn.update(truth.partition(":")[0] for truth in truths)
    total = sum(drawn.values())
    assert total > 1000
    wanted = dict(PROFILES[profile])
    # Knob values compute nothing, so they compute nothing wrong; and a duplicate needs results.
    wanted.pop("wrong_answer", None)
    assert drawn["duplicate"] / total <= wanted.pop("duplicate", 0) + 0.025
    for name, rate in wanted.items():
        assert drawn[name] / total == pytest.approx(rate, abs=0.025)
    assert set(drawn) <= {*PROFILES[profile], "none"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", ["syntax", "illegal", "duplicate", "prose_around"])
def test_what_models_of_today_do_shows_as_what_it_is(worlds, requests, name, fault):
    world = worlds[name]
    dialect = dialect_for(world.space, world.problem)
    model, seen = Mock(seed=4, faults={fault: 1.0}), 0
    for request in requests(name, 4):
        answer = model.complete(request)
        if answer.injected is None:
            assert fault == "duplicate"  # there is nothing yet to repeat
            continue
        seen += 1
        assert answer.injected.partition(":")[0] == fault
        found = dialect.parse(classify(answer))
        if fault == "syntax" and name not in ("source", "regions"):
            assert found.kind == "unparsable"
            continue
        assert not isinstance(found, Malformed)
        if fault == "illegal" and name != "source":
            assert world.space.check(found)
        elif fault != "prose_around":  # an honest answer may break a rule by mistake
            assert not world.space.check(found)
    assert seen


def test_a_duplicate_is_one_of_those_listed(worlds, requests):
    world = worlds["knobs"]
    dialect = dialect_for(world.space, world.problem)
    told = Mock(seed=4, faults={"duplicate": 1.0})
    for request in requests("knobs", 6):
        answer = told.complete(request)
        if answer.injected:
            again = dialect.parse(classify(answer))
            listed = request.messages[1][1].split("## Results")[1]
            assert f"`{dialect.brief(world.space.canonical(again))}`" in listed


# Personas


def test_personas_differ_in_all_that_they_declare(requests):
    request, seen = requests("knobs", 1)[0], {}
    for name in PERSONAS:
        answer = Mock(seed=0, persona=name, faults=0.0).complete(request)
        assert answer.model == f"mock-{name}"
        seen[name] = (answer.usd, answer.seconds)
    assert len(set(seen.values())) == len(PERSONAS)
    assert seen["swift"][0] < seen["careful"][0]
    assert seen["swift"][1] < seen["careful"][1]


def test_options_go_before_the_persona(requests):
    request = requests("knobs", 1)[0]
    model = Mock(seed=0, persona="careful", faults=0.0, latency_s=7.5, usd_per_million=2.0)
    answer = model.complete(request)
    assert answer.seconds == 7.5
    assert answer.usd == pytest.approx(2e-6 * answer.tokens)


def test_an_unknown_persona_is_refused_with_those_that_there_are():
    with pytest.raises(OptionError, match="one of swift, careful"):
        Mock(seed=0, persona="clever")


def test_an_answer_longer_than_the_limit_is_cut_as_a_real_one(requests):
    request = replace(requests("source", 1)[0], max_tokens=40)
    answer = Mock(seed=0).complete(request)
    assert answer.finish_reason == "length"
    assert answer.injected is None
    assert len(answer.text) == 160


def test_tokens_cost_what_they_shall(requests):
    answer = Mock(seed=0, usd_per_million=2.0).complete(requests("knobs", 1)[0])
    assert answer.usd == pytest.approx(2e-6 * answer.tokens)


@pytest.mark.parametrize(
    "faults",
    [
        1.5,
        -0.1,
        float("nan"),
        "often",
        {"odd": 0.1},
        {"prose": 0.7, "empty": 0.7},
        {"prose": -0.1},
    ],
)
def test_rates_that_make_no_sense_are_refused(faults):
    with pytest.raises(OptionError, match="faults"):
        Mock(seed=0, faults=faults)


def test_rates_by_class_are_taken_as_they_are():
    assert fault_rates({"prose": 0.25})["prose"] == 0.25
    assert sum(fault_rates(0.4).values()) == pytest.approx(0.4)


def test_a_prompt_it_does_not_understand_gets_prose():
    answer = Mock(seed=0).complete(ChatRequest("mock", (("user", "Hello!"),), 100, 0.0, 0))
    assert answer.text.startswith("Tiling")


@pytest.fixture(scope="module")
def to_target(worlds, recording):
    """Calls of the model and money until a trial is within 5% of the best on the analytic model, on
    average over seeds; a search that does not get there counts whole.
    """
    world = worlds["knobs"]
    space, target = world.space, GpuModel(world.problem, seed=0)
    against = (Reference(Role.BASELINE, space.default),)
    times = target.true_ns([space.candidate(i) for i in space.valid.tolist()])
    goal = 1.05 * np.nanmin(times)

    def objective(candidate):
        (verdict,) = target.evaluate([Request(candidate, Stage.SCREEN, against)])
        return log2_speedup(verdict)

    def reached(trials):
        return any(target.true_ns([t.candidate])[0] <= goal for t in trials[-4:])

    def spent(seed, prompt="refine", **options):
        journal = recording()
        backend = Mock(seed=seed, **options)
        driver = world.driver(journal, seed=seed, backend=backend, prompt=prompt)
        world.play(driver, asks=30, objective=objective, each=reached)
        calls = [event for event in journal.events if event.kind == "model_call"]
        return len(calls), sum(event.usd for event in calls)

    def means(seeds, **options):
        return np.mean([spent(seed, **options) for seed in range(seeds)], axis=0)

    return means


def test_skill_pays(to_target):
    none, little, much, all_ = (to_target(12, skill=skill)[0] for skill in (0.0, 0.3, 0.7, 1.0))
    assert none > 1.2 * little
    assert little > 1.2 * much
    assert much > 1.2 * all_


def test_feedback_pays(to_target, tmp_path):
    # The same programmer and the same prompt without what was tried and what failed.
    whole = (TEMPLATES / "refine.j2").read_text()
    deaf = tmp_path / "deaf.j2"
    deaf.write_text(whole[: whole.index("## Results")] + whole[whole.index("## Answer") :])
    told, untold = to_target(6, skill=1.0), to_target(6, skill=1.0, prompt=str(deaf))
    assert told[0] < 0.6 * untold[0]


def test_the_best_persona_is_known(to_target):
    careful, swift = to_target(8, persona="careful"), to_target(8, persona="swift")
    assert careful[0] < 0.7 * swift[0]
    assert swift[1] < 0.5 * careful[1]
