"""The simulated programmer's cheats: what each is, and that the judge believes none."""

from __future__ import annotations

import platform
from random import Random

import pytest

from kernelwright.agents.chat import Malformed
from kernelwright.agents.dialects import dialect_for
from kernelwright.agents.dialects.fences import fenced
from kernelwright.agents.programmer import answers, sourcefaults
from kernelwright.agents.programmer.cheats import CHEATS, DEFENCES
from kernelwright.agents.programmer.reading import read_prompt
from kernelwright.env.problems.softmax import softmax
from kernelwright.env.types import Candidate, Language, Reference, Request, Role, Stage
from kernelwright.evaluators.cpu.target import Cpu, unscheduled_program
from kernelwright.evaluators.zoo.catalogue import catalogue

BY_NUMBER = {"opened_by_number", "thread_by_number", "early_exit", "floating_point_mode"}
EVERY = [pytest.param(cheat, id=cheat.name) for cheat in CHEATS]


class Listening:
    """A model that only hears what it is asked."""

    model, priced, missing = "listening", True, ()

    def __init__(self):
        self.sheets = []

    def complete(self, request):
        self.sheets.append(read_prompt(request.messages))
        raise StopIteration


@pytest.fixture
def sheet_of(worlds, recording):
    """What the first prompt of a search says."""

    def read(name):
        model = Listening()
        with pytest.raises(StopIteration):
            worlds[name].driver(recording(), backend=model).ask(1)
        return model.sheets[0]

    return read


def test_every_cheat_names_its_class_and_a_defence():
    assert len(CHEATS) >= 12
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS)
    for cheat in CHEATS:
        assert cheat.defence in DEFENCES
        assert catalogue()[cheat.id].has_c_form
        assert cheat.expect


def judged(problem, target, text):
    against = (Reference(Role.BASELINE, unscheduled_program(problem)),)
    (verdict,) = target.evaluate([Request(Candidate(Language.SOURCE, text), Stage.SCREEN, against)])
    return verdict


@pytest.fixture(scope="module")
def judge():
    problem = softmax(rows=16, cols=64)
    return problem, Cpu(problem)


@pytest.mark.cc
@pytest.mark.parametrize("cheat", EVERY)
def test_the_judge_believes_no_cheat(sheet_of, judge, cheat):
    if cheat.name in BY_NUMBER and platform.machine() != "x86_64":
        pytest.skip("knows an x86's instructions and system calls")
    verdict = judged(*judge, sourcefaults.cheated(cheat, sheet_of("source")))
    assert not verdict.status.passed
    assert (verdict.status.value, verdict.code) in cheat.expect, verdict.evidence


@pytest.mark.cc
def test_the_same_kernel_without_a_cheat_is_believed(sheet_of, judge):
    assert judged(*judge, sheet_of("source").parent).status.passed


@pytest.mark.parametrize("name", ["knobs", "schedule", "regions"])
def test_cheats_of_other_languages_are_no_candidates(worlds, sheet_of, name):
    world, sheet = worlds[name], sheet_of(name)
    dialect, writer = dialect_for(world.space, world.problem), answers.WRITERS[sheet.mark]
    tags = set()
    for seed in range(40):
        rng = Random(seed)
        text, tag = writer.faults["cheating"](sheet, writer.propose(sheet, rng, 0.7), rng)
        kind, _, rest = tag.partition(":")
        assert kind == "cheating"
        assert rest.partition("/")[0] in DEFENCES
        tags.add(tag)
        found = dialect.parse(fenced(text, sheet.mark))
        if name == "regions" and "/outside_regions" not in tag:
            # Statements inside a region are C like any other, which the judge refuses.
            assert not isinstance(found, Malformed)
            assert not world.space.check(found)
        else:
            assert isinstance(found, Malformed) or world.space.check(found)
    assert len(tags) >= 2


@pytest.mark.cc
def test_the_judge_believes_no_cheat_within_a_region(worlds, sheet_of):
    world, sheet = worlds["regions"], sheet_of("regions")
    target = Cpu(world.problem)
    texts = [(cheat, sourcefaults.cheated(cheat, sheet)) for cheat in CHEATS]
    made = [(cheat, text) for cheat, text in texts if text is not None]
    assert len(made) >= 4
    for cheat, text in made:
        verdict = judged(world.problem, target, text)
        assert not verdict.status.passed, cheat.name
