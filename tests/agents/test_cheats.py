"""The simulated programmer's cheats: what each is, and that the judge believes none."""

from __future__ import annotations

import platform

import pytest

from kernelwright.agents.programmer import sourcefaults
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
