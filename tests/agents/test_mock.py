"""The simulated model: a function of seed and request, with faults at set rates and their truth."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kernelwright.agents.backends.mock import Mock
from kernelwright.agents.chat import Completion, Malformed, classify
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.programmer.faults import SHARES, fault_rates
from kernelwright.env.objective import log2_speedup
from kernelwright.env.options import OptionError
from kernelwright.env.records import dumps, loads
from kernelwright.env.types import Reference, Request, Role, Stage
from kernelwright.evaluators.gpu_model import GpuModel

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
        model = Mock(seed=seed, faults=0.4)
        drawn.update(str(model.complete(request).injected) for request in asked)
    total = sum(drawn.values())
    assert total > 2000
    for name, share in SHARES.items():
        seen = drawn["illegal:value" if name == "wrong_code" else name] / total
        assert seen == pytest.approx(0.4 * share, abs=0.015)


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
    "faults", [1.5, -0.1, {"odd": 0.1}, {"prose": 0.7, "empty": 0.7}, {"prose": -0.1}]
)
def test_rates_that_make_no_sense_are_refused(faults):
    with pytest.raises(OptionError, match="faults"):
        Mock(seed=0, faults=faults)


def test_rates_by_class_are_taken_as_they_are():
    assert fault_rates({"prose": 0.25})["prose"] == 0.25
    assert sum(fault_rates(0.4).values()) == pytest.approx(0.4)


def test_a_prompt_it_does_not_understand_gets_prose():
    from kernelwright.agents.chat import ChatRequest

    answer = Mock(seed=0).complete(ChatRequest("mock", (("user", "Hello!"),), 100, 0.0, 0))
    assert answer.text.startswith("Tiling")


def evaluations_to_target(world, recording, skill, seed, limit=120):
    """Trials until one is within 5% of the best on the analytic model."""
    space, target = world.space, GpuModel(world.problem, seed=0)
    against = (Reference(Role.BASELINE, space.default),)
    times = target.true_ns([space.candidate(i) for i in space.valid.tolist()])
    goal = 1.05 * np.nanmin(times)

    def objective(candidate):
        (verdict,) = target.evaluate([Request(candidate, Stage.SCREEN, against)])
        return log2_speedup(verdict)

    def reached(trials):
        return any(target.true_ns([t.candidate])[0] <= goal for t in trials[-4:])

    driver = world.driver(recording(), seed=seed, skill=skill)
    _, trials = world.play(driver, asks=limit // 4, objective=objective, each=reached)
    hit = [t.number for t in trials if target.true_ns([t.candidate])[0] <= goal]
    return hit[0] + 1 if hit else limit


def test_skill_pays(worlds, recording):
    medians = [
        statistics.median(
            evaluations_to_target(worlds["knobs"], recording, skill, seed) for seed in range(15)
        )
        for skill in (0.0, 0.3, 1.0)
    ]
    assert medians[0] > medians[1] > medians[2]


def test_feedback_pays(worlds, recording, tmp_path):
    # The same programmer, and a prompt without results, failures and parent.
    deaf = tmp_path / "deaf.j2"
    deaf.write_text(
        "{% block user %}\n## Language\n{% include '_rules_knobs.j2' %}\n## Parent\n"
        '```json\n{"bm": 128, "bn": 128, "bk": 32, "warps": 4, "stages": 3, "group_m": 8}\n```\n'
        "## Answer\n{% include '_answer_knobs.j2' %}{{ slot }}{% endblock %}"
    )
    world = worlds["knobs"]

    def spent(seed, **options):
        driver_of = world.driver
        world_like = type(world)(world.space, world.problem)
        world_like.driver = lambda journal, **rest: driver_of(journal, **rest, **options)
        return evaluations_to_target(world_like, recording, 0.8, seed)

    told = [spent(seed) for seed in range(11)]
    untold = [spent(seed, prompt=str(deaf)) for seed in range(11)]
    assert statistics.median(told) < 0.6 * statistics.median(untold)
