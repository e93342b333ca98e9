"""What the host does while kernels are timed, and what that makes of a claim."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from kernelwright.env.problems.row_sum import row_sum
from kernelwright.env.types import (
    Arm,
    CacheState,
    Candidate,
    Conditions,
    Language,
    ProcessPair,
    Reference,
    Request,
    Role,
    Stage,
    Status,
)
from kernelwright.evaluators.cpu.host import ADVICE, Watch, stolen_ns
from kernelwright.evaluators.cpu.likeness import (
    AA_PROCESS_PAIRS,
    NOISY,
    QUIET,
    Likeness,
    likeness,
)
from kernelwright.evaluators.cpu.placement import placement
from kernelwright.evaluators.cpu.target import Cpu

pytestmark = pytest.mark.cc
CALM = Conditions(3e9, 0.0, 0)
ROWS = row_sum(rows=8, cols=32)
PLAIN = Candidate(Language.SOURCE, ROWS.plain_c)


def ask(judge, candidate, stage=Stage.SCREEN, **fields):
    against = (Reference(Role.BASELINE, PLAIN),)
    (verdict,) = judge.evaluate([Request(candidate, stage, against, **fields)])
    return verdict


def pair_of(log, pairs=4):
    samples = ((1000.0, 1000.0 * math.exp(log)),) * pairs
    return ProcessPair(Arm.CANDIDATE, tuple(Arm), samples)


def test_a_look_at_the_clock_finds_one_that_can_be():
    watch = Watch(placement(1))
    clocks = [watch.look() for _ in range(9)]
    assert all(1e8 < clock < 1e10 for clock in clocks)
    assert watch.usual_clock_hz == sorted(clocks)[4]
    assert watch.drift == 1  # first and last looks are the same ones
    seen = watch.conditions(clocks[0], [(0, 5e3), (2, 7e3)])
    assert seen.clock_hz <= clocks[0]
    assert seen.stolen_ns >= 7e3  # who was not interrupted only waited to be woken
    assert seen.interruptions == 2
    # Threads take turns as their kernel pleases, which must not discard its slow calls.
    several = Watch(replace(placement(1), workers=(0, 0)))
    assert several.conditions(several.look(), [(9, 1e9), (0, 0.0)]).stolen_ns < 1e9
    assert stolen_ns([0]) >= 0
    assert stolen_ns([10**6]) == 0


@pytest.mark.real_host
@pytest.mark.parametrize(
    ("change", "pair_ns", "disturbed"),
    [
        ({}, 1e5, False),
        ({"stolen_ns": 900.0}, 1e5, False),
        ({"stolen_ns": 1100.0}, 1e5, True),
        ({"stolen_ns": 1100.0}, 1e7, False),
        ({"stolen_ns": 1.5e7}, 1e9, False),
        ({"stolen_ns": 2.1e7}, 1e9, True),
        ({"clock_hz": 2.8e9}, 1e5, False),
        ({"clock_hz": 2.6e9}, 1e5, True),
    ],
)
def test_the_rules_look_at_the_host_alone(change, pair_ns, disturbed):
    watch = Watch(placement(1))
    watch._clocks = [3e9] * 9
    assert watch.is_disturbed(replace(CALM, **change), pair_ns) is disturbed


def test_a_disturbed_pair_is_taken_again_and_both_arms_of_it_go(monkeypatch):
    turns = itertools.count()
    monkeypatch.setattr(Watch, "is_disturbed", lambda self, seen, ns: next(turns) % 2 == 0)
    verdict = ask(Cpu(ROWS), PLAIN, pairs=4)
    (pair,) = verdict.measurements[0].samples
    assert (len(pair.samples_ns), len(pair.conditions), pair.discarded) == (4, 4, 4)
    facts = dict(verdict.facts)
    assert (facts["host.discarded"], facts["host.disturbed"]) == (4, 0)
    assert facts["host.clock_hz"] > 1e8


def test_a_claim_on_disturbed_pairs_is_none(monkeypatch):
    monkeypatch.setattr(Watch, "is_disturbed", lambda self, seen, ns: True)
    judge = Cpu(ROWS)
    screen = ask(judge, PLAIN, pairs=3)
    assert screen.status is Status.OK  # it ranks, and claims nothing
    assert dict(screen.facts)["host.disturbed"] == 3
    verdict = ask(judge, PLAIN, stage=Stage.CONFIRM, process_pairs=2, pairs=2)
    assert (verdict.status, verdict.code) == (Status.UNSTABLE, "disturbed_host")
    assert "4 of 4 pairs" in verdict.evidence
    assert ADVICE in verdict.evidence


def test_nothing_is_claimed_where_identical_kernels_differ(monkeypatch):
    far = Likeness((0.05, 0.06, 0.04), 0.1)
    monkeypatch.setattr(Cpu, "_likeness", lambda self, state: far)
    judge = Cpu(ROWS)
    verdict = ask(judge, PLAIN, stage=Stage.CONFIRM, process_pairs=2, pairs=2)
    assert (verdict.status, verdict.code) == (Status.UNSTABLE, "noisy_host")
    assert "identical kernels differ by 5.13% here" in verdict.evidence
    assert ADVICE in verdict.evidence
    assert ask(judge, PLAIN, pairs=2).status is Status.OK


def test_a_claim_is_beyond_what_identical_kernels_differ_by(monkeypatch):
    near = Likeness((0.004, 0.006, 0.005), 0.1)
    monkeypatch.setattr(Cpu, "_likeness", lambda self, state: near)
    verdict = ask(Cpu(ROWS), PLAIN, stage=Stage.CONFIRM, process_pairs=3, pairs=2)
    assert verdict.terms.least_effect == pytest.approx(math.expm1(0.005))
    assert dict(verdict.facts)["host.likeness"] == verdict.terms.least_effect


def test_likeness_is_the_bias_or_its_standard_error():
    assert Likeness((0.01, 0.01, 0.01), 0.0).effect == pytest.approx(math.expm1(0.01))
    spread = Likeness((0.03, -0.03, 0.03, -0.03), 0.0)
    assert spread.effect == pytest.approx(math.expm1(1.483 * 0.03 * math.sqrt(4 / 3) / 2))
    # One disturbed process does not make a host noisy.
    assert not Likeness((*[0.001, -0.001] * 4, 0.5), 0.0).is_noisy
    assert Likeness((0.0, 0.0), 0.0).effect == QUIET
    assert not Likeness((0.0, 0.0), 0.0).is_noisy


def test_what_is_noisy_once_is_looked_at_again():
    asked = []

    def pair(number):
        asked.append(number)
        return pair_of(2 * NOISY if number < AA_PROCESS_PAIRS else 0.0)

    found = likeness(pair)
    assert len(asked) == 2 * AA_PROCESS_PAIRS
    assert not found.is_noisy
    assert likeness(lambda number: pair_of(2 * NOISY)).is_noisy


@pytest.mark.real_host
def test_identical_kernels_are_compared_in_fresh_processes_with_swapped_roles(monkeypatch):
    from kernelwright.evaluators.cpu.pair import Pair

    seen, measure = [], Pair.measure

    def watched(self, asked, order, roles):
        seen.append((order[0], roles[0]))
        return measure(self, asked, order, roles)

    monkeypatch.setattr(Pair, "measure", watched)
    found = Cpu(ROWS).likeness(CacheState.WARM)
    assert len(found.log_ratios) == AA_PROCESS_PAIRS
    assert set(seen[:4]) == set(itertools.product(Arm, Arm))
    assert found.seconds > 0


def test_every_combination_of_starting_and_calling_first_is_confirmed_on():
    verdict = ask(Cpu(ROWS), PLAIN, stage=Stage.CONFIRM, process_pairs=4, pairs=2)
    pairs = verdict.measurements[0].samples
    assert {(p.started_first, p.roles[0]) for p in pairs} == set(itertools.product(Arm, Arm))
